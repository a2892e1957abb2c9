// Products with an epilogue on the interpreter, against results in double.
#include "products.h"

namespace loom {
namespace {

// What follows a product: whether a bias is added, which activation is taken, whether a residual is
// added.
struct Epilogue {
  bool has_bias;
  uint64_t activation;
  bool has_residual;
};
constexpr Epilogue kEpilogues[] = {{false, 0, false}, {true, 0, false}, {true, 1, true},
                                   {false, 2, true},  {true, 3, true},  {false, 3, false}};

double activate(double x, uint64_t activation) {
  switch (activation) {
    case 1:
      return x > 0 ? x : 0;
    case 2:
      return x / (1 + std::exp(-x));
    case 3:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    default:
      return x;
  }
}

// Of m rows of n sums, with a bias a column.
std::vector<double> finish(std::vector<double> sums, const Epilogue& epilogue,
                           const std::vector<float>& bias, const std::vector<float>& residual) {
  for (size_t i = 0; i < sums.size(); ++i) {
    if (epilogue.has_bias) sums[i] += bias[i % bias.size()];
    sums[i] = activate(sums[i], epilogue.activation);
    if (epilogue.has_residual) sums[i] += residual[i];
  }
  return sums;
}

std::string title(const std::string& kernel, const Shape& s, const Epilogue& e) {
  return kernel + " of " + std::to_string(s.m) + " x " + std::to_string(s.n) + " x " +
         std::to_string(s.k) + ", activation " + std::to_string(e.activation) +
         (e.has_bias ? ", bias" : "") + (e.has_residual ? ", residual" : "");
}

// Runs kernels with epilogues; `inputs` adds the factors and what scales them.
class Fused {
 public:
  Fused(const Shape& shape, const Epilogue& epilogue)
      : shape_(shape),
        epilogue_(epilogue),
        bias_(random_numbers(shape.n, 11)),
        residual_(random_numbers(shape.m * shape.n, 12)),
        out_(shape.m * shape.n, NAN) {}

  template <class Inputs>
  void check(const std::string& file, const std::string& name, const std::vector<double>& sums,
             Inputs&& inputs) {
    SCOPED_TRACE(title(name, shape_, epilogue_));
    Kernel kernel(file, name);
    const bool is_vector = name.starts_with("gemv");
    if (!is_vector) kernel.index(shape_.m);
    kernel.index(shape_.n).index(shape_.k);
    kernel.index(epilogue_.has_bias ? 1 : 0).index(epilogue_.activation);
    kernel.index(epilogue_.has_residual ? 1 : 0);
    inputs(kernel);
    std::fill(out_.begin(), out_.end(), NAN);
    kernel.buffer(bias_).buffer(residual_).buffer(out_);
    kernel.run(is_vector ? std::vector<uint64_t>{shape_.n}
                         : std::vector<uint64_t>{shape_.m, shape_.n, shape_.k});
    expect_near(out_, finish(sums, epilogue_, bias_, residual_), 1e-5);
  }

