// Storage roots and views: layouts with strides, accesses of vectors, and what is asked about
// roots.
#include "cases.h"

namespace loom::ops {
namespace {

constexpr LoomDispatchShape kOne = {{1, 1, 1}, {1, 1, 1}};

Case simple(std::string name, const std::string& body, std::vector<Buffer> buffers,
            LoomDispatchShape shape = kOne) {
  const auto count = static_cast<unsigned>(buffers.size());
  return {std::move(name), kernel_text(count, body, shape), std::move(buffers), shape, {}};
}

Buffer counted(ScalarKind element, size_t count) {
  Buffer made = zeros(element, count);
  const size_t width = scalar_bytes(element);
  for (size_t i = 0; i < count; ++i) std::memcpy(made.bytes.data() + i * width, &i, width);
  return made;
}

// Rows and columns of a transposed view, a view with gaps, and one that repeats its row.
Case strided(std::string_view define, std::string_view layout, std::string_view element) {
  const ScalarKind kind = *scalar_from_name(element);
  return simple(
      fmt::format("views with strides, {} of {}", layout, element),
      fmt::format(
          R"(  %four = index.constant 4 : index
  %six = index.constant 6 : index
  %one = index.constant 1 : index
{0}  %w = buffer.view %b0[%base] : buffer -> view<5x4x{1}, {2}>
  %out = buffer.view %b1[%base] : buffer -> view<40x{1}>
  %m = buffer.view %b2[%base] : buffer -> view<4xi1>
  %os = buffer.view %b3[%base] : buffer -> view<4xi32>
  %mask = vector.load %m[0] : view<4xi1> -> vector<4xi1>
  %o = vector.load %os[0] : view<4xi32> -> vector<4xi32>
  %x = view.load %w[3, 2] : view<5x4x{1}, {2}> -> {1}
  view.store %x, %out[0] : {1}, view<40x{1}>
  %rows = vector.load %w[1, 0] : view<5x4x{1}, {2}> -> vector<2x3x{1}>
  %flat = vector.bitcast %rows : vector<2x3x{1}> to vector<6x{1}>
  vector.store %flat, %out[1] : vector<6x{1}>, view<40x{1}>
  %p = vector.constant 1{3} : vector<4x{1}>
  %some = vector.load.mask %w[4, 0], %mask, %p : view<5x4x{1}, {2}>, vector<4xi1>, vector<4x{1}>
  vector.store %some, %out[8] : vector<4x{1}>, view<40x{1}>
  %gathered = vector.gather %w[2, 0][%o] : view<5x4x{1}, {2}>, vector<4xi32> -> vector<4x{1}>
  vector.store %gathered, %out[12] : vector<4x{1}>, view<40x{1}>
  %part = view.subview %w[%one, 1] : view<5x4x{1}, {2}> -> view<3x2x{1}, {2}>
  %y = view.load %part[2, 1] : view<3x2x{1}, {2}> -> {1}
  view.store %y, %out[16] : {1}, view<40x{1}>
  vector.store %p, %w[0, 0] : vector<4x{1}>, view<5x4x{1}, {2}>
  vector.store.mask %gathered, %w[3, 0], %mask : vector<4x{1}>, view<5x4x{1}, {2}>, vector<4xi1>
  vector.scatter %some, %w[1, 0][%o] : vector<4x{1}>, view<5x4x{1}, {2}>, vector<4xi32>
  %ms = index.constant 2 : index
  %ns = index.constant 3 : index
  %f = vector.fragment.load<lhs> %w[1, 1] shape [%ms, %ns] : view<5x4x{1}, {2}> -> vector<6x{1}>
  vector.store %f, %out[20] : vector<6x{1}>, view<40x{1}>
  vector.fragment.store<result> %f, %w[2, 0] shape [%ms, %ns] : vector<6x{1}>, view<5x4x{1}, {2}>
)",
          define, element, layout, is_float(kind) ? ".5" : ""),
      {counted(kind, 64), zeros(kind, 40), buffer_of<uint8_t>(ScalarKind::I1, {1, 0, 1, 1}),
       buffer_of<int32_t>(ScalarKind::I32, {3, 1, 0, 2})});
}

// Every vector access of a dense view, whole and masked.
Case accesses() {
  return simple("accesses of vectors", R"(  %w = buffer.view %b0[%base] : buffer -> view<4x8xf32>
  %out = buffer.view %b1[%base] : buffer -> view<64xf32>
  %m = buffer.view %b2[%base] : buffer -> view<8xi1>
  %os = buffer.view %b3[%base] : buffer -> view<8xi32>
  %mask = vector.load %m[0] : view<8xi1> -> vector<8xi1>
  %o = vector.load %os[0] : view<8xi32> -> vector<8xi32>
  %p = vector.constant -2.0 : vector<8xf32>
  %a = vector.load.mask %w[1, 0], %mask, %p : view<4x8xf32>, vector<8xi1>, vector<8xf32>
  vector.store %a, %out[0] : vector<8xf32>, view<64xf32>
  %b = vector.gather %w[2, 0][%o] : view<4x8xf32>, vector<8xi32> -> vector<8xf32>
  vector.store.mask %b, %out[8], %mask : vector<8xf32>, view<64xf32>, vector<8xi1>
  %c = vector.gather.mask %w[0, 0][%o], %mask, %p : view<4x8xf32>, vector<8xi32>, vector<8xi1>, vector<8xf32>
  vector.scatter %c, %out[16][%o] : vector<8xf32>, view<64xf32>, vector<8xi32>
  vector.scatter.mask %a, %out[32][%o], %mask : vector<8xf32>, view<64xf32>, vector<8xi32>, vector<8xi1>
  %both = vector.load %w[1, 2] : view<4x8xf32> -> vector<2x5xf32>
  %quiet = vector.load<volatile> %w[3, 0] : view<4x8xf32> -> vector<8xf32>
  vector.store<volatile> %quiet, %out[40] : vector<8xf32>, view<64xf32>
  %line = vector.bitcast %both : vector<2x5xf32> to vector<10xf32>
  vector.store %line, %out[48] : vector<10xf32>, view<64xf32>
)",
                {special_floats(ScalarKind::F32, 32, 1), zeros(ScalarKind::F32, 64),
                 buffer_of<uint8_t>(ScalarKind::I1, {1, 0, 1, 1, 0, 0, 1, 1}),
                 buffer_of<int32_t>(ScalarKind::I32, {7, 0, 3, 2, 6, 1, 5, 4})});
}

