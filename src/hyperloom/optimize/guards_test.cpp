#include "hyperloom/optimize/guards.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "hyperloom/core/testing.h"
#include "hyperloom/optimize/testing.h"

namespace hyperloom::optimize {
namespace {

class Guards : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(folder_ / "a.loom") << "text";
    options_.trusted_roots = {folder_.path()};
    options_.workspace = folder_.path();
    row_ = row("k001", 20, "a.loom");
    row_["shapes"] = {"(4)f32"};
  }
  std::string first() const {
    const auto error = check_candidate(row_, options_, environment_);
    return error ? error->error_class : "";
  }
  TempFolder folder_;
  GuardOptions options_;
  Environment environment_ = with({{"HYPERLOOM_KERNEL_AGENT_ROOT", folder_.path().string()}});
  Json row_;
};

// Each repair uncovers the next guard of the list.
TEST_F(Guards, Spec_3_2_GuardsAreAskedInOrder) {
  environment_ = with({{"HYPERLOOM_KERNEL_AGENT_ROOT", (folder_ / "none").string()}});
  options_.workspace = folder_ / "none";
  row_ = Json{{"runtime_generated_kernel", true},
              {"shape_provenance", "tile_name"},
              {"reusable_native_kernel", false}};
  EXPECT_EQ(first(), "missing_kernel_id");
  row_["kernel_id"] = "k001";
  EXPECT_EQ(first(), "non_reusable_kernel");
  row_["reusable_native_kernel"] = true;
  EXPECT_EQ(first(), "missing_native_source");
  row_["source_file"] = "/elsewhere/b.loom";
  EXPECT_EQ(first(), "runtime_generated_kernel");
  row_.erase("runtime_generated_kernel");
  EXPECT_EQ(first(), "unstable_source_path");
  row_["source_file"] = "b.loom";
  EXPECT_EQ(first(), "empty_kernel_shape");
  options_.allow_empty_kernel_shape = true;
  EXPECT_EQ(first(), "untrusted_shape_provenance");
  row_["shape_provenance"] = "native_trace";
  EXPECT_EQ(first(), "missing_source_path");
  row_["source_file"] = "a.loom";
  EXPECT_EQ(first(), "missing_workspace_path");
  options_.workspace = folder_.path();
  EXPECT_EQ(first(), "kernel_agent_root_missing");
  environment_ = with({{"HYPERLOOM_KERNEL_AGENT_ROOT", folder_.path().string()}});
  EXPECT_EQ(first(), "");
}

TEST_F(Guards, Spec_3_2_ProvenanceThatWasSeenIsTrusted) {
  for (const char* seen : {"", "torch_trace", "capture_backfill", "tuning_csv", "native_trace"}) {
    row_["shape_provenance"] = seen;
    EXPECT_EQ(first(), "") << seen;
  }
  for (const char* derived : {"launch_grid", "tile_name", "unresolved"}) {
    row_["shape_provenance"] = derived;
    EXPECT_EQ(first(), "untrusted_shape_provenance") << derived;
  }
}

TEST_F(Guards, Spec_6_5_DryRunAsksForNoShapesAndNoFiles) {
  row_.erase("shapes");
  row_["source_file"] = "gone.loom";
  options_.workspace = folder_ / "none";
  options_.dry_run = true;
  EXPECT_EQ(first(), "");
  row_["source_file"] = "/elsewhere/b.loom";
  EXPECT_EQ(first(), "unstable_source_path") << "where it lies is asked for all the same";
}

TEST_F(Guards, SourceThatALinkLeadsOutOfItsRootIsNotTrusted) {
  const TempFolder other;
  std::ofstream(other / "b.loom") << "text";
  std::filesystem::create_symlink(other / "b.loom", folder_ / "b.loom");
  row_["source_file"] = (folder_ / "b.loom").string();
  EXPECT_EQ(first(), "unstable_source_path");
  options_.trusted_roots.push_back(other.path());
  EXPECT_EQ(first(), "");
}

TEST(Spec_3_2_Resolve, ExactIdThenUniqueNameThenNumber) {
  const Json candidates = {{"hot_kernels",
                            {{{"kernel_id", "k003"}, {"name", "scale"}},
                             {{"kernel_id", "k010"}, {"name", "twice"}},
                             {{"kernel_id", "k011"}, {"name", "twice"}}}}};
  const auto id = [&](const std::string& requested) {
    const Json* found = resolve_kernel(candidates, requested);
    return found == nullptr ? "" : (*found)["kernel_id"].get<std::string>();
  };
  EXPECT_EQ(id("k003"), "k003");
  EXPECT_EQ(id("scale"), "k003");
  for (const char* same : {"k3", "kn3", "k0003"}) EXPECT_EQ(id(same), "k003") << same;
  EXPECT_EQ(id("twice"), "") << "two have that name";
  for (const char* none : {"", "k", "kn", "k4", "x3", "k3x"}) EXPECT_EQ(id(none), "") << none;
}

}  // namespace
}  // namespace hyperloom::optimize
