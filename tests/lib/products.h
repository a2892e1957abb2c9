#pragma once

// What the tests of matrix products share: kernels of lib/ on the interpreter, and inputs with
// results in double.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
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

inline std::string problems(const Diagnostics& diagnostics) {
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
    libraries.push_back(load("gemm_blocks.loom"));
    libraries.push_back(load("gemm_parts.loom"));
    libraries.push_back(load("gemv_parts.loom"));
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
inline std::vector<float> random_numbers(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> out(count);
  for (float& value : out) {
    value = static_cast<float>(static_cast<int>(random() % 127) - 63) / 32.0f;
  }
  return out;
}

inline std::vector<int8_t> random_bytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int8_t> out(count);
  for (int8_t& value : out) value = static_cast<int8_t>(random() & 0xff);
  return out;
}

inline std::vector<uint16_t> as_bf16(const std::vector<float>& values) {
  std::vector<uint16_t> out;
  for (const float value : values) {
    out.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
  }
  return out;
}

// Of numbers that are normal in f16, or zero.
inline uint16_t as_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) == 0) return static_cast<uint16_t>(bits >> 16);
  const uint32_t exponent = (bits >> 23 & 0xff) - 127 + 15;
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff));
}
inline std::vector<uint16_t> as_f16(const std::vector<float>& values) {
  std::vector<uint16_t> out;
  for (const float value : values) out.push_back(as_f16(value));
  return out;
}

inline std::vector<float> from_bf16(const std::vector<uint16_t>& values) {
  std::vector<float> out;
  for (const uint16_t value : values) out.push_back(std::bit_cast<float>(uint32_t{value} << 16));
  return out;
}
inline std::vector<float> from_f16(const std::vector<uint16_t>& values) {
  std::vector<float> out;
  for (const uint16_t value : values) {
    out.push_back(static_cast<float>(std::bit_cast<_Float16>(value)));
  }
  return out;
}

// Weights in blocks of 32, and what they stand for.
struct Blocks {
  std::vector<uint8_t> bytes;
  std::vector<float> weights;
};
inline Blocks random_blocks(size_t weights, bool nibbles, uint32_t seed) {
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
inline std::vector<double> product(const std::vector<float>& a, const std::vector<float>& b,
                                   size_t m, size_t n, size_t k, size_t row, size_t column) {
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

inline void expect_near(const std::vector<float>& got, const std::vector<double>& want,
                        double share) {
  double largest = 1;
  for (const double value : want) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], share * largest) << "element " << i;
  }
}

struct Shape {
  size_t m, n, k;
};

}  // namespace loom
