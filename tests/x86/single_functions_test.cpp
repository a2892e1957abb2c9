// The elementary functions of f32: how far from the exact value, and that scalars, vectors of any
// width and both tiers give the same. LOOM_FLOAT_STEP=1 takes every f32 as the operand; without it
// every 65539th one and the special ones.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "kernel_harness.h"
#include "loom/dialect/eval.h"
#include "loom/dialect/op_info.h"

namespace loom::test {
namespace {

using enum OpKind;

struct Function {
  const char* name;  // of the test
  const char* op;    // without its dialect
  const char* attrs;
  OpKind kind;
  EvalAttrs eval;
  double most_ulp = 2;
  // In place of ulp, where it is not 0: |error| / max(|exact|, |operand|) and |error|.
  double most_share = 0;
  double most_absolute = 0;
};

EvalAttrs form(GeluForm form, double scale = 0, uint64_t flags = 0) {
  return {.choice = static_cast<uint64_t>(form), .flags = flags, .scale = scale};
}

const Function kFunctions[] = {
    {"exp", "expf", "", ScalarExpF, {}},
    {"exp2", "exp2f", "", ScalarExp2F, {}},
    {"expm1", "expm1f", "", ScalarExpm1F, {}},
    {"log", "logf", "", ScalarLogF, {}},
    {"log2", "log2f", "", ScalarLog2F, {}},
    {"log10", "log10f", "", ScalarLog10F, {}},
    {"log1p", "log1pf", "", ScalarLog1pF, {}},
    {"sqrt", "sqrtf", "", ScalarSqrtF, {}, 0.5},
    {"rsqrt", "rsqrtf", "", ScalarRsqrtF, {}},
    {"sin", "sinf", "", ScalarSinF, {}},
    {"cos", "cosf", "", ScalarCosF, {}},
    {"tan", "tanf", "", ScalarTanF, {}},
    {"sin_turns", "sinturnsf", "", ScalarSinTurnsF, {}},
    {"cos_turns", "costurnsf", "", ScalarCosTurnsF, {}},
    {"asin", "asinf", "", ScalarAsinF, {}},
    {"acos", "acosf", "", ScalarAcosF, {}},
    {"atan", "atanf", "", ScalarAtanF, {}},
    {"cbrt", "cbrtf", "", ScalarCbrtF, {}},
    {"tanh", "tanhf", "", ScalarTanhF, {}},
    {"erf", "erff", "", ScalarErfF, {}},
    {"erfc", "erfcf", "", ScalarErfcF, {}},
    {"logistic", "logisticf", "", ScalarLogisticF, {}},
    {"silu", "siluf", "", ScalarSiluF, {}},
    {"softplus", "softplusf", "", ScalarSoftplusF, {}},
    {"gelu_erf", "geluf<erf>", "", ScalarGeluF, form(GeluForm::Erf)},
    {"gelu_tanh", "geluf<tanh>", "", ScalarGeluF, form(GeluForm::Tanh)},
    {"gelu_logistic", "geluf<logistic>", " {scale = 1.702}", ScalarGeluF,
     form(GeluForm::Logistic, 1.702)},
    {"afn_exp", "expf<afn>", "", ScalarExpF, {.flags = kAfn}},
    {"afn_exp2", "exp2f<afn>", "", ScalarExp2F, {.flags = kAfn}},
    {"afn_log", "logf<afn>", "", ScalarLogF, {.flags = kAfn}},
    {"afn_tanh", "tanhf<afn>", "", ScalarTanhF, {.flags = kAfn}, 0, 0, 0x1p-21},
    {"afn_logistic", "logisticf<afn>", "", ScalarLogisticF, {.flags = kAfn}, 4},
    {"afn_silu", "siluf<afn>", "", ScalarSiluF, {.flags = kAfn}, 0, 0x1p-21},
    {"afn_gelu_erf", "geluf<erf,afn>", "", ScalarGeluF, form(GeluForm::Erf, 0, kAfn), 0, 0x1p-21},
    {"afn_gelu_tanh", "geluf<tanh,afn>", "", ScalarGeluF, form(GeluForm::Tanh, 0, kAfn), 0,
     0x1p-21},
};

constexpr uint32_t kBatch = 1 << 14;  // a multiple of all widths

// A kernel whose workgroups have one vector each, or one scalar where `lanes` is 0.
std::string kernel_text(const Function& one, unsigned lanes, std::string_view operand = "%x") {
  const std::string type = lanes == 0 ? "f32" : fmt::format("vector<{}xf32>", lanes);
  const std::string memory = lanes == 0 ? "view" : "vector";
  return fmt::format(R"(kernel.def @k() {{
  %unit = index.constant 1 : index
  kernel.launch.config workgroups(%unit, %unit, %unit) workgroup_size(%unit, %unit, %unit) : index
}} launch(%first: buffer, %second: buffer, %to: buffer) {{
  %base = index.constant 0 : offset
  %width = index.constant {width} : index
  %group = kernel.workgroup.id<x> : index
  %i = index.mul %group, %width : index
  %v = buffer.view %first[%base] : buffer -> view<{batch}xf32>
  %w = buffer.view %second[%base] : buffer -> view<{batch}xf32>
  %r = buffer.view %to[%base] : buffer -> view<{batch}xf32>
  %x = {memory}.load %v[%i] : view<{batch}xf32> -> {type}
  %y = {memory}.load %w[%i] : view<{batch}xf32> -> {type}
  %z = {dialect}.{op} {operand}{attrs} : {type}
  {memory}.store %z, %r[%i] : {type}, view<{batch}xf32>
  kernel.return
}}
)",
                     fmt::arg("width", std::max(lanes, 1u)), fmt::arg("batch", kBatch),
                     fmt::arg("memory", memory), fmt::arg("type", type),
                     fmt::arg("dialect", lanes == 0 ? "scalar" : "vector"), fmt::arg("op", one.op),
                     fmt::arg("operand", operand), fmt::arg("attrs", one.attrs));
}

