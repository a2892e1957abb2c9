#include "loom/runtime/cpu/issue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "loom/base/check.h"
#include "loom/base/order_note.h"
#include "loom/runtime/cpu/clock.h"

namespace loom {
namespace {

// Every so many issues the forks that run on one thread are timed again.
constexpr uint64_t kMeasureEvery = 64;

// oneTBB orders handing a task over before its begin, and its end before the wait for it.
constexpr char kHandedOver = 0;

// Counts in parameters do not change any more, so their dispatches become direct ones. No commands
// stand for "nothing to close"; nothing at all when an error was reported.
std::optional<std::vector<DispatchCommand>> close_fixed_counts(const Program& made,
                                                               const ProgramView& program,
                                                               Diagnostics& diagnostics) {
  std::vector<DispatchCommand> closed;
  const auto fixed = [](const BufferRef& ref) { return ref.storage == StorageClass::Fixed; };
  if (std::ranges::none_of(program.indirect_storage(), fixed)) return closed;
  closed.assign(program.commands().begin(), program.commands().end());
  bool good = true;
  for (DispatchCommand& command : closed) {
    if (command.indirect == DispatchCommand::kDirect) continue;
    const BufferRef& ref = program.indirect_storage()[command.indirect];
    if (!fixed(ref)) continue;
    std::memcpy(command.count.data(), made.parameters().addresses()[ref.index] + ref.offset,
                kCountBytes);
    command.indirect = DispatchCommand::kDirect;
    if (workgroup_total(command.count)) continue;
    diagnostics.emit(Diag::RunDispatchSize, {},
                     {{"symbol", std::string(program.entry(command.slot).symbol)},
                      {"count", fmt::format("{} x {} x {}", command.count[0], command.count[1],
                                            command.count[2])}});
    good = false;
  }
  return good ? std::optional(std::move(closed)) : std::nullopt;
}

}  // namespace

// --- program -------------------------------------------------------------------------------------

std::unique_ptr<CpuProgram> CpuProgram::materialize(const ProgramSource& source,
                                                    tbb::task_arena& arena, unsigned threads,
                                                    Partner* partner, Diagnostics& diagnostics) {
  std::unique_ptr<CpuProgram> made(new CpuProgram(arena, threads, partner));
  if (!made->prepare(source, diagnostics)) return nullptr;
  const auto closed = close_fixed_counts(*made, source.program, diagnostics);
  if (!closed) return nullptr;
  const ProgramView ready =
      closed->empty() ? source.program : source.program.with_commands(*closed);
  made->flat_ = flatten(ready, source.entries);
  made->fill_slots(ready, source.entries);
  auto slab = made->take_slab();
  if (!slab) {
    diagnostics.emit(
        Diag::RunOutOfMemory, {},
        {{"bytes", std::to_string(made->slab().bytes)}, {"what", "transient storage"}});
    return nullptr;
  }
  made->give_slab(std::move(*slab));
  return made;
}

// Slots are the plan's arguments one to one, so those of a dispatch are consecutive; the blocks of
// indirect dispatches follow, each with its arguments once more.
void CpuProgram::fill_slots(const ProgramView& program, std::span<const EntryAddress> entries) {
  slots_.resize(flat_.slot_count);
  const auto slab_row = static_cast<uint32_t>(program.binding_count());
  std::vector<std::pair<uint32_t, Patch>> patches;  // with their rows
  const auto point = [&](uint32_t slot, const BufferRef& ref) {
    if (ref.storage == StorageClass::Fixed) {
      slots_[slot] = reinterpret_cast<uintptr_t>(parameters().addresses()[ref.index]) + ref.offset;
    } else if (ref.storage == StorageClass::Rebindable) {
      patches.push_back({ref.index, {ref.offset, slot}});
    } else {
      patches.push_back({slab_row, {program.transient(ref.index).offset + ref.offset, slot}});
    }
  };
  const auto fill = [&](uint32_t slot, const Argument& argument) {
    if (argument.kind == Argument::Kind::Buffer) {
      point(slot, argument.buffer);
    } else {
      slots_[slot] = argument.value;
    }
  };
  for (uint32_t i = 0; i < program.arguments().size(); ++i) fill(i, program.arguments()[i]);
  for (const BlockSlots& block : flat_.blocks) {
    const DispatchCommand& command = program.commands()[block.command];
    point(block.block + IndirectBlock::Counts, program.indirect_storage()[command.indirect]);
    slots_[block.block + IndirectBlock::Entry] = entries[command.slot];
    slots_[block.block + IndirectBlock::Command] = block.command;
    for (uint32_t i = 0; i < command.argument_count; ++i) {
      fill(block.block + IndirectBlock::Arguments + i,
           program.arguments()[command.argument_begin + i]);
    }
  }
  std::ranges::sort(patches, {},
                    [](const auto& patch) { return std::pair(patch.first, patch.second.slot); });
  patch_begin_.assign(slab_row + 2, 0);
  for (const auto& [row, patch] : patches) {
    ++patch_begin_[row + 1];
    patches_.push_back(patch);
  }
  for (size_t row = 1; row < patch_begin_.size(); ++row) patch_begin_[row] += patch_begin_[row - 1];
}

std::optional<Buffer> CpuProgram::take_slab() const {
  {
    const std::lock_guard lock(slab_mutex_);
    if (!slabs_.empty()) {
      Buffer slab = std::move(slabs_.back());
      slabs_.pop_back();
      return slab;
    }
  }
  return Buffer::allocate(slab().bytes, std::max(Buffer::kAlignment, slab().alignment));
}

void CpuProgram::give_slab(Buffer slab) const {
  const std::lock_guard lock(slab_mutex_);
  slabs_.push_back(std::move(slab));
}

std::unique_ptr<Invocation> CpuProgram::make_invocation() const {
  auto slab = take_slab();
  if (!slab) return nullptr;
  return std::make_unique<CpuInvocation>(*this, std::move(*slab));
}

// --- indirect dispatches -------------------------------------------------------------------------

IndirectCounts read_counts(const uint64_t* block, const LoomDispatchShape* shape) {
  std::array<uint32_t, 3> count;
  std::memcpy(count.data(), reinterpret_cast<const void*>(block[IndirectBlock::Counts]),
              sizeof count);
  const std::optional<uint64_t> workgroups = workgroup_total(count);
  if (!workgroups) {
    CpuInvocation::counts_overflow(block[IndirectBlock::Invocation], block[IndirectBlock::Command]);
  }
  return {{{count[0], count[1], count[2]}, {shape->size[0], shape->size[1], shape->size[2]}},
          workgroups.value_or(0)};
}

// All workgroups at once, on this thread.
void run_indirect(const uint64_t* block, const LoomDispatchShape* shape, uint64_t, uint64_t) {
  const IndirectCounts counts = read_counts(block, shape);
  if (counts.workgroups == 0) return;
  const auto entry = reinterpret_cast<LoomKernelEntry>(block[IndirectBlock::Entry]);
  entry(block + IndirectBlock::Arguments, &counts.shape, 0, counts.workgroups);
}

void CpuInvocation::counts_overflow(uint64_t invocation, uint64_t command) {
  reinterpret_cast<CpuInvocation*>(invocation)->note_overflow(static_cast<uint32_t>(command));
}

// --- invocation ----------------------------------------------------------------------------------

CpuInvocation::CpuInvocation(const CpuProgram& program, Buffer slab)
    : Invocation(program),
      cpu_(program),
      slab_(std::move(slab)),
      slots_(program.slots_),
      forks_(std::make_unique<ForkState[]>(program.flat_.forks.size())),
      choices_(std::make_unique<PairChoice[]>(program.flat_.forks.size())) {
  for (const BlockSlots& block : program.flat_.blocks) {
    slots_[block.block + IndirectBlock::Invocation] = reinterpret_cast<uintptr_t>(this);
  }
  CpuInvocation::place(static_cast<uint32_t>(program.bindings().size()), slab_.bytes().data());
}

void CpuInvocation::place(uint32_t row, std::byte* base) {
  const auto address = reinterpret_cast<uintptr_t>(base);
  const CpuProgram::Patch* end = cpu_.patches_.data() + cpu_.patch_begin_[row + 1];
  for (const CpuProgram::Patch* p = cpu_.patches_.data() + cpu_.patch_begin_[row]; p != end; ++p) {
    slots_[p->slot] = address + p->offset;
  }
}

// The calling thread goes as far as it can alone, and becomes part of the arena only once a fork
// is worth other threads: entering costs as much as several dispatches, and handing a part to a
// thread of the arena more than handing it to the partner, which takes half of a fork of two.
void CpuInvocation::run() {
  const FlatProgram& flat = cpu_.flat_;
  if (flat.forks.empty() || cpu_.threads_ == 1) {
    run_records(0, static_cast<uint32_t>(flat.records.size()));
    return;
  }
  if (cpu_.partner_ != nullptr && trials_.next()) decide_pairs();
  measuring_ = issues_++ % kMeasureEvery == 0 || trials_.way() == PairTrials::Way::Alone;
  Position at{0, flat.sequences[0].step_begin, 0};
  do {
    if (advance(at, false)) return;
  } while (run_pair(at));
  note_before(&kHandedOver);
  cpu_.arena_.execute([&] {
    note_after(&kHandedOver);
    advance(at, true);
    tasks_.wait();
    note_before(&kHandedOver);
  });
  note_after(&kHandedOver);
}

void CpuInvocation::run_traced(Trace& trace) {
  trace_ = &trace;
  run();
  trace_ = nullptr;
}

// Records are in textual order.
void CpuInvocation::run_stepped(const StepObserver& after) {
  const std::vector<DispatchRecord>& records = cpu_.flat_.records;
  for (uint32_t i = 0; i < records.size(); ++i) {
    run_records(i, i + 1);
    after(records[i].command);
  }
}

void CpuInvocation::run_records(uint32_t first, uint32_t last) const {
  const uint64_t* const slots = slots_.data();
  const DispatchRecord* const end = cpu_.flat_.records.data() + last;
  if (trace_ != nullptr) [[unlikely]] {
    for (const DispatchRecord* r = cpu_.flat_.records.data() + first; r != end; ++r) {
      if (is_indirect(*r)) {
        const IndirectCounts counts = counts_of(*r);
        if (counts.workgroups != 0) run_workgroups(*r, &counts, 0, counts.workgroups);
      } else {
        run_workgroups(*r, nullptr, 0, r->workgroups);
      }
    }
    return;
  }
  for (const DispatchRecord* r = cpu_.flat_.records.data() + first; r != end; ++r) {
    r->entry(slots + r->args, r->shape, 0, r->workgroups);
  }
}

void CpuInvocation::run_workgroups(const DispatchRecord& record, const IndirectCounts* counts,
                                   uint64_t begin, uint64_t end) const {
  LoomKernelEntry entry = record.entry;
  const uint64_t* args = slots_.data() + record.args;
  const LoomDispatchShape* shape = record.shape;
  if (counts != nullptr) {
    entry = reinterpret_cast<LoomKernelEntry>(args[IndirectBlock::Entry]);
    args += IndirectBlock::Arguments;
    shape = &counts->shape;
  }
  if (trace_ == nullptr) {
    entry(args, shape, begin, end);
    return;
  }
  DispatchEvent event{.command = record.command, .first_workgroup = begin, .last_workgroup = end};
  std::ranges::copy(shape->count, event.count.begin());
  const auto start = Trace::Clock::now();
  entry(args, shape, begin, end);
  trace_->record(event, start, Trace::Clock::now());
}

uint64_t CpuInvocation::timed_records(uint32_t first, uint32_t last) const {
  const uint64_t start = now();
  run_records(first, last);
  return now() - start;
}

// What this thread does by itself. An indirect dispatch is judged by the counts that it has now.
bool CpuInvocation::is_cheap(uint32_t index, bool may_pair) const {
  const ForkState& state = forks_[index];
  const Fork& fork = cpu_.flat_.forks[index];
  if (!fork.indirect) {
    if (is_small_pair(index)) return !may_pair || !shares_small(index);
    if (state.last != kUnknown) return state.last < kCheapWork;
    return fork.kind == Fork::Kind::Workgroups &&
           cpu_.flat_.records[fork.first].workgroups < kWideDispatch;
  }
  const uint64_t workgroups = counts_of(cpu_.flat_.records[fork.first]).workgroups;
  if (workgroups < kWideDispatch) return true;
  if (state.last == kUnknown) return false;
  return static_cast<double>(state.last) * static_cast<double>(workgroups) <
         static_cast<double>(kCheapWork) * static_cast<double>(state.last_workgroups);
}

void CpuInvocation::decide_pairs() {
  bool changed = false;
  for (size_t i = 0; i < cpu_.flat_.forks.size(); ++i) {
    if (choices_[i].decide()) changed = true;
  }
  trials_.decided(changed);
}

// Runs steps until there is nothing left for this thread: true. No thread waits for another one on
// the way; whoever ends the last part of a fork goes on behind it, so the depth of a tree costs no
// stack. Without `may_fork` it stops at the first fork that is worth other threads: false.
bool CpuInvocation::advance(Position& at, bool may_fork) {
  const FlatProgram& flat = cpu_.flat_;
  for (;;) {
    const Sequence& sequence = flat.sequences[at.sequence];
    if (at.step == sequence.step_end) {
      if (sequence.fork == kNone || !arrive(sequence.fork, at.work, at)) return true;
      continue;
    }
    const Step& step = flat.steps[at.step];
    const bool fork = step.fork != kNone;
    if (fork && !is_tiny(step.fork) && !is_cheap(step.fork, !may_fork)) {
      if (!may_fork) return false;
      if (!enter(at, step.fork)) return true;
      continue;
    }
    if (at.sequence != 0 || (fork && measuring_)) {
      run_measured(step, at);
    } else {
      run_records(step.first, step.last);
    }
    ++at.step;
  }
}

void CpuInvocation::run_measured(const Step& step, Position& at) {
  const bool fork = step.fork != kNone;
  if (fork) note_counts(step.fork);
  const uint64_t work = timed_records(step.first, step.last);
  at.work += work;
  if (!fork) return;
  forks_[step.fork].last = work;
  if (at.sequence == 0 && trials_.way() == PairTrials::Way::Alone && is_small_pair(step.fork)) {
    choices_[step.fork].measured(false, work);
    trials_.saw_candidate();
  }
}

// Remembers what the coming measurement of an indirect dispatch is of.
void CpuInvocation::note_counts(uint32_t index) {
  const Fork& fork = cpu_.flat_.forks[index];
  if (!fork.indirect) return;
  ForkState& state = forks_[index];
  state.counts = counts_of(cpu_.flat_.records[fork.first]);
  state.last_workgroups = std::max<uint64_t>(1, state.counts.workgroups);
}

// Cuts a fork into parts, offers all but the first to other threads and does that one itself. False
// when this thread has nothing left to do.
bool CpuInvocation::enter(Position& at, uint32_t index) {
  const FlatProgram& flat = cpu_.flat_;
  const Fork& fork = flat.forks[index];
  const bool wide = fork.kind == Fork::Kind::Workgroups;
  note_counts(index);
  const uint64_t begin = wide ? 0 : fork.sequence_begin;
  const uint64_t size = fork.indirect ? forks_[index].counts.workgroups
                        : wide        ? flat.records[fork.first].workgroups
                                      : fork.sequence_end - fork.sequence_begin;
  uint64_t parts = size;
  if (fork.kind != Fork::Kind::Sequences) {
    parts = std::min(size, cpu_.threads_ * kPartsPerThread);
  }
  // Counts that another kernel changes at the same time are the program's mistake, not ours.
  parts = std::max<uint64_t>(parts, 1);
  ForkState& state = forks_[index];
  state.before = at.work;
  state.work.store(0, std::memory_order_relaxed);
  state.remaining.store(static_cast<uint32_t>(parts), std::memory_order_relaxed);
  // Without overflow for the largest numbers of workgroups.
  const uint64_t share = size / parts;
  const uint64_t extra = size % parts;
  const auto bound = [&](uint64_t part) { return begin + part * share + std::min(part, extra); };
  // A thread takes up its own newest task first, so the last part is offered first.
  for (uint64_t part = parts - 1; part > 0; --part) {
    spawn({index, bound(part), bound(part + 1)});
  }
  return run_part({index, bound(0), bound(1)}, at);
}

void CpuInvocation::spawn(const Part& part) {
  note_before(&kHandedOver);
  tasks_.run([this, part] {
    note_after(&kHandedOver);
    Position at;
    if (run_part(part, at)) advance(at, true);
    note_before(&kHandedOver);
  });
}

// True when this thread goes on at `at`.
bool CpuInvocation::run_part(const Part& part, Position& at) {
  const FlatProgram& flat = cpu_.flat_;
  const Fork& fork = flat.forks[part.fork];
  if (fork.kind == Fork::Kind::Sequences) {
    const auto sequence = static_cast<uint32_t>(part.begin);
    at = {sequence, flat.sequences[sequence].step_begin, 0};
    return true;
  }
  if (fork.kind == Fork::Kind::Runs) {
    const uint64_t work =
        timed_records(flat.sequences[part.begin].first, flat.sequences[part.end - 1].last);
    return arrive(part.fork, work, at);
  }
  const DispatchRecord& record = flat.records[fork.first];
  const uint64_t start = now();
  run_workgroups(record, fork.indirect ? &forks_[part.fork].counts : nullptr, part.begin, part.end);
  return arrive(part.fork, now() - start, at);
}

// One part of the fork has ended. The last one to arrive sees what all parts wrote, and goes on
// behind the fork: true, and `at` is there.
bool CpuInvocation::arrive(uint32_t index, uint64_t work, Position& at) {
  ForkState& state = forks_[index];
  state.work.fetch_add(work, std::memory_order_relaxed);
  if (state.remaining.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  state.last = state.work.load(std::memory_order_relaxed);
  const Fork& fork = cpu_.flat_.forks[index];
  at = {fork.sequence, fork.step + 1, state.before + state.last};
  return true;
}

}  // namespace loom
