#include "loom/pass/select_templates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <vector>

#include "loom/dialect/hooks.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"
#include "loom/pass/fact_flow.h"
#include "loom/pass/kind_tables.h"
#include "loom/pass/region_walk.h"
#include "loom/pass/signature_facts.h"

namespace loom {
namespace {

using enum OpKind;

constexpr unsigned kFamily = attr_slot(TemplateDef, "family");
constexpr unsigned kPure = attr_slot(TemplateDef, "pure");
constexpr unsigned kCalling = attr_slot(TemplateDef, "calling");
constexpr unsigned kTarget = attr_slot(TemplateDef, "target");
constexpr unsigned kRequires = attr_slot(TemplateDef, "requires");
constexpr unsigned kPriority = attr_slot(TemplateDef, "priority");
constexpr unsigned kBody = region_slot(TemplateDef, "body");
// Both kinds of implementation keep these in the same places.
static_assert(kFamily == attr_slot(TemplateUkernel, "family") &&
              kPure == attr_slot(TemplateUkernel, "pure") &&
              kCalling == attr_slot(TemplateUkernel, "calling") &&
              kTarget == attr_slot(TemplateUkernel, "target") &&
              kRequires == attr_slot(TemplateUkernel, "requires") &&
              kPriority == attr_slot(TemplateUkernel, "priority") &&
              kBody == region_slot(TemplateUkernel, "body"));

enum class Calling : uint8_t { Host, Device };

// Whether a candidate may be used, and what is missing or wrong.
struct Verdict {
  std::optional<bool> state = true;
  std::string reason;      // of the first condition that does not hold or is not known
  bool by_target = false;  // that condition is about the target
};

class Selector {
 public:
  Selector(PassContext& context, OpId root, const SelectOptions& options)
      : context_(context),
        module_(context.module()),
        diagnostics_(context.diagnostics()),
        options_(options),
        root_(root),
        target_(options.target) {
    topology_ = kernel_topology(context, root);
    find_root_target();
    for_each_op(module_, module_.body(), [&](OpId op) {
      const OpKind kind = module_.op(op).kind;
      if (kind != TemplateDef && kind != TemplateUkernel) return;
      implementations_[module_.attr(op, kFamily).string()].push_back(op);
    });
  }

  bool run() {
    for_each_body(module_, root_, [&](RegionId body) {
      if (!failed_) sweep(body);
    });
    return !failed_;
  }

 private:
  struct Scope {
    OpId op;
    unsigned region;
    size_t facts, relations;
  };

  void find_root_target();
  void sweep(RegionId body);
  bool visit(OpId op);
  void learn(OpId op);
  void enter(OpId op, unsigned region);

  bool select(OpId apply);
  void record(OpId apply, OpId chosen, std::span<const OpId> candidates,
              std::span<const Verdict> verdicts);
  void rewrite(OpId apply, OpId chosen);
  bool check_call(OpId call);
  void report_none(OpId apply, std::span<const OpId> candidates, std::span<const Verdict> verdicts);
  Verdict judge(OpId use, OpId candidate);
  bool fits_context(OpId use, OpId candidate, Verdict& verdict) const;
  void judge_target(OpId candidate, Verdict& verdict) const;
  void judge_requirements(OpId candidate, Verdict& verdict) const;
  void judge_contract(OpId use, OpId candidate, Verdict& verdict);
  std::optional<bool> decide(OpId use, OpId candidate, const Predicate& predicate);
  Ref actual_of(OpId use, RegionId formals, ValueId formal);
  int64_t priority_of(OpId candidate) const;
  std::string text_of(OpId op) const { return "'@" + std::string(symbol_text(module_, op)) + "'"; }

