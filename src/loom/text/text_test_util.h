// Shared by the tests of this room.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "loom/base/file.h"
#include "loom/diag/render.h"
#include "loom/text/parser.h"
#include "loom/text/printer.h"

namespace loom {

// A parse with everything that it needs kept alive.
struct Parsed {
  SourceFiles files;
  Diagnostics diagnostics;
  std::optional<Module> module;

  explicit Parsed(std::string text) {
    const FileId file = files.add_text("test.loom", std::move(text));
    module = parse_text(files, file, diagnostics);
  }
  std::string errors() const {
    std::string out;
    for (const Diagnostic& diagnostic : diagnostics.all()) out += render_text(diagnostic, files);
    return out;
  }
  std::string print() const { return module ? print_text(*module) : errors(); }
};

struct Fixture {
  std::string name, text;
};

inline std::vector<Fixture> text_fixtures() {
  std::vector<Fixture> fixtures;
  for (const auto& entry : std::filesystem::directory_iterator(LOOM_TEXT_FIXTURES)) {
    const std::string path = entry.path().string();
    fixtures.push_back({entry.path().stem().string(), read_file(path).value_or("")});
  }
  return fixtures;
}

}  // namespace loom
