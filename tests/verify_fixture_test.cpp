// Runs tests/fixtures/verify/*.loom: Loom text with the errors that the verifier must report, no
// more and no fewer.
//
//   // ERROR@+N: DOMAIN/NNN "fragment"   expects that code N lines below, its message or hint
//                                       holding the fragment
//   // ====                              separates cases; a case without annotations must verify
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "loom/base/file.h"
#include "loom/dialect/verify.h"
#include "loom/text/parser.h"

namespace loom {
namespace {

struct Expected {
  uint32_t line;
  std::string code, fragment;
};
struct Case {
  std::string name, text;
  std::vector<Expected> expected;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::vector<Case> cases_of(const std::filesystem::path& path) {
  static const std::regex kAnnotation(R"re(\s*// ERROR@\+(\d+): ([A-Z]+/\d{3}) "(.*)"\s*)re");
  const auto text = read_file(path.string());
  if (!text) return {};
  std::vector<Case> cases = {{path.stem().string() + ".0", "", {}}};
  uint32_t line = 0;
  for (const std::string& content : lines_of(*text)) {
    if (content == "// ====") {
      cases.push_back({path.stem().string() + "." + std::to_string(cases.size()), "", {}});
      line = 0;
      continue;
    }
    cases.back().text += content + "\n";
    ++line;
    std::smatch match;
    if (std::regex_match(content, match, kAnnotation)) {
      cases.back().expected.push_back(
          {line + static_cast<uint32_t>(std::stoul(match[1])), match[2], match[3]});
    } else if (content.find("ERROR@") != std::string::npos) {
      ADD_FAILURE() << path << ": malformed annotation: " << content;
    }
  }
  return cases;
}

std::vector<std::filesystem::path> fixtures() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(LOOM_VERIFY_FIXTURES)) {
    if (entry.path().extension() == ".loom") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

std::vector<Diagnostic> diagnose(const Case& test) {
  SourceFiles files;
  Diagnostics diagnostics(100);
  std::optional<Module> module =
      parse_text(files, files.add_text(test.name, test.text), diagnostics);
  const bool valid = module && verify_module(*module, diagnostics);
  EXPECT_EQ(valid, !diagnostics.has_errors()) << test.name;
  return diagnostics.all();
}

void run_case(const Case& test) {
  std::vector<Expected> missing = test.expected;
  for (const Diagnostic& found : diagnose(test)) {
    const std::string code = diag_code(found.id);
    const std::string text = found.message() + " [" + found.hint() + "]";
    const auto match = std::ranges::find_if(missing, [&](const Expected& e) {
      return e.line == found.location.line && e.code == code &&
             text.find(e.fragment) != std::string::npos;
    });
    if (match == missing.end()) {
      ADD_FAILURE() << test.name << ":" << found.location.line << ": unexpected " << code << " "
                    << text;
    } else {
      missing.erase(match);
    }
  }
  for (const Expected& e : missing) {
    ADD_FAILURE() << test.name << ":" << e.line << ": expected " << e.code << " \"" << e.fragment
                  << "\"";
  }
}

TEST(VerifyFixtures, EveryCaseReportsExactlyItsAnnotations) {
  ASSERT_FALSE(fixtures().empty());
  for (const auto& path : fixtures()) {
    for (const Case& test : cases_of(path)) run_case(test);
  }
}

// Rows that text cannot reach; verify_test.cpp builds the modules that do.
constexpr Diag kOnlyFromBytecode[] = {
    Diag::StructureOperandCount,  Diag::StructureResultCount, Diag::StructureRegionCount,
    Diag::StructureUnknownOpKind, Diag::StructureEnumRange,   Diag::StructurePredicateArity,
    Diag::DominanceUndefined,
};
// Rows of these domains that other phases report and test.
constexpr Diag kReportedElsewhere[] = {
    Diag::TypeContract,
    Diag::TypeResultContract,
    Diag::SymbolUnresolvedProgram,
    Diag::SymbolUnresolvedDeclaration,
};

TEST(VerifyFixtures, CoverEveryRowOfTheirDomains) {
  std::set<Diag> covered(std::begin(kOnlyFromBytecode), std::end(kOnlyFromBytecode));
  covered.insert(std::begin(kReportedElsewhere), std::end(kReportedElsewhere));
  for (const auto& path : fixtures()) {
    for (const Case& test : cases_of(path)) {
      for (const Diagnostic& found : diagnose(test)) covered.insert(found.id);
    }
  }
  const std::set<std::string_view> domains = {"TYPE",  "STRUCTURE", "SYMBOL",
                                              "SHAPE", "SUBRANGE",  "DOMINANCE"};
  for (size_t i = 0; i < diag_count(); ++i) {
    const auto id = static_cast<Diag>(i);
    if (!domains.contains(diag_info(id).domain)) continue;
    EXPECT_TRUE(covered.contains(id)) << diag_info(id).name << " has no fixture";
  }
}

}  // namespace
}  // namespace loom
