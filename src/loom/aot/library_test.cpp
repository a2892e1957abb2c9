#include "loom/aot/library.h"

#include <gtest/gtest.h>

#include <thread>

#include "loom/dialect/op_kind.h"
#include "loom/ir/walk.h"
#include "loom/link/load.h"
#include "loom/target/lld/link.h"
#include "loom/target/x86/codegen.h"

namespace loom {
namespace {

constexpr std::string_view kKernel = R"(kernel.def export("add_one") @add_one(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%n: index, %x: buffer) {
  %base = index.constant 0 : offset
  %unit = scalar.constant 1.0 : f32
  %i = kernel.workgroup.id<x> : index
  %v = buffer.view %x[%base] : buffer -> view<[%n]xf32>
  %a = view.load %v[%i] : view<[%n]xf32> -> f32
  %b = scalar.addf %a, %unit : f32
  view.store %b, %v[%i] : f32, view<[%n]xf32>
  kernel.return
}
)";

std::optional<KernelLibrary> make(const std::string& file_name, Diagnostics& diagnostics) {
  SourceFiles files;
  auto module = load_module(files, std::string(kKernel), "kernel.loom", diagnostics);
  if (!module) return std::nullopt;
  std::vector<OpId> kernels;
  for_each_op(*module, module->body(), [&](OpId op) { kernels.push_back(op); });
  return compile_library(*module, kernels,
                         {.file_name = file_name, .levels = {find_cpu_level("x86-64-v2")}},
                         diagnostics);
}

TEST(Library, AnyNumberOfThreadsMakeTheSameBytes) {
  constexpr size_t kThreads = 6;
  std::vector<std::optional<KernelLibrary>> made(kThreads);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&made, i] {
        Diagnostics diagnostics;
        made[i] = make("libone.so", diagnostics);
      });
    }
  }
  for (const auto& library : made) {
    ASSERT_TRUE(library.has_value());
    EXPECT_EQ(library->shared_object, made[0]->shared_object);
    EXPECT_EQ(library->header, made[0]->header);
  }
}

TEST(Library, ItsNameIsThatOfItsFunctions) {
  for (const auto& [file, prefix] : {std::pair("libone.so", "* one_cpu_level(void)"),
                                     std::pair("one.so.2", "* one_cpu_level(void)"),
                                     std::pair("lib.so", "* lib_cpu_level(void)"),
                                     std::pair("9-lives.so", "* v9_lives_cpu_level("),
                                     std::pair("libdouble.so", "* double_cpu_level(")}) {
    Diagnostics diagnostics;
    const auto made = make(file, diagnostics);
    ASSERT_TRUE(made.has_value()) << file;
    EXPECT_NE(made->header.find(prefix), std::string::npos) << file << "\n" << made->header;
  }
}

TEST(Library, AnotherCompilerOfLevelsMayServe) {
  SourceFiles files;
  Diagnostics diagnostics;
  auto module = load_module(files, std::string(kKernel), "kernel.loom", diagnostics);
  ASSERT_TRUE(module.has_value());
  const OpId kernel = module->symbol("add_one");
  std::vector<std::string> asked;
  LibraryOptions options{.file_name = "libone.so", .levels = default_levels()};
  options.compile = [&](const Module& from, std::span<const OpId> kernels, const X86Options& target,
                        Diagnostics& said) {
    asked.push_back(target.cpu);
    return compile_x86(from, kernels, OutputForm::Object, target, said);
  };
  EXPECT_TRUE(compile_library(*module, {&kernel, 1}, options, diagnostics).has_value());
  EXPECT_EQ(asked, (std::vector<std::string>{"x86-64-v2", "x86-64-v3", "x86-64-v4"}));
}

// The linker is asked again after it has failed.
TEST(Link, WhatNothingDefinesIsNamedWithoutAPath) {
  Diagnostics diagnostics;
  const auto codegen = X86Codegen::create({.opt_level = 0}, diagnostics);
  ASSERT_NE(codegen, nullptr);
  const auto open = codegen->assemble(
      "declare void @missing()\ndefine void @f() {\n  call void @missing()\n  ret void\n}\n",
      diagnostics);
  const auto closed = codegen->assemble("define void @missing() { ret void }\n", diagnostics);
  ASSERT_TRUE(open && closed);
  for (int round = 0; round < 2; ++round) {
    const auto refused = link_shared_object({{*open}, {}, "libopen.so"});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().path, "");
    EXPECT_NE(refused.error().reason.find("undefined symbol: missing"), std::string::npos)
        << refused.error().reason;
    EXPECT_EQ(refused.error().reason.find('/'), std::string::npos) << refused.error().reason;
    EXPECT_EQ(refused.error().reason.find('\n'), std::string::npos) << refused.error().reason;
    EXPECT_TRUE(link_shared_object({{*open, *closed}, {}, "libclosed.so"}).has_value());
  }
  EXPECT_FALSE(link_shared_object({{"no object"}, {}, "libno.so"}).has_value());
}

// A stub gives its name to what needs it, and to nothing else.
TEST(Link, OnlyLibrariesThatAreNeededAreNamed) {
  Diagnostics diagnostics;
  const auto codegen = X86Codegen::create({.opt_level = 0}, diagnostics);
  ASSERT_NE(codegen, nullptr);
  const auto stub = [&](const std::string& function) {
    const auto object =
        codegen->assemble("define void @" + function + "() { ret void }\n", diagnostics);
    return *link_shared_object({{*object}, {}, "lib" + function + ".so"});
  };
  const auto caller = codegen->assemble(
      "declare void @near()\ndefine void @f() {\n  call void @near()\n  ret void\n}\n",
      diagnostics);
  const auto linked = link_shared_object({{*caller}, {stub("near"), stub("far")}, "libcaller.so"});
  ASSERT_TRUE(linked.has_value()) << linked.error().reason;
  EXPECT_NE(linked->find("libnear.so"), std::string::npos);
  EXPECT_EQ(linked->find("libfar.so"), std::string::npos);
}

}  // namespace
}  // namespace loom
