#include "loom/pass/fact_flow.h"

#include <array>

#include "loom/ir/walk.h"
#include "loom/pass/op_facts.h"
#include "loom/pass/pass_context.h"

namespace loom {
namespace {

using enum OpKind;

constexpr unsigned kForLo = operand_slot(ScfFor, "lo");
constexpr unsigned kForHi = operand_slot(ScfFor, "hi");
constexpr unsigned kForStep = operand_slot(ScfFor, "step");
constexpr unsigned kThen = region_slot(ScfIf, "then");
constexpr unsigned kConfigKey = attr_slot(ConfigGet, "key");
constexpr unsigned kConfigValue = attr_slot(ConfigDef, "value");
constexpr int64_t kMaxCount = (int64_t{1} << 32) - 1;
// Conditions joined by `and` that are looked through.
constexpr unsigned kMaxConditions = 8;
const IntFacts kNotNegative = IntFacts::range(0, std::numeric_limits<int64_t>::max());
const IntFacts kCount = IntFacts::range(1, kMaxCount);

bool is_scalar_integer(const Rewriter& rewriter, Ref ref) {
  const TypeId type = rewriter.type_of(ref);
  return rewriter.module().types.is_scalar(type) && !is_float(rewriter.element(type));
}

void learn_comparison(Rewriter& rewriter, OpId op, bool truth) {
  auto relation = static_cast<Compare>(eval_attrs(rewriter.module(), op).choice);
  if (!truth) relation = negated(relation);
  const Ref a = rewriter.operand(op, 0), b = rewriter.operand(op, 1);
  rewriter.relations().push_back({relation, a, b});
  const bool is_signed = relation >= Compare::Slt && relation <= Compare::Sge;
  if (rewriter.element_of(a) == ScalarKind::I1 && is_signed) return;
  IntFacts fa = rewriter.facts(a), fb = rewriter.facts(b);
  refine(relation, fa, fb);
  rewriter.learn(a, fa);
  rewriter.learn(b, fb);
}

// The condition is true or false in the region being entered.
void learn_condition(Rewriter& rewriter, Ref condition, bool truth) {
  struct Known {
    Ref condition;
    bool truth;
  };
  Known pending[kMaxConditions] = {{condition, truth}};
  unsigned count = 1;
  while (count != 0) {
    const Known known = pending[--count];
    rewriter.learn(known.condition, IntFacts::exactly(known.truth ? 1 : 0));
    const OpId op = rewriter.defining(known.condition);
    if (!op.valid()) continue;
    switch (rewriter.kind_of(op)) {
      case IndexCmp:
      case ScalarCmpI:
        learn_comparison(rewriter, op, known.truth);
        break;
      case ScalarAndI:
      case ScalarOrI:
        // Both sides of a true `and` are true, both sides of a false `or` false.
        if (known.truth != (rewriter.kind_of(op) == ScalarAndI)) break;
        for (unsigned i = 0; i < 2 && count < kMaxConditions; ++i) {
          pending[count++] = {rewriter.operand(op, i), known.truth};
        }
        break;
      case ScalarXorI:
        if (rewriter.exact_int(rewriter.operand(op, 1)) == std::optional<int64_t>(1)) {
          pending[count++] = {rewriter.operand(op, 0), !known.truth};
        }
        break;
      default:
        break;
    }
  }
}

void learn_induction(Rewriter& rewriter, OpId op) {
  const Module& module = rewriter.module();
  const Ref lo = rewriter.operand(op, kForLo), hi = rewriter.operand(op, kForHi);
  const ValueId iv = module.args(module.op_region(op, 0))[0];
  rewriter.refine_facts(iv, facts::induction(rewriter.facts(lo), rewriter.facts(hi),
                                             rewriter.facts(rewriter.operand(op, kForStep))));
  rewriter.relations().push_back({Compare::Sge, Ref::value(iv), lo});
  rewriter.relations().push_back({Compare::Slt, Ref::value(iv), hi});
}

// One case of a switch, or what is left for the default.
void learn_selector(Rewriter& rewriter, OpId op, unsigned region) {
  const Ref selector = rewriter.operand(op, 0);
  const auto keys = rewriter.module().attr(op, attr_slot(ScfSwitch, "keys")).ints;
  if (region < keys.size()) return rewriter.learn(selector, IntFacts::exactly(keys[region]));
  // Keys at an end of the range make it shorter; they ascend.
  IntFacts known = rewriter.facts(selector);
  const auto without = [&](int64_t key) {
    IntFacts other = IntFacts::exactly(key);
    refine(Compare::Ne, known, other);
  };
  for (const int64_t key : keys) without(key);
  for (size_t i = keys.size(); i-- > 0;) without(keys[i]);
  rewriter.learn(selector, known);
}

// The body of a while loop runs with the values that the deciding region passes on when its
// condition holds.
void learn_continuation(Rewriter& rewriter, OpId op) {
  const Module& module = rewriter.module();
  const OpId decider = module.region(module.op_region(op, 0)).last;
  if (!decider.valid() || rewriter.kind_of(decider) != ScfCondition) return;
  auto& relations = rewriter.relations();
  const size_t first = relations.size();
  learn_condition(rewriter, rewriter.operand(decider, 0), true);
  const size_t end = relations.size();
  const auto args = module.args(module.op_region(op, 1));
  for (unsigned i = 0; i < args.size(); ++i) {
    const Ref passed = rewriter.operand(decider, i + 1);
    const Ref arg = Ref::value(args[i]);
    if (is_scalar_integer(rewriter, arg)) rewriter.learn(arg, rewriter.facts(passed));
    for (size_t k = first; k < end; ++k) {
      Relation about = relations[k];
      if (about.a != passed && about.b != passed) continue;
      (about.a == passed ? about.a : about.b) = arg;
      relations.push_back(about);
    }
  }
}

// The contract of a declared key speaks of its own value; the result takes its place.
void learn_key_contract(Rewriter& rewriter, OpId key, ValueId result) {
  for (const Predicate& predicate : where_predicates(rewriter.module(), key)) {
    Predicate about = predicate;
    about.args[0] = PredicateArg::of(result);
    bool literal = true;
    for (unsigned i = 1; i < predicate.arity(); ++i) literal &= !predicate.args[i].is_value();
    if (literal) learn_predicate(rewriter, about, [](ValueId) { return true; });
  }
}

unsigned axis_of(const Module& module, OpId op) {
  return static_cast<unsigned>(module.attr(op, 0).bits);
}

// Ids from 0 to below a number.
IntFacts ids_below(const IntFacts& count) {
  return IntFacts::range(0, std::max<int64_t>(count.hi - 1, 0));
}

std::optional<bool> compare_facts(const Rewriter& rewriter, const FoldInput& input) {
  const auto relation = static_cast<Compare>(input.attrs.choice);
  const Ref a = input.operands[0], b = input.operands[1];
  // Facts read i1 as unsigned, so they do not decide its signed order.
  const bool is_signed = relation >= Compare::Slt && relation <= Compare::Sge;
  if (is_signed && rewriter.element_of(a) == ScalarKind::I1) return std::nullopt;
  const auto outcome = compare(relation, rewriter.facts(a), rewriter.facts(b));
  return outcome ? outcome : rewriter.related(relation, a, b);
}

}  // namespace

IntFacts argument_facts(const Rewriter& rewriter, const PredicateArg& arg) {
  return arg.is_value() ? rewriter.facts(rewriter.resolve(arg.value))
                        : IntFacts::exactly(arg.literal);
}

std::optional<bool> holds_by_order(Rewriter& rewriter, PredicateKind kind, const Ref* refs,
                                   const IntFacts* args) {
  const auto ordered = [&](Compare compare, unsigned i) -> std::optional<bool> {
    const ScalarKind element = rewriter.element_of(refs[0]);
    if (element == ScalarKind::I1) return std::nullopt;
    if (refs[i].valid()) return rewriter.related(compare, refs[0], refs[i]);
    return rewriter.related(compare, refs[0], rewriter.integer(element, args[i].lo));
  };
  if (!refs[0].valid()) return std::nullopt;
  if (const auto order = comparison_of(kind)) return ordered(*order, 1);
  if (kind != PredicateKind::Range) return std::nullopt;
  const auto low = ordered(Compare::Sge, 1), high = ordered(Compare::Sle, 2);
  if ((low && !*low) || (high && !*high)) return false;
  if (low && high) return true;
  return std::nullopt;
}

void learn_type(Rewriter& rewriter, ValueId result) {
  const Module& module = rewriter.module();
  const TypeId type = module.type_of(result);
  if (module.types.is_scalar(type)) return;
  rewriter.mark_in_type(type);
  for (Dim dim : module.types[type].dims) {
    if (dim.is_dynamic()) rewriter.learn(rewriter.resolve(dim.value()), kNotNegative);
  }
}

namespace {

void learn_float_result(Rewriter& rewriter, const FoldInput& input, ValueId result) {
  std::array<FloatFacts, 3> operands{};
  if (input.operands.size() > 3) return;
  for (size_t i = 0; i < input.operands.size(); ++i) {
    const Ref ref = input.operands[i];
    if (!rewriter.module().types.is_scalar(rewriter.type_of(ref))) return;
    if (is_float(rewriter.element_of(ref))) {
      operands[i] = rewriter.float_facts(ref);
    } else if (rewriter.element_of(ref) != ScalarKind::I1 && rewriter.facts(ref).non_negative()) {
      operands[i].possible &= static_cast<uint8_t>(~FloatFacts::kMinus);
    }
  }
  const std::span<const FloatFacts> known(operands.data(), input.operands.size());
  rewriter.refine_float(result,
                        float_result_facts(input.kind, known, rewriter.element(input.result)));
}

}  // namespace

void learn_float_predicate(Rewriter& rewriter, const Predicate& predicate) {
  const Ref about = rewriter.resolve(predicate.args[0].value);
  if (!about.is_value()) return;
  rewriter.refine_float(about.value_id(), refine(predicate.kind, rewriter.float_facts(about)));
}

void learn_joined(Rewriter& rewriter, OpId op) {
  const Module& module = rewriter.module();
  const OpKind kind = rewriter.kind_of(op);
  if (kind != ScfIf && kind != ScfSwitch && kind != ScfFor) return;
  for (unsigned i = 0; i < module.op(op).result_count; ++i) {
    const ValueId result = module.result(op, i);
    const TypeId type = module.type_of(result);
    if (!module.types.is_scalar(type) || !is_float(rewriter.element(type))) continue;
    FloatFacts all{0};
    if (kind == ScfFor) {
      all = rewriter.float_facts(
          rewriter.resolve(operand_group(module, op, operand_slot(ScfFor, "init"))[i]));
    }
    for (unsigned region = 0; region < module.op(op).region_count; ++region) {
      const OpId last = module.region(module.op_region(op, region)).last;
      const bool yields = last.valid() && rewriter.kind_of(last) == ScfYield;
      all = join(all, yields ? rewriter.float_facts(rewriter.operand(last, i)) : FloatFacts{});
    }
    rewriter.refine_float(result, all);
  }
}

void learn_result(Rewriter& rewriter, const FoldInput& input, ValueId result) {
  if (is_float(rewriter.element(input.result))) {
    return learn_float_result(rewriter, input, result);
  }
  if (input.kind == BufferLength) {
    rewriter.refine_facts(result, result_facts(rewriter, input));
    return;
  }
  for (Ref operand : input.operands) {
    if (!is_scalar_integer(rewriter, operand)) return;
  }
  if (input.kind == IndexCmp || input.kind == ScalarCmpI) {
    if (const auto outcome = compare_facts(rewriter, input)) {
      rewriter.refine_facts(result, IntFacts::exactly(*outcome ? 1 : 0));
    }
    return;
  }
  if (input.kind == ScalarBitfieldExtractU || input.kind == ScalarBitfieldExtractS) {
    const OpId op = rewriter.module().defining_op(result);
    const auto width = static_cast<unsigned>(
        rewriter.module().attr(op, attr_slot(ScalarBitfieldExtractU, "width")).value());
    const IntDomain to = IntDomain::of(rewriter.element(input.result));
    rewriter.refine_facts(result, input.kind == ScalarBitfieldExtractU
                                      ? facts::bit_field_unsigned(width, to)
                                      : facts::bit_field_signed(width, to));
    return;
  }
  const IntFacts facts = result_facts(rewriter, input);
  // An exact result would replace a division that has to stay.
  if (!facts.exact() || facts_may_replace(rewriter, input)) rewriter.refine_facts(result, facts);
}

namespace {

// Calls f(Predicate) for every predicate that an assume operation or a call states about
// its results, written with the values of this operation.
template <class F>
void for_each_promise(const Rewriter& rewriter, OpId op, F&& f) {
  const Module& module = rewriter.module();
  const auto rewrite = [&](const Predicate& predicate, auto&& actual) {
    Predicate about = predicate;
    bool on_result = false;
    for (unsigned i = 0; i < about.arity(); ++i) {
      if (!about.args[i].is_value()) continue;
      about.args[i].value = actual(predicate.args[i].value);
      if (!about.args[i].value.valid()) return;
      on_result |= module.defining_op(about.args[i].value) == op;
    }
    if (on_result) f(about);
  };
  const OpKind kind = rewriter.kind_of(op);
  if (kind == IndexAssume || kind == ScalarAssume) {
    const unsigned slot = kind == IndexAssume ? attr_slot(IndexAssume, "predicates")
                                              : attr_slot(ScalarAssume, "predicates");
    for (const Predicate& predicate : module.attr(op, slot).predicates) {
      rewrite(predicate, [&](ValueId value) {
        const auto operands = module.operands(op);
        for (unsigned i = 0; i < operands.size(); ++i) {
          if (operands[i] == value) return module.result(op, i);
        }
        return value;
      });
    }
  }
  if (kind != FuncCall) return;
  const OpId callee = module.symbol(module.attr(op, attr_slot(FuncCall, "callee")).string());
  if (!callee.valid()) return;
  const OpKind symbol = module.op(callee).kind;
  if (symbol != FuncDef && symbol != FuncDecl) return;
  const RegionId args = module.op_region(callee, 0), results = module.op_region(callee, 1);
  for (const Predicate& predicate : where_predicates(module, callee)) {
    // An extent that only the signature names has no value here.
    rewrite(predicate, [&](ValueId formal) {
      const Value& value = module.value(formal);
      if (value.kind != ValueKind::Argument) return ValueId();
      if (value.owner == args.index()) return module.operand(op, value.index);
      return value.owner == results.index() ? module.result(op, value.index) : ValueId();
    });
  }
}

// The orders between two values that a predicate states; literals are a matter of ranges.
template <class F>
void for_each_order(const Rewriter& rewriter, const Predicate& predicate, F&& f) {
  const auto order = [&](Compare compare, unsigned i) {
    const PredicateArg &a = predicate.args[0], &b = predicate.args[i];
    if (!a.is_value() || !b.is_value()) return;
    f(Relation{compare, rewriter.resolve(a.value), rewriter.resolve(b.value)});
  };
  if (const auto compare = comparison_of(predicate.kind)) {
    order(*compare, 1);
  } else if (predicate.kind == PredicateKind::Range) {
    order(Compare::Sge, 1);
    order(Compare::Sle, 2);
  }
}

// Only results learn: a promise about one value does not change what is known of the others that
// the predicate mentions.
void learn_promises(Rewriter& rewriter, OpId op) {
  const Module& module = rewriter.module();
  for (int round = 0; round < 2; ++round) {
    for_each_promise(rewriter, op, [&](const Predicate& about) {
      learn_predicate(rewriter, about, [&](ValueId v) { return module.defining_op(v) == op; });
    });
  }
}

}  // namespace

void own_relations(const Rewriter& rewriter, OpId op, std::vector<Relation>& into) {
  for_each_promise(rewriter, op, [&](const Predicate& about) {
    for_each_order(rewriter, about, [&](const Relation& relation) { into.push_back(relation); });
  });
}

void learn_relation(Rewriter& rewriter, const Predicate& predicate) {
  for_each_order(rewriter, predicate,
                 [&](const Relation& relation) { rewriter.relations().push_back(relation); });
}

void learn_assume(Rewriter& rewriter, OpId op) {
  const Module& module = rewriter.module();
  for (unsigned i = 0; i < module.op(op).result_count; ++i) {
    const Ref operand = rewriter.operand(op, i);
    const ValueId result = module.result(op, i);
    if (is_float(rewriter.element_of(operand))) {
      rewriter.refine_float(result, rewriter.float_facts(operand));
    } else {
      rewriter.learn(Ref::value(result), rewriter.facts(operand));
    }
  }
  learn_promises(rewriter, op);
}

void learn_call(Rewriter& rewriter, OpId op) { learn_promises(rewriter, op); }

void learn_config(Rewriter& rewriter, OpId op) {
  const Module& module = rewriter.module();
  const OpId key = module.symbol(module.attr(op, kConfigKey).string());
  if (!key.valid()) return;
  const ValueId result = module.result(op);
  if (!module.types.is_scalar(module.type_of(result))) return;
  if (is_float(rewriter.element_of(Ref::value(result)))) {
    if (rewriter.kind_of(key) == ConfigDecl) learn_key_contract(rewriter, key, result);
    return;
  }
  const ScalarKind kind = rewriter.element_of(Ref::value(result));
  if (rewriter.kind_of(key) == ConfigDef) {
    const auto value = from_literal(module.attr(key, kConfigValue), kind);
    if (!value) return;
    const bool bit = kind == ScalarKind::I1;
    rewriter.refine_facts(
        result, IntFacts::exactly(bit ? static_cast<int64_t>(value->bits) : as_signed(*value)));
  } else if (rewriter.kind_of(key) == ConfigDecl) {
    learn_key_contract(rewriter, key, result);
  }
}

void learn_query(Rewriter& rewriter, OpId op, const KernelTopology& topology) {
  const Module& module = rewriter.module();
  const ValueId result = module.result(op);
  const IntDomain index = IntDomain::of(ScalarKind::Index);
  const auto size = [&] { return topology.workgroup_size[axis_of(module, op)]; };
  const auto count = [&] { return topology.workgroup_count[axis_of(module, op)]; };
  switch (rewriter.kind_of(op)) {
    case KernelWorkitemId:
      return rewriter.refine_facts(result, ids_below(size()));
    case KernelWorkgroupId:
      return rewriter.refine_facts(result, ids_below(count()));
    case KernelWorkgroupSize:
      return rewriter.refine_facts(result, size());
    case KernelWorkgroupCount:
      return rewriter.refine_facts(result, count());
    case KernelWorkitemDispatchId:
      return rewriter.refine_facts(result, ids_below(facts::mul(size(), count(), index)));
    case KernelSubgroupSize:
    case KernelSubgroupCount:
      return rewriter.refine_facts(result, kCount);
    case KernelSubgroupId:
    case KernelSubgroupLaneId: {
      // No subgroup has more lanes, and no workgroup more subgroups, than the workgroup has items.
      IntFacts items = topology.workgroup_size[0];
      for (unsigned i = 1; i < 3; ++i) items = facts::mul(items, topology.workgroup_size[i], index);
      const bool lane = rewriter.kind_of(op) == KernelSubgroupLaneId;
      return rewriter.refine_facts(result, lane ? ids_below(kCount) : ids_below(items));
    }
    default:
      if (is_scalar_integer(rewriter, Ref::value(result))) {
        if (is_address(rewriter.element_of(Ref::value(result)))) {
          rewriter.refine_facts(result, kNotNegative);
        }
      }
  }
}

void learn_region(Rewriter& rewriter, OpId op, unsigned region) {
  switch (rewriter.kind_of(op)) {
    case ScfIf:
      return learn_condition(rewriter, rewriter.operand(op, 0), region == kThen);
    case ScfFor:
      return learn_induction(rewriter, op);
    case ScfSwitch:
      return learn_selector(rewriter, op, region);
    case ScfWhile:
      if (region == 1) learn_continuation(rewriter, op);
      return;
    default:
      return;
  }
}

KernelTopology::KernelTopology() {
  workgroup_size.fill(kCount);
  workgroup_count.fill(kCount);
}

}  // namespace loom
