#include "loom/dialect/op_info.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include "loom/base/check.h"

namespace loom {
namespace {

using enum ScalarKind;
constexpr uint32_t bit(ScalarKind kind) { return 1u << static_cast<unsigned>(kind); }
constexpr uint32_t bit(TypeKind kind) { return 1u << static_cast<unsigned>(kind); }
constexpr uint32_t kIndex = bit(Index), kOffset = bit(Offset), kI1 = bit(I1), kI8 = bit(I8),
                   kI32 = bit(I32), kI64 = bit(I64);
constexpr uint32_t kAddress = kIndex | kOffset;
constexpr uint32_t kInteger = bit(I1) | bit(I8) | bit(I16) | bit(I32) | bit(I64);
constexpr uint32_t kFloat = bit(F8E4M3) | bit(F8E5M2) | bit(F16) | bit(BF16) | bit(F32) | bit(F64);
constexpr uint32_t kF32 = bit(F32), kHalf = bit(F16) | bit(BF16);
constexpr uint32_t kAllScalars = (1u << kScalarCount) - 1;
constexpr uint32_t kBuffer = bit(TypeKind::Buffer), kView = bit(TypeKind::View),
                   kVector = bit(TypeKind::Vector), kTensor = bit(TypeKind::Tensor);
constexpr uint32_t kAsyncToken = bit(TypeKind::AsyncToken), kAsyncGroup = bit(TypeKind::AsyncGroup);
constexpr uint32_t kSchema = bit(TypeKind::EncodingSchema),
                   kStorage = bit(TypeKind::EncodingStorage);
constexpr uint32_t kEncodingLayout = bit(TypeKind::EncodingLayout);
constexpr uint32_t kEncoding = bit(TypeKind::Encoding) | kEncodingLayout | kSchema | kStorage |
                               bit(TypeKind::EncodingTransform);
constexpr uint32_t kAllKinds = ~0u;

constexpr std::array kConstraints = {
#define LOOM_CONSTRAINT(name, text, scalars, kinds) Constraint{#name, text, scalars, kinds},
#define LOOM_VECTOR_CONSTRAINT(name, text, elements) Constraint{#name, text, 0, kVector, elements},
#include "loom/dialect/constraints.def"
};

struct OpRow {
  OpKind kind;
  std::string_view name;
  Tier tier;
  Effect effect;
  uint32_t traits;
  std::string_view operands, results, attrs, regions, format, doc;
};

using namespace trait;
constexpr OpRow kRows[] = {
#define LOOM_OP(kind, text, tier, effect, traits, operands, results, attrs, regions, format, doc) \
  OpRow{OpKind::kind, text,  Tier::tier, Effect::effect, (traits), operands,                      \
        results,      attrs, regions,    format,         doc},
#include "loom/dialect/ops.def"
};
static_assert(std::size(kRows) == kOpKindCount);

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    if (const auto part = text.substr(0, end); !part.empty()) parts.push_back(part);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

// A malformed row is a mistake in the tables; it stops every program at its start.
[[noreturn]] void bad_row(const char* what) { check_failed(__FILE__, __LINE__, "op table", what); }

bool take_suffix(std::string_view& text, char c) {
  if (!text.ends_with(c)) return false;
  text.remove_suffix(1);
  return true;
}

std::pair<std::string_view, std::string_view> name_and_rest(std::string_view word) {
  const size_t colon = word.find(':');
  if (colon == std::string_view::npos) bad_row("a column entry has no ':'");
  return {word.substr(0, colon), word.substr(colon + 1)};
}

const Constraint* find_constraint(std::string_view name) {
  for (const Constraint& constraint : kConstraints) {
    if (constraint.name == name) return &constraint;
  }
  bad_row("unknown constraint");
}

OperandSpec parse_operand(std::string_view word) {
  auto [name, rest] = name_and_rest(word);
  const Arity arity = take_suffix(rest, '*')   ? Arity::Variadic
                      : take_suffix(rest, '?') ? Arity::Optional
                                               : Arity::Single;
  return {name, find_constraint(rest), arity};
}

template <class Spec>
int find_spec(const std::vector<Spec>& specs, std::string_view name) {
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

ResultSpec parse_result(std::string_view word, const std::vector<OperandSpec>& operands) {
  auto [name, rest] = name_and_rest(word);
  int same_as = -1;
  if (const size_t equal = rest.find('='); equal != std::string_view::npos) {
    same_as = find_spec(operands, rest.substr(equal + 1));
    if (same_as < 0) bad_row("a result takes its type from an unknown operand");
    rest = rest.substr(0, equal);
  }
  const Arity arity = take_suffix(rest, '*') ? Arity::Variadic : Arity::Single;
  return {name, find_constraint(rest), arity, same_as};
}

constexpr std::string_view kEnumNames[] = {
#define LOOM_ENUM(name, text, cases) #name,
#include "loom/dialect/enums.def"
};
constexpr std::string_view kFlagSetNames[] = {
#define LOOM_FLAGS(name, flags, all) #name,
#include "loom/dialect/flags.def"
};

AttrSpec parse_attr(std::string_view word) {
  auto [name, rest] = name_and_rest(word);
  AttrSpec spec{.name = name, .form = AttrForm::Unit};
  spec.optional = take_suffix(rest, '?');
  spec.in_dict = take_suffix(rest, '@');
  if (rest.starts_with("enum.")) {
    spec.form = AttrForm::Enum;
    for (size_t i = 0; i < std::size(kEnumNames); ++i) {
      if (kEnumNames[i] == rest.substr(5)) spec.enum_id = static_cast<EnumId>(i);
    }
    if (spec.enum_id == EnumId::None) bad_row("unknown enum");
    return spec;
  }
  if (rest.starts_with("flags.")) {
    spec.form = AttrForm::Flags;
    for (size_t i = 0; i < std::size(kFlagSetNames); ++i) {
      if (kFlagSetNames[i] == rest.substr(6)) spec.flags = static_cast<FlagSetId>(i);
    }
    if (spec.flags == FlagSetId::None) bad_row("unknown flag set");
    return spec;
  }
  static constexpr std::pair<std::string_view, AttrForm> kForms[] = {
      {"unit", AttrForm::Unit},         {"int", AttrForm::Integer},
      {"float", AttrForm::Float},       {"literal", AttrForm::Literal},
      {"string", AttrForm::String},     {"symbol", AttrForm::Symbol},
      {"symdef", AttrForm::SymbolDef},  {"indexlist", AttrForm::IndexList},
      {"intlist", AttrForm::IntList},   {"predicates", AttrForm::Predicates},
      {"type", AttrForm::Type},         {"dict", AttrForm::Dict},
      {"encoding", AttrForm::Encoding}, {"list", AttrForm::List},
      {"symbols", AttrForm::Symbols},   {"keys", AttrForm::Keys},
      {"name", AttrForm::Name},
  };
  for (const auto& [text, form] : kForms) {
    if (text == rest) {
      spec.form = form;
      return spec;
    }
  }
  bad_row("unknown attribute form");
}

std::optional<OpKind> row_by_name(std::string_view name) {
  for (const OpRow& row : kRows) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}

RegionSpec parse_region(std::string_view word) {
  auto [name, rest] = name_and_rest(word);
  RegionSpec spec{.name = name};
  for (std::string_view option : split(rest, ',')) {
    if (option == "isolated") {
      spec.isolated = true;
    } else if (option == "signature") {
      spec.signature = true;
    } else if (option == "repeated") {
      spec.repeated = true;
    } else if (option == "optional") {
      spec.optional = true;
    } else if (option.starts_with("implicit=") || option.starts_with("explicit=")) {
      spec.implicit = option.starts_with('i');
      spec.terminator = row_by_name(option.substr(9));
      if (!spec.terminator) bad_row("unknown terminator");
    } else {
      bad_row("unknown region option");
    }
  }
  return spec;
}

// Names inside "X(a,b)".
struct Arguments {
  std::string_view first, second, third;
};
Arguments arguments_of(std::string_view word) {
  const size_t open = word.find('(');
  const std::string_view inner = word.substr(open + 1, word.size() - open - 2);
  const size_t comma = inner.find(',');
  if (comma == std::string_view::npos) return {inner, {}, {}};
  const size_t second = inner.find(',', comma + 1);
  if (second == std::string_view::npos)
    return {inner.substr(0, comma), inner.substr(comma + 1), {}};
  return {inner.substr(0, comma), inner.substr(comma + 1, second - comma - 1),
          inner.substr(second + 1)};
}

template <class Spec>
int8_t need(const std::vector<Spec>& specs, std::string_view name) {
  const int slot = find_spec(specs, name);
  if (slot < 0) bad_row("a format names an unknown column entry");
  return static_cast<int8_t>(slot);
}

FormatElement parse_call_word(std::string_view word, const OpInfo& info) {
  const std::string_view head = word.substr(0, word.find('('));
  const auto [first, second, third] = arguments_of(word);
  using enum FormatKind;
  const auto attr_or_none = [&](std::string_view name) {
    return name.empty() ? int8_t{-1} : need(info.attrs, name);
  };
  if (head == "T") {
    if (const int slot = find_spec(info.operands, first); slot >= 0) {
      return {Types, static_cast<int8_t>(slot)};
    }
    return {ResultTypes, need(info.results, first)};
  }
  if (head == "F") return {Flags, need(info.attrs, first)};
  if (head == "P") return {Parameter, need(info.attrs, first), attr_or_none(second)};
  if (head == "C") {
    return {Clause, need(info.attrs, first), attr_or_none(second), 0, first};
  }
  if (head == "TO") {
    return {RangeClause, need(info.attrs, second), need(info.attrs, third), 0, first};
  }
  if (head == "CO") return {OperandClause, need(info.operands, second), -1, 0, first};
  if (head == "W") return {Word, need(info.attrs, first), -1, 0, first};
  if (head == "X") return {IndexList, need(info.operands, first), need(info.attrs, second)};
  if (head == "OD") return {OperandDict, need(info.operands, first), need(info.attrs, second)};
  if (head == "S") {
    return {Signature, need(info.regions, first), static_cast<int8_t>(second == "1" ? 1 : 0)};
  }
  if (head == "R") return {ResultSig, need(info.regions, first)};
  if (head == "RT") return {ResultArrow, need(info.results, first)};
  if (head == "A") return {InductionArg, need(info.regions, first), need(info.operands, second)};
  if (head == "I") return {IterArgs, need(info.regions, first), need(info.operands, second)};
  if (head == "BA") return {BodyArgs, need(info.regions, first)};
  if (head == "CS") return {Cases, need(info.regions, first), need(info.attrs, second)};
  if (head == "LR") return {LookupRows, need(info.operands, first), need(info.attrs, second)};
  if (head == "PK") return {PackList, need(info.operands, first), need(info.attrs, second)};
  if (head == "K") return {KeyArg, need(info.regions, first)};
  bad_row("unknown format word");
}

FormatElement parse_format_word(std::string_view word, const OpInfo& info) {
  using enum FormatKind;
  if (word == "~") return {Glue};
  if (word == "D") return {Dict};
  if (word.starts_with('%')) return {Operand, need(info.operands, word.substr(1))};
  if (word.starts_with('$')) return {Attr, need(info.attrs, word.substr(1))};
  if (word.starts_with('&')) return {Region, need(info.regions, word.substr(1))};
  if (word.size() > 2 && word.ends_with(')') && word.find('(') != std::string_view::npos) {
    return parse_call_word(word, info);
  }
  return {Literal, -1, -1, 0, word};
}

void parse_format(OpInfo& info) {
  std::vector<size_t> open;
  for (std::string_view word : split(info.format_text, ' ')) {
    if (word == "(?") {
      open.push_back(info.format.size());
      info.format.push_back({FormatKind::OptionalBegin});
    } else if (word == "?)") {
      if (open.empty()) bad_row("'?)' without '(?'");
      info.format[open.back()].end = static_cast<uint16_t>(info.format.size());
      open.pop_back();
      info.format.push_back({FormatKind::OptionalEnd});
    } else {
      info.format.push_back(parse_format_word(word, info));
    }
  }
  if (!open.empty()) bad_row("'(?' without '?)'");
}

OpInfo parse_row(const OpRow& row) {
  OpInfo info{.kind = row.kind,
              .name = row.name,
              .dialect = row.name.substr(0, row.name.find('.')),
              .tier = row.tier,
              .effect = row.effect,
              .traits = row.traits,
              .operands = {},
              .results = {},
              .attrs = {},
              .regions = {},
              .format = {},
              .format_text = row.format,
              .doc = row.doc,
              .has_groups = false,
              .symbol_slot = -1,
              .where_slot = -1,
              .memory_slot = -1};
  for (auto word : split(row.operands, ' ')) {
    info.operands.push_back(parse_operand(word));
    info.has_groups |= info.operands.back().arity != Arity::Single;
  }
  for (auto word : split(row.results, ' ')) {
    info.results.push_back(parse_result(word, info.operands));
  }
  for (auto word : split(row.attrs, ' ')) info.attrs.push_back(parse_attr(word));
  for (auto word : split(row.regions, ' ')) info.regions.push_back(parse_region(word));
  for (size_t i = 0; i < info.attrs.size(); ++i) {
    if (info.attrs[i].form == AttrForm::SymbolDef) info.symbol_slot = static_cast<int>(i);
    if (info.attrs[i].name == "where") info.where_slot = static_cast<int>(i);
    if (info.attrs[i].flags == FlagSetId::MemoryFlags) info.memory_slot = static_cast<int>(i);
  }
  parse_format(info);
  return info;
}

struct Tables {
  std::vector<OpInfo> ops;
  std::unordered_map<std::string_view, OpKind> by_name;
  std::vector<EnumInfo> enums;
  std::vector<FlagSetInfo> flags;
};

const Tables& tables() {
  static const Tables instance = [] {
    Tables t;
    t.ops.reserve(std::size(kRows));
    for (const OpRow& row : kRows) {
      t.ops.push_back(parse_row(row));
      t.by_name.emplace(row.name, row.kind);
    }
#define LOOM_ENUM(name, text, cases) t.enums.push_back({text, split(cases, ' '), cases});
#include "loom/dialect/enums.def"
#define LOOM_FLAGS(name, flags_text, all) \
  t.flags.push_back({split(flags_text, ' '), all, flags_text});
#include "loom/dialect/flags.def"
    return t;
  }();
  return instance;
}

}  // namespace

std::optional<TypeId> Constraint::only_type(const TypeStore& types) const {
  if (kinds == 0 && std::has_single_bit(scalars)) {
    return TypeStore::scalar(static_cast<ScalarKind>(std::countr_zero(scalars)));
  }
  if (scalars == 0 && std::has_single_bit(kinds)) {
    const auto kind = static_cast<TypeKind>(std::countr_zero(kinds));
    if (!is_shaped(kind)) return types.opaque(kind);
  }
  return std::nullopt;
}

const OpInfo& op_info(OpKind kind) { return tables().ops[static_cast<size_t>(kind)]; }

std::optional<OpKind> op_from_name(std::string_view name) {
  const auto& map = tables().by_name;
  const auto found = map.find(name);
  return found == map.end() ? std::nullopt : std::optional(found->second);
}

bool is_known_dialect(std::string_view dialect) {
  for (const OpInfo& info : tables().ops) {
    if (info.dialect == dialect) return true;
  }
  return false;
}

namespace {
constexpr std::string_view kLaterOps[] = {
#define LOOM_LATER_OP(name) name,
#define LOOM_LATER_DIALECT(name)
#include "loom/dialect/later_ops.def"
};
constexpr std::string_view kLaterDialects[] = {
#define LOOM_LATER_OP(name)
#define LOOM_LATER_DIALECT(name) name,
#include "loom/dialect/later_ops.def"
};
}  // namespace

bool is_later_op(std::string_view name) {
  return std::ranges::find(kLaterOps, name) != std::end(kLaterOps) && !op_from_name(name);
}

bool is_later_dialect(std::string_view dialect) {
  return std::ranges::find(kLaterDialects, dialect) != std::end(kLaterDialects) &&
         !is_known_dialect(dialect);
}

const EnumInfo& enum_info(EnumId id) { return tables().enums[static_cast<size_t>(id)]; }

std::optional<unsigned> EnumInfo::find(std::string_view word) const {
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases[i] == word) return static_cast<unsigned>(i);
  }
  return std::nullopt;
}