struct Form {
  std::string name;
  JitKernel kernel;
  unsigned lanes;
  bool fuses;
};

std::vector<Form> compile_forms(JitEngine& engine, const Function& one, std::string_view operand) {
  std::vector<Form> forms;
  for (const unsigned lanes : {0u, 1u, 4u, 8u, 16u, 32u}) {
    Fixture fixture(kernel_text(one, lanes, operand));
    if (!fixture.module) return {};
    const OpId kernel = fixture.module->symbol("k");
    EXPECT_EQ(llvm_problems(*fixture.module), "");
    for (const JitTier tier : {JitTier::Fast, JitTier::Optimized}) {
      auto code = engine.add(*fixture.module, kernel, {.tier = tier}, fixture.diagnostics);
      EXPECT_TRUE(code.has_value()) << messages(fixture.diagnostics);
      if (!code) return {};
      forms.push_back(
          {fmt::format("{} lanes, {}", lanes, tier == JitTier::Fast ? "fast" : "optimized"),
           std::move(*code), lanes, true});
    }
    if (lanes != 0 && lanes != 8) continue;
    const auto object =
        compile_x86(*fixture.module, {}, OutputForm::Object, {}, fixture.diagnostics);
    EXPECT_TRUE(object.has_value()) << messages(fixture.diagnostics);
    auto code = engine.add_object(*object, "k", fixture.diagnostics);
    EXPECT_TRUE(code.has_value());
    forms.push_back({fmt::format("{} lanes, generic", lanes), std::move(*code), lanes, false});
  }
  return forms;
}

float from_word(uint32_t bits) { return std::bit_cast<float>(bits); }

// What one unit in the last place is worth at an exact value.
double unit_at(double exact) {
  const double size = std::max(std::fabs(exact), 0x1p-126);
  return std::ldexp(1.0, std::max(std::ilogb(size), -126) - 23);
}

double exact_value(const Function& one, float x, float y) {
  const ScalarValue operands[] = {from_double(ScalarKind::F64, double{x}),
                                  from_double(ScalarKind::F64, double{y})};
  ScalarValue result;
  const size_t arity = op_info(one.kind).operands.size();
  EXPECT_EQ(evaluate(one.kind, one.eval, std::span(operands).first(arity), ScalarKind::F64, result),
            EvalStatus::Ok);
  return to_double(result);
}

