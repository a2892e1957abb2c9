// Compiles: command programs to portable artifacts and kernel requests, kernels to machine code.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/cache_flags.h"
#include "common/cli.h"
#include "common/library_flags.h"
#include "common/link_flags.h"
#include "common/module_report.h"
#include "common/report_flags.h"
#include "loom/bytecode/bytecode.h"
#include "loom/cache/build_id.h"
#include "loom/command/cmd_core.h"
#include "loom/command/emit.h"
#include "loom/command/launch_config.h"
#include "loom/command/prepare.h"
#include "loom/command/report.h"
#include "loom/command/schedule.h"
#include "loom/dialect/op_info.h"
#include "loom/dialect/verify.h"
#include "loom/pass/expand_templates.h"
#include "loom/pass/pass_context.h"
#include "loom/pass/runner.h"
#include "loom/target/x86/compile.h"
#include "loom/target/x86/report.h"
#include "loom/text/printer.h"

namespace {

using namespace loom;

constexpr ToolInfo kInfo{
    "loom-compile",
    "Compiles command programs to portable artifacts and kernel requests, and kernels or requests "
    "to machine code.",
    "  loom-compile model.loombc --root=@two_layer --format=loom-command --output=commands.json "
    "\\\n"
    "    --emit-command-artifacts=commands/ --emit-kernel-requests=kernel-requests/\n"
    "  loom-compile kernel-requests/kernel-0.loombc --target=x86_64 --output=kernel-0.o\n"
    "  loom-compile kernels.loom --root=@scale --target=x86_64:native --format=asm\n"
    "  loom-compile kernels.loom --target=x86_64 --format=shared-object "
    "--output=libkernels.so \\\n"
    "    --emit-header=kernels.h --levels=x86-64-v2,x86-64-v4\n"
    "  loom-compile kernels.loom --product=module --pipeline=inline,canonicalize,cse\n"};

struct Options {
  LinkFlags link;
  CacheFlags cache;
  LibraryFlags library;
  ReportFlags report;
  std::string format;
  std::string product;
  std::string target;
  std::string output = "-";
  std::string artifact_folder;
  std::string request_folder;
  std::string launch_config;
  std::string print_schedule;
  std::vector<std::string> print_after;
  std::string denormals = "keep";
  uint32_t max_request_classes = 0;
  bool time_passes = false;
  bool check_hazards = false;
  // Of a module.
  std::string pipeline;
  std::vector<std::string> disabled_passes;
  std::string stop_after;
  bool verify_each = false;
};

const std::map<std::string, OutputForm> kKernelFormats = {{"object", OutputForm::Object},
                                                          {"llvm-ir", OutputForm::LlvmIr},
                                                          {"llvm-bitcode", OutputForm::LlvmBitcode},
                                                          {"asm", OutputForm::Assembly}};

constexpr std::string_view kLibraryFormat = "shared-object";

std::vector<std::string> pass_choices() {
  const auto names = prepare_pass_names();
  std::vector<std::string> choices(names.begin(), names.end());
  for (const PassInfo& pass : all_passes()) {
    if (std::ranges::find(choices, pass.name) == choices.end()) choices.emplace_back(pass.name);
  }
  choices.emplace_back("all");
  return choices;
}

std::vector<std::string> module_pass_choices() {
  std::vector<std::string> choices;
  for (const PassInfo& pass : all_passes()) choices.emplace_back(pass.name);
  return choices;
}

void declare(CLI::App& app, Options& options) {
  options.link.declare(app);
  options.cache.declare(app);
  options.library.declare(app);
  options.report.declare(app);
  app.add_option("--format", options.format,
                 "loom-command, object, shared-object, asm, llvm-ir or llvm-bitcode; object where "
                 "a target is "
                 "given")
      ->check(CLI::IsMember(
          {"loom-command", "object", "shared-object", "asm", "llvm-ir", "llvm-bitcode"}));
  // The older spelling of --format=loom-command.
  app.add_option_function<std::string>("--backend",
                                       [&](const std::string&) { options.format = "loom-command"; })
      ->group("")
      ->check(CLI::IsMember({"command"}));
  app.add_option(
         "--product", options.product,
         "assert the kind of product: kernel, command or module; a module is the linked inputs "
         "after the passes, as text")
      ->check(CLI::IsMember({"kernel", "command", "module"}));
  app.add_option("--target", options.target, "x86_64 or x86_64:CPU, such as x86_64:native");
  app.add_option("--output", options.output, "file to write: the manifest, or the compiled kernels")
      ->capture_default_str();
  app.add_option("--emit-command-artifacts", options.artifact_folder, "folder for .loomcmd files");
  app.add_option("--emit-kernel-requests", options.request_folder,
                 "folder for kernel-N.loombc files");
  app.add_option("--emit-launch-config", options.launch_config,
                 "file for what turns workloads into the geometry of the kernels (.loomlaunch); "
                 "needs --target");
  app.add_option("--max-request-classes", options.max_request_classes,
                 "most requests of one kernel at one workgroup size; the last serves what is left")
      ->check(CLI::Range(1u, 1u << 30));
  app.add_option("--print-schedule", options.print_schedule,
                 "print each schedule tree with its wave numbers: text or dot")
      ->check(CLI::IsMember({"text", "dot"}));
  app.add_flag("--check-hazards", options.check_hazards,
               "report concurrent commands that may touch the same bytes, one of them writing");
  app.add_option(
         "--print-after", options.print_after,
         "print the program to standard error after a pass: " + CLI::detail::join(pass_choices()))
      ->expected(1)
      ->take_all()
      ->check(CLI::IsMember(pass_choices()));
  app.add_flag("--time-passes", options.time_passes, "print what each pass took to standard error");
  app.add_option("--pipeline", options.pipeline,
                 "passes of a module: default, none, or a list such as inline,canonicalize,cse");
  app.add_option("--disable-pass", options.disabled_passes, "skip a pass of a module by name")
      ->expected(1)
      ->take_all()
      ->check(CLI::IsMember(module_pass_choices()));
  app.add_option("--stop-after", options.stop_after, "run no pass of a module after this one")
      ->check(CLI::IsMember(module_pass_choices()));
  app.add_flag("--verify-each", options.verify_each, "verify a module after each pass");
  app.add_option("--denormals", options.denormals, "keep or flush")
      ->check(CLI::IsMember({"keep", "flush"}))
      ->capture_default_str();
}

// Prints and times passes as the flags ask.
class PassObserver {
 public:
  explicit PassObserver(const Options& options) : options_(options) {}