const FlagSetInfo& flag_set_info(FlagSetId id) { return tables().flags[static_cast<size_t>(id)]; }

std::optional<uint64_t> FlagSetInfo::find(std::string_view word) const {
  if (!all.empty() && word == all) return (uint64_t{1} << flags.size()) - 1;
  for (size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] == word) return uint64_t{1} << i;
  }
  return std::nullopt;
}

std::span<const ValueId> operand_group(const Module& module, OpId op, unsigned group) {
  const auto all = module.operands(op);
  const auto sizes = module.group_sizes(op);
  if (sizes.empty()) return all.subspan(group, 1);
  size_t begin = 0;
  for (unsigned i = 0; i < group; ++i) begin += sizes[i];
  return all.subspan(begin, sizes[group]);
}

StringId symbol_name(const Module& module, OpId op) {
  const int slot = op_info(module.op(op).kind).symbol_slot;
  if (slot < 0 || !module.has_attr(op, static_cast<unsigned>(slot))) return {};
  return module.attr(op, static_cast<unsigned>(slot)).string();
}

std::string_view symbol_text(const Module& module, OpId op) {
  const StringId name = symbol_name(module, op);
  return name.valid() ? module.strings.text(name) : std::string_view();
}

std::string_view symbol_ref(const Module& module, OpId op, unsigned slot) {
  return module.strings.text(module.attr(op, slot).string());
}

