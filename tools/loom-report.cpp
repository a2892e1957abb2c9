// Shows what an artifact holds.
#include <filesystem>
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

// A file is read where it is mapped; standard input, a pipe and a device are not mapped.
std::optional<CommandArtifact> open(Tool& tool, const std::string& path) {
  std::error_code unused;
  if (std::filesystem::is_regular_file(path, unused)) {
    tool.note_input(path);
    return CommandArtifact::open(tool.files(), path, tool.diagnostics());
  }
  const auto bytes = tool.read_input(path);
  if (!bytes) return std::nullopt;
  return CommandArtifact::copy(tool.files(), *bytes, path, tool.diagnostics());
}

ExitCode show(Tool& tool, const Options& options) {
  const auto artifact = open(tool, options.file);
  if (!artifact) return tool.result();
  const std::string text = options.format == "json" ? manifest_json(artifact->program())
                                                    : cmd_core_text(artifact->program());
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
