// Types. A type is interned per module: equal types have equal ids. A dynamic extent names the SSA
// value it comes from, so two dynamic types are equal only when they bind the same values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "loom/base/check.h"
#include "loom/base/hash.h"
#include "loom/base/id.h"
#include "loom/base/intern_table.h"

namespace loom {

using TypeId = Id<struct TypeTag>;
using ValueId = Id<struct ValueTag>;
using AttrId = Id<struct AttrTag>;

enum class ScalarKind : uint8_t {
#define LOOM_SCALAR(name, text, bits, family) name,
#define LOOM_OPAQUE(name, text)
#define LOOM_SHAPED(name, text, encoding, align)
#include "loom/ir/types.def"
};
enum class ScalarFamily : uint8_t { Address, Integer, Float };

enum class TypeKind : uint8_t {
  Scalar,
#define LOOM_SCALAR(name, text, bits, family)
#define LOOM_OPAQUE(name, text) name,
#define LOOM_SHAPED(name, text, encoding, align) name,
#include "loom/ir/types.def"
};

inline constexpr size_t kScalarCount = 13;

std::string_view scalar_name(ScalarKind kind);
std::optional<ScalarKind> scalar_from_name(std::string_view text);
unsigned scalar_bits(ScalarKind kind);
// Bytes of one element in storage; i1 takes one byte, index and offset take eight.
unsigned scalar_bytes(ScalarKind kind);
ScalarFamily scalar_family(ScalarKind kind);
inline bool is_float(ScalarKind k) { return scalar_family(k) == ScalarFamily::Float; }
inline bool is_integer(ScalarKind k) { return scalar_family(k) == ScalarFamily::Integer; }
inline bool is_address(ScalarKind k) { return scalar_family(k) == ScalarFamily::Address; }

// "buffer", "view", ...; for Scalar the word "scalar".
std::string_view type_kind_name(TypeKind kind);
bool is_shaped(TypeKind kind);
bool allows_encoding(TypeKind kind);
bool allows_align(TypeKind kind);

// One extent: a non-negative number or an SSA value.
class Dim {
 public:
  static Dim fixed(int64_t extent) { return Dim(extent); }
  static Dim dynamic(ValueId value) { return Dim(-1 - static_cast<int64_t>(value.index())); }
  bool is_dynamic() const { return raw_ < 0; }
  int64_t extent() const { return raw_; }
  ValueId value() const { return ValueId(static_cast<uint32_t>(-1 - raw_)); }
  int64_t raw() const { return raw_; }
  friend bool operator==(Dim, Dim) = default;

 private:
  explicit Dim(int64_t raw) : raw_(raw) {}
  int64_t raw_;
};

// The structure behind a TypeId. `dims` points into the store and stays valid with it.
struct Type {
  TypeKind kind = TypeKind::Scalar;
  ScalarKind element = ScalarKind::Index;  // of scalars and shaped types
  std::span<const Dim> dims;               // shaped types only
  AttrId encoding;                         // static encoding attachment, if any
  ValueId encoding_value;                  // SSA encoding attachment, if any
  uint32_t align = 0;                      // align(N) of a view; 0 when absent

  bool is_scalar() const { return kind == TypeKind::Scalar; }
  size_t rank() const { return dims.size(); }
  bool has_dynamic_dims() const;
  // Mentions any SSA value, as an extent or as an encoding.
  bool mentions_values() const { return encoding_value.valid() || has_dynamic_dims(); }
};

// Interns types. The first kScalarCount ids are the scalars in enum order. Spans handed out stay
// valid for the store's life. Not thread-safe.
class TypeStore {
 public:
  TypeStore();
  TypeStore(TypeStore&&) = default;
  TypeStore& operator=(TypeStore&&) = default;

  static constexpr TypeId scalar(ScalarKind kind) { return TypeId(static_cast<uint32_t>(kind)); }
  TypeId opaque(TypeKind kind) const;
  TypeId intern(const Type& type);
  const Type& operator[](TypeId id) const { return types_[id.index()]; }
  size_t size() const { return types_.size(); }

  bool is(TypeId id, ScalarKind kind) const { return id == scalar(kind); }
  bool is_scalar(TypeId id) const { return id.index() < kScalarCount; }

 private:
  static uint32_t hash_of(const Type& type);
  static bool equal(const Type& a, const Type& b);

  std::vector<Type> types_;
  InternTable table_;
  std::vector<std::vector<Dim>> dim_storage_;
};

// Product of static extents times element bytes for a dense view; nullopt when an extent is
// dynamic, an encoding is attached, or the product overflows.
std::optional<uint64_t> dense_bytes(const Type& type);

}  // namespace loom
