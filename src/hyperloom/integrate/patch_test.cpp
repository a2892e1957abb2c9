#include "hyperloom/integrate/patch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <set>

#include "hyperloom/integrate/patch_testing.h"
#include "loom/base/hash.h"

namespace hyperloom::integrate {
namespace {

// A tree with a file that is changed, one that goes and one that comes in a new folder.
class Patch : public testing::Test {
 protected:
  void SetUp() override {
    scratch_.put("tree/model.loom", "kernel one\n", 0640);
    scratch_.put("tree/lib/gone.loom", "gone\n");
    scratch_.put("tree/lib/stays.loom", "stays\n", 0755);
    scratch_.put("new.loom", "kernel two\n");
    scratch_.put("snapshot/model.loom", "kernel two\n");
    scratch_.put("snapshot/deep/er/added.loom", "added\n");
    scratch_.put("p.diff",
                 "diff --git a/model.loom b/model.loom\n--- a/model.loom\n+++ b/model.loom\n"
                 "@@ -1 +1 @@\n-kernel one\n+kernel two\n"
                 "diff --git a/deep/er/added.loom b/deep/er/added.loom\nnew file mode 100755\n"
                 "--- /dev/null\n+++ b/deep/er/added.loom\n@@ -0,0 +1 @@\n+added\n"
                 "diff --git a/lib/gone.loom b/lib/gone.loom\ndeleted file mode 100644\n"
                 "--- a/lib/gone.loom\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n");
    before_ = picture(tree());
  }
  fs::path tree() const { return scratch_ / "tree"; }
  Json single() const {
    return {{"kernel_id", "k001"},
            {"patch_path", (scratch_ / "new.loom").string()},
            {"target_file", (tree() / "model.loom").string()},
            {"known_roots", {tree().string()}},
            {"backup_root", (scratch_ / "backup").string()}};
  }
  Json snapshot() const {
    Json options = single();
    options.erase("target_file");
    options["patch_path"] = (scratch_ / "p.diff").string();
    options["snapshot_dir"] = (scratch_ / "snapshot").string();
    options["kernel_repo"] = tree().string();
    return options;
  }
  static Json manifest_of(const Json& result) {
    const auto document = read_json(text_of(result, "manifest_path"));
    EXPECT_TRUE(document);
    return document.value_or(Json());
  }
  static Json revert(const Json& applied) {
    return patch_revert({{"manifest_path", text_of(applied, "manifest_path")}});
  }
  void expect_refused(const Json& options, const std::string& error_class,
                      const std::string& words) const {
    const Json result = patch_apply(options);
    EXPECT_EQ(text_of(result, "status"), "failed") << result;
    EXPECT_EQ(text_of(result, "error_class"), error_class) << result;
    EXPECT_TRUE(text_of(result, "error").contains(words)) << result;
    EXPECT_EQ(picture(tree()), before_);
  }
  Scratch scratch_;
  std::string before_;
};

using Spec_7_1 = Patch;
using Spec_7_2 = Patch;
using Spec_14_Tree = Patch;

TEST_F(Spec_14_Tree, PatchApplyThenRevertOfATargetFileIsByteExact) {
  const Json applied = patch_apply(single());
  ASSERT_EQ(text_of(applied, "status"), "ok") << applied;
  EXPECT_EQ(scratch_.get("tree/model.loom"), "kernel two\n");
  const Json reverted = patch_revert({{"backup_root", (scratch_ / "backup").string()},
                                      {"target_file", (tree() / "model.loom").string()}});
  EXPECT_EQ(text_of(reverted, "status"), "ok") << reverted;
  EXPECT_EQ(picture(tree()), before_);
}

TEST_F(Spec_7_1, ASnapshotWritesAddsAndDeletes) {
  const Json applied = patch_apply(snapshot());
  ASSERT_EQ(text_of(applied, "status"), "ok") << applied;
  EXPECT_EQ(scratch_.get("tree/model.loom"), "kernel two\n");
  EXPECT_EQ(scratch_.get("tree/deep/er/added.loom"), "added\n");
  EXPECT_FALSE(fs::exists(tree() / "lib/gone.loom"));
  EXPECT_EQ(fs::status(tree() / "model.loom").permissions(), fs::perms(0640));
  EXPECT_EQ(fs::status(tree() / "deep/er/added.loom").permissions(), fs::perms(0755));
  EXPECT_EQ(text_of(revert(applied), "status"), "ok");
  EXPECT_EQ(picture(tree()), before_);
  EXPECT_FALSE(fs::exists(tree() / "deep"));
}

TEST_F(Spec_7_2, TheManifestSaysWhatWasAndWhatIs) {
  const Json applied = patch_apply(snapshot());
  const Json manifest = manifest_of(applied);
  EXPECT_EQ(manifest["status"], "applied");
  EXPECT_EQ(manifest["kernel_id"], "k001");
  EXPECT_EQ(manifest["mode"], "snapshot");
  for (const char* field :
       {"patch_path", "target_file", "source_backup", "source_backups", "artifacts", "descriptors",
        "strategy", "producer_manifest", "created_at", "applied_at", "rebuild", "cache_clear",
        "jit_build_backup", "cpp_itfs_cache_backup", "multinode"}) {
    EXPECT_TRUE(manifest.contains(field)) << field;
  }
  std::map<std::string, std::string> dispositions;
  for (const Json& row : manifest["source_backups"]) {
    dispositions[fs::path(row["path"]).filename()] = row["disposition"];
    if (row["disposition"] == "modified") {
      EXPECT_EQ(row["before_hash"], loom::sha256_hex("kernel one\n"));
      EXPECT_EQ(row["after_hash"], loom::sha256_hex("kernel two\n"));
    }
  }
  EXPECT_EQ(dispositions,
            (std::map<std::string, std::string>{
                {"model.loom", "modified"}, {"added.loom", "added"}, {"gone.loom", "deleted"}}));
  const Json reverted = revert(applied);
  const Json after = manifest_of(reverted);
  EXPECT_EQ(after["status"], "reverted");
  for (const char* field : {"reverted_at", "restored_paths", "skipped_untrusted_backups",
                            "revert_issues", "multinode_revert"}) {
    EXPECT_TRUE(after.contains(field)) << field;
  }
  EXPECT_EQ(after["restored_paths"].size(), 3u);
}

TEST_F(Spec_7_2, RevertMayBeRepeated) {
  const Json applied = patch_apply(snapshot());
  EXPECT_EQ(text_of(revert(applied), "status"), "ok");
  EXPECT_EQ(text_of(revert(applied), "status"), "ok");
  EXPECT_EQ(picture(tree()), before_);
}

TEST_F(Spec_7_2, RevertRefusesWhereSomebodyElseChangedAFile) {
  const Json applied = patch_apply(snapshot());
  scratch_.put("tree/model.loom", "mine\n");
  const std::string mine = picture(tree());
  const Json result = revert(applied);
  EXPECT_EQ(text_of(result, "error_class"), "tree_drift");
  EXPECT_TRUE(text_of(result, "error").contains("model.loom"));
  EXPECT_EQ(picture(tree()), mine);
}

TEST_F(Spec_7_2, TwoPatchesOfOneFileComeOffInReverseOrder) {
  const Json first = patch_apply(single());
  // The second one brings back the first content, which no hash could tell from a revert.
  scratch_.put("new.loom", "kernel one\n");
  const Json second = patch_apply(single());
  ASSERT_EQ(text_of(second, "status"), "ok") << second;
  const Json early = revert(first);
  EXPECT_EQ(text_of(early, "error_class"), "patch_not_on_top") << early;
  EXPECT_EQ(text_of(revert(second), "status"), "ok");
  EXPECT_EQ(scratch_.get("tree/model.loom"), "kernel two\n");
  EXPECT_EQ(text_of(revert(first), "status"), "ok");
  EXPECT_EQ(picture(tree()), before_);
}

TEST_F(Spec_7_2, OnlyBackupsInTheFolderOfTheManifestAreTrusted) {
  const Json applied = patch_apply(single());
  Json manifest = manifest_of(applied);
  scratch_.put("evil", "kernel one\n");
  manifest["source_backups"][0]["backup_path"] = (scratch_ / "evil").string();
  ASSERT_TRUE(write_json(text_of(applied, "manifest_path"), manifest));
  const Json result = revert(applied);
  EXPECT_EQ(text_of(result, "status"), "partial");
  EXPECT_EQ(result["skipped_untrusted_backups"], Json({(scratch_ / "evil").string()}));
  EXPECT_EQ(manifest_of(applied)["status"], "reverted_partial");
}

TEST_F(Spec_7_2, ALostOrDamagedBackupIsReported) {
  const Json applied = patch_apply(snapshot());
  const Json manifest = manifest_of(applied);
  scratch_.put(
      fs::path(manifest["source_backups"][0]["backup_path"]).lexically_relative(scratch_.path()),
      "damaged");
  const Json result = revert(applied);
  EXPECT_EQ(text_of(result, "status"), "partial");
  EXPECT_EQ(result["revert_issues"].size(), 1u);
  // The rest is back.
  EXPECT_TRUE(fs::exists(tree() / "lib/gone.loom"));
  EXPECT_FALSE(fs::exists(tree() / "deep"));
}

TEST_F(Spec_7_2, FinalizeDeletesTheBackupsAndMayBeRepeated) {
  const Json applied = patch_apply(snapshot());
  const fs::path path = text_of(applied, "manifest_path");
  EXPECT_EQ(text_of(finalize_patch(path), "status"), "ok");
  EXPECT_EQ(text_of(finalize_patch(path), "status"), "ok");
  const Json manifest = manifest_of(applied);
  EXPECT_EQ(manifest["status"], "finalized");
  EXPECT_EQ(manifest["finalize_deleted"].size(), 2u);
  EXPECT_EQ(text_of(revert(applied), "error_class"), "patch_finalized");
  EXPECT_EQ(scratch_.get("tree/model.loom"), "kernel two\n");
}

TEST_F(Spec_7_2, FinalizeWantsAnAppliedPatch) {
  const Json applied = patch_apply(single());
  revert(applied);
  EXPECT_EQ(text_of(finalize_patch(text_of(applied, "manifest_path")), "error_class"),
            "not_applied");
}

TEST_F(Spec_7_2, FinalizeLeavesBackupsOutsideOfItsFolder) {
  const Json applied = patch_apply(single());
  Json manifest = manifest_of(applied);
  const fs::path evil = scratch_.put("evil", "x");
  manifest["source_backups"][0]["backup_path"] = evil.string();
  ASSERT_TRUE(write_json(text_of(applied, "manifest_path"), manifest));
  EXPECT_EQ(text_of(finalize_patch(text_of(applied, "manifest_path")), "status"), "partial");
  EXPECT_TRUE(fs::exists(evil));
  EXPECT_EQ(manifest_of(applied)["status"], "finalized_partial");
}

TEST_F(Spec_7_1, AnExistingBackupFolderIsNeverUsedAgain) {
  std::set<std::string> folders;
  for (int i = 0; i < 3; ++i) {
    const Json applied = patch_apply(single());
    ASSERT_EQ(text_of(applied, "status"), "ok");
    EXPECT_EQ(text_of(revert(applied), "status"), "ok");
    folders.insert(fs::path(text_of(applied, "manifest_path")).parent_path().filename());
  }
  EXPECT_EQ(folders.size(), 3u);
  const std::string first = *folders.begin();
  EXPECT_TRUE(first.starts_with("k001_"));
  EXPECT_TRUE(folders.contains(first + "-2") && folders.contains(first + "-3"));
}

TEST_F(Spec_7_1, RefusesWhatIsNoReplacement) {
  Json options = single();
  const auto with = [&](const std::string& name, const std::string& text) {
    options["patch_path"] = scratch_.put(name, text).string();
    return options;
  };
  expect_refused(with("x.txt", "kernel two\n"), "refused_patch", "a .txt file is no source");
  expect_refused(with("x.log", "kernel two\n"), "refused_patch", "a .log file is no source");
  expect_refused(with("x.md", "kernel two\n"), "refused_patch", "a .md file is no source");
  expect_refused(with("x.patch", "kernel two\n"), "refused_patch", "a .patch file is no source");
  expect_refused(with("x.diff", "kernel two\n"), "refused_patch", "a .diff file is no source");
  expect_refused(with("x.cpp", "kernel two\n"), "refused_patch", "its target in '.loom'");
  expect_refused(with("a.loom", " \n"), "refused_patch", "it is empty");
  expect_refused(with("b.loom", "--- a/x\n+++ b/x\n"), "refused_patch", "it is a diff");
  expect_refused(with("c.loom", "text\n```loom\nkernel\n```\n"), "refused_patch",
                 "line 2 is a fence of Markdown");
  expect_refused(with("d.loom", "kernel\n// ... existing code ...\n"), "refused_patch",
                 "line 2 stands for lines that are left out");
  expect_refused(with("e.loom", "kernel {\n"), "refused_patch", "braces do not match");
  expect_refused(with("f.loom", std::string("a\0b", 3)), "refused_patch", "binary");
  options.erase("patch_path");
  expect_refused(options, "missing_integration_inputs", "patch_path");
  options = single();
  options["target_file"] = (tree() / "absent.loom").string();
  expect_refused(options, "missing_integration_inputs", "absent.loom");
}

TEST_F(Spec_7_1, RefusesToLoseAHostEntry) {
  scratch_.put("tree/model.loom", "command.program.def public @main() {\n}\n");
  before_ = picture(tree());
  scratch_.put("new.loom", "command.program.def public @other() {\n}\n");
  expect_refused(single(), "refused_patch", "the host entry @main of the original is gone");
  Json options = single();
  options["target_file"] =
      scratch_.put("tree/k.cpp", "namespace aiter { extern \"C\" void go(); }").string();
  before_ = picture(tree());
  options["patch_path"] = scratch_.put("k.cpp", "extern \"C\" void go();").string();
  expect_refused(options, "refused_patch", "namespace aiter");
  options["patch_path"] = scratch_.put("k2.cpp", "namespace aiter { void go(); }").string();
  expect_refused(options, "refused_patch", "the host entry go");
  options["patch_path"] =
      scratch_.put("k3.cpp", "namespace aiter { extern \"C\" void go(); TORCH_LIBRARY(x, m) {} }")
          .string();
  expect_refused(options, "refused_patch", "binding module");
}

TEST_F(Spec_7_1, RefusesPythonThatDoesNotCompile) {
  Json options = single();
  options["target_file"] = scratch_.put("tree/k.py", "x = 1\n").string();
  before_ = picture(tree());
  options["patch_path"] = scratch_.put("k.py", "def f(:\n").string();
  expect_refused(options, "refused_patch", "does not compile");
}

TEST_F(Spec_7_1, RefusesTargetsOutsideOfTheKnownTrees) {
  Json options = single();
  const fs::path outside = scratch_.put("outside.loom", "x\n");
  options["target_file"] = outside.string();
  expect_refused(options, "refused_patch", "none of the known source trees");
  fs::create_symlink(outside, tree() / "link.loom");
  before_ = picture(tree());
  options["target_file"] = (tree() / "link.loom").string();
  expect_refused(options, "refused_patch", "none of the known source trees");
  options["allow_unknown_target"] = true;
  const Json applied = patch_apply(options);
  EXPECT_EQ(text_of(applied, "status"), "ok") << applied;
  EXPECT_EQ(scratch_.get("outside.loom"), "kernel two\n");
}

TEST_F(Spec_7_1, RefusesShellOperatorsInTheRebuildCommand) {
  Json options = single();
  for (const char* command : {"make; rm x", "make && true", "make | tee", "echo $(x)", "a > b"}) {
    options["rebuild_command"] = command;
    expect_refused(options, "invalid_rebuild_command", command);
  }
}

TEST_F(Spec_7_1, RefusesPathsThatLeaveTheRepo) {
  const auto with = [&](const std::string& path) {
    Json options = snapshot();
    options["patch_path"] =
        scratch_.put("bad.diff", "--- " + path + "\n+++ " + path + "\n@@ -1 +1 @@\n-a\n+b\n")
            .string();
    return options;
  };
  expect_refused(with("/etc/passwd"), "path_escapes_tree", "is absolute");
  expect_refused(with("lib/../../x"), "path_escapes_tree", "leaves the tree");
  fs::create_directory_symlink(scratch_.path(), tree() / "out");
  before_ = picture(tree());
  expect_refused(with("out/new.loom"), "path_escapes_tree", "symbolic link");
  expect_refused(with("lib/absent.loom"), "refused_patch", "is named by the diff and is not there");
}

TEST_F(Spec_7_1, AFailedRebuildRestoresEverything) {
  Json options = snapshot();
  options["rebuild_command"] = "false";
  expect_refused(options, "rebuild_failed", "'false' ended with 1");
  options["rebuild_command"] = "test -e deep/er/added.loom";
  const Json applied = patch_apply(options);
  EXPECT_EQ(text_of(applied, "status"), "ok") << applied;
  EXPECT_EQ(applied["rebuild"]["status"], "ok");
}

TEST_F(Spec_7_1, WhatIsThereAlreadyIsNotApplied) {
  scratch_.put("new.loom", "kernel one\n");
  expect_refused(single(), "nothing_changes", "has these contents already");
}

TEST_F(Spec_7_1, ADryRunWritesNothing) {
  Json options = single();
  options["dry_run_patch"] = true;
  EXPECT_EQ(text_of(patch_apply(options), "status"), "dry_run");
  EXPECT_EQ(picture(tree()), before_);
  EXPECT_FALSE(fs::exists(scratch_ / "backup"));
}

TEST_F(Spec_7_1, AFullDiskLeavesTheTreeAsItWas) {
  scratch_.put("snapshot/model.loom", std::string(1 << 20, 'x') + "\n");
  const FullDisk disk(64 << 10);
  expect_refused(snapshot(), "unwritable_file", "model.loom");
}

TEST_F(Spec_7_1, AReadOnlyTreeIsRefusedWithItsReason) {
  constexpr uid_t kNobody = 65534;
  ::chmod(scratch_.path().c_str(), 0777);
  ::chmod(tree().c_str(), 0555);
  before_ = picture(tree());
  const uid_t user = ::geteuid();
  // The superuser writes everywhere.
  if (user == 0) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  Json options = single();
  options["target_file"] = (tree() / "lib/stays.loom").string();
  expect_refused(options, "unwritable_file", "Permission denied");
  if (user == 0) {
    ASSERT_EQ(::seteuid(user), 0);
  }
  ::chmod(tree().c_str(), 0755);
}

TEST_F(Spec_7_1, OneHandOnTheTreeAtATime) {
  const auto held = TreeLock::acquire({tree()}, {}, {});
  ASSERT_TRUE(held);
  const auto second = TreeLock::acquire({tree()}, Deadline::in_seconds(0), {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().error_class, "tree_locked");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(TreeLock::acquire({tree()}, {}, stop.get_token()).error().error_class, "cancelled");
}

// The rule's own name for what 7.1 says.
TEST_F(Patch, IR_6_CommandLineAndIntegrationWriteTheSameManifest) {
  const auto plan = plan_patch(*PatchRequest::read(single()));
  ASSERT_TRUE(plan);
  auto prepared = prepare_patch(*plan, {.root = scratch_ / "integration"});
  ASSERT_TRUE(prepared);
  const Json inside = apply_prepared(*plan, *prepared);
  ASSERT_EQ(text_of(inside, "status"), "ok");
  EXPECT_EQ(text_of(revert_patch(prepared->path()), "status"), "ok");
  const Json outside = patch_apply(single());
  const auto keys = [](const Json& document) {
    std::vector<std::string> result;
    for (const auto& [key, value] : document.items()) result.push_back(key);
    return result;
  };
  Json first = prepared->document;
  EXPECT_EQ(keys(first), keys(manifest_of(outside)));
}

// What is killed below; the argument is the folder of the tests' files.
class DISABLED_Child : public testing::Test {
 protected:
  static Json options() {
    const fs::path base = test_argument();
    return {{"kernel_id", "k001"},
            {"patch_path", (base / "p.diff").string()},
            {"snapshot_dir", (base / "snapshot").string()},
            {"kernel_repo", (base / "tree").string()},
            {"known_roots", {(base / "tree").string()}},
            {"backup_root", (base / "backup").string()}};
  }
};
TEST_F(DISABLED_Child, AppliesAndReverts) {
  const Json applied = patch_apply(options());
  ASSERT_EQ(text_of(applied, "status"), "ok") << applied;
  const Json reverted = patch_revert({{"manifest_path", text_of(applied, "manifest_path")}});
  ASSERT_EQ(text_of(reverted, "status"), "ok") << reverted;
}
TEST_F(DISABLED_Child, AppliesAndFinalizes) {
  const Json applied = patch_apply(options());
  ASSERT_EQ(text_of(applied, "status"), "ok") << applied;
  ASSERT_EQ(text_of(finalize_patch(text_of(applied, "manifest_path")), "status"), "ok");
}

TEST_F(Spec_7_2, KilledAtAnyStepTheTreeComesBackByteExact) {
  int steps = 0;
  for (int fault = 1; fault < 200; ++fault) {
    fs::remove_all(scratch_ / "backup");
    if (!killed_at("DISABLED_Child.AppliesAndReverts", fault, scratch_.path())) break;
    ++steps;
    for (const fs::path& manifest : manifests_below(scratch_ / "backup")) {
      const Json result = revert_patch(manifest);
      ASSERT_EQ(text_of(result, "status"), "ok") << fault << result;
    }
    ASSERT_EQ(picture(tree()), before_) << fault;
  }
  EXPECT_GT(steps, 20);
  EXPECT_LT(steps, 100);
}

TEST_F(Spec_7_2, KilledWhileItIsFinalizedItCanBeFinalized) {
  int finalized = 0;
  for (int fault = 1; fault < 200; ++fault) {
    fs::remove_all(scratch_ / "backup");
    if (!killed_at("DISABLED_Child.AppliesAndFinalizes", fault, scratch_.path())) break;
    const auto manifests = manifests_below(scratch_ / "backup");
    if (manifests.empty()) continue;
    if (text_of(finalize_patch(manifests[0]), "status") == "ok") {
      ++finalized;
      EXPECT_EQ(scratch_.get("tree/model.loom"), "kernel two\n");
      // For the next round.
      fs::remove_all(tree());
      scratch_.put("tree/model.loom", "kernel one\n", 0640);
      scratch_.put("tree/lib/gone.loom", "gone\n");
      scratch_.put("tree/lib/stays.loom", "stays\n", 0755);
    } else {
      ASSERT_EQ(text_of(revert_patch(manifests[0]), "status"), "ok");
    }
    ASSERT_EQ(picture(tree()), before_) << fault;
  }
  EXPECT_GT(finalized, 2);
}

}  // namespace
}  // namespace hyperloom::integrate
