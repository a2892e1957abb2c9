// Products of matrices, and of a matrix and a vector, in every format.
#include <cmath>

#include "rows.h"

namespace loom::lib {
namespace {

using enum ScalarKind;

enum class Weights : uint8_t { Numbers, Bytes, Q8, Q4 };
enum class Form : uint8_t { Plain, Fused, Batched };

struct Product {
  Weights weights = Weights::Numbers;
  ScalarKind element = F32;  // of both factors where weights are numbers
  ScalarKind sum = F32;      // of the result, a bias and a residual
  Form form = Form::Plain;
};

bool has_blocks(const Product& p) { return p.weights == Weights::Q8 || p.weights == Weights::Q4; }

// The epilogue of a sum, and how large its parts are.
struct Epilogue {
  bool has_bias = false;
  uint64_t activation = 0;
  bool has_residual = false;
  Numbers bias, residual, left_scales, right_scales;  // scales of bytes alone

  Epilogue(Inputs& in, const Product& p, size_t biases, size_t residuals) {
    if (p.form != Form::Fused) return;
    has_bias = in.below(2) == 0;
    activation = in.below(4);
    has_residual = in.below(2) == 0;
    bias = in.numbers(p.sum, biases);
    residual = in.numbers(p.sum, residuals);
  }
  void put_choices(Launch& launch) const {
    launch.index(has_bias ? 1 : 0).index(activation).index(has_residual ? 1 : 0);
  }
  double of(double sum, size_t bias_at, size_t residual_at) const {
    if (has_bias) sum += bias.values[bias_at];
    if (activation == 1) sum = std::fmax(sum, 0);
    if (activation == 2) sum = sum / (1 + std::exp(-sum));
    if (activation == 3) {
      sum = 0.5 * sum * (1 + std::tanh(std::sqrt(2 / M_PI) * (sum + 0.044715 * sum * sum * sum)));
    }
    return has_residual ? sum + residual.values[residual_at] : sum;
  }
  double size(double size, size_t bias_at, size_t residual_at) const {
    if (has_bias) size += std::fabs(bias.values[bias_at]);
    if (has_residual) size += std::fabs(residual.values[residual_at]);
    return size;
  }
};

// A sum that is no number, or none that f32 holds, has no certain activation but relu's.
bool has_oracle(const Inputs& in, const Epilogue& epilogue) {
  return !in.with_specials() || epilogue.activation == 0;
}

void add_result(Launch& launch, const Product& p, double want, double size) {
  double step = 0;
  if (p.sum == F16) step = std::max(std::fabs(want) * 0x1p-10, 0x1p-24);
  if (p.sum == BF16) step = std::max(std::fabs(want) * 0x1p-7, 0x1p-133);
  launch.oracle.push_back(p.sum == I32 ? want : to_double(from_double(p.sum, want)));
  const double slack = 0x1p-20 * size + step + 0x1p-126;
  launch.slack.push_back(std::isfinite(slack) ? slack : 0);
}

// A slack of zero everywhere would hide nothing but says less than equal bits.
void keep_exact(Launch& launch, const Product& p) {
  if (p.weights == Weights::Bytes && p.sum == I32) launch.slack.clear();
}

Numbers left(Inputs& in, const Product& p, size_t count) {
  return p.weights == Weights::Bytes ? in.bytes(count) : in.numbers(p.element, count);
}
Numbers right(Inputs& in, const Product& p, size_t count) {
  if (has_blocks(p)) return in.blocks(count, p.weights == Weights::Q4);
  return left(in, p, count);
}

// Sums of bytes are modulo two to the 32; at these lengths they do not wrap.
Launch matrices(Inputs& in, const Product& p) {
  const bool large = in.below(6) == 0;
  const size_t m = large ? in.pick({13, 25}) : in.pick({1, 2, 7, 11, 12, 13, 17});
  const size_t n = large ? in.pick({65, 130, 515}) : in.pick({1, 7, 8, 15, 16, 17, 31, 32, 33, 65});
  size_t k =
      large && n < 100 ? in.pick({385, 388, 401}) : in.pick({1, 2, 3, 7, 8, 9, 16, 31, 33, 65});
  if (has_blocks(p)) k = (k + 31) / 32 * 32;
  const size_t batch = p.form == Form::Batched ? in.pick({1, 2, 3}) : 1;
  const size_t gap = in.below(3);
  const size_t a_stride = in.below(4) == 0 ? 0 : m * k + gap;
  const size_t b_stride = in.below(4) == 0 ? 0 : n * k + gap * 32;
  const size_t c_stride = m * n + gap;
  const Numbers a = left(in, p, (batch - 1) * a_stride + m * k);
  const Numbers b = right(in, p, (batch - 1) * b_stride + n * k);
  Epilogue epilogue(in, p, n, m * n);
  Launch launch;
  if (p.form == Form::Batched) {
    launch.workload = {batch, m, n, k};
    launch.index(batch);
  } else {
    launch.workload = {m, n, k};
  }
  launch.index(m).index(n).index(k);
  if (p.form == Form::Batched) launch.index(a_stride).index(b_stride).index(c_stride);
  if (p.form == Form::Fused) epilogue.put_choices(launch);
  launch.buffer(a.buffer).buffer(b.buffer);
  const bool scaled = p.form == Form::Fused && p.weights == Weights::Bytes;
  if (scaled) {
    epilogue.left_scales = in.numbers(F32, m);
    epilogue.right_scales = in.numbers(F32, n);
    launch.buffer(epilogue.left_scales.buffer).buffer(epilogue.right_scales.buffer);
  }
  if (p.form == Form::Fused) launch.buffer(epilogue.bias.buffer).buffer(epilogue.residual.buffer);
  launch.result(p.sum, (batch - 1) * c_stride + m * n);
  // Between the matrices of a batch nothing is known, so the first one has the oracle.
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (size_t q = 0; q < k; ++q) {
        const double term = a.values[i * k + q] * b.values[has_blocks(p) ? j * k + q : q * n + j];
        sum += term;
        size += std::fabs(term);
      }
      const double scale =
          scaled ? epilogue.left_scales.values[i] * epilogue.right_scales.values[j] : 1;
      add_result(launch, p, epilogue.of(sum * scale, j, i * n + j),
                 epilogue.size(std::fabs(size * scale), j, i * n + j));
    }
  }
  for (size_t t = 1; t < batch && p.sum != I32; ++t) {
    launch.slack.resize(t * c_stride);
    for (size_t e = 0; e < m * n; ++e) {
      double size = 0;
      for (size_t q = 0; q < k; ++q) {
        const size_t i = e / n, j = e % n;
        size += std::fabs(a.values[t * a_stride + i * k + q] *
                          b.values[t * b_stride + (has_blocks(p) ? j * k + q : q * n + j)]);
      }
      launch.slack.push_back(std::isfinite(size) ? 0x1p-20 * size + 0x1p-126 : 0);
    }
  }
  keep_exact(launch, p);
  if (!has_oracle(in, epilogue)) launch.oracle.clear();
  return launch;
}

