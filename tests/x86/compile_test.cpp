#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "kernel_harness.h"

namespace loom::test {
namespace {

constexpr std::string_view kHead = R"(kernel.def @k(%n: index) {
  %unit = index.constant 1 : index
  kernel.launch.config workgroups(%n, %unit, %unit) workgroup_size(%unit, %unit, %unit) : index
} launch(%count: index, %data: buffer, %on: i1) {
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %base = index.constant 0 : offset
  %big = index.constant 2000000 : offset
  %x = scalar.constant 1.0 : f32
  %v = buffer.view %data[%base] : buffer -> view<8xf32>
)";
constexpr std::string_view kTail = "  kernel.return\n}\n";

std::string kernel_around(std::string_view body) {
  return std::string(kHead) + std::string(body) + std::string(kTail);
}

std::optional<std::string> compile(const std::string& text, OutputForm form,
                                   const X86Options& options = {},
                                   std::string* problems = nullptr) {
  Fixture fixture(text);
  if (!fixture.module) return std::nullopt;
  auto result = compile_x86(*fixture.module, {}, form, options, fixture.diagnostics);
  if (problems != nullptr) *problems = messages(fixture.diagnostics);
  return result;
}

// A folder that disappears with the test.
struct TemporaryFolder {
  std::filesystem::path path;
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "loom-x86-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
};

TEST(Compile, ObjectLinksIntoACProgram) {
  const auto object = compile(Fixture::read("smooth.loom"), OutputForm::Object);
  ASSERT_TRUE(object.has_value());
  const TemporaryFolder folder;
  const std::string base = folder.path.string();
  ASSERT_TRUE(write_file(base + "/kernel.o", *object).has_value());
  const std::string build =
      fmt::format("{} -std=c99 -Wall -Werror -I{} {}/main.c {}/kernel.o -lm -o {}/program",
                  LOOM_C_COMPILER, LOOM_SOURCES, LOOM_X86_TESTS, base, base);
  ASSERT_EQ(std::system(build.c_str()), 0) << build;
  ASSERT_EQ(std::system(fmt::format("{}/program > {}/output", base, base).c_str()), 0);
  EXPECT_EQ(read_file(base + "/output").value_or(""), "0.00000\n0.76159\n-0.76159\n1.00000\n");
}

TEST(Compile, EveryFormNamesTheExport) {
  const std::string text = Fixture::read("smooth.loom");
  const auto ir = compile(text, OutputForm::LlvmIr);
  const auto assembly = compile(text, OutputForm::Assembly);
  const auto bitcode = compile(text, OutputForm::LlvmBitcode);
  ASSERT_TRUE(ir && assembly && bitcode);
  EXPECT_NE(ir->find("define void @smooth(ptr"), std::string::npos) << *ir;
  EXPECT_NE(assembly->find("smooth:\n"), std::string::npos) << *assembly;
  EXPECT_EQ(bitcode->substr(0, 4), "BC\xC0\xDE");
}

TEST(Compile, IsDeterministic) {
  const std::string text = Fixture::read("control.loom") + Fixture::read("queries.loom");
  const auto first = compile(text, OutputForm::Object);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first, compile(text, OutputForm::Object));
}

TEST(Compile, CpuDecidesTheInstructions) {
  const std::string text = kernel_around(
      "  %a = view.load %v[0] : view<8xf32> -> f32\n"
      "  %b = scalar.fmaf %a, %a, %x : f32\n"
      "  view.store %b, %v[1] : f32, view<8xf32>\n");
  const auto old = compile(text, OutputForm::Assembly);
  const auto modern = compile(text, OutputForm::Assembly, {.cpu = "haswell"});
  ASSERT_TRUE(old && modern);
  EXPECT_NE(old->find("fmaf@PLT"), std::string::npos) << *old;
  EXPECT_NE(modern->find("vfmadd"), std::string::npos) << *modern;
}

