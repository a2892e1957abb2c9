// Every scalar and index operation, in every type and variant, computes what dialect/eval.h says.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernel_harness.h"
#include "loom/dialect/eval.h"
#include "loom/dialect/op_info.h"

namespace loom::test {
namespace {

using enum OpKind;
using Tuple = std::vector<ScalarValue>;

constexpr double kScale = 1.702;

// One operation with its types and its comparison, form or promise.
struct Case {
  OpKind op{};
  std::vector<ScalarKind> operands;
  ScalarKind result{};
  EvalAttrs attrs;

  std::string text() const {
    std::string name = fmt::format("{} #{}", op_info(op).name, attrs.choice);
    for (const ScalarKind kind : operands) name += fmt::format(" {}", scalar_name(kind));
    return name + fmt::format(" -> {}, flags {}", scalar_name(result), attrs.flags);
  }
};

std::vector<ScalarKind> all_kinds() {
  std::vector<ScalarKind> kinds;
  kinds.reserve(kScalarCount);
  for (size_t i = 0; i < kScalarCount; ++i) kinds.push_back(static_cast<ScalarKind>(i));
  return kinds;
}

bool is_conversion(OpKind op) {
  switch (op) {
    case IndexCast:
    case ScalarSIToFP:
    case ScalarUIToFP:
    case ScalarFPToSI:
    case ScalarFPToUI:
    case ScalarExtF:
    case ScalarFPTrunc:
    case ScalarExtSI:
    case ScalarExtUI:
    case ScalarTruncI:
    case ScalarBitcast:
    case ScalarBitfieldExtractU:
    case ScalarBitfieldExtractS:
      return true;
    default:
      return false;
  }
}

// Results that depend on the implementation of elementary functions.
bool is_elementary(OpKind op) {
  switch (op) {
    case ScalarExpF:
    case ScalarExp2F:
    case ScalarLogF:
    case ScalarLog2F:
    case ScalarRsqrtF:
    case ScalarSinF:
    case ScalarCosF:
    case ScalarTanhF:
    case ScalarErfF:
    case ScalarLogisticF:
    case ScalarSiluF:
    case ScalarGeluF:
    case ScalarPowF:
    case ScalarExpm1F:
    case ScalarLog10F:
    case ScalarLog1pF:
    case ScalarCbrtF:
    case ScalarSoftplusF:
    case ScalarErfcF:
    case ScalarSinTurnsF:
    case ScalarCosTurnsF:
    case ScalarTanF:
    case ScalarAsinF:
    case ScalarAcosF:
    case ScalarAtanF:
    case ScalarAtan2F:
      return true;
    default:
      return false;
  }
}

// --- a module with one kernel around one operation ----------------------------------------------

class Builder {
 public:
  explicit Builder(const Case& one) : case_(one), module_(files_) {}

  // Invalid when the language refuses the combination of types.
  std::optional<OpId> build() {
    const OpId kernel = create({.kind = KernelDef, .regions = 2}, {{"name", symbol("k")}});
    module_.append(module_.body(), kernel);
    module_.define_symbol(module_.strings.intern("k"), kernel);
    const RegionId config = module_.op_region(kernel, 0);
    const RegionId body = module_.op_region(kernel, 1);
    module_.region(config).has_body = module_.region(body).has_body = true;
    fill_config(config);
    fill_body(body);
    Diagnostics diagnostics;
    if (!verify_module(module_, diagnostics)) {
      problem_ = messages(diagnostics);
      return std::nullopt;
    }
    return kernel;
  }
  const Module& module() const { return module_; }
  const std::string& problem() const { return problem_; }

 private:
  using Attrs = std::vector<std::pair<std::string_view, Attr>>;

