#include "hyperloom/session/state.h"

#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "hyperloom/core/testing.h"
#include "loom/base/file.h"

namespace hyperloom::session {
namespace {

class State : public testing::Test {
 protected:
  SharedState create() const {
    return SharedState::create(path(), {{"framework", "loom"}}).value();
  }
  std::filesystem::path path() const { return folder_ / "state.json"; }
  std::string text() const { return loom::read_file(path().string()).value_or("<missing>"); }
  size_t files() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      ++count;
    }
    return count;
  }
  TempFolder folder_;
};

using Spec_12_State = State;

TEST_F(Spec_12_State, UpdateIsOnDiskWithTheNextRevision) {
  SharedState state = create();
  ASSERT_TRUE(state.update("test", [](Json& document) { document["baseline_tput"] = 1000.0; }));
  EXPECT_EQ(state.revision(), 1U);
  const SharedState again = SharedState::load(path()).value();
  EXPECT_EQ(again.revision(), 1U);
  EXPECT_EQ(again.get("baseline_tput"), 1000.0);
  EXPECT_EQ(again.get("framework"), "loom");
  EXPECT_TRUE(again.get("never_set").is_null());
}

TEST_F(State, ChangeThatThrowsChangesNothing) {
  SharedState state = create();
  const std::string before = text();
  const auto throws = [](Json& document) {
    document["baseline_tput"] = 7;
    throw std::runtime_error("no");
  };
  EXPECT_THROW((void)state.update("test", throws), std::runtime_error);
  EXPECT_EQ(text(), before);
  EXPECT_EQ(state.get("baseline_tput"), 0.0);
  EXPECT_TRUE(state.update("test", [](Json& document) { document["baseline_tput"] = 8; }));
}

TEST_F(Spec_12_State, FullDiskKeepsMemoryAndFile) {
  SharedState state = create();
  const std::string before = text();
  {
    const FullDisk full(before.size());
    const auto updated =
        state.update("test", [](Json& document) { document["note"] = std::string(100'000, 'x'); });
    ASSERT_FALSE(updated);
    EXPECT_EQ(updated.error().error_class, "unwritable_file");
    EXPECT_NE(updated.error().message.find("state.json"), std::string::npos);
  }
  EXPECT_EQ(text(), before);
  EXPECT_EQ(state.revision(), 0U);
  EXPECT_TRUE(state.get("note").is_null());
  EXPECT_EQ(files(), 1U);
  EXPECT_TRUE(state.update("test", [](Json& document) { document["note"] = 1; }));
}

TEST_F(Spec_12_State, FileThatSomebodyElseWroteIsAConflict) {
  SharedState state = create();
  SharedState other = SharedState::load(path()).value();
  ASSERT_TRUE(other.update("test", [](Json& document) { document["who"] = "other"; }));
  const auto updated = state.update("test", [](Json& document) { document["who"] = "state"; });
  ASSERT_FALSE(updated);
  EXPECT_EQ(updated.error().error_class, "state_conflict");
  EXPECT_EQ(SharedState::load(path())->get("who"), "other");
  std::filesystem::remove(path());
  const auto gone = other.update("test", [](Json&) {});
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().error_class, "state_conflict");
}

TEST_F(State, FileThatIsALinkIsNotFollowed) {
  SharedState state = create();
  std::filesystem::rename(path(), folder_ / "elsewhere");
  std::filesystem::create_symlink(folder_ / "elsewhere", path());
  const auto updated = state.update("test", [](Json& document) { document["who"] = "state"; });
  ASSERT_FALSE(updated);
  EXPECT_EQ(updated.error().error_class, "unwritable_file");
  EXPECT_TRUE(SharedState::load(folder_ / "elsewhere")->get("who").is_null());
}

TEST_F(State, FieldsThatAnOlderDocumentLacksAreThere) {
  std::ofstream(path()) << R"({"schema_version": 5, "revision": 3})";
  const SharedState state = SharedState::load(path()).value();
  EXPECT_TRUE(state.get("last_action_failures").is_array());
  EXPECT_EQ(state.revision(), 3U);
}

TEST_F(State, CreateDoesNotReplaceWhatIsThere) {
  {
    const SharedState state = create();
  }
  const auto again = SharedState::create(path(), Json::object());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().error_class, "state_exists");
}

}  // namespace
}  // namespace hyperloom::session