TEST(Compile, PrefetchesSayHowNearAndForWhat) {
  const auto text = compile(
      kernel_around("  view.prefetch %v[%count] {intent = read, locality = l1} : view<8xf32>\n"
                    "  view.prefetch %v[1] {intent = read, locality = l2} : view<8xf32>\n"
                    "  view.prefetch %v[2] {intent = read, locality = none} : view<8xf32>\n"
                    "  view.prefetch %v[3] {intent = write, locality = l1} : view<8xf32>\n"),
      OutputForm::Assembly, {.cpu = "znver5"});
  ASSERT_TRUE(text.has_value());
  for (const char* const hint : {"prefetcht0", "prefetcht1", "prefetchnta", "prefetchw"}) {
    EXPECT_NE(text->find(hint), std::string::npos) << hint << " in " << *text;
  }
}

TEST(Compile, PromisesOfDisjointRootsVectorizeWithoutChecks) {
  const auto body = [](std::string_view promise) {
    return fmt::format(R"(kernel.def @k() {{
  %unit = index.constant 1 : index
  kernel.launch.config workgroups(%unit, %unit, %unit) workgroup_size(%unit, %unit, %unit) : index
}} launch(%from: buffer, %to: buffer) {{
  %base = index.constant 0 : offset
  {}
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %count = index.constant 64 : index
  %in = buffer.view %a[%base] : buffer -> view<64xf32>
  %out = buffer.view %b[%base] : buffer -> view<64xf32>
  scf.for %i = [%zero to %count step %one] {{
  %x = view.load %in[%i] : view<64xf32> -> f32
  %y = scalar.addf %x, %x : f32
  view.store %y, %out[%i] : f32, view<64xf32>
  }}
  kernel.return
}}
)",
                       promise);
  };
  const auto promised = compile(body("%a, %b = buffer.assume.noalias %from, %to : buffer, buffer"),
                                OutputForm::LlvmIr);
  const auto open = compile(
      body("%a, %b = buffer.assume.alignment %from, %to {minimum_alignment = 4} : buffer, buffer"),
      OutputForm::LlvmIr);
  ASSERT_TRUE(promised && open);
  EXPECT_NE(promised->find("fadd <"), std::string::npos) << *promised;
  EXPECT_NE(open->find("vector.memcheck"), std::string::npos) << *open;
  EXPECT_EQ(promised->find("vector.memcheck"), std::string::npos) << *promised;
}

TEST(Compile, StorageThatNothingWritesIsReadWithoutChecks) {
  const auto body = [](std::string_view contract) {
    return fmt::format(R"(kernel.def @k() {{
  %unit = index.constant 1 : index
  kernel.launch.config workgroups(%unit, %unit, %unit) workgroup_size(%unit, %unit, %unit) : index
}} launch(%from: view<64xf32>, %to: buffer) {} {{
  %base = index.constant 0 : offset
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %count = index.constant 64 : index
  %out = buffer.view %to[%base] : buffer -> view<64xf32>
  scf.for %i = [%zero to %count step %one] {{
  %x = view.load %from[%i] : view<64xf32> -> f32
  %y = scalar.addf %x, %x : f32
  view.store %y, %out[%i] : f32, view<64xf32>
  }}
  kernel.return
}}
)",
                       contract);
  };
  const auto fixed = compile(body("readonly(0)"), OutputForm::LlvmIr);
  const auto open = compile(body(""), OutputForm::LlvmIr);
  ASSERT_TRUE(fixed && open);
  EXPECT_NE(fixed->find("!invariant.load"), std::string::npos) << *fixed;
  EXPECT_NE(fixed->find("fadd <"), std::string::npos) << *fixed;
  EXPECT_EQ(fixed->find("vector.memcheck"), std::string::npos) << *fixed;
  EXPECT_NE(open->find("vector.memcheck"), std::string::npos) << *open;
}

