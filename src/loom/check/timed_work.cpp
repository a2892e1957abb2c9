#include "loom/check/timed_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "loom/check/case_host.h"
#include "loom/dialect/op_info.h"

namespace loom::check {
namespace {

using enum OpKind;

constexpr uint64_t kRingBytes = uint64_t{32} << 20;
constexpr uint64_t kMostSets = uint64_t{1} << 14;

struct RecordedLaunch {
  OpId op;
  std::vector<CaseValue> operands;
};

// Runs a case without its launches and expectations, and remembers the launches.
class RecordingHost final : public SampleHost {
 public:
  RecordingHost(const RunContext& context, const InterpOptions& interp, const Case& of,
                uint64_t ordinal, Arena& arena, SampleResult& result,
                std::vector<RecordedLaunch>& launches)
      : SampleHost(context, interp, of, ordinal, arena, result),
        module_(*context.module),
        launches_(launches) {}

  bool check(OpId op, std::span<const CaseValue> operands,
             std::vector<CaseValue>& results) override {
    switch (module_.op(op).kind) {
      case CheckExpect:
      case CheckExpectBitwise:
      case CheckExpectClose:
      case CheckExpectEqual:
      case CheckExpectShape:
      case CheckFileWriteNpy:
        return true;
      default:
        return SampleHost::check(op, operands, results);
    }
  }
  std::optional<bool> launch(OpId op, std::span<const CaseValue> operands) override {
    launches_.push_back({op, {operands.begin(), operands.end()}});
    return true;
  }

 private:
  const Module& module_;
  std::vector<RecordedLaunch>& launches_;
};

// Part of one tensor of a recording.
struct Window {
  size_t tensor = 0;  // among those that the launches use
  uint64_t offset = 0;
  uint64_t bytes = 0;

  friend bool operator==(const Window&, const Window&) = default;
};

// The tensors that launches use, as they are before the first launch.
class Inputs {
 public:
  Inputs(std::span<const std::span<std::byte>> tensors) : all_(tensors) {}

  Window window(std::span<const std::byte> storage) {
    const auto inside = [&](std::span<const std::byte> tensor) {
      return storage.data() >= tensor.data() &&
             storage.data() + storage.size() <= tensor.data() + tensor.size();
    };
    const auto found = std::ranges::find_if(all_, inside);
    const auto place = static_cast<size_t>(found - all_.begin());
    auto used = std::ranges::find(used_, place);
    if (used == used_.end()) {
      used_.push_back(place);
      used = used_.end() - 1;
    }
    return {static_cast<size_t>(used - used_.begin()),
            static_cast<uint64_t>(storage.data() - found->data()), storage.size()};
  }
  size_t count() const { return used_.size(); }
  std::span<const std::byte> content(size_t tensor) const { return all_[used_[tensor]]; }
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const size_t place : used_) sum += all_[place].size();
    return sum;
  }

 private:
  std::span<const std::span<std::byte>> all_;
  std::vector<size_t> used_;
};

// Copies of the inputs. Sides of a comparison may share one.
struct Ring {
  Arena memory;
  std::vector<std::vector<std::span<std::byte>>> sets;  // by tensor
};

std::shared_ptr<Ring> make_ring(const Inputs& inputs, uint64_t wanted) {
  const uint64_t bytes = std::max<uint64_t>(inputs.bytes(), 1);
  const uint64_t sets =
      wanted != 0 ? wanted : std::clamp((kRingBytes + bytes - 1) / bytes, uint64_t{1}, kMostSets);
  auto ring = std::make_shared<Ring>();
  for (uint64_t i = 0; i < sets; ++i) {
    auto& set = ring->sets.emplace_back();
    for (size_t tensor = 0; tensor < inputs.count(); ++tensor) {
      const auto taken = ring->memory.take(inputs.content(tensor).size());
      if (!taken) return nullptr;
      std::ranges::copy(inputs.content(tensor), taken->begin());
      set.push_back(*taken);
    }
  }
  return ring;
}

