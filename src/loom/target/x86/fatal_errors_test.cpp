#include "loom/target/x86/fatal_errors.h"

#include <gtest/gtest.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm/Support/ErrorHandling.h>

#include <string_view>
#include <thread>

#include "loom/base/check.h"

#ifdef __SANITIZE_ADDRESS__
#define LOOM_WITH_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOOM_WITH_ADDRESS_SANITIZER
#endif
#endif
#ifdef LOOM_WITH_ADDRESS_SANITIZER
#include <sanitizer/lsan_interface.h>
#endif

namespace loom {
namespace {

// Assembly of LLVM text at the level without optimization; what is left behind is lost.
bool generates(std::string_view text) {
#ifdef LOOM_WITH_ADDRESS_SANITIZER
  const __lsan::ScopedDisabler lost_on_purpose;
#endif
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMContextRef const context = LLVMContextCreate();
  LLVMMemoryBufferRef const buffer =
      LLVMCreateMemoryBufferWithMemoryRangeCopy(text.data(), text.size(), "text");
  LLVMModuleRef module = nullptr;
  char* message = nullptr;
  if (LLVMParseIRInContext(context, buffer, &module, &message) != 0) return false;
  LLVMTargetRef target = nullptr;
  constexpr const char* kTriple = "x86_64-unknown-linux-gnu";
  if (LLVMGetTargetFromTriple(kTriple, &target, &message) != 0) return false;
  LLVMTargetMachineRef const machine = LLVMCreateTargetMachine(
      target, kTriple, "x86-64-v4", "", LLVMCodeGenLevelNone, LLVMRelocPIC, LLVMCodeModelSmall);
  LLVMMemoryBufferRef made = nullptr;
  return LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMAssemblyFile, &message, &made) ==
         0;
}

constexpr std::string_view kGood = "define i32 @f(i32 %x) {\n  ret i32 %x\n}\n";
// LLVM 19 cannot take this vector of one lane apart where masks have registers.
constexpr std::string_view kFatal =
    "define <1 x i8> @f(<1 x double> %x) {\n"
    "  %1 = call <1 x i1> @llvm.fptosi.sat.v1i1.v1f64(<1 x double> %x)\n"
    "  %2 = zext <1 x i1> %1 to <1 x i8>\n"
    "  ret <1 x i8> %2\n"
    "}\n";

TEST(FatalErrors, OfTheCodeGeneratorComeBackAsText) {
  bool good = false;
  const auto failure = catch_fatal_error([&] { good = generates(kFatal); });
  ASSERT_TRUE(failure.has_value()) << "a later LLVM can do this: find another text";
  EXPECT_NE(failure->find("scalarize"), std::string::npos) << *failure;
  EXPECT_FALSE(good);
  // LLVM goes on with other work, in this thread and in others.
  const auto again = [] {
    bool done = false;
    EXPECT_EQ(catch_fatal_error([&] { done = generates(kGood); }), std::nullopt);
    EXPECT_TRUE(done);
  };
  again();
  std::thread(again).join();
}

TEST(FatalErrors, ElsewhereAreFailedChecks) {
  EXPECT_EQ(catch_fatal_error([] {}), std::nullopt);
  set_check_handler([](const char* file, int, const char* condition, const char* message) {
    std::fprintf(stderr, "%s: %s: %s", file, condition, message);
  });
  EXPECT_DEATH(llvm::report_fatal_error("the loom is jammed"),
               "LLVM: a fatal error: the loom is jammed");
  set_check_handler(nullptr);
}

}  // namespace
}  // namespace loom
