// What each kind of operation holds and how it is written: the tables, parsed once.
//
// Parser, printer, verifier and bytecode all read OpInfo; none has code for a single operation.
// The columns of a row and the format words are explained in README.md.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "loom/dialect/op_kind.h"

namespace loom {

enum class Tier : uint8_t { T1, T2, T3 };

enum class Effect : uint8_t {
  Pure,        // removable when unused, mergeable
  Hint,        // no semantic effect, but kept
  Alloc,       // a fresh identity: removable when unused, never mergeable
  Read,        // reads memory
  Write,       // writes memory
  Call,        // as its callee
  Command,     // a command of a command program
  Observable,  // anything else: barriers, asserts, convergent ops
  Nested,      // as the operations in its regions
  Structure,   // defines a symbol
};

// Trait bits.
namespace trait {
inline constexpr uint32_t None = 0;
inline constexpr uint32_t SameType = 1;          // operands and results all have one type
inline constexpr uint32_t OperandsSameType = 2;  // operands have one type
inline constexpr uint32_t Commutative = 4;
inline constexpr uint32_t Terminator = 8;
inline constexpr uint32_t Symbol = 16;       // module level only, has a `name` attribute
inline constexpr uint32_t KernelQuery = 32;  // needs a device body around it
inline constexpr uint32_t Convergent = 64;
inline constexpr uint32_t CommandRegion = 128;  // only inside a command program
inline constexpr uint32_t ModuleLevel = 256;    // module level only, without a name of its own
inline constexpr uint32_t DeviceOnly = 512;     // needs a device body around it, as queries do
inline constexpr uint32_t CheckOnly = 1024;     // only inside a check.case
}  // namespace trait

// A set of types, as bit masks over ScalarKind and TypeKind.
struct Constraint {
  std::string_view name;  // the word in the tables
  std::string_view text;  // what a diagnostic calls it
  uint32_t scalars;
  uint32_t kinds;
  uint32_t elements = ~0u;  // of shaped types

  bool accepts(const Type& type) const {
    const unsigned element = static_cast<unsigned>(type.element);
    if (type.is_scalar()) return (scalars >> element) & 1;
    return ((kinds >> static_cast<unsigned>(type.kind)) & 1) != 0 &&
           (!is_shaped(type.kind) || ((elements >> element) & 1) != 0);
  }
  // The only type that fits, when there is one without structure.
  std::optional<TypeId> only_type(const TypeStore& types) const;
};

enum class Arity : uint8_t { Single, Optional, Variadic };

struct OperandSpec {
  std::string_view name;
  const Constraint* constraint;
  Arity arity;
};
struct ResultSpec {
  std::string_view name;
  const Constraint* constraint;
  Arity arity;
  int same_as = -1;  // operand group that gives the type(s) when the text does not state them
};

enum class AttrForm : uint8_t {
  Unit,  // modifier word, spelled as the attribute's name
  Integer,
  Float,
  Literal,  // integer, float or boolean
  String,
  Symbol,     // reference
  SymbolDef,  // the symbol that the op defines
  Enum,
  Flags,
  IndexList,  // AttrKind::IntList with kDynamicIndex places
  IntList,
  Predicates,
  Type,
  Dict,
  Keys,      // AttrKind::Dict from the keys of an operand dictionary to units
  Encoding,  // `#family<...>`
  List,      // `[v, ...]` of any values; kinds of list attributes by what they hold
  Symbols,   // `[@a, @b]`
  Name,      // AttrKind::Word: a bare word that may have dots
};
struct AttrSpec {
  std::string_view name;
  AttrForm form;
  EnumId enum_id = EnumId::None;
  FlagSetId flags = FlagSetId::None;
  bool optional = false;
  bool in_dict = false;  // written inside the op's attribute dictionary
};

struct RegionSpec {
  std::string_view name;
  bool isolated = false;
  bool signature = false;  // arguments only
  bool optional = false;
  bool repeated = false;  // any number of them, also none; only the first entry of a row
  bool implicit = false;  // the terminator is left out when it carries no values
  std::optional<OpKind> terminator;
};

enum class FormatKind : uint8_t {
  Literal,        // `text`
  Glue,           // ~        no space before what follows
  Operand,        // %a       operand group `a`, comma separated where variadic
  Attr,           // $x       attribute `a` in its form
  Types,          // T(a)     type list of operand group `a`
  ResultTypes,    // T(r)     type list of result group `a`
  Flags,          // F(x)     optional `<f|g>` of attribute `a`, glued
  Parameter,      // P(x,f)   `<x>` or `<x, f|g>`, glued; `b` is the flags attribute or -1
  Clause,         // C(x,y)   `x(value)` or `x(value, y-value)`; absent with its optional attribute
  RangeClause,    // TO(w,x,y) `w(x-value to y-value)`
  OperandClause,  // CO(w,g)  `w(%a, ...)`; absent when group `a` is empty; needs `w (` to start
  Word,           // W(x)     modifier word: of a Unit its name, of an Enum its case
  Dict,           // D        `{k = v}` of the in_dict attributes; absent when empty
  OperandDict,    // OD(g,x)  `{k = %a : T, ...}`: operand group `a` in the order of its keys, Keys
                  // attribute `b`; absent when empty
  IndexList,      // X(g,x)   `[...]` glued: operand group `a`, IndexList attribute `b`
  Signature,      // S(r,n)   `(%a: T, ...)` glued: region `a`, argument group `b`
  ResultSig,      // R(r)     ` -> (T, ...)` or ` -> (%r: T, ...)`: region `a`; absent when empty
  ResultArrow,    // RT(r)    ` -> (T, ...)` of result group `a`; absent when empty
  InductionArg,  // A(r,g)   `%iv`, first argument of region `a`, with the type of operand group `b`
  IterArgs,      // I(r,g)   `(%a = %init : T, ...)` glued: further arguments of region `a`, operand
                 // group `b`; absent when empty
  KeyArg,        // K(r)     `%value: T` or `T`: the one argument of region `a`
  Region,        // &r       `{ ... }` of region `a`
  BodyArgs,      // BA(r)    `(%a: T, ...)` glued: the arguments of region `a`; absent when empty
  Cases,         // CS(r,x)  `{ case K { ... } ... default { ... } }`: repeated region `a` with keys
                 // `b`, then the region after it
  LookupRows,    // LR(g,x)  `{ K = (%a, ...), ... }`: operand group `a` row by row, with keys `b`
  PackList,      // PK(g,x)  `[align(N) %a, ...]`: operand group `a` with alignments `b`
  OptionalBegin,  // (?       `end` is the matching OptionalEnd; present when its first element
                  // after
                  //          literals and glue has content
  OptionalEnd,    // ?)
};
struct FormatElement {
  FormatKind kind;
  int8_t a = -1;
  int8_t b = -1;
  uint16_t end = 0;
  std::string_view text;
};

struct OpInfo {
  OpKind kind;
  std::string_view name;
  std::string_view dialect;
  Tier tier;
  Effect effect;
  uint32_t traits;
  std::vector<OperandSpec> operands;
  std::vector<ResultSpec> results;
  std::vector<AttrSpec> attrs;
  std::vector<RegionSpec> regions;
  std::vector<FormatElement> format;
  std::string_view format_text;
  std::string_view doc;
  bool has_groups;  // some operand group is not single: sizes are stored with the op
  int symbol_slot;  // of the SymbolDef attribute, or -1
  int where_slot;   // of the attribute named `where`, or -1
  int memory_slot;  // of the MemoryFlags attribute, or -1

