// What operations teach a forward sweep: the facts of their results, and what holds in their
// regions. Nothing here changes the module; canonicalize and the fact analysis share it.
#pragma once

#include <array>

#include "loom/pass/rewriter.h"

namespace loom {

// What the launch configuration of a kernel says about its queries.
struct KernelTopology {
  std::array<IntFacts, 3> workgroup_size, workgroup_count;
  KernelTopology();
};

// From the configuration region of a `kernel.def`, and what may be assumed of any other root.
// Counts are known of a kernel that only this module can launch (neither `retain` nor `export`; a
// request is retained) and that it never dispatches with counts of its own. Opens and closes a
// rewriter on the context: none may be alive.
KernelTopology kernel_topology(PassContext& context, OpId root);

// Extents of a result's type are not negative.
void learn_type(Rewriter& rewriter, ValueId result);
// Facts of a pure scalar operation's result.
void learn_result(Rewriter& rewriter, const FoldInput& input, ValueId result);
// The orders that an assume operation or the contract of a callee states about the results of `op`.
// They are steps from those results only, never steps to them, so they need no place.
void own_relations(const Rewriter& rewriter, OpId op, std::vector<Relation>& into);
// The results of an assume operation carry its predicates; the operands do not.
void learn_assume(Rewriter& rewriter, OpId op);
// The contract of a configuration key that has no value yet, or its value.
void learn_config(Rewriter& rewriter, OpId op);
void learn_query(Rewriter& rewriter, OpId op, const KernelTopology& topology);
// The named-result contract of the callee.
void learn_call(Rewriter& rewriter, OpId op);
// What holds inside region `region` of a structured operation: the condition, the range of the
// induction variable. The caller restores facts and relations when it leaves.
void learn_region(Rewriter& rewriter, OpId op, unsigned region);

// The predicate becomes facts of the values that `is_learner` accepts, and a relation. Arguments
// are taken as they are: the caller has put the values in place that the predicate speaks of.
template <class F>
void learn_predicate(Rewriter& rewriter, const Predicate& predicate, F&& is_learner);
// A literal, or what is known of the value.
IntFacts argument_facts(const Rewriter& rewriter, const PredicateArg& arg);
// Whether the order between its values decides a predicate that facts leave open. `refs[i]` is
// invalid where argument i is a literal, which `args[i]` gives.
std::optional<bool> holds_by_order(Rewriter& rewriter, PredicateKind kind, const Ref* refs,
                                   const IntFacts* args);
// Remembers the order that the predicate states between two values.
void learn_relation(Rewriter& rewriter, const Predicate& predicate);

// What a float predicate says about its value.
void learn_float_predicate(Rewriter& rewriter, const Predicate& predicate);
// The float results of a structured operation whose regions have been swept: what one of the
// yields, or the initial value of a loop, may be.
void learn_joined(Rewriter& rewriter, OpId op);

template <class F>
void learn_predicate(Rewriter& rewriter, const Predicate& predicate, F&& is_learner) {
  if (predicate_info(predicate.kind).on_float) {
    if (is_learner(predicate.args[0].value)) learn_float_predicate(rewriter, predicate);
    return;
  }
  IntFacts args[3];
  for (unsigned i = 0; i < predicate.arity(); ++i) {
    args[i] = argument_facts(rewriter, predicate.args[i]);
  }
  refine(predicate.kind, args);
  for (unsigned i = 0; i < predicate.arity(); ++i) {
    if (!predicate.args[i].is_value() || !is_learner(predicate.args[i].value)) continue;
    rewriter.learn(rewriter.resolve(predicate.args[i].value), args[i]);
  }
}

}  // namespace loom
