#include "hyperloom/integrate/active.h"

#include "hyperloom/integrate/integrate.h"
#include "hyperloom/integrate/patch.h"

namespace hyperloom::integrate {
namespace {

// The lock of the tree that a manifest is about.
Result<TreeLock> lock_of(const fs::path& manifest_path, const task::Context& context) {
  const auto manifest = read_manifest(manifest_path);
  if (!manifest) return std::unexpected(manifest.error());
  std::vector<fs::path> paths;
  for (const BackupRow& row : manifest->rows) paths.push_back(row.path);
  return TreeLock::acquire(folders_to_lock(manifest->root, paths), context.deadline, context.stop);
}

Json locked(const fs::path& manifest, const task::Context& context,
            Json (*change)(const fs::path&)) {
  const auto lock = lock_of(manifest, context);
  return lock ? change(manifest) : failed(lock.error());
}

// Each waiting record gets its turn once.
void give_turn(Json& state) {
  Json& records = state["pending_kernel_integrations"];
  if (!records.is_object()) return;
  for (auto& [id, record] : records.items()) {
    if (text_of(record, "status") == "waiting") record["turn"] = true;
  }
}

}  // namespace

Result<void> begin_active(const task::Context& context, const std::string& integration_id,
                          const fs::path& manifest) {
  return context.state().update("integrate.begin", [&](Json& state) {
    state["active_integration"] = {{"integration_id", integration_id},
                                   {"manifest", manifest.string()},
                                   {"phase", "applying"},
                                   {"started_at", utc_now()}};
  });
}

Result<void> clear_active(const task::Context& context) {
  if (context.state().get("active_integration").is_null()) return {};
  return context.state().update("integrate.end",
                                [](Json& state) { state.erase("active_integration"); });
}

Json log_entry(const std::string& key, Json row) { return {{"key", key}, {"row", std::move(row)}}; }

Result<void> write_log(const task::Context& context, const Json& entry) {
  if (!entry.is_object()) return {};
  return context.session.log_decision(text_of(entry, "key"), value_of(entry, "row"));
}

Json revert_or_require(const task::Context& context, const fs::path& manifest) {
  Json result = revert_patch(manifest);
  if (text_of(result, "status") == "ok") return result;
  const std::string error = text_of(result, "error", compact(value_of(result, "revert_issues")));
  (void)context.state().update("integrate.recovery", [&](Json& state) {
    state["recovery_required"] = {
        {"manifest", manifest.string()}, {"error", error}, {"ts", utc_now()}};
  });
  return result;
}

Result<void> settle_recovery(const task::Context& context) {
  const Json required = context.state().get("recovery_required");
  if (!required.is_object()) return {};
  const Json result = locked(text_of(required, "manifest"), context, revert_patch);
  if (text_of(result, "status") != "ok") {
    return fail("patch_revert_incomplete",
                "an earlier patch could not be taken back: " +
                    text_of(result, "error", compact(value_of(result, "revert_issues"))),
                "restore the files of " + text_of(required, "manifest") + " by hand");
  }
  return context.state().update("integrate.recovered",
                                [](Json& state) { state.erase("recovery_required"); });
}

std::vector<Json> recover(const task::Context& context) {
  std::vector<Json> actions;
  const Json active = context.state().get("active_integration");
  if (active.is_object()) {
    const std::string phase = text_of(active, "phase");
    const fs::path manifest = text_of(active, "manifest");
    Json action = {{"integration_id", text_of(active, "integration_id")}, {"phase", phase}};
    // What needs the tree comes first: the log may be written as often as one likes.
    if (phase == "applying") {
      action["action"] = "revert";
      action["result"] =
          manifest.empty() ? Json{{"status", "ok"}} : locked(manifest, context, revert_patch);
    } else if (phase == "kept" && !manifest.empty() && !flag_of(active, "defer_finalize")) {
      action["action"] = "finalize";
      action["result"] = locked(manifest, context, finalize_patch);
    } else {
      action["action"] = "log";
      action["result"] = {{"status", "ok"}};
    }
    const bool done = text_of(action["result"], "status") == "ok";
    if (const auto logged = write_log(context, value_of(active, "log")); !logged) {
      action["result"] = failed(logged.error());
    } else if (done || phase != "applying") {
      (void)clear_active(context);
    } else {
      (void)context.state().update("integrate.recovery", [&](Json& state) {
        state["recovery_required"] = {{"manifest", manifest.string()},
                                      {"error", text_of(action["result"], "error")},
                                      {"ts", utc_now()}};
        state.erase("active_integration");
      });
    }
    actions.push_back(std::move(action));
  } else if (context.state().get("recovery_required").is_object()) {
    const auto settled = settle_recovery(context);
    actions.push_back({{"action", "revert"},
                       {"result", settled ? Json{{"status", "ok"}} : failed(settled.error())}});
  }
  (void)give_waiting_their_turn(context);
  return actions;
}

Result<void> give_waiting_their_turn(const task::Context& context) {
  bool any = false;
  context.state().read([&](const Json& state) {
    const Json& records = value_of(state, "pending_kernel_integrations");
    if (!records.is_object()) return;
    for (const auto& [id, record] : records.items()) {
      any |= text_of(record, "status") == "waiting" && !flag_of(record, "turn");
    }
  });
  if (!any) return {};
  return context.state().update("integrate.turn", give_turn);
}

}  // namespace hyperloom::integrate
