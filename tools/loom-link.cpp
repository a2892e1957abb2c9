// loom-link: composes modules.
#include "common/cli.h"
#include "common/link_flags.h"
#include "loom/bytecode/bytecode.h"
#include "loom/dialect/verify.h"
#include "loom/link/link.h"
#include "loom/text/printer.h"

namespace {

using namespace loom;

struct LinkTool {
  LinkFlags flags;
  std::string mode = "link";
  std::string from = "auto";
  std::string to;
  std::string output = "-";
  std::string target;
  bool allow_unresolved = false;
  bool include_input_exports = false;
  bool require_resolved_config = false;
  bool strip_check = false;
  bool show_symbols = false;
  bool show_plan = false;
  bool show_schema = false;
};

constexpr ToolInfo kInfo = {
    "loom-link",
    "Links Loom modules: keeps what the roots reach and resolves declarations among the inputs and "
    "the libraries.",
    "  loom-link model.loom --library=layer.loom --library=kernels.loom --root=@two_layer\n"
    "  loom-link model.loom --allow-unresolved --to=bc --output=model.loombc\n"
    "  loom-link model.loom --library=layer.loom --print-plan\n"};

void declare(CLI::App& app, LinkTool& tool) {
  tool.flags.declare(app);
  app.add_option("--mode", tool.mode,
                 "link: keep what is live; merge (or archive): keep all of the inputs")
      ->check(CLI::IsMember({"link", "merge", "archive"}));
  app.add_option("--from", tool.from, "form of the files: auto, text or bc")
      ->check(CLI::IsMember({"auto", "text", "bc", "bytecode"}));
  app.add_option("--to", tool.to,
                 "form of the result: text or bc (default: by the name of --output)")
      ->check(CLI::IsMember({"text", "bc", "bytecode"}));
  app.add_option("--output", tool.output, "where the result goes (default: standard output)");
  app.add_option("--target", tool.target,
                 "what target.decl names: family or family:selector, such as nvptx:sm_90");
  app.add_flag("--allow-unresolved", tool.allow_unresolved,
               "keep declarations that nothing defines, to be linked later");
  app.add_flag("--include-input-exports", tool.include_input_exports,
               "exports of the inputs are roots besides --root");
  app.add_flag("--include-exported-roots", tool.include_input_exports)->group("");  // older name
  app.add_flag("--require-resolved-config", tool.require_resolved_config,
               "refuse a configuration key that is reached but has no value");
  app.add_flag("--strip-check", tool.strip_check, "drop test-only symbols");
  app.add_flag("--list-symbols", tool.show_symbols, "print the symbols of every file instead");
  app.add_flag("--print-plan", tool.show_plan, "print what is live and why instead");
  app.add_flag("--print-config-schema", tool.show_schema,
               "print the configuration keys as JSON instead");
}

InputForm input_form(const std::string& from) {
  if (from == "auto") return InputForm::Auto;
  return from == "text" ? InputForm::Text : InputForm::Bytecode;
}

std::string all_symbols(const LoadedInputs& loaded) {
  std::string text;
  const auto add = [&](const LinkInput& input, std::string_view role) {
    if (!text.empty()) text += "\n";
    text += std::string(role) + " " + input.path + "\n" + list_symbols(input);
  };
  for (const LinkInput& input : loaded.inputs) add(input, "input");
  for (const LinkInput& library : loaded.libraries.libraries()) add(library, "library");
  return text;
}

// The modules are read and verified, linked, opened where a kernel body was still encoded, verified
// as a whole, and written.
ExitCode run(Tool& tool, const LinkTool& own) {
  const bool merge = own.mode != "link";
  if (merge &&
      (!own.flags.roots.empty() || !own.flags.specialize.empty() || !own.flags.libraries.empty() ||
       !own.flags.config.empty() || !own.flags.config_files.empty() || !own.target.empty())) {
    return tool.usage_error(
        "--mode=merge keeps the inputs as they are; it takes no library, root, specialization, "
        "configuration or target");
  }
  auto loaded =
      load_inputs(tool, own.flags, {.form = input_form(own.from), .defer_kernel_bodies = true});
  auto options = link_options(tool, own.flags);
  if (!loaded || !options) return tool.result();
  options->merge = merge;
  if (!own.target.empty()) {
    options->target = target_identity(own.target);
    if (!options->target) {
      tool.diagnostics().emit(
          Diag::TargetUnknown, {},
          {{"target", own.target}, {"known", std::string(known_target_families())}});
      return tool.result();
    }
  }
  options->allow_unresolved = own.allow_unresolved;
  options->include_input_exports = own.include_input_exports;
  options->require_resolved_config = own.require_resolved_config;
  options->strip_check = own.strip_check;
  if (own.show_symbols) {
    tool.write_output(own.output, all_symbols(*loaded));
    return tool.result();
  }
  if (own.show_schema) {
    tool.write_output(own.output, config_schema(loaded->inputs, loaded->libraries, *options));
    return tool.result();
  }
  std::vector<LinkedSymbol> plan;
  auto linked = link(loaded->inputs, loaded->libraries, *options, tool.diagnostics(), &plan);
  if (!linked) return tool.result();
  if (own.show_plan) {
    tool.write_output(own.output, plan_text(*linked, plan));
    return tool.result();
  }
  if (!load_kernel_bodies(*linked, tool.diagnostics()) ||
      !verify_module(*linked, tool.diagnostics())) {
    return tool.result();
  }
  const bool binary = own.to.empty() ? own.output.ends_with(".loombc") : own.to != "text";
  tool.write_output(own.output, binary ? write_bytecode(*linked) : print_text(*linked));
  return tool.result();
}

}  // namespace

int main(int argc, char** argv) {
  LinkTool own;
  return run_main(
      argc, argv, kInfo, [&](CLI::App& app) { declare(app, own); },
      [&](Tool& tool) { return run(tool, own); });
}
