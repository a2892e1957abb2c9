// The reference interpreter: what a program means, executed slowly and checked at every step.
//
//   InterpOptions options;
//   Diagnostics diagnostics;
//   const auto results = run_function(module, "sum", arguments, options, diagnostics);
//
// The first failed check ends the execution with one error at the operation that failed; a note
// shows the second place where two accesses conflict. RUN/019 to RUN/031 are its own codes.
//
// A run reads the module and changes nothing in it, so several threads may run one module at a
// time, each with its own Diagnostics; storage that they share is theirs to keep apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "loom/diag/diagnostic.h"
#include "loom/dialect/eval_vector.h"
#include "loom/dialect/target_info.h"
#include "loom/ir/module.h"

namespace loom {

struct InterpOptions {
  uint32_t subgroup_size = 32;  // lanes; workitems are grouped by their flat number
  TargetFacts target;           // for template requirements; subgroup_size above counts as known
  uint64_t step_limit = uint64_t{1} << 34;  // operations; RUN/029 when it is reached
  uint32_t call_limit = 1u << 20;           // nested calls; RUN/029
  bool check_uninitialized = true;
  bool check_alignment = true;
  bool check_races = true;     // between workitems, workgroups and concurrent commands
  bool check_promises = true;  // assumptions and `where` contracts
};

// Storage that a program reads and writes; the caller's, and initialized.
struct InterpStorage {
  std::string name;  // what diagnostics call it, without '%'
  std::span<std::byte> bytes;
};
// A scalar or vector (LaneValues), or storage for a `buffer` or dense `view` argument.
using InterpArgument = std::variant<LaneValues, InterpStorage>;

LaneValues scalar_argument(ScalarValue value);

// Runs a func.def or template.def. Results are scalars and vectors in order; a function that
// returns anything else is RUN/031. Nothing when an error was reported.
std::optional<std::vector<LaneValues>> run_function(const Module& module, std::string_view symbol,
                                                    std::span<const InterpArgument> arguments,
                                                    const InterpOptions& options,
                                                    Diagnostics& diagnostics);

// Launches a kernel.def: all workgroups of its configuration region for the workload.
bool run_kernel(const Module& module, std::string_view symbol,
                std::span<const ScalarValue> workload, std::span<const InterpArgument> arguments,
                const InterpOptions& options, Diagnostics& diagnostics);

// The bytes of a parameter; nothing when there is none, after reporting that.
using ParameterBytes = std::function<std::optional<std::span<const std::byte>>(
    std::string_view root, std::string_view key, uint64_t bytes)>;

// Runs a command.program.def once. `specializations` and `bindings` are in signature order; a root
// that only holds parameters needs no bytes.
bool run_program(const Module& module, std::string_view symbol,
                 std::span<const ScalarValue> specializations,
                 std::span<const InterpStorage> bindings, const ParameterBytes& parameters,
                 const InterpOptions& options, Diagnostics& diagnostics);

}  // namespace loom
