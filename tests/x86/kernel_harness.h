// Parses, verifies, compiles and runs the kernels of a fixture.
#pragma once

#include <gtest/gtest.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "loom/base/file.h"
#include "loom/diag/diagnostic.h"
#include "loom/dialect/verify.h"
#include "loom/ir/module.h"
#include "loom/target/x86/compile.h"
#include "loom/target/x86/jit.h"
#include "loom/text/parser.h"

namespace loom::test {

inline std::string messages(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& one : diagnostics.all()) {
    text += diag_code(one.id) + " line " + std::to_string(one.location.line) + ": " +
            one.message() + "\n";
  }
  return text;
}

struct Fixture {
  SourceFiles files;
  Diagnostics diagnostics;
  std::optional<Module> module;

  explicit Fixture(std::string text) {
    const FileId file = files.add_text("test.loom", std::move(text));
    module = parse_text(files, file, diagnostics);
    if (module && !verify_module(*module, diagnostics)) module.reset();
    EXPECT_TRUE(module.has_value()) << messages(diagnostics);
  }
  // From tests/x86/kernels/.
  static std::string read(const std::string& name) {
    auto text = read_file(std::string(LOOM_X86_KERNELS) + "/" + name);
    EXPECT_TRUE(text.has_value()) << name;
    return text ? *text : std::string();
  }
};

// What LLVM's verifier says about the code before optimization; empty when it is well formed.
inline std::string llvm_problems(const Module& module) {
  Diagnostics diagnostics;
  const auto ir = compile_x86(module, {}, OutputForm::LlvmIr, {.opt_level = 0}, diagnostics);
  if (!ir) return messages(diagnostics);
  LLVMContextRef context = LLVMContextCreate();
  LLVMMemoryBufferRef text =
      LLVMCreateMemoryBufferWithMemoryRangeCopy(ir->data(), ir->size(), "kernel.ll");
  LLVMModuleRef parsed = nullptr;
  char* message = nullptr;
  std::string problems;
  if (LLVMParseIRInContext(context, text, &parsed, &message) != 0 ||
      LLVMVerifyModule(parsed, LLVMReturnStatusAction, &message) != 0) {
    problems = message + *ir;
  }
  LLVMDisposeMessage(message);
  if (parsed != nullptr) LLVMDisposeModule(parsed);
  LLVMContextDispose(context);
  return problems;
}

struct Shape {
  std::vector<uint32_t> count = {1, 1, 1};
  std::vector<uint32_t> size = {1, 1, 1};
};

inline uint64_t slot(const void* address) { return std::bit_cast<uint64_t>(address); }
inline uint64_t slot(float value) { return std::bit_cast<uint32_t>(value); }

// Runs all workgroups of a dispatch in one call.
inline void run(LoomKernelEntry entry, const std::vector<uint64_t>& args, const Shape& shape) {
  LoomDispatchShape raw{};
  uint64_t total = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    raw.count[axis] = shape.count[axis];
    raw.size[axis] = shape.size[axis];
    total *= shape.count[axis];
  }
  entry(args.data(), &raw, 0, total);
}

}  // namespace loom::test
