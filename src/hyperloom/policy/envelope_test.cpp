#include "hyperloom/policy/envelope.h"

#include <gtest/gtest.h>

#include <set>

namespace hyperloom::policy {
namespace {

Result<std::vector<Intent>> parse(std::string_view text) {
  return parse_envelope(parse_json(text, "test").value());
}

TEST(Spec_2_1, EachMalformationHasAnErrorOfItsOwn) {
  struct Case {
    std::string_view text, error_class, part;
  };
  const Case cases[] = {
      {"[]", "envelope_not_object", "array"},
      {"null", "envelope_not_object", "null"},
      {"{}", "envelope_missing_intents", "intents"},
      {R"({"intents": {}})", "envelope_intents_not_list", "object"},
      {R"({"intents": [1]})", "intent_not_object", "intents[0]"},
      {R"({"intents": [{}]})", "intent_missing_type", "intents[0]"},
      {R"({"intents": [{"intent_type": 3}]})", "intent_missing_type", "intents[0]"},
      {R"({"intents": [{"intent_type": "dance", "payload": {}}]})", "intent_unknown_type", "dance"},
      {R"({"intents": [{"intent_type": "alert"}]})", "intent_payload_not_object", "payload"},
      {R"({"intents": [{"intent_type": "alert", "payload": []}]})", "intent_payload_not_object",
       "payload"},
      {R"({"intents": [{"intent_type": "alert", "payload": {"severity": "x"}}]})",
       "intent_missing_field", "summary"},
      {R"({"intents": [{"intent_type": "request", "payload": {"target_agent": null, "kind": "x"}}]})",
       "intent_missing_field", "target_agent"},
      {R"({"intents": [{"intent_type": "review_verdict",
           "payload": {"target_proposal_msg_id": "x"}}]})",
       "intent_missing_field", "verdict_map"},
      {R"({"intents": [{"intent_type": "review_verdict",
           "payload": {"target_proposal_msg_id": "x", "verdict": "a", "verdict_map": {}}}]})",
       "intent_conflicting_fields", "verdict_map"},
  };
  for (const Case& row : cases) {
    const auto intents = parse(row.text);
    ASSERT_FALSE(intents) << row.text;
    EXPECT_EQ(intents.error().error_class, row.error_class) << row.text;
    EXPECT_NE(intents.error().message.find(row.part), std::string::npos) << intents.error().message;
  }
}

TEST(Spec_2_1, EveryTypeIsTakenWithItsRequiredFields) {
  const std::pair<std::string, Json> rows[] = {
      {"send_message", {{"topic", "advice"}}},
      {"delegate", {{"action_name", "explore"}}},
      {"propose_action", {{"action_name", "explore"}, {"predicted_gain_pct", 1}}},
      {"update_state", {{"changes", Json::object()}}},
      {"alert", {{"severity", "low"}, {"summary", "s"}}},
      {"request", {{"target_agent", "kernel_agent"}, {"kind", "integrate"}}},
      {"response", {{"in_reply_to", "x"}, {"kind", "y"}}},
      {"review_verdict", {{"target_proposal_msg_id", "x"}, {"verdict", "approve"}}},
      {"extend_lease", {{"task_id", "t"}, {"extra_sec", 60}}},
      {"prune_branch", {{"family", "f"}, {"reason", "r"}}},
      {"escalate_strategy_change", {{"reason", "r"}, {"next_action_hint", "h"}}},
      {"specialist_done", Json::object()}};
  for (const auto& [type, payload] : rows) {
    const Json envelope = {{"intents", {{{"intent_type", type}, {"payload", payload}}}}};
    const auto intents = parse_envelope(envelope);
    ASSERT_TRUE(intents) << type << intents.error().message;
    EXPECT_EQ(intents->at(0).type, type);
    EXPECT_EQ(intents->at(0).payload, payload);
    for (const auto& [field, value] : payload.items()) {
      Json lacking = envelope;
      lacking["intents"][0]["payload"].erase(field);
      EXPECT_FALSE(parse_envelope(lacking)) << type << " without " << field;
    }
  }
}

TEST(Spec_2_1, OneMalformedIntentRejectsTheWholeTurn) {
  const auto intents = parse(R"({"intents": [
      {"intent_type": "alert", "payload": {"severity": "low", "summary": "fine"}},
      {"intent_type": "alert", "payload": {"severity": "low"}}]})");
  ASSERT_FALSE(intents);
  EXPECT_NE(intents.error().message.find("intents[1]"), std::string::npos);
}

TEST(Spec_2_1, TurnWithoutIntentsIsLegitimate) {
  EXPECT_TRUE(parse(R"({"intents": []})")->empty());
}

TEST(Envelopes, LongTextOfARoleIsCutInMessages) {
  const Json envelope = {
      {"intents", {{{"intent_type", std::string(100'000, 'x')}, {"payload", Json::object()}}}}};
  EXPECT_LT(parse_envelope(envelope).error().message.size(), 200U);
}

}  // namespace
}  // namespace hyperloom::policy
