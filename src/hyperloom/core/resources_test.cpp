#include "hyperloom/core/resources.h"

#include <gtest/gtest.h>

#include <fstream>

namespace hyperloom {
namespace {

namespace fs = std::filesystem;

class Spec_11_1 : public testing::Test {
 protected:
  void SetUp() override {
    base_ = fs::path(testing::TempDir()) / "resources";
    fs::remove_all(base_);
    write("packaged/prompts/a.md", "packaged");
    write("packaged/prompts/b.md", "packaged");
    write("project/prompts/a.md", "project");
  }
  void TearDown() override { fs::remove_all(base_); }

  void write(const std::string& name, const std::string& text) {
    fs::create_directories((base_ / name).parent_path());
    std::ofstream(base_ / name) << text;
  }
  Environment environment(bool overlay) const {
    std::map<std::string, std::string> values = {
        {"HYPERLOOM_KERNEL_AGENT_ROOT", (base_ / "packaged").string()}};
    if (overlay) values["KERNELFORGE_PROJECT_ROOT"] = (base_ / "project").string();
    return Environment(std::move(values));
  }
  fs::path base_;
};

TEST_F(Spec_11_1, TheProjectRootLiesOverThePackagedResources) {
  EXPECT_EQ(find_resource(environment(true), "prompts/a.md").value(),
            base_ / "project/prompts/a.md");
  EXPECT_EQ(find_resource(environment(true), "prompts/b.md").value(),
            base_ / "packaged/prompts/b.md");
  EXPECT_EQ(find_resource(environment(false), "prompts/a.md").value(),
            base_ / "packaged/prompts/a.md");
  EXPECT_EQ(find_resource(environment(true), "prompts/c.md").error().error_class,
            "resource_missing");
}

TEST_F(Spec_11_1, AGivenKernelAgentRootHasToExist) {
  const std::map<std::string, std::string> values = {
      {"HYPERLOOM_KERNEL_AGENT_ROOT", (base_ / "nowhere").string()}};
  const auto root = kernel_agent_root(Environment(values));
  ASSERT_FALSE(root.has_value());
  EXPECT_EQ(root.error().error_class, "kernel_agent_root_missing");
}

}  // namespace
}  // namespace hyperloom
