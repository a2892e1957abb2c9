#include "loom/text/lexer.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

namespace loom {
namespace {

constexpr uint8_t kBlank = 1, kDigit = 2, kLetter = 4, kName = 8;  // kName: letter, digit, _ and $

constexpr std::array<uint8_t, 256> kClasses = [] {
  std::array<uint8_t, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[static_cast<size_t>(c)] = kDigit | kName;
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<size_t>(c)] = kLetter | kName;
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<size_t>(c)] = kLetter | kName;
  table['_'] = kLetter | kName;
  table['$'] = kName;
  table[' '] = table['\t'] = table['\r'] = kBlank;
  return table;
}();

inline bool is(char c, uint8_t classes) {
  return (kClasses[static_cast<unsigned char>(c)] & classes) != 0;
}

// End of a name; a dot belongs to it where `dots` says so and another name character follows.
inline const char* skip_name(const char* at, bool dots) {
  for (;;) {
    while (is(*at, kName)) ++at;
    if (!dots || *at != '.' || !is(at[1], kName)) return at;
    ++at;
  }
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void append_utf8(std::string& out, uint32_t code) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | (code >> 6));
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3f));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

// Bytes of the UTF-8 sequence at `at`, or 0 when it is invalid.
size_t sequence_length(const unsigned char* at, size_t left) {
  const auto continues = [&](size_t i) { return i < left && (at[i] & 0xc0) == 0x80; };
  const unsigned char c = at[0];
  if (c < 0x80) return 1;
  if (c < 0xc2) return 0;
  if (c < 0xe0) return continues(1) ? 2 : 0;
  if (c < 0xf0) {
    if (!continues(1) || !continues(2)) return 0;
    if ((c == 0xe0 && at[1] < 0xa0) || (c == 0xed && at[1] >= 0xa0)) return 0;
    return 3;
  }
  if (c > 0xf4 || !continues(1) || !continues(2) || !continues(3)) return 0;
  if ((c == 0xf0 && at[1] < 0x90) || (c == 0xf4 && at[1] >= 0x90)) return 0;
  return 4;
}

}  // namespace

size_t find_invalid_utf8(std::string_view text) {
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  size_t i = 0;
  while (i < text.size()) {
    uint64_t chunk;
    while (i + 8 <= text.size()) {
      std::memcpy(&chunk, data + i, 8);
      if ((chunk & 0x8080808080808080ull) != 0) break;
      i += 8;
    }
    if (i == text.size()) break;
    const size_t length = sequence_length(data + i, text.size() - i);
    if (length == 0) return i;
    i += length;
  }
  return std::string_view::npos;
}

bool decode_string(std::string_view token, std::string& out, std::string& detail, size_t& offset) {
  const std::string_view body = token.substr(1, token.size() - 2);
  const auto fail = [&](size_t i, std::string_view what) {
    detail = what;
    offset = i + 1;
    return false;
  };
  // Four hexadecimal digits at `i`, or -1.
  const auto unit = [&](size_t i) {
    if (i + 4 > body.size()) return -1;
    int code = 0;
    for (size_t k = i; k < i + 4; ++k) {
      const int digit = hex_digit(body[k]);
      if (digit < 0) return -1;
      code = code * 16 + digit;
    }
    return code;
  };
  for (size_t i = 0; i < body.size(); ++i) {
    if (static_cast<unsigned char>(body[i]) < 0x20) return fail(i, "control character");
    if (body[i] != '\\') {
      out += body[i];
      continue;
    }
    const size_t start = i++;
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (const size_t found = kEscapes.find(body[i]); found != std::string_view::npos) {
      out += kMeanings[found];
      continue;
    }
    if (body[i] != 'u') return fail(start, "unknown escape");
    int code = unit(i + 1);
    if (code < 0) return fail(start, "'\\u' needs four hexadecimal digits");
    i += 4;
    if (code >= 0xdc00 && code < 0xe000) return fail(start, "low surrogate without a high one");
    if (code >= 0xd800 && code < 0xdc00) {
      const int low = body.substr(i + 1, 2) == "\\u" ? unit(i + 3) : -1;
      if (low < 0xdc00 || low >= 0xe000) return fail(start, "high surrogate without a low one");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      i += 6;
    }
    append_utf8(out, static_cast<uint32_t>(code));
  }
  return true;
}

