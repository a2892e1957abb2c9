#include "kernel_problem.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "common.h"

namespace loom::bench {
namespace {

constexpr size_t kPage = size_t{2} << 20;
constexpr size_t kBlock = 32;  // elements that share a scale in q8_0 and q4_0
constexpr size_t kPlaces = 150;

struct Expected {
  double value = 0;
  double tolerance = 0;
};

using Element = double (*)(const Memory&, size_t);
double of_float(const Memory& memory, size_t place) { return memory.as<float>()[place]; }

// One kind: its inputs, by the function that makes them, and the elements of its output, each of at
// most four bytes.
struct Kind {
  std::string_view name;
  std::vector<Memory> (*inputs)(std::span<const size_t> sizes);
  size_t (*outputs)(std::span<const size_t> sizes);
  Expected (*expected)(const Problem& problem, size_t place);
  Element output = of_float;
};

// The same numbers in every process, in [-1, 1).
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed * 2 + 1) {}
  uint32_t bits() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 32);
  }
  float uniform() { return static_cast<float>(static_cast<int32_t>(bits())) * 0x1p-31f; }

 private:
  uint64_t state_;
};

Memory floats(size_t count, uint64_t seed) {
  Memory memory(count * sizeof(float));
  Numbers numbers(seed);
  for (float& value : std::span(memory.as<float>(), count)) value = numbers.uniform();
  return memory;
}

Memory halves(size_t count, uint64_t seed) {
  Memory memory(count * sizeof(uint16_t));
  Numbers numbers(seed);
  for (uint16_t& value : std::span(memory.as<uint16_t>(), count))
    value = to_bf16(numbers.uniform());
  return memory;
}

Memory shorts(size_t count, uint64_t seed) {
  Memory memory(count * sizeof(_Float16));
  Numbers numbers(seed);
  for (_Float16& value : std::span(memory.as<_Float16>(), count)) {
    value = static_cast<_Float16>(numbers.uniform());
  }
  return memory;
}

Memory integers(size_t count, uint64_t seed) {
  Memory memory(count);
  Numbers numbers(seed);
  for (std::byte& value : memory.bytes()) value = static_cast<std::byte>(numbers.bits() >> 24);
  return memory;
}

// Blocks as GGUF has them: an f16 scale, then `payload` bytes.
Memory blocks(size_t elements, size_t payload, uint64_t seed) {
  const size_t count = elements / kBlock;
  const size_t bytes = sizeof(_Float16) + payload;
  Memory memory(count * bytes);
  Numbers numbers(seed);
  for (size_t block = 0; block < count; ++block) {
    std::byte* at = memory.bytes().data() + block * bytes;
    const auto scale = static_cast<_Float16>(0.01f + 0.005f * numbers.uniform());
    std::memcpy(at, &scale, sizeof(scale));
    for (size_t i = 0; i < payload; ++i) {
      at[sizeof(scale) + i] = static_cast<std::byte>(numbers.bits() >> 24);
    }
  }
  return memory;
}

template <typename... Inputs>
std::vector<Memory> list(Inputs&&... inputs) {
  std::vector<Memory> all;
  (all.push_back(std::forward<Inputs>(inputs)), ...);
  return all;
}

double of_bf16(const Memory& memory, size_t place) {
  return from_bf16(memory.as<uint16_t>()[place]);
}
double of_f16(const Memory& memory, size_t place) {
  return static_cast<double>(memory.as<_Float16>()[place]);
}
double of_i8(const Memory& memory, size_t place) { return memory.as<int8_t>()[place]; }
double of_i32(const Memory& memory, size_t place) { return memory.as<int32_t>()[place]; }

double scale_of(const Memory& memory, size_t place, size_t bytes) {
  _Float16 scale{};
  std::memcpy(&scale, memory.bytes().data() + place / kBlock * bytes, sizeof(scale));
  return static_cast<double>(scale);
}

double of_q8(const Memory& memory, size_t place) {
  constexpr size_t kBytes = 34;
  const std::byte* block = memory.bytes().data() + place / kBlock * kBytes;
  return scale_of(memory, place, kBytes) * static_cast<int8_t>(block[2 + place % kBlock]);
}

