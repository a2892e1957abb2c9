#include "hyperloom/integrate/kept.h"

#include <fmt/format.h>

#include "hyperloom/core/durable.h"
#include "hyperloom/core/fault.h"
#include "hyperloom/integrate/diff.h"
#include "hyperloom/integrate/gain_ledger.h"
#include "hyperloom/integrate/patch.h"
#include "loom/base/file.h"
#include "loom/base/hash.h"

namespace hyperloom::integrate {
namespace {

fs::path store(const session::Layout& layout) { return layout.session / "kept"; }

Result<std::string> read_content(const fs::path& path, const std::string& hash) {
  auto content = loom::read_file(path.string());
  if (!content) return fail("unreadable_file", path.string() + ": " + content.error().reason);
  if (loom::sha256_hex(*content) != hash) {
    return fail("unreadable_file", path.string() + ": is not what was saved in it");
  }
  return std::move(*content);
}

Result<void> save(const session::Layout& layout, const fs::path& from, const std::string& hash) {
  if (hash.empty()) return {};
  const fs::path to = store(layout) / hash;
  if (read_content(to, hash)) return {};
  const auto content = read_content(from, hash);
  if (!content) return std::unexpected(content.error());
  fault_point("kept_content");
  return write_durable(to, *content);
}

struct Side {
  std::string content;
  unsigned mode = 0644;
};
// Nothing where there is no file.
Result<std::optional<Side>> side_of(const session::Layout& layout, const Json& entry,
                                    const std::string& which) {
  const std::string hash = text_of(entry, which + "_hash");
  if (hash.empty()) return std::nullopt;
  auto content = read_content(store(layout) / hash, hash);
  if (!content) return std::unexpected(content.error());
  return Side{std::move(*content),
              static_cast<unsigned>(number_of(entry, which + "_mode", 0644)) & 07777u};
}

std::optional<DiffSide> shown(const std::optional<Side>& side) {
  if (!side) return std::nullopt;
  return DiffSide{side->content, side->mode};
}

Result<PatchPlan> undo_plan(const session::Layout& layout, const Json& kept, const fs::path& tree) {
  PatchPlan plan;
  const auto files = TreeFiles::open(tree);
  if (!files) return std::unexpected(files.error());
  plan.root = files->root();
  Json descriptors = Json::array();
  for (const auto& [path, entry] : kept.items()) {
    const auto inside = relative_inside(fs::path(path).lexically_relative(plan.root));
    if (!inside) return std::unexpected(inside.error());
    const auto there = files->read(*inside);
    if (!there) return std::unexpected(there.error());
    if ((*there ? (*there)->hash : "") != text_of(entry, "kept_hash")) {
      return fail("tree_drift", path + ": is not what was kept",
                  "save that change, then undo again");
    }
    auto original = side_of(layout, entry, "original");
    if (!original) return std::unexpected(original.error());
    FileChange change{.path = *inside, .remove = !original->has_value()};
    if (*original) {
      change.content = std::move((*original)->content);
      change.mode = (*original)->mode;
    }
    descriptors.push_back({{"op", change.remove ? "delete" : "write"}, {"path", inside->string()}});
    plan.changes.push_back(std::move(change));
  }
  plan.header = {{"kernel_id", "undo"},
                 {"patch_path", ""},
                 {"target_file", (plan.root / plan.changes.front().path).string()},
                 {"producer_manifest", ""},
                 {"mode", "snapshot"},
                 {"descriptors", std::move(descriptors)}};
  return plan;
}

void forget_kept(Json& state) {
  state["kept_sources"] = Json::object();
  state["optimization_stack"] = Json::array();
  state["gain_per_stack_entry"] = Json::array();
  state["current_best"] = Json::object();
  if (const Json& hash = value_of(state, "original_tree_hash"); hash.is_string()) {
    if (state["last_trace_analyze"].is_object()) state["last_trace_analyze"]["tree_hash"] = hash;
  }
  // The sources are those that the baseline was measured on.
  add_rebaseline(state, number_of(state, "baseline_tput"), utc_now());
}

// Where no source was changed.
Json undo_configuration(session::Session& session) {
  if (session.state().get("optimization_stack").empty()) {
    return {{"status", "skipped"}, {"reason", "nothing_kept"}};
  }
  const auto done = session.state().update("undo.configuration", forget_kept);
  return done ? Json{{"status", "ok"}} : failed(done.error());
}

}  // namespace

Result<Json> save_contents(const session::Layout& layout, const Manifest& applied) {
  if (auto made = make_folder(store(layout)); !made) return std::unexpected(made.error());
  Json contents = Json::object();
  for (const BackupRow& row : applied.rows) {
    const fs::path path = applied.root / row.path;
    if (auto done = save(layout, row.backup_path, row.before.hash); !done) {
      return std::unexpected(done.error());
    }
    if (auto done = save(layout, path, row.after.hash); !done) return std::unexpected(done.error());
    contents[path.string()] = {{"original_hash", row.before.hash},
                               {"original_mode", row.before.mode},
                               {"kept_hash", row.after.hash},
                               {"kept_mode", row.after.mode}};
  }
  return contents;
}

void add_kept(Json& state, const Json& contents) {
  Json& kept = state["kept_sources"];
  if (!kept.is_object()) kept = Json::object();
  for (const auto& [path, entry] : contents.items()) {
    // The original stays that of the session's start.
    if (!kept.contains(path)) {
      kept[path] = entry;
      continue;
    }
    kept[path]["kept_hash"] = entry["kept_hash"];
    kept[path]["kept_mode"] = entry["kept_mode"];
  }
}

Result<std::string> export_patch(const session::Layout& layout, const Json& state,
                                 const fs::path& tree) {
  std::string result;
  const Json& kept = value_of(state, "kept_sources");
  if (!kept.is_object()) return result;
  std::error_code error;
  const fs::path root = fs::weakly_canonical(tree, error);
  for (const auto& [path, entry] : kept.items()) {
    const auto before = side_of(layout, entry, "original");
    if (!before) return std::unexpected(before.error());
    const auto after = side_of(layout, entry, "kept");
    if (!after) return std::unexpected(after.error());
    result += write_diff(fs::path(path).lexically_relative(root).generic_string(), shown(*before),
                         shown(*after));
  }
  return result;
}

Json undo_kept(session::Session& session, const fs::path& tree) {
  const Json kept = session.state().get("kept_sources");
  if (!kept.is_object() || kept.empty()) return undo_configuration(session);
  // A kill between the two steps below leaves the originals in the tree and the state unaware.
  if (const std::string manifest = text_of(session.state().get("undo"), "manifest");
      !manifest.empty()) {
    const Json back = revert_patch(manifest);
    if (text_of(back, "status") != "ok") return back;
  }
  auto plan = undo_plan(session.layout(), kept, tree);
  if (!plan) return failed(plan.error());
  const auto lock =
      TreeLock::acquire(folders_to_lock(plan->root, plan->paths()), Deadline::in_seconds(10), {});
  if (!lock) return failed(lock.error());
  auto manifest = prepare_patch(*plan, {.root = session.layout().session / "undo"});
  if (!manifest) return failed(manifest.error());
  const auto begun = session.state().update("undo.begin", [&](Json& state) {
    state["undo"] = {{"manifest", manifest->path().string()}};
  });
  if (!begun) return failed(begun.error());
  Json applied = apply_prepared(*plan, *manifest);
  if (text_of(applied, "status") != "ok") return applied;
  const auto done = session.state().update("undo.end", [&](Json& state) {
    state.erase("undo");
    forget_kept(state);
  });
  if (!done) {
    revert_patch(manifest->path());
    return failed(done.error());
  }
  return applied;
}

}  // namespace hyperloom::integrate
