// What is asked of one candidate before anything is run for it, in order.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hyperloom/core/environment.h"
#include "hyperloom/core/error.h"
#include "hyperloom/core/json.h"

namespace hyperloom::optimize {

struct GuardOptions {
  // Trees whose sources may be changed: the workload's, and
  // INFERENCE_OPTIMIZER_FRAMEWORK_SOURCE_ROOTS.
  std::vector<std::filesystem::path> trusted_roots;
  std::filesystem::path workspace;  // where attempts work
  bool allow_empty_kernel_shape = false;
  bool dry_run = false;  // shapes and files on disk are not asked for
};

// The first guard that fails: missing_kernel_id, non_reusable_kernel, missing_native_source,
// runtime_generated_kernel, unstable_source_path, empty_kernel_shape, untrusted_shape_provenance,
// missing_source_path, missing_workspace_path, kernel_agent_root_missing.
std::optional<Error> check_candidate(const Json& row, const GuardOptions& options,
                                     const Environment& environment);

// Devices that an attempt at the row needs: KERNEL_AGENT_NUM_GPUS, and where that is 0 what the row
// recommends; at least 1.
int64_t devices_of(const Json& row, const Environment& environment);
// "not_available" where that is more than the one device that an attempt runs on.
Result<void> check_devices(const Json& row, const Environment& environment);

// The row that is meant: by exact id, by exact name where only one has it, or by an id whose number
// is the same (k3, kn3, k003). Null when there is none.
const Json* resolve_kernel(const Json& candidates, const std::string& requested);

// The tool's own early exit for an id of the artifact, as a result with status `skipped`: not among
// the candidates (with `known_kernel_ids`), or a row that cannot be routed (decision REVERT).
std::optional<Json> early_exit(const Json& candidates, const std::string& kernel_id);

}  // namespace hyperloom::optimize
