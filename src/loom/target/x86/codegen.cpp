#include "loom/target/x86/codegen.h"

#include <fmt/format.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include <chrono>
#include <mutex>
#include <set>

#include "loom/base/check.h"
#include "loom/dialect/export_name.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"
#include "loom/target/llvm/note_collector.h"
#include "loom/target/llvm/streaming.h"
#include "loom/target/x86/entry.h"
#include "loom/target/x86/fatal_errors.h"

namespace loom {
namespace {

using enum OpKind;

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";
constexpr const char* kGenericCpu = "x86-64";
// Some of LLVM's machine passes take quadratic time over a long block, so code of larger functions
// is generated without them.
constexpr uint64_t kMaxOptimizedOps = 20'000;

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

LLVMCodeGenOptLevel code_level(int level) {
  if (level <= 0) return LLVMCodeGenLevelNone;
  if (level == 1) return LLVMCodeGenLevelLess;
  return level == 2 ? LLVMCodeGenLevelDefault : LLVMCodeGenLevelAggressive;
}

llvm::TargetMachine& cpp(LLVMTargetMachineRef machine) {
  return *reinterpret_cast<llvm::TargetMachine*>(machine);
}

std::string take_message(char* message) {
  std::string text = message == nullptr ? "" : message;
  LLVMDisposeMessage(message);
  return text;
}

// Times the steps between its calls.
class StepClock {
 public:
  explicit StepClock(CodegenNotes* notes) : notes_(notes) {}
  void ends(std::string_view name) {
    if (notes_ == nullptr) return;
    const auto now = std::chrono::steady_clock::now();
    notes_->steps.push_back(
        {std::string(name), std::chrono::duration<double>(now - begin_).count()});
    begin_ = now;
  }

 private:
  CodegenNotes* notes_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Streamed stores are not ordered with the store that tells other threads that a kernel is done.
void fence_entries(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration() || function.hasLocalLinkage()) continue;
    for (llvm::BasicBlock& block : function) {
      auto* const end = llvm::dyn_cast<llvm::ReturnInst>(block.getTerminator());
      if (end == nullptr) continue;
      llvm::IRBuilder<>(end).CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
    }
  }
}

}  // namespace

struct X86Codegen::Machine {
  CodegenOptions options;
  LLVMTargetMachineRef target = nullptr;
  FloatTarget floats;
  DotTarget dots;
  unsigned vector_bytes = 16;

  ~Machine() {
    if (target != nullptr) LLVMDisposeTargetMachine(target);
  }
  bool describe(std::string& error);
  void lower(const Module& module, const LoweringPlan& plan, const std::vector<std::string>& names,
             llvm::Module& into, LoweringAids aids) const;
  bool optimize(llvm::Module& module, std::string& error) const;
  bool run_passes(llvm::Module& module, std::string& error) const;
  bool emit(llvm::Module& module, OutputForm form, std::string& bytes, std::string& error) const;
};

X86Codegen::X86Codegen(std::unique_ptr<Machine> machine) : machine_(std::move(machine)) {}
X86Codegen::~X86Codegen() = default;

std::unique_ptr<X86Codegen> X86Codegen::create(const CodegenOptions& options,
                                               Diagnostics& diagnostics) {
  initialize_llvm();
  auto machine = std::make_unique<Machine>();
  machine->options = options;
  std::string error;
  if (machine->describe(error)) {
    return std::unique_ptr<X86Codegen>(new X86Codegen(std::move(machine)));
  }
  diagnostics.emit(Diag::LoweringInternal, {}, {{"detail", error}});
  return nullptr;
}

