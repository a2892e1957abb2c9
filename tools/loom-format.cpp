// Verifies Loom modules and writes them in canonical form; converts text and bytecode.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "common/cli.h"
#include "loom/bytecode/bytecode.h"
#include "loom/dialect/verify.h"
#include "loom/text/lint.h"
#include "loom/text/parser.h"
#include "loom/text/printer.h"

namespace loom {
namespace {

struct FormatFlags {
  std::vector<std::string> inputs;
  bool check = false;
  bool in_place = false;
  bool lint = false;
  std::string from = "auto";
  std::string to;
  std::string output = "-";
};

void declare(CLI::App& app, FormatFlags& flags) {
  app.add_option("FILE", flags.inputs, "modules, text or bytecode; '-' or none is standard input");
  auto* check = app.add_flag("--check", flags.check, "fail when a text file is not canonical");
  auto* in_place = app.add_flag("--in-place", flags.in_place, "rewrite text files that changed");
  check->excludes(in_place);
  app.add_flag("--lint", flags.lint, "report names of constants that say neither role nor literal");
  app.add_option("--from", flags.from, "form of the input")
      ->check(CLI::IsMember({"auto", "text", "bc", "bytecode"}));
  auto* to = app.add_option("--to", flags.to, "form of the output; default is text")
                 ->check(CLI::IsMember({"text", "bc", "bytecode"}));
  auto* output = app.add_option("--output", flags.output, "default is standard output");
  for (auto* mode : {check, in_place}) mode->excludes(to)->excludes(output);
}

struct Loaded {
  std::string text;              // empty for bytecode
  std::optional<Module> module;  // verified; nothing when a problem was reported
};

// The first line in which two texts differ, from 1.
uint32_t first_difference(std::string_view a, std::string_view b) {
  const auto [at, other] = std::ranges::mismatch(a, b);
  return static_cast<uint32_t>(std::count(a.begin(), at, '\n')) + 1;
}

class Formatter {
 public:
  Formatter(Tool& tool, FormatFlags& flags) : tool_(tool), flags_(flags) {}
  ExitCode run();

 private:
  enum class Outcome { Same, Different, Failed };

  bool batch() const { return flags_.check || flags_.in_place; }
  Loaded load(const std::string& path);
  Outcome settle(const std::string& path);
  ExitCode run_batch();
  ExitCode run_lint();
  ExitCode run_convert();
  ExitCode result() const { return findings_ != 0 ? ExitCode::Failure : tool_.result(); }

  Tool& tool_;
  FormatFlags& flags_;
  size_t findings_ = 0;
};

// Reads, verifies and, where asked, lints one module.
Loaded Formatter::load(const std::string& path) {
  Loaded loaded;
  auto content = tool_.read_input(path);
  if (!content) return loaded;
  const bool bytecode = flags_.from == "auto" ? is_bytecode(*content) : flags_.from != "text";
  const std::string shown = path == "-" ? "<stdin>" : path;
  if (bytecode && batch()) {
    tool_.usage_error(fmt::format("'{}' is bytecode; --check and --in-place work on text", shown));
    return loaded;
  }
  if (bytecode) {
    loaded.module = read_bytecode(tool_.files(), std::move(*content), shown, tool_.diagnostics());
  } else {
    loaded.text = *content;
    const FileId file = tool_.files().add_text(shown, std::move(*content));
    loaded.module = parse_text(tool_.files(), file, tool_.diagnostics());
  }
  if (loaded.module && !verify_module(*loaded.module, tool_.diagnostics())) loaded.module.reset();
  if (loaded.module && flags_.lint) findings_ += lint_module(*loaded.module, tool_.diagnostics());
  return loaded;
}

// Compares one file with its canonical form, and with --in-place writes it.
Formatter::Outcome Formatter::settle(const std::string& path) {
  const Loaded loaded = load(path);
  if (!loaded.module) return Outcome::Failed;
  const std::string canonical = print_text(*loaded.module);
  if (canonical == loaded.text) return Outcome::Same;
  if (flags_.in_place) {
    return tool_.write_output(path, canonical) ? Outcome::Different : Outcome::Failed;
  }
  const auto file = FileId(tool_.files().size() - 1);
  tool_.diagnostics().emit(Diag::FormatNotCanonical,
                           {file, first_difference(loaded.text, canonical), 1, 1});
  return Outcome::Different;
}

ExitCode Formatter::run_batch() {
  size_t counts[3] = {};
  for (const std::string& path : flags_.inputs) {
    ++counts[static_cast<size_t>(settle(path))];
    tool_.flush_diagnostics();
  }
  const auto [same, different, failed] = counts;
  if (flags_.in_place) {
    tool_.print(fmt::format("{} changed, {} unchanged, {} failed\n", different, same, failed));
  } else if (flags_.inputs.size() > 1) {
    tool_.print(
        fmt::format("{} canonical, {} not canonical, {} invalid\n", same, different, failed));
  }
  return result();
}

// Findings and nothing else.
ExitCode Formatter::run_lint() {
  for (const std::string& path : flags_.inputs) {
    load(path);
    tool_.flush_diagnostics();
  }
  return result();
}

ExitCode Formatter::run_convert() {
  const Loaded loaded = load(flags_.inputs.front());
  if (!loaded.module) return result();
  const bool to_bytecode =
      flags_.to.empty() ? flags_.output.ends_with(".loombc") : flags_.to != "text";
  tool_.write_output(flags_.output,
                     to_bytecode ? write_bytecode(*loaded.module) : print_text(*loaded.module));
  return result();
}

ExitCode Formatter::run() {
  if (flags_.inputs.empty()) flags_.inputs.push_back("-");
  if (batch() && flags_.from.starts_with('b')) {
    return tool_.usage_error("--check and --in-place work on text");
  }
  if (flags_.in_place && std::ranges::find(flags_.inputs, "-") != flags_.inputs.end()) {
    return tool_.usage_error("--in-place needs files, not standard input");
  }
  if (batch()) return run_batch();
  if (flags_.lint && flags_.to.empty() && flags_.output == "-") return run_lint();
  if (flags_.inputs.size() > 1) {
    return tool_.usage_error("several files need --check, --in-place or --lint");
  }
  return run_convert();
}

}  // namespace
}  // namespace loom

int main(int argc, char** argv) {
  loom::FormatFlags flags;
  return loom::run_main(
      argc, argv,
      {"loom-format", "Verifies Loom modules and writes them in canonical form.",
       "  loom-format model.loom\n"
       "  loom-format --check src/*.loom\n"
       "  loom-format --in-place model.loom\n"
       "  loom-format model.loom --to=bc --output=model.loombc\n"},
      [&](CLI::App& app) { loom::declare(app, flags); },
      [&](loom::Tool& tool) { return loom::Formatter(tool, flags).run(); });
}
