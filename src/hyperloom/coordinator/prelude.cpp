// PRELUDE: what the program does and how fast it is, before anything is changed.
#include <fmt/format.h>

#include "hyperloom/coordinator/phase_hooks.h"
#include "hyperloom/integrate/evaluate.h"
#include "hyperloom/integrate/pairs.h"
#include "hyperloom/trace/analyze.h"

namespace hyperloom::coordinator {
namespace {

constexpr double kCallTimeout = 120;

std::unexpected<Error> baseline_failed(const Error& error) {
  return fail("baseline_failed", fmt::format("{}: {}", error.error_class, error.message),
              error.hint);
}

// Whether the program agrees with its reference, on the shape that is measured and on the held-out
// ones.
struct Quality {
  Json agreement;
  double accuracy = 0;
};

Result<Quality> check_quality(const task::Context& context, const workload::Variant& variant) {
  auto bench = context.workload.start(context.call_timeout(kCallTimeout), context.stop);
  if (!bench) return std::unexpected(bench.error());
  const auto loaded = (*bench)->load("A", variant);
  if (!loaded) return std::unexpected(loaded.error());
  const auto ask = [&](bool held_out) {
    return context.meter.value(
        fmt::format("baseline_quality|{}|{}", loaded->content_hash, held_out),
        [&]() -> Result<Json> {
          const auto agreement = (*bench)->compare("A", "", context.seed, false, held_out);
          if (!agreement) return std::unexpected(agreement.error());
          return Json{{"correct", agreement->correct},
                      {"accuracy", agreement->accuracy},
                      {"worst_error", agreement->worst_error},
                      {"where", agreement->where},
                      {"reference", agreement->reference}};
        });
  };
  auto seen = ask(false);
  if (!seen) return std::unexpected(seen.error());
  auto held = ask(true);
  if (!held) return std::unexpected(held.error());
  return Quality{std::move(*seen), number_of(*held, "accuracy")};
}

}  // namespace

Result<void> enter_prelude(const HookScope& scope) {
  const task::Context& context = scope.context;
  if (!(number_of(Json{{"v", context.state().get("baseline_tput")}}, "v") > 0)) {
    const workload::Variant variant{.tree = context.workload.tree()};
    context.show({.phase = "PRELUDE", .step = "baseline"});
    const auto quality = check_quality(context, variant);
    if (!quality) return baseline_failed(quality.error());
    if (!flag_of(quality->agreement, "correct")) {
      return fail("baseline_failed",
                  fmt::format("the program does not agree with its reference ({}) at {}",
                              text_of(quality->agreement, "reference"),
                              text_of(quality->agreement, "where", "an output")),
                  "repair the program, or its inputs, before it is optimized");
    }
    auto hold = integrate::hold_devices(context, "baseline", context.deadline);
    if (!hold) return baseline_failed(hold.error());
    const auto tput = integrate::measure_stack(context, variant, "baseline", {});
    if (!tput) return baseline_failed(tput.error());
    if (!(*tput > 0)) {
      return fail("baseline_failed", "the measured throughput is not positive");
    }
    auto saved = context.state().update("baseline", [&](Json& state) {
      state["baseline_tput"] = *tput;
      state["baseline_accuracy"] = quality->accuracy;
      state["baseline"] = {{"tput", *tput},
                           {"accuracy", quality->accuracy},
                           {"agreement", quality->agreement},
                           {"ts", utc_now()}};
    });
    if (!saved) return saved;
  }
  if (!text_of(Json{{"v", context.state().get("last_profile_trace")}}, "v").empty()) return {};
  context.show({.phase = "PRELUDE", .step = "profile"});
  if (auto profiled = trace::profile(context, "baseline"); !profiled) {
    return note_not_run(
        context, "profile",
        fmt::format("{}: {}", profiled.error().error_class, profiled.error().message));
  }
  return {};
}

}  // namespace hyperloom::coordinator
