#include "loom/target/x86/jit.h"

#include <fmt/format.h>
#include <llvm/ExecutionEngine/Orc/DebugObjectManagerPlugin.h>
#include <llvm/ExecutionEngine/Orc/EPCDebugObjectRegistrar.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "loom/base/check.h"
#include "loom/base/failed_checks.h"
#include "loom/base/hash.h"
#include "loom/dialect/op_info.h"
#include "loom/target/x86/codegen.h"
#include "loom/target/x86/perf_dump.h"
#include "loom/target/x86/perf_plugin.h"

namespace loom {
namespace {

// The generators of one tier and mode that no thread is using.
class GeneratorPool {
 public:
  std::unique_ptr<X86Codegen> take(const JitOptions& options, Diagnostics& diagnostics);
  void give_back(const JitOptions& options, std::unique_ptr<X86Codegen> generator);

 private:
  static size_t shelf(const JitOptions& options) {
    return static_cast<size_t>(options.tier) * 4 + static_cast<size_t>(options.denormals) * 2 +
           static_cast<size_t>(options.replaceable);
  }

  std::mutex mutex_;
  std::array<std::vector<std::unique_ptr<X86Codegen>>, 8> free_;
};

std::unique_ptr<X86Codegen> GeneratorPool::take(const JitOptions& options,
                                                Diagnostics& diagnostics) {
  {
    const std::lock_guard lock(mutex_);
    auto& free = free_[shelf(options)];
    if (!free.empty()) {
      auto generator = std::move(free.back());
      free.pop_back();
      return generator;
    }
  }
  const bool fast = options.tier == JitTier::Fast;
  return X86Codegen::create({.cpu = "native",
                             .opt_level = fast ? 0 : 2,
                             .passes = fast ? "" : "default<O2>",
                             .denormals = options.denormals,
                             .replaceable = options.replaceable},
                            diagnostics);
}

void GeneratorPool::give_back(const JitOptions& options, std::unique_ptr<X86Codegen> generator) {
  const std::lock_guard lock(mutex_);
  free_[shelf(options)].push_back(std::move(generator));
}

}  // namespace

// A JITDylib per kernel: names cannot collide, and removing it frees the code.
struct JitEngine::Impl {
  GeneratorPool generators;
  std::unique_ptr<llvm::orc::ExecutionSession> session;
  std::unique_ptr<llvm::orc::ObjectLinkingLayer> linker;
  llvm::orc::JITDylib* process = nullptr;  // the C library
  std::atomic<uint64_t> next_number = 0;

  ~Impl();
  bool start(std::string& error);
  bool tell_debugger(std::string& error);
  llvm::orc::JITDylib* load(std::string_view object, std::string_view symbol, std::string_view name,
                            void*& entry, std::string& error);
  void* find(llvm::orc::JITDylib& dylib, std::string_view symbol, std::string& error);
  void remove(llvm::orc::JITDylib& dylib);
};

JitEngine::Impl::~Impl() {
  if (session != nullptr) llvm::cantFail(session->endSession());
}

bool JitEngine::Impl::start(std::string& error) {
  auto control = llvm::orc::SelfExecutorProcessControl::Create();
  if (!control) {
    error = llvm::toString(control.takeError());
    return false;
  }
  session = std::make_unique<llvm::orc::ExecutionSession>(std::move(*control));
  // The failed lookup reports the same error.
  session->setErrorReporter([](llvm::Error failure) { llvm::consumeError(std::move(failure)); });
  linker = std::make_unique<llvm::orc::ObjectLinkingLayer>(*session);
  process = &session->createBareJITDylib("process");
  auto generator = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess('\0');
  if (!generator) {
    error = llvm::toString(generator.takeError());
    return false;
  }
  process->addGenerator(std::move(*generator));
  const llvm::orc::ExecutorSymbolDef report(llvm::orc::ExecutorAddr::fromPtr(&loom_check_failed),
                                            llvm::JITSymbolFlags::Exported);
  if (auto failed = process->define(
          llvm::orc::absoluteSymbols({{session->intern("loom_check_failed"), report}}))) {
    error = llvm::toString(std::move(failed));
    return false;
  }
  return true;
}

bool JitEngine::Impl::tell_debugger(std::string& error) {
  auto registrar = llvm::orc::createJITLoaderGDBRegistrar(*session);
  if (!registrar) {
    error = llvm::toString(registrar.takeError());
    return false;
  }
  linker->addPlugin(std::make_unique<llvm::orc::DebugObjectManagerPlugin>(
      *session, std::move(*registrar), /*RequireDebugSections=*/true, /*AutoRegisterCode=*/true));
  return true;
}

llvm::orc::JITDylib* JitEngine::Impl::load(std::string_view object, std::string_view symbol,
                                           std::string_view name, void*& entry,
                                           std::string& error) {
  llvm::orc::JITDylib& dylib = session->createBareJITDylib(
      fmt::format("{}{}{}", name, kDylibNumber, next_number.fetch_add(1)));
  dylib.addToLinkOrder(*process);
  llvm::Error failure = linker->add(
      dylib, llvm::MemoryBuffer::getMemBufferCopy({object.data(), object.size()}, "kernel"));
  if (failure) {
    error = llvm::toString(std::move(failure));
  } else {
    entry = find(dylib, symbol, error);
    if (entry != nullptr) return &dylib;
  }
  remove(dylib);
  return nullptr;
}

void* JitEngine::Impl::find(llvm::orc::JITDylib& dylib, std::string_view symbol,
                            std::string& error) {
  auto found = session->lookup({&dylib}, session->intern({symbol.data(), symbol.size()}));
  if (found) return found->getAddress().toPtr<void*>();
  error = llvm::toString(found.takeError());
  return nullptr;
}

void JitEngine::Impl::remove(llvm::orc::JITDylib& dylib) {
  llvm::consumeError(session->removeJITDylib(dylib));
}

struct JitKernel::Code {
  std::shared_ptr<JitEngine::Impl> engine;
  llvm::orc::JITDylib& dylib;

