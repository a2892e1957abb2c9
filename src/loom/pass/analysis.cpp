#include "loom/pass/analysis.h"

#include "loom/pass/fact_sweep.h"
#include "loom/pass/pass_context.h"

namespace loom {
namespace {

using enum OpKind;

RegionId body_of(const Module& module, OpId root) {
  return module.op_region(root,
                          module.op(root).kind == KernelDef ? region_slot(KernelDef, "body") : 0);
}

}  // namespace

struct FactAnalysis::State {
  // The tables are written for passes, which change what they sweep; the sweep here does not.
  State(const Module& m, OpId the_root, RegionId region)
      : module(m),
        root(the_root),
        context(const_cast<Module&>(m), diagnostics),
        in_body(m.op(the_root).kind == KernelDef && region == body_of(m, the_root)),
        topology(in_body ? kernel_topology(context, the_root) : KernelTopology()),
        sweep(context, topology, the_root, region) {}

  Rewriter& enter(OpId place) {
    sweep.enter(module.op(place).parent);
    return sweep.state();
  }

  const Module& module;
  const OpId root;
  Diagnostics diagnostics;
  PassContext context;
  const bool in_body;  // of a kernel
  const KernelTopology topology;
  FactSweep sweep;
  std::unique_ptr<Uniformity> uniformity;
};

FactAnalysis::FactAnalysis(const Module& module, OpId root)
    : FactAnalysis(module, root, body_of(module, root)) {}
FactAnalysis::FactAnalysis(const Module& module, OpId root, RegionId region)
    : state_(std::make_unique<State>(module, root, region)) {}
FactAnalysis::~FactAnalysis() = default;

IntFacts FactAnalysis::at(OpId place, ValueId value) {
  const Rewriter& known = state_->enter(place);
  return known.facts(known.resolve(value));
}

FloatFacts FactAnalysis::float_at(OpId place, ValueId value) {
  const Rewriter& known = state_->enter(place);
  return known.float_facts(known.resolve(value));
}

std::optional<int64_t> FactAnalysis::exact(OpId place, ValueId value) {
  return at(place, value).exact();
}

std::optional<bool> FactAnalysis::compare(Compare compare, ValueId a, ValueId b, OpId place) {
  const Rewriter& known = state_->enter(place);
  const Ref x = known.resolve(a), y = known.resolve(b);
  const bool is_signed = compare >= Compare::Slt && compare <= Compare::Sge;
  if (known.element_of(x) == ScalarKind::I1 && is_signed) return std::nullopt;
  const auto decided = loom::compare(compare, known.facts(x), known.facts(y));
  return decided ? decided : known.related(compare, x, y);
}

std::optional<bool> FactAnalysis::holds(const Predicate& predicate, OpId place) {
  Rewriter& known = state_->enter(place);
  if (predicate_info(predicate.kind).on_float) {
    return loom::holds(predicate.kind, known.float_facts(known.resolve(predicate.args[0].value)));
  }
  IntFacts args[3];
  Ref refs[3];
  for (unsigned i = 0; i < predicate.arity(); ++i) {
    args[i] = argument_facts(known, predicate.args[i]);
    if (predicate.args[i].is_value()) refs[i] = known.resolve(predicate.args[i].value);
  }
  if (const auto decided = loom::holds(predicate.kind, args)) return decided;
  return holds_by_order(known, predicate.kind, refs, args);
}

StorageFacts FactAnalysis::storage(OpId place, ValueId value) {
  return storage_facts(state_->enter(place), value, state_->in_body);
}

IntFacts FactAnalysis::extent(OpId place, ValueId shaped, unsigned axis) {
  return extent_facts(state_->enter(place), state_->module.type_of(shaped), axis);
}

bool FactAnalysis::may_overlap(OpId a_place, ValueId a, OpId b_place, ValueId b) {
  const StorageFacts first = storage(a_place, a);
  return loom::may_overlap(first, storage(b_place, b));
}

Distribution FactAnalysis::distribution(ValueId value) {
  if (state_->uniformity == nullptr) {
    state_->uniformity = std::make_unique<Uniformity>(state_->module, state_->root);
  }
  return state_->uniformity->of(value);
}

AttrId FactAnalysis::encoding(OpId place, ValueId value) {
  const Module& module = state_->module;
  const OpId made = module.defining_op(value);
  if (made.valid() && module.op(made).kind == EncodingDefine &&
      module.op(made).operand_count == 0) {
    return module.attr_ids(made)[attr_slot(EncodingDefine, "spec")];
  }
  for (RegionId region = module.op(place).parent; region.valid();) {
    const OpId holder = module.region(region).parent;
    if (!holder.valid()) break;
    if (module.op(holder).kind == ScfIf && region == module.op_region(holder, 0)) {
      const OpId test = module.defining_op(module.operand(holder, 0));
      if (test.valid() && module.op(test).kind == EncodingIsa && module.operand(test, 0) == value) {
        return module.attr_ids(test)[attr_slot(EncodingIsa, "spec")];
      }
    }
    region = module.op(holder).parent;
  }
  return {};
}

}  // namespace loom