  bool wants(std::string_view pass) const {
    return std::ranges::any_of(options_.print_after, [&](const std::string& wanted) {
      return wanted == pass || wanted == "all";
    });
  }

  PrepareHooks hooks() {
    PrepareHooks hooks;
    if (!options_.print_after.empty()) {
      hooks.after_pass = [this](std::string_view pass, const Module& module) {
        if (pass == "resolve" || !wants(pass)) return;
        fmt::print(stderr, "// after {}\n{}", pass, print_text(module));
      };
    }
    if (options_.time_passes || options_.report.wanted()) {
      hooks.timing = [this](std::string_view pass, double seconds) {
        times_.emplace_back(pass, seconds);
      };
    }
    return hooks;
  }

  void print_plan(const PreparedPlan& plan) const {
    if (!wants("resolve")) return;
    fmt::print(stderr, "// after resolve\n");
    for (const PreparedProgram& program : plan.programs) {
      fmt::print(stderr, "{}", cmd_core_text({plan, program}));
    }
  }

  const std::vector<std::pair<std::string, double>>& times() const { return times_; }

  void print_times() const {
    if (!options_.time_passes) return;
    double total = 0;
    for (const auto& [pass, seconds] : times_) {
      fmt::print(stderr, "{:>10.3f} ms  {}\n", seconds * 1e3, pass);
      total += seconds;
    }
    fmt::print(stderr, "{:>10.3f} ms  total\n", total * 1e3);
  }

