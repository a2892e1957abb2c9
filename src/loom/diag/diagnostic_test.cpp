#include "loom/diag/diagnostic.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "loom/base/file.h"
#include "loom/base/hash.h"

namespace loom {
namespace {

Diag nth(size_t index) { return static_cast<Diag>(index); }

// The names between braces.
std::set<std::string> placeholders(std::string_view pattern) {
  std::set<std::string> names;
  for (size_t open = pattern.find('{'); open != std::string_view::npos;
       open = pattern.find('{', open + 1)) {
    const size_t close = pattern.find('}', open);
    if (close == std::string_view::npos) break;
    names.emplace(pattern.substr(open + 1, close - open - 1));
  }
  return names;
}

TEST(DiagTable, EveryCodeIsDomainSlashThreeDigits) {
  for (size_t i = 0; i < diag_count(); ++i) {
    const DiagInfo& info = diag_info(nth(i));
    const std::string code = diag_code(nth(i));
    std::string digits = std::to_string(info.number);
    digits.insert(0, 3 - std::min<size_t>(3, digits.size()), '0');
    EXPECT_EQ(code, std::string(info.domain) + "/" + digits);
    for (const char c : info.domain) EXPECT_TRUE(std::isupper(c) || c == '_') << code;
    EXPECT_GT(info.number, 0) << code;
  }
  EXPECT_EQ(diag_code(Diag::ParseTooManyErrors), "PARSE/012");
}

// lower case start, no full stop: messages are joined to places and codes by the renderer.
TEST(DiagTable, MessagesAndHintsFollowTheHouseStyle) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < diag_count(); ++i) {
    const DiagInfo& info = diag_info(nth(i));
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    ASSERT_FALSE(info.message.empty()) << info.name;
    EXPECT_FALSE(info.message.ends_with('.')) << info.name;
    EXPECT_FALSE(info.hint.ends_with('.')) << info.name;
    const bool acronym = info.message.size() > 1 && std::isupper(info.message[1]);
    EXPECT_TRUE(acronym || !std::isupper(info.message[0])) << info.name;
  }
}

TEST(DiagTable, EveryPlaceholderIsReplacedByItsParameter) {
  for (size_t i = 0; i < diag_count(); ++i) {
    const DiagInfo& info = diag_info(nth(i));
    for (const auto& [pattern, is_hint] : {std::pair{info.message, false}, {info.hint, true}}) {
      const std::set<std::string> names = placeholders(pattern);
      Diagnostic diagnostic{nth(i), info.severity, {}, {}, {}};
      for (const std::string& name : names) {
        EXPECT_TRUE(std::isalpha(name.empty() ? '\0' : name[0])) << info.name << ": " << name;
        diagnostic.params.push_back({name, "<" + name + ">"});
      }
      const std::string text = is_hint ? diagnostic.hint() : diagnostic.message();
      for (const std::string& name : names) {
        EXPECT_NE(text.find("<" + name + ">"), std::string::npos) << info.name;
        EXPECT_EQ(text.find("{" + name + "}"), std::string::npos) << info.name;
      }
    }
  }
}

TEST(Diagnostic, HintIsEmptyWhenAllItsParametersAreEmpty) {
  for (size_t i = 0; i < diag_count(); ++i) {
    const DiagInfo& info = diag_info(nth(i));
    const Diagnostic bare{nth(i), info.severity, {}, {}, {}};
    const std::set<std::string> names = placeholders(info.hint);
    EXPECT_EQ(bare.hint(), names.empty() ? std::string(info.hint) : "") << info.name;
    Diagnostic blank = bare;
    for (const std::string& name : names) blank.params.push_back({name, ""});
    EXPECT_EQ(blank.hint(), bare.hint()) << info.name;
  }
}

TEST(Diagnostic, ParameterTextIsNotSubstitutedAgain) {
  Diagnostic diagnostic{Diag::ParseRedefinedValue, Severity::Error, {}, {{"name", "{name}"}}, {}};
  EXPECT_EQ(diagnostic.message(), "value '{name}' is defined twice in this scope");
  EXPECT_EQ(diagnostic.param("name"), "{name}");
  EXPECT_EQ(diagnostic.param("absent"), "");
}

TEST(Diagnostics, StopAtTheLimitWithOneClosingError) {
  Diagnostics diagnostics(3);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(diagnostics.stopped(), i >= 3);
    diagnostics.emit(Diag::ParseRedefinedValue, {}, {{"name", "%v" + std::to_string(i)}});
  }
  ASSERT_EQ(diagnostics.all().size(), 4u);
  EXPECT_EQ(diagnostics.all()[2].param("name"), "%v2");
  EXPECT_EQ(diagnostics.all()[3].message(), "too many errors; stopped after 3");
}

