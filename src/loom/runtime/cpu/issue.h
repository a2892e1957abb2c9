// Programs and invocations of the CPU device.
#pragma once

#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "loom/runtime/cpu/pair.h"
#include "loom/runtime/cpu/partner.h"
#include "loom/runtime/cpu/steps.h"
#include "loom/runtime/program.h"

namespace loom {

class CpuProgram final : public Program {
 public:
  // Null when an error was reported. `arena` and `partner`, which is null for one thread, must
  // outlive the program.
  static std::unique_ptr<CpuProgram> materialize(const ProgramSource& source,
                                                 tbb::task_arena& arena, unsigned threads,
                                                 Partner* partner, Diagnostics& diagnostics);
  std::unique_ptr<Invocation> make_invocation() const override;

 private:
  friend class CpuInvocation;
  // An argument slot that holds an address inside of a binding's storage.
  struct Patch {
    uint64_t offset;
    uint32_t slot;
  };

  CpuProgram(tbb::task_arena& arena, unsigned threads, Partner* partner)
      : arena_(arena), threads_(threads), partner_(partner) {}
  void fill_slots(const ProgramView& program, std::span<const EntryAddress> entries);
  std::optional<Buffer> take_slab() const;
  void give_slab(Buffer slab) const;

  tbb::task_arena& arena_;
  unsigned threads_;
  Partner* partner_;
  FlatProgram flat_;
  std::vector<uint64_t> slots_;  // argument slots before anything is bound
  // By binding row, and behind the last one for the slab: [patch_begin_[row], patch_begin_[row+1]).
  std::vector<Patch> patches_;
  std::vector<uint32_t> patch_begin_;
  // Slabs that no invocation has; the first lies here since materialization.
  mutable std::mutex slab_mutex_;
  mutable std::vector<Buffer> slabs_;
};

class CpuInvocation final : public Invocation {
 public:
  CpuInvocation(const CpuProgram& program, Buffer slab);
  // A task group's own destructor may throw, which no issue leaves a reason for.
  ~CpuInvocation() noexcept override { cpu_.give_slab(std::move(slab_)); }
  // The same as note_overflow, for the code that reads counts.
  static void counts_overflow(uint64_t invocation, uint64_t command);
  std::span<const std::byte> slab_bytes() const override { return slab_.bytes(); }

 protected:
  void place(uint32_t row, std::byte* base) override;
  void run() override;
  void run_traced(Trace& trace) override;
  void run_stepped(const StepObserver& after) override;
  std::span<const uint64_t> argument_slots() const override { return slots_; }

 private:
  static constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();
  // Nanoseconds of work. Less than kCheapWork one thread does sooner than two would, unless the
  // partner is there: handing a part to a thread that sleeps takes longer. Less than kLeastPairWork
  // is not worth trying with a partner that is there.
  static constexpr uint64_t kCheapWork = 10'000;
  static constexpr uint64_t kLeastPairWork = 800;
  // Parts a fork is cut into, per thread, so that threads that start late find some.
  static constexpr uint64_t kPartsPerThread = 4;

  // Of one fork. Times are nanoseconds of kernel work, whichever threads did it.
  struct ForkState {
    std::atomic<uint32_t> remaining{0};  // parts that have not ended
    std::atomic<uint64_t> work{0};       // of the parts that have
    uint64_t before = 0;                 // work of the enclosing sequence when the fork began
    uint64_t last = kUnknown;            // work of the whole fork when it was measured last
    IndirectCounts counts;               // of an indirect dispatch while it is spread
    uint64_t last_workgroups = 1;        // of an indirect dispatch when it was measured last
  };
  // Where a thread is: about to run a step of a sequence.
  struct Position {
    uint32_t sequence = 0;
    uint32_t step = 0;
    uint64_t work = 0;  // of the sequence so far
  };
  // What one task of a fork does.
  struct Part {
    uint32_t fork;
    uint64_t begin;  // sequences, or workgroups
    uint64_t end;
  };

  void run_records(uint32_t first, uint32_t last) const;
  // `counts` are those of an indirect dispatch, else null.
  void run_workgroups(const DispatchRecord& record, const IndirectCounts* counts, uint64_t begin,
                      uint64_t end) const;
  uint64_t timed_records(uint32_t first, uint32_t last) const;
  // What no second thread is ever tried for.
  bool is_tiny(uint32_t fork) const {
    return forks_[fork].last < kLeastPairWork && !cpu_.flat_.forks[fork].indirect;
  }
  bool is_cheap(uint32_t fork, bool may_pair) const;
  void run_measured(const Step& step, Position& at);
  bool is_indirect(const DispatchRecord& record) const { return record.entry == &run_indirect; }
  IndirectCounts counts_of(const DispatchRecord& record) const {
    return read_counts(slots_.data() + record.args, record.shape);
  }
  void note_counts(uint32_t fork);
  bool advance(Position& at, bool may_fork);
  struct Ends;
  // In issue_pair.cpp: what the partner does half of.
  void decide_pairs();
  bool is_pair(uint32_t fork) const;
  bool is_small_pair(uint32_t fork) const;
  bool shares_small(uint32_t fork) const;
  bool run_pair(Position& at);
  Partner::Job records_job(uint32_t sequence) const;
  Partner::Job workgroups_job(const DispatchRecord& record, uint64_t begin, uint64_t end) const;
  void choose_front(uint32_t fork);
  Partner::Job partner_half(uint32_t fork) const;
  void run_half(uint32_t fork, bool own) const;
  void run_small_pair(uint32_t fork);
  bool run_two_runs(uint32_t fork);
  bool run_two_ends(uint32_t fork);
  bool enter(Position& at, uint32_t fork);
  bool run_part(const Part& part, Position& at);
  bool arrive(uint32_t fork, uint64_t work, Position& at);
  void spawn(const Part& part);

  const CpuProgram& cpu_;
  Buffer slab_;
  std::vector<uint64_t> slots_;
  std::unique_ptr<ForkState[]> forks_;
  std::unique_ptr<PairChoice[]> choices_;  // of forks, looked at by few issues
  tbb::task_group tasks_;
  Trace* trace_ = nullptr;  // while a traced issue runs
  // Written at every issue, so not beside what the partner reads.
  alignas(128) uint64_t issues_ = 0;
  bool measuring_ = false;  // forks that this thread runs
  PairTrials trials_;
};

}  // namespace loom