 private:
  const Options& options_;
  std::vector<std::pair<std::string, double>> times_;
};

std::optional<Module> link_inputs(Tool& tool, const Options& options, bool commands) {
  // Only published requests, the hazard check and the source's hash need to see device bodies.
  const bool bodies = !commands || !options.request_folder.empty() || options.check_hazards ||
                      options.report.wanted();
  auto loaded = load_inputs(tool, options.link, {.defer_kernel_bodies = !bodies});
  auto link_settings = link_options(tool, options.link);
  if (!loaded || !link_settings) return std::nullopt;
  link_settings->require_resolved_config = true;
  if (!options.target.empty()) link_settings->target = target_identity(options.target);
  // Preparation names a launched kernel that nobody defines in its own words.
  link_settings->keep_kernel_declarations = commands;
  return link(loaded->inputs, loaded->libraries, *link_settings, tool.diagnostics());
}

// What decides a command product besides the source and its bindings.
std::vector<std::string> command_flags(const Options& options) {
  std::vector<std::string> flags = {"format=loom-command"};
  if (options.max_request_classes != 0) {
    flags.push_back(fmt::format("max_request_classes={}", options.max_request_classes));
  }
  return flags;
}

ExitCode compile_commands(Tool& tool, const Options& options) {
  // Inputs are linked and closed over the roots.
  std::optional<Module> linked = link_inputs(tool, options, true);
  if (!linked) return tool.result();
  PrepareOptions prepare_options;
  prepare_options.roots = options.link.root_names();
  if (prepare_options.roots.empty()) prepare_options.roots = default_command_roots(*linked);
  if (prepare_options.roots.empty()) {
    return tool.usage_error("the inputs define no public command program; name one with --root");
  }
  Report report;
  if (options.report.wanted()) report = options.report.start(*linked, options.link);
  PassObserver observer(options);
  prepare_options.hooks = observer.hooks();
  prepare_options.check_hazards = options.check_hazards;
  if (!options.target.empty()) {
    const auto identity = target_identity(options.target);
    if (!identity) {
      tool.diagnostics().emit(
          Diag::TargetUnknown, {},
          {{"target", options.target}, {"known", std::string(known_target_families())}});
      return tool.result();
    }
    prepare_options.target = identity->facts;
  }
  prepare_options.max_request_classes = options.max_request_classes;
  // All files appear, or none.
  CommandSetOutput output({options.output, options.artifact_folder, options.request_folder});
  RequestRecipient recipient;
  if (!options.request_folder.empty()) {
    recipient = [&](KernelRequest&& request) {
      const auto written = output.add_request(request);
      if (!written) tool.report_write(written.error());
      return written.has_value();
    };
  }
  // The plan is closed: exact counts, keys and topology.
  const auto plan = prepare(*linked, prepare_options, recipient, tool.diagnostics());
  observer.print_times();
  if (!plan) return tool.result();
  observer.print_plan(*plan);
  report_plan(*plan, report);
  ReportFlags::add_steps(observer.times(), report);
  if (!options.target.empty()) report.identity.set(FieldId::Target, options.target);
  report.identity.set(FieldId::Flags, command_flags(options));
  if (!options.report.stage(tool, output.outputs(), report)) return tool.result();
  const auto emitted = output.finish(*plan);
  if (!emitted) tool.report_write(emitted.error());
  if (emitted) options.report.print(report);
  if (emitted && !options.print_schedule.empty()) {
    for (const PreparedProgram& program : plan->programs) {
      tool.print(options.print_schedule == "dot" ? schedule_dot({*plan, program})
                                                 : schedule_text({*plan, program}));
    }
  }
  return tool.result();
}

std::vector<OpId> find_kernels(Tool& tool, const Module& module,
                               const std::vector<std::string>& roots) {
  std::vector<OpId> kernels;
  if (roots.empty()) {
    for (OpId id = module.region(module.body()).first; id.valid(); id = module.op(id).next) {
      if (module.op(id).kind == OpKind::KernelDef) kernels.push_back(id);
    }
    return kernels;
  }
  for (const std::string& root : roots) {
    const OpId id = module.symbol(root);
    if (id.valid() && module.op(id).kind == OpKind::KernelDef) {
      kernels.push_back(id);
      continue;
    }
    tool.diagnostics().emit(Diag::SymbolWrongKind, id.valid() ? module.location(id) : Location{},
                            {{"symbol", root},
                             {"kind", std::string(id.valid() ? symbol_kind_text(module.op(id).kind)
                                                             : "missing symbol")},
                             {"expected", "kernel with a body"}});
  }
  return kernels;
}

// Times what is not a pass of preparation or code generation.
class Steps {
 public:
  void begins() { begin_ = std::chrono::steady_clock::now(); }
  void ends(std::string name) {
    const auto now = std::chrono::steady_clock::now();
    times_.emplace_back(std::move(name), std::chrono::duration<double>(now - begin_).count());
    begin_ = now;
  }
  const std::vector<std::pair<std::string, double>>& times() const { return times_; }

