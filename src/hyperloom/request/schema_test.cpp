#include "hyperloom/request/schema.h"

#include <gtest/gtest.h>

#include <set>

namespace hyperloom::request {
namespace {

Result<Checked> check(const std::string& kind, const Json& payload) {
  return check_payload(kind, payload, "one");
}

Json example(FieldType type) {
  switch (type) {
    case FieldType::Text:
    case FieldType::Path:
    case FieldType::TextOrList:
      return "x";
    case FieldType::Integer:
      return 3;
    case FieldType::Number:
      return 2.5;
    case FieldType::Flag:
      return true;
    case FieldType::PathList:
      return {"a", "b"};
    case FieldType::List:
      return Json::array({1, "a"});
    case FieldType::Object:
      return {{"a", {1}}};
    case FieldType::Scalars:
      return {{"A", "1"}, {"B", 2}};
  }
  return nullptr;
}

TEST(Spec_3, WrongTypeIsInvalidPayloadNamingTheField) {
  for (const FieldRow& row : schema_table()) {
    const std::string kind(row.kind);
    const std::string name(row.name);
    // "false" is a text and no truth value; a text is no number; a number is no text.
    Json wrong = row.type == FieldType::Flag ? Json("false") : Json(7);
    if (row.type == FieldType::Integer || row.type == FieldType::Number) wrong = "7";
    const auto refused = check(kind, {{name, wrong}});
    ASSERT_FALSE(refused) << kind << "." << name;
    EXPECT_EQ(refused.error().error_class, "invalid_payload");
    EXPECT_EQ(refused.error().message.find("'" + name + "' "), 0U) << refused.error().message;
  }
}

TEST(Spec_3, ValueOfTheTypeIsTakenAsItIs) {
  for (const FieldRow& row : schema_table()) {
    const std::string name(row.name);
    Json value = example(row.type);
    if (row.name == "session_id") value = "one";
    if (row.name == "steady_state_mode") value = "mixed";
    Json payload = {{name, value}};
    if (row.constraint == "dry_run") payload["dry_run"] = true;
    const auto checked = check(std::string(row.kind), payload);
    ASSERT_TRUE(checked) << row.kind << row.name << checked.error().message;
    EXPECT_EQ(checked->payload, payload);
    EXPECT_TRUE(checked->warnings.empty());
  }
}

TEST(Spec_3, AFileNameLeadsNowhereElse) {
  for (const char* name : {"../../../x.json", "/etc/x.json", "a/b.json", "..", ".hidden", "a\\b"}) {
    const auto checked = check("trace_analyze", {{"roofline_output_name", name}});
    ASSERT_FALSE(checked) << name;
    EXPECT_EQ(checked.error().error_class, "invalid_payload");
    EXPECT_TRUE(checked.error().message.starts_with("'roofline_output_name'"));
  }
  EXPECT_TRUE(check("trace_analyze", {{"roofline_output_name", "after-1.json"}}));
}

TEST(Spec_3, AliasIsCheckedLikeIntegrate) {
  EXPECT_EQ(check("apply_patch", {{"skip_rebuild", "yes"}}).error().error_class, "invalid_payload");
  EXPECT_TRUE(check("apply_patch", {{"skip_rebuild", true}}));
}

TEST(Spec_3_2, OverridesForTestsCountOnlyInADryRun) {
  for (const char* field :
       {"micro_speedup", "e2e_gain_pct", "correctness_passed", "accuracy_passed"}) {
    const Json value = std::string(field).ends_with("passed") ? Json(true) : Json(1.2);
    const auto refused = check("run_optimization", {{field, value}});
    ASSERT_FALSE(refused) << field;
    EXPECT_NE(refused.error().message.find(field), std::string::npos);
    EXPECT_FALSE(check("run_optimization", {{field, value}, {"dry_run", false}}));
    EXPECT_TRUE(check("run_optimization", {{field, value}, {"dry_run", true}}));
  }
}

TEST(Schemas, NumbersKeepTheirBounds) {
  EXPECT_FALSE(check("run_optimization", {{"budget_minutes", 0}}));
  EXPECT_FALSE(check("run_optimization", {{"max_parallel", -1}}));
  EXPECT_FALSE(check("run_optimization", {{"max_parallel", 1.5}}));
  EXPECT_EQ(check("run_optimization", {{"max_parallel", 4.0}})->payload.at("max_parallel"), 4);
  EXPECT_FALSE(check("integrate", {{"keep_threshold_pct", -0.1}}));
  EXPECT_TRUE(check("integrate", {{"keep_threshold_pct", 0}}));
  EXPECT_FALSE(check("integrate", {{"timeout_sec", std::numeric_limits<double>::infinity()}}));
  EXPECT_FALSE(check("trace_analyze", {{"steady_state_mode", "mixed|decode_only"}}));
}

TEST(Schemas, NullAndSentinelsAreAbsent) {
  const Json payload = {{"source_file", "unresolved"}, {"patch_path", nullptr}, {"kernel_id", ""}};
  EXPECT_EQ(check("integrate", payload)->payload, Json::object());
}

TEST(Schemas, UnknownFieldIsLeftOutWithAWarning) {
  const auto checked = check("run_optimization", {{"kernel_ids", "k1"}, {"kernel_id", "k2"}});
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->payload, Json({{"kernel_id", "k2"}}));
  ASSERT_EQ(checked->warnings.size(), 1U);
  EXPECT_EQ(checked->warnings[0].find("unknown_field: 'kernel_ids'"), 0U);
  EXPECT_NE(checked->warnings[0].find("did you mean 'kernel_id'?"), std::string::npos);
}

TEST(Schemas, AnotherSessionsIdIsRefused) {
  EXPECT_TRUE(check("run_optimization", {{"session_id", "one"}}));
  EXPECT_FALSE(check("run_optimization", {{"session_id", "two"}}));
}

TEST(Spec_1_2_Merge, ParamsWinOverTheTopLevel) {
  const Json merged = merge_params({{"target_agent", "kernel_agent"},
                                    {"kind", "integrate"},
                                    {"kernel_id", "top"},
                                    {"patch_path", "p"},
                                    {"params", {{"kernel_id", "inner"}, {"source", "x"}}}})
                          .value();
  EXPECT_EQ(merged, Json({{"kernel_id", "inner"}, {"patch_path", "p"}}));
  EXPECT_EQ(merge_params({{"params", {1}}}).error().error_class, "invalid_payload");
  EXPECT_EQ(merge_params({{"params", nullptr}, {"a", 1}}).value(), Json({{"a", 1}}));
}

TEST(Schemas, HelpNamesEachField) {
  for (const FieldRow& row : schema_table()) {
    EXPECT_NE(payload_help(row.kind).find(std::string(row.name) + " ("), std::string::npos);
  }
  EXPECT_EQ(payload_help("apply_patch"), payload_help("integrate"));
  EXPECT_EQ(payload_help("none"), "");
}

TEST(Schemas, NoFieldIsDeclaredTwice) {
  std::set<std::string> seen;
  for (const FieldRow& row : schema_table()) {
    EXPECT_TRUE(seen.insert(std::string(row.kind) + "." + std::string(row.name)).second)
        << row.name;
  }
}

}  // namespace
}  // namespace hyperloom::request
