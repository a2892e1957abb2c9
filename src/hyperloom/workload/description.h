// What the user says of a native workload, read and checked once.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "hyperloom/core/json.h"
#include "loom/api/arrays.h"

namespace hyperloom::workload {

namespace fs = std::filesystem;

// What a binding is for.
enum class Role : uint8_t {
  Input,    // read; filled before each run
  Output,   // written: poisoned before a run that is compared, and compared after it
  InOut,    // filled before and compared after
  Scratch,  // written and read by the program; poisoned, never compared
};

struct BindingSpec {
  std::string name;  // without '%'
  loom::ArrayType type;
  Role role = Role::Output;
  std::string fill;    // a literal for every element; or
  std::string npy;     // a file, absolute; else random values
  bool fixed = false;  // its content never depends on a seed: tables of indices, sizes
  double low = -1;     // of random values; integers are drawn from low to high, both included
  double high = 1;
};

// One set of shapes that the program is run with.
struct Shape {
  std::vector<std::string> specialize;  // "@root:name=value"
  std::vector<BindingSpec> bindings;
};

struct ParameterSource {
  fs::path file;     // absolute
  std::string root;  // launch binding that it serves, without '%'; empty: all
};

struct Description {
  std::string name;
  fs::path tree;                              // absolute
  std::vector<fs::path> files;                // relative to the tree, as they are linked
  std::vector<fs::path> libraries;            // the same; what the files only declare
  std::string root;                           // without '@'
  std::map<std::string, std::string> config;  // key without '@'
  std::vector<ParameterSource> parameters;
  Shape shape;                  // that is measured
  std::vector<Shape> held_out;  // shapes that the optimizer never sees; may be empty
  unsigned threads = 0;         // of an issue; 0: all
  std::map<std::string, std::string> original;  // file -> text, before anything was changed

  Json json() const;
};

// {
//   "name": text, default the root
//   "tree": folder of the sources
//   "files": [path, ...]        "libraries": [path, ...]        relative to the tree
//   "root": "@symbol"
//   "specialize": {"name": value, ...}        "config": {"key": value, ...}
//   "parameters": ["file" or {"root": "%binding", "file": "file"}, ...]
//   "inputs": [{"name": "%x", "type": "8x16xf32", "role": "input" | "output" | "inout" | "scratch",
//               "fill": "1.5" or "npy": "file" or "random": [low, high], "fixed": truth value},
//               ...]
//   "held_out": [{"specialize": {...}, "inputs": [{"name": "%x", "type": "9x16xf32"}, ...]}, ...]
//   "device": "cpu" or "cpu:0"        "threads": number
//   "original": {"file": "text", ...}         made when it is absent
// }
// A binding with "fill", "npy" or "random" is an input, another one an output, where no role is
// stated. Errors: "invalid_workload" naming the field, "missing_source" naming the file.
Result<Description> read_description(const Json& json);

}  // namespace hyperloom::workload
