#include "hyperloom/integrate/apply_session.h"

#include <algorithm>
#include <utility>

#include "hyperloom/integrate/active.h"
#include "hyperloom/integrate/base_copy.h"
#include "hyperloom/integrate/kept.h"
#include "hyperloom/integrate/patch.h"

namespace hyperloom::integrate {
namespace {

bool is_below(const fs::path& path, const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  const fs::path root = fs::weakly_canonical(folder, error);
  const auto [end, at] = std::ranges::mismatch(root, real);
  return end == root.end() && at != real.end();
}

}  // namespace

ApplySession::ApplySession(const task::Context& context, std::string integration_id,
                           bus::Lease lane, TreeLock lock)
    : context_(&context),
      integration_id_(std::move(integration_id)),
      workspace_(context.layout().integration(integration_id_)),
      lane_(std::move(lane)),
      lock_(std::move(lock)) {}

ApplySession::ApplySession(ApplySession&& other) noexcept
    : context_(other.context_),
      integration_id_(std::move(other.integration_id_)),
      workspace_(std::move(other.workspace_)),
      lane_(std::move(other.lane_)),
      lock_(std::move(other.lock_)),
      manifest_(std::exchange(other.manifest_, std::nullopt)),
      applied_hash_(std::move(other.applied_hash_)),
      kept_(other.kept_),
      reverted_(other.reverted_) {}

ApplySession::~ApplySession() {
  if (manifest_ && !kept_ && !reverted_) revert();
}

Result<ApplySession> ApplySession::open(const task::Context& context,
                                        const std::string& integration_id) {
  auto lane =
      context.lanes.acquire("workspace_mutation", "integrate", context.deadline, context.stop);
  if (!lane) return std::unexpected(lane.error());
  auto lock = TreeLock::acquire(folders_to_lock(context.workload.tree(), context.workload.files()),
                                context.deadline, context.stop);
  if (!lock) return std::unexpected(lock.error());
  return ApplySession(context, integration_id, std::move(*lane), std::move(*lock));
}

std::string ApplySession::tree_hash() const {
  return workload::tree_hash(context_->workload.tree(), context_->workload.files()).value_or("");
}

Result<void> ApplySession::check_tree() {
  if (manifest_) return {};  // adopted: compared with its own hashes
  const std::string recorded = text_of(context_->state().get("last_trace_analyze"), "tree_hash");
  auto now = workload::tree_hash(context_->workload.tree(), context_->workload.files());
  if (!now) return fail("tree_drift", now.error().message);
  if (!recorded.empty() && *now != recorded) {
    return fail("tree_drift",
                context_->workload.tree().string() + ": the sources are not those of the analysis",
                "analyze again, or bring the sources back");
  }
  applied_hash_ = std::move(*now);
  return {};
}

Result<void> ApplySession::adopt(const fs::path& path) {
  if (!is_below(path, context_->layout().session / "integrations")) {
    return fail("untrusted_preapplied_manifest",
                path.string() + ": is not below the session's integrations");
  }
  auto manifest = read_manifest(path);
  if (!manifest) return fail("untrusted_preapplied_manifest", manifest.error().message);
  if (manifest->status != "applied") {
    return fail("untrusted_preapplied_manifest", path.string() + ": is " + manifest->status);
  }
  const auto files = TreeFiles::open(manifest->root);
  if (!files) return std::unexpected(files.error());
  for (const BackupRow& row : manifest->rows) {
    const auto there = files->read(row.path);
    if (!there) return std::unexpected(there.error());
    if ((*there ? (*there)->hash : "") != row.after.hash) {
      return fail("tree_drift", (manifest->root / row.path).string() + ": is not what was applied");
    }
  }
  if (auto begun = begin_active(*context_, integration_id_, manifest->path()); !begun) return begun;
  manifest_ = std::move(*manifest);
  applied_hash_ = tree_hash();
  return {};
}

Result<void> ApplySession::copy_base() {
  return integrate::copy_base(context_->workload, manifest_ ? &*manifest_ : nullptr, base());
}

Json ApplySession::apply(const PatchPlan& plan, const Deadline& deadline) {
  const fs::path all = context_->layout().session / "integrations";
  auto manifest = prepare_patch(plan, {.root = workspace_ / "backup", .registry = {all}});
  if (!manifest) return failed(manifest.error());
  if (auto begun = begin_active(*context_, integration_id_, manifest->path()); !begun) {
    return failed(begun.error());
  }
  manifest_ = std::move(*manifest);
  Json result = apply_prepared(plan, *manifest_, deadline, context_->stop);
  if (text_of(result, "status") == "ok") applied_hash_ = tree_hash();
  return result;
}

Result<void> ApplySession::is_as_applied() const {
  if (tree_hash() == applied_hash_) return {};
  return fail("tree_drift", context_->workload.tree().string() +
                                ": the sources changed while they were measured");
}

Result<Json> ApplySession::save_contents() const {
  if (!manifest_) return Json::object();
  return integrate::save_contents(context_->layout(), *manifest_);
}

Json ApplySession::revert() {
  if (!manifest_) return {};
  reverted_ = true;
  return revert_or_require(*context_, manifest_->path());
}

Json ApplySession::finalize() {
  if (!manifest_) return {};
  return finalize_patch(manifest_->path());
}

void ApplySession::move_tree_hash(Json& state, const std::string& hash) {
  Json& analysis = state["last_trace_analyze"];
  if (hash.empty() || !analysis.is_object()) return;
  if (!state.contains("original_tree_hash")) {
    state["original_tree_hash"] = value_of(analysis, "tree_hash");
  }
  analysis["tree_hash"] = hash;
}

}  // namespace hyperloom::integrate