// Which tensors a round of launches changes although it reads them first.
class Changes {
 public:
  explicit Changes(size_t tensors) : touched_(tensors), changed_(tensors) {}
  void see(const Window& window, Access access) {
    const bool reads = access == Access::Read || access == Access::ReadWrite;
    const bool writes = access == Access::Write || access == Access::ReadWrite;
    // A partial write leaves elements that a later read sees; only whole tensors count as written.
    if (!touched_[window.tensor]) touched_[window.tensor] = reads ? kRead : writes ? kWritten : 0;
    if (writes && touched_[window.tensor] == kRead) changed_[window.tensor] = true;
  }
  std::vector<size_t> tensors() const {
    std::vector<size_t> list;
    for (size_t i = 0; i < changed_.size(); ++i) {
      if (changed_[i]) list.push_back(i);
    }
    return list;
  }

 private:
  static constexpr uint8_t kRead = 1, kWritten = 2;
  std::vector<uint8_t> touched_;
  std::vector<bool> changed_;
};

// --- the whole case -----------------------------------------------------------------------------

class CaseWork final : public TimedWork {
 public:
  CaseWork(const RunContext& context, const Case& of, uint64_t ordinal)
      : runner_(context), case_(of), ordinal_(ordinal) {}
  bool run(uint64_t count, Diagnostics& diagnostics) override {
    for (uint64_t i = 0; i < count; ++i) {
      const SampleResult result = runner_.run(case_, ordinal_);
      work = result.work;
      if (result.outcome == Outcome::Passed) continue;
      for (const Diagnostic& d : result.diagnostics.all()) {
        diagnostics.emit_as(d.severity, d.id, d.location, d.params).notes = d.notes;
      }
      return false;
    }
    return true;
  }

 private:
  SampleRunner runner_;
  const Case& case_;
  uint64_t ordinal_;
};

// --- launches -----------------------------------------------------------------------------------

// What one launch, or a row of kernel launches, needs for every set: a program and its bindings.
struct Unit {
  PreparedPlan plan;                 // of kernels
  std::unique_ptr<Program> own;      // materialized from it
  const Program* program = nullptr;  // `own`, or one of the launcher's
  std::vector<Window> bindings;      // by source ordinal
  std::vector<std::string> kernels;  // of its commands
};

class DispatchWork final : public TimedWork {
 public:
  DispatchWork(const RunContext& context, const Case& of, uint64_t ordinal)
      : context_(context), tables_(*context.module), case_(of), ordinal_(ordinal) {}

  bool prepare(CpuLauncher* launcher, const TimedWorkOptions& options, const DispatchWork* like,
               Diagnostics& diagnostics) {
    if (!record(diagnostics)) return false;
    Inputs inputs(arena_.tensors());
    if (launcher != nullptr ? !make_units(*launcher, inputs, diagnostics)
                            : !note_launches(inputs)) {
      return false;
    }
    const bool same = like != nullptr && like->ring_ && shares(*like, inputs);
    ring_ = same ? like->ring_ : make_ring(inputs, launcher == nullptr ? 1 : options.ring);
    if (!ring_) return no_memory(inputs.bytes(), diagnostics);
    for (size_t i = 0; i < inputs.count(); ++i) {
      const auto content = inputs.content(i);
      contents_.emplace_back(content.begin(), content.end());
    }
    ring = ring_->sets.size();
    if (!changed_.empty()) most_batch = ring;
    set_bytes = inputs.bytes();
    return launcher == nullptr || bind(diagnostics);
  }

  bool run(uint64_t count, Diagnostics& diagnostics) override {
    for (uint64_t i = 0; i < count; ++i) {
      if (units_.empty() ? !interpret(diagnostics) : !issue(diagnostics)) return false;
      if (++next_ == ring) next_ = 0;
    }
    used_ = std::min(used_ + count, ring);
    return true;
  }

