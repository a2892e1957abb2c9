#include "common/parameter_flags.h"

namespace loom {

void ParameterFlags::declare(CLI::App& app) {
  app.add_option("--parameters", files,
                 ".gguf or .safetensors file that supplies parameters: [%root=]FILE")
      ->expected(1)
      ->take_all();
}

bool ParameterFlags::open(Tool& tool, const std::function<bool(std::string_view root)>& takes,
                          std::string_view program, ParameterSet& set) const {
  bool good = true;
  for (const std::string& flag : files) {
    std::string root;
    std::string path = flag;
    if (const size_t equals = flag.find('='); flag.starts_with('%') && equals != flag.npos) {
      root = flag.substr(1, equals - 1);
      path = flag.substr(equals + 1);
      if (!takes(root)) {
        tool.diagnostics().emit(Diag::RunParameterRoot, {},
                                {{"root", root}, {"program", std::string(program)}});
        good = false;
        continue;
      }
    }
    tool.note_input(path);
    good &= set.open(path, root, tool.diagnostics());
  }
  return good;
}

}  // namespace loom
