// Times the benchmarks of modules, and compares them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/check_flags.h"
#include "common/cli.h"
#include "common/debug_flags.h"
#include "common/kernel_report.h"
#include "loom/base/suggest.h"
#include "loom/check/bench_report.h"
#include "loom/check/bench_run.h"
#include "loom/dialect/op_info.h"
#include "loom/text/printer.h"

namespace {

using namespace loom;

constexpr ToolInfo kInfo{
    "loom-bench", "Times the benchmarks of Loom modules; what is not right has no number.",
    "  loom-bench kernels.loom\n"
    "  loom-bench kernels.loom --benchmark=@sum_large --output=sum.json\n"
    "  loom-bench kernels.loom --compare=@sum_plain,@sum_unrolled\n"
    "  loom-bench kernels.loom --output-format=jsonl --artifact-bundle-dir=bundle\n"};

struct Flags {
  CheckFlags check;
  std::vector<std::string> benchmarks;
  std::string compare;
  std::string measure = "dispatch_complete";
  std::string interleave = "ABABA";
  check::MeasureOptions timing;
  double seconds = 0;
  uint64_t ring = 0;
  unsigned threads = 0;
  PerfFlag perf;
  bool dry_run = false;
  std::string output;
  std::string format = "text";
  std::string bundle;
  std::string bundle_policy = "minimal";
  bool profile_final_batch = false;
};

void declare_timing(CLI::App& app, Flags& flags) {
  app.add_option("--measure", flags.measure,
                 "what is timed: dispatch_complete, the launches until their work is done, or "
                 "case_end_to_end, the whole case")
      ->check(CLI::IsMember({"dispatch_complete", "case_end_to_end"}))
      ->capture_default_str();
  app.add_option("--warm-up", flags.timing.warm_up, "seconds before the first number")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--min-time", flags.seconds,
                 "seconds of timed work: of a benchmark [0.5], of a comparison [3]")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--max-time", flags.timing.most_time,
                 "seconds after which a benchmark or comparison ends with what it has")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--batch-size", flags.timing.batch_size,
                 "operations timed at once; 0: as many as the clock needs")
      ->capture_default_str();
  app.add_option("--repetitions", flags.timing.repetitions,
                 "batches of each side; 0: as many as --min-time takes")
      ->capture_default_str();
  app.add_option("--input-ring-count", flags.ring,
                 "sets of inputs that take turns; 0: as many as take 32 MiB")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--threads", flags.threads, "threads that one launch may use; 0: all")
      ->capture_default_str();
}

void declare(CLI::App& app, Flags& flags) {
  flags.check.declare(app);
  app.add_option("--benchmark", flags.benchmarks,
                 "time this benchmark only, such as @sum_large; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option("--compare", flags.compare, "time two benchmarks in turns: @a,@b");
  app.add_option("--interleave", flags.interleave,
                 "order of a comparison: ABABA encloses each b between two a, round-robin does not")
      ->check(CLI::IsMember({"ABABA", "round-robin"}))
      ->capture_default_str();
  declare_timing(app, flags);
  flags.perf.declare(app);
  app.add_flag("--dry-run", flags.dry_run, "list what would be timed; run nothing");
  app.add_option("--output", flags.output, "write the results here, as JSON unless it is jsonl");
  app.add_option("--output-format", flags.format,
                 "text for people; json, one document; jsonl, one event a line as it happens")
      ->check(CLI::IsMember({"text", "json", "jsonl"}))
      ->capture_default_str();
  app.add_option("--artifact-bundle-dir", flags.bundle,
                 "folder that gets sources, command line, device identity and results");
  app.add_option(
         "--profile-final-batch", flags.profile_final_batch,
         "add a trace of one more batch of each benchmark to the bundle: profile-N.json, for "
         "chrome://tracing or Perfetto")
      ->capture_default_str();
  app.add_option(
         "--artifact-bundle-policy", flags.bundle_policy,
         "minimal; debug adds the linked module and the compile report of its kernels; full "
         "adds every time taken")
      ->check(CLI::IsMember({"minimal", "debug", "full"}))
      ->capture_default_str();
}

// Nothing where the flags go together.
std::optional<ExitCode> refuse(Tool& tool, const Flags& flags) {
  if (!flags.profile_final_batch) return std::nullopt;
  if (flags.bundle.empty()) {
    return tool.usage_error("--profile-final-batch needs --artifact-bundle-dir, where profiles go");
  }
  if (!flags.compare.empty() || flags.measure != "dispatch_complete" ||
      flags.check.chosen_device() == "interp") {
    return tool.usage_error(
        "--profile-final-batch is of launches of compiled code, and not of comparisons");
  }
  return std::nullopt;
}

std::string command_line(const Flags& flags) {
  std::string line = flags.check.command_line("loom-bench");
  for (const std::string& name : flags.benchmarks) line += " --benchmark=" + name;
  if (!flags.compare.empty()) line += " --compare=" + flags.compare;
  if (flags.interleave != "ABABA") line += " --interleave=" + flags.interleave;
  line += " --measure=" + flags.measure;
  const check::MeasureOptions usual;
  const auto add = [&](std::string_view flag, auto value, auto unless) {
    if (value != unless) line += fmt::format(" --{}={}", flag, value);
  };
  add("warm-up", flags.timing.warm_up, usual.warm_up);
  add("min-time", flags.seconds, 0.0);
  add("max-time", flags.timing.most_time, usual.most_time);
  add("batch-size", flags.timing.batch_size, usual.batch_size);
  add("repetitions", flags.timing.repetitions, usual.repetitions);
  add("input-ring-count", flags.ring, uint64_t{0});
  add("threads", flags.threads, 0U);
  return line;
}

// The two names of --compare; nothing after reporting wrong usage, none without the flag.
std::optional<std::vector<std::string>> compared_names(Tool& tool, const Flags& flags) {
  if (flags.compare.empty()) return std::vector<std::string>();
  const size_t comma = flags.compare.find(',');
  if (comma == flags.compare.npos || comma == 0 || comma + 1 == flags.compare.size()) {
    tool.usage_error("--compare takes two benchmarks: @a,@b");
    return std::nullopt;
  }
  return std::vector{symbol_from_flag(flags.compare.substr(0, comma)),
                     symbol_from_flag(flags.compare.substr(comma + 1))};
}

// Names that no benchmark has are wrong usage.
bool are_known(Tool& tool, const Module& module, const std::vector<std::string>& names) {
  const std::vector<std::string> known = check::benchmark_names(module);
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    Suggestion near(name);
    for (const std::string& one : known) near.consider(one);
    tool.usage_error(
        fmt::format("the inputs hold no benchmark '@{}'{}", name,
                    near.best().empty() ? "" : fmt::format("; did you mean '@{}'?", near.best())));
    return false;
  }
  return true;
}

