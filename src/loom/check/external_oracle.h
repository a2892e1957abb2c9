// Reference results that another program computes.
//
//   COMMAND FOLDER
//
// FOLDER holds `request.json`, {"callee": "softmax", "inputs": [{"file": "input0.npy", "type":
// "4x8xf32"}, ...], "outputs": [{"file": "output0.npy", "type": "4x8xf32"}, ...]}, and the inputs;
// a scalar is an array of rank 0. The command writes every output and ends with status 0.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "loom/diag/diagnostic.h"
#include "loom/runtime/parameters/array_type.h"

namespace loom::check {

struct OracleInput {
  ArrayType type;
  std::vector<std::byte> bytes;
};
struct OracleOutput {
  ArrayType type;
  std::span<std::byte> bytes;  // that receive it
};

// Runs `command` through the shell's word splitting (/bin/sh -c), with the folder as its last word,
// and waits for it. It ends when this process does. Reports CHECK/005 at `location`.
bool run_external_oracle(const std::string& name, const std::string& command,
                         const std::string& callee, std::span<const OracleInput> inputs,
                         std::span<const OracleOutput> outputs, Location location,
                         Diagnostics& diagnostics);

}  // namespace loom::check
