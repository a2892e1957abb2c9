#include "hyperloom/integrate/inputs.h"
#include "hyperloom/integrate/integrate.h"
#include "hyperloom/integrate/record.h"

namespace hyperloom::integrate {

std::string patch_key(const Json& payload, const task::Context& context) {
  const auto inputs = Inputs::read(payload, context);
  // What is in the tree already has to be taken out again, and a patch that cannot be read is
  // refused by name.
  if (!inputs || !inputs->preapplied_manifest.empty()) return "";
  bool nothing = true;
  std::string key;
  context.state().read([&](const Json& state) {
    const bool recorded = recorded_result(state, inputs->redispatch_of).is_object();
    nothing = recorded || value_of(state, "rejected_kernel_patches").empty();
    key = text_of(rejection_of(state, inputs->integration_id, ""), "key");
  });
  if (nothing) return "";
  if (!key.empty()) return key;
  if (inputs->env_only) {
    return recording_key("", inputs->extra_envs, inputs->extra_server_args);
  }
  if (!inputs->has_patch) return "";
  const auto plan = plan_patch(inputs->patch);
  if (!plan) return "";
  return recording_key(content_hash(*plan), inputs->extra_envs, inputs->extra_server_args);
}

}  // namespace hyperloom::integrate