TEST(Compile, FlushingIsAPropertyOfTheFunction) {
  const std::string text = Fixture::read("smooth.loom");
  const auto keep = compile(text, OutputForm::LlvmIr);
  const auto flush = compile(text, OutputForm::LlvmIr, {.denormals = DenormalMode::Flush});
  ASSERT_TRUE(keep && flush);
  EXPECT_EQ(keep->find("ldmxcsr"), std::string::npos);
  EXPECT_NE(flush->find("ldmxcsr"), std::string::npos);
}

TEST(Compile, FastMathFlagsAreKept) {
  const auto ir = compile(kernel_around("  %a = view.load %v[0] : view<8xf32> -> f32\n"
                                        "  %b = scalar.addf<nnan|contract> %a, %x : f32\n"
                                        "  view.store %b, %v[1] : f32, view<8xf32>\n"),
                          OutputForm::LlvmIr);
  ASSERT_TRUE(ir.has_value());
  EXPECT_NE(ir->find("fadd nnan contract float"), std::string::npos) << *ir;
}

// --- what is refused ----------------------------------------------------------------------------

struct Refusal {
  const char* name;
  const char* body;
  const char* problem;
};

class Refusals : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refusals, EndInOneDiagnosticThatNamesTheOperation) {
  std::string problems;
  const std::string text = kernel_around(GetParam().body) + "func.decl @outside()\n";
  EXPECT_FALSE(compile(text, OutputForm::Object, {}, &problems));
  EXPECT_EQ(problems, GetParam().problem);
}

INSTANTIATE_TEST_SUITE_P(
    All, Refusals,
    ::testing::Values(
        Refusal{"HugeWorkgroupStorage", "  %s = buffer.alloca<workgroup> align(16) %big : buffer\n",
                "LOWERING/001 line 11: 'buffer.alloca' is not supported yet on x86_64 with more "
                "than 1 MiB\n"},
        Refusal{"HugePrivateStorage", "  %s = buffer.alloca<private> align(16) %big : buffer\n",
                "LOWERING/001 line 11: 'buffer.alloca' is not supported yet on x86_64 with more "
                "than 1 MiB\n"},
        Refusal{"UnboundedPrivateStorage",
                "  %size = index.cast %count : index to offset\n"
                "  %s = buffer.alloca<private> align(16) %size : buffer\n",
                "LOWERING/001 line 12: 'buffer.alloca' is not supported yet on x86_64 with a size "
                "that has no known bound\n"},
        Refusal{"StorageBoundedInOneBranchOnly",
                "  scf.if %on {\n    %few = index.assume %count [le(%count, 4)] : index\n  }\n"
                "  %size = index.cast %count : index to offset\n"
                "  %s = buffer.alloca<private> align(16) %size : buffer\n",
                "LOWERING/001 line 15: 'buffer.alloca' is not supported yet on x86_64 with a size "
                "that has no known bound\n"},
        Refusal{
            "CarriedStorage",
            "  %size = index.constant 8 : offset\n"
            "  %r = scf.for %i = [%zero to %count step %one](%b = %data : buffer) -> (buffer) {\n"
            "    %s = buffer.alloca<private> align(16) %size : buffer\n"
            "    scf.yield %s : buffer\n  }\n",
            "LOWERING/001 line 13: 'buffer.alloca' is not supported yet on x86_64 inside a "
            "loop that carries a buffer or a view\n"},
        Refusal{"ExternalFunction", "  func.call @outside() : ()\n",
                "LOWERING/001 line 11: 'func.call' is not supported yet on x86_64 of a function "
                "without a body\n"}),
    [](const auto& chosen) { return chosen.param.name; });

