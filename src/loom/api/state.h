// What the handles of loom.h hold. For the sources of this room.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "loom/api/issue_queue.h"
#include "loom/api/loom.h"
#include "loom/command/artifact.h"
#include "loom/link/link.h"
#include "loom/pass/workspace.h"
#include "loom/runtime/device.h"
#include "loom/runtime/host/host_code.h"

namespace loom::api {

struct Context::State {
  explicit State(std::shared_ptr<const State> below)
      : base(std::move(below)), files(base != nullptr ? &base->files : nullptr) {}
  // What files are added to; nothing may be once a context lies over this one.
  SourceFiles& open_files();

  std::shared_ptr<const State> base;  // null for one that stands alone
  SourceFiles files;
  mutable std::atomic<bool> frozen{false};
};

struct Messages::State {
  explicit State(std::shared_ptr<Context::State> of) : context(std::move(of)) {}
  // Whether they can quote the files of `source`.
  bool quotes(const Context::State& source) const {
    return context.get() == &source || context->base.get() == &source;
  }
  // For what is of `source`.
  Diagnostics& of(const Context::State& source);

  std::shared_ptr<Context::State> context;
  Diagnostics diagnostics;
};

struct Modules::State {
  std::shared_ptr<Context::State> context;
  std::vector<LinkInput> inputs;
};

struct Library::State {
  std::shared_ptr<Context::State> context;  // null for a library without modules
  LibraryIndex index;
};

struct Module::State {
  std::shared_ptr<Context::State> context;
  loom::Module module;
};

struct LinkedModule::State {
  std::shared_ptr<Context::State> context;
  loom::Module module;
};

struct LaunchConfig::State {
  std::shared_ptr<Context::State> context;
  loom::Module module;
};

struct Workspace::State {
  PassWorkspace tables;
  std::shared_ptr<JitEngine> engine;  // null before the first compile
};

struct Plan::State {
  size_t program_count() const { return artifact ? 1 : plan.programs.size(); }
  ProgramView program(size_t index) const;

  std::unique_ptr<LinkedModule::State> source;  // where kernels were written; null of an artifact
  std::optional<CommandArtifact> artifact;      // that the program lies in, or else `plan` has it
  PreparedPlan plan;                            // of an artifact: its entries alone
  // Paths of the files that the locations of commands name: the context belongs to one thread, and
  // a plan does not.
  std::vector<std::pair<FileId, std::string>> paths;
  std::vector<loom::KernelRequest> requests;
  std::vector<KernelRequest> views;
  mutable std::mutex compiling;  // a module is read by one thread at a time
};

struct Code::State {
  std::shared_ptr<const HostKernel> kernel;
};

struct Executables::State {
  std::shared_ptr<const Plan::State> plan;
  std::unique_ptr<HostCode> code;
};

struct Parameters::State {
  ParameterSet set;
};

struct Device::State {
  std::unique_ptr<loom::Device> device;
  mutable IssueQueue queue;
};

struct Storage::State {
  std::shared_ptr<const Device::State> device;
  Buffer own;  // empty for imported memory
  std::span<std::byte> bytes;
};

struct Program::State {
  // What the program points into, and so outlives it.
  std::shared_ptr<const Device::State> device;
  std::shared_ptr<const Executables::State> executables;
  std::shared_ptr<Parameters::State> parameters;
  uint32_t index = 0;  // of the plan's programs
  std::unique_ptr<loom::Program> program;
};

}  // namespace loom::api