  bool profile(uint64_t count, std::vector<ProfiledDispatch>& dispatches,
               Diagnostics& diagnostics) override {
    if (units_.empty()) return run(count, diagnostics);
    const Trace::Clock::time_point start = Trace::Clock::now();
    for (uint64_t operation = 0; operation < count; ++operation) {
      for (size_t i = 0; i < units_.size(); ++i) {
        const std::chrono::nanoseconds before = Trace::Clock::now() - start;
        Trace trace;
        if (!invocations_[next_ * units_.size() + i]->issue_traced(trace, diagnostics))
          return false;
        for (DispatchEvent event : trace.events()) {
          event.begin += static_cast<uint64_t>(before.count());
          event.end += static_cast<uint64_t>(before.count());
          dispatches.push_back({units_[i].kernels[event.command], operation, next_, event});
        }
      }
      if (++next_ == ring) next_ = 0;
    }
    used_ = std::min(used_ + count, ring);
    return true;
  }

  void restore() override {
    for (uint64_t back = 1; back <= used_; ++back) {
      const auto& set = ring_->sets[(next_ + ring - back) % ring];
      for (const size_t tensor : changed_)
        std::ranges::copy(contents_[tensor], set[tensor].begin());
    }
    used_ = 0;
  }

 private:
  bool record(Diagnostics& diagnostics) {
    SampleResult result;
    InterpOptions interp = context_.interp;
    interp.tables = &tables_;
    RecordingHost host(context_, interp, case_, ordinal_, arena_, result, launches_);
    if (!run_case(*context_.module, case_.op, host, interp, result.diagnostics)) {
      for (const Diagnostic& d : result.diagnostics.all()) {
        diagnostics.emit_as(d.severity, d.id, d.location, d.params).notes = d.notes;
      }
      return false;
    }
    work = host.work();
    if (!launches_.empty()) return true;
    diagnostics.emit(Diag::CheckNotMeasured, context_.module->location(case_.op),
                     {{"benchmark", "@" + std::string(case_.name)},
                      {"detail", "the case launches nothing"},
                      {"repair", "time it with --measure=case_end_to_end"}});
    return false;
  }

  bool no_memory(uint64_t bytes, Diagnostics& diagnostics) const {
    diagnostics.emit(Diag::RunOutOfMemory, {},
                     {{"bytes", std::to_string(bytes)}, {"what", "sets of inputs"}});
    return false;
  }

  bool shares(const DispatchWork& like, const Inputs& inputs) const {
    if (like.contents_.size() != inputs.count()) return false;
    for (size_t i = 0; i < inputs.count(); ++i) {
      if (!std::ranges::equal(like.contents_[i], inputs.content(i))) return false;
    }
    return true;
  }

  // What is known of a launch argument; everything where nothing is.
  Access access_of(OpId op, size_t argument) const {
    const Module& module = *context_.module;
    if (module.op(op).kind != KernelLaunch) return Access::ReadWrite;
    const OpId kernel = module.symbol(symbol_ref(module, op, attr_slot(KernelLaunch, "callee")));
    const auto facets = module.access_facets.find(kernel.index());
    if (facets == module.access_facets.end() || argument >= facets->second.size()) {
      return Access::ReadWrite;
    }
    return facets->second[argument];
  }

  bool note_launches(Inputs& inputs) {
    for (const RecordedLaunch& launch : launches_) {
      auto& windows = windows_.emplace_back();
      for (const CaseValue& value : launch.operands) {
        const auto* storage = std::get_if<std::span<std::byte>>(&value);
        windows.push_back(storage != nullptr ? inputs.window(*storage) : Window());
      }
    }
    for (size_t i = 0; i < inputs.count(); ++i) changed_.push_back(i);
    return true;
  }

