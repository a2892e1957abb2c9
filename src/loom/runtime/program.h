// A materialized command program, and one caller's use of it.
//
//   Program      immutable: commands, parameters and code are in place; any number of threads
//   Invocation   the storage bound by one caller at a time; issued again and again
//
// A device derives both (device.h). What does not depend on a device is here: which bindings there
// are, how large their storage must be, and whether all of them have some.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/base/failed_checks.h"
#include "loom/command/program_view.h"
#include "loom/diag/diagnostic.h"
#include "loom/runtime/placement.h"
#include "loom/runtime/trace.h"

namespace loom {

// What one entry slot runs, as the device calls it: on the CPU the address of a LoomKernelEntry.
// 0 is none.
using EntryAddress = uintptr_t;

// All that materialization takes. The parameter set and the code behind the entries must outlive
// the program; the rest is only read during the call.
struct ProgramSource {
  ProgramView program;  // with its entries
  const ParameterSet* parameters = nullptr;
  std::span<const EntryAddress> entries;  // by entry slot of the program
  // By row of the program's bindings; empty, or what the views inside of kernels ask for. The
  // ranges that dispatches state are added.
  std::span<const StorageNeed> needs;
  // By row of the program's parameters; empty, or the bytes that those views reach.
  std::span<const uint64_t> parameter_bytes;
  // By row of the program's transients; empty, or what those views ask for.
  std::span<const StorageNeed> transient_needs;
};

class Invocation;

class Program {
 public:
  struct Binding {
    uint32_t ordinal = 0;  // among the program's launch bindings, as in the source
    std::string name;      // without '%'
    StorageNeed need;
  };

  virtual ~Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Without '@'.
  const std::string& symbol() const { return symbol_; }
  // The bindings that take storage at issue, by source ordinal. Parameter roots are not among them.
  std::span<const Binding> bindings() const { return bindings_; }
  const ParameterPlacement& parameters() const { return parameters_; }
  // Row of `bindings()`; nothing when there is no such binding.
  std::optional<uint32_t> find(std::string_view name) const;
  std::optional<uint32_t> find(uint32_t ordinal) const;

  // The slab that transients lie in. Each invocation has one of its own, so that several issues may
  // be in flight; its bytes are undefined when an issue begins.
  const StorageNeed& slab() const { return slab_; }

  // Nothing is bound yet. The program must outlive it. Null when there is no memory for its slab;
  // the slab of the first invocation is there since materialization.
  virtual std::unique_ptr<Invocation> make_invocation() const = 0;

 protected:
  Program() = default;
  // Resolves parameters and needs. Reports RUN/004, RUN/005, RUN/009 for a slot without an entry,
  // RUN/012 for more workgroups than can be numbered, and RUN/017, RUN/018 for transients that
  // views inside of kernels do not fit into.
  bool prepare(const ProgramSource& source, Diagnostics& diagnostics);

 private:
  friend class Invocation;
  void add_storage_needs(const ProgramView& program);

  std::string symbol_;
  std::vector<Binding> bindings_;
  std::vector<std::string> indirect_symbols_;  // by command; empty without indirect dispatches
  StorageNeed slab_;
  std::vector<uint32_t> row_of_ordinal_;
  ParameterPlacement parameters_;
};

// Not thread-safe; several invocations of one program may be issued at the same time.
class Invocation {
 public:
  virtual ~Invocation() = default;
  Invocation(const Invocation&) = delete;
  Invocation& operator=(const Invocation&) = delete;

  // Binds storage that the device reaches and that stays valid while issues use it; it replaces
  // what was bound before. Two bindings may share bytes; then the program's own order alone decides
  // what it computes. Reports RUN/002 (too small), RUN/010 (misaligned) or RUN/011 (no such
  // binding), and keeps what was bound. Allocates nothing unless it reports.
  bool bind(uint32_t ordinal, std::span<std::byte> storage, Diagnostics& diagnostics);
  bool bind(std::string_view name, std::span<std::byte> storage, Diagnostics& diagnostics);

  // Runs the whole program once with the storage bound now. Reports RUN/003 for each binding
  // without storage, and runs nothing then. Reports RUN/012 where an indirect count says more
  // workgroups than can be numbered; that dispatch did nothing, the others ran. Reports RUN/027 for
  // a check inside of a kernel that did not hold; what the program wrote means nothing then.
  bool issue(Diagnostics& diagnostics) {
    if (unbound_ != 0) [[unlikely]] {
      report_unbound(diagnostics);
      return false;
    }
    run();
    return ran_well() || report_run(diagnostics);
  }
  // The same, and records each dispatch. Slower, as it takes the time and a lock for each.
  bool issue_traced(Trace& trace, Diagnostics& diagnostics);
  // The same one dispatch after the other in textual order, which is one of the program's orders,
  // on the calling thread; `after` is told of each command once it is done.
  using StepObserver = std::function<void(uint32_t command)>;
  bool issue_stepped(const StepObserver& after, Diagnostics& diagnostics);
  // What transients lie in (Program::slab()).
  virtual std::span<const std::byte> slab_bytes() const = 0;

  const Program& program() const { return program_; }
  // The size of the storage that row `row` of the bindings has; 0 without any.
  uint64_t bound_bytes(uint32_t row) const { return sizes_[row]; }

 protected:
  explicit Invocation(const Program& program);

  // The storage of row `row` now begins at `base`.
  virtual void place(uint32_t row, std::byte* base) = 0;
  virtual void run() = 0;
  virtual void run_traced(Trace& trace) = 0;
  virtual void run_stepped(const StepObserver& after) = 0;
  // The slots that the arguments of its kernels lie in.
  virtual std::span<const uint64_t> argument_slots() const { return {}; }
  // The indirect counts of a command cannot be numbered. From any thread of the issue.
  void note_overflow(uint32_t command) { overflow_.store(command, std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kNoCommand = std::numeric_limits<uint32_t>::max();

  bool ran_well() const {
    return overflow_.load(std::memory_order_relaxed) == kNoCommand && !failed_checks_pending();
  }
  bool report_run(Diagnostics& diagnostics);
  bool bind_row(uint32_t row, std::span<std::byte> storage, Diagnostics& diagnostics);
  void report_unbound(Diagnostics& diagnostics) const;

  const Program& program_;
  std::vector<std::byte*> bases_;  // by row; kUnbound before the first bind
  std::vector<uint64_t> sizes_;    // by row
  uint32_t unbound_;
  std::atomic<uint32_t> overflow_{kNoCommand};
};

// The number of workgroups of a dispatch; nothing past 63 bits.
std::optional<uint64_t> workgroup_total(const std::array<uint32_t, 3>& count);

}  // namespace loom
