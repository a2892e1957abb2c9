// Runs the check cases of modules.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common/check_flags.h"
#include "common/cli.h"
#include "loom/check/report.h"
#include "loom/check/test_run.h"

namespace {

using namespace loom;

constexpr ToolInfo kInfo{
    "loom-test", "Runs the check cases of Loom modules and says which hold.",
    "  loom-test kernels.loom\n"
    "  loom-test kernels.loom --device=interp --sanitizer=race --case=@row_sum_matches\n"
    "  loom-test kernels.loom --case=@row_sum_matches --sample=17\n"
    "  loom-test kernels.loom --library=rows.loom --timeout=10 --output=report.json "
    "--junit=report.xml\n"};

// Samples that did not pass and are described one by one.
constexpr uint64_t kToldSamples = 20;

struct Flags {
  CheckFlags check;
  std::vector<std::string> cases;
  std::optional<uint64_t> most;
  std::string output;
  std::string junit;
  unsigned jobs = 0;
  bool list = false;
};

void declare(CLI::App& app, Flags& flags) {
  flags.check.declare(app);
  app.add_option("--case", flags.cases, "run this case only, such as @sum_matches; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option("--max-samples-per-case", flags.most, "run the first N samples of each case")
      ->check(CLI::PositiveNumber);
  app.add_option("--output", flags.output, "write the results as JSON (loom.test.v0)");
  app.add_option("--junit", flags.junit, "write the results as JUnit XML");
  app.add_option("--jobs", flags.jobs, "samples that run at the same time; 0: one a processor")
      ->capture_default_str();
  app.add_flag("--list", flags.list, "list the cases, their samples and parameters; run nothing");
}

std::string list_text(const check::Plan& plan) {
  std::string text;
  for (const check::Case& of : plan.cases) {
    text += fmt::format("@{}: {} sample{}", of.name, of.samples, of.samples == 1 ? "" : "s");
    for (const check::Parameter& parameter : of.parameters) {
      text += fmt::format(", {}: {} value{}", parameter.name, parameter.count,
                          parameter.count == 1 ? "" : "s");
    }
    if (!of.skipped.empty()) text += fmt::format("; skipped: {}", of.skipped);
    text += "\n";
  }
  return text;
}

// Prints what is wrong in the order of the cases and their samples.
void print_issue(Tool& tool, const check::RenderedIssue& issue) {
  tool.flush_diagnostics();
  const std::string& text = tool.json_diagnostics() ? issue.json : issue.text;
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void run_all(Tool& tool, const Flags& flags, const check::TestOptions& options,
             const Module& module, check::Launcher* launcher, check::TestResults& results) {
  const check::Plan& plan = *results.plan;
  const auto start = std::chrono::steady_clock::now();
  check::RunContext context = check::run_context(module, options, launcher);
  check::WorkerOptions workers = options.workers;
  workers.jobs = flags.jobs;
  Progress progress("running samples", plan.samples.size());
  uint64_t told = 0;
  uint64_t untold = 0;
  workers.ran = [&] { progress.step(); };
  std::string problem;
  const bool good = check::run_samples(
      plan, context, workers,
      [&](size_t number, check::SampleReport&& report) {
        told += report.issues.empty() ? 0 : 1;
        untold += told > kToldSamples && !report.issues.empty() ? 1 : 0;
        for (const check::RenderedIssue& issue : report.issues) {
          if (told <= kToldSamples || tool.json_diagnostics()) print_issue(tool, issue);
        }
        results.samples[number] = std::move(report);
      },
      problem);
  if (!good) {
    tool.diagnostics().emit(
        Diag::CheckStopped, {},
        {{"detail", "no worker process can be started: " + problem}, {"repair", ""}});
  }
  if (untold != 0 && !tool.json_diagnostics()) {
    tool.print(fmt::format("{} more samples did not pass; --output=FILE says why\n", untold));
  }
  results.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

ExitCode run(Tool& tool, const Flags& flags) {
  if (const auto refused = flags.check.refuse(tool)) return *refused;
  auto options = flags.check.options(tool);
  if (!options) return ExitCode::Usage;
  for (const std::string& name : flags.cases) {
    options->plan.cases.push_back(symbol_from_flag(name));
  }
  options->plan.most = flags.most;

  // One module holds the cases and what they reach.
  auto program = link_cases(tool, flags.check, options->plan.cases);
  if (!program) return program.error();
  const Module& module = program->module;

  if (!flags.check.open_parameters(tool, module, *options)) return tool.result();

  // Every sample has a number; what cannot be run is known.
  check::Plan plan = check::make_plan(module, options->plan, check::device_traits(*options));
  if (flags.list) {
    tool.print(list_text(plan));
    return tool.result();
  }

  // Every kernel of a planned sample has code.
  std::unique_ptr<check::Launcher> launcher;
  {
    Progress progress("compiling kernels", check::kernel_count(plan));
    launcher = check::compile_launches(
        *program, plan, *options, [&] { progress.step(); }, tool.diagnostics());
  }
  if (tool.diagnostics().has_errors()) return ExitCode::Environment;
  check::drop_unplannable(plan);
  check::TestResults results{.plan = &plan, .device = options->device};
  results.samples.resize(plan.samples.size());
  for (const check::Case& of : plan.cases) {
    auto& issues = results.issues.emplace_back();
    for (const Diagnostic& issue : of.issues) {
      issues.push_back(check::render_issue(issue, module.files()));
      print_issue(tool, issues.back());
    }
  }

  // Every sample was run, or its worker was stopped.
  run_all(tool, flags, *options, module, launcher.get(), results);
  for (const check::Case& of : plan.cases) {
    if (of.issues.empty() && !of.skipped.empty()) {
      tool.print(fmt::format("skipped @{}: {}\n", of.name, of.skipped));
    }
  }
  tool.print(check::summary_text(results));
  if (!flags.output.empty()) tool.write_output(flags.output, check::test_json(results));
  if (!flags.junit.empty()) {
    tool.write_output(flags.junit, check::test_junit(results, flags.check.link.inputs[0]));
  }
  const check::TestResults::Counts counts = results.counts();
  if (!counts.executed()) {
    tool.diagnostics().emit(
        Diag::CheckNothingRan, {},
        {{"detail", plan.cases.empty() ? "the inputs hold no check.case"
                                       : "every case was skipped or cannot be run"},
         {"repair", ""}});
  }
  return counts.good() ? tool.result() : ExitCode::Failure;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  return run_main(
      argc, argv, kInfo, [&](CLI::App& app) { declare(app, flags); },
      [&](Tool& tool) { return run(tool, flags); });
}
