// Whether a task may be attempted once more, and when it is given up: one table for both.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hyperloom/core/environment.h"
#include "hyperloom/core/json.h"

namespace hyperloom::optimize {

// What the last attempt of a task ended in, for the source that it has.
enum class LastOutcome : uint8_t { None, Keep, Revert, Partial, NeedsReview, Infrastructure };

// Of a ledger entry; None when `source_file` is not the one that was attempted last.
LastOutcome last_outcome(const Json& entry, const std::string& source_file);

// No decision, and a status of failed, error or timeout or an error class of the machinery.
bool is_infrastructure_failure(const Json& result);

// Partial results after which a task is rejected.
int64_t partial_cap(const Environment& environment);
// Infrastructure failures after which a task is rejected, higher for a share of at least
// HL_INFRA_RETRY_MIN_GPU_PCT.
int64_t failure_cap(const Environment& environment, double gpu_pct);
// The value of an HL_ switch: its own, else HL_HONEST_E2E.
bool honest_flag(const Environment& environment, std::string_view name);

struct RunAgain {
  bool allowed = true;
  std::string_view reason;  // of the table, where it is not allowed
};
RunAgain may_run_again(const Json& entry, const std::string& source_file,
                       const Environment& environment);

}  // namespace hyperloom::optimize