// Makes the target and what is known of it.
bool X86Codegen::Machine::describe(std::string& error) {
  LLVMTargetRef family = nullptr;
  char* message = nullptr;
  if (LLVMGetTargetFromTriple(kTriple, &family, &message) != 0) {
    error = take_message(message);
    return false;
  }
  std::string cpu = options.cpu.empty() ? kGenericCpu : options.cpu;
  std::string features = options.features;
  if (cpu == "native") {
    cpu = take_message(LLVMGetHostCPUName());
    features = take_message(LLVMGetHostCPUFeatures());
  }
  target = LLVMCreateTargetMachine(family, kTriple, cpu.c_str(), features.c_str(),
                                   code_level(options.opt_level), LLVMRelocPIC, LLVMCodeModelSmall);
  LOOM_CHECK(target != nullptr, "no code generator for x86-64");
  // Otherwise constructors go where today's loaders do not look.
  cpp(target).Options.UseInitArray = true;
  // Whoever links variants says how much stack they take.
  cpp(target).Options.EmitStackSizeSection = !options.variant.empty();
  const llvm::MCSubtargetInfo& features_of = *cpp(target).getMCSubtargetInfo();
  floats = {.converts_half = features_of.checkFeatures("+f16c"),
            .fuses = features_of.checkFeatures("+fma")};
  const bool any_length = features_of.checkFeatures("+avx512vl");
  dots = {.pairs_bf16 = any_length && features_of.checkFeatures("+avx512bf16"),
          .quads = (any_length && features_of.checkFeatures("+avx512vnni")) ||
                   features_of.checkFeatures("+avxvnni"),
          .wide = any_length};
  if (features_of.checkFeatures("+avx")) vector_bytes = 32;
  if (features_of.checkFeatures("+avx512f")) vector_bytes = 64;
  return true;
}

namespace {

// Gives the kernel's name to a function that jumps to where a variable points.
void make_replaceable(llvm::Function& kernel) {
  llvm::Module& module = *kernel.getParent();
  llvm::LLVMContext& context = module.getContext();
  const std::string name = kernel.getName().str();
  kernel.setName(name + ".own");
  kernel.setLinkage(llvm::GlobalValue::InternalLinkage);
  auto* const pointer = llvm::PointerType::get(context, 0);
  auto* const target =
      new llvm::GlobalVariable(module, pointer, /*isConstant=*/false,
                               llvm::GlobalValue::ExternalLinkage, &kernel, kReplaceableTarget);
  target->setAlignment(llvm::Align(sizeof(void*)));
  target->setDSOLocal(true);
  llvm::Function* const jump = llvm::Function::Create(
      kernel.getFunctionType(), llvm::GlobalValue::ExternalLinkage, name, module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", jump));
  llvm::LoadInst* const now = builder.CreateAlignedLoad(pointer, target, llvm::Align(8));
  now->setAtomic(llvm::AtomicOrdering::Acquire);
  llvm::SmallVector<llvm::Value*, 4> args;
  for (llvm::Argument& arg : jump->args()) args.push_back(&arg);
  llvm::CallInst* const call = builder.CreateCall(kernel.getFunctionType(), now, args);
  call->setTailCallKind(llvm::CallInst::TCK_MustTail);
  builder.CreateRetVoid();
}

}  // namespace

void X86Codegen::Machine::lower(const Module& module, const LoweringPlan& plan,
                                const std::vector<std::string>& names, llvm::Module& into,
                                LoweringAids aids) const {
  llvm::IRBuilder<> builder(into.getContext());
  aids.dots = dots;
  BodyLowering lowering(module, plan, into, builder, floats, aids);
  lowering.lower_functions();
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    emit_entry(module, plan.kernels[i], names[i], options.denormals, into, builder, lowering);
  }
  if (aids.lines != nullptr) aids.lines->finish();
  if (options.replaceable) make_replaceable(*into.getFunction(names.front()));
  for (llvm::Function& function : into) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("prefer-vector-width", "256");
    if (options.denormals == DenormalMode::Flush) {
      function.addFnAttr("denormal-fp-math", "preserve-sign,preserve-sign");
    }
  }
#ifndef NDEBUG
  std::string broken;
  llvm::raw_string_ostream stream(broken);
  LOOM_CHECK(!llvm::verifyModule(into, &stream), broken.c_str());
#endif
}

bool X86Codegen::Machine::optimize(llvm::Module& module, std::string& error) const {
  if (!options.passes.empty() && !run_passes(module, error)) return false;
  if (stream_accesses(module, vector_bytes)) fence_entries(module);
  return true;
}

bool X86Codegen::Machine::run_passes(llvm::Module& module, std::string& error) const {
  LLVMPassBuilderOptionsRef builder = LLVMCreatePassBuilderOptions();
  LLVMPassBuilderOptionsSetLoopVectorization(builder, 1);
  LLVMPassBuilderOptionsSetSLPVectorization(builder, 1);
  LLVMPassBuilderOptionsSetLoopUnrolling(builder, 1);
  LLVMPassBuilderOptionsSetLoopInterleaving(builder, 1);
  LLVMErrorRef failed = LLVMRunPasses(llvm::wrap(&module), options.passes.c_str(), target, builder);
  LLVMDisposePassBuilderOptions(builder);
  if (failed == nullptr) return true;
  char* const message = LLVMGetErrorMessage(failed);
  error = message;
  LLVMDisposeErrorMessage(message);
  return false;
}

