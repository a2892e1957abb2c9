// What the rows of check/ops.def cannot say.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <unordered_set>

#include "loom/dialect/encoding_info.h"
#include "loom/dialect/hooks.h"
#include "loom/dialect/numeric.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"

namespace loom::verify {
namespace {

using enum OpKind;

ScalarKind element_of(const VerifyContext& c, ValueId value) {
  return c.module.types[c.module.type_of(value)].element;
}

// TYPE/005
bool check_fits(VerifyContext& c, OpId op, std::string_view attribute, const Attr& literal,
                ScalarKind kind) {
  if (from_literal(literal, kind)) return true;
  c.bad_literal(op, attribute, fmt::format("the literal does not fit {}", scalar_name(kind)));
  return false;
}

bool check_positive(VerifyContext& c, OpId op, unsigned slot, std::string_view attribute) {
  if (!c.module.has_attr(op, slot) || c.module.attr(op, slot).value() > 0) return true;
  c.bad_attribute(op, attribute,
                  fmt::format("{} is not positive", c.module.attr(op, slot).value()));
  return false;
}

// A tensor of the checks has static extents and no attachment: its bytes are known.
void check_static(VerifyContext& c, OpId op, ValueId tensor) {
  const Type& type = c.module.types[c.module.type_of(tensor)];
  if (type.kind != TypeKind::Tensor || dense_bytes(type)) return;
  c.bad_result(op, "a dense tensor with static extents");
}

bool is_power_of_two(int64_t value) {
  return value > 0 && std::has_single_bit(static_cast<uint64_t>(value));
}

void check_param_range(VerifyContext& c, OpId op) {
  const ScalarKind kind = element_of(c, c.module.result(op));
  const auto range =
      static_cast<ParamRange>(c.module.attr(op, attr_slot(CheckParamRange, "kind")).bits);
  const Attr& lower = c.module.attr(op, attr_slot(CheckParamRange, "lower"));
  const Attr& upper = c.module.attr(op, attr_slot(CheckParamRange, "upper"));
  check_positive(c, op, attr_slot(CheckParamRange, "step"), "step");
  if (!check_fits(c, op, "bounds", lower, kind) || !check_fits(c, op, "bounds", upper, kind)) {
    return;
  }
  if (lower.value() > upper.value()) {
    c.bad_attribute(op, "bounds", fmt::format("{} is above {}", lower.value(), upper.value()));
  }
  if (range == ParamRange::Linear) return;
  for (const Attr* bound : {&lower, &upper}) {
    if (is_power_of_two(bound->value())) continue;
    c.bad_attribute(op, "bounds", fmt::format("{} is not a power of two", bound->value()));
    return;
  }
  if (c.module.has_attr(op, attr_slot(CheckParamRange, "step"))) {
    c.bad_attribute(op, "step", "a range of powers of two doubles");
  }
}

void check_param_choice(VerifyContext& c, OpId op) {
  const ScalarKind kind = element_of(c, c.module.result(op));
  const Attr& values = c.module.attr(op, attr_slot(CheckParamChoice, "values"));
  if (values.ints.empty() || values.kind != AttrKind::IntList) {
    c.bad_literal(op, "values", "at least one integer is needed, and nothing else");
    return;
  }
  for (const int64_t value : values.ints) {
    if (!check_fits(c, op, "values", Attr::integer(value), kind)) return;
  }
}

// The name of a parameter: its clause, or else that of its value.
StringId parameter_name(const Module& module, OpId op) {
  const unsigned slot = module.op(op).kind == CheckParamRange ? attr_slot(CheckParamRange, "name")
                        : module.op(op).kind == CheckParamChoice
                            ? attr_slot(CheckParamChoice, "name")
                            : attr_slot(CheckParamSeed, "name");
  if (module.has_attr(op, slot)) return module.attr(op, slot).string();
  return module.value(module.result(op)).name;
}

bool is_parameter(OpKind kind) {
  return kind == CheckParamRange || kind == CheckParamChoice || kind == CheckParamSeed;
}

// Whether the parameter takes the value.
bool takes(const Module& module, OpId op, int64_t value) {
  switch (module.op(op).kind) {
    case CheckParamChoice: {
      const Attr& values = module.attr(op, attr_slot(CheckParamChoice, "values"));
      return std::ranges::find(values.ints, value) != values.ints.end();
    }
    case CheckParamSeed: {
      const int64_t base = module.attr(op, attr_slot(CheckParamSeed, "base")).value();
      const int64_t count = module.attr(op, attr_slot(CheckParamSeed, "count")).value();
      return value >= base && static_cast<uint64_t>(value) - static_cast<uint64_t>(base) <
                                  static_cast<uint64_t>(count);
    }
    default:
      break;
  }
  const int64_t lower = module.attr(op, attr_slot(CheckParamRange, "lower")).value();
  if (value < lower || value > module.attr(op, attr_slot(CheckParamRange, "upper")).value()) {
    return false;
  }
  const auto range =
      static_cast<ParamRange>(module.attr(op, attr_slot(CheckParamRange, "kind")).bits);
  if (range == ParamRange::Po2) return is_power_of_two(value);
  constexpr unsigned kStep = attr_slot(CheckParamRange, "step");
  const int64_t step = module.has_attr(op, kStep) ? module.attr(op, kStep).value() : 1;
  const uint64_t distance = static_cast<uint64_t>(value) - static_cast<uint64_t>(lower);
  return step > 0 && distance % static_cast<uint64_t>(step) == 0;
}

}  // namespace

void check_case(VerifyContext& c, OpId op) {
  std::unordered_set<uint32_t> names;
  for_each_nested(c.module, op, [&](OpId nested) {
    if (!c.sound(nested) || !is_parameter(c.module.op(nested).kind)) return;
    const StringId name = parameter_name(c.module, nested);
    if (!name.valid() || names.insert(name.index()).second) return;
    c.bad_attribute(
        nested, "name",
        fmt::format("another parameter of the case is called '{}'", c.module.strings.text(name)));
  });
}

void check_benchmark(VerifyContext& c, OpId op) {
  const OpId target = c.resolve(op, attr_slot(CheckBenchmark, "case"), {CheckCase}, "check case");
  constexpr unsigned kParameters = attr_slot(CheckBenchmark, "parameters");
  if (!target.valid() || !c.module.has_attr(op, kParameters)) return;
  std::unordered_map<uint32_t, OpId> parameters;
  for_each_nested(c.module, target, [&](OpId nested) {
    if (!c.sound(nested) || !is_parameter(c.module.op(nested).kind)) return;
    parameters.emplace(parameter_name(c.module, nested).index(), nested);
  });
  for (const DictEntry& entry : c.module.attr(op, kParameters).entries) {
    const std::string_view key = c.module.strings.text(entry.key);
    const auto found = parameters.find(entry.key.index());
    if (found == parameters.end()) {
      c.bad_attribute(op, key,
                      fmt::format("'@{}' has no such parameter", symbol_text(c.module, target)));
      continue;
    }
    const Attr& value = c.module.attrs[entry.value];
    if (value.kind == AttrKind::Integer && takes(c.module, found->second, value.value())) continue;
    c.bad_attribute(op, key,
                    fmt::format("the parameter never is {}", attr_text(c.module, entry.value)));
  }
}

void check_param(VerifyContext& c, OpId op) {
  switch (c.module.op(op).kind) {
    case CheckParamRange:
      return check_param_range(c, op);
    case CheckParamChoice:
      return check_param_choice(c, op);
    default:
      check_positive(c, op, attr_slot(CheckParamSeed, "count"), "count");
  }
}

void check_literal(VerifyContext& c, OpId op) {
  check_fits(c, op, "value", c.module.attr(op, attr_slot(CheckLiteral, "value")),
             element_of(c, c.module.result(op)));
}

void check_generate(VerifyContext& c, OpId op) {
  const OpKind kind = c.module.op(op).kind;
  const ScalarKind element = element_of(c, c.module.result(op));
  check_static(c, op, c.module.result(op));
  if (kind == CheckGenerateFill) {
    check_fits(c, op, "value", c.module.attr(op, attr_slot(CheckGenerateFill, "value")), element);
    return;
  }
  if (kind == CheckGenerateIota) {
    for (const auto& [slot, name] : {std::pair{attr_slot(CheckGenerateIota, "offset"), "offset"},
                                     {attr_slot(CheckGenerateIota, "step"), "step"}}) {
      check_fits(c, op, name, c.module.attr(op, slot), element);
    }
    check_positive(c, op, attr_slot(CheckGenerateIota, "period"), "period");
    return;
  }
  const Attr& lower = c.module.attr(op, attr_slot(CheckGenerateRandomUniform, "lower"));
  const Attr& upper = c.module.attr(op, attr_slot(CheckGenerateRandomUniform, "upper"));
  if (!check_fits(c, op, "range", lower, element) || !check_fits(c, op, "range", upper, element)) {
    return;
  }
  const bool ordered = lower.kind == AttrKind::Float ? lower.number() <= upper.number()
                                                     : lower.value() <= upper.value();
  if (!ordered) c.bad_attribute(op, "range", "the bounds are reversed");
}

void check_file(VerifyContext& c, OpId op) {
  static_assert(attr_slot(CheckFileReadNpy, "path") == attr_slot(CheckFileWriteNpy, "path"));
  const Attr& path = c.module.attr(op, attr_slot(CheckFileReadNpy, "path"));
  if (c.module.strings.text(path.string()).empty()) {
    c.error(op, Diag::StructureString, {{"text", ""}, {"detail", "a path cannot be empty"}});
  }
  if (c.module.op(op).kind == CheckFileReadNpy) check_static(c, op, c.module.result(op));
}

void check_tensor_view(VerifyContext& c, OpId op) {
  const int64_t offset = c.module.attr(op, attr_slot(CheckTensorView, "offset")).value();
  const auto from = dense_bytes(c.module.types[c.module.type_of(c.module.operand(op, 0))]);
  const auto to = dense_bytes(c.module.types[c.module.type_of(c.module.result(op))]);
  check_static(c, op, c.module.result(op));
  if (!from || !to) return;
  if (offset >= 0 && *to <= *from && static_cast<uint64_t>(offset) <= *from - *to) return;
  c.bad_attribute(op, "offset",
                  fmt::format("{} bytes from {} on do not fit into {}", *to, offset, *from));
}

void check_oracle_call(VerifyContext& c, OpId op) {
  c.resolve(op, attr_slot(CheckOracleCall, "callee"), {FuncDef, FuncDecl}, "function");
  if (c.module.op(op).result_count == 0) {
    c.error(op, Diag::StructureResultCount,
            {{"op", std::string(c.op_name(op))}, {"expected", "one or more"}, {"found", "0"}});
  }
}

void check_expect_close(VerifyContext& c, OpId op) {
  for (const auto& [slot, name] : {std::pair{attr_slot(CheckExpectClose, "atol"), "atol"},
                                   {attr_slot(CheckExpectClose, "rtol"), "rtol"}}) {
    if (c.module.attr(op, slot).number() >= 0) continue;
    c.bad_attribute(op, name, "a tolerance cannot be negative or NaN");
  }
  const ValueId actual = c.module.operand(op, 0);
  if (is_float(element_of(c, actual))) return;
  c.error(op, Diag::TypeOperandConstraint,
          {{"op", std::string(c.op_name(op))},
           {"operand", value_name_text(c.module, actual)},
           {"type", c.type(actual)},
           {"constraint", "a float, or a tensor of floats, to be close to another"}});
}

void check_expect_shape(VerifyContext& c, OpId op) {
  const Type& type = c.module.types[c.module.type_of(c.module.operand(op, 0))];
  const size_t count = c.module.attr(op, attr_slot(CheckExpectShape, "shape")).ints.size();
  if (count == type.rank()) return;
  c.error(op, Diag::ShapeMismatch,
          {{"detail", fmt::format("the tensor has rank {} but {} extents are expected", type.rank(),
                                  count)}});
}

}  // namespace loom::verify