Launch vectors(Inputs& in, const Product& p) {
  const size_t rows = in.extent();
  size_t columns = in.below(4) == 0 ? in.pick({255, 300, 513, 1030}) : in.extent();
  if (has_blocks(p)) columns = (columns + 31) / 32 * 32;
  const Numbers w = right(in, p, rows * columns);
  const Numbers x = p.weights == Weights::Bytes ? in.bytes(columns) : in.numbers(F32, columns);
  Epilogue epilogue(in, p, rows, rows);
  Launch launch{.workload = {rows}};
  launch.index(rows).index(columns);
  if (p.form == Form::Fused) epilogue.put_choices(launch);
  launch.buffer(w.buffer).buffer(x.buffer);
  const bool scaled = p.form == Form::Fused && p.weights == Weights::Bytes;
  if (scaled) {
    epilogue.left_scales = in.numbers(F32, rows);
    epilogue.right_scales = in.numbers(F32, 1);
    launch.buffer(epilogue.left_scales.buffer).buffer(epilogue.right_scales.buffer);
  }
  if (p.form == Form::Fused) launch.buffer(epilogue.bias.buffer).buffer(epilogue.residual.buffer);
  launch.result(p.sum, rows);
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0, size = 0;
    for (size_t c = 0; c < columns; ++c) {
      const double term = w.values[r * columns + c] * x.values[c];
      sum += term;
      size += std::fabs(term);
    }
    const double scale =
        scaled ? epilogue.left_scales.values[r] * epilogue.right_scales.values[0] : 1;
    add_result(launch, p, epilogue.of(sum * scale, r, r),
               epilogue.size(std::fabs(size * scale), r, r));
  }
  keep_exact(launch, p);
  if (!has_oracle(in, epilogue)) launch.oracle.clear();
  return launch;
}

}  // namespace

void add_product_rows(Rows& rows) {
  const std::pair<std::string, Product> formats[] = {
      {"f32", {}},
      {"f16", {.element = F16}},
      {"bf16", {.element = BF16}},
      {"i8", {.weights = Weights::Bytes, .sum = I32}},
      {"q8_0", {.weights = Weights::Q8}},
      {"q4_0", {.weights = Weights::Q4}},
  };
  for (const auto& [name, product] : formats) {
    Product fused = product, batched = product;
    fused.form = Form::Fused;
    if (fused.sum == I32) fused.sum = F32;
    batched.form = Form::Batched;
    rows["gemm_" + name] = [p = product](Inputs& in) { return matrices(in, p); };
    rows["gemm_fused_" + name] = [p = fused](Inputs& in) { return matrices(in, p); };
    rows["gemm_batched_" + name] = [p = batched](Inputs& in) { return matrices(in, p); };
    rows["gemv_" + name] = [p = product](Inputs& in) { return vectors(in, p); };
    rows["gemv_fused_" + name] = [p = fused](Inputs& in) { return vectors(in, p); };
    if (product.element == F32) continue;
    Product rounded = product, fused_rounded = fused;
    rounded.sum = fused_rounded.sum = product.element;
    rows["gemm_rounded_" + name] = [p = rounded](Inputs& in) { return matrices(in, p); };
    rows["gemm_fused_rounded_" + name] = [p = fused_rounded](Inputs& in) {
      return matrices(in, p);
    };
  }
}

}  // namespace loom::lib
