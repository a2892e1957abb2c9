#include "both.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "loom/base/failed_checks.h"
#include "loom/dialect/numeric.h"
#include "loom/target/llvm/meetings.h"
#include "loom/target/x86/compile.h"

namespace loom::ops {
namespace {

JitEngine& engine() {
  static Diagnostics diagnostics;
  static const std::unique_ptr<JitEngine> made = JitEngine::create(diagnostics);
  return *made;
}

ScalarValue element_at(const Buffer& buffer, size_t i) {
  const size_t width = scalar_bytes(buffer.element);
  ScalarValue value{buffer.element, 0};
  std::memcpy(&value.bits, buffer.bytes.data() + i * width, width);
  return value;
}

}  // namespace

Buffer special_floats(ScalarKind element, size_t count, uint64_t seed) {
  Buffer made = zeros(element, count);
  std::mt19937_64 random(seed);
  const size_t width = scalar_bytes(element);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const double specials[] = {0.0,        -0.0,    1.0,   -1.0,   0.5,    2.0,    3.0,
                             1e-7,       -1e-7,   6e-8,  65504,  -65520, 448,    57344,
                             3.4e38,     -3.4e38, 1e-45, 1e-39,  -1e-40, 1e-310, kInfinity,
                             -kInfinity, kNan,    127.5, -128.5, 255.5};
  for (size_t i = 0; i < count; ++i) {
    ScalarValue value{element, random()};
    if (random() % 4 == 0) {
      value = from_double(element, specials[random() % std::size(specials)]);
    } else if (random() % 2 == 0) {
      value = from_double(element, std::ldexp(static_cast<double>(random() % 2001) - 1000.0,
                                              static_cast<int>(random() % 12) - 10));
    }
    std::memcpy(made.bytes.data() + i * width, &value.bits, width);
  }
  return made;
}

Program::Program(std::string text) : text_(std::move(text)) {
  Diagnostics diagnostics;
  const FileId file = files_.add_text("test.loom", text_);
  module_ = parse_text(files_, file, diagnostics);
  if (module_ && !verify_module(*module_, diagnostics)) module_.reset();
  problems = messages(diagnostics);
  EXPECT_TRUE(module_.has_value()) << problems << text_;
}

void Program::run(LoomKernelEntry entry, std::vector<Buffer>& buffers,
                  const LoomDispatchShape& shape) {
  std::vector<uint64_t> slots;
  slots.reserve(buffers.size());
  for (Buffer& buffer : buffers) slots.push_back(std::bit_cast<uint64_t>(buffer.bytes.data()));
  entry(slots.data(), &shape, 0, uint64_t{shape.count[0]} * shape.count[1] * shape.count[2]);
  failed = take_failed_check(slots.data(), slots.size());
}

bool Program::compiles() {
  Diagnostics diagnostics;
  const auto code =
      engine().add(*module_, module_->symbol("k"), {.tier = JitTier::Fast}, diagnostics);
  problems = messages(diagnostics);
  return code.has_value();
}

std::string Program::assembly(const std::string& cpu) {
  Diagnostics diagnostics;
  const std::vector<OpId> kernels = {module_->symbol("k")};
  const auto text = compile_x86(*module_, kernels, OutputForm::Assembly, {.cpu = cpu}, diagnostics);
  problems = messages(diagnostics);
  return text.value_or("");
}

std::optional<std::vector<Buffer>> Program::interpret(std::vector<Buffer> buffers,
                                                      std::vector<ScalarValue> workload) {
  Diagnostics diagnostics;
  std::vector<InterpArgument> arguments;
  arguments.reserve(buffers.size());
  for (Buffer& buffer : buffers) {
    arguments.emplace_back(std::in_place_type<InterpStorage>, "b", buffer.bytes);
  }
  InterpOptions options;
  options.subgroup_size = static_cast<uint32_t>(subgroup_lanes(*module_, module_->symbol("k")));
  const bool good = run_kernel(*module_, "k", workload, arguments, options, diagnostics);
  problems = messages(diagnostics);
  if (!good) return std::nullopt;
  return buffers;
}

std::optional<std::vector<Buffer>> Program::compute(std::vector<Buffer> buffers, JitTier tier,
                                                    LoomDispatchShape shape) {
  Diagnostics diagnostics;
  const auto code = engine().add(*module_, module_->symbol("k"), {.tier = tier}, diagnostics);
  problems = messages(diagnostics);
  if (!code) return std::nullopt;
  run(code->entry(), buffers, shape);
  return buffers;
}

std::optional<std::vector<Buffer>> Program::compute_for(std::vector<Buffer> buffers,
                                                        const std::string& cpu,
                                                        LoomDispatchShape shape) {
  Diagnostics diagnostics;
  const std::vector<OpId> kernels = {module_->symbol("k")};
  const auto object = compile_x86(*module_, kernels, OutputForm::Object, {.cpu = cpu}, diagnostics);
  problems = messages(diagnostics);
  if (!object) return std::nullopt;
  const auto code = engine().add_object(*object, "k", diagnostics);
  problems = messages(diagnostics);
  if (!code) return std::nullopt;
  run(code->entry(), buffers, shape);
  return buffers;
}

void Program::expect_same(const std::vector<Buffer>& buffers, LoomDispatchShape shape,
                          std::vector<ScalarValue> workload, Tolerance tolerance) {
  if (!good()) return;
  const auto expected = interpret(buffers, std::move(workload));
  ASSERT_TRUE(expected.has_value()) << problems << text_;
  for (const JitTier tier : {JitTier::Fast, JitTier::Optimized}) {
    SCOPED_TRACE(tier == JitTier::Fast ? "tier fast" : "tier optimized");
    const auto actual = compute(buffers, tier, shape);
    ASSERT_TRUE(actual.has_value()) << problems << text_;
    EXPECT_EQ(failed, std::nullopt);
    expect_equal(*expected, *actual, tolerance);
    if (::testing::Test::HasFailure()) FAIL() << text_;
  }
  for (const char* const cpu : {"x86-64", "x86-64-v3"}) {
    SCOPED_TRACE(cpu);
    const auto actual = compute_for(buffers, cpu, shape);
    ASSERT_TRUE(actual.has_value()) << problems << text_;
    EXPECT_EQ(failed, std::nullopt);
    expect_equal(*expected, *actual, tolerance);
    if (::testing::Test::HasFailure()) FAIL() << text_;
  }
}

void expect_equal(const std::vector<Buffer>& expected, const std::vector<Buffer>& actual,
                  Tolerance tolerance) {
  for (size_t b = 0; b < expected.size(); ++b) {
    const size_t count = expected[b].bytes.size() / scalar_bytes(expected[b].element);
    double largest = 0;
    for (size_t i = 0; i < count && is_float(expected[b].element); ++i) {
      const double value = std::fabs(to_double(element_at(expected[b], i)));
      if (std::isfinite(value)) largest = std::max(largest, value);
    }
    for (size_t i = 0; i < count; ++i) {
      const ScalarValue wanted = element_at(expected[b], i);
      const ScalarValue got = element_at(actual[b], i);
      if (wanted.bits == got.bits) continue;
      if (is_float(wanted.kind) && is_nan(wanted) && is_nan(got)) continue;
      if (is_float(wanted.kind) && tolerance.share > 0 &&
          std::fabs(to_double(wanted) - to_double(got)) <= tolerance.share * largest) {
        continue;
      }
      FAIL() << "buffer " << b << ", element " << i << ": the interpreter has " << to_double(wanted)
             << " (bits " << fmt::format("{:x}", wanted.bits) << "), x86-64 has " << to_double(got)
             << " (bits " << fmt::format("{:x}", got.bits) << ")";
    }
  }
}

}  // namespace loom::ops