Lexer::Lexer(std::string_view text, FileId file, Diagnostics& diagnostics)
    : at_(text.data()),
      end_(text.data() + text.size()),
      line_begin_(at_),
      last_end_(at_),
      file_(file),
      diagnostics_(diagnostics) {}

Location Lexer::location(const char* begin, size_t size) const {
  return {file_, line_, static_cast<uint32_t>(begin - line_begin_) + 1,
          static_cast<uint32_t>(size)};
}

void Lexer::error(Token& token, Diag id, const char* begin, size_t size,
                  std::vector<DiagParam> params) {
  diagnostics_.emit(id, location(begin, size), std::move(params));
  at_ = begin + size;
  finish(token, TokenKind::Error, begin);
}

inline void Lexer::finish(Token& token, TokenKind kind, const char* begin) const {
  token.begin = begin;
  token.size = static_cast<uint32_t>(at_ - begin);
  token.line = line_;
  token.column = static_cast<uint32_t>(begin - line_begin_) + 1;
  token.kind = kind;
  token.first_on_line = first_on_line_;
}

void Lexer::take_comment(const char* after) {
  const char* begin = at_ + 2;
  const auto* newline =
      static_cast<const char*>(std::memchr(begin, '\n', static_cast<size_t>(end_ - begin)));
  at_ = newline == nullptr ? end_ : newline;
  const char* stop = at_;
  while (stop > begin && is(stop[-1], kBlank)) --stop;
  trivia.push_back({{begin, static_cast<size_t>(stop - begin)}, after, line_, false});
}

inline void Lexer::skip_blanks() {
  unsigned newlines = 0;
  for (;;) {
    constexpr uint64_t kEightSpaces = 0x2020202020202020ull;
    for (uint64_t chunk; end_ - at_ >= 8; at_ += 8) {  // indentation
      std::memcpy(&chunk, at_, 8);
      if (chunk != kEightSpaces) break;
    }
    while (is(*at_, kBlank)) ++at_;
    if (*at_ == '\n') {
      ++at_;
      ++line_;
      line_begin_ = at_;
      if (++newlines == 2) trivia.push_back({{}, last_end_, line_, true});
      first_on_line_ = true;
    } else if (*at_ == '/' && at_[1] == '/') {
      newlines = 0;
      take_comment(last_end_);
    } else {
      return;
    }
  }
}

char Lexer::peek() {
  skip_blanks();
  return *at_;
}

std::string_view Lexer::take_digits() {
  const char* begin = at_;
  while (is(*at_, kDigit)) ++at_;
  return {begin, static_cast<size_t>(at_ - begin)};
}

Token Lexer::place() const {
  Token token;
  finish(token, TokenKind::End, at_);
  return token;
}

bool Lexer::starts_results(const Token& token) {
  const char* at = token.end();
  const auto skip_space = [&] {
    while (is(*at, kBlank) || *at == '\n') ++at;
  };
  for (;;) {
    skip_space();
    if (*at == '=') return true;
    if (*at != ',') return false;
    ++at;
    skip_space();
    if (*at != '%') return false;
    at = skip_name(at + 1, false);
  }
}

void Lexer::lex_word(Token& token, const char* begin) {
  at_ = skip_name(begin, false);
  if (*at_ != '.' || !is(at_[1], kName)) return finish(token, TokenKind::Word, begin);
  at_ = skip_name(at_, true);
  return finish(token, TokenKind::OpName, begin);
}

void Lexer::lex_sigil(Token& token, TokenKind kind, const char* begin) {
  if (!is(begin[1], kName) || (kind == TokenKind::Hash && is(begin[1], kDigit))) {
    return error(token, Diag::ParseSigilWithoutName, begin, 1, {{"sigil", std::string(1, *begin)}});
  }
  at_ = skip_name(begin + 1, kind == TokenKind::Symbol || kind == TokenKind::Hash);
  return finish(token, kind, begin);
}

