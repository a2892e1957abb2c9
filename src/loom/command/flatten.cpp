#include "loom/command/flatten.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "loom/dialect/op_info.h"
#include "loom/facts/int_facts.h"
#include "loom/ir/clone.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"

namespace loom {
namespace {

// Programs that launch others twice, forty levels deep, must end in a diagnostic.
constexpr uint64_t kMaxOperations = uint64_t{1} << 24;
constexpr unsigned kCallee = attr_slot(OpKind::CommandProgramLaunch, "callee");

std::vector<OpId> launches_in(const Module& module, OpId program) {
  std::vector<OpId> launches;
  for_each_nested(module, program, [&](OpId id) {
    if (module.op(id).kind == OpKind::CommandProgramLaunch) launches.push_back(id);
  });
  return launches;
}

class Flattener {
 public:
  Flattener(Module& module, Diagnostics& diagnostics)
      : module_(module), diagnostics_(diagnostics) {}

  // Depth first over the launch graph with an explicit stack: callees are finished before callers.
  bool run(OpId root) {
    if (!enter(root)) return false;
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      if (frame.next == frame.launches.size()) {
        if (!inline_launches(frame)) return false;
        size_[frame.program.index()] = count_operations(frame.program);
        state_[frame.program.index()] = State::Done;
        stack_.pop_back();
        continue;
      }
      const OpId launch = frame.launches[frame.next++];
      const std::optional<OpId> callee = resolve(launch);
      if (!callee) return false;
      const State state = state_[callee->index()];
      if (state == State::Open) return report_cycle(launch, *callee);
      if (state == State::New && !enter(*callee)) return false;
    }
    return true;
  }

 private:
  enum class State : uint8_t { New, Open, Done };
  struct Frame {
    OpId program;
    std::vector<OpId> launches;
    size_t next = 0;
  };

  bool enter(OpId program) {
    if (state_[program.index()] == State::Done) return true;
    state_[program.index()] = State::Open;
    wrap_concurrent_control(program);
    stack_.push_back({program, launches_in(module_, program)});
    return true;
  }

  std::optional<OpId> resolve(OpId launch) {
    const std::string_view name = symbol_ref(module_, launch, kCallee);
    const OpId callee = module_.symbol(name);
    if (!callee.valid() || module_.op(callee).kind != OpKind::CommandProgramDef) {
      const OpId place = callee.valid() ? callee : launch;
      Diagnostic& diagnostic = diagnostics_.emit(
          Diag::SymbolUnresolvedProgram, module_.location(place), {{"symbol", std::string(name)}});
      if (callee.valid()) {
        diagnostic.notes.push_back({module_.location(launch), "launched here"});
      }
      return std::nullopt;
    }
    return callee;
  }

  bool report_cycle(OpId launch, OpId callee) {
    std::string cycle;
    std::vector<DiagNote> notes;
    size_t begin = 0;
    while (stack_[begin].program != callee) ++begin;
    for (size_t i = begin; i < stack_.size(); ++i) {
      cycle += fmt::format("@{} -> ", symbol_text(module_, stack_[i].program));
      if (i + 1 < stack_.size()) {
        const OpId step = stack_[i].launches[stack_[i].next - 1];
        notes.push_back(
            {module_.location(step),
             fmt::format("@{} launches @{} here", symbol_text(module_, stack_[i].program),
                         symbol_text(module_, stack_[i + 1].program))});
      }
    }
    cycle += fmt::format("@{}", symbol_text(module_, callee));
    diagnostics_.emit(Diag::LoweringRecursion, module_.location(launch), {{"cycle", cycle}}).notes =
        std::move(notes);
    return false;
  }

  // The regions of scf ops are ordered by themselves, but expanding one in place would make its
  // commands siblings of the concurrent region.
  void wrap_concurrent_control(OpId program) {
    std::vector<OpId> control;
    for_each_nested(module_, program, [&](OpId id) {
      const OpKind kind = module_.op(id).kind;
      const bool controls = kind == OpKind::ScfFor || kind == OpKind::ScfIf ||
                            kind == OpKind::ScfSwitch || kind == OpKind::ScfWhile;
      if (!controls) return;
      const OpId parent = parent_op(module_, id);
      if (module_.op(parent).kind == OpKind::CommandConcurrent &&
          module_.op(id).result_count == 0) {
        control.push_back(id);
      }
    });
    for (OpId id : control) {
      const OpId serial = make_serial(module_.location(id));
      module_.insert_before(id, serial);
      module_.detach(id);
      module_.append(module_.op_region(serial, 0), id);
    }
  }

  OpId make_serial(Location location) {
    const OpId serial =
        module_.create({.kind = OpKind::CommandSerial, .regions = 1, .location = location});
    module_.region(module_.op_region(serial, 0)).has_body = true;
    return serial;
  }

  uint64_t count_operations(OpId program) const {
    uint64_t count = 0;
    for_each_nested(module_, program, [&](OpId) { ++count; });
    return count;
  }

  bool report_too_large(OpId launch) {
    diagnostics_.emit(Diag::LoweringTooLarge, module_.location(launch),
                      {{"op", std::string(op_info(OpKind::CommandProgramLaunch).name)},
                       {"limit", fmt::format("{}", kMaxOperations)}});
    return false;
  }

