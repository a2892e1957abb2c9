// Reads what compilations leave behind: compile reports and command artifacts.
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "common/cli.h"
#include "loom/command/artifact.h"
#include "loom/command/cmd_core.h"
#include "loom/command/manifest.h"
#include "loom/report/report_diff.h"
#include "loom/report/report_suggest.h"
#include "loom/report/report_text.h"

namespace {

using namespace loom;

constexpr ToolInfo kInfo{
    "loom-report",
    "Shows and compares compile reports, proposes what to try, and shows what a command artifact "
    "(.loomcmd) holds.",
    "  loom-compile kernels.loom --target=x86_64 --output=k.o --compile-report=details \\\n"
    "    --compile-report-output=report.json\n"
    "  loom-report show report.json\n"
    "  loom-report diff before.json after.json\n"
    "  loom-report suggest report.json\n"
    "  loom-report show commands/two_layer.loomcmd\n"};

struct Options {
  std::string file;
  std::string other;
  std::string format = "text";
  std::string output = "-";
  bool force = false;
  bool experimental = false;

  bool json() const { return format == "json"; }
};

std::optional<Report> read(Tool& tool, const std::string& file) {
  const auto text = tool.read_input(file);
  if (!text) return std::nullopt;
  return read_report(*text, file, tool.diagnostics());
}

// A file is read where it is mapped; standard input, a pipe and a device are not mapped.
std::optional<std::string> artifact_text(Tool& tool, const Options& options,
                                         const std::string* bytes) {
  const auto artifact =
      bytes == nullptr
          ? CommandArtifact::open(tool.files(), options.file, tool.diagnostics())
          : CommandArtifact::copy(tool.files(), *bytes, options.file, tool.diagnostics());
  if (!artifact) return std::nullopt;
  return options.json() ? manifest_json(artifact->program()) : cmd_core_text(artifact->program());
}

ExitCode show(Tool& tool, const Options& options) {
  std::error_code unused;
  std::optional<std::string> bytes;
  std::string_view content;
  MappedFile mapped;
  if (std::filesystem::is_regular_file(options.file, unused)) {
    tool.note_input(options.file);
    auto file = MappedFile::open(options.file);
    if (!file) {
      tool.report_read(file.error());
      return tool.result();
    }
    mapped = std::move(*file);
    content = {reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()};
  } else {
    bytes = tool.read_input(options.file);
    if (!bytes) return tool.result();
    content = *bytes;
  }
  std::optional<std::string> text;
  if (!looks_like_report(content)) {
    text = artifact_text(tool, options, bytes ? &*bytes : nullptr);
  } else if (const auto report = read_report(content, options.file, tool.diagnostics())) {
    text = options.json() ? write_report(*report) : report_text(*report);
  }
  if (text) tool.write_output(options.output, *text);
  return tool.result();
}

ExitCode diff(Tool& tool, const Options& options) {
  const auto before = read(tool, options.file);
  const auto after = read(tool, options.other);
  if (!before || !after) return tool.result();
  const auto found = diff_reports(
      *before, *after,
      {.force = options.force, .before_file = options.file, .after_file = options.other},
      tool.diagnostics());
  if (!found) return tool.result();
  tool.write_output(options.output, options.json() ? diff_json(*found) : diff_text(*found));
  return tool.result();
}

ExitCode propose(Tool& tool, const Options& options) {
  const auto report = read(tool, options.file);
  if (!report) return tool.result();
  const std::vector<Proposal> found = suggest(*report, options.experimental);
  tool.write_output(options.output, options.json() ? suggest_json(found) : suggest_text(found));
  return tool.result();
}

CLI::App* add_command(CLI::App& app, Options& options, const char* name, const char* what) {
  CLI::App* const command = app.add_subcommand(name, what);
  command->add_option("--format", options.format, "text for people, json for programs")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->add_option("--output", options.output, "file to write")->capture_default_str();
  return command;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  std::string chosen;
  return run_main(
      argc, argv, kInfo,
      [&](CLI::App& app) {
        CLI::App* const shows = add_command(
            app, options, "show",
            "prints a report, or an artifact: as cmd.core text, or as the manifest does");
        shows->add_option("FILE", options.file, "a compile report or a .loomcmd file")->required();
        CLI::App* const compares =
            add_command(app, options, "diff", "prints what differs between two reports");
        compares->add_option("BEFORE", options.file, "a compile report")->required();
        compares->add_option("AFTER", options.other, "another one of the same compilation")
            ->required();
        compares->add_flag("--force", options.force,
                           "compare reports of other sources, targets or flags, and say what of "
                           "these differs; single kernels may have other names");
        compares->callback([&] { chosen = "diff"; });
        CLI::App* const suggests =
            add_command(app, options, "suggest",
                        "proposes what to try, with the facts of the report that speak for it");
        suggests->add_option("FILE", options.file, "a compile report, better with details")
            ->required();
        suggests->add_flag("--include-experimental", options.experimental,
                           "propose what may well not pay, too");
        suggests->callback([&] { chosen = "suggest"; });
        app.require_subcommand(1);
      },
      [&](Tool& tool) {
        if (chosen == "diff") return diff(tool, options);
        return chosen == "suggest" ? propose(tool, options) : show(tool, options);
      });
}