  PassContext& context_;
  Module& module_;
  Diagnostics& diagnostics_;
  const SelectOptions& options_;
  const OpId root_;
  TargetFacts target_;
  KernelTopology topology_;
  OpId root_target_;
  std::string_view root_format_;
  std::map<StringId, std::vector<OpId>> implementations_;  // by family, in module order
  Rewriter* rewriter_ = nullptr;
  std::optional<Calling> calling_;  // of the body that is swept
  std::vector<Scope> scopes_;
  OpId next_;
  std::vector<Ref> refs_;
  bool failed_ = false;
};

void Selector::find_root_target() {
  root_format_ = options_.format;
  const auto& attrs = op_info(module_.op(root_).kind).attrs;
  for (unsigned slot = 0; slot < attrs.size(); ++slot) {
    if (attrs[slot].name != "target" || !module_.has_attr(root_, slot)) continue;
    root_target_ = module_.symbol(module_.attr(root_, slot).string());
    if (!root_target_.valid() || module_.op(root_target_).kind != TargetGeneric) continue;
    target_ = record_facts(module_, root_target_, target_);
    if (const auto format = record_format(module_, root_target_); !format.empty()) {
      root_format_ = format;
    }
  }
}

// --- facts --------------------------------------------------------------------------------------

void Selector::sweep(RegionId body) {
  Rewriter rewriter(context_, body);
  rewriter_ = &rewriter;
  assume_signature(rewriter, root_, body);
  const OpKind kind = module_.op(root_).kind;
  calling_ = std::nullopt;
  if (kind == KernelDef) {
    const bool device = body == module_.op_region(root_, region_slot(KernelDef, "body"));
    calling_ = device ? Calling::Device : Calling::Host;
  } else if (kind == CommandProgramDef) {
    calling_ = Calling::Host;
  } else if (kind == FuncDef && module_.has_attr(root_, attr_slot(FuncDef, "calling"))) {
    const uint64_t word = module_.attr(root_, attr_slot(FuncDef, "calling")).bits;
    if (word < 2) calling_ = static_cast<Calling>(word);
  }
  next_ = module_.region(body).first;
  while (!failed_) {
    if (next_.valid()) {
      const OpId op = next_;
      next_ = module_.op(op).next;
      if (!visit(op)) failed_ = true;
    } else if (scopes_.empty()) {
      break;
    } else {
      const Scope scope = scopes_.back();
      scopes_.pop_back();
      rewriter.restore_facts(scope.facts);
      rewriter.relations().resize(scope.relations);
      if (scope.region + 1 < module_.op(scope.op).region_count) {
        enter(scope.op, scope.region + 1);
      } else {
        next_ = module_.op(scope.op).next;
      }
    }
  }
  scopes_.clear();
  rewriter_ = nullptr;
}

bool Selector::visit(OpId op) {
  if (rewriter_->adopt_constant(op)) return true;
  rewriter_->remap(op);
  switch (module_.op(op).kind) {
    case TemplateApply:
      return select(op);
    case TemplateCall:
      return check_call(op);
    case TargetSubgroupSize:
      if (!target_.subgroup_size) return true;
      rewriter_->replace(module_.result(op),
                         rewriter_->integer(ScalarKind::Index, *target_.subgroup_size));
      module_.erase(op);
      return true;
    case IndexAssume:
    case ScalarAssume:
      learn_assume(*rewriter_, op);
      return true;
    case ConfigGet:
      learn_config(*rewriter_, op);
      return true;
    case FuncCall:
      learn_call(*rewriter_, op);
      return true;
    default:
      break;
  }
  learn(op);
  if (module_.op(op).region_count != 0) enter(op, 0);
  return true;
}

void Selector::learn(OpId op) {
  const Op shape = module_.op(op);
  for (unsigned i = 0; i < shape.result_count; ++i) {
    learn_type(*rewriter_, module_.result(op, i));
  }
  if (kind_has(shape.kind, trait::KernelQuery)) return learn_query(*rewriter_, op, topology_);
  if (shape.result_count != 1 || !is_foldable(shape.kind)) return;
  const TypeId type = module_.type_of(module_.result(op));
  if (!module_.types.is_scalar(type)) return;
  refs_.clear();
  for (unsigned i = 0; i < shape.operand_count; ++i) refs_.push_back(rewriter_->operand(op, i));
  const EvalAttrs attrs = shape.attr_count != 0 ? eval_attrs(module_, op) : EvalAttrs{};
  learn_result(*rewriter_, {shape.kind, refs_, attrs, type}, module_.result(op));
}

void Selector::enter(OpId op, unsigned region) {
  scopes_.push_back({op, region, rewriter_->fact_mark(), rewriter_->relations().size()});
  learn_region(*rewriter_, op, region);
  next_ = module_.region(module_.op_region(op, region)).first;
}

// --- candidates ---------------------------------------------------------------------------------

int64_t Selector::priority_of(OpId candidate) const {
  return module_.has_attr(candidate, kPriority) ? module_.attr(candidate, kPriority).value() : 0;
}

// Who calls and whether it may have effects.
bool Selector::fits_context(OpId use, OpId candidate, Verdict& verdict) const {
  if (module_.has_attr(candidate, kCalling) && calling_) {
    const uint64_t word = module_.attr(candidate, kCalling).bits;
    if (word != static_cast<uint64_t>(*calling_)) {
      verdict = {false,
                 fmt::format("it is for {} code", enum_info(EnumId::CallingKind).cases[word]),
                 false};
      return false;
    }
  }
  if (is_pure_call(module_, use) && !module_.has_attr(candidate, kPure)) {
    verdict = {false, "it is not pure", false};
    return false;
  }
  return true;
}

void weaken(Verdict& verdict, std::optional<bool> state, std::string reason, bool by_target) {
  if (state == true || verdict.state == false) return;
  // A rejected condition says more than an open one, and the first open one is enough.
  if (state == false || verdict.state == true) verdict = {state, std::move(reason), by_target};
}

void Selector::judge_target(OpId candidate, Verdict& verdict) const {
  if (!module_.has_attr(candidate, kTarget)) return;
  const OpId record = module_.symbol(module_.attr(candidate, kTarget).string());
  if (record == root_target_) return;
  const std::string_view format = record_format(module_, record);
  if (module_.op(record).kind == TargetGeneric && format.empty()) return;  // any target
  const std::string reason = fmt::format("target(@{})", symbol_text(module_, record));
  if (format.empty() || root_format_.empty()) return weaken(verdict, std::nullopt, reason, true);
  weaken(verdict, format == root_format_, reason, true);
}

void Selector::judge_requirements(OpId candidate, Verdict& verdict) const {
  if (!module_.has_attr(candidate, kRequires)) return;
  for (const DictEntry& entry : module_.attr(candidate, kRequires).entries) {
    const auto condition = target_condition(module_, entry.value);
    if (!condition) continue;  // the verifier has refused it
    weaken(verdict, condition->holds(target_), attr_text(module_, entry.value), true);
  }
}

// What the argument of an implementation is at its use; an extent that the signature introduces is
// the extent of an actual argument. Invalid when it is not known.
Ref Selector::actual_of(OpId use, RegionId formals, ValueId formal) {
  const auto args = module_.args(formals);
  const Value& value = module_.value(formal);
  if (value.owner != formals.index()) return {};
  if (value.kind == ValueKind::Argument) return rewriter_->operand(use, value.index);
  if (value.kind != ValueKind::Extent) return {};
  for (unsigned i = 0; i < args.size(); ++i) {
    const Type& type = module_.types[module_.type_of(args[i])];
    const Type& given = module_.types[rewriter_->type_of(rewriter_->operand(use, i))];
    for (size_t axis = 0; axis < type.dims.size() && axis < given.dims.size(); ++axis) {
      if (!type.dims[axis].is_dynamic() || type.dims[axis].value() != formal) continue;
      const Dim dim = given.dims[axis];
      return dim.is_dynamic() ? rewriter_->resolve(dim.value())
                              : rewriter_->integer(ScalarKind::Index, dim.extent());
    }
  }
  return {};
}

std::optional<bool> Selector::decide(OpId use, OpId candidate, const Predicate& predicate) {
  const RegionId formals = module_.op_region(candidate, kBody);
  IntFacts args[3];
  Ref refs[3];
  for (unsigned i = 0; i < predicate.arity(); ++i) {
    if (!predicate.args[i].is_value()) {
      args[i] = IntFacts::exactly(predicate.args[i].literal);
      continue;
    }
    refs[i] = actual_of(use, formals, predicate.args[i].value);
    if (!refs[i].valid()) return std::nullopt;
    if (!predicate_info(predicate.kind).on_float) args[i] = rewriter_->facts(refs[i]);
  }
  if (predicate_info(predicate.kind).on_float) {
    return holds(predicate.kind, rewriter_->float_facts(refs[0]));
  }
  if (const auto decided = holds(predicate.kind, args)) return decided;
  const auto compare = comparison_of(predicate.kind);
  if (!compare || !refs[0].valid() || !refs[1].valid()) return std::nullopt;
  if (refs[0] == refs[1]) {
    return *compare == Compare::Eq || *compare == Compare::Sle || *compare == Compare::Sge;
  }
  return rewriter_->related(*compare, refs[0], refs[1]);
}

void Selector::judge_contract(OpId use, OpId candidate, Verdict& verdict) {
  const RegionId formals = module_.op_region(candidate, kBody);
  for (const Predicate& predicate : where_predicates(module_, candidate)) {
    // A predicate about a result is a promise, not a condition.
    bool condition = true;
    for (unsigned i = 0; i < predicate.arity(); ++i) {
      if (!predicate.args[i].is_value()) continue;
      condition &= module_.value(predicate.args[i].value).owner == formals.index();
    }
    if (!condition) continue;
    weaken(verdict, decide(use, candidate, predicate), predicate_text(module_, predicate), false);
  }
}

Verdict Selector::judge(OpId use, OpId candidate) {
  Verdict verdict;
  if (!fits_context(use, candidate, verdict)) return verdict;
  judge_target(candidate, verdict);
  judge_contract(use, candidate, verdict);
  judge_requirements(candidate, verdict);
  return verdict;
}

// --- decisions ----------------------------------------------------------------------------------

bool Selector::select(OpId apply) {
  const StringId family = module_.attr(apply, attr_slot(TemplateApply, "family")).string();
  const std::vector<OpId>& candidates = implementations_[family];
  std::vector<Verdict> verdicts;
  OpId best, rival;
  for (const OpId candidate : candidates) {
    verdicts.push_back(judge(apply, candidate));
    if (verdicts.back().state != true) continue;
    if (!best.valid() || priority_of(candidate) > priority_of(best)) {
      best = candidate;
      rival = {};
    } else if (priority_of(candidate) == priority_of(best) && !rival.valid()) {
      rival = candidate;
    }
  }
  if (!options_.final) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      const bool open = !verdicts[i].state.has_value();
      if (open && (!best.valid() || priority_of(candidates[i]) > priority_of(best))) return true;
    }
    if (!best.valid()) return true;  // another implementation may be linked later
  }
  if (!best.valid()) {
    report_none(apply, candidates, verdicts);
    return false;
  }
  if (rival.valid()) {
    Diagnostic& report = diagnostics_.emit(Diag::LoweringAmbiguousTemplate, module_.location(apply),
                                           {{"family", std::string(module_.strings.text(family))},
                                            {"first", std::string(symbol_text(module_, best))},
                                            {"second", std::string(symbol_text(module_, rival))},
                                            {"priority", std::to_string(priority_of(best))}});
    report.notes.push_back({module_.location(best), text_of(best) + " is here"});
    report.notes.push_back({module_.location(rival), text_of(rival) + " is here"});
    return false;
  }
  if (options_.choices != nullptr) record(apply, best, candidates, verdicts);
  rewrite(apply, best);
  return true;
}

