#include "hyperloom/lane/engines.h"

#include <fmt/format.h>

#include <algorithm>

#include "loom/base/check.h"

namespace hyperloom::lane {

const std::vector<MissingEngine>& missing_engines() {
  static const std::vector<MissingEngine> engines = {
      {"run_collective", "the collective engine", "devices that exchange data, and its driver"},
      {"run_fusion", "the fusion engine", "a search over fused regions of a traced program"},
      {"run_gemm_tuning", "the GEMM tuning engine", "shape tables that a tuned library reads"},
  };
  return engines;
}

Json not_available(std::string_view kind) {
  const auto& engines = missing_engines();
  const auto found = std::ranges::find(engines, kind, &MissingEngine::kind);
  LOOM_CHECK(found != engines.end(), "the kind names a missing engine");
  return {{"status", "failed"},
          {"error_class", "not_available"},
          {"missing", found->what},
          {"error",
           fmt::format("{} is not part of this version; it needs {}", found->what, found->needs)}};
}

}  // namespace hyperloom::lane
