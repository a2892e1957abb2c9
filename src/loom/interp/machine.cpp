#include "loom/interp/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "loom/base/check.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"

namespace loom::interp {

using enum OpKind;

Layout::Layout(const Module& module) : slots(module.value_count()) {
  const auto look = [&](OpId op) {
    if (op_info(module.op(op).kind).effect != Effect::Write) return;
    const auto& attrs = op_info(module.op(op).kind).attrs;
    for (size_t i = 0; i < attrs.size(); ++i) {
      const bool ordering = attrs[i].name == "ordering" || attrs[i].name == "success_ordering";
      const AttrId attr = module.attr_ids(op)[i];
      synchronizing |= ordering && attr.valid() &&
                       module.attrs[attr].value() != static_cast<int64_t>(Ordering::Relaxed);
    }
  };
  for_each_op(module, module.body(), [&](OpId symbol) { for_each_nested(module, symbol, look); });
}

Machine::Machine(const Module& module, const InterpOptions& options, Diagnostics& diagnostics)
    : module_(module),
      options_(options),
      diagnostics_(diagnostics),
      own_layout_(options.tables == nullptr ? std::make_unique<Layout>(module) : nullptr),
      layout_(options.tables == nullptr ? *own_layout_ : options.tables->layout()) {}

bool Machine::fail(OpId op, Diag id, std::vector<DiagParam> params) {
  diagnostics_.emit(id, op.valid() ? module_.location(op) : Location{}, std::move(params));
  return false;
}

bool Machine::unsupported(OpId op) {
  return fail(op, Diag::LoweringNotSupported,
              {{"op", op_name(op)}, {"where", "by the interpreter"}});
}

bool Machine::violation(OpId op, std::string detail) {
  return fail(op, Diag::RunContract, {{"op", op_name(op)}, {"detail", std::move(detail)}});
}

std::string Machine::op_name(OpId op) const {
  return std::string(op_info(module_.op(op).kind).name);
}

std::string Machine::value_name(ValueId value) const {
  const std::string_view name = module_.name_of(value);
  return name.empty() ? "a value" : fmt::format("%{}", name);
}

// --- values and frames --------------------------------------------------------------------------

// Numbers the values of a body, densely, so that a frame is as large as its function.
void Machine::prepare_body(OpId symbol) {
  if (layout_.counts.contains(symbol.index())) return;
  uint32_t count = 0;
  const auto number = [&](ValueId value) { layout_.slots[value.index()] = count++; };
  const auto number_type = [&](TypeId type) {
    for (Dim dim : module_.types[type].dims) {
      if (dim.is_dynamic() && module_.value(dim.value()).kind == ValueKind::Extent) {
        number(dim.value());
      }
    }
  };
  const auto number_op = [&](OpId op) {
    for (unsigned r = 0; r < module_.op(op).result_count; ++r) {
      number(module_.result(op, r));
      number_type(module_.type_of(module_.result(op, r)));
    }
    for (unsigned r = 0; r < module_.op(op).region_count; ++r) {
      for (ValueId arg : module_.args(module_.op_region(op, r))) {
        number(arg);
        number_type(module_.type_of(arg));
      }
    }
  };
  number_op(symbol);
  for_each_nested(module_, symbol, number_op);
  layout_.counts[symbol.index()] = count;
}

const Datum& Machine::get(const Invocation& t, ValueId value) const {
  return t.frames.back().values[slot(value)];
}

void Machine::set(Invocation& t, ValueId value, Datum datum) {
  t.frames.back().values[slot(value)] = std::move(datum);
}

bool Machine::not_a_value(OpId op, const Datum& datum) {
  if (std::holds_alternative<Poison>(datum)) return violation(op, "poison reaches it");
  return unsupported(op);
}

std::optional<ScalarValue> Machine::scalar(Invocation& t, OpId op, ValueId value) {
  const Datum& datum = get(t, value);
  if (const auto* found = std::get_if<ScalarValue>(&datum)) return *found;
  not_a_value(op, datum);
  return std::nullopt;
}

std::optional<int64_t> Machine::integer(Invocation& t, OpId op, ValueId value) {
  const auto found = scalar(t, op, value);
  if (!found) return std::nullopt;
  return found->kind == ScalarKind::I1 ? static_cast<int64_t>(found->bits) : as_signed(*found);
}

std::optional<LaneValues> Machine::lanes(Invocation& t, OpId op, ValueId value) {
  const Datum& datum = get(t, value);
  auto found = lanes_of(datum);
  if (!found) not_a_value(op, datum);
  return found;
}

std::optional<BufferDatum> Machine::buffer(Invocation& t, OpId op, ValueId value) {
  const Datum& datum = get(t, value);
  if (const auto* found = std::get_if<BufferDatum>(&datum)) return *found;
  not_a_value(op, datum);
  return std::nullopt;
}

std::shared_ptr<const ViewDatum> Machine::view(Invocation& t, OpId op, ValueId value) {
  const Datum& datum = get(t, value);
  if (const auto* found = std::get_if<std::shared_ptr<const ViewDatum>>(&datum)) return *found;
  not_a_value(op, datum);
  return nullptr;
}

std::optional<std::vector<int64_t>> Machine::indices(Invocation& t, OpId op,
                                                     std::span<const ValueId> values,
                                                     unsigned slot_number) {
  std::vector<int64_t> found;
  size_t next = 0;
  for (int64_t fixed : module_.attr(op, slot_number).ints) {
    if (fixed != kDynamicIndex) {
      found.push_back(fixed);
      continue;
    }
    const auto value = integer(t, op, values[next++]);
    if (!value) return std::nullopt;
    found.push_back(*value);
  }
  return found;
}

namespace {

// The interpreter keeps 8 bytes a lane; a vector beyond 1 GiB is refused before it is allocated.
constexpr uint64_t kMostLanes = uint64_t{1} << 27;

// Lanes of a shape without negative extents; the largest number where 64 bits don't hold them.
uint64_t saturated_lanes(std::span<const int64_t> shape) {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  uint64_t count = 1;
  for (int64_t extent : shape) {
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(extent), &count)) return UINT64_MAX;
  }
  return count;
}

