// What a program promises about addresses and numbers, and wishes of its accesses, in LLVM's terms.
#include <fmt/format.h>

#include "kernel_harness.h"

namespace loom::test {
namespace {

// One workitem a workgroup; `loads` and `stores` are what follows an index list.
std::string copies(std::string_view contract, std::string_view hint, std::string_view body = "") {
  return fmt::format(R"(kernel.def export("k") @k(%n: index) {{
  %unit = index.constant 1 : index
  kernel.launch.config workgroups(%n, %unit, %unit) workgroup_size(%unit, %unit, %unit) : index
}} launch(%n: index, %from: buffer, %to: buffer) {} {{
  %base = index.constant 0 : offset
  %c8 = index.constant 8 : index
  %group = kernel.workgroup.id<x> : index
  %i = index.mul %group, %c8 : index
  %v = buffer.view %from[%base] : buffer -> view<[%n]xf32>
  %w = buffer.view %to[%base] : buffer -> view<[%n]xf32>
  {}
  %x = vector.load %v[%i] : view<[%n]xf32> -> vector<8xf32>
  vector.store %x, %w[%i] {} : vector<8xf32>, view<[%n]xf32>
  kernel.return
}}
)",
                     contract, body, hint);
}

constexpr std::string_view kAround = "{cache_scope = device, cache_temporal = non_temporal}";

std::string code(const std::string& text, OutputForm form, const X86Options& options = {}) {
  Fixture fixture(text);
  if (!fixture.module) return "";
  EXPECT_EQ(llvm_problems(*fixture.module), "");
  const auto result = compile_x86(*fixture.module, {}, form, options, fixture.diagnostics);
  EXPECT_TRUE(result.has_value()) << messages(fixture.diagnostics);
  return result.value_or("");
}
std::string ir(const std::string& text) {
  return code(text, OutputForm::LlvmIr, {.cpu = "x86-64-v3"});
}
size_t count(std::string_view text, std::string_view word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(Facts, AlignmentOfArgumentsReachesAccesses) {
  const std::string promised = ir(copies("alignments(1, 64, 32)", ""));
  EXPECT_NE(promised.find("\"align\"(ptr"), std::string::npos) << promised;
  EXPECT_EQ(count(promised, ", align 32"), 2u) << promised;
  EXPECT_EQ(count(ir(copies("", "")), ", align 32"), 0u);
}

TEST(Facts, AssumedAlignmentReachesAccesses) {
  const std::string text =
      ir(copies("", "", R"(%more = buffer.assume.alignment %to {minimum_alignment = 64} : buffer
  %z = scalar.constant 0.0 : f32
  %t = vector.splat %z : vector<8xf32>
  %m = buffer.view %more[%base] : buffer -> view<[%n]xf32>
  vector.store %t, %m[%i] : vector<8xf32>, view<[%n]xf32>)"));
  EXPECT_NE(text.find(", align 32"), std::string::npos) << text;
}

// A promise about a number decides a comparison.
TEST(Facts, RangesDecideComparisons) {
  const std::string_view check = R"(%limit = index.constant 100 : index
  %large = index.cmp sgt, %n, %limit : index
  scf.if %large {
    %zero = scalar.constant 42.0 : f32
    view.store %zero, %w[0] : f32, view<[%n]xf32>
  })";
  EXPECT_NE(ir(copies("", "", check)).find("4.2"), std::string::npos);
  for (const char* const contract : {"where [range(%n, 1, 100)]", "where [lt(%n, 101)]",
                                     "where [le(%n, 100)]", "where [eq(%n, 50)]"}) {
    EXPECT_EQ(ir(copies(contract, "", check)).find("4.2"), std::string::npos) << contract;
  }
  const std::string assumed = fmt::format(
      "%few = index.assume %n [le(%n, 100)] : index\n  %limit = index.constant 100 : index\n"
      "  %large = index.cmp sgt, %few, %limit : index\n{}",
      check.substr(check.find("  scf.if")));
  EXPECT_EQ(ir(copies("", "", assumed)).find("4.2"), std::string::npos);
}

TEST(Facts, MultiplesDecideRemainders) {
  const std::string_view check = R"(%sixteen = index.constant 16 : index
  %zero = index.constant 0 : index
  %rest = index.rem %n, %sixteen : index
  %odd = index.cmp ne, %rest, %zero : index
  scf.if %odd {
    %value = scalar.constant 42.0 : f32
    view.store %value, %w[0] : f32, view<[%n]xf32>
  })";
  EXPECT_NE(ir(copies("where [ge(%n, 0)]", "", check)).find("4.2"), std::string::npos);
  EXPECT_EQ(ir(copies("where [ge(%n, 0), mul(%n, 48)]", "", check)).find("4.2"), std::string::npos);
}

TEST(Facts, ReadonlyArgumentsAreInvariant) {
  EXPECT_NE(ir(copies("readonly(1)", "")).find("!invariant.load"), std::string::npos);
  EXPECT_EQ(ir(copies("", "")).find("!invariant.load"), std::string::npos);
}

// --- unrolling ----------------------------------------------------------------------------------

