#include "common/cli.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <utility>

#include "common/progress.h"
#include "common/reproducer.h"
#include "loom/base/check.h"
#include "loom/diag/render.h"

namespace loom {
namespace {

// Looked up before the flags are parsed, so that a wrong flag is reported in the chosen form too.
bool wants_json(int argc, const char* const* argv) {
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--") break;
    if (argument == "--diagnostics=json") json = true;
    if (argument == "--diagnostics=text") json = false;
    if (argument == "--diagnostics" && i + 1 < argc) json = std::string_view(argv[i + 1]) == "json";
  }
  return json;
}

struct CommonFlags {
  std::string diagnostics = "text";
  std::string progress = "auto";
};

void declare_common(CLI::App& app, const ToolInfo& info, CommonFlags& flags) {
  app.set_help_flag("--help,-h", "print this help and exit");
  app.set_version_flag("--version", fmt::format("{} {}", info.name, tool_version()),
                       "print the version and exit");
  app.add_option("--diagnostics", flags.diagnostics,
                 "text for people, json for one object a line on standard error")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--progress", flags.progress,
                 "show a progress line when work takes longer than a second; auto: on a terminal")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  app.fallthrough();
  if (!info.examples.empty()) app.footer("Examples:\n" + std::string(info.examples));
}

ProgressMode progress_mode(const std::string& word) {
  if (word == "always") return ProgressMode::Always;
  return word == "never" ? ProgressMode::Never : ProgressMode::Auto;
}

// Empty when the program goes on to its body.
std::optional<ExitCode> parse_flags(CLI::App& app, int argc, const char* const* argv, Tool& tool) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& request) {
    // --help and --version: CLI11 knows the text, this program says where it goes.
    std::ostringstream out;
    std::ostringstream errors;
    app.exit(request, out, errors);
    tool.print(out.str());
    return tool.result();
  } catch (const CLI::ParseError& error) {
    return tool.usage_error(error.what());
  }
}

ExitCode run_tool(int argc, const char* const* argv, const ToolInfo& info, const ToolSetup& setup,
                  const ToolBody& body, Tool& tool) {
  CLI::App app{std::string(info.summary), std::string(info.name)};
  CommonFlags flags;
  declare_common(app, info, flags);
  setup(app);
  if (const auto code = parse_flags(app, argc, argv, tool)) return *code;
  set_progress_mode(progress_mode(flags.progress));
  const ExitCode code = body(tool);
  return code == ExitCode::Success ? tool.result() : code;
}

}  // namespace

std::string_view tool_version() { return LOOM_VERSION; }

std::optional<std::string> Tool::read_input(const std::string& path) {
  auto content = loom::read_file(path);
  if (!content) {
    report_read(content.error());
    return std::nullopt;
  }
  if (path == "-") {
    add_reproducer_input("standard-input", *content);
  } else {
    add_reproducer_input(path);
  }
  return std::move(*content);
}

void Tool::note_input(const std::string& path) { add_reproducer_input(path); }

bool Tool::write_output(const std::string& path, std::string_view content) {
  const auto written = loom::write_file(path, content);
  if (!written) report_write(written.error());
  return written.has_value();
}

void Tool::report_read(const FileError& error) {
  diagnostics_.emit(Diag::IoRead, {}, {{"path", error.path}, {"reason", error.reason}});
}

void Tool::report_write(const FileError& error) {
  diagnostics_.emit(Diag::IoWrite, {}, {{"path", error.path}, {"reason", error.reason}});
}

ExitCode Tool::usage_error(std::string detail) {
  while (!detail.empty() && detail.back() == '\n') detail.pop_back();
  diagnostics_.emit(Diag::UsageError, {}, {{"detail", std::move(detail)}});
  return ExitCode::Usage;
}

void Tool::flush_diagnostics() {
  for (const Diagnostic& diagnostic : diagnostics_.all()) {
    const std::string text =
        json_ ? render_json(diagnostic, files_) : render_text(diagnostic, files_);
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  failed_ = failed_ || diagnostics_.has_errors();
  diagnostics_.clear();
  std::fflush(stderr);
}

ExitCode Tool::result() const {
  return failed_ || diagnostics_.has_errors() ? ExitCode::Failure : ExitCode::Success;
}

int run_main(int argc, const char* const* argv, const ToolInfo& info, const ToolSetup& setup,
             const ToolBody& body) {
  install_reproducer(argc, argv);
  // A reader that went away is a failed write, which is reported and leaves no temporary file.
  std::signal(SIGPIPE, SIG_IGN);
  Tool tool(wants_json(argc, argv));
  ExitCode code = ExitCode::Success;
  try {
    code = run_tool(argc, argv, info, setup, body, tool);
  } catch (const std::bad_alloc&) {
    tool.flush_diagnostics();
    std::fputs(tool.json_diagnostics()
                   ? "{\"severity\":\"error\",\"code\":\"RUN/013\",\"message\":\"out of memory\"}\n"
                   : "error[RUN/013]: out of memory\n",
               stderr);
    return static_cast<int>(ExitCode::Environment);
  } catch (const std::exception& error) {
    tool.flush_diagnostics();
    check_failed(__FILE__, __LINE__, "no exception reaches main", error.what());
  }
  tool.flush_diagnostics();
  return static_cast<int>(code);
}

}  // namespace loom
