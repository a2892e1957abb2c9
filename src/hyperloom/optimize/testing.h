// Rows and settings that the tests of this room share.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "hyperloom/core/environment.h"
#include "hyperloom/core/json.h"

namespace hyperloom::optimize {

inline Environment with(std::map<std::string, std::string> values) {
  return Environment(std::move(values));
}
inline const Environment kDefault = with({});

inline Json row(const std::string& id, double share, const std::string& source = "") {
  return {{"kernel_id", id},
          {"name", id},
          {"gpu_pct", share},
          {"reusable_native_kernel", true},
          {"source_file", source.empty() ? id + ".loom" : source}};
}

inline Json group(const std::string& id, const Json& kernels) {
  return {{"task_group_id", id},
          {"task_group_key", "key-" + id},
          {"primary_kernel_id", kernels[0]},
          {"kernel_ids", kernels}};
}

}  // namespace hyperloom::optimize