bool has_bounded_lanes(std::span<const int64_t> shape) {
  return saturated_lanes(shape) <= kMostLanes;
}

std::string needed_bytes(std::span<const int64_t> shape) {
  uint64_t bytes = 0;
  if (!__builtin_mul_overflow(saturated_lanes(shape), sizeof(uint64_t), &bytes)) {
    return std::to_string(bytes);
  }
  return "more than " + std::to_string(UINT64_MAX);
}

}  // namespace

std::optional<std::vector<int64_t>> Machine::extents(Invocation& t, OpId op, const Type& type) {
  std::vector<int64_t> found;
  for (Dim dim : type.dims) {
    int64_t extent = dim.is_dynamic() ? 0 : dim.extent();
    if (dim.is_dynamic()) {
      const auto value = integer(t, op, dim.value());
      if (!value) return std::nullopt;
      extent = *value;
    }
    if (extent < 0) {
      violation(op, fmt::format("the extent {} of its type is negative", extent));
      return std::nullopt;
    }
    found.push_back(extent);
  }
  if (type.kind == TypeKind::Vector && !has_bounded_lanes(found)) {
    fail(op, Diag::RunOutOfMemory,
         {{"bytes", needed_bytes(found)}, {"what", "the lanes of a vector"}});
    return std::nullopt;
  }
  return found;
}

namespace {

std::span<const int64_t> shape_of(const Datum& datum) {
  if (const auto* v = std::get_if<std::shared_ptr<const ViewDatum>>(&datum)) return (*v)->extents;
  if (const auto* v = std::get_if<std::shared_ptr<const LaneValues>>(&datum)) return (*v)->shape;
  return {};
}

}  // namespace

