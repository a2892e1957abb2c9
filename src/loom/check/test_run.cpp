#include "loom/check/test_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "loom/diag/render.h"
#include "loom/dialect/op_info.h"
#include "loom/target/x86/compile.h"

namespace loom::check {
namespace {

uint64_t memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long size = ::sysconf(_SC_PAGE_SIZE);
  return pages < 0 || size < 0 ? 0 : static_cast<uint64_t>(pages) * static_cast<uint64_t>(size);
}

std::vector<std::string> numeric_formats() {
  std::vector<std::string> names;
  names.reserve(kScalarCount);
  for (size_t i = 0; i < kScalarCount; ++i) {
    names.emplace_back(scalar_name(static_cast<ScalarKind>(i)));
  }
  return names;
}

std::vector<std::string> processor_features() {
  std::vector<std::string> names;
#if defined(__x86_64__)
  const auto add = [&](const char* name, bool there) {
    if (there) names.emplace_back(name);
  };
  add("sse4.2", __builtin_cpu_supports("sse4.2") != 0);
  add("avx", __builtin_cpu_supports("avx") != 0);
  add("avx2", __builtin_cpu_supports("avx2") != 0);
  add("fma", __builtin_cpu_supports("fma") != 0);
  add("avx512f", __builtin_cpu_supports("avx512f") != 0);
  add("avx512bw", __builtin_cpu_supports("avx512bw") != 0);
#endif
  return names;
}

// Why a kernel has no code, as an issue of a case that launches it.
Diagnostic no_code(const Module& module, const Case& of, OpId kernel, const std::string& device,
                   const Diagnostics& reasons) {
  const std::string_view name = symbol_text(module, kernel);
  std::string why = "no reason is known";
  Diagnostic made{Diag::CheckUnplannable, Severity::Error, module.location(of.op), {}, {}};
  if (!reasons.all().empty()) {
    const Diagnostic& first = reasons.all().front();
    why = fmt::format("{} {}", diag_code(first.id), first.message());
    if (first.location.valid()) made.notes.push_back({first.location, "it is here"});
  }
  made.params = {
      {"case", std::string(of.name)},
      {"detail", fmt::format("device {} has no code for kernel '@{}': {}", device, name, why)},
      {"repair", "run it with --device=interp, or require a device that can"}};
  return made;
}

}  // namespace

DeviceTraits device_traits(const TestOptions& options) {
  DeviceTraits traits{.name = options.device, .memory_bytes = memory_bytes()};
  traits.features = numeric_formats();
  for (const auto& [name, command] : options.oracles) traits.oracles.push_back(name);
  if (options.device == "interp") {
    const bool all = !options.sanitize_access && !options.sanitize_race;
    traits.reports_access = all || options.sanitize_access;
    traits.reports_race = all || options.sanitize_race;
    traits.reports_traps = true;
    return traits;
  }
  traits.compiles = true;
  for (std::string& name : processor_features()) traits.features.push_back(std::move(name));
  return traits;
}

RunContext run_context(const Module& module, const TestOptions& options, Launcher* launcher) {
  RunContext context;
  context.module = &module;
  context.launcher = launcher;
  context.device = device_traits(options);
  const bool interpreted = options.device == "interp";
  context.interp.check_uninitialized = !interpreted || context.device.reports_access;
  context.interp.check_alignment = context.interp.check_uninitialized;
  context.interp.check_races = !interpreted || context.device.reports_race;
  // Families are decided as for the device that compiles, so that both run the same program.
  context.interp.target = x86_selection().target;
  context.interp.subgroup_size =
      context.interp.target.subgroup_size.value_or(context.interp.subgroup_size);
  context.parameters = options.parameters.get();
  context.oracles = options.oracles;
  context.output_folder = options.output_folder;
  context.keep_failures = options.keep_failures;
  context.rerun = options.rerun;
  return context;
}

