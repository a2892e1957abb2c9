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

// Whether the language knows an auxiliary of that name.
bool is_auxiliary(std::string_view key);
struct Auxiliaries {
  std::vector<std::string_view> required;
  std::vector<std::string_view> optional;
  bool complete = true;  // no other auxiliary is possible
};
Auxiliaries auxiliaries_of(const Module& module, const Attr& schema);

}  // namespace loom