  bool make_units(CpuLauncher& launcher, Inputs& inputs, Diagnostics& diagnostics) {
    std::vector<std::pair<Window, Access>> seen;
    bool row_is_open = false;
    for (const RecordedLaunch& launch : launches_) {
      const auto resolved = launcher.resolve(launch.op, launch.operands, diagnostics);
      if (!resolved) return false;
      std::vector<Window> windows;
      for (const auto& storage : resolved->storage) windows.push_back(inputs.window(storage));
      if (resolved->program != nullptr) {
        units_.push_back({{}, nullptr, resolved->program, windows, resolved->kernels});
        for (const Window& window : windows) seen.emplace_back(window, Access::ReadWrite);
        row_is_open = false;
        continue;
      }
      if (!row_is_open) start_row();
      row_is_open = true;
      units_.back().kernels.emplace_back(
          symbol_ref(*context_.module, launch.op, attr_slot(KernelLaunch, "callee")));
      add_kernel(units_.back(), *resolved, windows);
      for (size_t i = 0; i < resolved->arguments.size(); ++i) {
        if (resolved->arguments[i].kind != Argument::Kind::Buffer) continue;
        seen.emplace_back(windows[resolved->arguments[i].buffer.index], access_of(launch.op, i));
      }
    }
    Changes changes(inputs.count());
    for (const auto& [window, access] : seen) changes.see(window, access);
    changed_ = changes.tensors();
    return materialize(launcher, diagnostics);
  }

  void start_row() {
    Unit& unit = units_.emplace_back();
    PreparedProgram& program = unit.plan.programs.emplace_back();
    program.symbol = "launches";
    program.schedule.push_back({ScheduleNode::Kind::Serial, 0, 1});
    entries_.emplace_back();
  }

  // Adds a launch to the row of kernels that is the last unit.
  void add_kernel(Unit& unit, const CpuLauncher::Resolved& launch,
                  std::span<const Window> windows) {
    PreparedProgram& program = unit.plan.programs[0];
    std::vector<EntryAddress>& entries = entries_.back();
    const auto address = reinterpret_cast<EntryAddress>(launch.code->entry());
    const auto known = std::ranges::find(entries, address);
    const auto slot = static_cast<uint32_t>(known - entries.begin());
    if (known == entries.end()) {
      entries.push_back(address);
      program.slots.push_back(slot);
      unit.plan.entries.push_back({.symbol = fmt::format("kernel{}", slot)});
      std::copy_n(launch.shape.size, 3, unit.plan.entries.back().workgroup_size.begin());
    }
    DispatchCommand command;
    command.slot = slot;
    command.argument_begin = static_cast<uint32_t>(program.arguments.size());
    command.argument_count = static_cast<uint32_t>(launch.arguments.size());
    std::copy_n(launch.shape.count, 3, command.count.begin());
    for (Argument argument : launch.arguments) {
      if (argument.kind == Argument::Kind::Buffer) {
        argument.buffer.index = binding(unit, windows[argument.buffer.index]);
      }
      program.arguments.push_back(argument);
    }
    const auto node = static_cast<uint32_t>(program.schedule.size());
    program.schedule.push_back(
        {ScheduleNode::Kind::Command, static_cast<uint32_t>(program.commands.size()), node + 1});
    program.schedule[0].end = node + 1;
    program.commands.push_back(command);
  }

  static uint32_t binding(Unit& unit, const Window& window) {
    const auto known = std::ranges::find(unit.bindings, window);
    const auto row = static_cast<uint32_t>(known - unit.bindings.begin());
    if (known == unit.bindings.end()) {
      PreparedProgram& program = unit.plan.programs[0];
      unit.bindings.push_back(window);
      program.roots.push_back(fmt::format("tensor{}", row));
      program.bindings.push_back({row, program.roots.back()});
    }
    return row;
  }

  bool materialize(CpuLauncher& launcher, Diagnostics& diagnostics) {
    size_t row = 0;
    for (Unit& unit : units_) {
      if (unit.program != nullptr) continue;
      unit.own = launcher.device().materialize(
          {{unit.plan, unit.plan.programs[0]}, &no_parameters_, entries_[row++], {}, {}, {}},
          diagnostics);
      if (!unit.own) return false;
      unit.program = unit.own.get();
    }
    return true;
  }

  // One invocation for every set and unit, with its storage bound.
  bool bind(Diagnostics& diagnostics) {
    for (const auto& set : ring_->sets) {
      for (const Unit& unit : units_) {
        auto invocation = unit.program->make_invocation();
        if (!invocation) return no_memory(unit.program->slab().bytes, diagnostics);
        for (const Program::Binding& binding : unit.program->bindings()) {
          const Window& window = unit.bindings[binding.ordinal];
          const auto storage = set[window.tensor].subspan(window.offset, window.bytes);
          if (!invocation->bind(binding.ordinal, storage, diagnostics)) return false;
        }
        invocations_.push_back(std::move(invocation));
      }
    }
    return true;
  }

