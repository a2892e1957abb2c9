#include "loom/pass/canonicalize.h"

#include "loom/pass/dce.h"
#include "loom/pass/encoding_facts.h"
#include "loom/pass/fact_flow.h"
#include "loom/pass/fold_results.h"
#include "loom/pass/fold_util.h"
#include "loom/pass/kind_tables.h"
#include "loom/pass/loop.h"
#include "loom/pass/op_facts.h"
#include "loom/pass/selector.h"
#include "loom/pass/signature_facts.h"
#include "loom/pass/vector_rewrite.h"

namespace loom {
namespace {

using enum OpKind;

constexpr unsigned kForLo = operand_slot(ScfFor, "lo");
constexpr unsigned kForHi = operand_slot(ScfFor, "hi");
constexpr unsigned kForStep = operand_slot(ScfFor, "step");
constexpr unsigned kForInit = operand_slot(ScfFor, "init");
constexpr unsigned kThen = region_slot(ScfIf, "then");
constexpr unsigned kElse = region_slot(ScfIf, "else");
constexpr unsigned kBefore = region_slot(ScfWhile, "before");
constexpr unsigned kConfigKey = attr_slot(ConfigGet, "key");
constexpr unsigned kConfigValue = attr_slot(ConfigDef, "value");
// A carried value that turns out invariant only after its body was swept asks for another sweep.
// More than a few in a row need loops that depend on one another; the bound keeps the cost linear.
constexpr unsigned kMaxSweeps = 8;

// One forward sweep over one isolated region.
class Sweep {
 public:
  Sweep(PassContext& context, const KernelTopology& topology, OpId root, RegionId body)
      : module_(context.module()),
        topology_(topology),
        rewriter_(context, body),
        root_(root),
        body_(body) {
    rewriter_.enable_use_counts(root);
  }

  void run() {
    assume_signature(rewriter_, root_, body_);
    next_ = module_.region(body_).first;
    while (true) {
      if (next_.valid()) {
        const OpId op = next_;
        next_ = module_.op(op).next;
        visit(op);
      } else if (!leave_region()) {
        break;
      }
    }
  }
  bool wants_another() const { return again_; }

 private:
  struct Scope {
    OpId op;
    unsigned region;
    size_t facts;
    size_t relations;
  };

  // --- visiting ---
  void visit(OpId op) {
    if (rewriter_.adopt_constant(op)) return;
    rewriter_.remap(op);
    use_exact_facts(op);
    if (!splices_.empty() && splices_.back().terminator == op) return finish_splice(op);
    const Op shape = module_.op(op);
    for (unsigned i = 0; i < shape.result_count; ++i) learn_type(rewriter_, module_.result(op, i));
    switch (shape.kind) {
      case ScfIf:
        return visit_if(op);
      case ScfFor:
        return visit_for(op);
      case ScfSwitch:
        return visit_switch(op);
      case ScfWhile:
        return visit_while(op);
      case IndexAssume:
      case ScalarAssume:
        return visit_assume(op);
      case ConfigGet:
        return visit_config(op);
      case EncodingIsa:
        return visit_isa(op);
      default:
        break;
    }
    if (rewrite_vector(rewriter_, op)) return module_.erase(op);
    if (is_foldable(shape.kind)) return visit_foldable(op);
    if (shape.result_count != 0 && visit_results(op)) return;
    if (shape.kind == FuncCall) learn_call(rewriter_, op);
    if (kind_has(shape.kind, trait::KernelQuery)) learn_query(rewriter_, op, topology_);
    if (shape.region_count != 0) enter(op, 0);
  }

  // Operands that are exact here, by a dominating condition for example. A value that types mention
  // stays itself, or operand and type would no longer name the same extent.
  void use_exact_facts(OpId op) {
    const unsigned count = module_.op(op).operand_count;
    for (unsigned i = 0; i < count; ++i) {
      const Ref ref = rewriter_.operand(op, i);
      if (ref.is_constant()) continue;
      const auto value = rewriter_.exact(ref);
      if (!value || rewriter_.is_in_type(ref.value_id())) continue;
      module_.set_operand(op, i, rewriter_.materialize(rewriter_.constant(*value)));
    }
  }