// Extents that a type only names take what the argument has.
bool Machine::bind(Invocation& t, OpId at, RegionId region, std::span<const Datum> arguments) {
  const auto formals = module_.args(region);
  LOOM_CHECK(formals.size() == arguments.size(), "verified calls pass what is declared");
  for (size_t i = 0; i < formals.size(); ++i) set(t, formals[i], arguments[i]);
  for (size_t i = 0; i < formals.size(); ++i) {
    const Type& type = module_.types[module_.type_of(formals[i])];
    const auto shape = shape_of(arguments[i]);
    if (shape.size() != type.rank()) continue;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const Dim dim = type.dims[axis];
      int64_t extent = dim.is_dynamic() ? shape[axis] : dim.extent();
      if (dim.is_dynamic()) {
        const Datum& bound = get(t, dim.value());
        if (std::holds_alternative<std::monostate>(bound)) {
          set(t, dim.value(), from_bits(ScalarKind::Index, static_cast<uint64_t>(extent)));
        } else if (const auto* value = std::get_if<ScalarValue>(&bound)) {
          extent = as_signed(*value);
        }
      }
      if (extent != shape[axis]) {
        return fail(at, Diag::RunFalsePromise,
                    {{"what", fmt::format("the type of '{}'", value_name(formals[i]))},
                     {"detail", fmt::format("axis {} has the extent {} where {} is declared", axis,
                                            shape[axis], extent)}});
      }
    }
  }
  return true;
}

bool Machine::start(Invocation& t, OpId symbol, RegionId body, OpId call_op,
                    std::span<const Datum> arguments) {
  const OpId at = call_op.valid() ? call_op : symbol;
  if (t.frames.size() >= options_.call_limit) {
    return fail(at, Diag::RunLimit,
                {{"limit", fmt::format("{} nested calls", options_.call_limit)}, {"repair", ""}});
  }
  prepare_body(symbol);
  t.frames.push_back(
      {symbol, call_op, t.activations.size(), std::vector<Datum>(slot_count(symbol))});
  if (!bind(t, at, body, arguments)) return false;
  t.activations.push_back(
      {.kind = Activation::Function, .owner = symbol, .next = module_.region(body).first});
  return true;
}

// --- the loop -----------------------------------------------------------------------------------

bool Machine::run(Invocation& t) {
  for (;;) {
    Activation& top = t.activations.back();
    const OpId op = top.next;
    if (!op.valid()) {
      if (finish_region(t, OpId()) == Outcome::Stop) return t.status != Invocation::Ready;
      continue;
    }
    top.next = module_.op(op).next;
    if (top.kind == Activation::Concurrent) ++t.path.back().child;
    if (++steps_ > options_.step_limit) {
      return fail(op, Diag::RunLimit,
                  {{"limit", fmt::format("{} operations", options_.step_limit)},
                   {"repair", "raise the limit if the program ends"}});
    }
    switch (execute(t, op)) {
      case Outcome::Next:
        break;
      case Outcome::Wait:
        t.status = Invocation::Waiting;
        t.waiting = op;
        return true;
      case Outcome::Stop:
        return t.status != Invocation::Ready;
    }
  }
}

Machine::Outcome Machine::execute(Invocation& t, OpId op) {
  const OpInfo& info = op_info(module_.op(op).kind);
  if (info.dialect == "scf" || info.dialect == "func" || info.dialect == "template" ||
      info.dialect == "config" || info.has(trait::Terminator)) {
    return control(t, op);
  }
  if (info.dialect == "kernel") {
    if (info.effect == Effect::Command) return command(t, op);
    return query(t, op);
  }
  if (info.dialect == "command") return command(t, op);
  if (info.dialect == "check") return check(t, op);
  if (info.dialect == "sanitizer") return assume(t, op);
  if (info.dialect == "buffer" || info.dialect == "encoding") return storage(t, op);
  if (info.dialect == "view") return info.effect == Effect::Pure ? storage(t, op) : access(t, op);
  if (info.dialect == "vector" && info.effect != Effect::Pure) return access(t, op);
  return pure(t, op);
}

bool Machine::constant(Invocation& t, OpId op, const Attr& literal, TypeId type) {
  const Type& shape = module_.types[type];
  const auto value = from_literal(literal, shape.element);
  if (!value) return unsupported(op);
  set(t, module_.result(op), *value);
  return true;
}

// --- pure operations ----------------------------------------------------------------------------

