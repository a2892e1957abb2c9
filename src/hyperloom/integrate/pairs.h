// Interleaved measurements of two variants that one bench has loaded.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "hyperloom/integrate/interval.h"
#include "hyperloom/task/context.h"

namespace hyperloom::integrate {

struct PairOptions {
  size_t min_pairs = 6;         // before the first look
  size_t max_pairs = 40;        // the measuring budget
  double sample_seconds = 0.2;  // of one sample of one side
  double call_timeout_sec = 120;
  Deadline deadline;  // also ends the measuring budget
};

// Which side an error belongs to: the A side is what runs already, so its failure says nothing of
// the candidate.
struct SideError {
  Error error;
  bool candidate = false;
};
template <class T>
using SideResult = std::expected<T, SideError>;

// A bench with A and B loaded. The devices and the lane are the caller's; see hold_devices().
class PairedBench {
 public:
  // `tag` tells measurements of the same two hashes apart (attempt, fresh start). Errors: those of
  // Bench::load and Workload::start.
  static SideResult<PairedBench> open(const task::Context& context, const workload::Variant& a,
                                      const workload::Variant& b, const std::string& tag,
                                      const PairOptions& options);

  const workload::Loaded& a() const { return a_; }
  const workload::Loaded& b() const { return b_; }
  workload::Bench& bench() { return *bench_; }

  // A, B, A, B, ...: one warm-up of each side is thrown away, then pairs are added until `enough`
  // (called from min_pairs on) says so or the budget ends. Sets `budget_ended`. Each sample goes
  // through the meter as "pair|<A>|<B>|<tag>|<n>|a" and "...|b". Errors: those of
  // Bench::throughput; "cancelled" when stopped or when the session's deadline passes.
  SideResult<PairedGain> measure(const std::function<bool(const GainInterval&)>& enough,
                                 bool& budget_ended);

 private:
  PairedBench(const task::Context& context, std::string tag, const PairOptions& options)
      : context_(&context), tag_(std::move(tag)), options_(options) {}
  SideResult<double> sample(size_t n, bool candidate);

  const task::Context* context_;
  std::string tag_;
  PairOptions options_;
  std::unique_ptr<workload::Bench> bench_;
  workload::Loaded a_;
  workload::Loaded b_;
  bool warm_[2] = {false, false};
};

// One hold of the benchmark lane and of the workload's device; give it back by letting it go.
struct Hold {
  bus::Lease lane;
  bus::Lease device;
};
Result<Hold> hold_devices(const task::Context& context, const std::string& action,
                          const Deadline& deadline);

// Half-width, in percent, of the interval of A against A: measured once per session and workload,
// kept in `state.noise_floor` {pct, pairs, content_hash, ts}. The caller holds the devices.
Result<double> noise_floor_pct(const task::Context& context, const workload::Variant& a,
                               const PairOptions& options);

}  // namespace hyperloom::integrate