void Selector::record(OpId apply, OpId chosen, std::span<const OpId> candidates,
                      std::span<const Verdict> verdicts) {
  using Outcome = TemplateChoice::Outcome;
  const StringId family = module_.attr(apply, attr_slot(TemplateApply, "family")).string();
  for (size_t i = 0; i < candidates.size(); ++i) {
    Outcome outcome = candidates[i] == chosen ? Outcome::Chosen : Outcome::Outranked;
    if (verdicts[i].state == false) outcome = Outcome::Rejected;
    if (!verdicts[i].state.has_value()) outcome = Outcome::Unknown;
    options_.choices->push_back({std::string(symbol_text(module_, root_)), module_.location(apply),
                                 std::string(module_.strings.text(family)),
                                 std::string(symbol_text(module_, candidates[i])),
                                 priority_of(candidates[i]), outcome, verdicts[i].reason});
  }
}

// The best of the open candidates names the missing fact.
void Selector::report_none(OpId apply, std::span<const OpId> candidates,
                           std::span<const Verdict> verdicts) {
  const std::string family(
      module_.strings.text(module_.attr(apply, attr_slot(TemplateApply, "family")).string()));
  const Location place = module_.location(apply);
  size_t open = candidates.size();
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (verdicts[i].state.has_value()) continue;
    if (open == candidates.size() || priority_of(candidates[i]) > priority_of(candidates[open])) {
      open = i;
    }
  }
  if (open != candidates.size() && verdicts[open].by_target) {
    diagnostics_
        .emit(Diag::LoweringTargetCondition, place,
              {{"condition", verdicts[open].reason},
               {"symbol", std::string(symbol_text(module_, candidates[open]))}})
        .notes.push_back({module_.location(candidates[open]), "the implementation is here"});
    return;
  }
  std::string detail = "none is linked", repair = "add the module that implements it";
  if (open != candidates.size()) {
    detail = fmt::format("{} needs {}, which is not known", text_of(candidates[open]),
                         verdicts[open].reason);
    repair =
        "state it by a predicate, a condition or a specialization, or add an implementation "
        "without conditions";
  } else if (!candidates.empty()) {
    detail = "every one is excluded";
    repair = "add an implementation for this case";
  }
  Diagnostic& report = diagnostics_.emit(
      Diag::LoweringNoTemplate, place,
      {{"family", family}, {"detail", std::move(detail)}, {"repair", std::move(repair)}});
  for (size_t i = 0; i < candidates.size(); ++i) {
    const bool excluded = verdicts[i].state == false;
    report.notes.push_back(
        {module_.location(candidates[i]),
         fmt::format("{} {} {}", text_of(candidates[i]), excluded ? "is excluded by" : "waits for",
                     verdicts[i].reason)});
  }
}

