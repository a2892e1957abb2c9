// Traces in Chrome's format, which Perfetto opens: written of a native workload, and read back.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hyperloom/core/json.h"
#include "hyperloom/workload/workload.h"

namespace hyperloom::trace {

// One complete event (`cat` "kernel", microseconds) for each dispatch, one annotation for the
// issue as the steady window, and `otherData.producer` "hyperloom", by which read_trace() knows
// that the trace is native.
Json chrome_trace(const std::string& program, const std::vector<workload::Dispatch>& dispatches);

// Errors: "unreadable_file", "invalid_trace" naming what is wrong, "not_available" for a trace of
// another producer, which no reader here understands.
Result<std::vector<workload::Dispatch>> read_trace(const std::filesystem::path& path);
Result<std::vector<workload::Dispatch>> parse_trace(std::string_view text, const std::string& name);

}  // namespace hyperloom::trace
