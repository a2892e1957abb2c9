#include "hyperloom/core/json.h"

#include <gtest/gtest.h>

#include "hyperloom/core/testing.h"

namespace hyperloom {
namespace {

TEST(JsonText, EqualDocumentsAreEqualBytes) {
  const Json a = parse_json(R"({"b": 1, "a": [1, 2.5, "x"]})", "a").value();
  const Json b = parse_json(R"({"a":[1,2.5,"x"],"b":1})", "b").value();
  EXPECT_EQ(compact(a), compact(b));
  EXPECT_EQ(compact(a), R"({"a":[1,2.5,"x"],"b":1})");
}

TEST(JsonText, ErrorNamesFileLineAndColumn) {
  const auto parsed = parse_json("{\n  \"a\": 1,\n  oops\n}", "x.json");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().error_class, "invalid_json");
  EXPECT_EQ(parsed.error().message, "x.json:3:3: not JSON");
}

TEST(JsonText, NestingBeyondTheLimitIsRefused) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(parse_json(nested(512), "x"));
  const auto deep = parse_json(nested(1'000'000), "x");
  ASSERT_FALSE(deep);
  EXPECT_NE(deep.error().message.find("512"), std::string::npos);
  EXPECT_TRUE(parse_json("\"" + std::string(1000, '[') + "\"", "x"));
}

TEST(JsonText, NumberThatNoDoubleHoldsIsRefused) {
  const auto parsed = parse_json("[1e999]", "x.json");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().error_class, "invalid_json");
  EXPECT_NE(parsed.error().message.find("x.json"), std::string::npos);
}

TEST(JsonText, InvalidUtf8IsReplacedWhenWritten) {
  EXPECT_EQ(compact(Json("a\xff"
                         "b")),
            "\"a\xEF\xBF\xBD"
            "b\"");
}

TEST(JsonFields, ValueOfAnotherTypeReadsAsTheFallback) {
  const Json object = {{"text", "x"}, {"number", 2}, {"flag", true}, {"null", nullptr}};
  EXPECT_EQ(text_of(object, "text"), "x");
  EXPECT_EQ(text_of(object, "number", "none"), "none");
  EXPECT_EQ(number_of(object, "number"), 2);
  EXPECT_EQ(number_of(object, "flag", 7), 7);
  EXPECT_TRUE(flag_of(object, "flag"));
  EXPECT_FALSE(flag_of(object, "text"));
  EXPECT_TRUE(value_of(object, "missing").is_null());
  EXPECT_TRUE(value_of(Json::array(), "missing").is_null());
}

TEST(JsonFiles, WriteThenReadGivesTheDocument) {
  const TempFolder folder;
  const Json document = {{"a", {1, 2}}};
  ASSERT_TRUE(write_json(folder / "x.json", document));
  EXPECT_EQ(read_json(folder / "x.json").value(), document);
  EXPECT_EQ(read_json(folder / "y.json").error().error_class, "unreadable_file");
  const auto refused = write_json(folder / "no" / "x.json", document);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error_class, "unwritable_file");
  EXPECT_NE(refused.error().message.find("x.json"), std::string::npos);
}

}  // namespace
}  // namespace hyperloom
