// Programs and invocations of the CPU device.
#pragma once

#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <atomic>
#include <limits>
#include <memory>
#include <vector>

#include "loom/runtime/cpu/steps.h"
#include "loom/runtime/program.h"

namespace loom {

class CpuProgram final : public Program {
 public:
  // Null when an error was reported. `arena` must outlive the program.
  static std::unique_ptr<CpuProgram> materialize(const ProgramSource& source,
                                                 tbb::task_arena& arena, unsigned threads,
                                                 Diagnostics& diagnostics);
  std::unique_ptr<Invocation> make_invocation() const override;

 private:
  friend class CpuInvocation;
  // An argument slot that holds an address inside of a binding's storage.
  struct Patch {
    uint64_t offset;
    uint32_t slot;
  };

  CpuProgram(tbb::task_arena& arena, unsigned threads) : arena_(arena), threads_(threads) {}
  void fill_slots(const PreparedProgram& program);

  tbb::task_arena& arena_;
  unsigned threads_;
  FlatProgram flat_;
  std::vector<uint64_t> slots_;  // argument slots before anything is bound
  std::vector<Patch> patches_;   // by binding row: [patch_begin_[row], patch_begin_[row + 1])
  std::vector<uint32_t> patch_begin_;
};

class CpuInvocation final : public Invocation {
 public:
  explicit CpuInvocation(const CpuProgram& program);
  // A task group's own destructor may throw, which no issue leaves a reason for.
  ~CpuInvocation() noexcept override {}

 protected:
  void place(uint32_t row, std::byte* base) override;
  void run() override;
  void run_traced(Trace& trace) override;

 private:
  static constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();

  // Of one fork. Times are nanoseconds of kernel work, whichever threads did it.
  struct ForkState {
    std::atomic<uint32_t> remaining{0};  // parts that have not ended
    std::atomic<uint64_t> work{0};       // of the parts that have
    uint64_t before = 0;                 // work of the enclosing sequence when the fork began
    uint64_t last = kUnknown;            // work of the whole fork when it was measured last
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
  void run_workgroups(const DispatchRecord& record, uint64_t begin, uint64_t end) const;
  uint64_t timed_records(uint32_t first, uint32_t last) const;
  bool is_cheap(uint32_t fork) const;
  bool advance(Position& at, bool may_fork);
  bool enter(Position& at, uint32_t fork);
  bool run_part(const Part& part, Position& at);
  bool arrive(uint32_t fork, uint64_t work, Position& at);
  void spawn(const Part& part);

  const CpuProgram& cpu_;
  std::vector<uint64_t> slots_;
  std::unique_ptr<ForkState[]> forks_;
  tbb::task_group tasks_;
  uint64_t issues_ = 0;
  bool measuring_ = false;
  Trace* trace_ = nullptr;  // while a traced issue runs
};

}  // namespace loom