bool X86Codegen::Machine::emit(llvm::Module& module, OutputForm form, std::string& bytes,
                               std::string& error) const {
  const LLVMModuleRef handle = llvm::wrap(&module);
  if (form == OutputForm::LlvmIr) {
    bytes = take_message(LLVMPrintModuleToString(handle));
    return true;
  }
  LLVMMemoryBufferRef buffer = nullptr;
  if (form == OutputForm::LlvmBitcode) {
    buffer = LLVMWriteBitcodeToMemoryBuffer(handle);
  } else {
    char* message = nullptr;
    const auto type = form == OutputForm::Object ? LLVMObjectFile : LLVMAssemblyFile;
    if (LLVMTargetMachineEmitToMemoryBuffer(target, handle, type, &message, &buffer) != 0) {
      error = take_message(message);
      return false;
    }
  }
  bytes.assign(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
  LLVMDisposeMemoryBuffer(buffer);
  return true;
}

std::string kernel_contracts(const Module& module, std::span<const OpId> kernels,
                             std::span<const std::string> names) {
  std::string text;
  for (size_t i = 0; i < kernels.size(); ++i) {
    text += names[i] + "\t(";
    const char* separator = "";
    for (const ValueId arg :
         module.args(module.op_region(kernels[i], region_slot(KernelDef, "body")))) {
      text += separator + type_text(module, module.type_of(arg));
      separator = ", ";
    }
    text += ")\n";
  }
  return text;
}

namespace {

void state_contracts(const std::string& text, llvm::Module& into) {
  llvm::Constant* const bytes =
      llvm::ConstantDataArray::getString(into.getContext(), text, /*AddNull=*/false);
  auto* const global =
      new llvm::GlobalVariable(into, bytes->getType(), /*isConstant=*/true,
                               llvm::GlobalValue::PrivateLinkage, bytes, "loom_kernels");
  global->setSection(kContractSection);
  global->setAlignment(llvm::Align(1));
  llvm::appendToCompilerUsed(into, {global});
}

// Of an object that is one of several with the same kernels: another object of the link calls the
// entries, and nobody else.
void hide(const std::vector<std::string>& names, llvm::Module& module) {
  for (const std::string& name : names) {
    module.getFunction(name)->setVisibility(llvm::GlobalValue::HiddenVisibility);
  }
}

// The names of the entries; nullopt, with a diagnostic, when an object cannot hold one.
std::optional<std::vector<std::string>> entry_names(const Module& module,
                                                    std::span<const OpId> kernels,
                                                    Diagnostics& diagnostics) {
  static const llvm::TargetLibraryInfoImpl library{llvm::Triple(kTriple)};
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const OpId kernel : kernels) {
    names.emplace_back(export_name(module, kernel));
    const std::string& name = names.back();
    llvm::LibFunc function{};
    if (library.getLibFunc(name, function)) {
      diagnostics.emit(
          Diag::LoweringNotSupported, module.location(kernel),
          {{"op", "kernel.def"},
           {"where", fmt::format("on x86_64 under the name '{}' of a C library function", name)}});
      return std::nullopt;
    }
    if (!taken.insert(name).second) {
      diagnostics.emit(Diag::SymbolDuplicate, module.location(kernel), {{"symbol", name}});
      return std::nullopt;
    }
  }
  return names;
}

}  // namespace

