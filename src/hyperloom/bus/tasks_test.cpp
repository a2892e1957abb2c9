#include "hyperloom/bus/tasks.h"

#include <gtest/gtest.h>

#include "hyperloom/bus/sqlite.h"
#include "hyperloom/core/testing.h"

namespace hyperloom::bus {
namespace {

class Spec_2_5_Tasks : public testing::Test {
 protected:
  Spec_2_5_Tasks()
      : database_(Database::open(folder_ / "coordinator.db",
                                 Environment(std::map<std::string, std::string>{}))
                      .value()),
        tasks_(database_) {}
  std::string create(const std::string& key, int64_t ttl = 3600) {
    Task task;
    task.kind = "profile";
    task.idempotency_key = key;
    task.lease_ttl_sec = ttl;
    task.params = {{"n", 1}};
    task.requires_lanes = {"profile_lane"};
    return tasks_.create_or_return_existing(task)->task.task_id;
  }
  TempFolder folder_;
  std::shared_ptr<Database> database_;
  Tasks tasks_;
};

TEST_F(Spec_2_5_Tasks, SameKeyIsTheSameTask) {
  const std::string id = create("kernel_entry_g0_abc");
  ASSERT_TRUE(tasks_.transition(id, "running"));
  Task again;
  again.kind = "profile";
  again.idempotency_key = "kernel_entry_g0_abc";
  const auto created = tasks_.create_or_return_existing(again).value();
  EXPECT_TRUE(created.existing);
  EXPECT_EQ(created.task.task_id, id);
  EXPECT_EQ(created.task.state, "running");
  EXPECT_EQ(created.task.params, Json({{"n", 1}}));
  EXPECT_EQ(created.task.requires_lanes, std::vector<std::string>{"profile_lane"});
  EXPECT_NE(create("other"), id);
  EXPECT_EQ(tasks_.create_or_return_existing(Task()).error().error_class, "invalid_task");
}

TEST_F(Spec_2_5_Tasks, OnlyTheListedTransitionsAreAllowed) {
  const std::vector<std::string> states = {"queued", "running", "succeeded", "failed", "cancelled"};
  int made = 0;
  const auto reach = [&](const std::string& state) {
    const std::string id = create("task " + state + " " + std::to_string(++made));
    if (state == "queued") return id;
    if (state != "cancelled") (void)tasks_.transition(id, "running").value();
    if (state != "running") (void)tasks_.transition(id, state).value();
    return id;
  };
  for (const std::string& from : states) {
    for (const std::string& to : states) {
      const bool allowed =
          (from == "queued" && (to == "running" || to == "cancelled")) ||
          (from == "running" && (to == "succeeded" || to == "failed" || to == "cancelled"));
      const auto moved = tasks_.transition(reach(from), to);
      EXPECT_EQ(moved.has_value(), allowed) << from << " -> " << to;
      if (moved) continue;
      EXPECT_EQ(moved.error().error_class, "invalid_transition");
    }
  }
  EXPECT_EQ(tasks_.transition("none", "running").error().error_class, "unknown_task");
}

TEST_F(Spec_2_5_Tasks, RunningTaskIsReclaimedWhenItsTimeIsUp) {
  const std::string expired = create("expired", 0);
  const std::string held = create("held");
  ASSERT_TRUE(tasks_.transition(expired, "running"));
  ASSERT_TRUE(tasks_.transition(held, "running"));
  const auto reclaimed = tasks_.reclaim().value();
  ASSERT_EQ(reclaimed.size(), 1U);
  EXPECT_EQ(reclaimed[0].task_id, expired);
  EXPECT_EQ(reclaimed[0].state, "failed");
  EXPECT_EQ(reclaimed[0].history.back().at("reason"), "lease_expired");
  EXPECT_EQ(tasks_.find(held)->value().state, "running");
}

TEST_F(Spec_2_5_Tasks, RunningTaskIsReclaimedWhenItsHolderIsDead) {
  const std::string id = create("dead");
  ASSERT_TRUE(tasks_.transition(id, "running"));
  ASSERT_TRUE(database_->impl().execute(
      "UPDATE tasks SET history = '[{\"state\":\"running\",\"holder\":\"1:1:1\","
      "\"expires_unix\":99999999999}]'"));
  const auto reclaimed = tasks_.reclaim().value();
  ASSERT_EQ(reclaimed.size(), 1U);
  EXPECT_EQ(reclaimed[0].history.back().at("reason"), "holder_dead");
}

TEST_F(Spec_2_5_Tasks, ExtendedTaskKeepsItsLease) {
  const std::string id = create("long", 0);
  ASSERT_TRUE(tasks_.transition(id, "running"));
  EXPECT_EQ(tasks_.extend(id, 0).error().error_class, "invalid_extension");
  EXPECT_EQ(tasks_.extend(id, 3601).error().error_class, "invalid_extension");
  ASSERT_TRUE(tasks_.extend(id, 3600));
  EXPECT_TRUE(tasks_.reclaim()->empty());
  ASSERT_TRUE(tasks_.transition(id, "succeeded"));
  EXPECT_EQ(tasks_.extend(id, 1).error().error_class, "invalid_transition");
}

TEST_F(Spec_2_5_Tasks, NewestHundredAndTwentyNotesAreKept) {
  const std::string id = create("noted");
  for (int i = 0; i < 125; ++i) ASSERT_TRUE(tasks_.note(id, std::to_string(i)));
  const Json history = tasks_.find(id)->value().history;
  ASSERT_EQ(history.size(), 121U);
  EXPECT_EQ(history[0].at("state"), "queued");
  EXPECT_EQ(history[1].at("note"), "5");
  EXPECT_EQ(history.back().at("note"), "124");
}

TEST_F(Spec_2_5_Tasks, TasksAreListedByState) {
  const std::string first = create("a");
  const std::string second = create("b");
  ASSERT_TRUE(tasks_.transition(second, "cancelled"));
  const auto queued = tasks_.in_state("queued").value();
  ASSERT_EQ(queued.size(), 1U);
  EXPECT_EQ(queued[0].task_id, first);
  EXPECT_TRUE(tasks_.in_state("running")->empty());
}

}  // namespace
}  // namespace hyperloom::bus