TEST(Compile, BoundedPrivateStorageIsReserved) {
  const auto ir =
      compile(kernel_around(R"(  %few = index.assume %count [range(%count, 0, 6)] : index
  %four = index.constant 4 : index
  %size = index.madd %few, %four, %one : index
  %bytes = index.cast %size : index to offset
  %s = buffer.alloca<private> align(32) %bytes : buffer
  %w = buffer.view %s[%base] : buffer -> view<6xf32>
  view.store<volatile> %x, %w[%count] : f32, view<6xf32>
)"),
              OutputForm::LlvmIr, {.opt_level = 0});
  ASSERT_TRUE(ir.has_value());
  EXPECT_NE(ir->find("alloca [25 x i8], align 32"), std::string::npos) << *ir;
  EXPECT_NE(ir->find("store volatile float"), std::string::npos) << *ir;
}

TEST(Compile, InlinedRecursionIsRefused) {
  std::string problems;
  EXPECT_FALSE(
      compile("func.def inline @f(%n: index) -> (index) {\n"
              "  %r = func.call @f(%n) : (index) -> (index)\n"
              "  func.return %r : index\n}\n" +
                  kernel_around("  %r = func.call @f(%one) : (index) -> (index)\n"),
              OutputForm::Object, {}, &problems));
  EXPECT_EQ(problems, "LOWERING/044 line 2: '@f' cannot be inlined here: it calls itself\n");
}

TEST(Compile, InliningThatExplodesIsRefused) {
  std::string text = "func.def inline @f0() {\n  func.return\n}\n";
  for (unsigned i = 1; i <= 40; ++i) {
    text += fmt::format(
        "func.def inline @f{}() {{\n  func.call @f{}() : ()\n  func.call @f{}() : ()\n"
        "  func.return\n}}\n",
        i, i - 1, i - 1);
  }
  std::string problems;
  EXPECT_FALSE(compile(text + kernel_around("  func.call @f40() : ()\n"), OutputForm::Object, {},
                       &problems));
  EXPECT_NE(problems.find("LOWERING/001"), std::string::npos) << problems;
  EXPECT_NE(problems.find("2000000 operations"), std::string::npos) << problems;
}

TEST(Compile, NamesMustNotCollide) {
  std::string problems;
  const std::string one = Fixture::read("smooth.loom");
  std::string other = one;
  other.replace(other.find("@tanh_in_place"), 14, "@other");
  EXPECT_FALSE(compile(one + other, OutputForm::Object, {}, &problems));
  EXPECT_NE(problems.find("'@smooth' is defined twice"), std::string::npos) << problems;
  std::string libm = one;
  libm.replace(libm.find("\"smooth\""), 8, "\"tanhf\"");
  EXPECT_FALSE(compile(libm, OutputForm::Object, {}, &problems));
  EXPECT_NE(problems.find("'tanhf' of a C library function"), std::string::npos) << problems;
}

TEST(Compile, TargetsAreParsed) {
  Diagnostics diagnostics;
  EXPECT_EQ(parse_x86_target("x86_64", {}, diagnostics)->cpu, "");
  EXPECT_EQ(parse_x86_target("x86_64:native", {}, diagnostics)->cpu, "native");
  EXPECT_EQ(parse_x86_target("x86_64:znver3", {}, diagnostics)->cpu, "znver3");
  EXPECT_FALSE(diagnostics.has_errors());
  for (const char* unknown : {"x86", "x86_64:", "x86_64:i386", "x86_64:quantum9", "arm64:x"}) {
    diagnostics.clear();
    EXPECT_FALSE(parse_x86_target(unknown, {}, diagnostics).has_value()) << unknown;
    ASSERT_EQ(diagnostics.error_count(), 1u);
    EXPECT_EQ(diag_code(diagnostics.all()[0].id), "TARGET/001");
  }
}

// --- size ---------------------------------------------------------------------------------------

std::string nested(unsigned depth, bool loops) {
  std::string body;
  for (unsigned i = 0; i < depth; ++i) {
    body += loops ? fmt::format("scf.for %i{} = [%zero to %count step %one] {{\n", i)
                  : "scf.if %on {\n";
  }
  body += "view.store %x, %v[1] : f32, view<8xf32>\n";
  for (unsigned i = 0; i < depth; ++i) body += "}\n";
  return kernel_around(body);
}

