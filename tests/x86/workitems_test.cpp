// Kernels written for one element a workitem, at every workgroup size.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <regex>

#include "kernel_harness.h"

namespace loom::test {
namespace {

constexpr uint32_t kSizes[] = {1, 7, 64, 1024};

std::string around(uint32_t size, std::string_view body) {
  return fmt::format(R"(kernel.def export("k") @k() {{
  %one = index.constant 1 : index
  %size = index.constant {} : index
  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%size, %one, %one) : index
}} launch(%rows: index, %columns: index, %from: buffer, %other: buffer, %to: buffer) where [range(%rows, 1, 1048576), range(%columns, 1, 1048576)] {{
  %base = index.constant 0 : offset
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %size = index.constant {} : index
  %none = scalar.constant 0.0 : f32
  %a, %b, %c = buffer.assume.noalias %from, %other, %to : buffer, buffer, buffer
  %row = kernel.workgroup.id<x> : index
  %item = kernel.workitem.id<x> : index
  %source = buffer.view %a[%base] : buffer -> view<[%rows]x[%columns]xf32>
  %target = buffer.view %c[%base] : buffer -> view<[%rows]x[%columns]xf32>
{}  kernel.return
}}
)",
                     size, size, body);
}

// Each of the columns of a row, over the row's sum.
std::string row_kernel(uint32_t size) {
  return around(
      size, R"(  %part = scf.for %i = [%item to %columns step %size](%sum = %none : f32) -> (f32) {
    %x = view.load %source[%row, %i] : view<[%rows]x[%columns]xf32> -> f32
    %e = scalar.expf %x : f32
    %next = scalar.addf<reassoc> %sum, %e : f32
    scf.yield %next : f32
  }
  %sum = kernel.workgroup.reduce<addf> %part : f32
  scf.for %i = [%item to %columns step %size] {
    %x = view.load %source[%row, %i] : view<[%rows]x[%columns]xf32> -> f32
    %e = scalar.expf %x : f32
    %q = scalar.divf %e, %sum : f32
    view.store %q, %target[%row, %i] : f32, view<[%rows]x[%columns]xf32>
  }
)");
}

// target[row, j] = sum over k of source[row, k] (other[k, j] + j), without a barrier.
std::string product_kernel(uint32_t size) {
  return around(size,
                R"(  %weights = buffer.view %b[%base] : buffer -> view<[%columns]x[%columns]xf32>
  scf.for %j = [%item to %columns step %size] {
    %j_word = index.cast %j : index to i32
    %addend = scalar.sitofp %j_word : i32 to f32
    %sum = scf.for %k = [%zero to %columns step %one](%acc = %none : f32) -> (f32) {
      %x = view.load %source[%row, %k] : view<[%rows]x[%columns]xf32> -> f32
      %w = view.load %weights[%k, %j] : view<[%columns]x[%columns]xf32> -> f32
      %moved = scalar.addf %w, %addend : f32
      %next = scalar.fmaf %x, %moved, %acc : f32
      scf.yield %next : f32
    }
    view.store %sum, %target[%row, %j] : f32, view<[%rows]x[%columns]xf32>
  }
)");
}

// A row of `size` elements through workgroup storage, turned around.
std::string turn_kernel(uint32_t size) {
  return around(size, fmt::format(R"(  %bytes = index.constant {} : offset
  %last = index.constant {} : index
  %storage = buffer.alloca<workgroup> align(64) %bytes : buffer
  %tile = buffer.view %storage[%base] : buffer -> view<{}xf32>
  %x = view.load %source[%row, %item] : view<[%rows]x[%columns]xf32> -> f32
  %e = scalar.expf %x : f32
  view.store %e, %tile[%item] : f32, view<{}xf32>
  kernel.barrier<workgroup> scope(workgroup) ordering(acq_rel)
  %mirror = index.sub %last, %item : index
  %y = view.load %tile[%mirror] : view<{}xf32> -> f32
  %z = scalar.subf %y, %x : f32
  view.store %z, %target[%row, %item] : f32, view<[%rows]x[%columns]xf32>
)",
                                  size * 4, size - 1, size, size, size));
}

