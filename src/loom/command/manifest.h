// The JSON manifest of a command product: `loom.command_set.v1`.
#pragma once

#include <string>
#include <vector>

#include "loom/command/program_view.h"

namespace loom {

// What the manifest says of the files beside it: names without folders, SHA-256 in hexadecimal.
struct ManifestFiles {
  struct File {
    std::string name;
    std::string sha256;
  };
  std::vector<File> artifacts;  // one per program of the plan, or empty when none were written
  std::vector<File> requests;   // by request number; empty when none were written
};

// Compact JSON on one line with a final newline; keys in schema order.
std::string manifest_json(const PreparedPlan& plan, const ManifestFiles& files);
// The same of one program, whose entries are its slots.
std::string manifest_json(const ProgramView& program);

}  // namespace loom
