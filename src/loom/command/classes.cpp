#include "loom/command/classes.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <unordered_map>

#include "loom/base/hash.h"
#include "loom/command/kernel_copy.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/pass/constants.h"

namespace loom {
namespace {

using enum OpKind;

class DecisionFinder {
 public:
  DecisionFinder(const Module& module, OpId kernel)
      : module_(module), numbers_(module, body_of(module, kernel), found_.values) {
    uint32_t count = 0;
    for_each_nested(module, kernel, [&](OpId op) { visit(op, count++); });
  }
  KernelDecisions take() { return std::move(found_); }

 private:
  static RegionId body_of(const Module& module, OpId kernel) {
    return module.op_region(kernel, region_slot(KernelDef, "body"));
  }

  void visit(OpId op, uint32_t place) {
    const OpKind kind = module_.op(op).kind;
    if (kind == ScfIf) use(op, place, 0);
    if (kind == ScfSwitch) {
      const auto keys = module_.attr(op, attr_slot(ScfSwitch, "keys")).ints;
      use(op, place, 0, {keys.begin(), keys.end()});
    }
    if (kind == ScfFor && module_.has_attr(op, attr_slot(ScfFor, "unroll"))) {
      for (uint32_t operand = 0; operand < 3; ++operand) use(op, place, operand);
    }
    if (kind == TemplateApply) apply(op);
  }

  void use(OpId op, uint32_t place, uint32_t operand, std::vector<int64_t> keys = {}) {
    const ValueId value = module_.operand(op, operand);
    if (exact_value(module_, value)) return;
    if (const auto number = numbers_.number(value)) {
      found_.uses.push_back({place, operand, *number, std::move(keys)});
    }
  }

  void apply(OpId op) {
    const StringId family = module_.attr(op, attr_slot(TemplateApply, "family")).string();
    for (OpId id = module_.region(module_.body()).first; id.valid(); id = module_.op(id).next) {
      const OpKind kind = module_.op(id).kind;
      if (kind != TemplateDef && kind != TemplateUkernel) continue;
      if (module_.attr(id, attr_slot(TemplateDef, "family")).string() != family) continue;
      for (const Predicate& predicate : where_predicates(module_, id)) condition(op, id, predicate);
    }
  }

  void condition(OpId op, OpId implementation, const Predicate& predicate) {
    const RegionId body = module_.op_region(implementation, 0);
    KernelDecisions::Condition condition{predicate.kind, {}};
    bool open = false;
    for (unsigned i = 0; i < predicate.arity(); ++i) {
      if (!predicate.args[i].is_value()) {
        condition.terms[i].literal = predicate.args[i].literal;
        continue;
      }
      const Value& argument = module_.value(predicate.args[i].value);
      const auto operands = module_.operands(op);
      if (argument.kind != ValueKind::Argument || argument.owner != body.index() ||
          argument.index >= operands.size()) {
        return;
      }
      const auto number = numbers_.number(operands[argument.index]);
      if (!number) return;
      open |= !exact_value(module_, operands[argument.index]);
      condition.terms[i] = {true, *number, 0};
    }
    if (open) found_.conditions.push_back(condition);
  }

  const Module& module_;
  KernelDecisions found_;
  LaunchNumbers numbers_;
};

// One way for the decisions of an entry to come out.
struct Outcome {
  uint32_t entry = 0;             // before the split
  std::vector<uint64_t> decided;  // a word a use, then one a condition
  std::vector<ScalarValue> folded;
  uint64_t sites = 0;
  bool known = true;  // every use has a value
};

class Classifier {
 public:
  Classifier(PassContext& context, const EntryTable& entries, uint32_t limit, PreparedPlan& plan)
      : context_(context),
        module_(context.module()),
        entries_(entries),
        limit_(limit),
        plan_(plan) {}

  std::optional<Classification> run() {
    if (!find_decisions()) return std::nullopt;
    size_t sites = 0;
    for (const PreparedProgram& program : plan_.programs) sites += program.commands.size();
    outcome_of_site_.reserve(sites);
    for (const PreparedProgram& program : plan_.programs) count_sites(program);
    choose_remainders();
    std::vector<EntryRequirement> old = std::move(plan_.entries);
    plan_.entries.clear();
    next_ = 0;
    for (PreparedProgram& program : plan_.programs) number(program, old);
    for (size_t i = 0; i < result_.classes.size(); ++i) finish(result_.classes[i]);
    return std::move(result_);
  }

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  bool find_decisions() {
    std::map<OpId, uint32_t> rows;
    for (uint32_t entry = 0; entry < plan_.entries.size(); ++entry) {
      const OpId kernel = entries_.kernel(entry);
      const auto [row, fresh] =
          rows.try_emplace(kernel, static_cast<uint32_t>(result_.decisions.size()));
      if (fresh) {
        auto decisions = kernel_decisions(context_, kernel);
        if (!decisions) return false;
        result_.decisions.push_back(std::move(*decisions));
      }
      decisions_of_entry_.push_back(row->second);
    }
    return true;
  }