  void visit_foldable(OpId op) {
    const unsigned count = module_.op(op).operand_count;
    refs_.clear();
    for (unsigned i = 0; i < count; ++i) refs_.push_back(rewriter_.operand(op, i));
    const ValueId result = module_.result(op);
    const FoldInput input = {module_.op(op).kind, refs_, attrs_of(op), module_.type_of(result)};
    const OpId before = module_.op(op).prev;
    const Ref folded =
        rewriter_.fold_at(input, InsertionPoint::at(module_, op), module_.location(op));
    if (!folded.valid()) {
      if (module_.types.is_scalar(input.result)) learn_result(rewriter_, input, result);
      return;
    }
    keep_name(result, folded);
    rewriter_.replace(result, folded);
    // What the fold created may fold with its surroundings and needs its facts.
    revisit_after(before, op);
  }

  EvalAttrs attrs_of(OpId op) const {
    return module_.op(op).attr_count != 0 ? eval_attrs(module_, op) : EvalAttrs{};
  }

  // An operation that a rewrite created for `result` inherits its name.
  void keep_name(ValueId result, Ref now) {
    if (!now.is_value() || module_.value(now.value_id()).name.valid()) return;
    if (!rewriter_.defining(now).valid()) return;
    module_.value(now.value_id()).name = module_.value(result).name;
  }

  void revisit_after(OpId before, OpId op) {
    const OpId made =
        before.valid() ? module_.op(before).next : module_.region(module_.op(op).parent).first;
    const OpId end = op;
    for (OpId id = made; id.valid() && id != end; id = module_.op(id).next) {
      if (constant_of(module_, id) || module_.op(id).result_count != 1) continue;
      refs_.clear();
      const unsigned count = module_.op(id).operand_count;
      for (unsigned i = 0; i < count; ++i) refs_.push_back(rewriter_.operand(id, i));
      const ValueId result = module_.result(id);
      learn_result(rewriter_, {module_.op(id).kind, refs_, attrs_of(id), module_.type_of(result)},
                   result);
    }
    module_.erase(op);
  }

  void visit_assume(OpId op) {
    const unsigned count = module_.op(op).result_count;
    bool all_exact = count != 0;
    for (unsigned i = 0; i < count; ++i) {
      const Ref operand = rewriter_.operand(op, i);
      const ValueId result = module_.result(op, i);
      if (operand.is_constant()) {
        note_fold<"assume on a constant">();
        rewriter_.replace(result, operand);
      } else if (detail::is_poison(rewriter_, operand)) {
        note_fold<"assume on poison">();
        rewriter_.replace(result, operand);
      }
    }
    learn_assume(rewriter_, op);
    for (unsigned i = 0; i < count; ++i) {
      const ValueId result = module_.result(op, i);
      const Ref operand = rewriter_.operand(op, i);
      if (operand.is_constant()) continue;
      if (const auto value = rewriter_.exact(Ref::value(result))) {
        note_fold<"assume exact">();
        rewriter_.replace(result, rewriter_.constant(*value));
      } else {
        all_exact = false;
      }
    }
    if (all_exact) module_.erase(op);
  }

  void visit_config(OpId op) {
    const OpId key = module_.symbol(module_.attr(op, kConfigKey).string());
    if (!key.valid()) return;
    const ValueId result = module_.result(op);
    const TypeId type = module_.type_of(result);
    if (!module_.types.is_scalar(type)) return;
    if (rewriter_.kind_of(key) == ConfigDef) {
      const auto value = from_literal(module_.attr(key, kConfigValue), rewriter_.element(type));
      if (!value) return;
      note_fold<"config.get defined">();
      rewriter_.replace(result, rewriter_.constant(*value));
      module_.erase(op);
      return;
    }
    learn_config(rewriter_, op);
  }

  void visit_isa(OpId op) {
    const auto answer = decide_isa(module_, op);
    if (!answer) return;
    note_fold<"encoding.isa known">();
    rewriter_.replace(module_.result(op), rewriter_.integer(ScalarKind::I1, *answer ? 1 : 0));
    module_.erase(op);
  }

  // --- regions ---
  void enter(OpId op, unsigned region) {
    scopes_.push_back({op, region, rewriter_.fact_mark(), rewriter_.relations().size()});
    learn_region(rewriter_, op, region);
    next_ = module_.region(module_.op_region(op, region)).first;
  }

