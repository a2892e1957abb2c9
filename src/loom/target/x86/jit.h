// Kernels to callable x86-64 code in this process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"
#include "loom/target/llvm/notes.h"
#include "loom/target/llvm/options.h"
#include "loom/target/x86/kernel_abi.h"

namespace loom {

enum class JitTier : uint8_t {
  Fast,       // least time to callable code
  Optimized,  // vectorized loops; several times the compile time
};

inline constexpr std::string_view kJitEntryName = "loom_kernel";

struct JitOptions {
  JitTier tier = JitTier::Optimized;
  DenormalMode denormals = DenormalMode::Keep;
  bool replaceable = false;  // other code may take its place (JitKernel::replace)
};

// All that decides the object of a kernel besides its module and this build of the compiler: the
// options, this machine's CPU and the code generator's version.
std::string jit_identity(const JitOptions& options);

// Who is told of code that is loaded. Modules must know their places for lines to be shown.
struct JitObservers {
  // gdb and lldb, through their JIT interface; they then show source lines and unwind through
  // kernels. That costs a copy of each object.
  bool debugger = false;
  // The folder that gets what perf needs to show kernels by name and line (perf_dump.h); empty:
  // perf is not told.
  std::string perf_folder;
};

// Code of one kernel. Dies with this object (which may outlive its engine), so nothing may run it
// then.
class JitKernel {
 public:
  JitKernel();
  JitKernel(JitKernel&& other) noexcept;
  JitKernel& operator=(JitKernel&& other) noexcept;
  ~JitKernel();

  LoomKernelEntry entry() const { return entry_; }
  // Calls of entry() that begin from here on run `better`, which does the same and lives at least
  // as long as they do; calls that are under way end in the code that they are in. From any thread.
  // Only of code that was made replaceable.
  void replace(LoomKernelEntry better) const;
  bool is_replaceable() const { return target_ != nullptr; }
  // sha256 of the object that was loaded.
  const std::string& object_hash() const { return object_hash_; }

 private:
  friend class JitEngine;
  struct Code;
  JitKernel(std::unique_ptr<Code> code, LoomKernelEntry address, void* target,
            std::string object_hash);

  std::unique_ptr<Code> code_;
  LoomKernelEntry entry_ = nullptr;
  void* target_ = nullptr;  // where replaceable code jumps to
  std::string object_hash_;
};

// Compiles for the CPU of this machine. All members may be called from several threads at once.
class JitEngine {
 public:
  // Null, with a diagnostic, when code cannot be generated on this machine, or an observer cannot
  // be told.
  static std::unique_ptr<JitEngine> create(Diagnostics& diagnostics,
                                           const JitObservers& observers = {});
  ~JitEngine();

  // `kernel` is a `kernel.def` of the verified module. Kernels of equal names do not collide. The
  // module is read during the call only, and no other thread may use it meanwhile.
  std::optional<JitKernel> add(const Module& module, OpId kernel, const JitOptions& options,
                               Diagnostics& diagnostics);
  // The first half of add(): the object that it loads, for add_object() under kJitEntryName in this
  // process or, on this machine, another one. `notes` may be null.
  std::optional<std::string> compile(const Module& module, OpId kernel, const JitOptions& options,
                                     Diagnostics& diagnostics, CodegenNotes* notes = nullptr);
  // Loads an object that compile_x86 made and finds the entry `symbol` in it. Observers are told
  // that the kernel is called `name`, or `symbol` where that is empty.
  std::optional<JitKernel> add_object(std::string_view object, std::string_view symbol,
                                      Diagnostics& diagnostics, std::string_view name = {});

 private:
  friend class JitKernel;
  struct Impl;
  explicit JitEngine(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace loom
