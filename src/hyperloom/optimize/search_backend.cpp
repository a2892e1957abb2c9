#include "hyperloom/optimize/search_backend.h"

#include <fmt/format.h>

#include <utility>

#include "hyperloom/optimize/run_files.h"

namespace hyperloom::optimize {
namespace {

// Left over for verification when the search is over.
constexpr double kReserveSeconds = 5;

class Searcher {
 public:
  Searcher(Attempt& attempt, const Json& config) : attempt_(attempt) {
    options_.sizes = attempt.space.sizes();
    options_.seed = attempt.seed;
    options_.exhaustive_up_to = count(config, "exhaustive_up_to", 64);
    options_.most = count(config, "most", 256);
    options_.patience = count(config, "patience", 64);
    options_.least_gain = number_of(config, "least_gain", 0.01);
    options_.restarts = static_cast<unsigned>(count(config, "restarts", 2));
    rigour_.pairs = static_cast<unsigned>(count(config, "pairs", 3));
    for (size_t i = 0; i < count(config, "seeds", 2); ++i) {
      rigour_.seeds.push_back(attempt.seed + i);
    }
    rigour_.key = attempt.attempt_id;
  }

  Outcome run(const Strategy& strategy) {
    if (points() <= 1) {
      attempt_.say("nothing to choose: no configuration key and no rewrite applies");
      outcome_.returncode = 2;
      outcome_.error_type = "empty_space";
      outcome_.message = "no configuration key and no rewrite applies";
      return std::move(outcome_);
    }
    const auto baseline = attempt_.judge.baseline(attempt_.attempt_id);
    if (!baseline) return failed(baseline.error());
    outcome_.baseline_ms = *baseline / 1e6;
    attempt_.say(fmt::format("as it is: {:.6f} ms", outcome_.baseline_ms));
    const SearchResult found =
        strategy(options_, {[this](const Point& point) { return evaluate(point); },
                            [this](size_t evaluated) { return go_on(evaluated); }});
    outcome_.evaluated = found.evaluated;
    outcome_.exhausted = found.exhausted;
    if (error_) return failed(*error_);
    attempt_.say(fmt::format("{} candidates, {}: best {:.4f}x", found.evaluated,
                             found.exhausted ? "nothing left to try" : "stopped",
                             outcome_.best ? outcome_.best->speedup : 1.0));
    return std::move(outcome_);
  }

 private:
  static size_t count(const Json& config, std::string_view key, size_t fallback) {
    const Json& value = value_of(config, key);
    return value.is_number_unsigned() ? value.get<size_t>() : fallback;
  }
  size_t points() const {
    size_t changes = 1;
    for (const unsigned size : options_.sizes) changes += size - 1;
    return changes;
  }

  // What was found before the failure stays found.
  Outcome failed(const Error& error) {
    attempt_.say(error.error_class + ": " + error.message);
    outcome_.returncode = error.error_class == "ladder_timeout" ? 124 : 1;
    outcome_.error_type = error.error_class;
    outcome_.message = error.message;
    return std::move(outcome_);
  }

  bool go_on(size_t evaluated) {
    if (error_) return false;
    if (attempt_.context.stopped()) {
      error_ = Error{"cancelled", "the session was stopped", ""};
      return false;
    }
    const auto answer = attempt_.context.meter.value(
        fmt::format("go_on|{}|{}", attempt_.attempt_id, evaluated),
        [&]() -> Result<Json> { return Json(attempt_.clock.seconds_left() > kReserveSeconds); });
    if (!answer) error_ = answer.error();
    return answer && *answer == true;
  }

  std::optional<double> evaluate(const Point& point) {
    const std::string words = attempt_.space.words(point);
    const auto change = attempt_.space.change(point);
    if (!change) {
      attempt_.say(fmt::format("{}: {}", words, change.error().message));
      return std::nullopt;
    }
    if (auto set = attempt_.tree.set(*change); !set) {
      error_ = set.error();
      return std::nullopt;
    }
    rigour_.to_beat = outcome_.best ? outcome_.best->speedup : 0;
    const auto judged = attempt_.judge.evaluate({attempt_.tree.root(), change->envs}, rigour_);
    if (!judged) {
      error_ = judged.error();
      return std::nullopt;
    }
    if (judged->status == "same_code") {
      attempt_.say(words + ": " + judged->message);
      return 1.0;
    }
    if (!judged->usable()) {
      attempt_.say(fmt::format("{}: {}: {}", words, judged->status, judged->message));
      return std::nullopt;
    }
    outcome_.measured = true;
    attempt_.say(
        fmt::format("{}: {:.6f} ms, {:.4f}x", words, judged->after / 1e6, judged->speedup));
    remember(*change, point, words, *judged);
    return 1 / judged->speedup;
  }

  void remember(const Change& change, const Point& point, const std::string& words,
                const Evaluation& judged) {
    const double best = outcome_.best ? outcome_.best->speedup : 1.0;
    if (judged.speedup > best) {
      outcome_.best = Found{change,
                            point,
                            words,
                            judged.speedup,
                            judged.before / 1e6,
                            judged.after / 1e6,
                            judged.content_hash};
      const Json checkpoint = {{"attempt_id", attempt_.attempt_id},
                               {"point", point},
                               {"words", words},
                               {"speedup", judged.speedup},
                               {"content_hash", judged.content_hash}};
      const auto saved =
          save_json("kernel_opt.checkpoint", attempt_.workspace / "checkpoint.json", checkpoint);
      if (!saved) error_ = saved.error();
    }
    attempt_.context.show({"KERNEL", attempt_.kernel.empty() ? "program" : attempt_.kernel,
                           attempt_.attempt_id, words, outcome_.best ? outcome_.best->speedup : 1.0,
                           attempt_.clock.seconds_left()});
  }

  Attempt& attempt_;
  SearchOptions options_;
  Rigour rigour_;
  Outcome outcome_;
  std::optional<Error> error_;
};

}  // namespace

Outcome search_attempt(Attempt& attempt, const Strategy& strategy) {
  const auto config = read_json(attempt.config);
  return Searcher(attempt, config ? *config : Json::object()).run(strategy);
}

}  // namespace hyperloom::optimize
