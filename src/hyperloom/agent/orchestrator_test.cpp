#include "hyperloom/agent/orchestrator.h"

#include <gtest/gtest.h>

#include <fstream>

namespace hyperloom::agent {
namespace {

Turn prelude_turn() {
  Turn turn;
  turn.phase = "PRELUDE";
  turn.state = {{"last_profile_trace", "runs/trace.json"}};
  return turn;
}

Turn kernel_turn() {
  Turn turn;
  turn.phase = "KERNEL_AGENT";
  turn.state = Json::object();
  turn.candidates = {{"hot_kernels", {{{"kernel_id", "k001"}, {"name", "dense"}}}}};
  return turn;
}

TEST(Scripted, AsksForTheAnalysisOfAFreshProfileOnce) {
  auto policy = scripted("");
  Turn turn = prelude_turn();
  const Json envelope = policy->turn(turn).value();
  ASSERT_EQ(envelope["intents"].size(), 1u);
  const Json& payload = envelope["intents"][0]["payload"];
  EXPECT_EQ(payload["kind"], "trace_analyze");
  EXPECT_EQ(payload["target_agent"], "kernel_agent");
  EXPECT_EQ(payload["params"]["trace_input"], "runs/trace.json");
  turn.state["last_trace_analyze"] = {{"trace_input", "runs/trace.json"}};
  EXPECT_TRUE(policy->turn(turn).value()["intents"].empty());
}

TEST(Scripted, DoesNotAskAgainForWhatFailed) {
  Turn turn = prelude_turn();
  turn.state["last_action_failures"] = {{{"action", "trace_analyze"}, {"error_class", "x"}}};
  EXPECT_TRUE(scripted("")->turn(turn).value()["intents"].empty());
  turn.state["last_action_failures"][0]["error_class"] = "interrupted";
  EXPECT_EQ(scripted("")->turn(turn).value()["intents"].size(), 1u);
}

TEST(Scripted, AsksForTheNamedKernelUntilItWasTried) {
  Turn turn = kernel_turn();
  turn.work_pending = true;
  EXPECT_TRUE(scripted("")->turn(turn).value()["intents"].empty());
  const Json envelope = scripted("dense")->turn(turn).value();
  ASSERT_EQ(envelope["intents"].size(), 1u);
  EXPECT_EQ(envelope["intents"][0]["payload"]["params"]["kernel_id"], "k001");
  turn.state["kernel_opt_task_attempts"] = {{"key", {{"kernel_id", "k001"}, {"attempts", 1}}}};
  EXPECT_TRUE(scripted("dense")->turn(turn).value()["intents"].empty());
  EXPECT_TRUE(scripted("other")->turn(turn).value()["intents"].empty());
}

TEST(Scripted, HintsAtTheEndOnceNothingIsPending) {
  Turn turn = kernel_turn();
  turn.work_pending = true;
  EXPECT_TRUE(scripted("")->turn(turn).value()["intents"].empty());
  turn.work_pending = false;
  const Json envelope = scripted("")->turn(turn).value();
  ASSERT_EQ(envelope["intents"].size(), 1u);
  EXPECT_EQ(envelope["intents"][0]["payload"]["changes"]["phase_hint"], "skip_to_sweep");
  turn.state["phase_hint"] = "skip_to_sweep";
  EXPECT_TRUE(scripted("")->turn(turn).value()["intents"].empty());
}

class Transcript : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& text) {
    const auto path = std::filesystem::path(testing::TempDir()) / "transcript.jsonl";
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(Transcript, AnswersTurnsOfEachRoleByNumber) {
  auto roles =
      replayed(write("{\"intents\":[1]}\n\n"
                     "{\"role\":\"critic\",\"envelope\":{\"intents\":[2]}}\n"
                     "{\"intents\":[3]}\n"));
  ASSERT_TRUE(roles.has_value());
  ASSERT_EQ(roles->size(), 2u);
  Orchestrator& critic = *(*roles)[0];
  Orchestrator& orchestration = *(*roles)[1];
  EXPECT_EQ(critic.role(), "critic");
  Turn turn;
  EXPECT_EQ(critic.turn(turn).value()["intents"][0], 2);
  turn.number = 1;
  EXPECT_EQ(orchestration.turn(turn).value()["intents"][0], 3);
  turn.number = 2;
  EXPECT_TRUE(orchestration.turn(turn).value()["intents"].empty());
}

TEST_F(Transcript, NamesALineThatIsNotJson) {
  const auto roles = replayed(write("{\"intents\":[]}\n{oops\n"));
  ASSERT_FALSE(roles.has_value());
  EXPECT_EQ(roles.error().error_class, "invalid_transcript");
  EXPECT_NE(roles.error().message.find("transcript.jsonl:2:"), std::string::npos);
  EXPECT_EQ(replayed("/nonexistent/file").error().error_class, "unreadable_file");
}

}  // namespace
}  // namespace hyperloom::agent