// Sums `rounds` vectors of 256 bytes, one after another.
std::string sums(unsigned rounds, std::string_view policy) {
  return fmt::format(R"(kernel.def export("k") @k() {{
  %unit = index.constant 1 : index
  kernel.launch.config workgroups(%unit, %unit, %unit) workgroup_size(%unit, %unit, %unit) : index
}} launch(%from: buffer, %to: buffer) {{
  %base = index.constant 0 : offset
  %zero = index.constant 0 : index
  %step = index.constant 64 : index
  %eight = index.constant 8 : index
  %end = index.constant {} : index
  %v = buffer.view %from[%base] : buffer -> view<{}xf32>
  %w = buffer.view %to[%base] : buffer -> view<64xf32>
  %none = vector.constant 0.0 : vector<64xf32>
  %sum = scf.for %i = [%zero to %end step %step](%a = %none : vector<64xf32>) -> (vector<64xf32>) {} {{
    %x = vector.load %v[%i] : view<{}xf32> -> vector<64xf32>
    %b = vector.addf %a, %x : vector<64xf32>
    scf.yield %b : vector<64xf32>
  }}
  vector.store %sum, %w[%zero] : vector<64xf32>, view<64xf32>
  kernel.return
}}
)",
                     64 * rounds, 64 * rounds, policy, 64 * rounds);
}

// Processors follow a stream of few loads; what the source says of a loop stands.
TEST(Unrolling, RoundsOfAStreamStaySmall) {
  const auto factor = [](unsigned rounds, std::string_view policy) {
    const std::string text = code(sums(rounds, policy), OutputForm::LlvmIr, {.opt_level = 0});
    constexpr std::string_view kKey = "!\"llvm.loop.unroll.count\", i32 ";
    const size_t at = text.find(kKey);
    return at == text.npos ? 0 : std::stoi(text.substr(at + kKey.size()));
  };
  EXPECT_EQ(factor(16, ""), 4);
  EXPECT_EQ(factor(18, ""), 3);
  EXPECT_EQ(factor(17, ""), 1);
  EXPECT_EQ(factor(8, ""), 0);  // too short for a stream
  EXPECT_EQ(factor(16, "unroll(%eight)"), 8);
}

// --- around the caches --------------------------------------------------------------------------

TEST(Facts, HintsStreamAlignedStores) {
  const std::string text = copies("alignments(1, 64, 64)", kAround);
  EXPECT_EQ(count(ir(text), "!nontemporal"), 1u) << ir(text);
  const std::string assembly = code(text, OutputForm::Assembly, {.cpu = "x86-64-v3"});
  EXPECT_EQ(count(assembly, "vmovnt"), 1u) << assembly;
  EXPECT_EQ(count(assembly, "sfence"), 1u) << assembly;
  EXPECT_NE(code(text, OutputForm::Assembly).find("movntps"), std::string::npos);
  EXPECT_NE(code(text, OutputForm::Assembly, {.opt_level = 0}).find("sfence"), std::string::npos);
}

TEST(Facts, OtherStoresStayInTheCaches) {
  for (const std::string_view hint : {"", "{cache_scope = device, cache_temporal = regular}",
                                      "{cache_scope = cu, cache_temporal = high_temporal}"}) {
    const std::string text = copies("alignments(1, 64, 64)", hint);
    EXPECT_EQ(ir(text).find("nontemporal"), std::string::npos) << hint;
    EXPECT_EQ(code(text, OutputForm::Assembly).find("sfence"), std::string::npos) << hint;
  }
}

TEST(Facts, VectorsOfWorkitemsAreStreamed) {
  const std::string assembly = code(fmt::format(R"(kernel.def export("k") @k() {{
  %unit = index.constant 1 : index
  %many = index.constant 256 : index
  kernel.launch.config workgroups(%unit, %unit, %unit) workgroup_size(%many, %unit, %unit) : index
}} launch(%from: buffer, %to: buffer) alignments(64, 64) {{
  %base = index.constant 0 : offset
  %a, %b = buffer.assume.noalias %from, %to : buffer, buffer
  %i = kernel.workitem.dispatch.id<x> : index
  %v = buffer.view %a[%base] : buffer -> view<256xf32>
  %w = buffer.view %b[%base] : buffer -> view<256xf32>
  %x = view.load %v[%i] : view<256xf32> -> f32
  view.store %x, %w[%i] {} : f32, view<256xf32>
  kernel.return
}}
)",
                                                kAround),
                                    OutputForm::Assembly, {.cpu = "x86-64-v3"});
  EXPECT_NE(assembly.find("vmovntps\t%ymm"), std::string::npos) << assembly;
}

// Whatever the alignment turns out to be, every element arrives.
TEST(Facts, UnalignedStoresAreCheckedWhereTheyRun) {
  const std::string text = copies("", kAround);
  EXPECT_NE(ir(text).find("!nontemporal"), std::string::npos) << ir(text);
  Fixture fixture(text);
  ASSERT_TRUE(fixture.module.has_value());
  const auto engine = JitEngine::create(fixture.diagnostics);
  ASSERT_NE(engine, nullptr);
  for (const JitTier tier : {JitTier::Fast, JitTier::Optimized}) {
    auto kernel = engine->add(*fixture.module, fixture.module->symbol("k"), {.tier = tier},
                              fixture.diagnostics);
    ASSERT_TRUE(kernel.has_value()) << messages(fixture.diagnostics);
    alignas(64) float from[64];
    for (int i = 0; i < 64; ++i) from[i] = static_cast<float>(i + 1);
    for (unsigned offset = 0; offset < 9; ++offset) {
      alignas(64) float to[64] = {};
      run(kernel->entry(), {32, slot(&from[0]), slot(&to[offset])}, {.count = {4, 1, 1}});
      for (unsigned i = 0; i < 64; ++i) {
        const bool inside = i >= offset && i < offset + 32;
        EXPECT_EQ(to[i], inside ? static_cast<float>(i - offset + 1) : 0.0F) << offset;
      }
    }
  }
}

}  // namespace
}  // namespace loom::test
