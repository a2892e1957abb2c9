// A test run from the linked module to its results: plan, compile, run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "loom/check/cpu_launcher.h"
#include "loom/check/plan.h"
#include "loom/check/sample_runner.h"
#include "loom/check/workers.h"
#include "loom/link/link.h"
#include "loom/target/llvm/options.h"

namespace loom::check {

struct TestOptions {
  PlanOptions plan;
  std::string device = "cpu";  // or "interp"
  // What the interpreter looks for besides the bounds of every access; without either, all of it.
  bool sanitize_access = false;
  bool sanitize_race = false;
  DenormalMode denormals = DenormalMode::Keep;
  std::shared_ptr<const ParameterSet> parameters;  // of programs; null: there are none
  std::map<std::string, std::string> oracles;      // command by name
  std::string output_folder;
  bool keep_failures = false;
  std::string rerun;        // the command line, without the choice of a sample
  unsigned threads = 1;     // that one launch may use; 0 takes all
  std::string perf_folder;  // JitObservers
  WorkerOptions workers;
};

DeviceTraits device_traits(const TestOptions& options);
RunContext run_context(const Module& module, const TestOptions& options, Launcher* launcher);

// Compiles what the planned samples launch, each kernel once. A case whose kernel has no code gets
// an issue that says why. Null where launches are interpreted, and where no code can be made at
// all, which is reported. `step` is called after each kernel.
std::unique_ptr<CpuLauncher> compile_launches(const LinkInput& program, Plan& plan,
                                              const TestOptions& options,
                                              const std::function<void()>& step,
                                              Diagnostics& diagnostics);
// Takes the samples of cases with issues out of the plan.
void drop_unplannable(Plan& plan);
// How many kernels that is.
size_t kernel_count(const Plan& plan);

// Runs the samples of the plan and calls `done` for each one in their order. False when no process
// can be started.
bool run_samples(const Plan& plan, const RunContext& context, const WorkerOptions& workers,
                 const std::function<void(size_t, SampleReport&&)>& done, std::string& problem);

// One sample in this process, as the workers report it.
SampleReport report_sample(const RunContext& context, const Case& of, uint64_t ordinal,
                           const SampleResult& result);

RenderedIssue render_issue(const Diagnostic& diagnostic, const SourceFiles& files);

}  // namespace loom::check
