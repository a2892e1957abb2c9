// Shows what an artifact holds.
#include <string>

#include "common/cli.h"
#include "loom/command/artifact.h"
#include "loom/command/cmd_core.h"
#include "loom/command/manifest.h"

namespace {

using namespace loom;

constexpr ToolInfo kInfo{"loom-report", "Shows what a command artifact (.loomcmd) holds.",
                         "  loom-report show commands/two_layer.loomcmd\n"
                         "  loom-report show --format=json commands/two_layer.loomcmd\n"};

struct Options {
  std::string file;
  std::string format = "text";
  std::string output = "-";
};

ExitCode show(Tool& tool, const Options& options) {
  const auto bytes = tool.read_input(options.file);
  if (!bytes) return tool.result();
  const auto plan = read_artifact(tool.files(), *bytes, options.file, tool.diagnostics());
  if (!plan) return tool.result();
  const std::string text = options.format == "json" ? manifest_json(*plan, {})
                                                    : cmd_core_text(*plan, plan->programs.front());
  tool.write_output(options.output, text);
  return tool.result();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_main(
      argc, argv, kInfo,
      [&](CLI::App& app) {
        CLI::App* const command = app.add_subcommand("show", "prints an artifact");
        command->add_option("FILE", options.file, "a .loomcmd file")->required();
        command
            ->add_option("--format", options.format, "text: cmd.core; json: as the manifest does")
            ->check(CLI::IsMember({"text", "json"}))
            ->capture_default_str();
        command->add_option("--output", options.output, "file to write")->capture_default_str();
        app.require_subcommand(1);
      },
      [&](Tool& tool) { return show(tool, options); });
}