  Code(std::shared_ptr<JitEngine::Impl> e, llvm::orc::JITDylib& d)
      : engine(std::move(e)), dylib(d) {}
  ~Code() { engine->remove(dylib); }
};

JitKernel::JitKernel(std::unique_ptr<Code> code, LoomKernelEntry address, void* target,
                     std::string object_hash)
    : code_(std::move(code)),
      entry_(address),
      target_(target),
      object_hash_(std::move(object_hash)) {}
JitKernel::JitKernel() = default;
JitKernel::JitKernel(JitKernel&& other) noexcept = default;
JitKernel& JitKernel::operator=(JitKernel&& other) noexcept = default;
JitKernel::~JitKernel() = default;

void JitKernel::replace(LoomKernelEntry better) const {
  LOOM_CHECK(target_ != nullptr, "code that was not made replaceable");
  std::atomic_ref(*static_cast<LoomKernelEntry*>(target_)).store(better, std::memory_order_release);
}

std::string jit_identity(const JitOptions& options) {
  return fmt::format("jit tier{} denormals{}{} {}", static_cast<int>(options.tier),
                     static_cast<int>(options.denormals), options.replaceable ? " replaceable" : "",
                     x86_cpu_identity("native"));
}

JitEngine::JitEngine(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
JitEngine::~JitEngine() = default;

std::unique_ptr<JitEngine> JitEngine::create(Diagnostics& diagnostics,
                                             const JitObservers& observers) {
  auto impl = std::make_shared<Impl>();
  std::string error;
  if (!impl->start(error) || (observers.debugger && !impl->tell_debugger(error))) {
    diagnostics.emit(Diag::LoweringInternal, {}, {{"detail", error}});
    return nullptr;
  }
  if (!observers.perf_folder.empty()) {
    auto dump = PerfDump::create(observers.perf_folder);
    if (!dump) {
      diagnostics.emit(Diag::IoWrite, {},
                       {{"path", dump.error().path}, {"reason", dump.error().reason}});
      return nullptr;
    }
    tell_perf(*impl->linker, std::move(*dump));
  }
  return std::unique_ptr<JitEngine>(new JitEngine(std::move(impl)));
}

std::optional<std::string> JitEngine::compile(const Module& module, OpId kernel,
                                              const JitOptions& options, Diagnostics& diagnostics,
                                              CodegenNotes* notes) {
  auto generator = impl_->generators.take(options, diagnostics);
  if (generator == nullptr) return std::nullopt;
  auto object = generator->generate(module, std::span(&kernel, 1), std::string(kJitEntryName),
                                    OutputForm::Object, diagnostics, notes);
  impl_->generators.give_back(options, std::move(generator));
  return object;
}

std::optional<JitKernel> JitEngine::add(const Module& module, OpId kernel,
                                        const JitOptions& options, Diagnostics& diagnostics) {
  const auto object = compile(module, kernel, options, diagnostics);
  if (!object) return std::nullopt;
  return add_object(*object, kJitEntryName, diagnostics, symbol_text(module, kernel));
}

std::optional<JitKernel> JitEngine::add_object(std::string_view object, std::string_view symbol,
                                               Diagnostics& diagnostics, std::string_view name) {
  void* entry = nullptr;
  std::string error;
  llvm::orc::JITDylib* const dylib =
      impl_->load(object, symbol, name.empty() ? symbol : name, entry, error);
  if (dylib == nullptr) {
    diagnostics.emit(Diag::LoweringInternal, {}, {{"detail", error}});
    return std::nullopt;
  }
  // Objects that cannot be replaced do not have the name.
  void* target = nullptr;
  if (object.find(kReplaceableTarget) != object.npos) {
    target = impl_->find(*dylib, kReplaceableTarget, error);
  }
  return JitKernel(std::make_unique<JitKernel::Code>(impl_, *dylib),
                   reinterpret_cast<LoomKernelEntry>(entry), target, sha256_hex(object));
}

}  // namespace loom
