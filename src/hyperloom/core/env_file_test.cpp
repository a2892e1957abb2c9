#include "hyperloom/core/env_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "hyperloom/core/testing.h"

namespace hyperloom {
namespace {

using Variables = std::map<std::string, std::string>;

Variables parse(std::string_view text, const Variables& environment = {}) {
  const auto parsed = parse_env_file(text, "x.env", Environment(environment));
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return parsed.value_or(Variables{});
}

TEST(Spec_11_1_EnvFile, ExpandsTheDefaultOfAnUnsetVariable) {
  const std::string line = "KERNEL_OPT_BACKEND_ORDER=${KERNEL_OPT_BACKEND_ORDER:-geak}\n";
  const std::string name = "KERNEL_OPT_BACKEND_ORDER";
  EXPECT_EQ(parse(line)[name], "geak");
  EXPECT_EQ(parse(line, {{name, "forge"}})[name], "forge");
  EXPECT_EQ(parse(line, {{name, ""}})[name], "geak");
}

TEST(Spec_11_1_EnvFile, NeverOverridesWhatIsSet) {
  const TempFolder folder;
  std::ofstream(folder / ".env") << "A=file\nB=file\nC=file\n";
  const Environment merged =
      with_env_file(Environment(Variables{{"A", "set"}, {"B", ""}}), folder / ".env").value();
  EXPECT_EQ(merged.raw("A"), "set");
  EXPECT_EQ(merged.raw("B"), "");
  EXPECT_EQ(merged.raw("C"), "file");
}

TEST(EnvFile, FileThatIsNotThereAddsNothing) {
  const TempFolder folder;
  EXPECT_TRUE(with_env_file(Environment(Variables{}), folder / ".env"));
  EXPECT_EQ(with_env_file(Environment(Variables{}), folder.path()).error().error_class,
            "unreadable_file");
}

TEST(EnvFile, ValuesAreReadAsAShellWould) {
  const Variables environment = {{"HOME", "/h"}};
  struct Case {
    std::string line, value;
  };
  const Case cases[] = {
      {"V=plain", "plain"},
      {"V=", ""},
      {"export V=x # comment", "x"},
      {"  V='a $HOME # b'  ", "a $HOME # b"},
      {R"(V="a \"$HOME\" \$x \\ \n")", R"(a "/h" $x \ \n)"},
      {"V=$HOME/${HOME}/$UNSET/x", "/h//h//x"},
      {"V=${UNSET:-a b}", "a b"},
      {"V=${HOME:-a}", "/h"},
      {"V=${UNSET:-}", ""},
      {"V=5$", "5$"},
      {"V=x\r", "x"},
  };
  for (const Case& row : cases) EXPECT_EQ(parse(row.line, environment)["V"], row.value) << row.line;
  EXPECT_EQ(parse("A=1\nB=${A}2\nA=3\n")["B"], "12");
}

TEST(EnvFile, BadLineIsNamed) {
  for (const std::string line :
       {"V", "=x", "1V=x", "V =x", "V=a b", "V='x", "V=\"x", "V=${", "V=${A", "V=${A:-x",
        "V=${A-x}", "V=${A:-${B}}", "V=a'b'", "V=\"x\"y"}) {
    const auto parsed = parse_env_file("A=1\n" + line, "x.env", Environment(Variables{}));
    ASSERT_FALSE(parsed) << line;
    EXPECT_EQ(parsed.error().error_class, "invalid_env_file");
    EXPECT_EQ(parsed.error().message.find("x.env:2: "), 0U) << parsed.error().message;
  }
  EXPECT_FALSE(parse_env_file(std::string_view("A=\0", 3), "x.env", Environment(Variables{})));
}

}  // namespace
}  // namespace hyperloom