// How far off, as a multiple of what is allowed. With afn the sign of a zero is open, and so are
// results around the ends of the exponents.
double excess(const Function& one, float x, double exact, float actual) {
  if (std::isnan(exact) || std::isnan(actual)) {
    return std::isnan(exact) && std::isnan(actual) ? 0 : HUGE_VAL;
  }
  const bool approximate = (one.eval.flags & kAfn) != 0;
  const auto rounded = static_cast<float>(exact);
  if (!approximate && std::signbit(rounded) != std::signbit(actual)) return HUGE_VAL;
  if (rounded == actual) return 0;
  if (approximate && std::fabs(exact) < 0x1p-126 && std::fabs(actual) < 0x1p-126) return 0;
  if (approximate && std::fabs(exact) >= 0x1.6ap127 && std::isinf(actual)) return 0;
  if (std::isinf(rounded) || std::isinf(actual)) {
    // The largest number and infinity are neighbours.
    const float finite = std::isinf(actual) ? rounded : actual;
    return std::fabs(finite) == 0x1.fffffep127F ? 0.5 : HUGE_VAL;
  }
  const double error = std::fabs(double{actual} - exact);
  if (one.most_share != 0) {
    return error / (one.most_share * std::max(std::fabs(exact), std::fabs(double{x})));
  }
  if (one.most_absolute != 0) return error / one.most_absolute;
  return error / unit_at(exact) / one.most_ulp;
}

class SingleFunctions : public ::testing::TestWithParam<Function> {
 protected:
  // Runs batches of operands through all forms.
  class Runner {
   public:
    Runner(const Function& one, std::string_view operand) : one_(one) {
      static Diagnostics diagnostics;
      static const std::unique_ptr<JitEngine> engine = JitEngine::create(diagnostics);
      forms_ = compile_forms(*engine, one, operand);
    }
    ~Runner() {
      check();
      fmt::print("{}: {:.3f} of the bound, at {:#x} {:#x}\n", one_.name, worst_,
                 std::bit_cast<uint32_t>(worst_x_), std::bit_cast<uint32_t>(worst_y_));
    }
    void add(float x, float y = 0) {
      x_.push_back(x);
      y_.push_back(y);
      if (x_.size() == kBatch) check();
    }

   private:
    void check() {
      if (x_.empty()) return;
      const size_t count = x_.size();
      x_.resize(kBatch);
      y_.resize(kBatch);
      std::vector<double> exact(count);
      for (size_t i = 0; i < count; ++i) exact[i] = exact_value(one_, x_[i], y_[i]);
      std::vector<float> first;
      for (const Form& form : forms_) {
        std::vector<float> result(kBatch, -7);
        run(form.kernel.entry(), {slot(x_.data()), slot(y_.data()), slot(result.data())},
            {.count = {kBatch / std::max(form.lanes, 1u), 1, 1}});
        if (first.empty()) first = result;
        for (size_t i = 0; i < count && complaints_ < 5; ++i) {
          const bool same =
              std::bit_cast<uint32_t>(first[i]) == std::bit_cast<uint32_t>(result[i]) ||
              (std::isnan(first[i]) && std::isnan(result[i]));
          const double off = excess(one_, x_[i], exact[i], result[i]);
          if (off > worst_) {
            worst_ = off;
            worst_x_ = x_[i];
            worst_y_ = y_[i];
          }
          if (off <= 1 && (same || !form.fuses)) continue;
          ++complaints_;
          ADD_FAILURE() << one_.name << " (" << form.name << ") of "
                        << fmt::format(
                               "{} {:#x}, {} gives {} {:#x}, the first form {}, exactly {}: {}",
                               x_[i], std::bit_cast<uint32_t>(x_[i]), y_[i], result[i],
                               std::bit_cast<uint32_t>(result[i]), first[i], exact[i], off);
        }
      }
      x_.clear();
      y_.clear();
    }

    const Function& one_;
    std::vector<Form> forms_;
    std::vector<float> x_;
    std::vector<float> y_;
    unsigned complaints_ = 0;
    double worst_ = 0;
    float worst_x_ = 0;
    float worst_y_ = 0;
  };
};

