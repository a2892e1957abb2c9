#include "loom/diag/render.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace loom {
namespace {

class Render : public testing::Test {
 protected:
  Diagnostic redefined(Location location) const {
    return {Diag::ParseRedefinedValue, Severity::Error, location, {{"name", "%a"}}, {}};
  }
  // The excerpt and caret lines of a diagnostic on line 1 of `text`.
  std::string excerpt(const std::string& text, uint32_t column, uint32_t length) {
    const FileId file = files_.add_text("a.loom", text);
    const std::string all = render_text(redefined({file, 1, column, length}), files_);
    const size_t begin = all.find('\n') + 1;
    const size_t hint = all.find("  hint: ");
    return all.substr(begin, hint - begin);
  }

  SourceFiles files_;
};

TEST_F(Render, TextHasPlaceCodeMessageExcerptHintAndNotes) {
  const FileId file = files_.add_text("a.loom", "%a = x\n%a = y\n");
  Diagnostic diagnostic = redefined({file, 2, 1, 2});
  diagnostic.notes.push_back({{file, 1, 1, 2}, "first defined here"});
  EXPECT_EQ(render_text(diagnostic, files_),
            "a.loom:2:1: error[PARSE/002]: value '%a' is defined twice in this scope\n"
            "  %a = y\n"
            "  ^~\n"
            "  hint: give one of the two another name\n"
            "a.loom:1:1: note: first defined here\n"
            "  %a = x\n"
            "  ^~\n");
}

TEST_F(Render, PlaceIsLeftOutWhenThereIsNone) {
  EXPECT_EQ(render_text(redefined({}), files_),
            "error[PARSE/002]: value '%a' is defined twice in this scope\n"
            "  hint: give one of the two another name\n");
  const FileId file = files_.add_text("a.loom", "text");
  EXPECT_TRUE(render_text(redefined({file, 0, 0, 0}), files_).starts_with("a.loom: error["));
}

TEST_F(Render, StandardInputHasAName) {
  const FileId file = files_.add_text("-", "%a\n");
  EXPECT_TRUE(render_text(redefined({file, 1, 1, 2}), files_).starts_with("<stdin>:1:1: error["));
}

TEST_F(Render, EmptyHintLeavesNoHintLine) {
  const Diagnostic diagnostic{
      Diag::ParseExpected, Severity::Error, {}, {{"expected", "')'"}, {"found", "','"}}, {}};
  EXPECT_EQ(render_text(diagnostic, files_), "error[PARSE/003]: expected ')' but found ','\n");
  EXPECT_EQ(nlohmann::json::parse(render_json(diagnostic, files_)).count("hint"), 0u);
}

TEST_F(Render, TabsBeforeTheCaretStayTabs) {
  EXPECT_EQ(excerpt("\tx\t%a = y\n", 4, 2), "  \tx\t%a = y\n  \t \t^~\n");
}

TEST_F(Render, CharactersOfSeveralBytesTakeOneColumnBeforeAndUnderTheCaret) {
  // ä is two bytes and € three: the caret stands at byte column 7, character column 4.
  EXPECT_EQ(excerpt("ä€ %a\n", 7, 2), "  ä€ %a\n     ^~\n");
  EXPECT_EQ(excerpt("\"ä€\" x\n", 1, 7), "  \"ä€\" x\n  ^~~~\n");
}

TEST_F(Render, CaretMayStandJustPastTheLineAndNeverFurther) {
  EXPECT_EQ(excerpt("abc\n", 4, 1), "  abc\n     ^\n");
  EXPECT_EQ(excerpt("abc\n", 5, 1), "");
  EXPECT_EQ(excerpt("abc\n", 2, 4'000'000'000u), "  abc\n   ^~\n");
}

TEST_F(Render, LongLineIsCutToAWindowOfWholeCharactersAroundTheCaret) {
  std::string line;
  for (int i = 0; i < 500; ++i) line += "€";
  line += "%a";
  for (int i = 0; i < 500; ++i) line += "€";
  const std::string shown = excerpt(line + "\n", 1501, 2);
  EXPECT_LT(shown.size(), 400u);
  EXPECT_NE(shown.find("%a"), std::string::npos);
  // A cut inside a character would make the JSON library refuse the text.
  EXPECT_NO_THROW((void)nlohmann::json(shown).dump());
  const size_t split = shown.find('\n');
  const std::string top = shown.substr(0, split);
  size_t characters = 0;
  for (size_t i = 0; i < top.find("%a"); ++i) {
    characters += (static_cast<unsigned char>(top[i]) & 0xc0) != 0x80;
  }
  EXPECT_EQ(shown.substr(split + 1).find('^'), characters);
}

TEST_F(Render, JsonIsOneObjectOnOneLineWithEveryField) {
  const FileId file = files_.add_text("a.loom", "%a = x\n%a = y\n");
  Diagnostic diagnostic = redefined({file, 2, 1, 2});
  diagnostic.notes.push_back({{file, 1, 1, 2}, "first defined here"});
  EXPECT_EQ(render_json(diagnostic, files_),
            R"({"severity":"error","code":"PARSE/002",)"
            R"("message":"value '%a' is defined twice in this scope",)"
            R"("file":"a.loom","line":2,"column":1,"length":2,"params":{"name":"%a"},)"
            R"("hint":"give one of the two another name",)"
            R"("notes":[{"file":"a.loom","line":1,"column":1,"length":2,)"
            R"("text":"first defined here"}]})"
            "\n");
}

TEST_F(Render, JsonStaysValidWhenUserTextIsNotUtf8) {
  Diagnostic diagnostic = redefined({});
  diagnostic.params[0].value = "%\xff\n\"";
  const std::string line = render_json(diagnostic, files_);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto object = nlohmann::json::parse(line);
  EXPECT_EQ(object["params"]["name"], "%\xef\xbf\xbd\n\"");
}

}  // namespace
}  // namespace loom
