#include "hyperloom/integrate/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hyperloom/integrate/gain_ledger.h"
#include "loom/base/hash.h"

namespace hyperloom::integrate {
namespace {

constexpr unsigned kHeldOutSeeds = 3;
constexpr unsigned kKernelIssues = 15;
constexpr size_t kStackSamples = 6;

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

class Judge {
 public:
  Judge(const task::Context& context, const Question& question)
      : context_(context), question_(question) {}

  Answer run() {
    answer_.fields["noise_floor_pct"] = question_.noise_floor_pct;
    answer_.fields["validation_tier"] = "native_paired";
    answer_.fields["accuracy_gate"] = "not_run";
    bound_ = question_.kernels.empty()
                 ? HUGE_VAL
                 : plausible_gain_pct(question_.kernels) + question_.noise_floor_pct;
    answer_.fields["plausible_max_pct"] = finite(bound_);
    if (!open(question_.tag) || !confirm_import()) return std::move(answer_);
    if (!measure()) return std::move(answer_);
    if (is_doubtful() && !measure_again()) return std::move(answer_);
    if (const auto judged = judge_gain(gain_, question_.keep_threshold_pct, true)) {
      answer_.judgement = *judged;
    } else if (check_results()) {
      answer_.judgement = {Decision::Keep, "gain_confirmed"};
    }
    return std::move(answer_);
  }

 private:
  void review(std::string reason, std::string error_class, std::string error) {
    answer_.judgement = {Decision::NeedsReview, std::move(reason)};
    answer_.error_class = std::move(error_class);
    answer_.error = std::move(error);
  }

  // Always false, for the caller to pass on.
  bool failed_side(const SideError& failure) {
    if (context_.stopped()) {
      const Error stop = stop_error(context_);
      review("stopped", stop.error_class, stop.message);
      return false;
    }
    if (!failure.candidate || !original_runs()) {
      review("evaluation_impossible", failure.error.error_class, failure.error.message);
      return false;
    }
    answer_.judgement = {Decision::Revert, failure.error.error_class};
    answer_.error_class = failure.error.error_class;
    answer_.error = failure.error.message;
    answer_.fault = true;
    return false;
  }

  // A from a fresh start, as B may have taken the bench with it.
  bool original_runs() {
    bench_.reset();
    const auto throughput =
        measure_stack(context_, question_.a, question_.tag + "|alone", question_.pairs);
    return throughput.has_value();
  }

  bool open(const std::string& tag) {
    bench_.reset();
    auto bench = PairedBench::open(context_, question_.a, question_.b, tag, question_.pairs);
    if (!bench) return failed_side(bench.error());
    bench_.emplace(std::move(*bench));
    return true;
  }

  bool confirm_import() {
    const std::string& a = bench_->a().content_hash;
    const std::string& b = bench_->b().content_hash;
    answer_.fields["source_import_confirmed"] = a != b;
    answer_.fields["source_import_evidence"] = {{"a_content_hash", a}, {"b_content_hash", b}};
    if (a != b || !question_.strict_import) return true;
    review("source_import_disproved", "source_import_disproved",
           "the candidate changes nothing of the code that is loaded");
    return false;
  }

  bool measure() {
    bool ended = false;
    const auto gain = bench_->measure(
        [&](const GainInterval& now) {
          return gain_rule_holds(now, question_.keep_threshold_pct) ||
                 judge_gain(now, question_.keep_threshold_pct, false).has_value();
        },
        ended);
    if (!gain) return failed_side(gain.error());
    gain_ = gain->interval();
    answer_.tput_a = gain->mean_a();
    answer_.tput_b = gain->mean_b();
    Json& fields = answer_.fields;
    fields["new_tput"] = from_millionths(to_millionths(answer_.tput_b));
    fields["measured_base_tput"] = from_millionths(to_millionths(answer_.tput_a));
    fields["delta_tput"] =
        from_millionths(to_millionths(answer_.tput_b) - to_millionths(answer_.tput_a));
    fields["gain_pct"] = gain_.point;
    fields["stack_incremental_gain_pct"] = gain_.point;
    fields["gain_low_pct"] = gain_.bounded ? finite(gain_.low) : Json();
    fields["gain_high_pct"] = gain_.bounded ? finite(gain_.high) : Json();
    fields["pairs"] = gain_.pairs;
    return true;
  }

