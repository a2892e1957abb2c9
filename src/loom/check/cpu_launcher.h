// Launches on the CPU: kernels and programs as machine code in this process.
#pragma once

#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loom/check/launcher.h"
#include "loom/command/footprint.h"
#include "loom/link/link.h"
#include "loom/runtime/device.h"
#include "loom/runtime/host/host_code.h"
#include "loom/target/x86/jit.h"

namespace loom::check {

struct CpuLauncherOptions {
  JitOptions jit;
  unsigned threads = 1;  // that one launch of a program may use; 0 takes all
  // That programs take parameters from; null: they get none. It outlives the launcher.
  const ParameterSet* parameters = nullptr;
  std::string perf_folder;  // JitObservers
};

class CpuLauncher final : public Launcher {
 public:
  // `program` is the linked module with the cases; it must outlive the launcher and stay as it is.
  // Null when no code can be made on this machine, which was reported.
  static std::unique_ptr<CpuLauncher> create(const LinkInput& program,
                                             const CpuLauncherOptions& options,
                                             Diagnostics& diagnostics);

  bool prepare(std::string_view kernel, Diagnostics& diagnostics) override;
  LaunchOutcome launch(OpId op, std::span<const CaseValue> operands,
                       Diagnostics& diagnostics) override;

  // A launch with everything found out but where its storage lies.
  struct Resolved {
    const JitKernel* code = nullptr;  // of a kernel
    LoomDispatchShape shape{};
    uint64_t workgroups = 0;
    std::vector<Argument> arguments;            // of a kernel, buffers numbered by `storage`
    const Program* program = nullptr;           // or else of a command program
    Invocation* invocation = nullptr;           // of it, with the storage bound
    std::vector<std::string> kernels;           // of its commands, in their order
    std::vector<std::span<std::byte>> storage;  // by binding
  };
  // Reports and says why there is none.
  std::expected<Resolved, LaunchOutcome> resolve(OpId op, std::span<const CaseValue> operands,
                                                 Diagnostics& diagnostics);
  Device& device();

 private:
  struct Kernel {
    std::optional<JitKernel> code;
    KernelNeeds needs;
    std::optional<Module> configuration;  // the companion's module
    std::optional<InterpTables> tables;   // of it
    // The last workload and what it gave; cases tend to repeat it.
    std::vector<uint64_t> workload;
    std::optional<LoomDispatchShape> shape;
  };
  // A program at certain specializations.
  struct Prepared {
    Module module;  // that its kernels were written in
    PreparedPlan plan;
    std::unique_ptr<HostCode> code;
    std::unique_ptr<Program> program;
    std::unique_ptr<Invocation> invocation;
    std::vector<std::string> kernels;  // of its commands
  };

  CpuLauncher(const LinkInput& program, const CpuLauncherOptions& options,
              std::shared_ptr<JitEngine> engine)
      : program_(program), tables_(program.module), options_(options), engine_(std::move(engine)) {
    if (options_.parameters == nullptr) options_.parameters = &no_parameters_;
  }
  std::expected<Resolved, LaunchOutcome> resolve_kernel(OpId op,
                                                        std::span<const CaseValue> operands,
                                                        Diagnostics& diagnostics);
  std::expected<Resolved, LaunchOutcome> resolve_program(OpId op,
                                                         std::span<const CaseValue> operands,
                                                         Diagnostics& diagnostics);
  bool keeps_contracts(OpId op, std::string_view name, unsigned first,
                       std::span<const CaseValue> operands, Diagnostics& diagnostics);
  bool configure(std::string_view name, Kernel& kernel, std::span<const CaseValue> workload,
                 OpId op, Diagnostics& diagnostics);
  bool fits(OpId op, unsigned first, const Kernel& kernel, const Resolved& launch,
            Diagnostics& diagnostics) const;
  Prepared* specialized(const std::string& name, const std::vector<std::string>& values,
                        Diagnostics& diagnostics);
  std::optional<Module> close(const LinkOptions& options, Diagnostics& diagnostics) const;

  const LinkInput& program_;
  InterpTables tables_;  // of it
  ParameterSet no_parameters_;
  CpuLauncherOptions options_;
  std::shared_ptr<JitEngine> engine_;
  LibraryIndex no_libraries_;
  std::map<std::string, Kernel, std::less<>> kernels_;
  std::map<std::string, std::unique_ptr<Prepared>> programs_;  // by name and specializations
  std::unique_ptr<Device> device_;                             // made by the first program
};

}  // namespace loom::check
