// What encodings mean: families with their roles and parameters, storage records, and where the
// elements of a view with an attached encoding lie.
//
// Families and parameters are tables in encoding_info.cpp. An attribute `#family<...>` is an
// AttrKind::Encoding; the parser only stores families of these tables, bytecode may hold any.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/ir/module.h"

namespace loom {

enum class EncodingRole : uint8_t { Layout, Schema, Storage, Transform };
// "layout", ...
std::string_view role_name(EncodingRole role);
// The type of an encoding value with the role.
TypeKind role_type(EncodingRole role);
// The role that a type states; nothing for the plain `encoding` and for any other type.
std::optional<EncodingRole> role_of(TypeKind kind);
bool is_encoding_type(TypeKind kind);

enum class EncodingFamily : uint8_t {
  Dense,
  Strided,
  Storage,
  Operand,
  Hadamard,
  GgmlQ4_0,
  GgmlQ8_0,
  GgmlQ4K,
  GgmlQ5K,
  GgmlQ6K,
  GgmlQ8_1x4,
};

// A storage record: so many logical elements take so many bytes.
struct StorageRecord {
  uint32_t elements = 0;
  uint32_t bytes = 0;
  uint32_t align = 0;
};

struct EncodingFamilyInfo {
  EncodingFamily family;
  EncodingRole role;
  std::string_view name;    // without '#'
  std::string_view older;   // a spelling that is read for it; empty when none is
  std::string_view format;  // the numeric format that an alias of `encoding.operand` stands for
  StorageRecord record;     // zero where the family has no fixed record
};
// Null when unknown. Older spellings find the current family.
const EncodingFamilyInfo* find_encoding_family(std::string_view name);
// The current names of all families.
std::vector<std::string_view> encoding_family_names();

// What a parameter of a family holds.
enum class EncodingParameterKind : uint8_t { Integer, Integers, Word, Layout, Schema };
struct EncodingParameter {
  std::string_view name;
  EncodingParameterKind kind;
  std::string_view cases;  // of a Word, separated by spaces
  bool required = false;
};
std::span<const EncodingParameter> encoding_parameters(EncodingFamily family);

// The cases of one of the enums of encodings ("numeric format", "affine", "auxiliary key", ...),
// separated by spaces; empty when there is none of that name.
std::string_view encoding_enum(std::string_view name);

// The family of a static encoding; null when the attribute is none or its family unknown.
const EncodingFamilyInfo* encoding_family_of(const Module& module, AttrId encoding);
// A parameter of a static encoding; invalid when absent.
AttrId encoding_argument(const Module& module, AttrId encoding, std::string_view name);

// One thing that is wrong with a static encoding.
struct EncodingProblem {
  enum Kind : uint8_t { Family, Missing, Unknown, Type, WrongKind } kind;
  std::string family, parameter;
  std::string detail;           // of Type
  std::string found, expected;  // of WrongKind
};
// Checks families and parameters, nested encodings included. Parameters in `dynamic` are supplied
// by values (encoding.define) and count as present.
std::vector<EncodingProblem> check_encoding(const Module& module, AttrId encoding,
                                            std::span<const std::string_view> dynamic = {});

// Where the elements of a shaped type lie.
struct ElementLayout {
  enum Kind : uint8_t {
    Dense,    // row-major, no gaps
    Strided,  // element (i, j, ...) is at i * strides[0] + j * strides[1] + ...
    Record,   // row-major records of `record`; what is inside one is up to its family
    Unknown,  // decided at run time, or not described by an encoding of layout or storage role
  };
  Kind kind = Dense;
  std::vector<int64_t> strides;  // in elements
  StorageRecord record;
  AttrId encoding;  // the static encoding behind it; invalid when there is none

  // The place of a logical element, in elements of the type; nothing for Record, Unknown and for
  // extents that are not fixed. `dims` and `index` have the rank of the type.
  std::optional<uint64_t> position(std::span<const Dim> dims, std::span<const int64_t> index) const;
};
// Looks through an attached value to the operation that made it. `encoding.layout.strided` counts
// as Strided when its strides are constants.
ElementLayout element_layout(const Module& module, const Type& type);
// Row-major without gaps, by its layout or by strides that say the same.
bool is_dense(const Module& module, const Type& type);
// The static encoding that made a value: by encoding.layout.dense, encoding.layout.strided with
// constant strides, encoding.define without operands. An invalid id otherwise.
struct StaticEncoding {
  AttrId attr;                                  // of encoding.define
  std::optional<std::vector<int64_t>> strides;  // of encoding.layout.strided
  bool dense = false;                           // encoding.layout.dense
};
std::optional<StaticEncoding> static_encoding_of(const Module& module, ValueId value);

// Bytes from the first to behind the last element of a type whose extents and layout are static:
// product of extents times element bytes when dense, records times record bytes for records,
// nothing when not exact or out of range.
std::optional<uint64_t> footprint_bytes(const Module& module, const Type& type);

}  // namespace loom
