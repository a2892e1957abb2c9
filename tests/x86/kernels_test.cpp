#include "kernel_harness.h"

namespace loom::test {
namespace {

class Kernels : public ::testing::TestWithParam<JitTier> {
 protected:
  static JitEngine& engine() {
    static Diagnostics diagnostics;
    static const std::unique_ptr<JitEngine> made = JitEngine::create(diagnostics);
    return *made;
  }
  // The kernel `name` of the fixture, compiled.
  JitKernel compile(const std::string& text, const std::string& name,
                    DenormalMode denormals = DenormalMode::Keep) {
    Fixture fixture(text);
    if (!fixture.module) return {};
    EXPECT_EQ(llvm_problems(*fixture.module), "");
    auto kernel = engine().add(*fixture.module, fixture.module->symbol(name),
                               {.tier = GetParam(), .denormals = denormals}, fixture.diagnostics);
    EXPECT_TRUE(kernel.has_value()) << messages(fixture.diagnostics);
    return kernel ? std::move(*kernel) : JitKernel();
  }
};

INSTANTIATE_TEST_SUITE_P(Tiers, Kernels, ::testing::Values(JitTier::Fast, JitTier::Optimized),
                         [](const auto& chosen) {
                           return chosen.param == JitTier::Fast ? "Fast" : "Optimized";
                         });

TEST_P(Kernels, WritesOnlyItsWorkgroups) {
  const JitKernel kernel = compile(Fixture::read("elementwise.loom"), "project_block");
  ASSERT_NE(kernel.entry(), nullptr);
  const std::vector<float> weights = {2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<float> input = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> output(8, -1);
  const LoomDispatchShape shape{{8, 1, 1}, {1, 1, 1}};
  const std::vector<uint64_t> args = {slot(weights.data()), slot(input.data()),
                                      slot(output.data())};
  kernel.entry()(args.data(), &shape, 2, 5);
  EXPECT_EQ(output, (std::vector<float>{-1, -1, 12, 20, 30, -1, -1, -1}));
  kernel.entry()(args.data(), &shape, 4, 4);
  kernel.entry()(args.data(), &shape, 0, 8);
  EXPECT_EQ(output, (std::vector<float>{2, 6, 12, 20, 30, 42, 56, 72}));
}

TEST_P(Kernels, CallsFunctionsOnWindowsOfViews) {
  const JitKernel kernel = compile(Fixture::read("control.loom"), "row_sums");
  ASSERT_NE(kernel.entry(), nullptr);
  const std::vector<float> input = {99, 99, 1,  2, 3,  99,  // one element is skipped
                                    99, 90, 60, 5, 99, 99, -50, 2, 3, 99};
  std::vector<float> output(6, 0);
  run(kernel.entry(), {3, 5, slot(input.data()), slot(output.data())}, {});
  EXPECT_EQ(output, (std::vector<float>{6, 3, 100, 5, -10, 3}));
}

TEST_P(Kernels, CarriesViewsThroughLoopsAndBranches) {
  const JitKernel kernel = compile(Fixture::read("control.loom"), "ping_pong");
  ASSERT_NE(kernel.entry(), nullptr);
  for (const bool pick : {true, false}) {
    std::vector<int32_t> first = {0, 10, 0, 20, 0, 30, 0, 40};
    std::vector<int32_t> second = {0, 0, 0, 50, 0, 0, 0, 0};
    std::vector<int32_t> output(2, 0);
    // Rounds alternate: rows 0 and 2 go from first to second, rows 1 and 3 back.
    run(kernel.entry(), {3, slot(first.data()), slot(second.data()), pick, slot(output.data())},
        {});
    EXPECT_EQ(first, (std::vector<int32_t>{0, 10, 0, 51, 0, 30, 0, 40}));
    EXPECT_EQ(second, (std::vector<int32_t>{0, 10, 0, 50, 0, 34, 0, 0}));
    const int32_t expected = pick ? 50 : 51;
    EXPECT_EQ(output, (std::vector<int32_t>{expected, expected}));
  }
}

TEST_P(Kernels, LoopsEndAtTheEdgesOfTheDomain) {
  const JitKernel kernel = compile(Fixture::read("control.loom"), "count_rounds");
  ASSERT_NE(kernel.entry(), nullptr);
  constexpr int64_t kMin = INT64_MIN;
  constexpr int64_t kMax = INT64_MAX;
  struct Bounds {
    int64_t low, high, step, rounds, last;
  };
  for (const Bounds& b :
       {Bounds{0, 10, 3, 4, 9}, Bounds{5, 5, 1, 0, 0}, Bounds{7, 2, 1, 0, 0}, Bounds{0, 9, 3, 3, 6},
        Bounds{kMax - 2, kMax, 1, 2, kMax - 1}, Bounds{0, kMax, kMax / 2 + 1, 2, kMax / 2 + 1},
        Bounds{kMin, kMax, kMax, 3, kMax - 1}, Bounds{kMin, kMin + 2, 5, 1, kMin}}) {
    std::vector<int64_t> output(2, -1);
    run(kernel.entry(),
        {static_cast<uint64_t>(b.low), static_cast<uint64_t>(b.high), static_cast<uint64_t>(b.step),
         slot(output.data())},
        {});
    EXPECT_EQ(output, (std::vector<int64_t>{b.rounds, b.last})) << b.low << " " << b.high;
  }
}

TEST_P(Kernels, WorkitemsKnowTheirPlace) {
  const JitKernel kernel = compile(Fixture::read("queries.loom"), "identify");
  ASSERT_NE(kernel.entry(), nullptr);
  const LoomDispatchShape shape{{2, 3, 4}, {3, 2, 5}};
  const uint32_t width = 6;
  const uint32_t height = 6;
  const uint32_t depth = 20;
  std::vector<int32_t> output(size_t{width} * height * depth * 8, -1);
  const std::vector<uint64_t> args = {slot(output.data())};
  for (const auto& [begin, end] : {std::pair{0, 1}, {1, 7}, {7, 8}, {8, 23}, {23, 24}}) {
    kernel.entry()(args.data(), &shape, static_cast<uint64_t>(begin), static_cast<uint64_t>(end));
  }
  size_t place = 0;
  for (uint32_t z = 0; z < depth; ++z) {
    for (uint32_t y = 0; y < height; ++y) {
      for (uint32_t x = 0; x < width; ++x, place += 8) {
        const uint32_t item[] = {x % 3, y % 2, z % 5};
        const std::vector<uint32_t> expected = {
            item[0], item[1], item[2], x / 3, y / 2, z / 5, item[0] + 3 * (item[1] + 2 * item[2]),
            30};
        const auto* const found = output.data() + place;
        ASSERT_EQ(std::vector<uint32_t>(found, found + 8), expected) << x << " " << y << " " << z;
      }
    }
  }
}

TEST_P(Kernels, TakesArgumentsOfEveryType) {
  const JitKernel kernel = compile(Fixture::read("args.loom"), "store_args");
  ASSERT_NE(kernel.entry(), nullptr);
  std::vector<uint8_t> output(56, 0);
  // Each slot carries other bits above the width of its type.
  run(kernel.entry(),
      {0x1122334455667788, 0x0102030405060708, 0xff01, 0xff22, 0xff3344, 0xff55667788,
       0x99aabbccddeeff01, 0xff12, 0xff34, 0xff5678, 0xff9abc, 0xffdef01234, 0x56789abcdef01234,
       slot(output.data())},
      {});
  const std::vector<uint8_t> expected = {
      0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 8,    7,    6,    5,    4,    3,
      2,    1,    1,    0x22, 0x44, 0x33, 0x88, 0x77, 0x66, 0x55, 0x01, 0xff, 0xee, 0xdd,
      0xcc, 0xbb, 0xaa, 0x99, 0x12, 0x34, 0x78, 0x56, 0xbc, 0x9a, 0,    0,    0x34, 0x12,
      0xf0, 0xde, 0,    0,    0,    0,    0x34, 0x12, 0xf0, 0xde, 0xbc, 0x9a, 0x78, 0x56};
  EXPECT_EQ(output, expected);
}

TEST_P(Kernels, KeepsOrFlushesDenormals) {
  const std::string text = Fixture::read("args.loom");
  const JitKernel keep = compile(text, "halve", DenormalMode::Keep);
  const JitKernel flush = compile(text, "halve", DenormalMode::Flush);
  ASSERT_NE(keep.entry(), nullptr);
  ASSERT_NE(flush.entry(), nullptr);
  std::vector<float> data = {0x1p-126f, -1};
  run(keep.entry(), {slot(data.data())}, {});
  EXPECT_EQ(data[1], 0x1p-127f);
  run(flush.entry(), {slot(data.data())}, {});
  EXPECT_EQ(data[1], 0.0f);
  volatile float denormal = 0x1p-126f;
  EXPECT_EQ(denormal * 0.5f, 0x1p-127f) << "the caller's mode is kept";
}

}  // namespace
}  // namespace loom::test
