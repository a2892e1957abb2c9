// One hold of the tree: from the lock to the last step, with the patch taken back unless it is
// kept.
#pragma once

#include <optional>
#include <string>

#include "hyperloom/integrate/manifest.h"
#include "hyperloom/integrate/plan.h"
#include "hyperloom/integrate/tree_files.h"
#include "hyperloom/task/context.h"

namespace hyperloom::integrate {

// Holds the lane workspace_mutation and the tree's lock. Destroyed with an applied patch that was
// neither reverted nor kept, it reverts. Move-only; the context outlives it.
class ApplySession {
 public:
  // Errors: those of the lane and of the lock.
  static Result<ApplySession> open(const task::Context& context, const std::string& integration_id);
  ApplySession(ApplySession&& other) noexcept;
  ApplySession& operator=(ApplySession&&) = delete;
  ~ApplySession();

  // The tree is what the analysis saw, besides what was kept since. Errors: "tree_drift".
  Result<void> check_tree();
  // Takes over what somebody else applied: only below the session's integrations, with files that
  // are as its manifest says. Errors: "untrusted_preapplied_manifest", "tree_drift".
  Result<void> adopt(const fs::path& manifest);
  // The sources without the patch, in base().
  Result<void> copy_base();
  fs::path base() const { return workspace_ / "base"; }

  // The result of apply_prepared(), or of what failed in front of it. `state.active_integration` is
  // written before the first change.
  Json apply(const PatchPlan& plan, const Deadline& deadline);
  // Errors: "tree_drift" when the files are not what apply() left.
  Result<void> is_as_applied() const;
  // The files before and after, for export and undo; an empty object without a patch.
  Result<Json> save_contents() const;
  // Null without a patch; otherwise the result of revert_patch().
  Json revert();
  // From here on the patch stays, whatever happens.
  void keep() { kept_ = true; }
  Json finalize();

  // Of the tree as it is; empty when it cannot be read.
  std::string tree_hash() const;
  // Inside SharedState::update: the tree that later requests have to find.
  static void move_tree_hash(Json& state, const std::string& hash);

 private:
  ApplySession(const task::Context& context, std::string integration_id, bus::Lease lane,
               TreeLock lock);
  const task::Context* context_;
  std::string integration_id_;
  fs::path workspace_;
  bus::Lease lane_;
  TreeLock lock_;
  std::optional<Manifest> manifest_;
  std::string applied_hash_;
  bool kept_ = false;
  bool reverted_ = false;
};

}  // namespace hyperloom::integrate
