#include <charconv>

#include "loom/base/suggest.h"
#include "loom/text/parser_impl.h"

namespace loom {
namespace {

std::optional<TypeKind> kind_from_name(std::string_view name) {
  static constexpr TypeKind kKinds[] = {
#define LOOM_SCALAR(name, text, bits, family)
#define LOOM_OPAQUE(name, text) TypeKind::name,
#define LOOM_SHAPED(name, text, encoding, align) TypeKind::name,
#include "loom/ir/types.def"
  };
  for (TypeKind kind : kKinds) {
    if (type_kind_name(kind) == name) return kind;
  }
  return std::nullopt;
}

std::string suggest_element(std::string_view name) {
  Suggestion suggestion(name);
#define LOOM_SCALAR(kind, text, bits, family) suggestion.consider(text);
#define LOOM_OPAQUE(kind, text)
#define LOOM_SHAPED(kind, text, encoding, align)
#include "loom/ir/types.def"
  return suggestion.hint();
}

std::string suggest_type(std::string_view name) {
  Suggestion suggestion(name);
  suggestion.consider("encoding");
#define LOOM_SCALAR(kind, text, bits, family) suggestion.consider(text);
#define LOOM_OPAQUE(kind, text) suggestion.consider(text);
#define LOOM_SHAPED(kind, text, encoding, align) suggestion.consider(text);
#include "loom/ir/types.def"
  return suggestion.hint();
}

}  // namespace

bool Parser::type_starts() const {
  return at(TokenKind::Word) || at(TokenKind::OpName) || at(TokenKind::LeftParen);
}

bool Parser::parse_type(TypeId& out) {
  if (!at(TokenKind::Word) && !at(TokenKind::OpName)) return expected_error("a type");
  const std::string_view name = token_.text();
  if (const auto scalar = scalar_from_name(name)) {
    out = TypeStore::scalar(*scalar);
    advance();
    return true;
  }
  if (name == "encoding") return parse_encoding_type(out);
  const auto kind = kind_from_name(name);
  if (!kind) {
    return error(Diag::ParseUnknownType, token_,
                 {{"name", std::string(name)}, {"repair", suggest_type(name)}});
  }
  if (is_shaped(*kind)) return parse_shaped(*kind, out);
  out = module_.types.opaque(*kind);
  advance();
  return true;
}

// `encoding` or `encoding<role>`
bool Parser::parse_encoding_type(TypeId& out) {
  advance();
  out = module_.types.opaque(TypeKind::Encoding);
  if (!at(TokenKind::Less)) return true;
  const Token open = token_;
  advance();
  const auto kind = kind_from_name("encoding<" + std::string(token_.text()) + ">");
  if (!at(TokenKind::Word) || !kind) {
    return error(Diag::ParseUnknownType, token_,
                 {{"name", "encoding<" + std::string(token_.text()) + ">"},
                  {"repair", suggest(token_.text(), "layout schema storage transform")}});
  }
  out = module_.types.opaque(*kind);
  advance();
  return take(TokenKind::Greater) || error(Diag::ParseUnterminatedAngle, open);
}

// The value that an extent or attachment names. A signature may mention it before binding it.
bool Parser::type_value(const Token& name, ValueId& out) {
  const StringId id = module_.strings.intern(name.name());
  out = names_in_scope_.find(id);
  if (out.valid()) return out != poison_;
  if (!current_.scope_open) {
    error(Diag::ParseUndefinedValue, name,
          {{"name", std::string(name.text())}, {"repair", suggest_value(name.name())}});
    names_in_scope_.bind(id, poison());
    return false;
  }
  out = module_.create_value(TypeStore::scalar(ScalarKind::Index), id);
  module_.value(out).owner = kUnbound;
  names_in_scope_.bind(id, out);
  pending_.push_back({out, name});
  return true;
}

// The token is the kind; the lexer stands behind it. `x` separates the extents, so they are read
// from the characters.
bool Parser::parse_shaped(TypeKind kind, TypeId& out) {
  const Token name = token_;
  const auto malformed = [&](const Token& place, std::string_view detail) {
    return error(Diag::ParseMalformedType, place, {{"detail", std::string(detail)}});
  };
  if (lexer_.peek() != '<') {
    return malformed(name, "a shaped type needs '<', extents and an element type");
  }
  lexer_.skip(1);
  Type type{.kind = kind};
  dims_.clear();
  if (!parse_dims(dims_)) return false;
  advance();
  if (at(TokenKind::End)) return error(Diag::ParseUnterminatedAngle, name);
  const auto element = at(TokenKind::Word) ? scalar_from_name(token_.text()) : std::nullopt;
  if (!element) {
    if (at(TokenKind::Word)) {
      return error(
          Diag::ParseUnknownType, token_,
          {{"name", std::string(token_.text())}, {"repair", suggest_element(token_.text())}});
    }
    return malformed(token_, "an element type is missing");
  }
  type.element = *element;
  advance();
  if (!parse_attachments(type)) return false;
  if (!at(TokenKind::Greater)) return error(Diag::ParseUnterminatedAngle, name);
  type.dims = dims_;
  out = module_.types.intern(type);
  advance();
  return true;
}

// `4x[%m]x`: extents, each with its separator, up to the element type.
bool Parser::parse_dims(std::vector<Dim>& dims) {
  const auto malformed = [&](const Token& place, std::string_view detail) {
    return error(Diag::ParseMalformedType, place, {{"detail", std::string(detail)}});
  };
  for (;;) {
    const char c = lexer_.peek();
    Token place = lexer_.place();
    if (c >= '0' && c <= '9') {
      const std::string_view digits = lexer_.take_digits();
      int64_t extent = 0;
      const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), extent);
      if (bad != std::errc()) {
        place.size = static_cast<uint32_t>(digits.size());
        return malformed(place, "the extent is out of range");
      }
      dims.push_back(Dim::fixed(extent));
    } else if (c == '[') {
      lexer_.skip(1);
      const Token name = lexer_.next();
      ValueId value;
      if (name.kind != TokenKind::Value) {
        return malformed(name, "'[' must be followed by the value of the extent");
      }
      if (!type_value(name, value)) return false;
      if (lexer_.peek() != ']') return malformed(lexer_.place(), "']' is missing after the extent");
      lexer_.skip(1);
      dims.push_back(Dim::dynamic(value));
    } else if (c == '-') {
      return malformed(place, "an extent cannot be negative");
    } else {
      return true;
    }
    if (lexer_.peek() != 'x') return malformed(lexer_.place(), "'x' is missing after an extent");
    lexer_.skip(1);
  }
}