check::BenchOptions bench_options(const Flags& flags, check::TestOptions test) {
  check::BenchOptions made{.test = std::move(test), .measure = flags.timing};
  made.test.threads = flags.threads;
  made.test.perf_folder = flags.perf.folder;
  made.profile_final_batch = flags.profile_final_batch;
  made.work.measure = flags.measure == "case_end_to_end" ? check::Measure::CaseEndToEnd
                                                         : check::Measure::DispatchComplete;
  made.work.ring = flags.ring;
  const bool compares = !flags.compare.empty();
  made.measure.least_time = flags.seconds != 0 ? flags.seconds : compares ? 3 : 0.5;
  if (compares) made.measure.batch_time = 2e-4;  // short batches are interrupted less often
  made.measure.interleave =
      flags.interleave == "ABABA" ? check::Interleave::Ababa : check::Interleave::RoundRobin;
  return made;
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// Where events go, each one flushed as it happens.
class Events {
 public:
  Events(Tool& tool, const Flags& flags) : tool_(tool) {
    if (flags.format != "jsonl") return;
    if (flags.output.empty()) {
      file_ = stdout;
      return;
    }
    own_.reset(std::fopen(flags.output.c_str(), "w"));
    file_ = own_.get();
    if (file_ == nullptr) tool_.report_write({flags.output, "it cannot be opened"});
  }
  void write(const std::string& line) {
    if (file_ == nullptr || failed_) return;
    failed_ =
        std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0;
    if (failed_) tool_.report_write({"events", "it cannot be written"});
  }

 private:
  Tool& tool_;
  std::unique_ptr<std::FILE, CloseFile> own_;
  std::FILE* file_ = nullptr;  // `own_` or standard output; null: nobody wants them
  bool failed_ = false;
};

void report_item(Tool& tool, const Flags& flags, const check::BenchResults& results,
                 uint32_t item) {
  if (flags.format == "text") tool.print(check::item_text(results, item));
  const check::WorkItem& found = results.items[item];
  const bool lost = found.state == check::WorkItem::State::Failed ||
                    found.state == check::WorkItem::State::Unplannable;
  if (!lost) return;
  tool.flush_diagnostics();
  for (const check::RenderedIssue& issue : found.issues) {
    const std::string& text = tool.json_diagnostics() ? issue.json : issue.text;
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  for (const check::Benchmark& benchmark : results.plan->benchmarks) {
    if (benchmark.work_item != item) continue;
    tool.diagnostics().emit(Diag::CheckNotMeasured, {},
                            {{"benchmark", "@" + benchmark.name},
                             {"detail", found.state == check::WorkItem::State::Failed
                                            ? "its case is not right, or cannot be timed"
                                            : "its case cannot be run"},
                             {"repair", "loom-test says the same about the case alone"}});
  }
  tool.flush_diagnostics();
}

void warn_of_noise(Tool& tool, check::BenchRun& run, const check::Summary& summary) {
  const std::string text = check::noise_text(summary);
  if (text.empty() || !run.results().warnings.empty()) return;
  run.warn("the machine is noisy: " + text);
  tool.diagnostics().emit(Diag::CheckNoisy, {}, {{"detail", text}});
  tool.flush_diagnostics();
}

void time_all(Tool& tool, const Flags& flags, check::BenchRun& run, Events& events) {
  const check::BenchResults& results = run.results();
  Progress progress("timing benchmarks", results.items.size());
  for (uint32_t i = 0; i < results.items.size(); ++i) {
    if (results.items[i].state == check::WorkItem::State::Passed) run.time(i);
    if (results.items[i].measurement) {
      warn_of_noise(tool, run, results.items[i].measurement->summary());
    }
    report_item(tool, flags, results, i);
    events.write(check::item_event(results, i));
    progress.step();
  }
}

void compare_both(Tool& tool, const Flags& flags, const std::vector<std::string>& names,
                  const check::BenchPlan& plan, check::BenchRun& run, Events& events) {
  const auto item_of = [&](const std::string& name) {
    return std::ranges::find(plan.benchmarks, name, &check::Benchmark::name)->work_item;
  };
  const uint32_t a = item_of(names[0]);
  const uint32_t b = item_of(names[1]);
  const check::BenchResults& results = run.results();
  const auto passed = [&](uint32_t item) {
    return results.items[item].state == check::WorkItem::State::Passed;
  };
  Progress progress("comparing");
  if (passed(a) && passed(b) && run.compare(a, b, names[0], names[1])) {
    const check::Compared& compared = results.comparisons.back();
    warn_of_noise(tool, run, compared.measured.a.summary());
    if (flags.format == "text") tool.print(check::comparison_text(compared));
    events.write(check::comparison_event(compared));
    return;
  }
  report_item(tool, flags, results, a);
  if (b != a) report_item(tool, flags, results, b);
}

// Those that cases which are right launch, each once.
std::vector<std::string> timed_kernels(const Module& module, const check::BenchResults& results) {
  std::vector<std::string> names;
  const check::Plan& plan = results.plan->plan;
  for (size_t i = 0; i < results.items.size(); ++i) {
    const check::WorkItem::State state = results.items[i].state;
    if (state != check::WorkItem::State::Passed && state != check::WorkItem::State::Measured) {
      continue;
    }
    for (const OpId kernel : plan.cases[plan.samples[i].place].kernels) {
      const std::string_view name = symbol_text(module, kernel);
      if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
    }
  }
  return names;
}

// What repeats the run somewhere else, and what it said here.
void write_bundle(Tool& tool, const Flags& flags, const check::BenchOptions& options,
                  const check::DeviceIdentity& device, const LinkInput& program,
                  const check::BenchResults& results) {
  OutputSet files;
  bool good = true;
  const auto add = [&](const std::string& name, const std::string& content) {
    const auto done = files.add((std::filesystem::path(flags.bundle) / name).string(), content);
    if (!done) tool.report_write(done.error());
    good = good && done.has_value();
  };
  if (const auto made =
          files.add_folder((std::filesystem::path(flags.bundle) / "sources").string());
      !made) {
    return tool.report_write(made.error());
  }
  add("command.txt", command_line(flags) + "\n");
  add("device.json", check::device_json(device));
  for (size_t i = 0; i < results.items.size(); ++i) {
    const std::string& profile = results.items[i].profile;
    if (!profile.empty()) add(fmt::format("profile-{}.json", i), profile);
  }
  add("report.json", check::bench_json(results, options, device, flags.bundle_policy == "full"));
  std::vector<std::string> sources = flags.check.link.inputs;
  sources.insert(sources.end(), flags.check.link.libraries.begin(),
                 flags.check.link.libraries.end());
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto text = read_file(sources[i]);
    // Files of one name in several folders stay apart.
    const std::string name = std::filesystem::path(sources[i]).filename().string();
    if (text) add(fmt::format("sources/{}-{}", i, name), *text);
  }
  if (flags.bundle_policy != "minimal") {
    add("linked.loom", print_text(program.module));
    const auto made =
        options.test.device == "interp"
            ? std::nullopt
            : kernel_report(flags.check.link, program, timed_kernels(program.module, results),
                            options.test.denormals);
    if (made) add("compile-report.json", *made);
  }
  if (!good) return;
  if (const auto done = files.commit(); !done) tool.report_write(done.error());
}

ExitCode run_benchmarks(Tool& tool, const Flags& flags, const check::BenchOptions& options,
                        const std::vector<std::string>& compared, const LinkInput& program,
                        const check::BenchPlan& plan, check::CpuLauncher* launcher) {
  const check::DeviceIdentity device =
      check::device_identity(options.test, std::string(tool_version()));
  Events events(tool, flags);
  events.write(check::begin_event(plan, options, device));
  check::BenchRun run(program.module, plan, launcher, options);
  const check::BenchResults& results = run.results();

  // Every item is right or has no number.
  {
    Progress progress("checking benchmarks", plan.plan.samples.size());
    std::string problem;
    if (!run.check(problem)) {
      tool.diagnostics().emit(
          Diag::CheckStopped, {},
          {{"detail", "no worker process can be started: " + problem}, {"repair", ""}});
      return ExitCode::Environment;
    }
  }
  if (compared.empty()) {
    time_all(tool, flags, run, events);
  } else {
    compare_both(tool, flags, compared, plan, run, events);
  }
  bool good = true;
  for (const check::BenchPlan::Refused& refused : plan.refused) {
    const check::Case& of = plan.plan.cases[refused.place];
    if (!of.skipped.empty()) {
      if (flags.format == "text") {
        tool.print(fmt::format("skipped @{}: {}\n", refused.name, of.skipped));
      }
      continue;
    }
    good = false;
    for (const Diagnostic& issue : of.issues) {
      tool.diagnostics().emit(issue.id, issue.location, issue.params).notes = issue.notes;
    }
  }
  events.write(check::end_event(results));
  const std::string document = check::bench_json(results, options, device, false);
  if (flags.format == "json" && flags.output.empty()) tool.print(document);
  if (flags.format != "jsonl" && !flags.output.empty()) tool.write_output(flags.output, document);
  if (!flags.bundle.empty()) write_bundle(tool, flags, options, device, program, results);
  const bool measured = !results.comparisons.empty() ||
                        std::ranges::any_of(results.items, [](const check::WorkItem& item) {
                          return item.state == check::WorkItem::State::Measured;
                        });
  if (!measured) {
    tool.diagnostics().emit(Diag::CheckNothingRan, {},
                            {{"detail", plan.benchmarks.empty() && plan.refused.empty()
                                            ? "the inputs hold no check.benchmark"
                                            : "no benchmark has a number"},
                             {"repair", ""}});
  }
  for (const check::WorkItem& item : results.items) {
    good = good && (item.state == check::WorkItem::State::Measured ||
                    item.state == check::WorkItem::State::Passed);
  }
  return good ? tool.result() : ExitCode::Failure;
}

ExitCode run(Tool& tool, const Flags& flags) {
  if (const auto refused = flags.check.refuse(tool)) return *refused;
  if (const auto refused = refuse(tool, flags)) return *refused;
  auto test = flags.check.options(tool);
  const auto compared = compared_names(tool, flags);
  if (!test || !compared) return ExitCode::Usage;
  check::BenchOptions options = bench_options(flags, std::move(*test));

  // One module holds the cases, their benchmarks and what they reach.
  auto program = link_cases(tool, flags.check, {});
  if (!program) return program.error();
  std::vector<std::string> names = *compared;
  for (const std::string& name : flags.benchmarks) names.push_back(symbol_from_flag(name));
  if (!are_known(tool, program->module, names)) return ExitCode::Usage;
  if (!flags.check.open_parameters(tool, program->module, options.test)) return tool.result();

  // Equal records are one work item.
  check::BenchPlan plan =
      check::make_bench_plan(program->module, names, check::device_traits(options.test));
  for (const std::string& name : *compared) {
    if (std::ranges::count(plan.benchmarks, name, &check::Benchmark::name) > 1) {
      return tool.usage_error(
          fmt::format("'@{}' leaves parameters open, so it is more than one measurement", name));
    }
    if (std::ranges::find(plan.refused, name, &check::BenchPlan::Refused::name) !=
        plan.refused.end()) {
      return tool.usage_error(
          fmt::format("'@{}' cannot be compared: its case is skipped or "
                      "cannot be run",
                      name));
    }
  }
  if (flags.dry_run) {
    tool.print(check::plan_text(plan));
    return tool.result();
  }

  // Every kernel of a work item has code.
  std::unique_ptr<check::CpuLauncher> launcher;
  {
    Progress progress("compiling kernels", check::kernel_count(plan.plan));
    launcher = check::compile_launches(
        *program, plan.plan, options.test, [&] { progress.step(); }, tool.diagnostics());
  }
  if (tool.diagnostics().has_errors()) return ExitCode::Environment;
  return run_benchmarks(tool, flags, options, *compared, *program, plan, launcher.get());
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  return run_main(
      argc, argv, kInfo, [&](CLI::App& app) { declare(app, flags); },
      [&](Tool& tool) { return run(tool, flags); });
}