TEST(Compile, DeepNestingWorksOrIsRefused) {
  for (const bool loops : {false, true}) {
    EXPECT_TRUE(compile(nested(256, loops), OutputForm::Object));
    for (const unsigned depth : {257u, 100'000u}) {
      std::string problems;
      EXPECT_FALSE(compile(nested(depth, loops), OutputForm::Object, {}, &problems));
      EXPECT_EQ(problems, fmt::format("LOWERING/001 line 267: '{}' is not supported yet on x86_64 "
                                      "nested more than 256 levels deep\n",
                                      loops ? "scf.for" : "scf.if"));
    }
  }
}

TEST(Compile, LongChainsWork) {
  std::string body = "  %y0 = view.load %v[0] : view<8xf32> -> f32\n";
  for (unsigned i = 0; i < 30'000; ++i) {
    body += fmt::format("  %y{} = scalar.addf %y{}, %x : f32\n", i + 1, i);
  }
  body += "  view.store %y30000, %v[1] : f32, view<8xf32>\n";
  EXPECT_TRUE(compile(kernel_around(body), OutputForm::Object));
}

// --- JIT ----------------------------------------------------------------------------------------

TEST(Jit, KernelsOutliveTheEngineAndEachOther) {
  Diagnostics diagnostics;
  auto engine = JitEngine::create(diagnostics);
  ASSERT_NE(engine, nullptr);
  Fixture fixture(Fixture::read("args.loom"));
  ASSERT_TRUE(fixture.module.has_value());
  const OpId halve = fixture.module->symbol("halve");
  auto first = engine->add(*fixture.module, halve, {.tier = JitTier::Fast}, diagnostics);
  auto second = engine->add(*fixture.module, halve, {.tier = JitTier::Optimized}, diagnostics);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->entry(), second->entry());
  first.reset();
  engine.reset();
  std::vector<float> data = {4, 0};
  run(second->entry(), {slot(data.data())}, {});
  EXPECT_EQ(data[1], 2);
}

TEST(Jit, ThreadsAddAndReleaseAtOnce) {
  Diagnostics diagnostics;
  const auto engine = JitEngine::create(diagnostics);
  ASSERT_NE(engine, nullptr);
  const std::string text = Fixture::read("args.loom");
  std::vector<unsigned> right(4, 0);
  std::vector<std::thread> threads;
  threads.reserve(right.size());
  for (unsigned& count : right) {
    threads.emplace_back([&] {
      Fixture fixture(text);
      if (!fixture.module) return;
      for (unsigned round = 0; round < 25; ++round) {
        const auto kernel = engine->add(*fixture.module, fixture.module->symbol("halve"),
                                        {.tier = JitTier::Fast}, fixture.diagnostics);
        if (!kernel) return;
        std::vector<float> data = {static_cast<float>(round), -1};
        run(kernel->entry(), {slot(data.data())}, {});
        count += data[1] * 2 == static_cast<float>(round);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<unsigned>(4, 25));
}

TEST(Jit, BrokenObjectsAreRefused) {
  Diagnostics diagnostics;
  const auto engine = JitEngine::create(diagnostics);
  const auto object = compile(Fixture::read("smooth.loom"), OutputForm::Object);
  ASSERT_TRUE(engine != nullptr && object.has_value());
  EXPECT_TRUE(engine->add_object(*object, "smooth", diagnostics).has_value());
  EXPECT_FALSE(engine->add_object(*object, "absent", diagnostics).has_value());
  EXPECT_FALSE(engine->add_object("not an object", "smooth", diagnostics).has_value());
  EXPECT_EQ(diagnostics.error_count(), 2u);
}

}  // namespace
}  // namespace loom::test
