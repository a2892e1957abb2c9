// Batches of products on the interpreter, with distances of their own and with shared factors,
// against results in double.
#include "products.h"

namespace loom {
namespace {

constexpr size_t kBatch = 3;

// Elements from one matrix to the next: 0 for one that all take, or more than it has.
struct Strides {
  size_t a, b, c;
};

// A batch of m x n x k; element (p, j) of B is at p * row + j * column.
struct Batch {
  Shape shape;
  Strides strides;
  size_t row, column;

  size_t a_size() const { return strides.a * (kBatch - 1) + shape.m * shape.k; }
  size_t b_size() const { return strides.b * (kBatch - 1) + shape.n * shape.k; }
  size_t c_size() const { return strides.c * (kBatch - 1) + shape.m * shape.n; }

  template <class Left, class Right, class Out>
  void run(const std::string& file, const std::string& name, Left& a, Right& b, Out& c) const {
    Kernel kernel(file, name);
    kernel.index(kBatch).index(shape.m).index(shape.n).index(shape.k);
    kernel.index(strides.a).index(strides.b).index(strides.c).buffer(a).buffer(b).buffer(c);
    kernel.run({kBatch, shape.m, shape.n, shape.k});
  }

  // Each matrix of C, and that nothing lies between them but what was there before.
  void expect(const std::vector<float>& c, const std::vector<float>& a,
              const std::vector<float>& b) const {
    const size_t size = shape.m * shape.n;
    for (size_t i = 0; i < kBatch; ++i) {
      SCOPED_TRACE("matrix " + std::to_string(i));
      const auto from = [](const std::vector<float>& all, size_t place) {
        return std::vector<float>(all.begin() + static_cast<ptrdiff_t>(place), all.end());
      };
      expect_near(from(c, strides.c * i),
                  product(from(a, strides.a * i), from(b, strides.b * i), shape.m, shape.n, shape.k,
                          row, column),
                  1e-5);
      const size_t next = std::min(strides.c * (i + 1), c.size());
      for (size_t at = strides.c * i + size; at < next; ++at) ASSERT_TRUE(std::isnan(c[at])) << at;
    }
  }
};

// With distances, with one B for all, and with one A for all.
std::vector<Strides> strides_of(const Shape& s, size_t unit) {
  const size_t a = s.m * s.k, b = s.n * s.k, c = s.m * s.n;
  return {{a + 3, b + unit, c + 7}, {a, 0, c}, {0, b, c}};
}

constexpr Shape kMatrices[] = {{1, 1, 1}, {13, 33, 7}, {5, 3, 386}};

TEST(BatchedProducts, MatricesOfEveryFormatMatchDoubles) {
  for (const Shape& s : kMatrices) {
    for (const Strides& strides : strides_of(s, 5)) {
      const Batch batch{s, strides, s.n, 1};
      const std::vector<float> a = random_numbers(batch.a_size(), 1);
      const std::vector<float> b = random_numbers(batch.b_size(), 2);
      const auto check = [&](const std::string& type, auto left, auto right) {
        SCOPED_TRACE(type + " " + std::to_string(s.m) + " x " + std::to_string(s.n) + " x " +
                     std::to_string(s.k) + ", " + std::to_string(strides.b) + " apart");
        std::vector<float> c(batch.c_size(), NAN);
        batch.run("gemm" + (type == "f32" ? "" : "_" + type) + ".loom", "gemm_batched_" + type,
                  left, right, c);
        batch.expect(c, a, b);
      };
      check("f32", a, b);
      check("f16", as_f16(a), as_f16(b));
      check("bf16", as_bf16(a), as_bf16(b));
    }
  }
}

TEST(BatchedProducts, MatricesOfBytesAreExact) {
  for (const Shape& s : kMatrices) {
    for (const Strides& strides : strides_of(s, 5)) {
      const Batch batch{s, strides, s.n, 1};
      std::vector<int8_t> a = random_bytes(batch.a_size(), 3), b = random_bytes(batch.b_size(), 4);
      std::vector<int32_t> c(batch.c_size(), -1);
      batch.run("gemm_i8.loom", "gemm_batched_i8", a, b, c);
      for (size_t z = 0; z < kBatch; ++z) {
        for (size_t i = 0; i < s.m; ++i) {
          for (size_t j = 0; j < s.n; ++j) {
            int32_t want = 0;
            for (size_t p = 0; p < s.k; ++p) {
              want += a[strides.a * z + i * s.k + p] * b[strides.b * z + p * s.n + j];
            }
            ASSERT_EQ(c[strides.c * z + i * s.n + j], want) << z << ", " << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST(BatchedProducts, WeightsInBlocksMatchDoubles) {
  for (const bool nibbles : {false, true}) {
    const std::string type = nibbles ? "q4_0" : "q8_0";
    for (const Shape& s : {Shape{1, 1, 32}, Shape{5, 17, 96}, Shape{33, 17, 32}}) {
      for (const Strides& strides : strides_of(s, 32)) {
        SCOPED_TRACE(type + " " + std::to_string(s.k) + ", " + std::to_string(strides.b));
        const Batch batch{s, strides, 1, s.k};
        std::vector<float> a = random_numbers(batch.a_size(), 1);
        Blocks w = random_blocks(batch.b_size(), nibbles, 2);
        std::vector<float> c(batch.c_size(), NAN);
        batch.run("gemm_quantized.loom", "gemm_batched_" + type, a, w.bytes, c);
        batch.expect(c, a, w.weights);
      }
    }
  }
}

}  // namespace
}  // namespace loom