Case roots() {
  return simple("roots", R"(  %bytes = index.constant 96 : offset
  %small = index.constant 5 : offset
  %own = buffer.alloca<private> align(32) %bytes : buffer
  %same = buffer.assume.same_root %own, %own : buffer
  %aligned = buffer.assume.alignment %same {minimum_alignment = 32} : buffer
  %private = buffer.assume.memory_space<private> %aligned : buffer
  %n = buffer.length %private
  %total, %o0, %o1, %o2 = buffer.pack [align(16) %small, align(4) %n, align(64) %small] : offset
  %x, %y = buffer.assume.noalias %b0, %b1 : buffer, buffer
  %w0 = buffer.view %x[%base] : buffer -> view<4xf32>
  %any = view.refine %w0 : view<4xf32> -> view<4xf32>
  %w1 = buffer.view %y[%base] : buffer -> view<8xi64>
  %w2 = buffer.view %private[%base] : buffer -> view<4xf32>
  view.prefetch %w0[0] {intent = read, locality = l2} : view<4xf32>
  %v = view.load %any[1] : view<4xf32> -> f32
  view.store %v, %w2[3] : f32, view<4xf32>
  %u = view.load<volatile> %w2[3] : view<4xf32> -> f32
  view.store %u, %w0[0] : f32, view<4xf32>
  %t = index.cast %total : offset to i64
  %a = index.cast %o0 : offset to i64
  %b = index.cast %o1 : offset to i64
  %c = index.cast %o2 : offset to i64
  %l = index.cast %n : offset to i64
  view.store %t, %w1[0] : i64, view<8xi64>
  view.store %a, %w1[1] : i64, view<8xi64>
  view.store %b, %w1[2] : i64, view<8xi64>
  view.store %c, %w1[3] : i64, view<8xi64>
  view.store %l, %w1[4] : i64, view<8xi64>
)",
                {special_floats(ScalarKind::F32, 4, 1), zeros(ScalarKind::I64, 8)});
}

}  // namespace

std::vector<Case> memory_cases() {
  std::vector<Case> cases = {accesses(), roots()};
  for (const std::string_view element : {"i32", "f64", "i8"}) {
    cases.push_back(strided("", "#encoding.layout.strided<strides=[1, 6]>", element));
    cases.push_back(strided("", "#encoding.layout.strided<strides=[10, 2]>", element));
    cases.push_back(
        strided("  %l = encoding.layout.strided [%four, 1] : encoding<layout>\n", "%l", element));
    cases.push_back(
        strided("  %l = encoding.layout.strided [9, %one] : encoding<layout>\n", "%l", element));
    cases.push_back(strided("  %l = encoding.layout.dense : encoding<layout>\n", "%l", element));
  }
  return cases;
}

}  // namespace loom::ops
