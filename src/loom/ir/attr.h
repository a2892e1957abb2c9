// Attributes: compile-time data of an operation, interned per module (equal values, equal ids).
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "loom/base/intern_table.h"
#include "loom/base/interner.h"
#include "loom/ir/type.h"

namespace loom {

enum class PredicateKind : uint8_t {
#define LOOM_PREDICATE(name, text, arguments, domain) name,
#include "loom/ir/predicates.def"
};
struct PredicateInfo {
  std::string_view text;
  uint8_t arguments;
  bool on_float;
};
const PredicateInfo& predicate_info(PredicateKind kind);
std::optional<PredicateKind> predicate_from_name(std::string_view text);

// A literal, or an SSA value of the construct that holds the predicate.
struct PredicateArg {
  ValueId value;
  int64_t literal = 0;

  bool is_value() const { return value.valid(); }
  static PredicateArg of(ValueId value) { return {value, 0}; }
  static PredicateArg of(int64_t literal) { return {ValueId(), literal}; }
  friend bool operator==(const PredicateArg&, const PredicateArg&) = default;
};
struct Predicate {
  PredicateKind kind = PredicateKind::Eq;
  PredicateArg args[3];

  unsigned arity() const { return predicate_info(kind).arguments; }
  friend bool operator==(const Predicate&, const Predicate&) = default;
};

enum class AttrKind : uint8_t {
  Unit,        // present or absent: a modifier word
  Bool,        // `value()` 0 or 1
  Integer,     // `value()`
  Float,       // `number()`
  String,      // `string()`
  Symbol,      // `string()` without '@'
  Word,        // `string()`: a bare identifier inside a dictionary
  Enum,        // `value()` = case number of the enum that the op's table row names
  Flags,       // `value()` = bit mask of the flag set that the op's table row names
  IntList,     // `ints`; kDynamicIndex marks a place taken by the next operand
  SymbolList,  // `ints` are StringId indices
  List,        // `entries` with invalid keys
  Type,        // `type()`
  Dict,        // `entries`, in ascending key text order
  Encoding,    // `string()` is the family, `entries` its parameters in source order; the primary
               // parameter that is written without a name has the empty one
  Predicates,  // `predicates`
  Bytes,       // `string()` holds the hexadecimal digits
};

// Marks an index-list place whose value is an operand.
inline constexpr int64_t kDynamicIndex = std::numeric_limits<int64_t>::min();

struct DictEntry {
  StringId key;
  AttrId value;
  friend bool operator==(const DictEntry&, const DictEntry&) = default;
};

// Spans point into the store that interned the attribute.
struct Attr {
  AttrKind kind = AttrKind::Unit;
  uint64_t bits = 0;
  std::span<const int64_t> ints;
  std::span<const DictEntry> entries;
  std::span<const Predicate> predicates;

  int64_t value() const { return static_cast<int64_t>(bits); }
  double number() const { return std::bit_cast<double>(bits); }
  StringId string() const { return StringId(static_cast<uint32_t>(bits)); }
  TypeId type() const { return TypeId(static_cast<uint32_t>(bits)); }

  static Attr unit() { return {}; }
  static Attr boolean(bool v) { return {.kind = AttrKind::Bool, .bits = v}; }
  static Attr integer(int64_t v) {
    return {.kind = AttrKind::Integer, .bits = static_cast<uint64_t>(v)};
  }
  static Attr floating(double v) {
    return {.kind = AttrKind::Float, .bits = std::bit_cast<uint64_t>(v)};
  }
  static Attr string(StringId s) { return {.kind = AttrKind::String, .bits = s.index()}; }
  static Attr symbol(StringId s) { return {.kind = AttrKind::Symbol, .bits = s.index()}; }
  static Attr word(StringId s) { return {.kind = AttrKind::Word, .bits = s.index()}; }
  static Attr enumeration(uint64_t c) { return {.kind = AttrKind::Enum, .bits = c}; }
  static Attr flags(uint64_t mask) { return {.kind = AttrKind::Flags, .bits = mask}; }
  static Attr type(TypeId t) { return {.kind = AttrKind::Type, .bits = t.index()}; }
  static Attr int_list(std::span<const int64_t> v) {
    return {.kind = AttrKind::IntList, .ints = v};
  }
  static Attr predicate_list(std::span<const Predicate> v) {
    return {.kind = AttrKind::Predicates, .predicates = v};
  }
};

// Interns attributes; payload spans are copied in. Not thread-safe.
class AttrStore {
 public:
  AttrStore() = default;
  AttrStore(AttrStore&&) = default;
  AttrStore& operator=(AttrStore&&) = default;

  AttrId intern(const Attr& attr);
  const Attr& operator[](AttrId id) const { return attrs_[id.index()]; }
  size_t size() const { return attrs_.size(); }

 private:
  static uint32_t hash_of(const Attr& attr);
  static bool equal(const Attr& a, const Attr& b);

  std::vector<Attr> attrs_;
  InternTable table_;
  std::vector<std::vector<int64_t>> ints_;
  std::vector<std::vector<DictEntry>> entries_;
  std::vector<std::vector<Predicate>> predicates_;
};

}  // namespace loom