void Lexer::lex_string(Token& token, const char* begin) {
  const char* at = begin + 1;
  while (*at != '"') {
    if (*at == '\n' || at == end_) {
      return error(token, Diag::ParseUnterminatedString, begin, static_cast<size_t>(at - begin),
                   {});
    }
    if (*at == '\\' && at[1] != '\n' && at + 1 != end_) ++at;
    ++at;
  }
  at_ = at + 1;
  return finish(token, TokenKind::String, begin);
}

void Lexer::lex_number(Token& token, const char* begin) {
  const char* at = begin + (*begin == '-' ? 1 : 0);
  bool fraction = false;
  if (*at == '0' && (at[1] == 'x' || at[1] == 'X')) {
    at += 2;
  } else {
    while (is(*at, kDigit)) ++at;
    if (*at == '.') {
      fraction = true;
      ++at;
      while (is(*at, kDigit)) ++at;
    }
    const bool sign = at[0] != '\0' && (at[1] == '+' || at[1] == '-');
    if ((*at == 'e' || *at == 'E') && is(at[sign ? 2 : 1], kDigit)) {
      fraction = true;
      at += sign ? 2 : 1;
      while (is(*at, kDigit)) ++at;
    }
  }
  // Letters that follow belong to the literal, so that a malformed one is reported as a whole.
  while (is(*at, kName)) ++at;
  at_ = at;
  return finish(token, fraction ? TokenKind::Float : TokenKind::Integer, begin);
}

void Lexer::unexpected(Token& token, const char* begin) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(begin);
  if (*bytes < 0x20 || *bytes == 0x7f) {
    return error(token, Diag::ParseUnexpectedCharacter, begin, 1,
                 {{"character", fmt::format("0x{:02x}", *bytes)}});
  }
  const size_t length = sequence_length(bytes, static_cast<size_t>(end_ - begin));
  return error(token, Diag::ParseUnexpectedCharacter, begin, length,
               {{"character", fmt::format("'{}'", std::string_view(begin, length))}});
}

void Lexer::next(Token& token) {
  last_end_ = at_;
  first_on_line_ = at_ == line_begin_;
  skip_blanks();
  const char* begin = at_;
  const auto single = [&](TokenKind kind) {
    ++at_;
    finish(token, kind, begin);
  };
  switch (*begin) {
    case '%':
      return lex_sigil(token, TokenKind::Value, begin);
    case '@':
      return lex_sigil(token, TokenKind::Symbol, begin);
    case '#':
      return lex_sigil(token, TokenKind::Hash, begin);
    case '^':
      return lex_sigil(token, TokenKind::Block, begin);
    case '(':
      return single(TokenKind::LeftParen);
    case ')':
      return single(TokenKind::RightParen);
    case '{':
      return single(TokenKind::LeftBrace);
    case '}':
      return single(TokenKind::RightBrace);
    case '[':
      return single(TokenKind::LeftBracket);
    case ']':
      return single(TokenKind::RightBracket);
    case '<':
      return single(TokenKind::Less);
    case '>':
      return single(TokenKind::Greater);
    case '=':
      return single(TokenKind::Equal);
    case ':':
      return single(TokenKind::Colon);
    case ',':
      return single(TokenKind::Comma);
    case '|':
      return single(TokenKind::Pipe);
    case '"':
      return lex_string(token, begin);
    case '-':
      if (begin[1] == '>') {
        at_ += 2;
        return finish(token, TokenKind::Arrow, begin);
      }
      if (is(begin[1], kDigit)) return lex_number(token, begin);
      if (std::string_view(begin + 1, skip_name(begin + 1, false)) == "inf" ||
          std::string_view(begin + 1, skip_name(begin + 1, false)) == "nan") {
        at_ += 4;
        return finish(token, TokenKind::Float, begin);
      }
      return unexpected(token, begin);
    case '\0':
      if (begin == end_) return finish(token, TokenKind::End, begin);
      return unexpected(token, begin);
    default:
      if (is(*begin, kLetter)) return lex_word(token, begin);
      if (is(*begin, kDigit)) return lex_number(token, begin);
      return unexpected(token, begin);
  }
}

}  // namespace loom
