#include "hyperloom/optimize/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace hyperloom::optimize {
namespace {

constexpr const char* kBefore = "before";
constexpr const char* kAfter = "after";
// A call on the bench that takes longer than this hangs.
constexpr double kCallSeconds = 60;
// One sample of a kernel is the median of so many issues as fit in here, and of at least one.
constexpr double kSampleSeconds = 0.02;
constexpr unsigned kMostIssues = 9;
// One sample of a program's throughput.
constexpr double kThroughputSeconds = 0.06;
// A candidate whose first pair is slower than this, or than this part of what it has to beat, is
// not timed any further.
constexpr double kHopeless = 0.8;
constexpr double kContender = 0.9;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

bool kills_bench(const std::string& error_class) {
  static constexpr std::array kClasses = {"workload_crashed", "workload_hung", "workload_garbage",
                                          "cancelled", "missing_compiler"};
  return std::ranges::find(kClasses, error_class) != kClasses.end();
}

}  // namespace

// Given back in the opposite order.
struct Judge::Turn {
  bus::Lease lane;
  std::unique_ptr<QuietMachine::Turn> quiet;
  bus::Lease device;
};

Judge::Judge(const task::Context& context, LadderClock& clock, QuietMachine* quiet,
             std::string kernel)
    : context_(context), clock_(clock), quiet_(quiet), kernel_(std::move(kernel)) {
  const Json best = context.state().get("current_best");
  if (const Json& envs = value_of(best, "extra_envs"); envs.is_object()) envs_ = envs;
}
Judge::~Judge() = default;

Error Judge::given_up() const {
  if (context_.stopped()) return {"cancelled", "the session was stopped", ""};
  return {"ladder_timeout", "the time of this kernel is used up", ""};
}

Result<void> Judge::ensure() {
  if (context_.stopped() || clock_.passed()) return std::unexpected(given_up());
  if (bench_ != nullptr) return {};
  auto bench =
      context_.workload.start(std::min(kCallSeconds, clock_.seconds_left()), context_.stop);
  if (!bench) return std::unexpected(bench.error());
  bench_ = std::move(*bench);
  auto loaded = load(kBefore, {context_.workload.tree(), envs_});
  if (!loaded) {
    bench_.reset();
    if (loaded.error().error_class == "cancelled") return std::unexpected(given_up());
    return fail("baseline_failed", "the program as it is: " + loaded.error().message,
                loaded.error().hint);
  }
  baseline_hash_ = loaded->content_hash;
  kernels_ = loaded->kernels;
  return {};
}

Result<workload::Loaded> Judge::load(const std::string& name, const workload::Variant& variant) {
  if (quiet_ == nullptr) return bench_->load(name, variant);
  std::unique_ptr<QuietMachine::Turn> turn;
  {
    const LadderClock::Waiting waiting(clock_);
    turn = std::make_unique<QuietMachine::Turn>(*quiet_, false);
  }
  return bench_->load(name, variant);
}

Result<void> Judge::take(std::unique_ptr<Turn>& turn, bool timed) {
  if (turn != nullptr) return {};
  auto taken = std::make_unique<Turn>();
  const LadderClock::Waiting waiting(clock_);
  if (timed) {
    auto lane =
        context_.lanes.acquire("benchmark_lane", "kernel_opt", context_.deadline, context_.stop);
    if (!lane) return std::unexpected(lane.error());
    taken->lane = std::move(*lane);
    if (quiet_ != nullptr) taken->quiet = std::make_unique<QuietMachine::Turn>(*quiet_, true);
  }
  std::string name;
  auto device = context_.lanes.acquire_device({context_.workload.device()}, name, context_.deadline,
                                              context_.stop);
  if (!device) return std::unexpected(device.error());
  taken->device = std::move(*device);
  turn = std::move(taken);
  return {};
}

bool Judge::blame(Evaluation& evaluation, const Error& error) {
  if (kills_bench(error.error_class)) bench_.reset();
  if (context_.stopped() || clock_.passed()) return false;
  static constexpr std::array kFaults = {"build_failed",     "workload_crashed", "workload_hung",
                                         "workload_garbage", "workload_failed",  "unknown_kernel"};
  if (std::ranges::find(kFaults, error.error_class) == kFaults.end()) return false;
  evaluation.status = error.error_class;
  evaluation.message = error.message;
  return true;
}

Result<workload::Loaded> Judge::load_candidate(const workload::Variant& candidate) {
  workload::Variant over{candidate.tree, envs_};
  over.envs.update(candidate.envs);
  return load(kAfter, over);
}

Result<Evaluation> Judge::evaluate(const workload::Variant& candidate, const Rigour& rigour) {
  if (auto ready = ensure(); !ready) return std::unexpected(ready.error());
  Evaluation evaluation;
  const auto loaded = load_candidate(candidate);
  if (!loaded) {
    if (blame(evaluation, loaded.error())) return evaluation;
    return std::unexpected(context_.stopped() || clock_.passed() ? given_up() : loaded.error());
  }
  evaluation.content_hash = loaded->content_hash;
  if (loaded->content_hash == baseline_hash_) {
    evaluation.status = "same_code";
    evaluation.message = "the compiler makes the same code of it";
    evaluation.correct = true;
    return evaluation;
  }
  for (const auto step : {&Judge::check, &Judge::time}) {
    const auto done = (this->*step)(evaluation, rigour);
    if (!done) {
      if (blame(evaluation, done.error())) return evaluation;
      return std::unexpected(context_.stopped() || clock_.passed() ? given_up() : done.error());
    }
    if (!evaluation.correct) return evaluation;
  }
  evaluation.status = "ok";
  return evaluation;
}

