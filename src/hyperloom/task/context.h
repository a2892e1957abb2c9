// What every engine (analysis, optimization, integration, lanes) works with.
#pragma once

#include <algorithm>
#include <functional>
#include <stop_token>
#include <string>

#include "hyperloom/bus/bus.h"
#include "hyperloom/bus/lanes.h"
#include "hyperloom/core/environment.h"
#include "hyperloom/core/time.h"
#include "hyperloom/session/session.h"
#include "hyperloom/workload/meter.h"
#include "hyperloom/workload/workload.h"

namespace hyperloom::task {

// What people see of long work. Fields that are not known are empty or negative.
struct Progress {
  std::string phase;
  std::string kernel;
  std::string attempt;
  std::string step;
  double best_so_far = -1;  // speed-up of what is shown, 1 is unchanged
  double seconds_left = -1;
};

// Lent for the length of a call; everything in it outlives the call. May be copied to threads.
struct Context {
  session::Session& session;
  const Environment& environment;
  workload::Workload& workload;
  workload::Meter& meter;
  bus::Bus& bus;
  bus::Lanes& lanes;
  std::stop_token stop;
  Deadline deadline;                              // of the session
  std::function<void(const Progress&)> progress;  // any thread; may be empty
  uint64_t seed = 0;                              // of every random choice

  session::SharedState& state() const { return session.state(); }
  const session::Layout& layout() const { return session.layout(); }
  bool stopped() const { return stop.stop_requested() || deadline.passed(); }
  // Seconds for one call on a bench: `most`, and less where the session ends sooner, so that a
  // program that hangs does not outlive its session's budget.
  double call_timeout(double most) const {
    constexpr double kLeast = 1;
    return std::clamp(deadline.seconds_left(), kLeast, std::max(kLeast, most));
  }
  void show(const Progress& what) const {
    if (progress) progress(what);
  }
};

}  // namespace hyperloom::task