  const KernelDecisions& decisions(uint32_t entry) const {
    return result_.decisions[decisions_of_entry_[entry]];
  }

  void count_sites(const PreparedProgram& program) {
    for (const DispatchCommand& command : program.commands) {
      const uint32_t outcome = outcome_of(program, command);
      ++outcomes_[outcome].sites;
      outcome_of_site_.push_back(outcome);
    }
  }

  // The outcome of a site; only a new one allocates.
  uint32_t outcome_of(const PreparedProgram& program, const DispatchCommand& command) {
    const uint32_t entry = program.slots[command.slot];
    const KernelDecisions& kernel = decisions(entry);
    const std::span<const Argument> arguments =
        std::span(program.arguments).subspan(command.argument_begin, command.argument_count);
    decided_.clear();
    bool known = true;
    if (!kernel.empty()) {
      evaluate_launch(kernel.values, arguments, results_);
      for (const KernelDecisions::Use& use : kernel.uses) {
        const auto value = decided_by(use);
        known = known && value.has_value();
        decided_.push_back(value ? value->bits : 0);
      }
      for (const auto& condition : kernel.conditions) decided_.push_back(outcome(condition));
    }
    uint64_t hash = hash_combine(entry, known);
    for (const uint64_t word : decided_) hash = hash_combine(hash, word);
    const auto [begin, end] = by_hash_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      const Outcome& candidate = outcomes_[it->second];
      if (candidate.entry == entry && candidate.known == known && candidate.decided == decided_) {
        return it->second;
      }
    }
    Outcome fresh{entry, decided_, {}, 0, known};
    for (const KernelDecisions::Use& use : kernel.uses) {
      if (known) fresh.folded.push_back(*decided_by(use));
    }
    outcomes_.push_back(std::move(fresh));
    by_hash_.emplace(hash, static_cast<uint32_t>(outcomes_.size() - 1));
    return static_cast<uint32_t>(outcomes_.size() - 1);
  }

  // What the use is at the site that was evaluated; for all values that no case of a switch has,
  // the least such.
  std::optional<ScalarValue> decided_by(const KernelDecisions::Use& use) const {
    const auto& value = results_[use.value];
    if (!value || use.keys.empty()) return value;
    if (std::ranges::binary_search(use.keys, as_signed(*value))) return value;
    int64_t other = 0;
    while (std::ranges::binary_search(use.keys, other)) ++other;
    return from_bits(value->kind, static_cast<uint64_t>(other));
  }

  // 1 where it holds, 0 where it does not, 2 where that is unknown.
  uint64_t outcome(const KernelDecisions::Condition& condition) const {
    if (predicate_info(condition.kind).on_float) {
      const auto& value = results_[condition.terms[0].value];
      if (!value) return 2;
      const auto kinds = holds(condition.kind, FloatFacts::exactly(to_double(*value)));
      return kinds ? static_cast<uint64_t>(*kinds) : 2;
    }
    IntFacts terms[3];
    for (unsigned i = 0; i < 3; ++i) {
      const auto& term = condition.terms[i];
      if (!term.is_value) {
        terms[i] = IntFacts::exactly(term.literal);
        continue;
      }
      if (!results_[term.value]) return 2;
      terms[i] = IntFacts::exactly(as_signed(*results_[term.value]));
    }
    const auto holds_here = holds(condition.kind, terms);
    return holds_here ? static_cast<uint64_t>(*holds_here) : 2;
  }

  // Which outcomes have a class of their own. The choice does not depend on the order of sites.
  void choose_remainders() {
    shared_.assign(outcomes_.size(), false);
    if (limit_ == 0) return;
    std::vector<std::vector<uint32_t>> of_entry(plan_.entries.size());
    for (uint32_t i = 0; i < outcomes_.size(); ++i) of_entry[outcomes_[i].entry].push_back(i);
    for (auto& list : of_entry) {
      if (list.size() <= limit_) continue;
      std::ranges::sort(list, [&](uint32_t a, uint32_t b) {
        const Outcome &x = outcomes_[a], &y = outcomes_[b];
        return x.sites != y.sites ? x.sites > y.sites : x.decided < y.decided;
      });
      for (size_t i = limit_ - 1; i < list.size(); ++i) shared_[list[i]] = true;
    }
  }

  void number(PreparedProgram& program, const std::vector<EntryRequirement>& old) {
    const std::vector<uint32_t> slots = std::move(program.slots);
    program.slots.clear();
    slot_of_class_.assign(result_.classes.size(), kNone);
    for (DispatchCommand& command : program.commands) {
      const uint32_t number = class_of(outcome_of_site_[next_++], old);
      if (slot_of_class_.size() <= number) slot_of_class_.resize(number + 1, kNone);
      if (slot_of_class_[number] == kNone) {
        slot_of_class_[number] = static_cast<uint32_t>(program.slots.size());
        program.slots.push_back(number);
      }
      command.slot = slot_of_class_[number];
      include(program, command, result_.classes[number]);
    }
  }

