#include "loom/pass/contracts.h"

#include <fmt/format.h>

#include <vector>

#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"
#include "loom/pass/analysis.h"
#include "loom/pass/region_walk.h"
#include "loom/pass/rewriter.h"
#include "loom/pass/selector.h"

namespace loom {
namespace {

using enum OpKind;

class Judge {
 public:
  Judge(Module& module, Diagnostics& diagnostics, OpId root, RegionId body)
      : module_(module),
        diagnostics_(diagnostics),
        root_(root),
        body_(body),
        facts_(module, root, body) {}

  bool run() {
    for (OpId op = module_.region(body_).first; op.valid();) {
      if (is_dead(module_.op(op).parent)) {
        op = next_after_region_subtree(module_, op, body_);
        continue;
      }
      visit(op);
      op = next_in_region_tree(module_, op, body_);
    }
    return ok_;
  }

 private:
  bool is_dead(RegionId region) const {
    return region.index() < dead_.size() && dead_[region.index()];
  }

  void skip(OpId op, unsigned region) {
    if (dead_.empty()) dead_.resize(module_.region_count());
    dead_[module_.op_region(op, region).index()] = true;
  }

  void visit(OpId op) {
    switch (module_.op(op).kind) {
      case ScfIf: {
        const auto condition = facts_.exact(op, module_.operand(op, 0));
        const unsigned skipped = condition == std::optional<int64_t>(0) ? 0 : 1;
        if (condition && skipped < module_.op(op).region_count) skip(op, skipped);
        return;
      }
      case ScfSwitch: {
        const auto selector = facts_.exact(op, module_.operand(op, 0));
        if (!selector) return;
        const unsigned chosen = row_of(module_, op, *selector);
        for (unsigned i = 0; i < module_.op(op).region_count; ++i) {
          if (i != chosen) skip(op, i);
        }
        return;
      }
      case FuncCall: {
        const OpId callee =
            module_.symbol(module_.attr(op, attr_slot(FuncCall, "callee")).string());
        if (!callee.valid()) return;
        const OpKind kind = module_.op(callee).kind;
        if (kind == FuncDef || kind == FuncDecl) judge_call(op, callee);
        return;
      }
      case FuncReturn:
        if (module_.op(root_).kind == FuncDef) judge_return(op);
        return;
      default:
        return;
    }
  }

  // The predicate with the values that `actual` gives for its own, when it gives them all.
  template <class F>
  std::optional<Predicate> rewritten(const Predicate& predicate, F&& actual) const {
    Predicate about = predicate;
    for (unsigned i = 0; i < about.arity(); ++i) {
      if (!about.args[i].is_value()) continue;
      about.args[i].value = actual(predicate.args[i].value);
      if (!about.args[i].value.valid()) return std::nullopt;
    }
    return about;
  }

  void judge_call(OpId call, OpId callee) {
    const RegionId args = module_.op_region(callee, 0);
    for (const Predicate& predicate : where_predicates(module_, callee)) {
      const auto about = rewritten(predicate, [&](ValueId formal) {
        const Value& value = module_.value(formal);
        const bool is_arg = value.kind == ValueKind::Argument && value.owner == args.index();
        return is_arg ? module_.operand(call, value.index) : ValueId();
      });
      if (!about || facts_.holds(*about, call) != false) continue;
      report(
          Diag::TypeContract, call,
          fmt::format("operand {} of the call of '@{}'",
                      value_name_text(module_, about->args[0].value), symbol_text(module_, callee)),
          predicate, "pass a value that satisfies it")
          .notes.push_back({module_.location(callee), "the contract is declared here"});
    }
  }

  void judge_return(OpId op) {
    const RegionId results = module_.op_region(root_, 1);
    for (const Predicate& predicate : where_predicates(module_, root_)) {
      bool on_result = false;
      const auto about = rewritten(predicate, [&](ValueId formal) {
        const Value& value = module_.value(formal);
        if (value.kind != ValueKind::Argument || value.owner != results.index()) return formal;
        on_result = true;
        return module_.operand(op, value.index);
      });
      if (!about || !on_result || facts_.holds(*about, op) != false) continue;
      report(Diag::TypeResultContract, op,
             fmt::format("the value that '@{}' returns", symbol_text(module_, root_)), predicate,
             "return a value that satisfies it, or widen the contract");
    }
  }

  Diagnostic& report(Diag id, OpId place, std::string subject, const Predicate& predicate,
                     std::string repair) {
    ok_ = false;
    return diagnostics_.emit(id, module_.location(place),
                             {{"subject", std::move(subject)},
                              {"contract", predicate_text(module_, predicate)},
                              {"repair", std::move(repair)}});
  }

  const Module& module_;
  Diagnostics& diagnostics_;
  const OpId root_;
  const RegionId body_;
  FactAnalysis facts_;
  std::vector<bool> dead_;  // by region
  bool ok_ = true;
};

}  // namespace

bool check_contracts(PassContext& context, OpId root) {
  bool ok = true;
  for_each_body(context.module(), root, [&](RegionId body) {
    ok &= Judge(context.module(), context.diagnostics(), root, body).run();
  });
  return ok;
}

}  // namespace loom
