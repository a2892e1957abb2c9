// Cuts source text into tokens. Comments and blank lines between tokens are kept aside for the
// parser, which knows what they belong to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loom/diag/diagnostic.h"

namespace loom {

enum class TokenKind : uint8_t {
  End,
  Error,  // already reported
  Integer,
  Float,
  String,
  Value,   // %name
  Symbol,  // @name
  Hash,    // #name
  Block,   // ^name
  Word,    // identifier
  OpName,  // identifier with dots
  LeftParen,
  RightParen,
  LeftBrace,
  RightBrace,
  LeftBracket,
  RightBracket,
  Less,
  Greater,
  Equal,
  Colon,
  Comma,
  Arrow,
  Pipe,
};

// Points into the source text.
struct Token {
  const char* begin = nullptr;
  uint32_t size = 0;  // bytes, sigil and quotes included
  uint32_t line = 1;
  uint32_t column = 1;
  TokenKind kind = TokenKind::End;
  bool first_on_line = false;

  std::string_view text() const { return {begin, size}; }
  // Without the sigil.
  std::string_view name() const { return {begin + 1, size - 1}; }
  const char* end() const { return begin + size; }
};

// A comment, or a run of blank lines, between two tokens.
struct Trivia {
  std::string_view comment;  // the text after `//`, trailing spaces stripped
  const char* after;         // end of the token before it
  uint32_t line;
  bool blank;
};

class Lexer {
 public:
  // `text` must be valid UTF-8, end with a NUL behind its last byte, and outlive the lexer.
  Lexer(std::string_view text, FileId file, Diagnostics& diagnostics);

  // Written in place: copying a token that was just written stalls on its narrow stores.
  void next(Token& token);
  Token next() {
    Token token;
    next(token);
    return token;
  }
  // Comments and blank lines in front of the tokens read so far, until the reader clears them.
  std::vector<Trivia> trivia;

  // --- for the extents of shaped types, where `x` separates ---
  // The next character after blanks and comments, without taking it; NUL at the end.
  char peek();
  void skip(size_t count) { at_ += count; }
  // Decimal digits at the place; empty when there are none.
  std::string_view take_digits();
  // Where peek() stands, as an empty token.
  Token place() const;

  // The text from `token` on is `%a, %b =`: the start of an operation with results.
  static bool starts_results(const Token& token);

 private:
  void skip_blanks();
  void take_comment(const char* after);
  void finish(Token& token, TokenKind kind, const char* begin) const;
  void lex_number(Token& token, const char* begin);
  void lex_string(Token& token, const char* begin);
  void lex_sigil(Token& token, TokenKind kind, const char* begin);
  void lex_word(Token& token, const char* begin);
  void unexpected(Token& token, const char* begin);
  void error(Token& token, Diag id, const char* begin, size_t size, std::vector<DiagParam> params);
  Location location(const char* begin, size_t size) const;

  const char* at_;
  const char* const end_;
  const char* line_begin_;
  const char* last_end_;  // of the last token
  uint32_t line_ = 1;
  bool first_on_line_ = true;
  FileId file_;
  Diagnostics& diagnostics_;
};

// Offset of the first byte that is not part of valid UTF-8; npos when all of it is.
size_t find_invalid_utf8(std::string_view text);

// Decodes the text of a String token (with its quotes). On a bad escape returns false and says what
// is wrong and at which byte of the token.
bool decode_string(std::string_view token, std::string& out, std::string& detail, size_t& offset);

}  // namespace loom