// C = A B in tiles of 16 x 16 workitems: two axes, a loop of barriers around one without.
constexpr std::string_view kTiles = R"(kernel.def export("k") @k() {
  %one = index.constant 1 : index
  %side = index.constant 16 : index
  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%side, %side, %one) : index
} launch(%n: index, %a: buffer, %b: buffer, %c: buffer) where [range(%n, 16, 1048576), mul(%n, 16)] {
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %side = index.constant 16 : index
  %bytes = index.constant 1024 : offset
  %base = index.constant 0 : offset
  %none = scalar.constant 0.0 : f32
  %group_x = kernel.workgroup.id<x> : index
  %group_y = kernel.workgroup.id<y> : index
  %x = kernel.workitem.id<x> : index
  %y = kernel.workitem.id<y> : index
  %column = index.madd %group_x, %side, %x : index
  %row = index.madd %group_y, %side, %y : index
  %left = buffer.view %a[%base] : buffer -> view<[%n]x[%n]xf32>
  %right = buffer.view %b[%base] : buffer -> view<[%n]x[%n]xf32>
  %target = buffer.view %c[%base] : buffer -> view<[%n]x[%n]xf32>
  %left_storage = buffer.alloca<workgroup> align(64) %bytes : buffer
  %right_storage = buffer.alloca<workgroup> align(64) %bytes : buffer
  %left_tile = buffer.view %left_storage[%base] : buffer -> view<16x16xf32>
  %right_tile = buffer.view %right_storage[%base] : buffer -> view<16x16xf32>
  %sum = scf.for %t = [%zero to %n step %side](%acc = %none : f32) -> (f32) {
    %left_column = index.add %t, %x : index
    %right_row = index.add %t, %y : index
    %l = view.load %left[%row, %left_column] : view<[%n]x[%n]xf32> -> f32
    %r = view.load %right[%right_row, %column] : view<[%n]x[%n]xf32> -> f32
    view.store %l, %left_tile[%y, %x] : f32, view<16x16xf32>
    view.store %r, %right_tile[%y, %x] : f32, view<16x16xf32>
    kernel.barrier<workgroup> scope(workgroup) ordering(acq_rel)
    %next = scf.for %q = [%zero to %side step %one](%partial = %acc : f32) -> (f32) {
      %u = view.load %left_tile[%y, %q] : view<16x16xf32> -> f32
      %v = view.load %right_tile[%q, %x] : view<16x16xf32> -> f32
      %more = scalar.fmaf %u, %v, %partial : f32
      scf.yield %more : f32
    }
    kernel.barrier<workgroup> scope(workgroup) ordering(acq_rel)
    scf.yield %next : f32
  }
  view.store %sum, %target[%row, %column] : f32, view<[%n]x[%n]xf32>
  kernel.return
}
)";

// One element each, where there is one.
std::string element_kernel(uint32_t size) {
  return around(size, R"(  %i = kernel.workitem.dispatch.id<x> : index
  %inside = index.cmp slt, %i, %columns : index
  scf.if %inside {
    %x = view.load %source[%zero, %i] : view<[%rows]x[%columns]xf32> -> f32
    %y = scalar.geluf<tanh> %x : f32
    view.store %y, %target[%zero, %i] : f32, view<[%rows]x[%columns]xf32>
  }
)");
}

class Workitems : public ::testing::TestWithParam<uint32_t> {
 protected:
  static constexpr float kUntouched = -77;

  // Runs both tiers on `groups` workgroups and compares what they leave with `expected`.
  void check(const std::string& text, uint32_t rows, uint32_t columns, uint32_t groups,
             const std::function<double(uint32_t row, uint32_t column)>& expected,
             double tolerance = 1e-5) {
    if (engine_ == nullptr) engine_ = JitEngine::create(diagnostics_);
    ASSERT_NE(engine_, nullptr);
    if (text != text_) {
      text_ = text;
      kernels_.clear();
      Fixture fixture(text);
      ASSERT_TRUE(fixture.module.has_value());
      EXPECT_EQ(llvm_problems(*fixture.module), "");
      for (const JitTier tier : {JitTier::Fast, JitTier::Optimized}) {
        auto kernel = engine_->add(*fixture.module, fixture.module->symbol("k"), {.tier = tier},
                                   fixture.diagnostics);
        ASSERT_TRUE(kernel.has_value()) << messages(fixture.diagnostics);
        kernels_.push_back(std::move(*kernel));
      }
    }
    for (const JitKernel& kernel : kernels_) {
      // A guard behind the end.
      std::vector<float> to(size_t{rows} * columns + 64, kUntouched);
      run(kernel.entry(), {rows, columns, slot(from_.data()), slot(other_.data()), slot(to.data())},
          {.count = {groups, 1, 1}, .size = {GetParam(), 1, 1}});
      for (uint32_t row = 0; row < rows; ++row) {
        for (uint32_t column = 0; column < columns; ++column) {
          const double want = expected(row, column);
          ASSERT_NEAR(to[row * columns + column], want, tolerance * (1 + std::fabs(want)))
              << rows << "x" << columns << " at " << row << ", " << column;
        }
      }
      for (size_t i = to.size() - 64; i < to.size(); ++i) ASSERT_EQ(to[i], kUntouched);
    }
  }
  double from(uint32_t i) const { return from_[i]; }

  static std::vector<float> numbers(size_t count, double scale) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>(scale * std::sin(static_cast<double>(i) * 0.7));
    }
    return values;
  }

  std::vector<float> from_ = numbers(8192, 2);
  std::vector<float> other_ = numbers(65536, 1);
  Diagnostics diagnostics_;
  std::unique_ptr<JitEngine> engine_;
  std::string text_;
  std::vector<JitKernel> kernels_;
};

