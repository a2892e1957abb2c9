#include "hyperloom/optimize/run_again.h"

#include <algorithm>
#include <array>

namespace hyperloom::optimize {
namespace {

bool is_failed_status(const std::string& status) {
  return status == "failed" || status == "error" || status == "timeout";
}

int64_t count_of(const Json& entry, std::string_view key) {
  const Json& value = value_of(entry, key);
  return value.is_number_integer() ? value.get<int64_t>() : 0;
}

}  // namespace

bool honest_flag(const Environment& environment, std::string_view name) {
  return environment.has(name) ? environment.flag(name) : environment.flag("HL_HONEST_E2E");
}

int64_t partial_cap(const Environment& environment) {
  return environment.integer("INFERENCE_OPTIMIZER_KERNEL_OPT_MAX_PARTIAL");
}

int64_t failure_cap(const Environment& environment, double gpu_pct) {
  const int64_t cap = environment.integer("INFERENCE_OPTIMIZER_KERNEL_OPT_MAX_FAILURES");
  const bool high = honest_flag(environment, "HL_INFRA_RETRY_HIGH_IMPACT") &&
                    gpu_pct >= environment.number("HL_INFRA_RETRY_MIN_GPU_PCT");
  return high ? std::max(cap, environment.integer("HL_INFRA_RETRY_MAX")) : cap;
}

bool is_infrastructure_failure(const Json& result) {
  static constexpr std::array kClasses = {"subtask_exception", "handler_exception",
                                          "subprocess_timeout", "kernel_agent_root_missing",
                                          "missing_integration_inputs"};
  const std::string decision =
      text_of(value_of(result, "proposal"), "decision", text_of(result, "decision"));
  if (!decision.empty()) return false;
  return is_failed_status(text_of(result, "status")) ||
         std::ranges::find(kClasses, text_of(result, "error_class")) != kClasses.end();
}

LastOutcome last_outcome(const Json& entry, const std::string& source_file) {
  using enum LastOutcome;
  if (!entry.is_object() || text_of(entry, "last_source_file") != source_file) return None;
  const std::string decision = text_of(entry, "last_decision");
  if (decision == "KEEP") return Keep;
  if (decision == "REVERT") return Revert;
  if (decision == "PARTIAL") return Partial;
  if (decision == "NEEDS_REVIEW") return NeedsReview;
  return count_of(entry, "failure_count") > 0 || is_failed_status(text_of(entry, "last_status"))
             ? Infrastructure
             : None;
}

RunAgain may_run_again(const Json& entry, const std::string& source_file,
                       const Environment& environment) {
  switch (last_outcome(entry, source_file)) {
    case LastOutcome::None:
      return {};
    case LastOutcome::Keep:
    case LastOutcome::Revert:
      return {false, "already_judged"};
    case LastOutcome::NeedsReview:
      return {false, "waiting_for_review"};
    case LastOutcome::Partial:
      if (count_of(entry, "partial_count") < partial_cap(environment)) return {};
      return {false, "partial_attempts_exhausted"};
    case LastOutcome::Infrastructure:
      if (count_of(entry, "failure_count") <
          failure_cap(environment, number_of(entry, "last_gpu_pct"))) {
        return {};
      }
      return {false, "failures_exhausted"};
  }
  return {};
}

}  // namespace hyperloom::optimize
