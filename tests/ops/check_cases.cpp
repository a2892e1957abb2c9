// Assertions and sanitizers: what holds changes nothing, what does not ends the kernel with a
// report.
#include "cases.h"

namespace loom::ops {
namespace {

struct Check {
  std::string text;  // about %v: i32, %f: f32, %at: index, %w: view<8xi32>
  std::vector<int32_t> holds;
  std::vector<int32_t> fails;
};

constexpr LoomDispatchShape kShape = {{2, 1, 1}, {3, 1, 1}};

std::string checking(const std::string& check) {
  return kernel_text(2,
                     fmt::format(R"(  %zero = scalar.constant 0 : i32
  %w0 = buffer.view %b0[%base] : buffer -> view<6xi32>
  %w = buffer.view %b1[%base] : buffer -> view<8xi32>
  %gaps = buffer.view %b1[%base] : buffer -> view<2x2xi32, #encoding.layout.strided<strides=[4, 1]>>
  %v = view.load %w0[%i] : view<6xi32> -> i32
  %f = scalar.bitcast %v : i32 to f32
  %at = index.cast %v : i32 to index
{}
  view.store %v, %w[%i] : i32, view<8xi32>
)",
                                 check),
                     kShape);
}

const std::vector<Check>& checks() {
  constexpr int32_t kInfinity = 0x7f800000;
  constexpr int32_t kNan = 0x7fc00000;
  static const std::vector<Check> all = {
      {"  %good = scalar.cmpi ne, %v, %zero : i32\n  kernel.assert %good \"no zeros\" : i1",
       {1, -3},
       {0}},
      {"  %good = scalar.cmpi ne, %v, %zero : i32\n  kernel.assert %good : i1", {1, -3}, {0}},
      {"  %r = sanitizer.assert.value %v [eq(%v, 5)] : i32", {5}, {4, -5}},
      {"  %r = sanitizer.assert.value %v [ne(%v, 5), lt(%v, 9)] : i32", {4, -5}, {5, 9}},
      {"  %r = sanitizer.assert.value %v [le(%v, 5)] : i32", {5, -9}, {6}},
      {"  %r = sanitizer.assert.value %v [gt(%v, -5)] : i32", {-4, 7}, {-5}},
      {"  %r = sanitizer.assert.value %v [ge(%v, -5)] : i32", {-5, 7}, {-6}},
      {"  %r = sanitizer.assert.value %v [min(%v, 3), max(%v, 7)] : i32", {3, 7}, {2, 8}},
      {"  %r = sanitizer.assert.value %v [range(%v, -2, 2)] : i32", {-2, 0, 2}, {-3, 3}},
      {"  %r = sanitizer.assert.value %v [pow2(%v)] : i32",
       {1, 64, 1 << 30},
       {0, -64, 6, INT32_MIN}},
      {"  %r = sanitizer.assert.value %v [mul(%v, 6)] : i32", {0, 12, -6}, {3, -4}},
      {"  %r, %s = sanitizer.assert.value %v, %zero [mul(%v, %zero)] : i32, i32", {0}, {3}},
      {"  %r = sanitizer.assert.value %v [mul(%v, -1)] : i32", {INT32_MIN, 7}, {}},
      {"  sanitizer.assert.op %f [not_nan(%f)] : f32", {0, kInfinity}, {kNan}},
      {"  sanitizer.assert.op %f [not_inf(%f)] : f32",
       {0, kNan},
       {kInfinity, kInfinity | INT32_MIN}},
      {"  sanitizer.assert.op %f [finite(%f)] : f32", {0, 0x7f7fffff}, {kNan, kInfinity}},
      {"  sanitizer.assert.access<write> %w[%at] {static_extents = [3]} : view<8xi32>",
       {0, 5},
       {6, -1}},
      {"  sanitizer.assert.access<read> %w[%at] {static_extents = [0]} : view<8xi32>",
       {0, 8},
       {9, -1}},
      {"  sanitizer.assert.layout %gaps : view<2x2xi32, #encoding.layout.strided<strides=[4, 1]>> "
       "-> "
       "view<2x2xi32, #encoding.layout.strided<strides=[4, 1]>>",
       {1},
       {}},
      {"  sanitizer.assert.layout %gaps : view<2x2xi32, #encoding.layout.strided<strides=[4, 1]>> "
       "-> "
       "view<2x2xi32>",
       {},
       {1}},
      {"  sanitizer.assert.layout %w : view<8xi32> -> view<8xi32>", {1}, {}},
      {"  sanitizer.assert.layout %w : view<8xi32> -> view<7xi32>", {}, {1}},
  };
  return all;
}

// All workitems have the same number but one, whose number is `one`.
std::vector<Buffer> storage(int32_t usual, int32_t one) {
  return {buffer_of<int32_t>(ScalarKind::I32, {usual, usual, usual, usual, one, usual}),
          zeros(ScalarKind::I32, 8)};
}

}  // namespace

std::vector<Case> check_cases() {
  std::vector<Case> cases;
  for (const Check& check : checks()) {
    for (const int32_t value : check.holds) {
      cases.push_back(
          {check.text, checking(check.text), storage(check.holds[0], value), kShape, {}});
    }
  }
  return cases;
}

std::vector<Case> failing_cases() {
  std::vector<Case> cases;
  for (const Check& check : checks()) {
    for (const int32_t value : check.fails) {
      const int32_t usual = check.holds.empty() ? value : check.holds[0];
      cases.push_back({fmt::format("{} of {}", check.text, value),
                       checking(check.text),
                       storage(usual, value),
                       kShape,
                       {}});
    }
  }
  return cases;
}

}  // namespace loom::ops