void Selector::rewrite(OpId apply, OpId chosen) {
  const std::vector<ValueId> operands(module_.operands(apply).begin(),
                                      module_.operands(apply).end());
  const std::vector<uint32_t> groups(module_.group_sizes(apply).begin(),
                                     module_.group_sizes(apply).end());
  const unsigned count = module_.op(apply).result_count;
  std::vector<TypeId> results;
  results.reserve(count);
  for (unsigned i = 0; i < count; ++i) results.push_back(module_.type_of(module_.result(apply, i)));
  std::vector<AttrId> attrs(op_info(TemplateCall).attrs.size());
  const auto from = module_.attr_ids(apply);
  attrs[attr_slot(TemplateCall, "pure")] = from[attr_slot(TemplateApply, "pure")];
  attrs[attr_slot(TemplateCall, "temperature")] = from[attr_slot(TemplateApply, "temperature")];
  attrs[attr_slot(TemplateCall, "callee")] =
      module_.attrs.intern(Attr::symbol(symbol_name(module_, chosen)));
  const OpId call = module_.create({.kind = TemplateCall,
                                    .operands = operands,
                                    .groups = groups,
                                    .results = results,
                                    .attrs = attrs,
                                    .location = module_.location(apply)});
  module_.insert_before(apply, call);
  for (unsigned i = 0; i < count; ++i) {
    module_.value(module_.result(call, i)).name = module_.value(module_.result(apply, i)).name;
    rewriter_->replace(module_.result(apply, i), Ref::value(module_.result(call, i)));
  }
  if (const auto found = module_.op_trivia.find(apply.index()); found != module_.op_trivia.end()) {
    OpTrivia trivia = std::move(found->second);
    module_.op_trivia[call.index()] = std::move(trivia);
  }
  module_.erase(apply);
}

