// Dot products of neighbours on processors with and without instructions for them.
#include "cases.h"

namespace loom::ops {
namespace {

// One dot of `lanes` sums in %cv, of factors in %av and %bv, into %cv.
std::string dots(std::string_view op, unsigned lanes, std::string_view factor, unsigned group,
                 std::string_view sum) {
  return fmt::format(R"(kernel.def @k() {{
  %c1 = index.constant 1 : index
  kernel.launch.config workgroups(%c1, %c1, %c1) workgroup_size(%c1, %c1, %c1) : index
}} launch(%a: buffer, %b: buffer, %c: buffer) {{
  %base = index.constant 0 : offset
  %av = buffer.view %a[%base] : buffer -> view<{2}x{3}>
  %bv = buffer.view %b[%base] : buffer -> view<{2}x{3}>
  %cv = buffer.view %c[%base] : buffer -> view<{1}x{4}>
  %x = vector.load %av[0] : view<{2}x{3}> -> vector<{2}x{3}>
  %y = vector.load %bv[0] : view<{2}x{3}> -> vector<{2}x{3}>
  %z = vector.load %cv[0] : view<{1}x{4}> -> vector<{1}x{4}>
  %r = vector.{0} %x, %y, %z : vector<{2}x{3}>, vector<{2}x{3}>, vector<{1}x{4}>
  vector.store %r, %cv[0] : vector<{1}x{4}>, view<{1}x{4}>
  kernel.return
}}
)",
                     op, lanes, lanes * group, factor, sum);
}

constexpr unsigned kLanes[] = {1, 3, 4, 8, 12, 16, 20, 28, 32};

TEST(Dots, BytesOfEverySignAreExact) {
  for (const std::string_view signs : {"s8s8", "u8s8", "s8u8", "u8u8"}) {
    for (const unsigned lanes : kLanes) {
      SCOPED_TRACE(fmt::format("{} sums of {}", lanes, signs));
      Program program(dots(fmt::format("dot4i<{}>", signs), lanes, "i8", 4, "i32"));
      ASSERT_TRUE(program.good()) << program.problems;
      const std::vector<Buffer> buffers = {noise(ScalarKind::I8, size_t{lanes} * 4, 1),
                                           noise(ScalarKind::I8, size_t{lanes} * 4, 2),
                                           noise(ScalarKind::I32, lanes, 3)};
      program.expect_same(buffers);
    }
  }
}

// bf16 numbers from -1 to 1, which no instruction takes for zero.
Buffer halves(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint16_t> bits(count);
  for (uint16_t& value : bits) {
    value = static_cast<uint16_t>((random() & 0x8000) | (0x3c00 + random() % 0x380));
  }
  return buffer_of(ScalarKind::BF16, bits);
}

TEST(Dots, PairsOfHalvesAreCloseWithFlagsAndExactWithout) {
  for (const std::string_view op : {"dot2f", "dot2f<afn>", "dot2f<reassoc|afn>"}) {
    for (const unsigned lanes : kLanes) {
      SCOPED_TRACE(fmt::format("{} of {} sums", op, lanes));
      Program program(dots(op, lanes, "bf16", 2, "f32"));
      ASSERT_TRUE(program.good()) << program.problems;
      const std::vector<Buffer> buffers = {
          halves(size_t{lanes} * 2, 1), halves(size_t{lanes} * 2, 2),
          buffer_of(ScalarKind::F32, std::vector<float>(lanes, 0.3f))};
      program.expect_same(buffers, {{1, 1, 1}, {1, 1, 1}}, {},
                          {.share = op.ends_with("reassoc|afn>") ? 1e-6 : 0.0});
    }
  }
}

// The dot instructions of a processor that has them, where the operation allows their rounding.
TEST(Dots, AreInstructionsOfTheProcessor) {
  const auto uses = [](const std::string& text, std::string_view instruction) {
    Program program(text);
    EXPECT_EQ(program.assembly("x86-64-v3").find(instruction), std::string::npos);
    return program.assembly("sapphirerapids").find(instruction) != std::string::npos;
  };
  EXPECT_TRUE(uses(dots("dot4i<s8s8>", 16, "i8", 4, "i32"), "vpdpbusd"));
  EXPECT_TRUE(uses(dots("dot2f<reassoc|afn>", 16, "bf16", 2, "f32"), "vdpbf16ps"));
  EXPECT_FALSE(uses(dots("dot2f", 16, "bf16", 2, "f32"), "vdpbf16ps"));
  size_t bytes = 0;
  size_t halves = 0;
  for (const Case& one : fragment_cases()) {
    if (!one.name.starts_with("1 blocks of 4x8x4")) continue;
    bytes += uses(one.text, "vpdpbusd");
    halves += uses(one.text, "vdpbf16ps");
  }
  EXPECT_EQ(bytes, 1u);
  EXPECT_EQ(halves, 1u);
}

}  // namespace
}  // namespace loom::ops