  bool inline_launches(const Frame& frame) {
    for (OpId launch : frame.launches) {
      const OpId callee = *resolve(launch);
      if (!check_contract(launch, callee)) return false;
      created_ += size_[callee.index()];
      if (created_ > kMaxOperations) return report_too_large(launch);
      const RegionId body = module_.op_region(callee, 0);
      const OpId serial = make_serial(module_.location(launch));
      module_.insert_before(launch, serial);
      Cloner cloner(module_, module_);
      map_arguments(launch, callee, serial, cloner);
      const RegionId target = module_.op_region(serial, 0);
      for_each_op(module_, body, [&](OpId id) {
        if (module_.op(id).kind == OpKind::CommandReturn) return;
        const OpId copy = cloner.clone(id);
        module_.append(target, copy);
      });
      module_.erase(launch);
    }
    return true;
  }

  // Specializations that the callee's contract speaks of are passed through an assume, so that the
  // contract's facts hold inside the inlined body.
  void map_arguments(OpId launch, OpId callee, OpId serial, Cloner& cloner) {
    const RegionId body = module_.op_region(callee, 0);
    const std::vector<ValueId> formals(module_.args(body).begin(), module_.args(body).end());
    const std::vector<ValueId> actuals(module_.operands(launch).begin(),
                                       module_.operands(launch).end());
    for (size_t i = 0; i < formals.size(); ++i) cloner.map(formals[i], actuals[i]);
    for (ValueId formal : formals) assume_contract(formal, callee, serial, cloner);
  }

  void assume_contract(ValueId formal, OpId callee, OpId serial, Cloner& cloner) {
    const TypeId type = module_.type_of(formal);
    if (!module_.types.is_scalar(type)) return;
    std::vector<Predicate> predicates;
    for (const Predicate& predicate : where_predicates(module_, callee)) {
      // A relation to another argument would need both as operands of one assume.
      bool alone = predicate.args[0].value == formal;
      for (unsigned i = 1; i < predicate.arity(); ++i) alone &= !predicate.args[i].is_value();
      if (alone) predicates.push_back(predicate);
    }
    if (predicates.empty()) return;
    const ValueId actual = cloner.map(formal);
    for (Predicate& predicate : predicates) predicate.args[0] = PredicateArg::of(actual);
    const bool address = is_address(module_.types[type].element);
    const AttrId attr = module_.attrs.intern(Attr::predicate_list(predicates));
    const uint32_t group = 1;
    const OpId assume =
        module_.create({.kind = address ? OpKind::IndexAssume : OpKind::ScalarAssume,
                        .operands = {&actual, 1},
                        .groups = {&group, 1},
                        .results = {&type, 1},
                        .attrs = {&attr, 1},
                        .location = module_.location(serial)});
    module_.append(module_.op_region(serial, 0), assume);
    cloner.map(formal, module_.result(assume));
  }

  std::optional<int64_t> constant_of(ValueId value) const {
    const OpId op = module_.defining_op(value);
    if (!op.valid() || module_.op(op).kind != OpKind::IndexConstant) return std::nullopt;
    return module_.attr(op, attr_slot(OpKind::IndexConstant, "value")).value();
  }

  bool check_contract(OpId launch, OpId callee) {
    const auto formals = module_.args(module_.op_region(callee, 0));
    const auto actuals = module_.operands(launch);
    for (const Predicate& predicate : where_predicates(module_, callee)) {
      for (size_t i = 0; i < formals.size(); ++i) {
        if (predicate.args[0].value != formals[i]) continue;
        const std::optional<int64_t> exact = constant_of(actuals[i]);
        if (exact && contradicts(predicate, *exact)) {
          report_contract(launch, callee, i, *exact, predicate);
          return false;
        }
      }
    }
    return true;
  }

  // Relations to other arguments stay undecided here.
  static bool contradicts(const Predicate& predicate, int64_t value) {
    IntFacts args[3] = {IntFacts::exactly(value), {}, {}};
    for (unsigned i = 1; i < predicate.arity(); ++i) {
      if (predicate.args[i].is_value()) return false;
      args[i] = IntFacts::exactly(predicate.args[i].literal);
    }
    return holds(predicate.kind, args) == false;
  }

  void report_contract(OpId launch, OpId callee, size_t argument, int64_t value,
                       const Predicate& predicate) {
    const ValueId formal = module_.args(module_.op_region(callee, 0))[argument];
    diagnostics_
        .emit(Diag::TypeContract, module_.location(launch),
              {{"subject", fmt::format("argument %{} = {} of @{}", module_.name_of(formal), value,
                                       symbol_text(module_, callee))},
               {"contract", predicate_text(module_, predicate)},
               {"repair", "pass a value that satisfies the contract"}})
        .notes.push_back({module_.location(callee), "the contract is stated here"});
  }

  Module& module_;
  Diagnostics& diagnostics_;
  std::vector<Frame> stack_;
  std::unordered_map<uint32_t, State> state_;
  std::unordered_map<uint32_t, uint64_t> size_;  // operations in a finished program
  uint64_t created_ = 0;                         // operations cloned so far, about
};

}  // namespace

bool flatten_programs(Module& module, std::span<const OpId> roots, Diagnostics& diagnostics) {
  Flattener flattener(module, diagnostics);
  for (OpId root : roots) {
    if (!flattener.run(root)) return false;
  }
  return true;
}

}  // namespace loom
