// Products of matrices and attention on the interpreter, for shapes below, at and beyond tiles,
// against results in double.
#include "products.h"

#include <limits>

namespace loom {
namespace {

constexpr Shape kShapes[] = {{1, 1, 1},    {2, 33, 3},    {4, 300, 70},
                             {12, 32, 64}, {25, 65, 386}, {13, 515, 9}};

TEST(Products, MatricesOfEveryFormatMatchDoubles) {
  for (const Shape& s : kShapes) {
    const std::vector<float> a = random_numbers(s.m * s.k, 1);
    const std::vector<float> b = random_numbers(s.k * s.n, 2);
    const std::vector<double> want = product(a, b, s.m, s.n, s.k, s.n, 1);
    const auto check = [&](const std::string& type, auto left, auto right) {
      SCOPED_TRACE(type + " " + std::to_string(s.m) + " x " + std::to_string(s.n) + " x " +
                   std::to_string(s.k));
      std::vector<float> c(s.m * s.n, NAN);
      Kernel kernel("gemm" + (type == "f32" ? "" : "_" + type) + ".loom", "gemm_" + type);
      kernel.index(s.m).index(s.n).index(s.k).buffer(left).buffer(right).buffer(c);
      kernel.run({s.m, s.n, s.k});
      expect_near(c, want, 1e-5);
    };
    check("f32", a, b);
    check("f16", as_f16(a), as_f16(b));
    check("bf16", as_bf16(a), as_bf16(b));
  }
}

TEST(Products, MatricesOfBytesAreExact) {
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k));
    std::vector<int8_t> a = random_bytes(s.m * s.k, 3), b = random_bytes(s.k * s.n, 4);
    std::vector<int32_t> c(s.m * s.n, -1);
    Kernel kernel("gemm_i8.loom", "gemm_i8");
    kernel.index(s.m).index(s.n).index(s.k).buffer(a).buffer(b).buffer(c);
    kernel.run({s.m, s.n, s.k});
    for (size_t i = 0; i < s.m; ++i) {
      for (size_t j = 0; j < s.n; ++j) {
        int32_t want = 0;
        for (size_t p = 0; p < s.k; ++p) want += a[i * s.k + p] * b[p * s.n + j];
        ASSERT_EQ(c[i * s.n + j], want) << i << ", " << j;
      }
    }
  }
}

TEST(Products, WeightsInBlocksMatchDoubles) {
  for (const bool nibbles : {false, true}) {
    const std::string type = nibbles ? "q4_0" : "q8_0";
    for (const Shape& s :
         {Shape{1, 1, 32}, Shape{2, 3, 2112}, Shape{13, 33, 96}, Shape{33, 17, 416}}) {
      SCOPED_TRACE(type + " " + std::to_string(s.m) + " x " + std::to_string(s.n) + " x " +
                   std::to_string(s.k));
      std::vector<float> a = random_numbers(s.m * s.k, 1);
      Blocks w = random_blocks(s.n * s.k, nibbles, 2);
      const std::vector<double> want = product(a, w.weights, s.m, s.n, s.k, 1, s.k);
      std::vector<float> c(s.m * s.n, NAN);
      Kernel matrix("gemm_quantized.loom", "gemm_" + type);
      matrix.index(s.m).index(s.n).index(s.k).buffer(a).buffer(w.bytes).buffer(c);
      matrix.run({s.m, s.n, s.k});
      expect_near(c, want, 1e-5);
      // The first row of A as a vector.
      std::vector<float> y(s.n, NAN);
      Kernel vector("gemv_quantized.loom", "gemv_" + type);
      vector.index(s.n).index(s.k).buffer(w.bytes).buffer(a).buffer(y);
      vector.run({s.n});
      expect_near(y, {want.begin(), want.begin() + static_cast<ptrdiff_t>(s.n)}, 1e-5);
    }
  }
}

TEST(Products, MatricesTimesVectorsMatchDoubles) {
  for (const Shape& s : {Shape{1, 1, 1}, Shape{1, 17, 63}, Shape{1, 33, 130}}) {
    SCOPED_TRACE(std::to_string(s.n) + " x " + std::to_string(s.k));
    std::vector<float> x = random_numbers(s.k, 1);
    std::vector<float> w = random_numbers(s.n * s.k, 2);
    const std::vector<double> want = product(x, w, 1, s.n, s.k, 1, s.k);
    std::vector<float> y(s.n, NAN);
    Kernel("gemv.loom", "gemv_f32").index(s.n).index(s.k).buffer(w).buffer(x).buffer(y).run({s.n});
    expect_near(y, want, 1e-5);
    std::vector<uint16_t> halves = as_bf16(w);
    std::fill(y.begin(), y.end(), NAN);
    Kernel("gemv.loom", "gemv_bf16")
        .index(s.n)
        .index(s.k)
        .buffer(halves)
        .buffer(x)
        .buffer(y)
        .run({s.n});
    expect_near(y, want, 1e-5);
  }
}