// `, #encoding`, `, %encoding` and `, align(N)`, in this order.
bool Parser::parse_attachments(Type& type) {
  const auto malformed = [&](std::string_view detail) {
    return error(Diag::ParseMalformedType, token_, {{"detail", std::string(detail)}});
  };
  while (take(TokenKind::Comma)) {
    if (type.align != 0) return malformed("nothing can follow 'align'");
    const bool has_encoding = type.encoding.valid() || type.encoding_value.valid();
    if (at(TokenKind::Hash) || at(TokenKind::Value)) {
      if (!allows_encoding(type.kind)) return malformed("this kind of type takes no encoding");
      if (has_encoding) return malformed("a type has one encoding");
      if (at(TokenKind::Hash)) {
        if (!parse_encoding(type.encoding, 0)) return false;
      } else {
        if (!type_value(token_, type.encoding_value)) return false;
        advance();
      }
      continue;
    }
    if (!at_word("align")) return malformed("an encoding or 'align(N)' must follow the comma");
    if (!allows_align(type.kind)) return malformed("this kind of type takes no 'align'");
    advance();
    if (!need(TokenKind::LeftParen, "'('")) return false;
    int64_t align = 0;
    const Token place = token_;
    if (!parse_integer(align)) return false;
    if (align <= 0 || align > (int64_t{1} << 31) || (align & (align - 1)) != 0) {
      return error(Diag::ParseMalformedType, place,
                   {{"detail", "the alignment must be a power of two from 1 to 2147483648"}});
    }
    type.align = static_cast<uint32_t>(align);
    if (!need(TokenKind::RightParen, "')'")) return false;
  }
  return true;
}

}  // namespace loom
