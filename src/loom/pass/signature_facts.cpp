#include "loom/pass/signature_facts.h"

#include "loom/pass/fact_flow.h"

namespace loom {
namespace {

// Predicates of a kernel speak of its device body, not of its configuration region.
bool constrains(const Module& module, const Predicate& predicate, RegionId body) {
  if (!predicate.args[0].is_value()) return false;
  // A named result is an obligation of the body, not something it may rely on.
  for (unsigned i = 0; i < predicate.arity(); ++i) {
    if (!predicate.args[i].is_value()) continue;
    const Value& value = module.value(predicate.args[i].value);
    if (value.kind == ValueKind::Result || value.owner != body.index()) return false;
  }
  return true;
}

}  // namespace

void learn_signature(Rewriter& rewriter, OpId root, RegionId body) {
  const Module& module = rewriter.module();
  const IntFacts not_negative = IntFacts::range(0, std::numeric_limits<int64_t>::max());
  for (ValueId arg : module.args(body)) rewriter.mark_in_type(module.type_of(arg));
  for (uint32_t i : rewriter.workspace().mentioned) {
    rewriter.learn(Ref::value(ValueId(i)), not_negative);
  }
  // Twice, since a predicate may mention a value that a later one constrains.
  const auto predicates = where_predicates(module, root);
  for (int round = 0; round < 2; ++round) {
    for (const Predicate& predicate : predicates) {
      if (!constrains(module, predicate, body)) continue;
      learn_predicate(rewriter, predicate, [](ValueId) { return true; });
      if (round == 0) learn_relation(rewriter, predicate);
    }
  }
}

void assume_signature(Rewriter& rewriter, OpId root, RegionId body) {
  learn_signature(rewriter, root, body);
  const Module& module = rewriter.module();
  for (ValueId arg : module.args(body)) {
    // A signature type that mentions the argument must keep meaning it.
    if (rewriter.is_in_type(arg)) continue;
    if (const auto value = rewriter.exact(Ref::value(arg))) {
      rewriter.replace(arg, rewriter.constant(*value));
    }
  }
}

}  // namespace loom
