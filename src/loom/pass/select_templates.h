// select-templates: decides which implementation each template.apply calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loom/dialect/target_info.h"
#include "loom/pass/pass_context.h"

namespace loom {

// What was decided about one implementation at one template.apply.
struct TemplateChoice {
  enum class Outcome : uint8_t {
    Chosen,
    Outranked,  // its conditions hold, but another's priority is greater
    Rejected,   // a condition does not hold
    Unknown,    // a condition is not proven
  };
  std::string root;  // symbol of the kernel or function whose body held the apply
  Location place;    // of the apply
  std::string family;
  std::string candidate;
  int64_t priority = 0;
  Outcome outcome = Outcome::Chosen;
  std::string reason;  // the condition that decided; empty where all hold
};
// "chosen", "outranked", "rejected", "unknown"
std::string_view outcome_name(TemplateChoice::Outcome outcome);

struct SelectOptions {
  // Final selection counts what is unknown as not proven and reports an apply without a proven
  // implementation. Early selection leaves a decision open while an implementation that nothing
  // rejects yet outranks the best proven one.
  bool final = true;
  // What is known of the target; a `target(@t)` of the root is asked first.
  TargetFacts target;
  // What `codegen_format` of the compiled target is, "" when unknown.
  std::string format;
  // Receives every implementation that was considered where one was chosen; may be null.
  std::vector<TemplateChoice>* choices = nullptr;
};

// Replaces each template.apply in the root by a template.call of the implementation with the
// greatest priority among those whose conditions hold by the facts at the apply, and checks each
// template.call against its implementation. Folds target.subgroup.size where it is known.
// LOWERING/045 when no implementation is proven, when two of the best priority are, or when a
// condition of an exact call is false; LOWERING/048 when only a target condition is undecided.
// False when an error was reported.
bool select_templates(PassContext& context, OpId root, const SelectOptions& options = {});

// Whether the root holds a template.apply, a template.call or a target.subgroup.size.
bool uses_templates(const Module& module, OpId root);

}  // namespace loom