  Attr symbol(std::string_view name) { return Attr::symbol(module_.strings.intern(name)); }
  OpId create(Module::NewOp op, const Attrs& attrs) {
    const OpInfo& info = op_info(op.kind);
    std::vector<AttrId> ids(info.attrs.size());
    for (const auto& [name, attr] : attrs) {
      for (size_t i = 0; i < ids.size(); ++i) {
        if (info.attrs[i].name == name) ids[i] = module_.attrs.intern(attr);
      }
    }
    op.attrs = ids;
    return module_.create(op);
  }
  ValueId append(RegionId region, Module::NewOp op, const Attrs& attrs = {}) {
    const OpId id = create(op, attrs);
    module_.append(region, id);
    return module_.op(id).result_count == 0 ? ValueId() : module_.result(id);
  }
  ValueId constant(RegionId region, ScalarKind kind, int64_t value) {
    const TypeId type = TypeStore::scalar(kind);
    return append(region, {.kind = IndexConstant, .results = std::span(&type, 1)},
                  {{"value", Attr::integer(value)}});
  }
  void fill_config(RegionId region) {
    const ValueId one = constant(region, ScalarKind::Index, 1);
    const std::vector<ValueId> operands(6, one);
    const std::vector<uint32_t> groups = {3, 3, 0};
    append(region, {.kind = KernelLaunchConfig, .operands = operands, .groups = groups});
  }
  TypeId view_of(ScalarKind kind) {
    const Dim dims[] = {Dim::fixed(1 << 20)};
    return module_.types.intern({.kind = TypeKind::View, .element = kind, .dims = dims});
  }
  ValueId view(RegionId region, ValueId buffer, ValueId base, ScalarKind kind) {
    const TypeId type = view_of(kind);
    const ValueId operands[] = {buffer, base};
    return append(region,
                  {.kind = BufferView, .operands = operands, .results = std::span(&type, 1)});
  }
  void fill_body(RegionId region) {
    const TypeId buffer = module_.types.opaque(TypeKind::Buffer);
    std::vector<ValueId> buffers;
    for (size_t i = 0; i <= case_.operands.size(); ++i) {
      buffers.push_back(module_.add_arg(region, buffer, StringId()));
    }
    module_.region(region).arg_split = static_cast<uint32_t>(buffers.size());
    const TypeId index = TypeStore::scalar(ScalarKind::Index);
    const ValueId place =
        append(region, {.kind = KernelWorkgroupId, .results = std::span(&index, 1)},
               {{"axis", Attr::enumeration(0)}});
    const ValueId base = constant(region, ScalarKind::Offset, 0);
    const int64_t dynamic[] = {kDynamicIndex};
    std::vector<ValueId> loaded;
    for (size_t i = 0; i < case_.operands.size(); ++i) {
      const ValueId from = view(region, buffers[i], base, case_.operands[i]);
      const TypeId type = TypeStore::scalar(case_.operands[i]);
      const ValueId operands[] = {from, place};
      const uint32_t groups[] = {1, 1};
      loaded.push_back(append(region,
                              {.kind = ViewLoad,
                               .operands = operands,
                               .groups = groups,
                               .results = std::span(&type, 1)},
                              {{"static_index", Attr::int_list(dynamic)}}));
    }
    const TypeId type = TypeStore::scalar(case_.result);
    const ValueId result = append(
        region, {.kind = case_.op, .operands = loaded, .results = std::span(&type, 1)}, op_attrs());
    const ValueId to = view(region, buffers.back(), base, case_.result);
    const ValueId operands[] = {result, to, place};
    const uint32_t groups[] = {1, 1, 1};
    append(region, {.kind = ViewStore, .operands = operands, .groups = groups},
           {{"static_index", Attr::int_list(dynamic)}});
    append(region, {.kind = KernelReturn});
  }
  Attrs op_attrs() const {
    Attrs attrs;
    for (const AttrSpec& spec : op_info(case_.op).attrs) {
      if (spec.form == AttrForm::Enum) {
        attrs.emplace_back(spec.name, Attr::enumeration(case_.attrs.choice));
      }
      if (spec.form == AttrForm::Flags && case_.attrs.flags != 0) {
        attrs.emplace_back(spec.name, Attr::flags(case_.attrs.flags));
      }
    }
    if (case_.attrs.width != 0) {
      attrs.emplace_back("offset", Attr::integer(case_.attrs.offset));
      attrs.emplace_back("width", Attr::integer(case_.attrs.width));
    }
    if (case_.attrs.scale != 0) attrs.emplace_back("scale", Attr::floating(case_.attrs.scale));
    return attrs;
  }

