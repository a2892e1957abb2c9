// From dispatches to the rows of kernel_candidates.json: what each kernel costs, what bounds it,
// whether it can be changed, and which rows are one task.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hyperloom/core/json.h"
#include "hyperloom/workload/workload.h"

namespace hyperloom::trace {

struct Surroundings {
  std::filesystem::path tree;                // of the sources, absolute
  std::vector<std::filesystem::path> files;  // of it, relative
  std::string model_name;
  std::string target_platform;        // the device
  Json device_peaks = Json::array();  // rows {name, value, unit, ...}
  uint64_t cache_bytes = 0;           // of the last level; 0 unknown
  double idle_threshold_pct = 80;
  int64_t top_k = 100;
};

// The whole artifact: hot_kernels (all rows, hottest first), routable_kernels, skipped_kernels,
// task_groups, reusable_native_kernel_ids, trace_health_warnings and what says whose they are. A
// field that is not known is absent. Pure.
//
// A row's arithmetic is what the kernel surely does, against the measured peak of its element type.
// A row's bytes are those of the storage that its operands reach, an upper bound of its traffic.
// They stand against the measured bandwidth only where one launch moves several times the last
// cache, so that neither reuse nor unused ends can make a kernel look better than it is.
Json candidates(const std::vector<workload::Dispatch>& dispatches, const Surroundings& around);

// The subset of the rows that kernel_roofline.json has.
Json roofline(const Json& candidates, const std::string& trace_input);

// Identity of a task, version 2: compact JSON with sorted keys.
std::string task_group_key(const std::filesystem::path& source, const std::string& function);

}  // namespace hyperloom::trace
