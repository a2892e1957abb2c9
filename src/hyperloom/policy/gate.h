// The gate that every intent of a role passes. Responses, which the coordinator writes, never do.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "hyperloom/core/environment.h"
#include "hyperloom/policy/rule.h"

namespace hyperloom::policy {

struct Verdict {
  std::optional<Denial> denial;  // of the first rule that objects
  std::vector<Denial> noted;     // what would be one under INFERENCE_OPTIMIZER_STRICT_*
};

// Judges by the rules of rules.def, in their order. Any thread.
class PolicyGate {
 public:
  explicit PolicyGate(const Environment& environment);
  Verdict judge(const Intent& intent, const Situation& situation) const;

  // The rules' functions by name, in judging order.
  static const std::vector<std::string_view>& rules();

 private:
  bool strict_phase_;
  bool strict_paths_;
};

}  // namespace hyperloom::policy