std::optional<std::string> X86Codegen::generate(const Module& module, std::span<const OpId> kernels,
                                                const std::string& name, OutputForm form,
                                                Diagnostics& diagnostics, CodegenNotes* notes) {
  StepClock clock(notes);
  std::vector<std::string> names = {name};
  if (name.empty()) {
    auto own = entry_names(module, kernels, diagnostics);
    if (!own) return std::nullopt;
    names = std::move(*own);
    for (std::string& entry : names) entry += machine_->options.variant;
  }
  const auto plan = plan_lowering(module, kernels, {.name = "x86_64"}, diagnostics);
  if (!plan) return std::nullopt;

  clock.ends("plan");

  std::string error;
  auto context_owner = std::make_unique<llvm::LLVMContext>();
  llvm::LLVMContext& context = *context_owner;
  context.setDiagnosticHandler(make_note_collector(error, notes));
  context.setDiscardValueNames(form != OutputForm::LlvmIr);
  auto module_owner = std::make_unique<llvm::Module>("loom", context);
  llvm::Module& into = *module_owner;
  into.setTargetTriple(kTriple);
  into.setDataLayout(cpp(machine_->target).createDataLayout());
  // What people read is not cluttered with places.
  std::optional<DebugLines> lines;
  if (form == OutputForm::Object || form == OutputForm::LlvmBitcode) lines.emplace(module, into);
  machine_->lower(module, *plan, names, into,
                  {lines ? &*lines : nullptr, notes, !machine_->options.passes.empty()});
  if (!machine_->options.variant.empty()) {
    hide(names, into);
  } else if (name.empty()) {
    state_contracts(kernel_contracts(module, kernels, names), into);
  }
  if (notes != nullptr) {
    for (size_t i = 0; i < names.size(); ++i) {
      notes->storage.push_back(
          {names[i], plan->kernels[i].private_bytes, plan->kernels[i].workgroup_bytes});
    }
  }
  clock.ends("lower");
  const bool is_large = plan->largest_body > kMaxOptimizedOps;
  cpp(machine_->target)
      .setOptLevel(static_cast<llvm::CodeGenOptLevel>(
          code_level(is_large ? 0 : machine_->options.opt_level)));
  if (notes != nullptr) notes->counts_spills = !is_large && machine_->options.opt_level > 0;
  std::string bytes;
  bool good = false;
  const auto fatal = catch_fatal_error([&] {
    good = machine_->optimize(into, error) && error.empty();
    clock.ends("optimize");
    good = good && machine_->emit(into, form, bytes, error) && error.empty();
    clock.ends("emit");
  });
  if (fatal) {
    // Nobody knows what they are in the midst of, so they stay.
    (void)module_owner.release();
    (void)context_owner.release();
    LOOM_CHECK(machine_->describe(error), "no second code generator where there was one");
    error = *fatal;
  }
  if (!good || fatal) {
    diagnostics.emit(Diag::LoweringInternal, module.location(kernels.front()), {{"detail", error}});
    return std::nullopt;
  }
  return bytes;
}

std::optional<std::string> X86Codegen::assemble(const std::string& text, Diagnostics& diagnostics) {
  static std::once_flag once;
  std::call_once(once, [] { LLVMInitializeX86AsmParser(); });
  std::string error;
  llvm::LLVMContext context;
  context.setDiagnosticHandler(make_note_collector(error, nullptr));
  llvm::SMDiagnostic mistake;
  const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, mistake, context);
  std::string bytes;
  bool good = module != nullptr;
  if (good) {
    module->setTargetTriple(kTriple);
    module->setDataLayout(cpp(machine_->target).createDataLayout());
    good = machine_->optimize(*module, error) &&
           machine_->emit(*module, OutputForm::Object, bytes, error) && error.empty();
  } else {
    error = fmt::format("line {}: {}", mistake.getLineNo(), mistake.getMessage().str());
  }
  if (good) return bytes;
  diagnostics.emit(Diag::LoweringInternal, {}, {{"detail", error}});
  return std::nullopt;
}

std::string code_generator_name() { return "LLVM " LLVM_VERSION_STRING; }

X86Cpu x86_cpu(const std::string& cpu) {
  if (cpu != "native") return {cpu.empty() ? kGenericCpu : cpu, ""};
  return {take_message(LLVMGetHostCPUName()), take_message(LLVMGetHostCPUFeatures())};
}

std::string x86_cpu_identity(const std::string& cpu) {
  const X86Cpu known = x86_cpu(cpu);
  std::string text = code_generator_name() + " " + known.name;
  if (!known.features.empty()) text += " " + known.features;
  return text;
}

bool is_known_x86_cpu(const std::string& cpu) {
  initialize_llvm();
  std::string error;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(kTriple, error);
  LOOM_CHECK(target != nullptr, "no code generator for x86-64");
  const std::unique_ptr<llvm::MCSubtargetInfo> generic(
      target->createMCSubtargetInfo(kTriple, kGenericCpu, ""));
  if (!generic->isCPUStringValid(cpu)) return false;
  const std::unique_ptr<llvm::MCSubtargetInfo> info(
      target->createMCSubtargetInfo(kTriple, cpu, ""));
  return info->checkFeatures("+64bit,+sse2");
}

}  // namespace loom