 private:
  Shape shape_;
  Epilogue epilogue_;
  std::vector<float> bias_, residual_, out_;
};

constexpr Shape kMatrices[] = {{1, 1, 1}, {3, 33, 70}, {13, 65, 386}};

TEST(FusedProducts, MatricesOfEveryFormatMatchDoubles) {
  for (const Shape& s : kMatrices) {
    std::vector<float> a = random_numbers(s.m * s.k, 1), b = random_numbers(s.k * s.n, 2);
    std::vector<uint16_t> a_bf16 = as_bf16(a), b_bf16 = as_bf16(b);
    std::vector<uint16_t> a_f16 = as_f16(a), b_f16 = as_f16(b);
    const std::vector<double> sums = product(a, b, s.m, s.n, s.k, s.n, 1);
    for (const Epilogue& epilogue : kEpilogues) {
      Fused fused(s, epilogue);
      const auto with = [](auto& left, auto& right) {
        return [&](Kernel& kernel) { kernel.buffer(left).buffer(right); };
      };
      fused.check("gemm.loom", "gemm_fused_f32", sums, with(a, b));
      fused.check("gemm_bf16.loom", "gemm_fused_bf16", sums, with(a_bf16, b_bf16));
      fused.check("gemm_f16.loom", "gemm_fused_f16", sums, with(a_f16, b_f16));
    }
  }
}

TEST(FusedProducts, MatricesOfBytesAreScaled) {
  for (const Shape& s : kMatrices) {
    std::vector<int8_t> a = random_bytes(s.m * s.k, 3), b = random_bytes(s.k * s.n, 4);
    std::vector<float> a_scales = random_numbers(s.m, 5), b_scales = random_numbers(s.n, 6);
    for (float& scale : b_scales) scale /= 128;
    std::vector<double> sums(s.m * s.n);
    for (size_t i = 0; i < s.m; ++i) {
      for (size_t j = 0; j < s.n; ++j) {
        for (size_t p = 0; p < s.k; ++p) sums[i * s.n + j] += a[i * s.k + p] * b[p * s.n + j];
        sums[i * s.n + j] *= double{a_scales[i]} * double{b_scales[j]};
      }
    }
    for (const Epilogue& epilogue : kEpilogues) {
      Fused(s, epilogue).check("gemm_i8.loom", "gemm_fused_i8", sums, [&](Kernel& kernel) {
        kernel.buffer(a).buffer(b).buffer(a_scales).buffer(b_scales);
      });
    }
  }
}

TEST(FusedProducts, MatricesTimesVectorsMatchDoubles) {
  for (const Shape& s : {Shape{1, 1, 1}, Shape{1, 17, 63}, Shape{1, 33, 130}}) {
    std::vector<float> x = random_numbers(s.k, 1);
    std::vector<float> w = random_numbers(s.n * s.k, 2);
    std::vector<uint16_t> w_bf16 = as_bf16(w), w_f16 = as_f16(w);
    const std::vector<double> sums = product(x, w, 1, s.n, s.k, 1, s.k);
    for (const Epilogue& epilogue : kEpilogues) {
      Fused fused(s, epilogue);
      const auto with = [&x](auto& weights) {
        return [&](Kernel& kernel) { kernel.buffer(weights).buffer(x); };
      };
      fused.check("gemv.loom", "gemv_fused_f32", sums, with(w));
      fused.check("gemv.loom", "gemv_fused_bf16", sums, with(w_bf16));
      fused.check("gemv_narrow.loom", "gemv_fused_f16", sums, with(w_f16));
    }
  }
}

TEST(FusedProducts, BytesTimesVectorsAreScaled) {
  for (const Shape& s : {Shape{1, 1, 1}, Shape{1, 17, 255}, Shape{1, 33, 300}}) {
    std::vector<int8_t> x = random_bytes(s.k, 3), w = random_bytes(s.n * s.k, 4);
    std::vector<float> w_scales = random_numbers(s.n, 4);
    std::vector<float> x_scale = {0.0078125f};
    std::vector<double> sums(s.n);
    for (size_t j = 0; j < s.n; ++j) {
      for (size_t p = 0; p < s.k; ++p) sums[j] += w[j * s.k + p] * x[p];
      sums[j] *= double{w_scales[j]} * double{x_scale[0]};
    }
    for (const Epilogue& epilogue : kEpilogues) {
      Fused(s, epilogue).check("gemv_narrow.loom", "gemv_fused_i8", sums, [&](Kernel& kernel) {
        kernel.buffer(w).buffer(x).buffer(w_scales).buffer(x_scale);
      });
    }
  }
}

TEST(FusedProducts, WeightsInBlocksMatchDoubles) {
  for (const bool nibbles : {false, true}) {
    const std::string type = nibbles ? "q4_0" : "q8_0";
    for (const Shape& s : {Shape{1, 1, 32}, Shape{3, 33, 160}, Shape{13, 17, 416}}) {
      std::vector<float> a = random_numbers(s.m * s.k, 1);
      Blocks w = random_blocks(s.n * s.k, nibbles, 2);
      const std::vector<double> sums = product(a, w.weights, s.m, s.n, s.k, 1, s.k);
      for (const Epilogue& epilogue : kEpilogues) {
        Fused(s, epilogue)
            .check("gemm_quantized.loom", "gemm_fused_" + type, sums,
                   [&](Kernel& kernel) { kernel.buffer(a).buffer(w.bytes); });
        // The first row of A as a vector.
        Fused({1, s.n, s.k}, epilogue)
            .check("gemv_quantized.loom", "gemv_fused_" + type,
                   {sums.begin(), sums.begin() + static_cast<ptrdiff_t>(s.n)},
                   [&](Kernel& kernel) { kernel.buffer(w.bytes).buffer(a); });
      }
    }
  }
}

}  // namespace
}  // namespace loom