Result<void> Judge::check(Evaluation& evaluation, const Rigour& rigour) {
  evaluation.correct = false;
  std::unique_ptr<Turn> turn;
  const auto compare = [&](uint64_t seed, bool adversarial) -> Result<bool> {
    const std::string key = fmt::format("check|{}|{}|{}", evaluation.content_hash, seed,
                                        adversarial ? "adversarial" : "random");
    const auto answer = context_.meter.value(key, [&]() -> Result<Json> {
      if (auto held = take(turn, false); !held) return std::unexpected(held.error());
      const auto agreement = bench_->compare(kAfter, "", seed, adversarial, false);
      if (!agreement) return std::unexpected(agreement.error());
      return Json{{"correct", agreement->correct},
                  {"where", agreement->where},
                  {"worst_error", agreement->worst_error},
                  {"reference", agreement->reference}};
    });
    if (!answer) return std::unexpected(answer.error());
    evaluation.reference = text_of(*answer, "reference");
    if (flag_of(*answer, "correct")) return true;
    evaluation.status = "wrong";
    evaluation.message = fmt::format("{} on {} inputs of seed {}", text_of(*answer, "where"),
                                     adversarial ? "adversarial" : "random", seed);
    return false;
  };
  for (const uint64_t seed : rigour.seeds) {
    for (const bool adversarial : {false, true}) {
      const auto agreed = compare(seed, adversarial);
      if (!agreed) return std::unexpected(agreed.error());
      if (!*agreed) return {};
    }
  }
  evaluation.correct = true;
  return {};
}

Result<double> Judge::sample(const std::string& name) {
  if (kernel_.empty()) {
    const auto issues = bench_->throughput(name, kThroughputSeconds);
    if (!issues) return std::unexpected(issues.error());
    if (*issues <= 0) return fail("workload_garbage", "no issue ended");
    return 1e9 / *issues;
  }
  if (issues_ == 0) {
    const auto begin = std::chrono::steady_clock::now();
    if (const auto warm = bench_->kernel_ns(name, kernel_, 1); !warm) return warm;
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    issues_ = static_cast<unsigned>(
        std::clamp(kSampleSeconds / std::max(seconds, 1e-6), 1.0, double{kMostIssues}));
  }
  const auto ns = bench_->kernel_ns(name, kernel_, issues_);
  if (ns && *ns <= 0) return fail("workload_garbage", "the kernel took no time");
  return ns;
}

Result<void> Judge::time(Evaluation& evaluation, const Rigour& rigour) {
  std::vector<double> before;
  std::vector<double> after;
  std::vector<double> quotients;
  std::unique_ptr<Turn> turn;
  const auto key = [&](unsigned pair) {
    return fmt::format("time|{}|{}|{}|{}|{}", rigour.key, kernel_, baseline_hash_,
                       evaluation.content_hash, pair);
  };
  for (unsigned pair = 0; pair < rigour.pairs; ++pair) {
    const auto answer = context_.meter.value(key(pair), [&]() -> Result<Json> {
      if (auto held = take(turn, true); !held) return std::unexpected(held.error());
      Json value = Json::array();
      for (const char* name : {kBefore, kAfter}) {
        const auto ns = sample(name);
        if (!ns) return std::unexpected(ns.error());
        value.push_back(*ns);
      }
      return value;
    });
    if (!answer) return std::unexpected(answer.error());
    if (!answer->is_array() || answer->size() != 2) {
      return fail("workload_garbage", "a recorded pair is none");
    }
    before.push_back((*answer)[0].get<double>());
    after.push_back((*answer)[1].get<double>());
    quotients.push_back(before.back() / after.back());
    if (pair == 0 && quotients.back() < std::max(kHopeless, kContender * rigour.to_beat)) break;
  }
  if (quotients.empty()) return {};
  evaluation.before = median(before);
  evaluation.after = median(after);
  evaluation.speedup = median(quotients);
  return {};
}

Result<double> Judge::baseline(const std::string& key) {
  if (auto ready = ensure(); !ready) return std::unexpected(ready.error());
  const auto answer = context_.meter.value(
      fmt::format("baseline|{}|{}|{}", key, kernel_, baseline_hash_), [&]() -> Result<Json> {
        std::unique_ptr<Turn> turn;
        if (auto held = take(turn, true); !held) return std::unexpected(held.error());
        const auto ns = sample(kBefore);
        if (!ns) return std::unexpected(ns.error());
        return Json(*ns);
      });
  if (!answer) {
    if (kills_bench(answer.error().error_class)) bench_.reset();
    if (context_.stopped() || clock_.passed()) return std::unexpected(given_up());
    return fail("baseline_failed", "the program as it is: " + answer.error().message);
  }
  return answer->is_number() ? Result<double>(answer->get<double>())
                             : fail("baseline_failed", "the recorded baseline is no number");
}

Result<Json> Judge::kernel_speedups(const workload::Variant& candidate, const Rigour& rigour) {
  if (auto ready = ensure(); !ready) return std::unexpected(ready.error());
  const auto loaded = load_candidate(candidate);
  if (!loaded) return std::unexpected(loaded.error());
  Json speedups = Json::object();
  for (const std::string& kernel : kernels_) {
    if (std::ranges::find(loaded->kernels, kernel) == loaded->kernels.end()) continue;
    kernel_ = kernel;
    issues_ = 0;
    Evaluation evaluation;
    evaluation.content_hash = loaded->content_hash;
    if (auto timed = time(evaluation, rigour); !timed) return std::unexpected(timed.error());
    speedups[kernel] = evaluation.speedup;
  }
  return speedups;
}

Result<std::string> Judge::baseline_hash() {
  if (auto ready = ensure(); !ready) return std::unexpected(ready.error());
  return baseline_hash_;
}

}  // namespace hyperloom::optimize
