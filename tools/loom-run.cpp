// Runs a command program: links, prepares, compiles, materializes, binds and issues it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/cache_flags.h"
#include "common/cli.h"
#include "common/debug_flags.h"
#include "common/link_flags.h"
#include "common/operands.h"
#include "common/parameter_flags.h"
#include "common/watchdog.h"
#include "loom/api/interpret.h"
#include "loom/api/profile_state.h"
#include "loom/bytecode/bytecode.h"
#include "loom/command/prepare.h"
#include "loom/command/schedule.h"
#include "loom/dialect/verify.h"
#include "loom/runtime/cpu/cpu_device.h"
#include "loom/runtime/dump.h"
#include "loom/runtime/host/host_code.h"
#include "loom/runtime/parameters/parameter_file.h"
#include "loom/target/x86/compile.h"

namespace {

using namespace loom;

constexpr ToolInfo kInfo{
    "loom-run", "Runs a command program from source to numbers.",
    "  loom-run model.loom --library=layer.loom --library=kernels.loom --root=@two_layer \\\n"
    "    --specialize=@two_layer:element_count=8 --parameters=weights.gguf \\\n"
    "    --input=%input=x.npy --fill=%hidden=8xf32:0 --print=%output=8xf32\n"
    "  loom-run chain.loom --fill=%x=1024xf32:1.5 --output=%y=1024xf32:y.npy --repeat=1000 "
    "--time\n"};

struct Flags {
  LinkFlags link;
  CacheFlags cache;
  DebugFlags debug;
  PerfFlag perf;
  TimeoutFlag timeout;
  OperandFlags operands;
  std::string device = "cpu";
  ParameterFlags parameters;
  std::vector<std::string> executables;
  uint64_t repeat = 1;
  bool time = false;
  std::string profile;
  std::string dump;
  std::string print_schedule;
  std::string denormals = "keep";
  std::string tier = "optimized";
};

void declare(CLI::App& app, Flags& flags) {
  flags.link.declare(app);
  app.add_option("--device", flags.device,
                 "where the program runs: cpu compiles it, interp interprets and checks it")
      ->capture_default_str();
  flags.parameters.declare(app);
  flags.operands.declare(app);
  flags.cache.declare(app);
  flags.debug.declare(app);
  flags.perf.declare(app);
  flags.timeout.declare(app);
  app.add_option(
         "--executable", flags.executables,
         "satisfy an entry with an ELF object or shared object made elsewhere: @e=FILE[:entry]")
      ->expected(1)
      ->take_all();
  app.add_option("--repeat", flags.repeat, "issue so many times")
      ->check([](const std::string& count) {
        // More than 64 bits would be taken for the greatest number that fits.
        if (count.size() > 15) return std::string("issue fewer than 10^15 times");
        return count == "0" ? std::string("issue at least once") : std::string();
      })
      ->capture_default_str();
  app.add_flag("--time", flags.time, "print how long each step took");
  app.add_option("--profile", flags.profile, "write a trace of the last issue in Chrome's format");
  app.add_option(
      "--dump", flags.dump,
      "folder for what each dispatch of the last issue left in the storage it was given, "
      "with an index.json");
  app.add_option("--print-schedule", flags.print_schedule, "print the schedule tree: text or dot")
      ->check(CLI::IsMember({"text", "dot"}));
  app.add_option(
         "--tier", flags.tier,
         "optimized: the fastest code; fast: the least compile time; fast-first: the latter "
         "at once, and the former in its place as soon as it is there")
      ->check(CLI::IsMember({"optimized", "fast", "fast-first"}))
      ->capture_default_str();
  app.add_option("--denormals", flags.denormals, "keep denormals, or permit flushing them")
      ->check(CLI::IsMember({"keep", "flush"}))
      ->capture_default_str();
}

// Times the steps for --time, and shows each on a terminal when it takes long.
class Steps {
 public:
  template <class Step>
  auto run(std::string name, Step&& step) {
    return run(std::move(name), 0, [&](Progress&) { return step(); });
  }
  template <class Step>
  auto run(std::string name, uint64_t total, Step&& step) {
    Progress progress(name, total);
    const auto start = std::chrono::steady_clock::now();
    auto result = step(progress);
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    text_ += fmt::format("{:<22} {:>10.3f} ms\n", name, spent.count());
    return result;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// The one program to run: the root that was named, or the only one that could be meant.
std::optional<std::string> choose_root(Tool& tool, const Flags& flags, const Module& linked) {
  const std::vector<std::string> named = flags.link.root_names();
  if (named.size() == 1) return named[0];
  const std::vector<std::string> found = default_command_roots(linked);
  if (found.size() == 1) return found[0];
  std::string list;
  for (const std::string& name : found)
    list += fmt::format("{}@{}", list.empty() ? "" : ", ", name);
  tool.usage_error(found.empty() ? "the inputs hold no public command program"
                                 : "name the program to run with --root; there are " + list);
  return std::nullopt;
}

void open_parameters(Tool& tool, const Flags& flags, const PreparedProgram& program,
                     ParameterSet& set) {
  const auto takes = [&](std::string_view root) {
    return std::ranges::any_of(program.parameters, [&](const ParameterRow& row) {
      return program.roots[row.binding] == root;
    });
  };
  flags.parameters.open(tool, takes, program.symbol, set);
}

std::string issue_times(std::vector<double>& microseconds) {
  std::ranges::sort(microseconds);
  return fmt::format("issued {} times: median {:.3f} us, least {:.3f} us, most {:.3f} us\n",
                     microseconds.size(), microseconds[microseconds.size() / 2],
                     microseconds.front(), microseconds.back());
}

// Issues as often as asked for; the times are empty unless they were asked for. `last` is the last
// issue where that is to be watched, else empty.
bool issue_all(Tool& tool, const Flags& flags, Invocation& invocation,
               std::vector<double>& microseconds, const std::function<bool()>& last) {
  if (flags.time)
    microseconds.reserve(static_cast<size_t>(std::min<uint64_t>(flags.repeat, 1 << 20)));
  Progress progress("issuing", flags.repeat);
  for (uint64_t i = 0; i < flags.repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const bool watched = last && i + 1 == flags.repeat;
    if (!(watched ? last() : invocation.issue(tool.diagnostics()))) return false;
    const std::chrono::duration<double, std::micro> spent =
        std::chrono::steady_clock::now() - start;
    if (flags.time) microseconds.push_back(spent.count());
    progress.step();
  }
  return true;
}

// One issue, with what each of its dispatches leaves in storage written to the folder.
bool issue_dumped(Tool& tool, const Flags& flags, const ProgramView& program,
                  const Operands& operands, Invocation& invocation, Watchdog& watchdog) {
  std::vector<StorageDump::Binding> bindings;
  for (const InterpStorage& storage : operands.named_storage()) {
    bindings.push_back({storage.name, storage.bytes, operands.type_of(storage.name)});
  }
  StorageDump dump(program, flags.dump, std::move(bindings));
  FileResult<void> written = dump.begin();
  bool good = written.has_value();
  if (good) {
    good = invocation.issue_stepped(
        [&](uint32_t command) {
          const auto held = watchdog.hold();
          dump.after(command, invocation.slab_bytes());
        },
        tool.diagnostics());
    const auto held = watchdog.hold();
    written = dump.finish(good);
  }
  if (!written) tool.report_write(written.error());
  return good && written.has_value();
}

// What this build cannot do ends here, before any work.
std::optional<ExitCode> refuse(Tool& tool, const Flags& flags) {
  const std::string family = flags.device.substr(0, flags.device.find(':'));
  const bool known = family == "cuda" || family == "vulkan";
  if (flags.device != "cpu" && flags.device != "interp" && !known) {
    return tool.usage_error(fmt::format("unknown device '{}'", flags.device));
  }
  if (known) {
    tool.diagnostics().emit(Diag::RunDevice, {}, {{"device", flags.device}});
    return ExitCode::Environment;
  }
  if (flags.link.roots.size() > 1) return tool.usage_error("--root names one program");
  if (flags.device == "interp" && !flags.profile.empty()) {
    return tool.usage_error("--profile needs a device that takes time; --device=interp does not");
  }
  if (flags.device == "interp" && !flags.dump.empty()) {
    return tool.usage_error("--dump needs a device that dispatches; --device=interp does not");
  }
  if (!flags.dump.empty() && !flags.profile.empty()) {
    return tool.usage_error("--dump and --profile both watch the last issue; state one of them");
  }
  return std::nullopt;
}

// "@e=FILE[:entry]"; a file whose name has a colon is meant when there is one.
std::optional<std::vector<ExternalEntry>> external_entries(const Flags& flags) {
  std::vector<ExternalEntry> externals;
  for (const std::string& flag : flags.executables) {
    const size_t equals = flag.find('=');
    if (!flag.starts_with('@') || equals == flag.npos || equals + 1 == flag.size()) {
      return std::nullopt;
    }
    ExternalEntry external{.symbol = flag.substr(1, equals - 1), .file = flag.substr(equals + 1)};
    const size_t colon = external.file.rfind(':');
    if (colon != flag.npos && !std::filesystem::exists(external.file)) {
      external.name = external.file.substr(colon + 1);
      external.file.resize(colon);
    }
    externals.push_back(std::move(external));
  }
  return externals;
}

// Whether an executable is for a device that this build does not have.
bool lacks_device(const Diagnostics& diagnostics) {
  return std::ranges::any_of(diagnostics.all(),
                             [](const Diagnostic& d) { return d.id == Diag::RunExecutableDevice; });
}

// The program as it was linked, with every kernel's body.
std::optional<Module> open_source(Tool& tool, const LoadedInputs& loaded,
                                  const LinkOptions& options) {
  auto linked = link(loaded.inputs, loaded.libraries, options, tool.diagnostics());
  if (!linked || !load_kernel_bodies(*linked, tool.diagnostics()) ||
      !verify_module(*linked, tool.diagnostics())) {
    return std::nullopt;
  }
  return linked;
}

// Runs the linked program itself, as often as asked for; nothing is compiled.
bool interpret_all(Tool& tool, const Flags& flags, const Module& source, const std::string& root,
                   Operands& operands, const ParameterSet& parameters,
                   std::vector<double>& microseconds) {
  const std::vector<InterpStorage> storage = operands.named_storage();
  InterpOptions interp;
  interp.target = x86_selection().target;  // that the plan was made for
  interp.subgroup_size = interp.target.subgroup_size.value_or(interp.subgroup_size);
  Progress progress("interpreting", flags.repeat);
  for (uint64_t i = 0; i < flags.repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (!interpret_program(source, root, storage, parameters, interp, tool.diagnostics()))
      return false;
    const std::chrono::duration<double, std::micro> spent =
        std::chrono::steady_clock::now() - start;
    if (flags.time) microseconds.push_back(spent.count());
    progress.step();
  }
  return true;
}

ExitCode run(Tool& tool, const Flags& flags) {
  if (const auto refused = refuse(tool, flags)) return *refused;
  auto operands = Operands::parse(flags.operands);
  if (!operands) return tool.usage_error(operands.error());
  auto externals = external_entries(flags);
  if (!externals) return tool.usage_error("--executable takes @entry=FILE or @entry=FILE:name");
  Diagnostics& diagnostics = tool.diagnostics();
  Steps steps;
  std::optional<Watchdog> watchdog(std::in_place, tool, flags.timeout);

  // Every input is verified.
  auto loaded = steps.run("reading modules", [&] { return load_inputs(tool, flags.link); });
  auto options = link_options(tool, flags.link);
  if (!loaded || !options) return tool.result();

  // The module holds the closure of the root and nothing else.
  options->keep_kernel_declarations = true;
  options->target = target_identity("x86_64");
  auto linked = steps.run(
      "linking", [&] { return link(loaded->inputs, loaded->libraries, *options, diagnostics); });
  if (!linked) return tool.result();
  const auto root = choose_root(tool, flags, *linked);
  if (!root) return ExitCode::Usage;
  std::optional<Module> source;
  if (flags.device == "interp") {
    source = open_source(tool, *loaded, *options);
    if (!source) return tool.result();
  }

  // The plan is plain data; each kernel it needs is one request.
  const bool debugged = flags.debug.wanted();
  const bool located = debugged || !flags.perf.folder.empty();
  std::vector<KernelRequest> requests;
  const auto plan = steps.run("preparing", [&] {
    return prepare(
        *linked, {.roots = {*root}, .target = x86_selection().target, .locate_requests = located},
        [&](KernelRequest&& request) {
          requests.push_back(std::move(request));
          return true;
        },
        diagnostics);
  });
  if (!plan) return tool.result();
  const PreparedProgram& program = plan->programs[0];
  if (!flags.print_schedule.empty()) {
    tool.print(flags.print_schedule == "dot" ? schedule_dot({*plan, program})
                                             : schedule_text({*plan, program}));
  }

  // Flags and files fit the program; all that is wrong with them is told before compiling.
  operands->check(program, diagnostics);
  operands->load(tool);
  ParameterSet parameters;
  open_parameters(tool, flags, program, parameters);
  if (diagnostics.has_errors()) return tool.result();

  std::vector<double> microseconds;
  const auto finish = [&] {
    watchdog.reset();
    tool.print(operands->print());
    operands->write(tool);
    if (flags.time) tool.print(steps.text() + issue_times(microseconds));
    return tool.result();
  };
  if (source) {
    const auto host = make_cpu_device();
    operands->allocate(*host, diagnostics);
    if (diagnostics.has_errors()) return ExitCode::Environment;
    if (!interpret_all(tool, flags, *source, *root, *operands, parameters, microseconds)) {
      return tool.result();
    }
    return finish();
  }

  // Every entry is a function in this process.
  HostCodeOptions code_options;
  code_options.jit.denormals =
      flags.denormals == "flush" ? DenormalMode::Flush : DenormalMode::Keep;
  code_options.jit.tier = flags.tier == "fast" ? JitTier::Fast : JitTier::Optimized;
  code_options.fast_first = flags.tier == "fast-first" && !debugged;
  if (debugged) {
    // Optimized code has a line in several places, of which a breakpoint takes one.
    code_options.jit.tier = JitTier::Fast;
  }
  if (located) {
    code_options.engine =
        JitEngine::create(diagnostics, {.debugger = debugged, .perf_folder = flags.perf.folder});
  }
  if (diagnostics.has_errors()) return tool.result();
  code_options.later_cache = flags.cache.open(tool);
  code_options.cache = code_options.later_cache.get();
  code_options.externals = std::move(*externals);
  const auto code = steps.run("compiling kernels", requests.size(), [&](Progress& progress) {
    code_options.compiled = [&] { progress.step(); };
    return HostCode::compile(*plan, requests, &*linked, code_options, diagnostics);
  });
  if (!code) return lacks_device(diagnostics) ? ExitCode::Environment : tool.result();

  // Parameters are in place and every binding has storage that is large enough.
  const auto device = make_cpu_device();
  const HostCode::Attachment attached = code->attach(program);
  const auto materialized = steps.run("materializing", [&] {
    return device->materialize({{*plan, program},
                                &parameters,
                                attached.entries,
                                attached.needs.bindings,
                                attached.needs.parameter_bytes,
                                attached.needs.transients},
                               diagnostics);
  });
  if (!materialized) return tool.result();
  operands->allocate(*device, diagnostics);
  if (diagnostics.has_errors()) return ExitCode::Environment;
  const auto invocation = materialized->make_invocation();
  if (!invocation) {
    diagnostics.emit(
        Diag::RunOutOfMemory, {},
        {{"bytes", std::to_string(materialized->slab().bytes)}, {"what", "transient storage"}});
    return ExitCode::Environment;
  }
  operands->bind(*invocation, diagnostics);
  if (diagnostics.has_errors()) return tool.result();

  std::optional<api::Profile> profile;
  if (!flags.profile.empty()) {
    profile.emplace(std::make_unique<api::Profile::State>(
        ProgramView(*plan, program),
        [&](FileId file) { return std::string_view(tool.files().file(file).path); }));
  }
  std::function<bool()> last;
  if (profile) last = [&] { return profile->state().issue(*invocation, diagnostics); };
  if (!flags.dump.empty()) {
    last = [&] {
      return issue_dumped(tool, flags, {*plan, program}, *operands, *invocation, *watchdog);
    };
  }
  if (!issue_all(tool, flags, *invocation, microseconds, last)) return tool.result();
  watchdog.reset();
  if (profile) tool.write_output(flags.profile, profile->chrome_trace());
  if (flags.time && code_options.cache != nullptr) {
    const CacheCounts counts = code_options.cache->counts();
    tool.print(fmt::format("cache: {} hits, {} misses\n", counts.hits, counts.misses));
  }
  return finish();
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  return run_main(
      argc, argv, kInfo, [&](CLI::App& app) { declare(app, flags); },
      [&](Tool& tool) { return run(tool, flags); });
}