  bool leave_region() {
    if (scopes_.empty()) return false;
    const Scope scope = scopes_.back();
    scopes_.pop_back();
    if (rewriter_.kind_of(scope.op) == ScfFor) check_invariants(scope.op);
    if (rewriter_.kind_of(scope.op) == ScfWhile && scope.region == kBefore) {
      // Folding the region may have shown that the loop ends at once.
      again_ |= ends_at_once(scope.op);
    }
    rewriter_.restore_facts(scope.facts);
    rewriter_.relations().resize(scope.relations);
    if (scope.region + 1 < module_.op(scope.op).region_count) {
      enter(scope.op, scope.region + 1);
      return true;
    }
    next_ = module_.op(scope.op).next;
    learn_joined(rewriter_, scope.op);
    if (rewriter_.kind_of(scope.op) == ScfIf) simplify_if(scope.op);
    return true;
  }

  void visit_if(OpId op) {
    const auto condition = rewriter_.exact(rewriter_.operand(op, 0));
    if (!condition) return enter(op, kThen);
    note_fold<"scf.if decided">();
    splice(op, module_.op_region(op, condition->bits != 0 ? kThen : kElse));
  }

  void visit_switch(OpId op) {
    const auto selector = rewriter_.exact_int(rewriter_.operand(op, 0));
    if (!selector) return enter(op, 0);
    note_fold<"scf.switch decided">();
    splice(op, module_.op_region(op, row_of(module_, op, *selector)));
  }

  // Puts the operations of one region in place of `op` and continues with them. The results mean
  // values that the sweep has not reached yet: the region's terminator stays in place as the mark
  // where they are bound.
  void splice(OpId op, RegionId region) {
    const OpId first = module_.region(region).first;
    OpId last;
    for (OpId id = first; id.valid();) {
      const OpId next = module_.op(id).next;
      module_.detach(id);
      module_.insert_before(op, id);
      last = id;
      id = next;
    }
    if (first.valid()) next_ = first;
    // A terminator without values may be left out.
    const bool ended = last.valid() && kind_has(rewriter_.kind_of(last), trait::Terminator);
    if (!ended) return module_.erase(op);
    splices_.push_back({last, op});
  }

  void finish_splice(OpId terminator) {
    const OpId op = splices_.back().op;
    splices_.pop_back();
    next_ = module_.op(op).next;
    // A condition stands before the values that it forwards.
    const unsigned first = rewriter_.kind_of(terminator) == ScfCondition ? 1 : 0;
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
      rewriter_.replace(module_.result(op, i), rewriter_.operand(terminator, first + i));
    }
    module_.erase(terminator);
    module_.erase(op);
  }

  // Branches that only choose values become selects.
  void simplify_if(OpId op) {
    const unsigned count = module_.op(op).result_count;
    const OpId yes = module_.region(module_.op_region(op, kThen)).first;
    const OpId no = module_.region(module_.op_region(op, kElse)).first;
    if (count == 0 || !is_yield(yes) || !is_yield(no)) return;
    note_fold<"scf.if to select">();
    for (unsigned i = 0; i < count; ++i) {
      const ValueId result = module_.result(op, i);
      const Ref operands[] = {rewriter_.operand(op, 0), rewriter_.operand(yes, i),
                              rewriter_.operand(no, i)};
      const TypeId type = rewriter_.resolve_type(module_.type_of(result));
      const InsertionPoint place = InsertionPoint::at(module_, op);
      Ref value = rewriter_.fold_at({ScfSelect, operands, {}, type}, place, module_.location(op));
      if (!value.valid()) {
        value = rewriter_.create(ScfSelect, operands, AttrId(), type, place, module_.location(op));
        learn_result(rewriter_, {ScfSelect, std::span(operands), {}, type}, value.value_id());
      }
      keep_name(result, value);
      rewriter_.replace(result, value);
    }
    module_.erase(op);
  }

  // --- while and several results ---
  // What the first region forwards when it is computed once.
  void visit_while(OpId op) {
    if (!while_never_runs(rewriter_, op)) return enter(op, 0);
    note_fold<"scf.while no trip">();
    const RegionId before = module_.op_region(op, kBefore);
    const auto args = module_.args(before);
    for (unsigned i = 0; i < args.size(); ++i) {
      rewriter_.replace(args[i], rewriter_.operand(op, i));
    }
    splice(op, before);
  }
  bool ends_at_once(OpId op) const {
    const OpId last = module_.region(module_.op_region(op, kBefore)).last;
    if (!last.valid() || rewriter_.kind_of(last) != ScfCondition) return false;
    const Ref condition = rewriter_.operand(last, 0);
    const auto value = condition.is_constant() ? rewriter_.exact(condition) : std::nullopt;
    return value && value->bits == 0;
  }
  bool visit_results(OpId op) {
    if (!fold_results(rewriter_, op, InsertionPoint::at(module_, op), refs_)) return false;
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
      keep_name(module_.result(op, i), refs_[i]);
      rewriter_.replace(module_.result(op, i), refs_[i]);
    }
    module_.erase(op);
    return true;
  }