  bool is_doubtful() const {
    return implausible(gain_, bound_) ||
           (gain_rule_holds(gain_, question_.keep_threshold_pct) &&
            past_roofline(question_.kernels, question_.noise_floor_pct));
  }

  // From a fresh start, whatever the budget says: a number that cannot be must not decide.
  bool measure_again() {
    answer_.fields["first_gain_pct"] = gain_.point;
    PairOptions options = question_.pairs;
    options.deadline = {};
    bench_.reset();
    auto bench =
        PairedBench::open(context_, question_.a, question_.b, question_.tag + "|again", options);
    if (!bench) return failed_side(bench.error());
    bench_.emplace(std::move(*bench));
    if (!measure()) return false;
    const bool past = past_roofline(measured_kernels(), question_.noise_floor_pct);
    if (!implausible(gain_, bound_) && !past) return true;
    review("implausible", "implausible",
           past ? "a kernel would run past its roofline"
                : fmt::format("measured {:+.2f} % twice where at most {:.2f} % are possible",
                              gain_.point, bound_));
    return false;
  }

  // The kernels with speed-ups as they are measured in the two loaded programs.
  std::vector<ChangedKernel> measured_kernels() {
    std::vector<ChangedKernel> result = question_.kernels;
    for (ChangedKernel& kernel : result) {
      if (!kernel.roofline_pct || kernel.name.empty()) continue;
      const auto before = kernel_ns(kernel.name, false);
      const auto after = kernel_ns(kernel.name, true);
      if (before && after && *after > 0) kernel.speed_up = *before / *after;
    }
    return result;
  }
  std::optional<double> kernel_ns(const std::string& name, bool candidate) {
    const workload::Loaded& side = candidate ? bench_->b() : bench_->a();
    const auto value = context_.meter.value(
        fmt::format("kernel|{}|{}|{}|again", side.content_hash, name, question_.tag),
        [&]() -> Result<Json> {
          auto ns = bench_->bench().kernel_ns(candidate ? "b" : "a", name, kKernelIssues);
          if (!ns) return std::unexpected(ns.error());
          return Json(*ns);
        });
    if (!value || !value->is_number()) return std::nullopt;
    return value->get<double>();
  }

  // {accuracy, correct} of one side on one set of inputs.
  Result<Json> compare(bool candidate, uint64_t seed, bool adversarial) {
    const workload::Loaded& side = candidate ? bench_->b() : bench_->a();
    const std::string key = fmt::format("accuracy|{}|{}|{}|{}", side.content_hash, seed,
                                        adversarial ? "adversarial" : "held_out", question_.tag);
    return context_.meter.value(key, [&]() -> Result<Json> {
      const auto agreement =
          bench_->bench().compare(candidate ? "b" : "a", "", seed, adversarial, !adversarial);
      if (!agreement) return std::unexpected(agreement.error());
      return Json{{"accuracy", agreement->accuracy},
                  {"correct", agreement->correct},
                  {"where", agreement->where}};
    });
  }

  // Seeds that no optimization draws from; they follow each other, since a workload takes its
  // held-out shapes in turn.
  uint64_t held_out_seed(unsigned number) const {
    const std::string hash =
        loom::sha256_hex(fmt::format("held-out {} {}", context_.layout().id, context_.seed));
    return std::stoull(hash.substr(0, 15), nullptr, 16) + number;
  }

