// How long the code of a library kernel takes, for suite `kernels`.
//
// usage: bench_kernel_code PROGRAMS LIBRARY_FOLDER KERNELS CACHE_FOLDER BUDGET_MS CASE...
// Prints one JSON object: for each case the milliseconds CASE@request of the fast tier from a
// request to callable code, of them @ours in our passes and @llvm in LLVM, and @cached where the
// code is in the cache.

#include <chrono>
#include <string>
#include <vector>

#include "kernel_programs.h"
#include "loom/target/x86/jit.h"
#include "timing.h"

namespace loom::bench {
namespace {

// Nanoseconds.
struct Split {
  double all = 0;
  double llvm = 0;
};

Split compile_once(JitEngine& engine, const api::KernelRequest& request) {
  const Clock::time_point start = Clock::now();
  SourceFiles files;
  const Module module = load(files, std::string(request.bytecode), "request");
  Diagnostics diagnostics;
  CodegenNotes notes;
  const std::string object =
      value_or_fail(engine.compile(module, module.symbol(request.symbol), {.tier = JitTier::Fast},
                                   diagnostics, &notes),
                    diagnostics, "compile");
  const Clock::time_point compiled = Clock::now();
  const JitKernel kernel =
      value_or_fail(engine.add_object(object, kJitEntryName, diagnostics), diagnostics, "load");
  Split split;
  split.llvm = nanoseconds_since(compiled);
  split.all = nanoseconds_since(start);
  for (const CodegenNotes::Step& step : notes.steps) {
    if (step.name == "optimize" || step.name == "emit") split.llvm += 1e9 * step.seconds;
  }
  return split;
}

std::string times_of(KernelPrograms& programs, JitEngine& engine, const std::string& name,
                     const std::string& cache, std::chrono::milliseconds budget) {
  const api::Plan plan = programs.plan(name);
  const api::KernelRequest request = plan.requests().front();
  std::vector<double> all, ours, llvm;
  const Clock::time_point begin = Clock::now();
  do {
    const Split split = compile_once(engine, request);
    all.push_back(split.all);
    llvm.push_back(split.llvm);
    ours.push_back(split.all - split.llvm);
  } while (all.size() < 3 || Clock::now() - begin < budget);
  api::Workspace workspace;
  api::CompileOptions options;
  options.tier = api::Tier::Fast;
  options.cache_folder = cache;
  options.workspace = &workspace;
  const double cached = median_ns(budget, [&] {
    programs.demand(api::compile(request, options, programs.messages()).has_value());
  });
  return fmt::format(R"("{0}@request":{1},"{0}@ours":{2},"{0}@llvm":{3},"{0}@cached":{4})", name,
                     1e-6 * median(all), 1e-6 * median(ours), 1e-6 * median(llvm), 1e-6 * cached);
}

}  // namespace
}  // namespace loom::bench

int main(int argc, char** argv) {
  using namespace loom;
  using namespace loom::bench;
  require(
      argc > 6,
      "usage: bench_kernel_code PROGRAMS LIBRARY_FOLDER KERNELS CACHE_FOLDER BUDGET_MS CASE...");
  KernelPrograms programs(argv[1], argv[2], argv[3]);
  Diagnostics diagnostics;
  const auto engine = JitEngine::create(diagnostics);
  require(engine != nullptr, "no code can be generated here");
  std::string out;
  for (int i = 6; i < argc; ++i) {
    if (!out.empty()) out += ',';
    out += times_of(programs, *engine, argv[i], argv[4],
                    std::chrono::milliseconds(std::atoi(argv[5])));
  }
  fmt::print("{{{}}}\n", out);
  return 0;
}
