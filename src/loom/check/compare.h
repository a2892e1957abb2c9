// Compares what a sample computed with what it expects, element by element.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "loom/dialect/eval_vector.h"
#include "loom/interp/interp.h"

namespace loom::check {

// The elements of a scalar or of a tensor in row-major order. A view; it owns nothing.
class Elements {
 public:
  // `shape` is that of the type; empty for a scalar.
  Elements(const CaseValue& value, ScalarKind kind, std::vector<int64_t> shape);

  ScalarKind kind() const { return kind_; }
  uint64_t size() const { return size_; }
  ScalarValue at(uint64_t index) const;
  // "[1, 3]" of a flat index; empty for a scalar.
  std::string place(uint64_t index) const;
  const std::vector<int64_t>& shape() const { return shape_; }
  std::span<const std::byte> bytes() const;  // of a tensor

 private:
  const CaseValue& value_;
  ScalarKind kind_;
  std::vector<int64_t> shape_;
  uint64_t size_;
};

struct Tolerance {
  enum class Rule : uint8_t {
    Equal,    // by value: zeros are equal, NaN differs from everything
    Bitwise,  // by representation
    Close,    // |actual - expected| <= absolute + relative * |expected|
    Ulp,      // at most `ulps` representable values apart; NaN pairs are equal
  };
  Rule rule = Rule::Equal;
  double absolute = 0;
  double relative = 0;
  bool same_nan = false;  // Close: two NaN are close
  uint64_t ulps = 0;
};

// One element that differs.
struct Mismatch {
  uint64_t index = 0;
  ScalarValue actual;
  ScalarValue expected;
  std::optional<uint64_t> ulps;    // representable values between them; floats that are no NaN
  std::optional<double> relative;  // |actual - expected| / |expected|, where that is a number
};

struct Comparison {
  uint64_t mismatches = 0;
  uint64_t elements = 0;
  Mismatch first;
  Mismatch worst;  // farthest beyond what the rule allows; a NaN is farther than any number
};

// The two have the same type.
Comparison compare(const Elements& actual, const Elements& expected, const Tolerance& tolerance);

// How many values of the format lie between two floats that are no NaN, one of them counted; the
// two zeros are one value.
uint64_t ulp_distance(ScalarValue a, ScalarValue b);

// The indices of the `top` greatest elements, greatest first; equal ones by index, NaN last.
std::vector<uint64_t> ranking(const Elements& values, uint64_t top);

// A value as a literal; of floats the bits, too:
// "0.1 (0x3dcccccd)".
std::string value_text(ScalarValue value);
// "actual 1.5, expected 1.25: 2097152 ulp, relative 0.2"
std::string mismatch_text(const Mismatch& mismatch);

}  // namespace loom::check