  // Whether the candidate may be kept as far as its results go.
  bool check_results() {
    double sum[2] = {0, 0};
    AccuracyRound round;
    for (unsigned i = 0; i <= kHeldOutSeeds; ++i) {
      const bool adversarial = i == kHeldOutSeeds;
      Json sides[2];
      for (const bool candidate : {false, true}) {
        auto side = compare(candidate, held_out_seed(i), adversarial);
        if (!side) return failed_compare(side.error(), candidate);
        sides[candidate] = std::move(*side);
        if (!adversarial) sum[candidate] += number_of(sides[candidate], "accuracy");
      }
      if (flag_of(sides[0], "correct") && !flag_of(sides[1], "correct")) {
        round.correct = false;
        answer_.error = "wrong results at " + text_of(sides[1], "where");
      }
    }
    round.baseline = sum[0] / kHeldOutSeeds;
    round.candidate = sum[1] / kHeldOutSeeds;
    return judge_round(round);
  }

  bool failed_compare(const Error& error, bool candidate) {
    // A dead bench is a crash or a hang; anything else says that this side has no accuracy.
    static constexpr std::string_view kDeaths[] = {"workload_crashed", "workload_hung",
                                                   "workload_garbage", "cancelled"};
    if (context_.stopped() ||
        (candidate && std::ranges::find(kDeaths, error.error_class) != std::end(kDeaths))) {
      return failed_side({error, candidate});
    }
    answer_.error = error.message;
    AccuracyRound round;
    return judge_round(round);
  }

  bool judge_round(const AccuracyRound& round) {
    Json& fields = answer_.fields;
    if (round.baseline) fields["baseline_accuracy"] = *round.baseline;
    if (round.candidate) fields["accuracy"] = *round.candidate;
    const AccuracyVerdict verdict = judge_accuracy(round, question_.accuracy);
    fields["accuracy_pass"] = !verdict.stops;
    fields["accuracy_gate"] = verdict.gate_off ? "off" : verdict.stops ? "failed" : "passed";
    if (!verdict.stops) return true;
    answer_.judgement = *verdict.stops;
    return false;
  }

  const task::Context& context_;
  const Question& question_;
  std::optional<PairedBench> bench_;
  GainInterval gain_;
  double bound_ = HUGE_VAL;
  Answer answer_;
};

}  // namespace

Error stop_error(const task::Context& context) {
  if (context.stop.stop_requested()) return {"session_stopped", "the session was stopped", ""};
  return {"session_time_exhausted", "the session's time is over", ""};
}

Answer evaluate(const task::Context& context, const Question& question) {
  return Judge(context, question).run();
}

Result<double> measure_stack(const task::Context& context, const workload::Variant& variant,
                             const std::string& tag, const PairOptions& options) {
  auto bench = context.workload.start(context.call_timeout(options.call_timeout_sec), context.stop);
  if (!bench) return std::unexpected(bench.error());
  const auto loaded = (*bench)->load("stack", variant);
  if (!loaded) return std::unexpected(loaded.error());
  double log_sum = 0;
  bool warm = false;
  for (size_t i = 0; i < kStackSamples; ++i) {
    if (context.stopped()) return std::unexpected(stop_error(context));
    const auto value = context.meter.value(
        fmt::format("stack|{}|{}|{}", loaded->content_hash, tag, i), [&]() -> Result<Json> {
          if (!warm) (void)(*bench)->throughput("stack", options.sample_seconds);
          warm = true;
          auto measured = (*bench)->throughput("stack", options.sample_seconds);
          if (!measured) return std::unexpected(measured.error());
          return Json(*measured);
        });
    if (!value) return std::unexpected(value.error());
    const double throughput = value->is_number() ? value->get<double>() : 0;
    if (!(throughput > 0) || !std::isfinite(throughput)) {
      return fail("workload_garbage", tag + ": is no throughput");
    }
    log_sum += std::log(throughput);
  }
  return std::exp(log_sum / kStackSamples);
}

}  // namespace hyperloom::integrate