 private:
  std::vector<std::pair<std::string, double>> times_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// The same bytes, from the cache where it has them.
std::optional<std::string> compile_cached(const Module& module, std::span<const OpId> kernels,
                                          OutputForm form, const X86Options& target, Cache* cache,
                                          Diagnostics& diagnostics) {
  if (cache == nullptr || build_id().empty()) {
    return compile_x86(module, kernels, form, target, diagnostics);
  }
  const std::string identity = x86_identity(form, target);
  const std::string bytecode = write_bytecode(module, {.strip = true});
  std::string names;
  for (const OpId kernel : kernels) names += fmt::format("@{} ", symbol_text(module, kernel));
  const std::string_view parts[] = {build_id(), identity, names, bytecode};
  const std::string key = cache_key(parts);
  if (auto code = cache->get(key)) return code;
  Diagnostics said;
  auto code = compile_x86(module, kernels, form, target, said);
  if (code && said.all().empty()) (void)cache->put(key, *code);
  for (const Diagnostic& d : said.all()) {
    diagnostics.emit_as(d.severity, d.id, d.location, d.params).notes = d.notes;
  }
  return code;
}

bool stage(Tool& tool, OutputSet& outputs, const std::string& path, std::string_view content) {
  const auto added = outputs.add(path, content);
  if (!added) tool.report_write(added.error());
  return added.has_value();
}

// The code of the kernels, and the header where they become a library.
std::optional<KernelLibrary> make_code(Tool& tool, const Options& options, Module& module,
                                       std::span<const OpId> kernels, const X86Options& target,
                                       Report& report) {
  const bool reported = options.report.wanted();
  Progress progress("compiling kernels");
  // A report is about how code is made, so code that was made before does not serve it.
  const auto cache = reported ? nullptr : options.cache.open(tool);
  if (options.format == kLibraryFormat) {
    LibraryOptions settings = options.library.options(options.output);
    settings.denormals = target.denormals;
    settings.compile = [&](const Module& from, std::span<const OpId> of, const X86Options& with,
                           Diagnostics& diagnostics) {
      return compile_cached(from, of, OutputForm::Object, with, cache.get(), diagnostics);
    };
    return compile_library(module, kernels, settings, tool.diagnostics());
  }
  const auto form = kKernelFormats.at(options.format.empty() ? "object" : options.format);
  auto code = reported
                  ? compile_x86_reported(module, kernels, form, target, report, tool.diagnostics())
                  : compile_cached(module, kernels, form, target, cache.get(), tool.diagnostics());
  if (!code) return std::nullopt;
  return KernelLibrary{std::move(*code), ""};
}

ExitCode compile_kernels(Tool& tool, const Options& options) {
  auto target = parse_x86_target(options.target, {}, tool.diagnostics());
  if (!target) return tool.result();
  if (options.denormals == "flush") target->denormals = DenormalMode::Flush;
  Steps steps;
  std::optional<Module> linked = link_inputs(tool, options, false);
  if (!linked) return tool.result();
  steps.ends("link");
  const std::vector<OpId> kernels = find_kernels(tool, *linked, options.link.root_names());
  if (tool.result() != ExitCode::Success) return tool.result();
  if (kernels.empty()) {
    return tool.usage_error(
        "the inputs define no kernel to compile; one without export(...) needs --root");
  }
  Report report;
  if (options.report.wanted()) {
    report = options.report.start(*linked, options.link);
    steps.begins();
  }
  PassContext context(*linked, tool.diagnostics());
  SelectOptions selection = x86_selection();
  std::vector<TemplateChoice> choices;
  if (options.report.wanted()) selection.choices = &choices;
  if (!expand_kernels(context, kernels, selection)) return tool.result();
  steps.ends("select-templates");
  if (PassObserver(options).wants("select-templates")) {
    fmt::print(stderr, "// after select-templates\n{}", print_text(*linked));
  }
  const auto made = make_code(tool, options, *linked, kernels, *target, report);
  if (!made) return tool.result();
  OutputSet outputs;
  report_templates(*linked, choices, report);
  ReportFlags::add_steps(steps.times(), report);
  if (!options.report.stage(tool, outputs, report)) return tool.result();
  if (!options.launch_config.empty()) {
    const auto config = write_launch_config(
        *linked, kernels, target_identity(options.target)->facts, tool.diagnostics());
    if (!config) return tool.result();
    if (!stage(tool, outputs, options.launch_config, *config)) return tool.result();
  }
  if (!stage(tool, outputs, options.output, made->shared_object)) return tool.result();
  if (!options.library.header.empty() &&
      !stage(tool, outputs, options.library.header, made->header)) {
    return tool.result();
  }
  const auto written = outputs.commit();
  if (!written) tool.report_write(written.error());
  if (written) options.report.print(report);
  return tool.result();
}

// The passes that --pipeline names; empty after a report for one that does not exist.
std::optional<std::vector<std::string>> module_passes(Tool& tool, const std::string& pipeline) {
  const auto all = default_pipeline();
  if (pipeline.empty() || pipeline == "default") {
    return std::vector<std::string>{all.begin(), all.end()};
  }
  if (pipeline == "none") return std::vector<std::string>{};
  std::vector<std::string> passes = CLI::detail::split(pipeline, ',');
  for (const std::string& name : passes) {
    if (find_pass(name) != nullptr) continue;
    tool.usage_error(fmt::format("--pipeline names no pass '{}'; the passes are {}", name,
                                 CLI::detail::join(module_pass_choices(), ", ")));
    return std::nullopt;
  }
  return passes;
}

// The linked inputs after the passes, as canonical text.
ExitCode compile_module(Tool& tool, const Options& options) {
  const auto passes = module_passes(tool, options.pipeline);
  if (!passes) return ExitCode::Usage;
  auto loaded = load_inputs(tool, options.link, {});
  auto link_settings = link_options(tool, options.link);
  if (!loaded || !link_settings) return tool.result();
  std::optional<Module> module =
      link(loaded->inputs, loaded->libraries, *link_settings, tool.diagnostics());
  if (!module) return tool.result();
  PassRunner::Options settings;
  if (options.verify_each) {
    settings.verify = [&m = *module](const Module&, OpId, Diagnostics& d) {
      return verify_module(m, d);
    };
  }
  settings.print = [](std::string_view pass, const Module& m, OpId) {
    fmt::print(stderr, "// after {}\n{}", pass, print_text(m));
  };
  settings.print_after = options.print_after;
  settings.disabled = options.disabled_passes;
  settings.stop_after = options.stop_after;
  settings.time = options.time_passes || options.report.wanted();
  PassContext context(*module, tool.diagnostics());
  Report report;
  std::vector<LoopNote> loops;
  if (options.report.wanted()) {
    report = options.report.start(*module, options.link);
    context.loop_notes = &loops;
  }
  PassRunner runner(std::move(settings));
  const bool ok = runner.run_module(context, *passes);
  if (options.time_passes) fmt::print(stderr, "{}", runner.timing_text());
  if (!ok) return tool.result();
  const std::string text = print_text(*module);
  if (options.report.wanted()) report_module(*module, text, runner.timings(), loops, report);
  OutputSet outputs;
  if (options.report.wanted() && !options.report.stage(tool, outputs, report)) {
    return tool.result();
  }
  if (!stage(tool, outputs, options.output, text)) return tool.result();
  const auto written = outputs.commit();
  if (!written) tool.report_write(written.error());
  if (written && options.report.wanted()) options.report.print(report);
  return tool.result();
}

bool names_one_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code unknown;
  const auto place = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, unknown), unknown);
  };
  return place(a) == place(b);
}

