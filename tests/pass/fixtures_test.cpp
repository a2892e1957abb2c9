#include <gtest/gtest.h>

#include <algorithm>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "loom/base/check.h"
#include "loom/pass/fold_rule.h"
#include "pass_harness.h"

namespace loom {
namespace {

struct Case {
  std::string name;
  std::vector<std::string> passes;
  std::string input;
  std::string expected;  // module text, or diagnostics when `error`
  bool error = false;
};

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of('\n');
  const size_t end = text.find_last_not_of('\n');
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1) + "\n";
}

std::vector<Case> read_cases(const std::string& path) {
  std::ifstream file(path);
  std::vector<Case> cases;
  std::string line;
  std::string* part = nullptr;
  const auto after = [&](std::string_view prefix) { return line.substr(prefix.size()); };
  while (std::getline(file, line)) {
    if (line.starts_with("// CASE ")) {
      cases.emplace_back().name = after("// CASE ");
    } else if (line.starts_with("// RUN ")) {
      std::istringstream words(after("// RUN "));
      for (std::string word; words >> word;) cases.back().passes.push_back(word);
      part = &cases.back().input;
    } else if (line == "// EXPECT") {
      part = &cases.back().expected;
    } else if (line.starts_with("// EXPECT-ERROR ")) {
      cases.back().error = true;
      cases.back().expected += after("// EXPECT-ERROR ") + "\n";
      part = nullptr;
    } else if (part != nullptr) {
      *part += line + "\n";
    }
  }
  for (Case& c : cases) {
    c.input = trimmed(c.input);
    c.expected = trimmed(c.expected);
  }
  return cases;
}

// Returns the text or the diagnostics of the run.
std::string run_case(const Case& c, bool& refused) {
  TestModule test(c.input);
  EXPECT_TRUE(test.module) << c.name << "\n" << test.report();
  if (!test.module) return "";
  PassContext context(*test.module, test.diagnostics);
  PassRunner runner;
  refused = false;
  for (const std::string& pass : c.passes) {
    for (OpId root : test.roots()) {
      const std::string_view name = pass;
      if (refused || runner.run(context, root, {name})) continue;
      refused = true;
    }
  }
  if (refused) return test.report();
  EXPECT_TRUE(verify_module(*test.module, test.diagnostics))
      << c.name << "\n"
      << test.report() << print_text(*test.module);
  std::string text = print_text(*test.module);
  TestModule again(text);
  EXPECT_TRUE(again.module) << c.name << ": output does not read back\n" << again.report() << text;
  if (!again.module) return text;
  EXPECT_EQ(print_text(*again.module), text) << c.name;
  return text;
}

void write_cases(const std::string& path, const std::vector<Case>& cases,
                 const std::string& header) {
  std::ofstream file(path);
  file << header;
  bool first = true;
  for (const Case& c : cases) {
    if (!first) file << "\n";
    first = false;
    file << "// CASE " << c.name << "\n// RUN";
    for (const std::string& pass : c.passes) file << " " << pass;
    file << "\n" << c.input;
    if (c.error) {
      std::istringstream lines(c.expected);
      for (std::string line; std::getline(lines, line);) {
        file << "// EXPECT-ERROR " << line << "\n";
      }
    } else {
      file << "// EXPECT\n" << c.expected;
    }
  }
}

std::string header_of(const std::string& path) {
  std::ifstream file(path);
  std::string header, line;
  while (std::getline(file, line) && !line.starts_with("// CASE ")) header += line + "\n";
  return header;
}

class PassFixture : public testing::TestWithParam<PassInfo> {};

TEST_P(PassFixture, GivesTheExpectedModules) {
  const std::string path =
      std::string(LOOM_PASS_FIXTURES) + "/" + std::string(GetParam().name) + ".loom";
  std::vector<Case> cases = read_cases(path);
  ASSERT_FALSE(cases.empty()) << path << " is missing: every pass has its cases";
  const bool update = std::getenv("LOOM_UPDATE") != nullptr;
  for (Case& c : cases) {
    SCOPED_TRACE(c.name);
    bool refused = false;
    const std::string got = run_case(c, refused);
    if (update) {
      c.expected = got;
      c.error = refused;
      continue;
    }
    EXPECT_EQ(refused, c.error) << got;
    EXPECT_EQ(got, c.expected) << c.name;
  }
  if (update) write_cases(path, cases, header_of(path));
}

// A fold without a case is a fold that nothing shows to work.
TEST(FoldCoverage, EveryFoldFiresInTheCases) {
  clear_folds();
  for (const PassInfo& pass : all_passes()) {
    const auto path = std::string(LOOM_PASS_FIXTURES) + "/" + std::string(pass.name) + ".loom";
    for (const Case& c : read_cases(path)) {
      bool refused = false;
      run_case(c, refused);
    }
  }
  for (const FoldUse& fold : all_folds()) {
    EXPECT_TRUE(fold.fired) << "no case in tests/pass makes '" << fold.name << "' fire";
  }
  EXPECT_FALSE(all_folds().empty());
}

INSTANTIATE_TEST_SUITE_P(Passes, PassFixture,
                         testing::ValuesIn(all_passes().begin(), all_passes().end()),
                         [](const auto& each) {
                           std::string name(each.param.name);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace loom
