// What the router and the phase hooks work with.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hyperloom/bus/bus.h"
#include "hyperloom/bus/tasks.h"
#include "hyperloom/core/environment.h"
#include "hyperloom/policy/envelope.h"
#include "hyperloom/session/session.h"

namespace hyperloom::coordinator {

// Runs one request to its end on the calling thread. The payload is checked and complete, and says
// `request_id`, and `redispatch_of` where it is a second try.
using Handler = std::function<Json(const Json& payload)>;
using Effect = std::function<void(const Json& payload, const Json& result)>;

// Everything in it outlives the router.
struct Services {
  session::Session& session;
  bus::Bus& bus;
  bus::Tasks& tasks;
  const Environment& environment;

  // The engine of each registered kind; one that is registered and has none is not available.
  // `apply_patch` is `integrate` unless it has one of its own.
  std::map<std::string, Handler> handlers;
  // By kind, after the handler: what the state keeps of the result (fast; before the response, so
  // that a kill leaves no answered request unrecorded), and what follows from it (may take long;
  // after the response, and started again from the state after a kill).
  std::map<std::string, Effect> record;
  std::map<std::string, Effect> follow_up;
  // The key under which `rejected_kernel_patches` holds the patch of an integrate payload, or "".
  std::function<std::string(const Json& payload)> patch_key;
  // After an intent other than a request was recorded.
  std::function<void(const std::string& role, const policy::Intent& intent)> on_intent;

  std::function<std::string()> phase;    // "KERNEL_AGENT", ...
  std::function<bool()> closing;         // false when empty
  std::function<double()> seconds_left;  // unlimited when empty
  bool explore_enabled = true;
  bool command_line = false;  // requests come from whoever started the program, not from a role
  std::vector<std::filesystem::path> trusted;  // the workload's tree, then the framework roots
  double heartbeat_seconds = 150;
};

// The kinds that a request may have, be their engines there or not.
const std::set<std::string>& registered_kinds();

}  // namespace hyperloom::coordinator
