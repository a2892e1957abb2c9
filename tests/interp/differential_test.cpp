// Random kernels give the same bytes interpreted and compiled.
#include <bit>
#include <random>

#include "interp_harness.h"
#include "loom/target/x86/compile.h"
#include "loom/target/x86/jit.h"

namespace loom {
namespace {

constexpr size_t kItems = 32;

// Straight-line arithmetic on one i32 and one f32 for each workitem, a loop and private
// memory, over operations that are exact on every machine.
std::string random_kernel(uint32_t seed) {
  std::mt19937 random(seed);
  const auto roll = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  std::string text = R"(kernel.def export("k") @k(%n: index) {
  %one = index.constant 1 : index
  %size = index.constant 8 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%size, %one, %one) : index
} launch(%a: buffer, %b: buffer) {
  %base = index.constant 0 : offset
  %lo = index.constant 0 : index
  %step = index.constant 1 : index
  %times = index.constant 3 : index
  %bytes = index.constant 32 : offset
  %mask = scalar.constant 31 : i32
  %i = kernel.workitem.dispatch.id<x> : index
  %l = kernel.workitem.id<x> : index
  %av = buffer.view %a[%base] : buffer -> view<32xi32>
  %bv = buffer.view %b[%base] : buffer -> view<32xf32>
  %w = buffer.alloca<private> align(16) %bytes : buffer
  %wv = buffer.view %w[%base] : buffer -> view<8xi32>
  %i0 = view.load %av[%i] : view<32xi32> -> i32
  %f0 = view.load %bv[%i] : view<32xf32> -> f32
)";
  const char* ints[] = {"addi", "subi", "muli", "andi", "ori", "xori", "minsi", "maxui"};
  const char* floats[] = {"addf", "subf", "mulf", "divf", "minimumf", "maximumf", "minnumf"};
  unsigned i = 0, f = 0;
  for (unsigned k = 0; k < 16; ++k) {
    switch (roll(5)) {
      case 0:
        text += fmt::format("  %s{} = scalar.andi %i{}, %mask : i32\n", k, roll(i + 1));
        text += fmt::format("  %i{} = scalar.{} %i{}, %s{} : i32\n", i + 1,
                            roll(2) != 0 ? "shli" : "shrsi", roll(i + 1), k);
        ++i;
        break;
      case 1:
        text += fmt::format("  %c{} = scalar.cmpi slt, %i{}, %i{} : i32\n", k, roll(i + 1), i);
        text +=
            fmt::format("  %f{} = scf.select %c{}, %f{}, %f{} : f32\n", f + 1, k, roll(f + 1), f);
        ++f;
        break;
      case 2:
        text += fmt::format("  %f{} = scalar.{} %f{}, %f{} : f32\n", f + 1, floats[roll(7)],
                            roll(f + 1), roll(f + 1));
        ++f;
        break;
      default:
        text += fmt::format("  %i{} = scalar.{} %i{}, %i{} : i32\n", i + 1, ints[roll(8)],
                            roll(i + 1), roll(i + 1));
        ++i;
        break;
    }
  }
  text +=
      fmt::format(R"(  %q = scf.for %t = [%lo to %times step %step](%x = %i{0} : i32) -> (i32) {{
    %y = scalar.muli %x, %i{0} : i32
    %z = scalar.xori %y, %mask : i32
    scf.yield %z : i32
  }}
  view.store %q, %wv[%l] : i32, view<8xi32>
  %p = view.load %wv[%l] : view<8xi32> -> i32
  view.store %p, %av[%i] : i32, view<32xi32>
  view.store %f{1}, %bv[%i] : f32, view<32xf32>
  kernel.return
}}
)",
                  i, f);
  return text;
}

TEST(Differential, InterpretedAndCompiledKernelsAgree) {
  Diagnostics problems;
  const auto engine = JitEngine::create(problems);
  ASSERT_NE(engine, nullptr);
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const std::string text = random_kernel(seed);
    test::Source source(text);
    ASSERT_TRUE(source.module.has_value()) << text;
    std::mt19937 random(seed);
    std::vector<int32_t> a(kItems);
    std::vector<float> b(kItems);
    for (int32_t& x : a) x = static_cast<int32_t>(random()) >> (random() % 31);
    for (float& x : b) x = static_cast<float>(static_cast<int32_t>(random() % 401) - 200) / 8.0F;
    std::vector<int32_t> a2 = a;
    std::vector<float> b2 = b;

    const ScalarValue workload[] = {test::index_value(4)};
    const InterpArgument arguments[] = {test::storage("a", a), test::storage("b", b)};
    Diagnostics diagnostics;
    ASSERT_TRUE(run_kernel(*source.module, "k", workload, arguments, {}, diagnostics))
        << test::Source::report(diagnostics) << text;

    const auto kernel = engine->add(*source.module, source.module->symbol("k"),
                                    {.tier = JitTier::Fast}, diagnostics);
    ASSERT_TRUE(kernel.has_value()) << test::Source::report(diagnostics) << text;
    const LoomDispatchShape shape{{4, 1, 1}, {8, 1, 1}};
    const uint64_t slots[] = {std::bit_cast<uint64_t>(a2.data()),
                              std::bit_cast<uint64_t>(b2.data())};
    kernel->entry()(slots, &shape, 0, 4);

    EXPECT_EQ(a, a2) << text;
    for (size_t i = 0; i < kItems; ++i) {
      const bool both_nan = b[i] != b[i] && b2[i] != b2[i];
      EXPECT_TRUE(both_nan || std::bit_cast<uint32_t>(b[i]) == std::bit_cast<uint32_t>(b2[i]))
          << i << ": " << b[i] << " and " << b2[i] << "\n"
          << text;
    }
  }
}

}  // namespace
}  // namespace loom