  bool issue(Diagnostics& diagnostics) {
    const size_t first = next_ * units_.size();
    for (size_t i = 0; i < units_.size(); ++i) {
      if (!invocations_[first + i]->issue(diagnostics)) return false;
    }
    return true;
  }

  bool interpret(Diagnostics& diagnostics) {
    const Module& module = *context_.module;
    InterpOptions interp = context_.interp;
    interp.tables = &tables_;
    const ParameterSet none;
    const ParameterSet& parameters = context_.parameters != nullptr ? *context_.parameters : none;
    const auto supply = [&](std::string_view root, std::string_view key, uint64_t bytes) {
      return parameters.bytes_of(root, key, bytes, diagnostics);
    };
    for (size_t i = 0; i < launches_.size(); ++i) {
      const RecordedLaunch& launch = launches_[i];
      const bool kernel = module.op(launch.op).kind == KernelLaunch;
      const size_t first =
          operand_group(module, launch.op, 0).size();  // workload, or specializations
      const std::string_view symbol =
          kernel ? symbol_ref(module, launch.op, attr_slot(KernelLaunch, "callee"))
                 : symbol_ref(module, launch.op, attr_slot(CommandProgramLaunch, "callee"));
      const auto formals = module.args(
          module.op_region(module.symbol(symbol), kernel ? region_slot(KernelDef, "body")
                                                         : region_slot(CommandProgramDef, "body")));
      std::vector<ScalarValue> scalars;
      std::vector<InterpArgument> arguments;
      std::vector<InterpStorage> storages;
      for (size_t k = 0; k < launch.operands.size(); ++k) {
        const auto* lanes = std::get_if<LaneValues>(&launch.operands[k]);
        if (k < first) {
          scalars.push_back(lanes->at(0));
        } else if (lanes != nullptr) {
          arguments.emplace_back(*lanes);
        } else {
          const Window& window = windows_[i][k];
          storages.push_back({kernel ? fmt::format("tensor{}", window.tensor)
                                     : std::string(module.name_of(formals[k])),
                              ring_->sets[0][window.tensor].subspan(window.offset, window.bytes)});
          arguments.emplace_back(storages.back());
        }
      }
      if (kernel ? !run_kernel(module, symbol, scalars, arguments, interp, diagnostics)
                 : !run_program(module, symbol, scalars, storages, supply, interp, diagnostics)) {
        return false;
      }
    }
    return true;
  }

  const RunContext& context_;
  InterpTables tables_;
  const Case& case_;
  uint64_t ordinal_;
  Arena arena_;  // of the recording
  std::vector<RecordedLaunch> launches_;
  std::vector<std::vector<Window>> windows_;        // interpreted: by launch and operand
  std::vector<std::vector<std::byte>> contents_;    // of the tensors before a round
  std::vector<size_t> changed_;                     // tensors that a round changes
  std::vector<std::vector<EntryAddress>> entries_;  // of rows of kernels
  std::vector<Unit> units_;
  ParameterSet no_parameters_;
  std::shared_ptr<Ring> ring_;
  std::vector<std::unique_ptr<Invocation>> invocations_;  // by set and unit
  uint64_t next_ = 0;
  uint64_t used_ = 0;  // sets since the last restore()
};

}  // namespace

std::unique_ptr<TimedWork> make_timed_work(const RunContext& context, CpuLauncher* launcher,
                                           const Case& of, uint64_t ordinal,
                                           const TimedWorkOptions& options, const TimedWork* like,
                                           Diagnostics& diagnostics) {
  auto work = std::make_unique<DispatchWork>(context, of, ordinal);
  if (options.measure == Measure::DispatchComplete) {
    const auto* other = dynamic_cast<const DispatchWork*>(like);
    return work->prepare(launcher, options, other, diagnostics) ? std::move(work) : nullptr;
  }
  return std::make_unique<CaseWork>(context, of, ordinal);
}

}  // namespace loom::check
