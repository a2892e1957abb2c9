// Looks into parameter files and makes them.
#include <string>
#include <vector>

#include "common/cli.h"
#include "loom/runtime/parameters/generate.h"
#include "loom/runtime/parameters/listing.h"
#include "loom/runtime/parameters/parameter_file.h"

namespace {

using namespace loom;

constexpr ToolInfo kInfo{
    "loom-weights", "Lists what GGUF, safetensors and npy files hold, and makes such files.",
    "  loom-weights list weights.gguf\n"
    "  loom-weights list --format=json a.safetensors b.npy\n"
    "  loom-weights make --output=weights.gguf 'blk.{0..127}.projection.weight=8xf32:1.5'\n"
    "  loom-weights make --output=w.safetensors w12=8xf32:iota:1:0.5 w13=8xbf16:random:7:-1:1\n"
    "  loom-weights make --output=w.gguf w=8xf32:@x.npy\n"
    "  loom-weights make x.npy 4x8xf32:iota:0:1\n"};

constexpr const char* kMakeFooter =
    "ARRAY is NAME=TYPE:SPEC. TYPE has the dimensions before the element: 4x8xf32. SPEC is\n"
    "  1.5                every element is this value\n"
    "  iota:START:STEP    element i is START + i * STEP\n"
    "  random:SEED:LO:HI  uniform, by counter: SplitMix64 of SEED and i (integers include HI)\n"
    "  @FILE.npy          the array of a file; NAME=@FILE.npy takes its type, too\n"
    "A {0..127} in NAME makes one array for each number; i runs on from each array to the next.\n"
    "An npy file holds one array; NAME= may be left out. Without --output, the first word is the\n"
    "file to write.";

struct Options {
  bool list = false;
  bool make = false;
  std::vector<std::string> files;
  std::string format = "text";
  std::string output;
  std::vector<std::string> words;
};

void declare(CLI::App& app, Options& options) {
  app.require_subcommand(1);
  CLI::App* list = app.add_subcommand("list", "show name, type, shape and place of parameters");
  list->add_option("FILE", options.files, "GGUF, safetensors or npy")->required();
  list->add_option("--format", options.format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  list->callback([&options] { options.list = true; });
  CLI::App* make = app.add_subcommand("make", "write a file of generated arrays");
  make->add_option("--output", options.output,
                   "file to write; .gguf, .safetensors or .npy says in which format");
  make->add_option("ARRAY", options.words, "NAME=TYPE:SPEC")->required();
  make->footer(kMakeFooter);
  make->callback([&options] { options.make = true; });
}

ExitCode list_files(Tool& tool, const Options& options) {
  std::vector<ParameterFile> files;
  for (const std::string& path : options.files) {
    tool.note_input(path);
    auto file = ParameterFile::open(path, tool.diagnostics());
    if (file) files.push_back(std::move(*file));
  }
  // A damaged file does not hide what the others hold.
  tool.print(options.format == "json" ? list_as_json(files) : list_as_text(files));
  return tool.result();
}

ExitCode make_file(Tool& tool, Options& options) {
  // Usage is checked in full before anything is generated.
  if (options.output.empty()) {
    options.output = options.words.front();
    options.words.erase(options.words.begin());
    if (options.words.empty()) return tool.usage_error("make needs a file to write and an ARRAY");
  }
  const auto format = format_from_path(options.output);
  if (!format) {
    return tool.usage_error("'" + options.output +
                            "' ends in none of .gguf, .safetensors and .npy");
  }
  std::vector<ArrayRecipe> recipes;
  for (const std::string& word : options.words) {
    auto recipe = parse_recipe(word);
    if (!recipe) return tool.usage_error(recipe.error());
    if (recipe->pattern.empty() && *format != FileFormat::Npy) {
      return tool.usage_error("'" + word + "' has no name; write NAME=TYPE:SPEC");
    }
    if (recipe->kind == ArrayRecipe::Kind::File) tool.note_input(recipe->literal);
    recipes.push_back(std::move(*recipe));
  }

  // From here on, words are well formed; values may still not fit their type.
  GeneratedArrays arrays;
  {
    Progress progress("generating arrays", recipes.size());
    for (size_t i = 0; i < recipes.size(); ++i) {
      if (auto added = arrays.add(recipes[i], tool.diagnostics()); !added) {
        return tool.usage_error("'" + options.words[i] + "': " + added.error());
      }
      progress.step();
    }
  }
  if (tool.diagnostics().has_errors()) return tool.result();

  // Every array has its bytes; the file appears whole or not at all.
  const Progress progress("writing " + options.output);
  const auto content =
      build_parameter_file(*format, options.output, arrays.sources(), tool.diagnostics());
  if (content) tool.write_output(options.output, *content);
  return tool.result();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_main(
      argc, argv, kInfo, [&](CLI::App& app) { declare(app, options); },
      [&](Tool& tool) {
        return options.list ? list_files(tool, options) : make_file(tool, options);
      });
}