ExitCode run(Tool& tool, const Options& options) {
  if (!options.report.output.empty() && !options.report.wanted()) {
    return tool.usage_error("--compile-report-output needs --compile-report");
  }
  if (options.product == "module") {
    if (!options.format.empty() || !options.target.empty()) {
      return tool.usage_error("--product=module is text; it takes no --format and no --target");
    }
    return compile_module(tool, options);
  }
  if (!options.pipeline.empty() || !options.disabled_passes.empty() ||
      !options.stop_after.empty() || options.verify_each) {
    return tool.usage_error(
        "--pipeline, --disable-pass, --stop-after and --verify-each need --product=module");
  }
  const bool commands =
      options.format == "loom-command" || (options.format.empty() && options.target.empty());
  if (!options.product.empty() && (options.product == "command") != commands) {
    return tool.usage_error(
        fmt::format("--product={} does not fit the format that is asked for", options.product));
  }
  if (commands && !options.launch_config.empty()) {
    return tool.usage_error("--emit-launch-config is of kernels; it needs --target");
  }
  if (options.library.given() && options.format != kLibraryFormat) {
    return tool.usage_error("--emit-header and --levels need --format=shared-object");
  }
  if (commands) return compile_commands(tool, options);
  if (options.target.empty()) {
    return tool.usage_error("a kernel format needs --target, such as --target=x86_64");
  }
  for (const auto& [flag, value] : {std::pair{"--emit-command-artifacts", &options.artifact_folder},
                                    std::pair{"--emit-kernel-requests", &options.request_folder},
                                    std::pair{"--print-schedule", &options.print_schedule}}) {
    if (!value->empty()) {
      return tool.usage_error(fmt::format("{} needs --format=loom-command", flag));
    }
  }
  if (options.check_hazards) {
    return tool.usage_error("--check-hazards needs --format=loom-command");
  }
  if (options.format == kLibraryFormat) {
    if (const auto problem = options.library.problem(options.output, options.target)) {
      return tool.usage_error(*problem);
    }
    if (names_one_file(options.output, options.library.header) ||
        names_one_file(options.output, options.launch_config) ||
        names_one_file(options.library.header, options.launch_config)) {
      return tool.usage_error("two of the outputs are the same file");
    }
    if (options.report.wanted()) {
      return tool.usage_error("--compile-report is of one object; it takes no shared object");
    }
  }
  return compile_kernels(tool, options);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_main(
      argc, argv, kInfo, [&](CLI::App& app) { declare(app, options); },
      [&](Tool& tool) { return run(tool, options); });
}