const std::vector<float> kSpecial = [] {
  std::vector<float> values;
  for (const double value :
       {0.0,           0x1p-149,  0x1p-127,   0x1p-126,   0x1p-75,    1e-30,     1e-8,
        0x1p-12,       0.1,       0.25,       0.3,        0.5,        0.7,       0.70710678,
        0.75,          1.0,       1.25,       1.4142135,  1.5,        1.5707963, 2.0,
        3.0,           3.1415927, 4.0,        4.5,        5.0,        7.0,       8.0,
        9.0,           10.0,      13.0,       14.0,       16.0,       17.0,      31.5,
        44.0,          64.0,      86.0,       87.33,      87.34,      88.0,      88.37,
        88.72283,      88.72284,  103.97,     103.98,     104.0,      126.0,     127.0,
        127.5,         128.0,     149.0,      149.5,      150.0,      151.0,     1000.0,
        8388607.0,     8388608.0, 16777215.0, 16777216.0, 67108864.0, 1e10,      1e20,
        0x1.fffffep127}) {
    values.push_back(static_cast<float>(value));
  }
  values.push_back(HUGE_VALF);
  values.push_back(std::nanf(""));
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) {
    for (const float near :
         {std::nextafter(values[i], 0.0F), std::nextafter(values[i], HUGE_VALF)}) {
      values.push_back(near);
    }
  }
  const size_t positive = values.size();
  for (size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  return values;
}();

uint64_t step() {
  const char* const text = std::getenv("LOOM_FLOAT_STEP");
  return text == nullptr ? 65539 : std::max<uint64_t>(1, std::strtoull(text, nullptr, 10));
}

TEST_P(SingleFunctions, AreWithinTheirBound) {
  Runner runner(GetParam(), "%x");
  for (const float x : kSpecial) runner.add(x);
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += step()) {
    runner.add(from_word(static_cast<uint32_t>(bits)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SingleFunctions, ::testing::ValuesIn(kFunctions),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

// No call of a library and no table keeps the loop over workgroups from becoming vectors.
TEST_P(SingleFunctions, AreVectorsInLoopsOverScalars) {
  Fixture fixture(kernel_text(GetParam(), 0, "%x"));
  ASSERT_TRUE(fixture.module.has_value());
  for (const char* const cpu : {"", "x86-64-v3", "x86-64-v4"}) {
    const auto text =
        compile_x86(*fixture.module, {}, OutputForm::Assembly, {.cpu = cpu}, fixture.diagnostics);
    ASSERT_TRUE(text.has_value()) << messages(fixture.diagnostics);
    const std::string code = text->substr(0, text->find(".Lfunc_end0"));
    // SSE2 has no instruction that rounds to an integer.
    const bool rounds = GetParam().kind == ScalarSinTurnsF || GetParam().kind == ScalarCosTurnsF;
    if (cpu[0] == '\0' && rounds) continue;
    EXPECT_EQ(code.find("call"), std::string::npos) << cpu << "\n" << code;
    const bool wide = code.find("%ymm") != std::string::npos;
    const bool packed =
        code.find("mulp") != std::string::npos || code.find("sqrtps") != std::string::npos;
    EXPECT_TRUE(cpu[0] == '\0' ? packed : wide) << cpu << "\n" << code;
  }
}

class OfTwo : public SingleFunctions {
 protected:
  // All pairs of special values, and random ones: add(runner, random, number of the pair).
  template <class Add>
  void run_pairs(const Function& function, const Add& add) {
    Runner runner(function, "%x, %y");
    for (const float x : kSpecial) {
      for (const float y : kSpecial) runner.add(x, y);
    }
    std::mt19937 random(7);
    const uint64_t rounds = std::min<uint64_t>(400'000'000, uint64_t{1} << 32) / step();
    for (uint64_t i = 0; i < rounds; ++i) add(runner, random, i);
  }
};

TEST_F(OfTwo, PowerIsWithinItsBound) {
  const auto add = [](Runner& runner, std::mt19937& random, uint64_t i) {
    // Where results are finite: y log2(x) within the exponents.
    const float x = from_word(random());
    const double range = 150 / std::max(std::fabs(std::log2(std::fabs(double{x}))), 1e-30);
    const double share = std::ldexp(static_cast<double>(random()), -31) - 1;
    const float y = i % 3 == 0 ? from_word(random()) : static_cast<float>(share * range);
    runner.add(i % 2 == 0 ? x : std::fabs(x), y);
  };
  run_pairs({"pow", "powf", "", ScalarPowF, {}}, add);
}

TEST_F(OfTwo, AngleIsWithinItsBound) {
  const auto add = [](Runner& runner, std::mt19937& random, uint64_t i) {
    // Every other one is near a diagonal.
    const float y = from_word(random());
    const double share = 1 + std::ldexp(static_cast<double>(random()), -33);
    runner.add(y, i % 2 == 0 ? from_word(random()) : static_cast<float>(y * share));
  };
  run_pairs({"atan2", "atan2f", "", ScalarAtan2F, {}}, add);
}

}  // namespace
}  // namespace loom::test
