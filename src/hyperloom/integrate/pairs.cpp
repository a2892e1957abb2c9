#include "hyperloom/integrate/pairs.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace hyperloom::integrate {
namespace {

// Enough for an interval of A against A; a fixed number, so that the floor of two sessions
// compares.
constexpr size_t kNoisePairs = 12;

std::unexpected<SideError> of_side(Error error, bool candidate) {
  return std::unexpected(SideError{std::move(error), candidate});
}

Error stopped() { return {"cancelled", "stopped while measuring", ""}; }

}  // namespace

SideResult<PairedBench> PairedBench::open(const task::Context& context, const workload::Variant& a,
                                          const workload::Variant& b, const std::string& tag,
                                          const PairOptions& options) {
  PairedBench pair(context, tag, options);
  auto bench = context.workload.start(context.call_timeout(options.call_timeout_sec), context.stop);
  if (!bench) return of_side(bench.error(), false);
  pair.bench_ = std::move(*bench);
  auto loaded = pair.bench_->load("a", a);
  if (!loaded) return of_side(loaded.error(), false);
  pair.a_ = std::move(*loaded);
  loaded = pair.bench_->load("b", b);
  if (!loaded) return of_side(loaded.error(), true);
  pair.b_ = std::move(*loaded);
  return pair;
}

SideResult<double> PairedBench::sample(size_t n, bool candidate) {
  const std::string key = fmt::format("pair|{}|{}|{}|{}|{}", a_.content_hash, b_.content_hash, tag_,
                                      n, candidate ? "b" : "a");
  if (context_->stopped()) return of_side(stopped(), false);
  // A replayed measurement needs no warm program.
  const auto value = context_->meter.value(key, [&]() -> Result<Json> {
    const char* name = candidate ? "b" : "a";
    if (!std::exchange(warm_[candidate], true)) {
      auto thrown_away = bench_->throughput(name, options_.sample_seconds);
      if (!thrown_away) return std::unexpected(thrown_away.error());
    }
    auto measured = bench_->throughput(name, options_.sample_seconds);
    if (!measured) return std::unexpected(measured.error());
    return Json(*measured);
  });
  // What a stop cut short is no failure of either side.
  if (context_->stopped()) return of_side(stopped(), false);
  if (!value) return of_side(value.error(), candidate);
  const double throughput = value->is_number() ? value->get<double>() : 0;
  if (!(throughput > 0) || !std::isfinite(throughput)) {
    return of_side({"workload_garbage", key + ": is no throughput", ""}, candidate);
  }
  return throughput;
}

SideResult<PairedGain> PairedBench::measure(const std::function<bool(const GainInterval&)>& enough,
                                            bool& budget_ended) {
  PairedGain gain;
  budget_ended = false;
  while (gain.pairs() < options_.max_pairs) {
    if (options_.deadline.passed()) break;
    const auto a = sample(gain.pairs(), false);
    if (!a) return std::unexpected(a.error());
    const auto b = sample(gain.pairs(), true);
    if (!b) return std::unexpected(b.error());
    gain.add(*a, *b);
    if (gain.pairs() >= options_.min_pairs && enough(gain.interval())) return gain;
  }
  budget_ended = true;
  return gain;
}

Result<Hold> hold_devices(const task::Context& context, const std::string& action,
                          const Deadline& deadline) {
  Hold hold;
  auto lane = context.lanes.acquire("benchmark_lane", action, deadline, context.stop);
  if (!lane) return std::unexpected(lane.error());
  hold.lane = std::move(*lane);
  std::string device;
  auto lease =
      context.lanes.acquire_device({context.workload.device()}, device, deadline, context.stop);
  if (!lease) return std::unexpected(lease.error());
  hold.device = std::move(*lease);
  return hold;
}

Result<double> noise_floor_pct(const task::Context& context, const workload::Variant& a,
                               const PairOptions& options) {
  const Json known = context.state().get("noise_floor");
  if (value_of(known, "pct").is_number()) return number_of(known, "pct");
  PairOptions once = options;
  once.min_pairs = once.max_pairs = kNoisePairs;
  auto bench = PairedBench::open(context, a, a, "noise", once);
  if (!bench) return std::unexpected(bench.error().error);
  bool ended = false;
  const auto gain = bench->measure([](const GainInterval&) { return true; }, ended);
  if (!gain) return std::unexpected(gain.error().error);
  const GainInterval interval = gain->interval();
  if (!interval.bounded) {
    return fail("noise_not_measured", "the measuring budget ended before the noise was known",
                "give the integration more time");
  }
  const double pct = interval.half_width();
  const Json record = {{"pct", pct},
                       {"pairs", interval.pairs},
                       {"content_hash", bench->a().content_hash},
                       {"ts", utc_now()}};
  auto saved =
      context.state().update("noise_floor", [&](Json& state) { state["noise_floor"] = record; });
  if (!saved) return std::unexpected(saved.error());
  return pct;
}

}  // namespace hyperloom::integrate