TEST_P(Workitems, RowsOfAnyLengthAreNormalized) {
  for (const uint32_t columns :
       {1u, 5u, 6u, 7u, 8u, 63u, 64u, 65u, 127u, 1023u, 1024u, 1029u, 2050u}) {
    std::vector<double> sums(3);
    for (uint32_t i = 0; i < 3 * columns; ++i) sums[i / columns] += std::exp(from(i));
    check(row_kernel(GetParam()), 3, columns, 3, [&](uint32_t row, uint32_t column) {
      return std::exp(from(row * columns + column)) / sums[row];
    });
  }
}

TEST_P(Workitems, ProductsGoThroughALoopInALoop) {
  for (const uint32_t columns : {1u, 6u, 7u, 15u, 64u, 70u, 200u}) {
    check(
        product_kernel(GetParam()), 2, columns, 2,
        [&](uint32_t row, uint32_t column) {
          double sum = 0;
          for (uint32_t k = 0; k < columns; ++k) {
            sum += from(row * columns + k) * (double{other_[k * columns + column]} + column);
          }
          return sum;
        },
        1e-3);
  }
}

TEST_P(Workitems, BarriersSplitTheLoops) {
  const uint32_t size = GetParam();
  check(turn_kernel(size), 4, size, 4, [&](uint32_t row, uint32_t column) {
    return std::exp(from(row * size + size - 1 - column)) - from(row * size + column);
  });
}

TEST_P(Workitems, ElementsEndWhereTheyEnd) {
  const uint32_t size = GetParam();
  for (const uint32_t columns : {1u, 6u, 7u, 8u, 63u, 64u, 100u, 1024u, 3000u}) {
    check(element_kernel(size), 1, columns, (columns + size - 1) / size,
          [&](uint32_t, uint32_t column) {
            const double x = from(column);
            return x / (1 + std::exp(-2 * 0.7978845608028654 * (x + 0.044715 * x * x * x)));
          });
  }
}

// Neighbours are lanes: packed arithmetic, and no lane is collected by itself.
TEST_P(Workitems, AreVectors) {
  const uint32_t size = GetParam();
  for (const auto& text : {row_kernel(size), product_kernel(size), element_kernel(size)}) {
    Fixture fixture(text);
    ASSERT_TRUE(fixture.module.has_value());
    for (const char* const cpu : {"x86-64-v3", "x86-64-v4"}) {
      const auto code =
          compile_x86(*fixture.module, {}, OutputForm::Assembly, {.cpu = cpu}, fixture.diagnostics);
      ASSERT_TRUE(code.has_value()) << messages(fixture.diagnostics);
      // The loop over k of a workitem of its own adds in order, one number after the other.
      if (size == 1 && text == product_kernel(size)) continue;
      EXPECT_EQ(code->find("gather"), std::string::npos) << cpu << *code;
      static const std::regex kPacked("vfn?m(add|sub)[0-9]+p[sd]");
      const bool packed = std::regex_search(*code, kPacked);
      EXPECT_TRUE(packed) << cpu << *code;
    }
  }
}

TEST(Tiles, AreMultipliedAlongX) {
  constexpr uint32_t kSide = 48;
  Fixture fixture{std::string(kTiles)};
  ASSERT_TRUE(fixture.module.has_value());
  EXPECT_EQ(llvm_problems(*fixture.module), "");
  const auto engine = JitEngine::create(fixture.diagnostics);
  ASSERT_NE(engine, nullptr);
  std::vector<float> a(kSide * kSide);
  std::vector<float> b(kSide * kSide);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i % 7) - 3;
    b[i] = static_cast<float>(i % 11) - 5;
  }
  for (const JitTier tier : {JitTier::Fast, JitTier::Optimized}) {
    auto kernel = engine->add(*fixture.module, fixture.module->symbol("k"), {.tier = tier},
                              fixture.diagnostics);
    ASSERT_TRUE(kernel.has_value()) << messages(fixture.diagnostics);
    std::vector<float> c(a.size(), -1);
    run(kernel->entry(), {kSide, slot(a.data()), slot(b.data()), slot(c.data())},
        {.count = {kSide / 16, kSide / 16, 1}, .size = {16, 16, 1}});
    for (uint32_t i = 0; i < kSide; ++i) {
      for (uint32_t j = 0; j < kSide; ++j) {
        float sum = 0;
        for (uint32_t k = 0; k < kSide; ++k) sum += a[i * kSide + k] * b[k * kSide + j];
        ASSERT_EQ(c[i * kSide + j], sum) << i << ", " << j;
      }
    }
  }
  const auto code = compile_x86(*fixture.module, {}, OutputForm::Assembly, {.cpu = "x86-64-v3"},
                                fixture.diagnostics);
  ASSERT_TRUE(code.has_value());
  EXPECT_NE(code->find("vfmadd231ps"), std::string::npos) << *code;
  EXPECT_EQ(code->find("gather"), std::string::npos) << *code;
}

INSTANTIATE_TEST_SUITE_P(Sizes, Workitems, ::testing::ValuesIn(kSizes),
                         [](const auto& chosen) { return fmt::format("Of{}", chosen.param); });

}  // namespace
}  // namespace loom::test
