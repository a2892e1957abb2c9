// Attribute values that nest: lists, dictionaries and static encodings.
#include <algorithm>
#include <utility>

#include "loom/base/suggest.h"
#include "loom/dialect/encoding_info.h"
#include "loom/text/parser_impl.h"

namespace loom {

bool Parser::deep_enough(unsigned depth) {
  if (depth < kMaxAttrDepth) return true;
  return error(Diag::ParseDictTooDeep, token_, {{"limit", std::to_string(kMaxAttrDepth)}});
}

// Any value of a dictionary entry, list entry or encoding parameter.
bool Parser::parse_value(AttrId& out, unsigned depth) {
  StringId text;
  switch (token_.kind) {
    case TokenKind::String:
      if (!parse_string(text)) return false;
      out = module_.attrs.intern(Attr::string(text));
      return true;
    case TokenKind::Symbol:
      out = module_.attrs.intern(Attr::symbol(module_.strings.intern(token_.name())));
      advance();
      return true;
    case TokenKind::Hash:
      return parse_encoding(out, depth);
    case TokenKind::LeftBrace:
      return parse_dict(out, depth);
    case TokenKind::LeftBracket:
      return parse_value_list(out, depth);
    case TokenKind::Integer:
    case TokenKind::Float:
      return parse_literal_value(out);
    case TokenKind::Word:
    case TokenKind::OpName:
      break;
    default:
      return expected_error("an attribute value");
  }
  const std::string_view word = token_.text();
  if (word == "true" || word == "false" || word == "inf" || word == "nan") {
    return parse_literal_value(out);
  }
  if (scalar_from_name(word) || word == "buffer" || word == "encoding" || lexer_.peek() == '<') {
    TypeId type;
    if (!parse_type(type)) return false;
    out = module_.attrs.intern(Attr::type(type));
    return true;
  }
  if (word == "bytes" && lexer_.peek() == '(') return parse_bytes(out);
  out = module_.attrs.intern(Attr::word(module_.strings.intern(word)));
  advance();
  return true;
}

// `bytes("hex")`
bool Parser::parse_bytes(AttrId& out) {
  advance();
  advance();
  const Token digits = token_;
  StringId text;
  if (!parse_string(text)) return false;
  const std::string_view hex = module_.strings.text(text);
  if (hex.size() % 2 != 0 ||
      hex.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) {
    return error(
        Diag::ParseExpected, digits,
        {{"expected", "pairs of hexadecimal digits"}, {"found", std::string(digits.text())}});
  }
  out = module_.attrs.intern({.kind = AttrKind::Bytes, .bits = text.index()});
  return need(TokenKind::RightParen, "')'");
}

// Lists of integers and of symbols have a form of their own.
AttrId Parser::list_attr(std::span<const DictEntry> entries) {
  const auto all = [&](AttrKind kind) {
    return !entries.empty() && std::ranges::all_of(entries, [&](const DictEntry& entry) {
      const Attr& attr = module_.attrs[entry.value];
      return attr.kind == kind && attr.value() != kDynamicIndex;
    });
  };
  Attr list{.kind = AttrKind::List};
  if (all(AttrKind::Integer)) list.kind = AttrKind::IntList;
  if (all(AttrKind::Symbol)) list.kind = AttrKind::SymbolList;
  if (list.kind == AttrKind::List) {
    list.entries = entries;
    return module_.attrs.intern(list);
  }
  ints_.clear();
  for (const DictEntry& entry : entries) ints_.push_back(module_.attrs[entry.value].value());
  list.ints = ints_;
  return module_.attrs.intern(list);
}

bool Parser::parse_value_list(AttrId& out, unsigned depth) {
  if (!deep_enough(depth)) return false;
  const Token open = token_;
  advance();
  std::vector<DictEntry> entries;
  if (!at(TokenKind::RightBracket)) {
    do {
      entries.emplace_back();
      if (!parse_value(entries.back().value, depth + 1)) return false;
    } while (take(TokenKind::Comma));
  }
  out = list_attr(entries);
  last_list_ = open;
  return need(TokenKind::RightBracket, "']'");
}

// Reports the second of two equal keys.
bool Parser::check_keys(std::vector<KeyedEntry> entries, Diag duplicate) {
  std::ranges::sort(entries, {}, [](const KeyedEntry& e) {
    return std::pair(e.entry.key, e.key.begin);  // in source order where keys are equal
  });
  for (size_t i = 1; i < entries.size(); ++i) {
    const KeyedEntry& later = entries[i];
    if (later.entry.key != entries[i - 1].entry.key) continue;
    return error(duplicate, later.key, {{"key", std::string(later.key.text())}});
  }
  return true;
}

bool Parser::parse_dict(AttrId& out, unsigned depth) {
  if (!deep_enough(depth)) return false;
  if (!take_open_brace()) return expected_error("'{'");
  std::vector<KeyedEntry> entries;
  if (!at(TokenKind::RightBrace)) {
    do {
      KeyedEntry entry;
      entry.key = token_;
      if (!at(TokenKind::Word) && !at(TokenKind::OpName)) return expected_error("a key");
      entry.entry.key = module_.strings.intern(token_.text());
      advance();
      if (!need(TokenKind::Equal, "'='")) return false;
      if (!parse_value(entry.entry.value, depth + 1)) return false;
      entries.push_back(entry);
    } while (take(TokenKind::Comma));
  }
  if (!check_keys(entries, Diag::ParseDuplicateKey)) return false;
  std::vector<DictEntry> sorted;
  for (const KeyedEntry& entry : entries) sorted.push_back(entry.entry);
  std::ranges::sort(sorted, {}, [&](const DictEntry& e) { return module_.strings.text(e.key); });
  Attr dict{.kind = AttrKind::Dict};
  dict.entries = sorted;
  out = module_.attrs.intern(dict);
  return need_close_brace();
}

std::string Parser::suggest_encoding(std::string_view name) const {
  Suggestion suggestion(name);
  for (const std::string_view family : encoding_family_names()) suggestion.consider(family);
  for (size_t i = 0; i < module_.strings.size(); ++i) {
    if (aliases_.contains(static_cast<uint32_t>(i))) {
      suggestion.consider(module_.strings.text(StringId(i)));
    }
  }
  return suggestion.best().empty() ? "" : "did you mean '#" + std::string(suggestion.best()) + "'?";
}

// `#family`, `#family<k=v, ...>`, `#family<v>` or an alias
bool Parser::parse_encoding(AttrId& out, unsigned depth) {
  if (!deep_enough(depth)) return false;
  const Token name = token_;
  const std::string_view family = encoding_family(name.name());
  if (family.empty()) {
    const StringId id = module_.strings.find(name.name());
    const auto alias = aliases_.find(id.index());
    if (!id.valid() || alias == aliases_.end()) {
      return error(Diag::ParseUnknownEncoding, name,
                   {{"name", std::string(name.text())}, {"repair", suggest_encoding(name.name())}});
    }
    out = alias->second;
    advance();
    return true;
  }
  advance();
  std::vector<KeyedEntry> entries;
  if (at(TokenKind::Less)) {
    const Token open = token_;
    advance();
    do {
      if (!parse_encoding_parameter(entries, depth)) return false;
    } while (take(TokenKind::Comma));
    if (!take(TokenKind::Greater)) return error(Diag::ParseUnterminatedAngle, open);
    if (!check_keys(entries, Diag::ParseDuplicateEncodingParameter)) return false;
  }
  std::vector<DictEntry> parameters;
  for (const KeyedEntry& entry : entries) parameters.push_back(entry.entry);
  Attr encoding{.kind = AttrKind::Encoding, .bits = module_.strings.intern(family).index()};
  encoding.entries = parameters;
  out = module_.attrs.intern(encoding);
  return true;
}

bool Parser::parse_encoding_parameter(std::vector<KeyedEntry>& entries, unsigned depth) {
  KeyedEntry entry;
  entry.key = token_;
  if (at(TokenKind::Word) && lexer_.peek() == '=') {
    entry.entry.key = module_.strings.intern(token_.text());
    advance();
    advance();
  }
  if (!entry.entry.key.valid()) entry.entry.key = module_.strings.intern("");
  if (at(TokenKind::Value)) return error(Diag::ParseValueInEncoding, token_);
  if (at(TokenKind::Word) && scalar_from_name(token_.text())) {
    // Numeric formats share names with scalar types; parameters hold formats.
    entry.entry.value = module_.attrs.intern(Attr::word(module_.strings.intern(token_.text())));
    advance();
  } else if (!parse_value(entry.entry.value, depth + 1)) {
    return false;
  }
  entries.push_back(entry);
  return true;
}

}  // namespace loom
