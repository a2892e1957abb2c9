#include "common/link_flags.h"

namespace loom {

namespace {

// One value per flag, so that `--root=@a FILE` does not take the file for a second root.
void add_list(CLI::App& app, const char* name, std::vector<std::string>& values, const char* help) {
  app.add_option(name, values, help)->expected(1)->take_all();
}

}  // namespace

void LinkFlags::declare_without_roots(CLI::App& app) {
  app.add_option("FILE", inputs, "module, text or bytecode; - is standard input")->required();
  add_list(app, "--library", libraries, "module that supplies what the inputs only declare");
  add_list(app, "--config", config, "value of a configuration key: key=value");
  add_list(app, "--config-file", config_files, "JSON file with configuration values");
}

void LinkFlags::declare(CLI::App& app) {
  declare_without_roots(app);
  add_list(app, "--root", roots, "symbol to keep, such as @two_layer");
  add_list(app, "--specialize", specialize, "fix a root's specialization: @root:name=value");
}

std::string symbol_from_flag(std::string_view text) {
  return std::string(text.starts_with('@') ? text.substr(1) : text);
}

std::vector<std::string> LinkFlags::root_names() const {
  std::vector<std::string> names;
  for (const std::string& root : roots) names.push_back(symbol_from_flag(root));
  return names;
}

namespace {

bool load_all(Tool& tool, const std::vector<std::string>& paths, const LoadOptions& options,
              std::vector<LinkInput>& out) {
  bool ok = true;
  for (const std::string& path : paths) {
    auto bytes = tool.read_input(path);
    if (!bytes) {
      ok = false;
      continue;
    }
    auto module = load_module(tool.files(), std::move(*bytes), path, tool.diagnostics(), options);
    if (module) {
      out.push_back({std::move(*module), path});
    } else {
      ok = false;
    }
  }
  return ok;
}

}  // namespace

std::optional<LoadedInputs> load_inputs(Tool& tool, const LinkFlags& flags,
                                        const LoadOptions& options) {
  LoadedInputs loaded;
  std::vector<LinkInput> libraries;
  const bool inputs_ok = load_all(tool, flags.inputs, options, loaded.inputs);
  const bool libraries_ok = load_all(tool, flags.libraries, options, libraries);
  if (!inputs_ok || !libraries_ok) return std::nullopt;
  loaded.libraries = LibraryIndex(std::move(libraries));
  return loaded;
}

std::optional<LinkOptions> link_options(Tool& tool, const LinkFlags& flags) {
  LinkOptions options;
  options.roots = flags.root_names();
  options.specialize = flags.specialize;
  bool ok = true;
  for (const std::string& path : flags.config_files) {
    const auto text = tool.read_input(path);
    ok &= text && options.config.add_file(path, *text, tool.diagnostics());
  }
  for (const std::string& flag : flags.config) {
    ok &= options.config.add_flag(flag, tool.diagnostics());
  }
  return ok ? std::optional(std::move(options)) : std::nullopt;
}

}  // namespace loom