std::span<const Predicate> where_predicates(const Module& module, OpId op) {
  const int slot = op_info(module.op(op).kind).where_slot;
  if (slot < 0 || !module.has_attr(op, static_cast<unsigned>(slot))) return {};
  return module.attr(op, static_cast<unsigned>(slot)).predicates;
}

uint64_t flags_of(const Module& module, OpId op, unsigned slot) {
  return module.has_attr(op, slot) ? module.attr(op, slot).bits : 0;
}

bool is_volatile(const Module& module, OpId op) {
  const int slot = op_info(module.op(op).kind).memory_slot;
  return slot >= 0 && (flags_of(module, op, static_cast<unsigned>(slot)) & kVolatile) != 0;
}

std::string_view symbol_kind_text(OpKind kind) {
  const std::string_view dialect = op_info(kind).dialect;
  if (dialect == "kernel") return "kernel";
  if (dialect == "command") return "command program";
  if (dialect == "func") return "function";
  if (dialect == "config") return "configuration key";
  if (dialect == "target") return "target";
  if (kind == OpKind::CheckCase) return "check case";
  if (kind == OpKind::CheckBenchmark) return "benchmark";
  if (kind == OpKind::TemplateDecl) return "template family";
  if (dialect == "template") return "template implementation";
  return "symbol";
}

bool is_declaration(OpKind kind) {
  const OpInfo& info = op_info(kind);
  if (kind == OpKind::TargetDecl) return true;
  if (kind == OpKind::TemplateUkernel) return false;  // its target has the body
  if (!info.has(trait::Symbol) || info.regions.empty()) return false;
  for (const RegionSpec& region : info.regions) {
    if (!region.signature) return false;
  }
  return true;
}

}  // namespace loom