  const Case& case_;
  SourceFiles files_;
  Module module_;
  std::string problem_;
};

// --- operand values -----------------------------------------------------------------------------

std::vector<ScalarValue> special_values(ScalarKind kind) {
  std::vector<ScalarValue> values;
  if (is_float(kind)) {
    for (const double number :
         {0.0,   -0.0,    1.0,  -1.0, 0.5,   1.5,  2.5,   -2.5,     3.1415926, 448.0,
          464.0, 65504.0, 1e-3, 5e-8, 1e-39, 3e38, 1e300, HUGE_VAL, -HUGE_VAL, std::nan("")}) {
      values.push_back(from_double(kind, number));
    }
    const uint64_t largest =
        from_double(kind, HUGE_VAL).bits - (kind == ScalarKind::F8E4M3 ? 0 : 1);
    for (const uint64_t bits : {uint64_t{1}, uint64_t{2}, uint64_t{3}, largest, largest - 1}) {
      values.push_back(from_bits(kind, bits));
    }
    return values;
  }
  const uint64_t half = uint64_t{1} << (scalar_bits(kind) - 1);
  for (const uint64_t bits : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{7}, ~uint64_t{0},
                              ~uint64_t{1}, half, half - 1, half + 1, uint64_t{0x1000001},
                              uint64_t{0x4000000000000101}, uint64_t{0x4040000000000001}}) {
    values.push_back(from_bits(kind, bits));
  }
  return values;
}

// Combinations of special values, then random bits, as far as the operation defines a result.
std::vector<std::pair<Tuple, ScalarValue>> samples(const Case& one) {
  std::mt19937_64 random(static_cast<uint64_t>(one.op) * 131 + one.attrs.choice);
  std::vector<std::vector<ScalarValue>> special;
  special.reserve(one.operands.size());
  for (const ScalarKind kind : one.operands) special.push_back(special_values(kind));
  std::vector<std::pair<Tuple, ScalarValue>> result;
  const auto add = [&](const Tuple& tuple) {
    ScalarValue expected;
    if (evaluate(one.op, one.attrs, tuple, one.result, expected) == EvalStatus::Ok) {
      result.emplace_back(tuple, expected);
    }
  };
  const size_t arity = one.operands.size();
  if (arity <= 2) {
    for (const ScalarValue a : special[0]) {
      if (arity == 1) {
        add({a});
        continue;
      }
      for (const ScalarValue b : special[1]) add({a, b});
    }
  }
  for (unsigned round = 0; round < 600; ++round) {
    Tuple tuple;
    for (size_t i = 0; i < arity; ++i) {
      uint64_t bits = random();
      // Numbers of like magnitude meet more often than random bits do.
      if (round % 3 == 0 && is_float(one.operands[i])) {
        tuple.push_back(from_double(
            one.operands[i],
            std::ldexp(static_cast<double>(bits >> 40), static_cast<int>(round % 16) - 24)));
        continue;
      }
      if (round % 3 == 1) {
        tuple.push_back(special[i][bits % special[i].size()]);
        continue;
      }
      if (!is_float(one.operands[i]) && round % 2 == 0) bits >>= bits % 64;
      tuple.push_back(from_bits(one.operands[i], bits));
    }
    add(tuple);
  }
  return result;
}

void put(std::vector<std::byte>& to, size_t place, ScalarValue value) {
  const size_t bytes = scalar_bytes(value.kind);
  std::memcpy(to.data() + place * bytes, &value.bits, bytes);
}

ScalarValue get(const std::vector<std::byte>& from, size_t place, ScalarKind kind) {
  uint64_t bits = 0;
  std::memcpy(&bits, from.data() + place * scalar_bytes(kind), scalar_bytes(kind));
  return {kind, bits};
}

// Steps between two floats of one format, counting through zero.
uint64_t distance(ScalarValue a, ScalarValue b) {
  const auto ordered = [](ScalarValue v) {
    const auto magnitude = static_cast<int64_t>(v.bits & (scalar_mask(v.kind) >> 1));
    return (v.bits >> (scalar_bits(v.kind) - 1)) != 0 ? -magnitude : magnitude;
  };
  const int64_t x = ordered(a);
  const int64_t y = ordered(b);
  return x > y ? static_cast<uint64_t>(x) - static_cast<uint64_t>(y)
               : static_cast<uint64_t>(y) - static_cast<uint64_t>(x);
}

bool agrees(const Case& one, ScalarValue expected, ScalarValue actual) {
  if (is_nan(expected)) {
    // Operations that only move bits keep them.
    const bool moves_bits = one.op == ScalarNegF || one.op == ScalarAbsF || one.op == ScalarBitcast;
    return moves_bits ? actual == expected : is_nan(actual);
  }
  if (!is_elementary(one.op)) return actual == expected;
  if (is_nan(actual)) return false;
  const double least_normal = one.result == ScalarKind::F64 ? 0x1p-1020 : 0x1p-124;
  if (std::fabs(to_double(expected)) < least_normal) {
    return std::fabs(to_double(actual)) <= least_normal;
  }
  if (scalar_bits(one.result) < 32) return distance(expected, actual) <= 1;
  if (one.result == ScalarKind::F32) return distance(expected, actual) <= 2;
  // The tails of gelu are steep: the rounding of its inner product counts many times.
  return distance(expected, actual) <= (one.op == ScalarGeluF ? 256 : 6);
}

// --- the tests ----------------------------------------------------------------------------------

// The variants of an operation's attributes.
std::vector<EvalAttrs> variants(const OpInfo& info) {
  std::vector<EvalAttrs> all = {{}};
  for (const AttrSpec& spec : info.attrs) {
    if (spec.form == AttrForm::Enum) {
      all.resize(enum_info(spec.enum_id).cases.size());
      for (size_t i = 0; i < all.size(); ++i) all[i].choice = i;
    }
    if (spec.form == AttrForm::Flags && spec.flags == FlagSetId::Overflow) {
      all = {{.flags = 0}, {.flags = kNsw}, {.flags = kNuw}, {.flags = kNsw | kNuw}};
    }
  }
  if (info.kind == ScalarBitfieldExtractU || info.kind == ScalarBitfieldExtractS) {
    all = {{.offset = 0, .width = 1}, {.offset = 3, .width = 4}, {.offset = 0, .width = 8}};
  }
  if (info.kind == ScalarGeluF) {
    all[static_cast<size_t>(GeluForm::Logistic)].scale = kScale;
  }
  return all;
}

std::vector<Case> cases_of(const OpInfo& info) {
  std::vector<Case> cases;
  const auto accepts = [](const Constraint& constraint, ScalarKind kind) {
    return constraint.accepts({.kind = TypeKind::Scalar, .element = kind});
  };
  for (const ScalarKind from : all_kinds()) {
    if (!accepts(*info.operands[0].constraint, from)) continue;
    Case one{.op = info.kind};
    for (const OperandSpec& operand : info.operands) {
      one.operands.push_back(accepts(*operand.constraint, from) ? from : ScalarKind::Offset);
    }
    for (const ScalarKind to : all_kinds()) {
      if (!accepts(*info.results[0].constraint, to)) continue;
      if (!is_conversion(info.kind) && to != from && info.results[0].same_as >= 0) continue;
      one.result = to;
      for (const EvalAttrs& attrs : variants(info)) {
        one.attrs = attrs;
        cases.push_back(one);
      }
    }
  }
  return cases;
}

class ScalarOps : public ::testing::TestWithParam<OpKind> {
 protected:
  static JitEngine& engine() {
    static Diagnostics diagnostics;
    static const std::unique_ptr<JitEngine> made = JitEngine::create(diagnostics);
    return *made;
  }
  void check(const Case& one, const JitKernel& kernel, const char* how) {
    const auto inputs = samples(one);
    ASSERT_GE(inputs.size(), 4u) << one.text();
    std::vector<std::vector<std::byte>> buffers;
    buffers.reserve(one.operands.size() + 1);
    std::vector<uint64_t> args;
    args.reserve(one.operands.size() + 1);
    for (const ScalarKind kind : one.operands) {
      buffers.emplace_back(inputs.size() * scalar_bytes(kind));
    }
    buffers.emplace_back(inputs.size() * scalar_bytes(one.result));
    for (size_t i = 0; i < inputs.size(); ++i) {
      for (size_t k = 0; k < one.operands.size(); ++k) put(buffers[k], i, inputs[i].first[k]);
    }
    for (const auto& buffer : buffers) args.push_back(slot(buffer.data()));
    run(kernel.entry(), args, {.count = {static_cast<uint32_t>(inputs.size()), 1, 1}});
    unsigned complaints = 0;
    for (size_t i = 0; i < inputs.size() && complaints < 3; ++i) {
      const ScalarValue actual = get(buffers.back(), i, one.result);
      if (agrees(one, inputs[i].second, actual)) continue;
      ++complaints;
      std::string operands;
      for (const ScalarValue value : inputs[i].first) operands += fmt::format(" {:#x}", value.bits);
      ADD_FAILURE() << one.text() << " (" << how << ") of" << operands << " gives "
                    << fmt::format("{:#x}", actual.bits) << " instead of "
                    << fmt::format("{:#x}", inputs[i].second.bits);
    }
  }
};

TEST_P(ScalarOps, ComputeWhatEvaluationSays) {
  unsigned checked = 0;
  for (const Case& one : cases_of(op_info(GetParam()))) {
    Builder builder(one);
    const auto kernel = builder.build();
    if (!kernel) {
      ASSERT_TRUE(is_conversion(one.op)) << one.text() << ": " << builder.problem();
      continue;
    }
    ++checked;
    ASSERT_EQ(llvm_problems(builder.module()), "") << one.text();
    Diagnostics diagnostics;
    for (const JitTier tier : {JitTier::Fast, JitTier::Optimized}) {
      const auto code = engine().add(builder.module(), *kernel, {.tier = tier}, diagnostics);
      ASSERT_TRUE(code.has_value()) << one.text() << messages(diagnostics);
      check(one, *code, tier == JitTier::Fast ? "fast" : "optimized");
    }
    if (!is_float(one.operands[0]) && !is_float(one.result)) continue;
    // The oldest CPU: nothing is converted or fused by an instruction.
    const auto object = compile_x86(builder.module(), std::span(&*kernel, 1), OutputForm::Object,
                                    {.cpu = "", .opt_level = 1}, diagnostics);
    ASSERT_TRUE(object.has_value()) << one.text() << messages(diagnostics);
    const auto code = engine().add_object(*object, "k", diagnostics);
    ASSERT_TRUE(code.has_value()) << one.text() << messages(diagnostics);
    check(one, *code, "generic");
  }
  EXPECT_GE(checked, 1u);
}

std::vector<OpKind> scalar_ops() {
  std::vector<OpKind> ops;
  for (size_t i = 0; i < kOpKindCount; ++i) {
    const OpInfo& info = op_info(static_cast<OpKind>(i));
    if (info.dialect != "index" && info.dialect != "scalar") continue;
    if (info.operands.empty() || info.operands[0].arity != Arity::Single) continue;
    ops.push_back(info.kind);
  }
  return ops;
}

INSTANTIATE_TEST_SUITE_P(All, ScalarOps, ::testing::ValuesIn(scalar_ops()), [](const auto& chosen) {
  std::string name(op_info(chosen.param).name);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace loom::test
