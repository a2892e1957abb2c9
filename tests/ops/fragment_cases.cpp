// Matrix fragments and their products.
#include "cases.h"
#include "loom/dialect/numeric.h"

namespace loom::ops {
namespace {

struct Shape {
  int blocks, m, n, k;
};
struct Elements {
  std::string_view a, b, sum, flags;
};

// From -1 to 1, which no instruction takes for zero.
Buffer small_numbers(std::string_view element, size_t count, uint64_t seed) {
  Buffer made = zeros(*scalar_from_name(element), count);
  std::mt19937_64 random(seed);
  const size_t width = scalar_bytes(made.element);
  for (size_t i = 0; i < count; ++i) {
    const double value = (static_cast<double>(random() % 513) - 256) / 256;
    const uint64_t bits = from_double(made.element, value).bits;
    std::memcpy(made.bytes.data() + i * width, &bits, width);
  }
  return made;
}

Buffer factors_of(const Elements& how, std::string_view element, size_t count, uint64_t seed) {
  if (how.flags == "<reassoc|afn>") return small_numbers(element, count, seed);
  const ScalarKind kind = *scalar_from_name(element);
  return is_float(kind) ? special_floats(kind, count, seed) : noise(kind, count, seed);
}

// The factors are loaded as fragments from a larger matrix, the sum begins with lanes that are made
// one by another operation, and the result is stored in another type where floats allow it.
Case product(const Shape& s, const Elements& e) {
  const bool in_blocks = s.blocks > 1;
  const auto view = [&](int rows, int columns, std::string_view element) {
    return in_blocks ? fmt::format("view<{}x{}x{}x{}>", s.blocks, rows + 1, columns + 2, element)
                     : fmt::format("view<{}x{}x{}>", rows + 1, columns + 2, element);
  };
  const std::string blocks = in_blocks ? "blocks(%blocks), " : "";
  const std::string origin = in_blocks ? "[0, 1, 2]" : "[1, 2]";
  const std::string out = e.sum == "f32" ? "f16" : std::string(e.sum);
  const std::string body = fmt::format(
      R"(  %blocks = index.constant {blocks} : index
  %m = index.constant {m} : index
  %n = index.constant {n} : index
  %k = index.constant {k} : index
  %w0 = buffer.view %b0[%base] : buffer -> {va}
  %w1 = buffer.view %b1[%base] : buffer -> {vb}
  %w2 = buffer.view %b2[%base] : buffer -> view<{c}x{sum}>
  %w3 = buffer.view %b3[%base] : buffer -> {vo}
  %a = vector.fragment.load<lhs> %w0{origin} shape [{in}%m, %k] : {va} -> vector<{la}x{a}>
  %b = vector.fragment.load<rhs> %w1{origin} shape [{in}%k, %n] : {vb} -> vector<{lb}x{b}>
  %lanes = vector.load %w2[0] : view<{c}x{sum}> -> vector<{c}x{sum}>
  %init = vector.fragment<init> %lanes shape [{in}%m, %n] : vector<{c}x{sum}>
  %r = vector.mma{flags} %a, %b, %init : vector<{la}x{a}>, vector<{lb}x{b}>, vector<{c}x{sum}>
  %again = vector.fragment.repack<init> %r shape [{in}%m, %n] : vector<{c}x{sum}> -> vector<{c}x{sum}>
  %twice = vector.mma{flags} %a, %b, %again : vector<{la}x{a}>, vector<{lb}x{b}>, vector<{c}x{sum}>
  vector.fragment.store<result> %r, %w3{origin} shape [{in}%m, %n] : vector<{c}x{sum}>, {vo}
  vector.store %twice, %w2[0] : vector<{c}x{sum}>, view<{c}x{sum}>
)",
      fmt::arg("blocks", s.blocks), fmt::arg("m", s.m), fmt::arg("n", s.n), fmt::arg("k", s.k),
      fmt::arg("in", blocks), fmt::arg("origin", origin), fmt::arg("va", view(s.m, s.k, e.a)),
      fmt::arg("vb", view(s.k, s.n, e.b)), fmt::arg("vo", view(s.m, s.n, out)), fmt::arg("a", e.a),
      fmt::arg("b", e.b), fmt::arg("sum", e.sum), fmt::arg("flags", e.flags),
      fmt::arg("la", s.blocks * s.m * s.k), fmt::arg("lb", s.blocks * s.k * s.n),
      fmt::arg("c", s.blocks * s.m * s.n));
  const auto room = [&](int rows, int columns) {
    return static_cast<size_t>(s.blocks) * static_cast<size_t>(rows + 1) *
           static_cast<size_t>(columns + 2);
  };
  const auto lanes =
      static_cast<size_t>(s.blocks) * static_cast<size_t>(s.m) * static_cast<size_t>(s.n);
  return {fmt::format("{} blocks of {}x{}x{}, {} by {} into {}{}", s.blocks, s.m, s.n, s.k, e.a,
                      e.b, e.sum, e.flags),
          kernel_text(4, body),
          {factors_of(e, e.a, room(s.m, s.k), 1), factors_of(e, e.b, room(s.k, s.n), 2),
           factors_of(e, e.sum, lanes, 3), zeros(*scalar_from_name(out), room(s.m, s.n))},
          {{1, 1, 1}, {1, 1, 1}},
          {e.flags == "<reassoc|afn>" ? 1e-3 : 0}};
}

// A loop carries the sum, so its facts come through an argument.
Case carried() {
  const std::string body = R"(  %m = index.constant 4 : index
  %n = index.constant 8 : index
  %k = index.constant 2 : index
  %zero = index.constant 0 : index
  %end = index.constant 6 : index
  %w0 = buffer.view %b0[%base] : buffer -> view<4x6xf32>
  %w1 = buffer.view %b1[%base] : buffer -> view<6x8xf32>
  %w2 = buffer.view %b2[%base] : buffer -> view<4x8xf32>
  %zeros = vector.constant 0.0 : vector<4x8xf32>
  %sum = scf.for %p = [%zero to %end step %k](%acc = %zeros : vector<4x8xf32>) -> (vector<4x8xf32>) {
    %a = vector.fragment.load<lhs> %w0[0, %p] shape [%m, %k] : view<4x6xf32> -> vector<4x2xf32>
    %b = vector.fragment.load<rhs> %w1[%p, 0] shape [%k, %n] : view<6x8xf32> -> vector<2x8xf32>
    %next = vector.mma %a, %b, %acc : vector<4x2xf32>, vector<2x8xf32>, vector<4x8xf32>
    scf.yield %next : vector<4x8xf32>
  }
  vector.store %sum, %w2[0, 0] : vector<4x8xf32>, view<4x8xf32>
)";
  return {"a sum that a loop carries",
          kernel_text(3, body),
          {special_floats(ScalarKind::F32, 24, 1), special_floats(ScalarKind::F32, 48, 2),
           zeros(ScalarKind::F32, 32)},
          {{1, 1, 1}, {1, 1, 1}},
          {}};
}

}  // namespace