  bool is_yield(OpId op) const { return op.valid() && rewriter_.kind_of(op) == ScfYield; }

  // --- loops ---
  void visit_for(OpId op) {
    const Ref lo = rewriter_.operand(op, kForLo), hi = rewriter_.operand(op, kForHi),
              step = rewriter_.operand(op, kForStep);
    const RegionId body = module_.op_region(op, 0);
    const auto count = loop_count(rewriter_, lo, hi, step);
    const bool never = compare(Compare::Sge, rewriter_.facts(lo), rewriter_.facts(hi)) == true;
    if (never || (count && count->trips == 0)) {
      note_fold<"scf.for no trip">();
      const auto inits = operand_group(module_, op, kForInit);
      for (unsigned i = 0; i < inits.size(); ++i) {
        rewriter_.replace(module_.result(op, i), rewriter_.resolve(inits[i]));
      }
      return module_.erase(op);
    }
    if (count && count->trips == 1) {
      note_fold<"scf.for one trip">();
      rewriter_.replace(module_.args(body)[0], lo);
      bind_carried(op, body, [](unsigned) { return true; });
      return splice(op, body);
    }
    const OpId yield = module_.region(body).last;
    bind_carried(op, body, [&](unsigned i) {
      return is_yield(yield) && is_invariant(op, body, yield, i) && bind_result(op, i);
    });
    enter(op, 0);
  }

  template <class F>
  void bind_carried(OpId op, RegionId body, F&& wanted) {
    const unsigned count = module_.region(body).arg_count - 1;
    for (unsigned i = 0; i < count; ++i) {
      if (!wanted(i)) continue;
      const ValueId init = operand_group(module_, op, kForInit)[i];
      rewriter_.replace(module_.args(body)[i + 1], rewriter_.resolve(init));
    }
  }

  bool bind_result(OpId op, unsigned i) {
    note_fold<"scf.for invariant carried value">();
    rewriter_.replace(module_.result(op, i),
                      rewriter_.resolve(operand_group(module_, op, kForInit)[i]));
    return true;
  }

  // Each iteration yields the value it was given, or the initial one.
  bool is_invariant(OpId op, RegionId body, OpId yield, unsigned i) const {
    const Ref yielded = rewriter_.operand(yield, i);
    return yielded == Ref::value(module_.args(body)[i + 1]) ||
           yielded == rewriter_.resolve(module_.args(body)[i + 1]) ||
           yielded == rewriter_.resolve(operand_group(module_, op, kForInit)[i]);
  }

  // Folding the body may have shown that a carried value never changes.
  void check_invariants(OpId op) {
    const RegionId body = module_.op_region(op, 0);
    const OpId yield = module_.region(body).last;
    if (!is_yield(yield)) return;
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
      const Ref arg = Ref::value(module_.args(body)[i + 1]);
      if (rewriter_.resolve(arg.value_id()) != arg) continue;
      if (!is_invariant(op, body, yield, i)) continue;
      bind_result(op, i);
      again_ = true;
    }
  }

  struct Splice {
    OpId terminator;
    OpId op;
  };

  Module& module_;
  const KernelTopology topology_;
  Rewriter rewriter_;
  const OpId root_;
  const RegionId body_;
  OpId next_;
  std::vector<Scope> scopes_;
  std::vector<Splice> splices_;
  std::vector<Ref> refs_;
  bool again_ = false;
};

}  // namespace

bool canonicalize(PassContext& context, OpId root) {
  for_each_body(context.module(), root, [&](RegionId body) {
    const KernelTopology topology = kernel_topology(context, root);
    bool again = true;
    for (unsigned sweep = 0; again && sweep < kMaxSweeps; ++sweep) {
      Sweep pass(context, topology, root, body);
      pass.run();
      again = pass.wants_another();
    }
  });
  return dce(context, root);
}

}  // namespace loom
