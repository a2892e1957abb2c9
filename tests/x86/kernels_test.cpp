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

}  // namespace
}  // namespace loom::test
