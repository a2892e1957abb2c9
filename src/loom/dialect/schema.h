// Numeric schemas that are compile-time facts: their formats and which auxiliaries they take.
//
// Pure functions; safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "loom/ir/module.h"

namespace loom {

// How one code of a numeric format reads.
struct NumericFormat {
  enum class Kind : uint8_t {
    Unsigned,
    Signed,
    Ieee,        // infinities and NaNs at the greatest exponent
    Finite,      // no special values
    FiniteNan,   // NaN at all ones only
    NegZeroNan,  // NaN at the code of negative zero only
    Scale,       // a power of two without sign; all ones is NaN
  };
  std::string_view name;
  Kind kind;
  uint8_t bits;
  uint8_t mantissa;
  int16_t bias;
};
// Null when the format has no codes of its own, as with a codebook index.
const NumericFormat* numeric_format(std::string_view name);
// The value of the low `format.bits` bits, exactly.
double decode_number(const NumericFormat& format, uint64_t code);

// The static encoding that defines the schema value; null when it is not a constant.
const Attr* constant_schema(const Module& module, ValueId schema);
std::string_view schema_family(const Module& module, const Attr& schema);
// "ggml.q4_0" and its like: complete records rather than a payload with auxiliaries.
bool is_record_family(std::string_view family);
// The word or text of parameter `name`; empty when absent.
std::string_view schema_word(const Module& module, const Attr& schema, std::string_view name);
std::optional<int64_t> schema_integer(const Module& module, const Attr& schema,
                                      std::string_view name);

// How the codes of a payload follow each other.
enum class CodePacking : uint8_t {
  Lanes,       // one in the low bits of each lane
  Stream,      // a little-endian bit stream
  BigNibbles,  // a stream whose bytes have the earlier nibble on top
  Other,
};
// What an operand schema says.
struct OperandSchema {
  const NumericFormat* format = nullptr;
  CodePacking packing = CodePacking::Lanes;
  std::string_view affine;  // "none" where it says nothing
  size_t group = 0;         // elements that share one scale; 0: by the counts

  // It alone decides which number each code is.
  bool settled() const {
    return format != nullptr && packing != CodePacking::Other &&
           !(packing == CodePacking::BigNibbles && format->bits != 4);
  }
};
OperandSchema read_operand_schema(const Module& module, const Attr& schema);
// How many neighbours of `count` elements one of `lanes` auxiliary lanes serves; 0 when they do not
// serve all.
size_t auxiliary_run(size_t lanes, size_t group, size_t count);
// The scalar type that stores the codes of a float format.
std::optional<ScalarKind> stored_as(const NumericFormat& format);

// Whether the language knows an auxiliary of that name.
bool is_auxiliary(std::string_view key);
struct Auxiliaries {
  std::vector<std::string_view> required;
  std::vector<std::string_view> optional;
  bool complete = true;  // no other auxiliary is possible
};
Auxiliaries auxiliaries_of(const Module& module, const Attr& schema);

}  // namespace loom
