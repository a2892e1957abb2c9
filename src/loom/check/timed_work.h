// A benchmarked sample, ready to be done again and again.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "loom/check/batch_profile.h"
#include "loom/check/cpu_launcher.h"
#include "loom/check/sample_runner.h"
#include "loom/check/tensor.h"

namespace loom::check {

// What is timed.
enum class Measure : uint8_t {
  CaseEndToEnd,      // the whole case: generation, oracles, launches, comparisons
  DispatchComplete,  // its launches, one after the other, until their work is done
};

// One caller.
class TimedWork {
 public:
  virtual ~TimedWork() = default;
  TimedWork(const TimedWork&) = delete;
  TimedWork& operator=(const TimedWork&) = delete;

  // Does it `count` times, each time with the next set of inputs. False after reporting.
  virtual bool run(uint64_t count, Diagnostics& diagnostics) = 0;
  // Gives inputs that runs have changed their content again. Not to be timed.
  virtual void restore() {}
  // The same as run(), more slowly, and adds what each dispatch did. Only of compiled launches;
  // other work adds nothing.
  virtual bool profile(uint64_t count, std::vector<ProfiledDispatch>& /*dispatches*/,
                       Diagnostics& diagnostics) {
    return run(count, diagnostics);
  }

  uint64_t ring = 1;  // sets of inputs
  // Operations between two restore() so that each one finds its inputs as they were at first.
  uint64_t most_batch = ~uint64_t{0};
  uint64_t set_bytes = 0;                 // of one set
  std::array<uint64_t, 2> work = {0, 0};  // that the case states, by WorkUnit; 0: nothing

 protected:
  TimedWork() = default;
};

struct TimedWorkOptions {
  Measure measure = Measure::DispatchComplete;
  uint64_t ring = 0;  // sets of inputs; 0: as many as take 32 MiB
};

// Prepares a sample that has passed. `launcher` is null where the interpreter runs launches. With
// `like`, which must outlive the result, the two use the same memory as far as their inputs are the
// same, so that it cannot make a difference. Null after reporting.
std::unique_ptr<TimedWork> make_timed_work(const RunContext& context, CpuLauncher* launcher,
                                           const Case& of, uint64_t ordinal,
                                           const TimedWorkOptions& options, const TimedWork* like,
                                           Diagnostics& diagnostics);

}  // namespace loom::check
