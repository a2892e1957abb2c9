#include "loom/ir/type.h"

#include <algorithm>
#include <array>

namespace loom {
namespace {

struct ScalarRow {
  std::string_view text;
  unsigned bits;
  ScalarFamily family;
};
struct KindRow {
  std::string_view text;
  bool shaped;
  bool encoding;
  bool align;
};

constexpr std::array kScalars = {
#define LOOM_SCALAR(name, text, bits, family) ScalarRow{text, bits, ScalarFamily::family},
#define LOOM_OPAQUE(name, text)
#define LOOM_SHAPED(name, text, encoding, align)
#include "loom/ir/types.def"
};
static_assert(kScalars.size() == kScalarCount);

constexpr std::array kKinds = {
    KindRow{"scalar", false, false, false},
#define LOOM_SCALAR(name, text, bits, family)
#define LOOM_OPAQUE(name, text) KindRow{text, false, false, false},
#define LOOM_SHAPED(name, text, encoding, align) KindRow{text, true, encoding, align},
#include "loom/ir/types.def"
};

}  // namespace

std::string_view scalar_name(ScalarKind kind) { return kScalars[static_cast<size_t>(kind)].text; }

std::optional<ScalarKind> scalar_from_name(std::string_view text) {
  // Every name fits a word, so that a lookup is a few integer comparisons.
  constexpr auto pack = [](std::string_view name) {
    uint64_t word = 0;
    for (char c : name) word = word << 8 | static_cast<unsigned char>(c);
    return word;
  };
  static constexpr auto kNames = [pack] {
    std::array<uint64_t, kScalarCount> names{};
    for (size_t i = 0; i < kScalarCount; ++i) names[i] = pack(kScalars[i].text);
    return names;
  }();
  if (text.size() > 8) return std::nullopt;
  const uint64_t word = pack(text);
  for (size_t i = 0; i < kScalarCount; ++i) {
    if (kNames[i] == word) return static_cast<ScalarKind>(i);
  }
  return std::nullopt;
}

unsigned scalar_bits(ScalarKind kind) { return kScalars[static_cast<size_t>(kind)].bits; }
unsigned scalar_bytes(ScalarKind kind) { return (scalar_bits(kind) + 7) / 8; }
ScalarFamily scalar_family(ScalarKind kind) { return kScalars[static_cast<size_t>(kind)].family; }

std::string_view type_kind_name(TypeKind kind) { return kKinds[static_cast<size_t>(kind)].text; }
bool is_shaped(TypeKind kind) { return kKinds[static_cast<size_t>(kind)].shaped; }
bool allows_encoding(TypeKind kind) { return kKinds[static_cast<size_t>(kind)].encoding; }
bool allows_align(TypeKind kind) { return kKinds[static_cast<size_t>(kind)].align; }

bool Type::has_dynamic_dims() const {
  return std::ranges::any_of(dims, [](Dim dim) { return dim.is_dynamic(); });
}

TypeStore::TypeStore() {
  for (size_t i = 0; i < kScalarCount; ++i) {
    intern({.kind = TypeKind::Scalar, .element = static_cast<ScalarKind>(i)});
  }
  for (size_t i = 1; i < kKinds.size(); ++i) {
    if (!kKinds[i].shaped) intern({.kind = static_cast<TypeKind>(i)});
  }
}

// Opaque kinds follow the scalars in table order, as the constructor interned them.
TypeId TypeStore::opaque(TypeKind kind) const {
  LOOM_DCHECK(kind != TypeKind::Scalar && !is_shaped(kind), "not an opaque type kind");
  return TypeId(kScalarCount + static_cast<size_t>(kind) - 1);
}

uint32_t TypeStore::hash_of(const Type& type) {
  uint64_t hash = (static_cast<uint64_t>(type.kind) << 8) | static_cast<uint64_t>(type.element);
  hash = hash_combine(hash, type.encoding.index());
  hash =
      hash_combine(hash, (static_cast<uint64_t>(type.align) << 32) | type.encoding_value.index());
  for (Dim dim : type.dims) hash = hash_combine(hash, static_cast<uint64_t>(dim.raw()));
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

bool TypeStore::equal(const Type& a, const Type& b) {
  return a.kind == b.kind && a.element == b.element && a.align == b.align &&
         a.encoding == b.encoding && a.encoding_value == b.encoding_value &&
         std::ranges::equal(a.dims, b.dims);
}

TypeId TypeStore::intern(const Type& type) {
  const uint32_t hash = hash_of(type);
  const uint32_t known = table_.find(hash, [&](uint32_t row) { return equal(types_[row], type); });
  if (known != InternTable::kNone) return TypeId(known);
  Type stored = type;
  if (!type.dims.empty()) {
    dim_storage_.emplace_back(type.dims.begin(), type.dims.end());
    stored.dims = dim_storage_.back();
  }
  types_.push_back(stored);
  return TypeId(table_.add(hash));
}

std::optional<uint64_t> dense_bytes(const Type& type) {
  if (type.encoding.valid() || type.encoding_value.valid()) return std::nullopt;
  uint64_t bytes = scalar_bytes(type.element);
  for (Dim dim : type.dims) {
    if (dim.is_dynamic()) return std::nullopt;
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dim.extent()), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace loom