size_t kernel_count(const Plan& plan) {
  std::unordered_set<uint32_t> kernels;
  uint32_t last = ~uint32_t{0};
  for (const Sample& sample : plan.samples) {
    if (sample.place == last) continue;
    last = sample.place;
    for (const OpId kernel : plan.cases[sample.place].kernels) kernels.insert(kernel.index());
  }
  return kernels.size();
}

std::unique_ptr<CpuLauncher> compile_launches(const LinkInput& program, Plan& plan,
                                              const TestOptions& options,
                                              const std::function<void()>& step,
                                              Diagnostics& diagnostics) {
  if (options.device == "interp") return nullptr;
  auto launcher = CpuLauncher::create(program,
                                      {.jit = {.denormals = options.denormals},
                                       .threads = options.threads,
                                       .parameters = options.parameters.get(),
                                       .perf_folder = options.perf_folder},
                                      diagnostics);
  if (!launcher) return nullptr;
  std::unordered_map<uint32_t, Diagnostics> reasons;  // by kernel; without errors: it has code
  uint32_t last = ~uint32_t{0};
  for (const Sample& sample : plan.samples) {
    if (sample.place == last) continue;
    last = sample.place;
    Case& of = plan.cases[sample.place];
    for (const OpId kernel : of.kernels) {
      auto [known, fresh] = reasons.try_emplace(kernel.index());
      if (fresh) {
        launcher->prepare(symbol_text(program.module, kernel), known->second);
        if (step) step();
      }
      if (!known->second.has_errors()) continue;
      of.issues.push_back(no_code(program.module, of, kernel, options.device, known->second));
    }
  }
  return launcher;
}

void drop_unplannable(Plan& plan) {
  std::erase_if(plan.samples,
                [&](const Sample& sample) { return !plan.cases[sample.place].issues.empty(); });
}

RenderedIssue render_issue(const Diagnostic& diagnostic, const SourceFiles& files) {
  return {render_text(diagnostic, files), render_json(diagnostic, files)};
}

SampleReport report_sample(const RunContext& context, const Case& of, uint64_t ordinal,
                           const SampleResult& result) {
  SampleReport report{.outcome = result.outcome};
  for (const Diagnostic& diagnostic : result.diagnostics.all()) {
    Diagnostic told = diagnostic;
    const std::string parameters = of.parameters_text(ordinal);
    told.notes.push_back({{},
                          fmt::format("in sample {} of '@{}'{}", ordinal, of.name,
                                      parameters.empty() ? "" : " with " + parameters)});
    if (!context.rerun.empty() && diagnostic.severity == Severity::Error) {
      told.notes.push_back(
          {{}, fmt::format("again: {} --case=@{} --sample={}", context.rerun, of.name, ordinal)});
    }
    report.issues.push_back(render_issue(told, context.module->files()));
  }
  return report;
}

bool run_samples(const Plan& plan, const RunContext& context, const WorkerOptions& workers,
                 const std::function<void(size_t, SampleReport&&)>& done, std::string& problem) {
  WorkerCallbacks callbacks;
  callbacks.prepare = [&]() -> SampleFunction {
    auto runner = std::make_shared<SampleRunner>(context);
    return [&plan, &context, runner](const Sample& sample) {
      const Case& of = plan.cases[sample.place];
      return report_sample(context, of, sample.ordinal, runner->run(of, sample.ordinal));
    };
  };
  callbacks.stopped = [&](const Sample& sample, const std::string& reason) {
    const Case& of = plan.cases[sample.place];
    SampleResult result{.outcome = Outcome::Failed};
    result.diagnostics.emit(
        Diag::CheckStopped, context.module->location(of.op),
        {{"detail", reason},
         {"repair",
          context.launcher != nullptr ? "--device=interp says where, if it is an access" : ""}});
    return report_sample(context, of, sample.ordinal, result);
  };
  callbacks.done = done;
  return run_in_workers(plan.samples, workers, callbacks, problem);
}

}  // namespace loom::check
