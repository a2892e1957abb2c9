// Times work: warm-up, batches long enough for the clock, and two sides in turns.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "loom/check/statistics.h"
#include "loom/check/timed_work.h"

namespace loom::check {

struct MeasureOptions {
  double warm_up = 0.05;  // seconds before the first batch
  // Seconds of batches as if each took as long as the fastest one, so that interruptions do not
  // count; of a comparison, of both sides together.
  double least_time = 0.5;
  // Seconds after which no further batch begins, warm-up included; with the last batch below ten.
  double most_time = 9.5;
  uint64_t batch_size = 0;  // operations timed at once; 0: as many as batch_time takes
  double batch_time = 1e-3;
  uint64_t repetitions = 0;  // batches of each side; 0: as least_time says
  Interleave interleave = Interleave::Ababa;
  // A comparison goes on past least_time while the half of its interval and its floor together are
  // wider than this part of the time. It is never the answer that ends it.
  double precision = 0.02;
  std::function<double()> clock;  // seconds; empty: the steady clock
};

struct Measurement {
  std::vector<double> batches;  // nanoseconds of one operation, by batch in the order of time
  uint64_t batch_size = 0;
  double seconds = 0;   // with warm-up
  bool capped = false;  // most_time ended it

  Summary summary() const { return summarize(batches); }
};

// Nothing after reporting.
std::optional<Measurement> measure(TimedWork& work, const MeasureOptions& options,
                                   Diagnostics& diagnostics);

struct ComparedMeasurement {
  Measurement a;
  Measurement b;
  std::optional<Difference> difference;  // nothing where most_time came before enough pairs
  double seconds = 0;
};
std::optional<ComparedMeasurement> measure_both(TimedWork& a, TimedWork& b,
                                                const MeasureOptions& options,
                                                Diagnostics& diagnostics);

// What speaks against the numbers: a load on the machine, and times that are far apart. Empty where
// nothing does.
std::string noise_text(const Summary& summary);

}  // namespace loom::check
