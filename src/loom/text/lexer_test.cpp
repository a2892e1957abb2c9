#include "loom/text/lexer.h"

#include <gtest/gtest.h>

namespace loom {
namespace {

struct Lexed {
  std::vector<Token> tokens;
  std::vector<Trivia> trivia;
};

Lexed lex(std::string_view text) {
  Diagnostics diagnostics;
  Lexer lexer(text, FileId(0u), diagnostics);
  Lexed lexed;
  do {
    lexed.tokens.push_back(lexer.next());
  } while (lexed.tokens.back().kind != TokenKind::End);
  lexed.trivia = lexer.trivia;
  EXPECT_FALSE(diagnostics.has_errors());
  return lexed;
}

TEST(Lexer, TokensCarryOneBasedPlaces) {
  const auto tokens = lex("%a = x.y\n  @s.t#d.e ->-1 \"q\\\"\"").tokens;
  ASSERT_EQ(tokens.size(), 9u);
  EXPECT_EQ(tokens[0].kind, TokenKind::Value);
  EXPECT_EQ(tokens[2].kind, TokenKind::OpName);
  EXPECT_EQ(tokens[2].column, 6u);
  EXPECT_EQ(tokens[3].text(), "@s.t");
  EXPECT_EQ(tokens[3].line, 2u);
  EXPECT_EQ(tokens[3].column, 3u);
  EXPECT_TRUE(tokens[3].first_on_line);
  EXPECT_FALSE(tokens[4].first_on_line);
  EXPECT_EQ(tokens[4].name(), "d.e");
  EXPECT_EQ(tokens[5].kind, TokenKind::Arrow);
  EXPECT_EQ(tokens[6].text(), "-1");
  EXPECT_EQ(tokens[7].text(), "\"q\\\"\"");
}

TEST(Lexer, NumbersKeepTheirSpelling) {
  const auto tokens = lex("12 0x1F -3 2.5 1.0e-5 1e3 -inf 12ab").tokens;
  const TokenKind kinds[] = {TokenKind::Integer, TokenKind::Integer, TokenKind::Integer,
                             TokenKind::Float,   TokenKind::Float,   TokenKind::Float,
                             TokenKind::Float,   TokenKind::Integer, TokenKind::End};
  ASSERT_EQ(tokens.size(), std::size(kinds));
  for (size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(tokens[i].kind, kinds[i]) << i;
}

TEST(Lexer, CommentsAndBlankLinesAreKeptAside) {
  const auto trivia = lex("a // one  \r\n\n\n//two\nb").trivia;
  ASSERT_EQ(trivia.size(), 3u);
  EXPECT_EQ(trivia[0].comment, " one");
  EXPECT_EQ(trivia[0].line, 1u);
  EXPECT_TRUE(trivia[1].blank);
  EXPECT_EQ(trivia[2].comment, "two");
}

TEST(Lexer, FindsTheFirstInvalidByte) {
  EXPECT_EQ(find_invalid_utf8("plain text, longer than a word"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("\u00e9\u20ac\U0001f600"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("0123456789\xff"), 10u);
  EXPECT_EQ(find_invalid_utf8("\xc0\x80"), 0u);          // over-long
  EXPECT_EQ(find_invalid_utf8("a\xed\xa0\x80"), 1u);     // surrogate
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0u);  // past the last character
  EXPECT_EQ(find_invalid_utf8("ab\xe2\x82"), 2u);        // cut off
}

TEST(Lexer, DecodesJsonEscapes) {
  std::string out, detail;
  size_t offset = 0;
  ASSERT_TRUE(decode_string(R"("a\"\\\/\b\f\n\r\t\u0041\u20ac\ud83d\ude00")", out, detail, offset));
  EXPECT_EQ(out, "a\"\\/\b\f\n\r\tA\u20ac\U0001f600");
  const std::pair<std::string_view, size_t> bad[] = {{R"("ab\q")", 3},         {R"("\u12")", 1},
                                                     {R"("a\udc00")", 2},      {R"("\ud800x")", 1},
                                                     {R"("\ud800\u0041")", 1}, {"\"a\tb\"", 2}};
  for (const auto& [token, place] : bad) {
    out.clear();
    EXPECT_FALSE(decode_string(token, out, detail, offset)) << token;
    EXPECT_EQ(offset, place) << token;
  }
}

}  // namespace
}  // namespace loom