  uint32_t class_of(uint32_t outcome, const std::vector<EntryRequirement>& old) {
    const uint32_t entry = outcomes_[outcome].entry;
    class_of_outcome_.resize(outcomes_.size(), kNone);
    remainder_of_entry_.resize(old.size(), kNone);
    uint32_t& number = shared_[outcome] ? remainder_of_entry_[entry] : class_of_outcome_[outcome];
    if (number != kNone) return number;
    number = static_cast<uint32_t>(result_.classes.size());
    RequestClass fresh{entries_.kernel(entry), old[entry].workgroup_size, {}, {}};
    if (!shared_[outcome]) fresh.folded = outcomes_[outcome].folded;
    result_.classes.push_back(std::move(fresh));
    result_.decisions_of.push_back(decisions_of_entry_[entry]);
    plan_.entries.push_back(old[entry]);
    return number;
  }

  void include(const PreparedProgram& program, const DispatchCommand& command,
               RequestClass& into) const {
    const bool first = into.arguments.empty();
    if (first) into.arguments.resize(command.argument_count);
    if (module_.op(into.kernel).kind != KernelDef) return;
    const auto args = module_.args(module_.op_region(into.kernel, region_slot(KernelDef, "body")));
    for (uint32_t i = 0; i < command.argument_count; ++i) {
      const Argument& argument = program.arguments[command.argument_begin + i];
      SharedArgument& shared = into.arguments[i];
      if (argument.kind == Argument::Kind::Buffer) {
        include(program, argument.buffer, first, shared);
        continue;
      }
      const ScalarKind kind = module_.types[module_.type_of(args[i])].element;
      const auto value = from_bits(kind, argument.value);
      const IntFacts facts = is_float(kind) ? IntFacts() : IntFacts::exactly(as_signed(value));
      shared.facts = first ? facts : join(shared.facts, facts);
      if (is_float(kind)) {
        shared.floats = join(shared.floats, FloatFacts::exactly(to_double(value)));
      }
      if (first) shared.bits = argument.value;
      if (shared.bits != argument.value) shared.bits.reset();
    }
  }

  static void include(const PreparedProgram& program, const BufferRef& ref, bool first,
                      SharedArgument& shared) {
    const uint64_t alignment = alignment_of(program, ref);
    const bool fixed = ref.storage == StorageClass::Fixed;
    if (first) {
      shared.alignment = alignment;
      shared.fixed = fixed;
      if (ref.length != BufferRef::kWholeBuffer) shared.length = ref.length;
      return;
    }
    shared.alignment = std::min(shared.alignment, alignment);
    shared.fixed = shared.fixed && fixed;
    if (shared.length != ref.length) shared.length.reset();
  }

  // Of the first byte, as far as every materialization keeps it.
  static uint64_t alignment_of(const PreparedProgram& program, const BufferRef& ref) {
    uint64_t base = 1;
    if (ref.storage == StorageClass::Fixed) base = program.parameters[ref.index].alignment;
    if (ref.storage == StorageClass::Transient) base = program.transients[ref.index].alignment;
    return ref.offset == 0 ? base : std::min(base, uint64_t{1} << std::countr_zero(ref.offset));
  }

  static void finish(RequestClass& done) {
    for (SharedArgument& argument : done.arguments) argument.facts = argument.facts.normalized();
  }

  PassContext& context_;
  const Module& module_;
  const EntryTable& entries_;
  const uint32_t limit_;
  PreparedPlan& plan_;
  Classification result_;
  std::vector<uint32_t> decisions_of_entry_;
  std::vector<Outcome> outcomes_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
  std::vector<uint32_t> outcome_of_site_;  // over all programs, in order
  size_t next_ = 0;
  std::vector<bool> shared_;  // by outcome: served by the remainder
  std::vector<uint32_t> class_of_outcome_;
  std::vector<uint32_t> remainder_of_entry_;
  std::vector<uint32_t> slot_of_class_;
  std::vector<uint64_t> decided_;
  LaunchResults results_;
};

}  // namespace

std::optional<KernelDecisions> kernel_decisions(PassContext& context, OpId kernel) {
  const Module& module = context.module();
  if (module.op(kernel).kind != KernelDef) return KernelDecisions();
  KernelDecisions found = DecisionFinder(module, kernel).take();
  if (!calls_functions(module, kernel)) return found;
  Module copy = rooted_copy(module, kernel);
  const OpId apart = copy.region(copy.body()).first;
  PassContext inside(copy, context.diagnostics(), &context.workspace());
  if (!enter_functions(inside, apart)) return std::nullopt;
  KernelDecisions entered = DecisionFinder(copy, apart).take();
  // Functions that decide nothing stay functions.
  if (entered.uses.size() == found.uses.size() &&
      entered.conditions.size() == found.conditions.size()) {
    return found;
  }
  entered.entered = true;
  return entered;
}

std::optional<Classification> classify(PassContext& context, const EntryTable& entries,
                                       uint32_t limit, PreparedPlan& plan) {
  return Classifier(context, entries, limit, plan).run();
}

}  // namespace loom
