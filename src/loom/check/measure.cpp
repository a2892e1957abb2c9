#include "loom/check/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <thread>

namespace loom::check {
namespace {

constexpr double kNoisySpread = 0.25;
constexpr uint64_t kLeastBatches = 10;
constexpr uint64_t kMostBatch = uint64_t{1} << 24;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// One side: how long its batches are, and the times that they took.
class Side {
 public:
  Side(TimedWork& work, const MeasureOptions& options, const std::function<double()>& clock,
       Diagnostics& diagnostics)
      : work_(work), options_(options), clock_(clock), diagnostics_(diagnostics) {}

  // Seconds of one batch; nothing after reporting.
  std::optional<double> batch(uint64_t count) {
    const double start = clock_();
    if (!work_.run(count, diagnostics_)) return std::nullopt;
    const double spent = clock_() - start;
    work_.restore();
    return spent;
  }

  // Runs for the warm-up, and finds the number of operations that takes the time of a batch.
  bool warm_up(double until) {
    const uint64_t most = std::min(kMostBatch, work_.most_batch);
    uint64_t count = std::min(most, std::max<uint64_t>(options_.batch_size, 1));
    const double start = clock_();
    for (;;) {
      const auto spent = batch(count);
      if (!spent) return false;
      const bool long_enough =
          options_.batch_size != 0 || *spent >= options_.batch_time || count >= kMostBatch;
      const double now = clock_();
      if (long_enough && (now - start >= options_.warm_up || now >= until)) break;
      if (now >= until) break;
      if (!long_enough) {
        const double wanted = options_.batch_time / std::max(*spent, 1e-9) * 1.2;
        const auto grown =
            static_cast<uint64_t>(static_cast<double>(count) * std::clamp(wanted, 1.5, 10.0));
        count = std::min(most, grown + 1);
      }
    }
    made.batch_size = count;
    return true;
  }

  bool timed() {
    const auto spent = batch(made.batch_size);
    if (!spent) return false;
    made.batches.push_back(*spent * 1e9 / static_cast<double>(made.batch_size));
    fastest_ = std::min(fastest_, *spent);
    return true;
  }

  // Of all batches, without interruptions.
  double seconds() const { return fastest_ * static_cast<double>(made.batches.size()); }

  Measurement made;

 private:
  TimedWork& work_;
  const MeasureOptions& options_;
  const std::function<double()>& clock_;
  Diagnostics& diagnostics_;
  double fastest_ = std::numeric_limits<double>::max();
};

// Whether more pairs would say more.
bool is_vague(const Side& a, const Side& b, const MeasureOptions& options) {
  if (options.precision <= 0 || a.made.batches.size() < kLeastPairs) return false;
  const Difference found = difference(a.made.batches, b.made.batches, Interleave::RoundRobin);
  return std::log(found.high / found.low) / 2 + found.floor > options.precision;
}

}  // namespace

std::optional<Measurement> measure(TimedWork& work, const MeasureOptions& options,
                                   Diagnostics& diagnostics) {
  const std::function<double()> clock = options.clock ? options.clock : steady_seconds;
  const double start = clock();
  const double until = start + options.most_time;
  Side side(work, options, clock, diagnostics);
  if (!side.warm_up(until)) return std::nullopt;
  for (;;) {
    if (!side.timed()) return std::nullopt;
    const uint64_t count = side.made.batches.size();
    const bool enough = options.repetitions != 0
                            ? count >= options.repetitions
                            : side.seconds() >= options.least_time && count >= kLeastBatches;
    if (enough) break;
    side.made.capped = clock() >= until;
    if (side.made.capped) break;
  }
  side.made.seconds = clock() - start;
  return std::move(side.made);
}

std::optional<ComparedMeasurement> measure_both(TimedWork& a, TimedWork& b,
                                                const MeasureOptions& options,
                                                Diagnostics& diagnostics) {
  const std::function<double()> clock = options.clock ? options.clock : steady_seconds;
  const double start = clock();
  const double until = start + options.most_time;
  Side first(a, options, clock, diagnostics);
  Side second(b, options, clock, diagnostics);
  if (!first.warm_up(until) || !second.warm_up(until)) return std::nullopt;
  bool capped = false;
  double wanted = options.least_time;
  for (uint64_t pairs = 0;; ++pairs) {
    if (capped || (options.repetitions != 0 && pairs >= options.repetitions)) break;
    const bool enough = pairs >= kLeastPairs && first.seconds() + second.seconds() >= wanted;
    if (options.repetitions == 0 && enough) {
      if (!is_vague(first, second, options)) break;
      wanted += std::max(options.least_time, 0.1) / 2;
    }
    if (!first.timed() || !second.timed()) return std::nullopt;
    capped = clock() >= until;
  }
  if (options.interleave == Interleave::Ababa && !first.timed()) return std::nullopt;
  ComparedMeasurement made;
  first.made.capped = second.made.capped = capped;
  made.a = std::move(first.made);
  made.b = std::move(second.made);
  made.seconds = clock() - start;
  if (made.a.batches.size() >= kLeastPairs && made.b.batches.size() >= kLeastPairs) {
    made.difference = difference(made.a.batches, made.b.batches, options.interleave);
  }
  return made;
}

std::string noise_text(const Summary& summary) {
  std::string text;
  double load = 0;
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  if (::getloadavg(&load, 1) == 1 && load > 0.5 * processors + 1) {
    text = fmt::format("a load of {:.1f} on {} processors", load, processors);
  }
  if (summary.spread() > kNoisySpread) {
    text += fmt::format("{}a spread of {:.0f}% between its times", text.empty() ? "" : ", ",
                        summary.spread() * 100);
  }
  return text;
}

}  // namespace loom::check
