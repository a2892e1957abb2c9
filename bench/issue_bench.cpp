// Our side of suite `issue`.
//
// usage: bench_issue PROGRAMS DISPATCHES BUDGET_MS
// PROGRAMS is the text that generate.dispatches() wrote. Prints one JSON object of key and value.

#include <fmt/core.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "forks.h"
#include "loom/runtime/cpu/cpu_device.h"
#include "loom/runtime/parameters/parameter_file.h"
#include "loom/target/x86/jit.h"
#include "prepared.h"
#include "timing.h"

namespace loom::bench {
namespace {

// One program, compiled and materialized, with its bindings in two sets of buffers.
class Issued {
 public:
  Issued(Device& device, const std::string& path, const std::string& root) {
    const ProgramText text(path, root);
    Module linked = text.linked();
    std::vector<KernelRequest> requests;
    plan_ = text.prepare(linked, [&](KernelRequest&& request) {
      requests.push_back(std::move(request));
      return true;
    });
    engine_ = JitEngine::create(diagnostics_);
    require(engine_ != nullptr, "no code can be generated here");
    for (const KernelRequest& request : requests) {
      SourceFiles files;
      const Module module = load(files, request.bytecode, "request");
      kernels_.push_back(
          value_or_fail(engine_->add(module, module.symbol(request.symbol), {}, diagnostics_),
                        diagnostics_, "compile"));
    }
    std::vector<EntryAddress> entries;
    for (const uint32_t requirement : plan_.programs[0].slots) {
      const int32_t request = plan_.entries[requirement].request;
      require(request >= 0, "an entry has no request");
      entries.push_back(
          reinterpret_cast<EntryAddress>(kernels_[static_cast<size_t>(request)].entry()));
    }
    program_ =
        device.materialize({{plan_, plan_.programs[0]}, &parameters_, entries, {}}, diagnostics_);
    require(program_ != nullptr, "the program does not materialize");
    invocation_ = program_->make_invocation();
    bind(0);
  }

  void bind(size_t set) {
    for (uint32_t ordinal = 0; ordinal < program_->bindings().size(); ++ordinal) {
      invocation_->bind(ordinal, std::as_writable_bytes(std::span(storage_[set][ordinal])),
                        diagnostics_);
    }
  }
  void issue() { invocation_->issue(diagnostics_); }
  size_t dispatches() const { return plan_.programs[0].commands.size(); }
  bool clean() const { return diagnostics_.all().empty(); }
  float counted(size_t set, size_t ordinal) const {
    return std::bit_cast<float>(storage_[set][ordinal][0]);
  }
  uint32_t& word(size_t ordinal, size_t place) { return storage_[0][ordinal][place]; }

 private:
  using Storage = std::array<uint32_t, 64>;
  Diagnostics diagnostics_;
  PreparedPlan plan_;
  ParameterSet parameters_;
  std::unique_ptr<JitEngine> engine_;
  std::vector<JitKernel> kernels_;
  std::array<std::array<Storage, 2>, 2> storage_ = {};
  std::unique_ptr<Program> program_;
  std::unique_ptr<Invocation> invocation_;
};

// Runs the counting twins of the programs that are timed: every dispatch ran exactly once, on the
// storage that was bound.
void check(Device& device, const std::string& path, size_t dispatches) {
  const auto expected = static_cast<float>(dispatches);
  Issued serial(device, path, "serial_count");
  serial.issue();
  require(serial.dispatches() == dispatches && serial.counted(0, 0) == expected,
          fmt::format("{} of {} dispatches ran", serial.counted(0, 0), dispatches));
  serial.bind(1);
  serial.issue();
  require(serial.counted(0, 0) == expected && serial.counted(1, 0) == expected,
          "rebinding did not take effect");
  Issued fork(device, path, "fork_count");
  fork.issue();
  require(fork.dispatches() == dispatches && fork.counted(0, 0) == expected / 2 &&
              fork.counted(0, 1) == expected / 2,
          "a sibling did not run exactly once");
  require(serial.clean() && fork.clean(), "an issue reported a diagnostic");
}

// One branch alone and two that fork, with as many steps as they are told.
class Branches {
 public:
  Branches(Device& device, const std::string& path)
      : one_(device, path, "one_work"), fork_(device, path, "fork_work") {}

  void check() {
    set_steps(1000);
    for (size_t side = 0; side < 2; ++side) fork_.word(side, 1) = 7 + static_cast<uint32_t>(side);
    one_.word(0, 1) = 7;
    one_.issue();
    fork_.issue();
    require(one_.word(0, 1) == recurrence(1000, 7) && fork_.word(0, 1) == recurrence(1000, 7) &&
                fork_.word(1, 1) == recurrence(1000, 8),
            "a branch computed something else");
  }
  void set_steps(uint32_t steps) { one_.word(0, 0) = fork_.word(0, 0) = fork_.word(1, 0) = steps; }
  std::string rows(std::chrono::milliseconds budget) {
    std::string rows = fork_rows(
        budget, [&](uint32_t steps) { set_steps(steps); }, [&] { one_.issue(); },
        [&] { fork_.issue(); });
    require(one_.clean() && fork_.clean(), "an issue reported a diagnostic");
    return rows;
  }

 private:
  Issued one_;
  Issued fork_;
};

std::string run(const std::string& path, size_t dispatches, std::chrono::milliseconds budget) {
  const std::unique_ptr<Device> device = make_cpu_device();
  check(*device, path, dispatches);
  const auto count = static_cast<double>(dispatches);
  Issued serial(*device, path, "serial_empty");
  const double chain = median_ns(budget, [&] { serial.issue(); }) / count;
  size_t set = 0;
  const double rebind = median_ns(budget,
                                  [&] {
                                    serial.bind(set ^= 1);
                                    serial.issue();
                                  }) /
                        count;
  Issued fork(*device, path, "fork_empty");
  const double forks = median_ns(budget, [&] { fork.issue(); }) / (count / 2);
  require(serial.clean() && fork.clean(), "an issue reported a diagnostic");
  Branches branches(*device, path);
  branches.check();
  return fmt::format(R"({{"serial":{},"rebind":{},"fork_join":{},{}}})", chain, rebind, forks,
                     branches.rows(budget));
}

}  // namespace
}  // namespace loom::bench

int main(int argc, char** argv) {
  const int dispatches = argc == 4 ? std::atoi(argv[2]) / 2 * 2 : 0;
  if (dispatches < 2) {
    fmt::print(stderr, "usage: bench_issue PROGRAMS DISPATCHES BUDGET_MS\n");
    return 2;
  }
  fmt::print("{}\n", loom::bench::run(argv[1], static_cast<size_t>(dispatches),
                                      std::chrono::milliseconds(std::atoi(argv[3]))));
  return 0;
}
