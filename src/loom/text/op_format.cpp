#include "loom/text/op_format.h"

#include <bit>
#include <cstring>

#include "loom/base/check.h"
#include "loom/dialect/encoding_info.h"

namespace loom {
namespace {

TokenKind literal_token(std::string_view text) {
  static constexpr std::pair<std::string_view, TokenKind> kPunctuation[] = {
      {"(", TokenKind::LeftParen},    {")", TokenKind::RightParen}, {"[", TokenKind::LeftBracket},
      {"]", TokenKind::RightBracket}, {"{", TokenKind::LeftBrace},  {"}", TokenKind::RightBrace},
      {"<", TokenKind::Less},         {">", TokenKind::Greater},    {"=", TokenKind::Equal},
      {":", TokenKind::Colon},        {",", TokenKind::Comma},      {"->", TokenKind::Arrow},
      {"|", TokenKind::Pipe}};
  for (const auto& [spelling, kind] : kPunctuation) {
    if (spelling == text) return kind;
  }
  return TokenKind::Word;
}

void add_modifiers(OpFormat& format, const FormatStep& step) {
  const auto add = [&](std::string_view word) {
    if (format.modifiers.ends_with(word)) return;  // a clause that is also a plain word
    if (!format.modifiers.empty()) format.modifiers += ' ';
    format.modifiers += word;
  };
  if (step.kind == FormatKind::Word) {
    const AttrSpec& spec = format.info->attrs[static_cast<size_t>(step.a)];
    add(spec.form == AttrForm::Enum ? enum_info(spec.enum_id).cases_text : spec.name);
  } else if (step.kind == FormatKind::Clause || step.kind == FormatKind::OperandClause ||
             step.kind == FormatKind::RangeClause) {
    add(step.text);
  }
}

OpFormat prepare(const OpInfo& info) {
  OpFormat format;
  format.info = &info;
  for (const FormatElement& element : info.format) {
    FormatStep step{element.kind, TokenKind::Error, element.a,
                    element.b,    element.end,      element.text};
    if (step.kind == FormatKind::Literal) step.token = literal_token(step.text);
    format.function_like |= step.kind == FormatKind::ResultSig;
    format.steps.push_back(step);
    add_modifiers(format, step);
  }
  for (const RegionSpec& spec : info.regions) {
    format.definition |= !spec.signature && !spec.optional;
  }
  for (const OperandSpec& spec : info.operands) {
    format.fixed_operands += spec.arity == Arity::Single ? 1 : 0;
  }
  return format;
}

uint64_t hash_name(std::string_view name) {
  uint64_t head = 0, tail = 0;
  if (name.size() >= 8) {
    std::memcpy(&head, name.data(), 8);
    std::memcpy(&tail, name.data() + name.size() - 8, 8);
  } else {
    std::memcpy(&head, name.data(), name.size());
  }
  uint64_t hash = (head ^ std::rotl(tail, 29) ^ name.size()) * 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 32);
}

// Open addressing; the names are fixed when the program starts.
class FormatTable {
 public:
  FormatTable() : slots_(std::bit_ceil(kOpKindCount * 4)) {
    formats_.reserve(kOpKindCount);
    for (size_t i = 0; i < kOpKindCount; ++i) {
      formats_.push_back(prepare(op_info(static_cast<OpKind>(i))));
      size_t slot = hash_name(formats_.back().info->name) & (slots_.size() - 1);
      while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = static_cast<uint16_t>(i + 1);
    }
  }
  const OpFormat* find(std::string_view name) const {
    for (size_t slot = hash_name(name) & (slots_.size() - 1); slots_[slot] != 0;
         slot = (slot + 1) & (slots_.size() - 1)) {
      const OpFormat& format = formats_[slots_[slot] - 1u];
      if (format.info->name == name) return &format;
    }
    return nullptr;
  }
  const OpFormat& at(OpKind kind) const { return formats_[static_cast<size_t>(kind)]; }

 private:
  std::vector<OpFormat> formats_;
  std::vector<uint16_t> slots_;
};

const FormatTable& table() {
  static const FormatTable instance;
  return instance;
}

struct OlderName {
  std::string_view name;
  OpKind kind;
};
constexpr OlderName kOlderNames[] = {{"func.template", OpKind::TemplateDef},
                                     {"func.ukernel", OpKind::TemplateUkernel},
                                     {"func.apply", OpKind::TemplateApply},
                                     {"func.provider.decl", OpKind::TemplateDecl},
                                     {"kernel.launch.serial", OpKind::CommandSerial},
                                     {"kernel.launch.concurrent", OpKind::CommandConcurrent},
                                     {"kernel.launch.yield", OpKind::CommandYield}};

}  // namespace

const OpFormat& op_format(OpKind kind) { return table().at(kind); }
const OpFormat* find_op_format(std::string_view name) { return table().find(name); }
const OpFormat* find_older_op_format(std::string_view name) {
  for (const OlderName& older : kOlderNames) {
    if (older.name == name) return &op_format(older.kind);
  }
  return nullptr;
}

std::string_view encoding_family(std::string_view name) {
  if (name.starts_with("target.")) return name;  // conditions are written like encodings
  const EncodingFamilyInfo* const family = find_encoding_family(name);
  return family == nullptr ? std::string_view() : family->name;
}

}  // namespace loom