double of_q4(const Memory& memory, size_t place) {
  constexpr size_t kBytes = 18;
  const std::byte* block = memory.bytes().data() + place / kBlock * kBytes;
  const size_t element = place % kBlock;
  const auto pair = static_cast<unsigned>(block[2 + element % 16]);
  const unsigned code = element < 16 ? pair & 15u : pair >> 4;
  return scale_of(memory, place, kBytes) * (static_cast<double>(code) - 8);
}

// A sum of `depth` products, and what rounding may change of it.
template <typename Left, typename Right>
Expected dot(size_t depth, double rounding, Left&& left, Right&& right) {
  double sum = 0, size = 0;
  for (size_t i = 0; i < depth; ++i) {
    const double product = left(i) * right(i);
    sum += product;
    size += std::abs(product);
  }
  return {sum, rounding * size + 1e-6};
}

// m x n = (m x k) (k x n)
template <Element kElement>
Expected matrix_product(const Problem& problem, size_t place) {
  const size_t n = problem.size(1), k = problem.size(2);
  return dot(
      k, 2e-6, [&](size_t i) { return kElement(problem.input(0), place / n * k + i); },
      [&](size_t i) { return kElement(problem.input(1), i * n + place % n); });
}

// The same, rounded to bf16.
Expected rounded_product(const Problem& problem, size_t place) {
  const Expected exact = matrix_product<of_bf16>(problem, place);
  return {exact.value, exact.tolerance + 0x1p-8 * std::abs(exact.value)};
}

// gelu(A B + bias), by tanh
Expected fused_product(const Problem& problem, size_t place) {
  const Expected sum = matrix_product<of_float>(problem, place);
  const double x = sum.value + problem.in(2)[place % problem.size(1)];
  const double inner = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
  return {0.5 * x * (1 + std::tanh(inner)), 2 * sum.tolerance + 1e-5};
}

// batch x m x n = (batch x m x k) (batch x k x n)
Expected batched_product(const Problem& problem, size_t place) {
  const size_t m = problem.size(1), n = problem.size(2), k = problem.size(3);
  const size_t matrix = place / (m * n);
  return dot(
      k, 2e-6, [&](size_t i) { return problem.in(0)[place / n * k + i]; },
      [&](size_t i) { return problem.in(1)[matrix * k * n + i * n + place % n]; });
}

// rows = (rows x columns) (columns), with weights of several formats and f32 otherwise
template <Element kElement>
Expected matrix_vector(const Problem& problem, size_t row) {
  const size_t columns = problem.size(1);
  return dot(
      columns, 1e-5, [&](size_t i) { return kElement(problem.input(0), row * columns + i); },
      [&](size_t i) { return of_float(problem.input(1), i); });
}

std::span<const float> row_of(const Problem& problem, size_t place) {
  const size_t columns = problem.size(1);
  return {problem.in(0) + place / columns * columns, columns};
}

Expected softmax(const Problem& problem, size_t place) {
  const std::span<const float> row = row_of(problem, place);
  const double peak = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float value : row) sum += std::exp(value - peak);
  const double want = std::exp(problem.in(0)[place] - peak) / sum;
  return {want, 1e-5 * want};
}

Expected layer_norm(const Problem& problem, size_t place) {
  const std::span<const float> row = row_of(problem, place);
  const size_t column = place % row.size();
  const auto count = static_cast<double>(row.size());
  double mean = 0, variance = 0;
  for (const float value : row) mean += value / count;
  for (const float value : row) variance += (value - mean) * (value - mean) / count;
  const double factor = 1 / std::sqrt(variance + Problem::kEpsilon);
  return {(problem.in(0)[place] - mean) * factor * problem.in(1)[column] + problem.in(2)[column],
          1e-5};
}

Expected rms_norm(const Problem& problem, size_t place) {
  const std::span<const float> row = row_of(problem, place);
  double square = 0;
  for (const float value : row) square += double{value} * value / static_cast<double>(row.size());
  const double factor = 1 / std::sqrt(square + Problem::kEpsilon);
  return {problem.in(0)[place] * factor * problem.in(1)[place % row.size()], 1e-5};
}

Expected row_sum(const Problem& problem, size_t row) {
  const size_t columns = problem.size(1);
  return dot(
      columns, 1e-6, [&](size_t i) { return problem.in(0)[row * columns + i]; },
      [](size_t) { return 1.0; });
}

