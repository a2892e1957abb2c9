// Which file of those that a profile left is analyzed.
#pragma once

#include <filesystem>
#include <vector>

#include "hyperloom/core/json.h"
#include "hyperloom/workload/workload.h"

namespace hyperloom::trace {

struct Input {
  std::filesystem::path path;
  std::vector<workload::Dispatch> dispatches;
  Json warnings = Json::array();  // rows {code, message}
};

// A file, or the traces of a folder and what lies below it (*.json, *.trace; at most 10,000 files),
// in this order: names that begin with "merged-", others, those of decode ranks (TP-<n>-DECODE),
// fragments of captures (bs_<n>, graph_capture, folders named capture...), what an earlier analysis
// cut out (steady_state, split); in each class the larger first. Up to 8 files or 512 MiB are read,
// and the first with kernels is taken. One that was not the first in order gives the warning
// "trace_analysis_input_promoted", one of nothing but fragments "trace_input_capture_only".
// Errors: "missing_trace_input", those of read_trace().
Result<Input> select_input(const std::filesystem::path& path);

// The order alone.
std::vector<std::filesystem::path> rank_inputs(const std::filesystem::path& folder);

}  // namespace hyperloom::trace