// What the operation's contract says about these operands.
std::string Machine::violation_text(OpId op, std::span<const ScalarValue> operands) const {
  const std::string_view name = op_info(module_.op(op).kind).name;
  const std::string_view word = name.substr(name.find('.') + 1);
  std::string values;
  for (const ScalarValue& value : operands) {
    values += fmt::format(
        "{}{}", values.empty() ? "" : ", ",
        is_float(value.kind) ? fmt::to_string(to_double(value)) : fmt::to_string(as_signed(value)));
  }
  const char* reason = "it is not defined for";
  if (word.starts_with("div") || word.starts_with("rem") || word.find("div") != word.npos) {
    reason = operands.size() > 1 && operands[1].bits == 0 ? "division by zero of"
                                                          : "the quotient is not defined for";
  } else if (word.starts_with("sh") && operands.size() > 1 &&
             operands[1].bits >= scalar_bits(operands[0].kind)) {
    reason = "the shift count is not below the width for";
  } else if (name.starts_with("index.")) {
    reason = "the result is not representable for";
  } else if (eval_attrs(module_, op).flags != 0) {
    reason = "the promise of no overflow is broken for";
  }
  return fmt::format("{} {}", reason, values);
}

Machine::Outcome Machine::pure(Invocation& t, OpId op) {
  const OpKind kind = module_.op(op).kind;
  switch (kind) {
    case IndexConstant:
    case ScalarConstant:
      return constant(t, op, module_.attr(op, 0), module_.type_of(module_.result(op)))
                 ? Outcome::Next
                 : Outcome::Stop;
    case IndexAssume:
    case ScalarAssume:
      return assume(t, op);
    case TargetSubgroupSize:
      set_scalar(t, op,
                 from_bits(ScalarKind::Index, t.launch != nullptr
                                                  ? static_cast<uint64_t>(t.launch->subgroup_size)
                                                  : options_.subgroup_size));
      return Outcome::Next;
    default:
      break;
  }
  const auto set_poison = [&] {
    for (unsigned r = 0; r < module_.op(op).result_count; ++r) {
      set(t, module_.result(op, r), Poison{});
    }
    return Outcome::Next;
  };
  const std::string_view name = op_info(kind).name;
  if (name.ends_with(".poison")) return set_poison();
  std::vector<ScalarValue> scalars;
  std::vector<LaneValues> all;
  const auto operands = module_.operands(op);
  for (ValueId value : operands) {
    const Datum& datum = get(t, value);
    if (std::holds_alternative<Poison>(datum)) return set_poison();
    if (const auto* one = std::get_if<ScalarValue>(&datum)) scalars.push_back(*one);
  }
  const TypeId result_type = module_.type_of(module_.result(op));
  if (scalars.size() == operands.size() && module_.types[result_type].is_scalar() &&
      op_info(kind).dialect != "vector") {
    ScalarValue value;
    switch (evaluate(kind, eval_attrs(module_, op), scalars, module_.types[result_type].element,
                     value)) {
      case EvalStatus::Ok:
        set_scalar(t, op, value);
        return Outcome::Next;
      case EvalStatus::ContractViolation:
        violation(op, violation_text(op, scalars));
        return Outcome::Stop;
      case EvalStatus::NotEvaluable:
        unsupported(op);
        return Outcome::Stop;
    }
  }
  for (ValueId value : operands) all.push_back(lanes_of(get(t, value)).value_or(LaneValues{}));
  std::vector<LaneValues> results(module_.op(op).result_count);
  for (unsigned r = 0; r < results.size(); ++r) {
    const Type& type = module_.types[module_.type_of(module_.result(op, r))];
    auto shape = extents(t, op, type);
    if (!shape) return Outcome::Stop;
    results[r].shape = std::move(*shape);
  }
  switch (evaluate_vector(module_, op, all, results)) {
    case EvalStatus::Ok:
      break;
    case EvalStatus::ContractViolation:
      violation(op, "an operand breaks its contract in some lane");
      return Outcome::Stop;
    case EvalStatus::NotEvaluable:
      unsupported(op);
      return Outcome::Stop;
  }
  for (unsigned r = 0; r < results.size(); ++r) {
    const ValueId result = module_.result(op, r);
    if (module_.types.is_scalar(module_.type_of(result))) {
      set(t, result, results[r].at(0));
    } else {
      set(t, result, lanes_datum(std::move(results[r])));
    }
  }
  return Outcome::Next;
}

}  // namespace loom::interp