Expected total(const Problem& problem, size_t) {
  return dot(
      problem.size(0), 1e-6, [&](size_t i) { return problem.in(0)[i]; },
      [](size_t) { return 1.0; });
}

// The sums of the first 1, 2, ... elements of each row.
Expected row_scan(const Problem& problem, size_t place) {
  const size_t columns = problem.size(1);
  return dot(
      place % columns + 1, 1e-5,
      [&](size_t i) { return problem.in(0)[place / columns * columns + i]; },
      [](size_t) { return 1.0; });
}

// heads x length x width: softmax(q k^T / sqrt(width)) v
Expected attention(const Problem& problem, size_t place) {
  const size_t length = problem.size(1), width = problem.size(2);
  const size_t head = place / (length * width) * length * width;
  const float* query = problem.in(0) + place / width * width;
  std::vector<double> score(length);
  for (size_t i = 0; i < length; ++i) {
    for (size_t c = 0; c < width; ++c) {
      score[i] += double{query[c]} * problem.in(1)[head + i * width + c];
    }
    score[i] /= std::sqrt(static_cast<double>(width));
  }
  const double peak = *std::max_element(score.begin(), score.end());
  double sum = 0, value = 0;
  for (size_t i = 0; i < length; ++i) {
    const double power = std::exp(score[i] - peak);
    sum += power;
    value += power * problem.in(2)[head + i * width + place % width];
  }
  return {value / sum, 1e-5};
}

template <typename T>
size_t product(T sizes) {
  return sizes[0] * sizes[1] * sizes[2];
}
using Sizes = std::span<const size_t>;

const Kind kKinds[] = {
    {"gemm_f32", [](Sizes s) { return list(floats(s[0] * s[2], 1), floats(s[2] * s[1], 2)); },
     [](Sizes s) { return s[0] * s[1]; }, matrix_product<of_float>},
    {"gemm_bf16", [](Sizes s) { return list(halves(s[0] * s[2], 1), halves(s[2] * s[1], 2)); },
     [](Sizes s) { return s[0] * s[1]; }, matrix_product<of_bf16>},
    {"gemm_f16", [](Sizes s) { return list(shorts(s[0] * s[2], 1), shorts(s[2] * s[1], 2)); },
     [](Sizes s) { return s[0] * s[1]; }, matrix_product<of_f16>},
    {"gemm_i8", [](Sizes s) { return list(integers(s[0] * s[2], 1), integers(s[2] * s[1], 2)); },
     [](Sizes s) { return s[0] * s[1]; },
     [](const Problem& p, size_t i) { return Expected{matrix_product<of_i8>(p, i).value, 0}; },
     of_i32},
    {"gemm_rounded_bf16",
     [](Sizes s) { return list(halves(s[0] * s[2], 1), halves(s[2] * s[1], 2)); },
     [](Sizes s) { return s[0] * s[1]; }, rounded_product, of_bf16},
    {"gemm_fused_f32",
     [](Sizes s) { return list(floats(s[0] * s[2], 1), floats(s[2] * s[1], 2), floats(s[1], 3)); },
     [](Sizes s) { return s[0] * s[1]; }, fused_product},
    {"gemm_batched_f32",
     [](Sizes s) { return list(floats(s[0] * s[1] * s[3], 1), floats(s[0] * s[3] * s[2], 2)); },
     [](Sizes s) { return s[0] * s[1] * s[2]; }, batched_product},
    {"gemv_f16", [](Sizes s) { return list(shorts(s[0] * s[1], 1), floats(s[1], 2)); },
     [](Sizes s) { return s[0]; }, matrix_vector<of_f16>},
    {"gemv_f32", [](Sizes s) { return list(floats(s[0] * s[1], 1), floats(s[1], 2)); },
     [](Sizes s) { return s[0]; }, matrix_vector<of_float>},
    {"gemv_bf16", [](Sizes s) { return list(halves(s[0] * s[1], 1), floats(s[1], 2)); },
     [](Sizes s) { return s[0]; }, matrix_vector<of_bf16>},
    {"gemv_q8_0", [](Sizes s) { return list(blocks(s[0] * s[1], 32, 1), floats(s[1], 2)); },
     [](Sizes s) { return s[0]; }, matrix_vector<of_q8>},
    {"gemv_q4_0", [](Sizes s) { return list(blocks(s[0] * s[1], 16, 1), floats(s[1], 2)); },
     [](Sizes s) { return s[0]; }, matrix_vector<of_q4>},
    {"copy", [](Sizes s) { return list(floats(product(s), 1)); },
     [](Sizes s) { return product(s); },
     [](const Problem& p, size_t i) { return Expected{p.in(0)[i], 0}; }},
    {"add", [](Sizes s) { return list(floats(product(s), 1), floats(product(s), 2)); },
     [](Sizes s) { return product(s); },
     [](const Problem& p, size_t i) { return Expected{p.in(0)[i] + p.in(1)[i], 0}; }},
    {"fma", [](Sizes) { return std::vector<Memory>(); }, [](Sizes) { return size_t{1}; },
     [](const Problem&, size_t) { return Expected{2, 0}; }},
    {"row_sum", [](Sizes s) { return list(floats(product(s), 1)); }, [](Sizes s) { return s[0]; },
     row_sum},
    {"sum", [](Sizes s) { return list(floats(product(s), 1)); }, [](Sizes) { return size_t{1}; },
     total},
    {"row_scan", [](Sizes s) { return list(floats(product(s), 1)); },
     [](Sizes s) { return product(s); }, row_scan},
    {"softmax", [](Sizes s) { return list(floats(product(s), 1)); },
     [](Sizes s) { return product(s); }, softmax},
    {"layer_norm",
     [](Sizes s) { return list(floats(product(s), 1), floats(s[1], 2), floats(s[1], 3)); },
     [](Sizes s) { return product(s); }, layer_norm},
    {"rms_norm", [](Sizes s) { return list(floats(product(s), 1), floats(s[1], 2)); },
     [](Sizes s) { return product(s); }, rms_norm},
    {"attention",
     [](Sizes s) {
       return list(floats(product(s), 1), floats(product(s), 2), floats(product(s), 3));
     },
     [](Sizes s) { return product(s); }, attention},
};