std::vector<Case> fragment_cases() {
  std::vector<Case> cases;
  const std::vector<Elements> elements = {{"f32", "f32", "f32", ""},
                                          {"f64", "f64", "f64", ""},
                                          {"f16", "f16", "f32", ""},
                                          {"bf16", "bf16", "f32", ""},
                                          {"bf16", "bf16", "f32", "<reassoc|afn>"},
                                          {"f16", "f16", "f32", "<reassoc|afn>"},
                                          {"bf16", "bf16", "bf16", ""},
                                          {"f16", "bf16", "f16", ""},
                                          {"f8E4M3", "f8E5M2", "f32", ""},
                                          {"i8", "i8", "i32", ""},
                                          {"i8", "i8", "i32", "<saturate>"},
                                          {"i16", "i16", "i16", ""},
                                          {"i16", "i8", "i16", "<saturate>"},
                                          {"i64", "i64", "i64", ""},
                                          {"i64", "i64", "i64", "<saturate>"}};
  for (const Elements& e : elements) {
    for (const Shape& s :
         {Shape{1, 4, 8, 4}, Shape{1, 3, 5, 7}, Shape{2, 2, 3, 4}, Shape{1, 1, 1, 6}}) {
      cases.push_back(product(s, e));
    }
  }
  cases.push_back(carried());
  return cases;
}

}  // namespace loom::ops