TEST(Diagnostics, NotesOfTheLastErrorBelongToItAndNotToTheClosingOne) {
  Diagnostics diagnostics(2);
  diagnostics.emit(Diag::ParseRedefinedValue, {});
  diagnostics.emit(Diag::ParseRedefinedValue, {}).notes.push_back({{}, "first defined here"});
  // Past the limit the reference still takes notes, which are dropped.
  diagnostics.emit(Diag::ParseRedefinedValue, {}).notes.push_back({{}, "dropped"});
  ASSERT_EQ(diagnostics.all().size(), 3u);
  ASSERT_EQ(diagnostics.all()[1].notes.size(), 1u);
  EXPECT_TRUE(diagnostics.all()[2].notes.empty());
}

TEST(Diagnostics, OnlyErrorsCountTowardsTheLimit) {
  Diagnostics diagnostics(2);
  for (int i = 0; i < 5; ++i) {
    diagnostics.emit_as(Severity::Warning, Diag::ParseRedefinedValue, {});
  }
  EXPECT_FALSE(diagnostics.has_errors());
  EXPECT_FALSE(diagnostics.stopped());
  EXPECT_EQ(diagnostics.all().size(), 5u);
  diagnostics.clear();
  EXPECT_TRUE(diagnostics.all().empty());
}

TEST(SourceFiles, LinesCountFromOneAndLoseTheirLineEnd) {
  SourceFiles files;
  const FileId id = files.add_text("a.loom", "one\r\ntwo\n\nlast");
  EXPECT_EQ(files.line_text(id, 1), "one");
  EXPECT_EQ(files.line_text(id, 2), "two");
  EXPECT_EQ(files.line_text(id, 3), "");
  EXPECT_EQ(files.line_text(id, 4), "last");
  EXPECT_EQ(files.line_text(id, 5), "");
  EXPECT_EQ(files.line_text(id, 0), "");
  EXPECT_EQ(files.line_text(FileId(), 1), "");
}

TEST(SourceFiles, ReferencedFileShowsItsLineOnlyIfTheFileMatches) {
  const std::string path = testing::TempDir() + "loom_source_files_test.loom";
  ASSERT_TRUE(write_file(path, "first\nsecond\n"));
  const uint64_t hash = hash_bytes("first\nsecond\n");
  SourceFiles files;
  const FileId id = files.add_reference(path, hash);
  EXPECT_EQ(files.add_reference(path, hash), id);
  EXPECT_NE(files.add_reference(path, 1), id);
  EXPECT_EQ(files.line_text(id, 2), "second");
  ASSERT_TRUE(write_file(path, "first\nchanged\n"));
  SourceFiles changed;
  EXPECT_EQ(changed.line_text(changed.add_reference(path, hash), 2), "");
  std::filesystem::remove(path);
  SourceFiles missing;
  EXPECT_EQ(missing.line_text(missing.add_reference(path, hash), 2), "");
  // What was read once is kept.
  EXPECT_EQ(files.line_text(id, 2), "second");
}

TEST(SourceFiles, FilesOnTopOfABaseKeepTheIdsOfTheBase) {
  SourceFiles base;
  const FileId below = base.add_text("below", "one\ntwo\n");
  SourceFiles over(&base);
  EXPECT_EQ(over.size(), 1u);
  const FileId own = over.add_text("own", "three\n");
  EXPECT_NE(own, below);
  EXPECT_EQ(over.file(below).path, "below");
  EXPECT_EQ(over.file(own).path, "own");
  EXPECT_EQ(over.line_text(below, 2), "two");
  EXPECT_EQ(over.line_text(own, 1), "three");
  const FileId reference = over.add_reference("elsewhere", 7);
  EXPECT_EQ(over.add_reference("elsewhere", 7), reference);
  EXPECT_EQ(over.size(), 3u);
  EXPECT_EQ(base.size(), 1u);
}

TEST(Diagnostics, ARepeatedDiagnosticIsReportedOnce) {
  Diagnostics diagnostics;
  const Location place{FileId(0u), 3, 1, 1};
  diagnostics.emit(Diag::CommandKeyLengths, place, {{"key", "w"}});
  diagnostics.emit(Diag::CommandKeyLengths, place, {{"key", "w"}});
  diagnostics.emit(Diag::CommandKeyLengths, place, {{"key", "v"}});
  diagnostics.emit(Diag::CommandKeyLengths, {FileId(0u), 4, 1, 1}, {{"key", "w"}});
  EXPECT_EQ(diagnostics.error_count(), 3u);
}

}  // namespace
}  // namespace loom
