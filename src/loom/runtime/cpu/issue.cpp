#include "loom/runtime/cpu/issue.h"

#include <algorithm>
#include <chrono>

#include "loom/base/check.h"

namespace loom {
namespace {

// Work that one thread does sooner than two would: handing a part to a thread that sleeps takes
// longer than this.
constexpr uint64_t kCheapWork = 10'000;
// Every so many issues the forks that run on one thread are timed again.
constexpr uint64_t kMeasureEvery = 64;
// Parts a fork is cut into, per thread, so that threads that start late find some.
constexpr uint64_t kPartsPerThread = 4;

uint64_t now() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

}  // namespace

// --- program -------------------------------------------------------------------------------------

std::unique_ptr<CpuProgram> CpuProgram::materialize(const ProgramSource& source,
                                                    tbb::task_arena& arena, unsigned threads,
                                                    Diagnostics& diagnostics) {
  std::unique_ptr<CpuProgram> made(new CpuProgram(arena, threads));
  if (!made->prepare(source, diagnostics)) return nullptr;
  const PreparedProgram& program = source.plan->programs[source.program];
  made->flat_ = flatten(*source.plan, program, source.entries);
  made->fill_slots(program);
  return made;
}

// Slots are the plan's arguments one to one, so those of a dispatch are consecutive.
void CpuProgram::fill_slots(const PreparedProgram& program) {
  slots_.resize(program.arguments.size());
  patch_begin_.assign(program.bindings.size() + 1, 0);
  for (uint32_t i = 0; i < program.arguments.size(); ++i) {
    const Argument& argument = program.arguments[i];
    if (argument.kind != Argument::Kind::Buffer) {
      slots_[i] = argument.value;
    } else if (argument.buffer.storage == StorageClass::Fixed) {
      slots_[i] = reinterpret_cast<uintptr_t>(parameters().addresses()[argument.buffer.index]) +
                  argument.buffer.offset;
    } else {
      ++patch_begin_[argument.buffer.index + 1];
    }
  }
  for (size_t row = 1; row < patch_begin_.size(); ++row) patch_begin_[row] += patch_begin_[row - 1];
  patches_.resize(patch_begin_.back());
  std::vector<uint32_t> next(patch_begin_.begin(), patch_begin_.end() - 1);
  for (uint32_t i = 0; i < program.arguments.size(); ++i) {
    const Argument& argument = program.arguments[i];
    if (argument.kind != Argument::Kind::Buffer ||
        argument.buffer.storage != StorageClass::Rebindable) {
      continue;
    }
    patches_[next[argument.buffer.index]++] = {argument.buffer.offset, i};
  }
}

std::unique_ptr<Invocation> CpuProgram::make_invocation() const {
  return std::make_unique<CpuInvocation>(*this);
}

// --- invocation ----------------------------------------------------------------------------------

CpuInvocation::CpuInvocation(const CpuProgram& program)
    : Invocation(program),
      cpu_(program),
      slots_(program.slots_),
      forks_(std::make_unique<ForkState[]>(program.flat_.forks.size())) {}

void CpuInvocation::place(uint32_t row, std::byte* base) {
  const auto address = reinterpret_cast<uintptr_t>(base);
  const CpuProgram::Patch* end = cpu_.patches_.data() + cpu_.patch_begin_[row + 1];
  for (const CpuProgram::Patch* p = cpu_.patches_.data() + cpu_.patch_begin_[row]; p != end; ++p) {
    slots_[p->slot] = address + p->offset;
  }
}

// The calling thread goes as far as it can alone, and becomes part of the arena only once a fork
// is worth other threads: entering costs as much as several dispatches.
void CpuInvocation::run() {
  const FlatProgram& flat = cpu_.flat_;
  if (flat.forks.empty() || cpu_.threads_ == 1) {
    run_records(0, static_cast<uint32_t>(flat.records.size()));
    return;
  }
  measuring_ = issues_++ % kMeasureEvery == 0;
  Position at{0, flat.sequences[0].step_begin, 0};
  if (advance(at, false)) return;
  cpu_.arena_.execute([&] {
    advance(at, true);
    tasks_.wait();
  });
}

void CpuInvocation::run_traced(Trace& trace) {
  trace_ = &trace;
  run();
  trace_ = nullptr;
}

void CpuInvocation::run_records(uint32_t first, uint32_t last) const {
  const uint64_t* const slots = slots_.data();
  const DispatchRecord* const end = cpu_.flat_.records.data() + last;
  if (trace_ != nullptr) [[unlikely]] {
    for (const DispatchRecord* r = cpu_.flat_.records.data() + first; r != end; ++r) {
      run_workgroups(*r, 0, r->workgroups);
    }
    return;
  }
  for (const DispatchRecord* r = cpu_.flat_.records.data() + first; r != end; ++r) {
    r->entry(slots + r->args, r->shape, 0, r->workgroups);
  }
}

void CpuInvocation::run_workgroups(const DispatchRecord& record, uint64_t begin,
                                   uint64_t end) const {
  if (trace_ == nullptr) {
    record.entry(slots_.data() + record.args, record.shape, begin, end);
    return;
  }
  const uint64_t start = now();
  record.entry(slots_.data() + record.args, record.shape, begin, end);
  trace_->record({record.command, 0, start, now(), begin, end});
}

uint64_t CpuInvocation::timed_records(uint32_t first, uint32_t last) const {
  const uint64_t start = now();
  run_records(first, last);
  return now() - start;
}

bool CpuInvocation::is_cheap(uint32_t fork) const { return forks_[fork].last < kCheapWork; }

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
    if (fork && !is_cheap(step.fork)) {
      if (!may_fork) return false;
      if (!enter(at, step.fork)) return true;
      continue;
    }
    if (at.sequence != 0 || (fork && measuring_)) {
      const uint64_t work = timed_records(step.first, step.last);
      at.work += work;
      if (fork) forks_[step.fork].last = work;
    } else {
      run_records(step.first, step.last);
    }
    ++at.step;
  }
}

// Cuts a fork into parts, offers all but the first to other threads and does that one itself. False
// when this thread has nothing left to do.
bool CpuInvocation::enter(Position& at, uint32_t index) {
  const FlatProgram& flat = cpu_.flat_;
  const Fork& fork = flat.forks[index];
  const bool wide = fork.kind == Fork::Kind::Workgroups;
  const uint64_t begin = wide ? 0 : fork.sequence_begin;
  const uint64_t size =
      wide ? flat.records[fork.first].workgroups : fork.sequence_end - fork.sequence_begin;
  uint64_t parts = size;
  if (fork.kind != Fork::Kind::Sequences) {
    parts = std::min(size, cpu_.threads_ * kPartsPerThread);
  }
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
  tasks_.run([this, part] {
    Position at;
    if (run_part(part, at)) advance(at, true);
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
  run_workgroups(record, part.begin, part.end);
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
