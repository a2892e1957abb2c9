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

constexpr Shape kMatrices[] = {{1, 1, 1}, {13, 33, 7}, {5, 3, 386}};

// All of them once; for deep products a few, which take long on the interpreter.
std::span<const Epilogue> epilogues_of(const Shape& shape) {
  return std::span(kEpilogues).last(shape.k > 100 ? 2 : std::size(kEpilogues));
}

TEST(FusedProducts, MatricesOfEveryFormatMatchDoubles) {
  for (const Shape& s : kMatrices) {
    std::vector<float> a = random_numbers(s.m * s.k, 1), b = random_numbers(s.k * s.n, 2);
    std::vector<uint16_t> a_bf16 = as_bf16(a), b_bf16 = as_bf16(b);
    std::vector<uint16_t> a_f16 = as_f16(a), b_f16 = as_f16(b);
    const std::vector<double> sums = product(a, b, s.m, s.n, s.k, s.n, 1);
    for (const Epilogue& epilogue : epilogues_of(s)) {
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

// Numbers without NaN that are at most half a step of their format from what they should be, beside
// what the epilogue may be off in f32.
void expect_rounded(const std::vector<float>& got, const std::vector<double>& want, double half) {
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], half * std::abs(want[i]) + 1e-4) << "element " << i;
  }
}

TEST(FusedProducts, ResultsAreRoundedOnce) {
  constexpr uint16_t kNaN = 0x7fff;  // in both formats
  // The last one has two tiles in each direction.
  for (const Shape& s : {Shape{1, 1, 1}, Shape{13, 33, 7}, Shape{2, 3, 770}, Shape{384, 257, 1}}) {
    const std::vector<float> a = random_numbers(s.m * s.k, 1), b = random_numbers(s.k * s.n, 2);
    const std::vector<float> residual = random_numbers(s.m * s.n, 3);
    const std::vector<float> bias = random_numbers(s.n, 4);
    const std::vector<double> sums = product(a, b, s.m, s.n, s.k, s.n, 1);
    const auto check = [&](const std::string& type, auto convert, auto back, double half) {
      std::vector<uint16_t> left = convert(a), right = convert(b), before = convert(residual);
      std::vector<uint16_t> added = convert(bias);
      std::vector<uint16_t> out(s.m * s.n, kNaN);
      const std::string file = "gemm_" + type + ".loom";
      Kernel plain(file, "gemm_rounded_" + type);
      plain.index(s.m).index(s.n).index(s.k).buffer(left).buffer(right).buffer(out);
      plain.run({s.m, s.n, s.k});
      expect_rounded(back(out), sums, half);
      for (const Epilogue& epilogue : std::span(kEpilogues).last(2)) {
        const std::string name = "gemm_fused_rounded_" + type;
        SCOPED_TRACE(title(name, s, epilogue));
        std::fill(out.begin(), out.end(), kNaN);
        Kernel fused(file, name);
        fused.index(s.m).index(s.n).index(s.k).index(epilogue.has_bias ? 1 : 0);
        fused.index(epilogue.activation).index(epilogue.has_residual ? 1 : 0);
        fused.buffer(left).buffer(right).buffer(added).buffer(before).buffer(out);
        fused.run({s.m, s.n, s.k});
        expect_rounded(back(out), finish(sums, epilogue, bias, residual), half);
      }
    };
    const auto to_bf16 = [](const auto& values) { return as_bf16(values); };
    const auto to_f16 = [](const auto& values) { return as_f16(values); };
    check("bf16", to_bf16, from_bf16, 0x1p-8);
    check("f16", to_f16, from_f16, 0x1p-11);
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
    for (const Epilogue& epilogue : epilogues_of(s)) {
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
    for (const Epilogue& epilogue : epilogues_of(s)) {
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
    for (const Epilogue& epilogue : epilogues_of(s)) {
      Fused(s, epilogue).check("gemv_narrow.loom", "gemv_fused_i8", sums, [&](Kernel& kernel) {
        kernel.buffer(w).buffer(x).buffer(w_scales).buffer(x_scale);
      });
    }
  }
}

TEST(FusedProducts, WeightsInBlocksMatchDoubles) {
  for (const bool nibbles : {false, true}) {
    const std::string type = nibbles ? "q4_0" : "q8_0";
    for (const Shape& s : {Shape{1, 1, 32}, Shape{5, 33, 96}, Shape{33, 17, 64}}) {
      std::vector<float> a = random_numbers(s.m * s.k, 1);
      Blocks w = random_blocks(s.n * s.k, nibbles, 2);
      const std::vector<double> sums = product(a, w.weights, s.m, s.n, s.k, 1, s.k);
      for (const Epilogue& epilogue : epilogues_of(s)) {
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