// What one query makes of `end` keys and values of `dim` numbers each.
std::vector<double> attend(std::span<const float> q, std::span<const float> k,
                           std::span<const float> v, size_t end, size_t dim, double scale) {
  std::vector<double> weights(end);
  double most = -std::numeric_limits<double>::infinity();
  for (size_t j = 0; j < end; ++j) {
    for (size_t d = 0; d < dim; ++d) weights[j] += double{q[d]} * double{k[j * dim + d]};
    weights[j] *= scale;
    most = std::max(most, weights[j]);
  }
  double total = 0;
  for (double& weight : weights) {
    weight = std::exp(weight - most);
    total += weight;
  }
  std::vector<double> out(dim);
  for (size_t j = 0; j < end; ++j) {
    for (size_t d = 0; d < dim; ++d) out[d] += weights[j] / total * double{v[j * dim + d]};
  }
  return out;
}

TEST(Attention, ManyQueriesMatchDoubles) {
  constexpr size_t kHeads = 4, kShared = 2;
  for (const auto& [queries, keys, dim] : {Shape{1, 1, 1}, {3, 65, 16}, {65, 130, 6}}) {
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(std::to_string(queries) + " queries, " + std::to_string(keys) + " keys" +
                   (causal ? ", causal" : ""));
      std::vector<float> q = random_numbers(kHeads * queries * dim, 1);
      std::vector<float> k = random_numbers(kHeads / kShared * keys * dim, 2);
      std::vector<float> v = random_numbers(kHeads / kShared * keys * dim, 3);
      // Scores that f32 cannot take the exponential of.
      for (float& value : q) value *= 20;
      std::vector<float> o(q.size(), NAN);
      Kernel kernel("attention.loom", "attention_f32");
      kernel.index(kHeads).index(kHeads / kShared).index(queries).index(keys).index(dim);
      kernel.index(causal ? 1 : 0).number(0.5f).buffer(q).buffer(k).buffer(v).buffer(o);
      kernel.run({kHeads, queries});
      for (size_t h = 0; h < kHeads; ++h) {
        const size_t shared = h / kShared * keys * dim;
        for (size_t i = 0; i < queries; ++i) {
          const size_t row = (h * queries + i) * dim;
          const size_t end = causal ? i + keys - queries + 1 : keys;
          const std::vector<double> want =
              attend(std::span(q).subspan(row), std::span(k).subspan(shared),
                     std::span(v).subspan(shared), end, dim, 0.5);
          expect_near({o.begin() + static_cast<ptrdiff_t>(row), o.end()}, want, 1e-4);
        }
      }
    }
  }
}

TEST(Attention, OneQueryOverACacheMatchesDoubles) {
  constexpr size_t kHeads = 6, kShared = 3, kCapacity = 140;
  for (const auto& [length, dim] : {std::pair<size_t, size_t>{1, 1}, {64, 64}, {131, 70}}) {
    SCOPED_TRACE(std::to_string(length) + " keys of " + std::to_string(dim));
    std::vector<float> q = random_numbers(kHeads * dim, 1);
    std::vector<float> k = random_numbers(kHeads / kShared * kCapacity * dim, 2);
    std::vector<float> v = random_numbers(kHeads / kShared * kCapacity * dim, 3);
    std::vector<float> o(q.size(), NAN);
    Kernel kernel("attention_decode.loom", "attention_decode_f32");
    kernel.index(kHeads).index(kHeads / kShared).index(length).index(kCapacity).index(dim);
    kernel.number(0.25f).buffer(q).buffer(k).buffer(v).buffer(o);
    kernel.run({kHeads / kShared});
    for (size_t h = 0; h < kHeads; ++h) {
      const size_t shared = h / kShared * kCapacity * dim;
      const std::vector<double> want =
          attend(std::span(q).subspan(h * dim), std::span(k).subspan(shared),
                 std::span(v).subspan(shared), length, dim, 0.25);
      expect_near({o.begin() + static_cast<ptrdiff_t>(h * dim), o.end()}, want, 1e-4);
    }
  }
}

}  // namespace
}  // namespace loom
