// Products of matrices and attention on the interpreter, for shapes below, at and beyond tiles,
// against results in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "loom/base/file.h"
#include "loom/diag/render.h"
#include "loom/interp/interp.h"
#include "loom/link/link.h"

namespace loom {
namespace {

std::string problems(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics.all()) out += diag_code(d.id) + " " + d.message() + "\n";
  return out;
}

// A kernel of a file of lib/ with what it uses.
class Kernel {
 public:
  Kernel(const std::string& file, const std::string& name) : name_(name) {
    std::vector<LinkInput> inputs;
    inputs.push_back(load(file));
    std::vector<LinkInput> libraries;
    libraries.push_back(load("blocks.loom"));
    libraries.push_back(load("gemm_parts.loom"));
    LinkOptions options;
    options.roots = {name};
    module_ = link(inputs, LibraryIndex(std::move(libraries)), options, diagnostics_);
  }

  Kernel& index(uint64_t value) {
    arguments_.emplace_back(scalar_argument(from_bits(ScalarKind::Index, value)));
    return *this;
  }
  Kernel& number(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    arguments_.emplace_back(scalar_argument(from_bits(ScalarKind::F32, bits)));
    return *this;
  }
  template <class T>
  Kernel& buffer(std::vector<T>& values) {
    arguments_.emplace_back(InterpStorage{"b", std::as_writable_bytes(std::span(values))});
    return *this;
  }
  void run(const std::vector<uint64_t>& workload) {
    ASSERT_TRUE(module_.has_value()) << problems(diagnostics_);
    std::vector<ScalarValue> sizes;
    for (const uint64_t size : workload) sizes.push_back(from_bits(ScalarKind::Index, size));
    Diagnostics diagnostics;
    ASSERT_TRUE(run_kernel(*module_, name_, sizes, arguments_, {}, diagnostics))
        << problems(diagnostics);
  }

 private:
  LinkInput load(const std::string& file) {
    const std::string path = std::string(LOOM_LIBRARY) + "/" + file;
    auto text = read_file(path);
    auto module = text ? load_module(files_, std::move(*text), path, diagnostics_) : std::nullopt;
    if (!module) throw std::runtime_error(path + ": " + problems(diagnostics_));
    return {std::move(*module), path};
  }

  std::string name_;
  SourceFiles files_;
  Diagnostics diagnostics_;
  std::optional<Module> module_;
  std::vector<InterpArgument> arguments_;
};

// Numbers with few bits, which every format here holds exactly.
std::vector<float> random_numbers(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> out(count);
  for (float& value : out) {
    value = static_cast<float>(static_cast<int>(random() % 127) - 63) / 32.0f;
  }
  return out;
}

std::vector<uint16_t> as_bf16(const std::vector<float>& values) {
  std::vector<uint16_t> out;
  for (const float value : values) {
    out.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
  }
  return out;
}

// Of numbers that are normal in f16, or zero.
uint16_t as_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) == 0) return static_cast<uint16_t>(bits >> 16);
  const uint32_t exponent = (bits >> 23 & 0xff) - 127 + 15;
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff));
}
std::vector<uint16_t> as_f16(const std::vector<float>& values) {
  std::vector<uint16_t> out;
  for (const float value : values) out.push_back(as_f16(value));
  return out;
}

// Weights in blocks of 32, and what they stand for.
struct Blocks {
  std::vector<uint8_t> bytes;
  std::vector<float> weights;
};
Blocks random_blocks(size_t weights, bool nibbles, uint32_t seed) {
  std::mt19937 random(seed);
  Blocks out;
  for (size_t b = 0; b < weights / 32; ++b) {
    const float scale = static_cast<float>(static_cast<int>(random() % 15) - 7) / 16.0f;
    const uint16_t bits = as_f16(scale);
    out.bytes.push_back(static_cast<uint8_t>(bits & 0xff));
    out.bytes.push_back(static_cast<uint8_t>(bits >> 8));
    std::vector<int> codes(32);
    for (int& code : codes) {
      code = static_cast<int>(random() % (nibbles ? 16 : 256)) - (nibbles ? 8 : 128);
    }
    for (size_t i = 0; i < (nibbles ? 16u : 32u); ++i) {
      out.bytes.push_back(static_cast<uint8_t>(nibbles ? (codes[i] + 8) | (codes[i + 16] + 8) << 4
                                                       : codes[i] & 0xff));
    }
    for (const int code : codes) out.weights.push_back(scale * static_cast<float>(code));
  }
  return out;
}

// C = A B of doubles, with the element of B at p * row + j * column.
std::vector<double> product(const std::vector<float>& a, const std::vector<float>& b, size_t m,
                            size_t n, size_t k, size_t row, size_t column) {
  std::vector<double> c(m * n);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t p = 0; p < k; ++p) {
        c[i * n + j] += double{a[i * k + p]} * double{b[p * row + j * column]};
      }
    }
  }
  return c;
}

void expect_near(const std::vector<float>& got, const std::vector<double>& want, double share) {
  double largest = 1;
  for (const double value : want) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], share * largest) << "element " << i;
  }
}

struct Shape {
  size_t m, n, k;
};
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
    std::mt19937 random(3);
    std::vector<int8_t> a(s.m * s.k), b(s.k * s.n);
    for (int8_t& value : a) value = static_cast<int8_t>(random() & 0xff);
    for (int8_t& value : b) value = static_cast<int8_t>(random() & 0xff);
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
    for (const Shape& s : {Shape{1, 1, 32}, Shape{3, 33, 160}, Shape{13, 17, 416}}) {
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
