#include "common/check_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "loom/base/suggest.h"
#include "loom/check/plan.h"
#include "loom/dialect/op_info.h"
#include "loom/dialect/target_info.h"
#include "loom/ir/walk.h"

namespace loom {
namespace {

std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-=+./:,@%") == word.npos;
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

void CheckFlags::declare(CLI::App& app) {
  link.declare_without_roots(app);
  app.add_option("--device", device,
                 "where kernels and programs run: cpu compiles them, interp interprets and checks "
                 "them [cpu; interp with --sanitizer]");
  app.add_option("--sanitizer", sanitizers,
                 "report bad accesses (access: bounds, uninitialized reads) or races between "
                 "workitems (race); may be repeated")
      ->check(CLI::IsMember({"access", "race"}))
      ->expected(1)
      ->take_all();
  app.add_option("--sample", sample, "run this sample of each case only");
  app.add_option("--denormals", denormals, "keep denormals, or permit flushing them")
      ->check(CLI::IsMember({"keep", "flush"}))
      ->capture_default_str();
  app.add_option("--timeout", timeout, "seconds after which a sample is stopped; 0: never")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  parameters.declare(app);
  app.add_option("--oracle", oracles,
                 "command that serves check.oracle.call<external> {name = \"NAME\"}: NAME=COMMAND")
      ->expected(1)
      ->take_all();
  app.add_option("--output-folder", output_folder,
                 "where cases write files, and where what failed is kept");
}

std::string CheckFlags::chosen_device() const {
  return !device.empty() ? device : sanitizers.empty() ? "cpu" : "interp";
}

std::optional<ExitCode> CheckFlags::refuse(Tool& tool) const {
  const std::string chosen = chosen_device();
  const std::string family = chosen.substr(0, chosen.find(':'));
  if (family == "cuda" || family == "vulkan") {
    tool.diagnostics().emit(Diag::RunDevice, {}, {{"device", chosen}});
    return ExitCode::Environment;
  }
  if (chosen != "cpu" && chosen != "interp") {
    return tool.usage_error(fmt::format("unknown device '{}'", chosen));
  }
  if (chosen == "cpu" && !sanitizers.empty()) {
    return tool.usage_error(
        "the code of --device=cpu is not instrumented; --sanitizer needs --device=interp");
  }
  return std::nullopt;
}

std::optional<check::TestOptions> CheckFlags::options(Tool& tool) const {
  check::TestOptions made;
  made.device = chosen_device();
  made.plan.sample = sample;
  made.sanitize_access = std::ranges::find(sanitizers, "access") != sanitizers.end();
  made.sanitize_race = std::ranges::find(sanitizers, "race") != sanitizers.end();
  made.denormals = denormals == "flush" ? DenormalMode::Flush : DenormalMode::Keep;
  made.workers.timeout = timeout;
  made.output_folder = output_folder;
  made.keep_failures = !output_folder.empty();
  for (const std::string& flag : oracles) {
    const size_t equals = flag.find('=');
    if (equals == 0 || equals == flag.npos || equals + 1 == flag.size()) {
      tool.usage_error("--oracle takes NAME=COMMAND");
      return std::nullopt;
    }
    made.oracles[flag.substr(0, equals)] = flag.substr(equals + 1);
  }
  made.rerun = command_line("loom-test");
  return made;
}

bool CheckFlags::open_parameters(Tool& tool, const Module& module,
                                 check::TestOptions& options) const {
  std::vector<std::string_view> roots;
  std::string programs;
  for_each_op(module, module.body(), [&](OpId op) {
    if (module.op(op).kind != OpKind::CommandProgramDef) return;
    programs += (programs.empty() ? "" : ", @") + std::string(symbol_text(module, op));
    const RegionId body = module.op_region(op, region_slot(OpKind::CommandProgramDef, "body"));
    for (const ValueId formal : module.arg_group(body, 1)) roots.push_back(module.name_of(formal));
  });
  const auto takes = [&](std::string_view root) {
    return std::ranges::find(roots, root) != roots.end();
  };
  auto set = std::make_shared<ParameterSet>();
  const bool good = parameters.open(tool, takes, programs.empty() ? "none" : programs, *set);
  options.parameters = std::move(set);
  return good;
}

std::string CheckFlags::command_line(const char* program) const {
  std::string line = program;
  const auto add = [&](const std::string& word) { line += " " + quoted(word); };
  const auto add_all = [&](const char* flag, const std::vector<std::string>& values) {
    for (const std::string& value : values) add(fmt::format("{}={}", flag, value));
  };
  for (const std::string& input : link.inputs) add(input);
  add_all("--library", link.libraries);
  add_all("--config", link.config);
  add_all("--config-file", link.config_files);
  if (!device.empty()) add("--device=" + device);
  add_all("--sanitizer", sanitizers);
  if (denormals != "keep") add("--denormals=" + denormals);
  add_all("--parameters", parameters.files);
  add_all("--oracle", oracles);
  if (timeout != kDefaultTimeout) add(fmt::format("--timeout={}", timeout));
  return line;
}

std::expected<LinkInput, ExitCode> link_cases(Tool& tool, const CheckFlags& flags,
                                              const std::vector<std::string>& cases) {
  auto loaded = load_inputs(tool, flags.link);
  auto options = link_options(tool, flags.link);
  if (!loaded || !options) return std::unexpected(ExitCode::Failure);
  std::vector<std::string> names;
  for (const LinkInput& input : loaded->inputs) {
    for (const std::string_view name : check::case_names(input.module)) names.emplace_back(name);
  }
  for (const std::string& name : cases) {
    if (std::ranges::find(names, name) != names.end()) continue;
    Suggestion near(name);
    for (const std::string& known : names) near.consider(known);
    return std::unexpected(tool.usage_error(
        fmt::format("the inputs hold no case '@{}'{}", name,
                    near.best().empty() ? "" : fmt::format("; did you mean '@{}'?", near.best()))));
  }
  options->roots = cases.empty() ? names : cases;
  options->allow_unresolved = true;
  options->target = target_identity("x86_64");
  if (options->roots.empty()) return LinkInput{Module(tool.files()), "cases"};
  auto linked = link(loaded->inputs, loaded->libraries, *options, tool.diagnostics());
  if (!linked) return std::unexpected(ExitCode::Failure);
  return LinkInput{std::move(*linked), "cases"};
}

}  // namespace loom