bool Selector::check_call(OpId call) {
  const OpId callee =
      module_.symbol(module_.attr(call, attr_slot(TemplateCall, "callee")).string());
  if (!callee.valid()) return true;
  const Verdict verdict = judge(call, callee);
  if (verdict.state != false) return true;
  diagnostics_
      .emit(Diag::LoweringTemplateContract, module_.location(call),
            {{"symbol", std::string(symbol_text(module_, callee))},
             {"detail", verdict.by_target || verdict.reason.ends_with(')')
                            ? verdict.reason + " is false"
                            : verdict.reason}})
      .notes.push_back({module_.location(callee), "the implementation is here"});
  return false;
}

}  // namespace

std::string_view outcome_name(TemplateChoice::Outcome outcome) {
  constexpr std::string_view kNames[] = {"chosen", "outranked", "rejected", "unknown"};
  return kNames[static_cast<size_t>(outcome)];
}

bool uses_templates(const Module& module, OpId root) {
  bool found = false;
  for_each_nested(module, root, [&](OpId op) {
    const OpKind kind = module.op(op).kind;
    found |= kind == TemplateApply || kind == TemplateCall || kind == TargetSubgroupSize;
  });
  return found;
}

bool select_templates(PassContext& context, OpId root, const SelectOptions& options) {
  return Selector(context, root, options).run();
}

}  // namespace loom