  bool repeats_regions() const { return !regions.empty() && regions.front().repeated; }
  // The entry for region `index` of an operation that has `count` regions.
  const RegionSpec& region(unsigned index, unsigned count) const {
    if (!repeats_regions()) return regions[index];
    const size_t fixed = regions.size() - 1;
    return index + fixed < count ? regions[0] : regions[index + fixed + 1 - count];
  }
  bool has(uint32_t bits) const { return (traits & bits) != 0; }
};

const OpInfo& op_info(OpKind kind);
std::optional<OpKind> op_from_name(std::string_view name);
// "index" of "index.add".
bool is_known_dialect(std::string_view dialect);
// An operation of the language reference that no table has a row for.
bool is_later_op(std::string_view name);
// A dialect of the language reference without rows.
bool is_later_dialect(std::string_view dialect);

struct EnumInfo {
  std::string_view text;
  std::vector<std::string_view> cases;
  std::string_view cases_text;  // all of them, separated by spaces

  std::optional<unsigned> find(std::string_view word) const;
};
const EnumInfo& enum_info(EnumId id);

struct FlagSetInfo {
  std::vector<std::string_view> flags;  // by bit
  std::string_view all;                 // abbreviation of all, or empty
  std::string_view flags_text;

  std::optional<uint64_t> find(std::string_view word) const;
};
const FlagSetInfo& flag_set_info(FlagSetId id);

// --- slots by name, resolved at compile time: attr_slot(OpKind::KernelDef, "export") ------------
namespace detail {
struct RowText {
  std::string_view operands, results, attrs, regions;
};
inline constexpr RowText kRowTexts[] = {
#define LOOM_OP(name, text, tier, effect, traits, operands, results, attrs, regions, format, doc) \
  {operands, results, attrs, regions},
#include "loom/dialect/ops.def"
};
// Position of `name` in "a:x b:y"; a missing name does not compile.
consteval unsigned word_slot(std::string_view list, std::string_view name) {
  unsigned slot = 0;
  for (size_t i = 0; i < list.size();) {
    size_t end = list.find(' ', i);
    if (end == std::string_view::npos) end = list.size();
    const std::string_view word = list.substr(i, end - i);
    if (word.substr(0, word.find(':')) == name) return slot;
    ++slot;
    i = end + 1;
  }
  throw "no such name in the op's row";
}
}  // namespace detail

consteval unsigned attr_slot(OpKind kind, std::string_view name) {
  return detail::word_slot(detail::kRowTexts[static_cast<size_t>(kind)].attrs, name);
}
consteval unsigned operand_slot(OpKind kind, std::string_view name) {
  return detail::word_slot(detail::kRowTexts[static_cast<size_t>(kind)].operands, name);
}
consteval unsigned region_slot(OpKind kind, std::string_view name) {
  return detail::word_slot(detail::kRowTexts[static_cast<size_t>(kind)].regions, name);
}

// --- reading operations through their rows ------------------------------------------------------

// The values of operand group `group`.
std::span<const ValueId> operand_group(const Module& module, OpId op, unsigned group);
// The name that a symbol-defining op defines; invalid where it has none.
StringId symbol_name(const Module& module, OpId op);
std::string_view symbol_text(const Module& module, OpId op);
// The symbol that an op's attribute refers to, without '@'.
std::string_view symbol_ref(const Module& module, OpId op, unsigned slot);
// The predicates of the `where` attribute; empty when absent.
std::span<const Predicate> where_predicates(const Module& module, OpId op);
// Attribute of an optional flags slot; 0 when absent.
uint64_t flags_of(const Module& module, OpId op, unsigned slot);
// Whether a memory access carries the flag `volatile`.
bool is_volatile(const Module& module, OpId op);
// "kernel", "command program", "function", "configuration key": what a diagnostic calls a symbol.
std::string_view symbol_kind_text(OpKind kind);
// A declaration: a symbol without a body.
bool is_declaration(OpKind kind);

}  // namespace loom
