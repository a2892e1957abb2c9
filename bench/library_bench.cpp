// Kernels of the library from a request in memory to code that can be called: time, and whose.
//
// usage: bench_library LIBRARY_FOLDER WORK_FOLDER BUDGET_MS
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "common.h"
#include "loom/bytecode/bytecode.h"
#include "loom/link/link.h"
#include "loom/pass/expand_templates.h"
#include "loom/pass/pass_context.h"
#include "loom/runtime/host/host_code.h"
#include "loom/target/x86/codegen.h"
#include "loom/target/x86/compile.h"
#include "timing.h"

namespace loom::bench {
namespace {

double milliseconds_since(Clock::time_point begin) { return 1e-6 * nanoseconds_since(begin); }

// The kernel of a file of the library as a request; the other files are its libraries.
KernelRequest request_of(const std::string& folder, const std::string& file,
                         const std::string& kernel) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".loom") paths.push_back(entry.path().string());
  }
  std::ranges::sort(paths);
  SourceFiles files;
  std::vector<LinkInput> inputs;
  std::vector<LinkInput> libraries;
  for (const std::string& path : paths) {
    const bool is_own = std::filesystem::path(path).stem() == file;
    (is_own ? inputs : libraries).push_back({load(files, read_input(path), path), path});
  }
  LinkOptions options;
  options.roots = {kernel};
  Diagnostics diagnostics;
  const Module linked = value_or_fail(
      link(inputs, LibraryIndex(std::move(libraries)), options, diagnostics), diagnostics, kernel);
  KernelRequest made;
  made.symbol = kernel;
  made.export_name = kernel;
  made.bytecode = write_bytecode(linked);
  return made;
}

// The steps of one compilation: ours are reading, verifying, passes and lowering; LLVM's are
// machine code and loading.
struct Split {
  double ours = 0;
  double llvm = 0;
};

Split compile_in_steps(const KernelRequest& request, X86Codegen& generator, JitEngine& engine) {
  Split split;
  const auto begin = Clock::now();
  SourceFiles files;
  Diagnostics diagnostics;
  Module module = load(files, request.bytecode, "request");
  const OpId kernel = module.symbol(request.symbol);
  PassContext context(module, diagnostics, nullptr);
  require(expand_kernels(context, {&kernel, 1}, x86_selection()), "templates do not expand");
  split.ours = milliseconds_since(begin);
  CodegenNotes notes;
  const auto object =
      value_or_fail(generator.generate(module, {&kernel, 1}, std::string(kJitEntryName),
                                       OutputForm::Object, diagnostics, &notes),
                    diagnostics, request.symbol);
  for (const CodegenNotes::Step& step : notes.steps) {
    const bool ours = step.name == "plan" || step.name == "lower";
    (ours ? split.ours : split.llvm) += 1e3 * step.seconds;
  }
  const auto loading = Clock::now();
  const auto code = engine.add_object(object, kJitEntryName, diagnostics);
  require(code.has_value(), "the object does not load");
  split.llvm += milliseconds_since(loading);
  return split;
}

std::string run(const std::string& folder, const std::string& work,
                std::chrono::milliseconds budget) {
  Diagnostics diagnostics;
  HostCodeOptions options{.jit = {.tier = JitTier::Fast}};
  options.engine = JitEngine::create(diagnostics);
  require(options.engine != nullptr, "no code can be generated here");
  const auto generator = X86Codegen::create({.cpu = "native", .opt_level = 0}, diagnostics);
  require(generator != nullptr, "no code can be generated here");
  const auto cache = Cache::open({.folder = work + "/library-cache"});
  require(cache.has_value(), "no folder for code");
  std::string out;
  const auto report = [&](const std::string& key, double value) {
    out += fmt::format("{}\"{}\":{}", out.empty() ? "{" : ",", key, value);
  };
  const std::pair<const char*, const char*> kernels[] = {{"elementwise", "scale_f32"},
                                                         {"activations", "gelu_f32"},
                                                         {"softmax", "softmax_f32"},
                                                         {"norms", "layer_norm_f32"},
                                                         {"gemm", "gemm_f32"}};
  for (const auto& [file, kernel] : kernels) {
    const KernelRequest request = request_of(folder, file, kernel);
    const std::string name = kernel;
    const auto compiles = [&] {
      require(compile_request(request, options, diagnostics) != nullptr, name);
    };
    options.cache = nullptr;
    options.jit.tier = JitTier::Fast;
    report(fmt::format("{}_fast", name), 1e-6 * median_ns(budget, compiles));
    options.cache = cache->get();
    compiles();
    const uint64_t misses = (*cache)->counts().misses;
    report(fmt::format("{}_cached", name), 1e-6 * median_ns(budget, compiles));
    require((*cache)->counts().misses == misses, "code is not taken from the cache");
    options.cache = nullptr;
    options.jit.tier = JitTier::Optimized;
    report(fmt::format("{}_optimized", name), 1e-6 * median_ns(budget, compiles));
    std::vector<double> ours;
    std::vector<double> llvm;
    for (int i = 0; i < 15; ++i) {
      const Split split = compile_in_steps(request, *generator, *options.engine);
      ours.push_back(split.ours);
      llvm.push_back(split.llvm);
    }
    report(fmt::format("{}_fast_ours", name), median(ours));
    report(fmt::format("{}_fast_llvm", name), median(llvm));
  }
  return out + "}";
}

}  // namespace
}  // namespace loom::bench

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: bench_library LIBRARY_FOLDER WORK_FOLDER BUDGET_MS\n");
    return 2;
  }
  fmt::print("{}\n",
             loom::bench::run(argv[1], argv[2], std::chrono::milliseconds(std::atoi(argv[3]))));
  return 0;
}