// Variants of one kind, such as other stores, compute the same: "copy.stream" is a copy.
const Kind& kind_of(std::string_view name) {
  const std::string_view plain = name.substr(0, name.find('.'));
  for (const Kind& kind : kKinds) {
    if (kind.name == plain) return kind;
  }
  fail(fmt::format("there is no kind of kernel '{}'", name));
}

}  // namespace

float from_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

Memory::Memory(size_t bytes) : bytes_(bytes) {
  const size_t whole = std::max<size_t>((bytes + kPage - 1) / kPage * kPage, kPage);
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, whole)));
  require(data_ != nullptr, fmt::format("no memory for {} bytes", bytes));
  madvise(data_.get(), whole, MADV_HUGEPAGE);
  std::memset(data_.get(), 0, whole);
}

void Memory::Free::operator()(std::byte* data) const { std::free(data); }

Problem::Problem(std::string_view name) : name_(name) {
  const size_t end = name.find(':');
  kind_ = name.substr(0, end);
  for (size_t place = 0, at = end; at < name.size(); ++place) {
    const char* first = name.data() + at + 1;
    const auto [last, error] = std::from_chars(first, name.data() + name.size(), sizes_.at(place));
    require(error == std::errc(), fmt::format("'{}' has a size that is none", name));
    at = static_cast<size_t>(last - name.data());
  }
  const Kind& kind = kind_of(kind_);
  inputs_ = kind.inputs(sizes_);
  output_ = std::make_unique<Memory>(kind.outputs(sizes_) * sizeof(float));
}

void Problem::spoil() const { std::memset(output_->bytes().data(), 0xff, output_->bytes().size()); }

std::string Problem::wrong() const {
  const Kind& kind = kind_of(kind_);
  const size_t count = kind.outputs(sizes_);
  // Places all over the output, the first and the last among them, in no regular distance.
  Numbers numbers(7);
  for (size_t i = 0; i < std::min(count, kPlaces); ++i) {
    size_t place = i == 0 ? 0 : i == 1 ? count - 1 : numbers.bits() % count;
    if (count <= kPlaces) place = i;
    const Expected want = kind.expected(*this, place);
    const double got = kind.output(*output_, place);
    if (!(std::abs(got - want.value) <= want.tolerance)) {
      return fmt::format("element {} is {:.9g} instead of {:.9g}", place, got, want.value);
    }
  }
  return {};
}

}  // namespace loom::bench
