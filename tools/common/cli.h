// What every program shares: flags, diagnostics on standard error, exit status, progress, and a
// reproducer when an invariant breaks. A program's main is one call:
//
//   int main(int argc, char** argv) {
//     std::string input;
//     return loom::run_main(
//         argc, argv, {"loom-example", "Does one thing.", "  loom-example a.loom\n"},
//         [&](CLI::App& app) { app.add_option("FILE", input, "what to read")->required(); },
//         [&](loom::Tool& tool) {
//           auto text = tool.read_input(input);
//           if (!text) return tool.result();
//           parse(*text, tool.diagnostics());
//           return tool.result();
//         });
//   }
//
// run_main adds --help, --version, --diagnostics=text|json and --progress=auto|always|never.
// Diagnostics left in the tool are printed when the body returns.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "loom/base/file.h"
#include "loom/diag/diagnostic.h"

namespace loom {

enum class ExitCode : int {
  Success = 0,
  Failure = 1,      // the input is wrong or a check failed
  Usage = 2,        // the command line is wrong
  Environment = 3,  // a driver, a device or memory is missing
};

struct ToolInfo {
  std::string_view name;      // "loom-weights"
  std::string_view summary;   // one or two sentences
  std::string_view examples;  // indented command lines, each ended by a newline
};

// "0.1.0"
std::string_view tool_version();

// What a program's body works with. One thread; progress lines may be stepped from any.
class Tool {
 public:
  explicit Tool(bool json) : json_(json) {}
  Tool(const Tool&) = delete;
  Tool& operator=(const Tool&) = delete;

  Diagnostics& diagnostics() { return diagnostics_; }
  SourceFiles& files() { return files_; }
  bool json_diagnostics() const { return json_; }

  // Reads a whole file ("-" is standard input) and keeps it for a reproducer. Reports IO/001 and
  // returns nothing when that fails.
  std::optional<std::string> read_input(const std::string& path);
  // Names a file that something else reads, so that a reproducer holds a copy.
  void note_input(const std::string& path);
  // Replaces a file ("-" is standard output); reports IO/002 and returns false when that fails.
  bool write_output(const std::string& path, std::string_view content);
  // Writes to standard output, with the same failure.
  bool print(std::string_view text) { return write_output("-", text); }

  // Reports a failed read or write of base/file.h as IO/001 or IO/002.
  void report_read(const FileError& error);
  void report_write(const FileError& error);
  // Reports wrong usage found after the flags were parsed: `return tool.usage_error("...");`
  ExitCode usage_error(std::string detail);

  // Prints what was collected so far and forgets it; errors still count for result().
  void flush_diagnostics();
  // Failure once an error was reported, Success before.
  ExitCode result() const;

 private:
  bool json_;
  bool failed_ = false;
  Diagnostics diagnostics_;
  SourceFiles files_;
};

// One line on a terminal's standard error that appears when the work takes longer than a second:
// "compiling kernels 12/48 (3 s)". It is taken away when the object dies. Without a total only the
// label and the time show. step() may be called from any thread and costs one atomic add.
//
//   Progress progress("compiling kernels", requests.size());
//   ... progress.step();
class Progress {
 public:
  explicit Progress(std::string label, uint64_t total = 0);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void step(uint64_t count = 1);

 private:
  struct State;
  std::unique_ptr<State> state_;  // null when nothing is shown
};

using ToolSetup = std::function<void(CLI::App&)>;
using ToolBody = std::function<ExitCode(Tool&)>;

// Parses the command line with what `setup` declared, runs `body` and returns the exit status:
// the body's, 2 for wrong usage, 3 when memory runs out. An exception that reaches this point is an
// internal failure, like a breached LOOM_CHECK and a crash: all write a reproducer folder (command
// line, version, what failed, copies of the inputs, a script that repeats it with them) below the
// system's temporary folder, say where on standard error, and abort.
int run_main(int argc, const char* const* argv, const ToolInfo& info, const ToolSetup& setup,
             const ToolBody& body);

}  // namespace loom
