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
#include <memory>
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

namespace interp {
struct Layout;
}

// What runs of one module compute once and share. Lend it to any number of runs, nested ones too,
// of one thread; the module stays as it is meanwhile.
class InterpTables {
 public:
  explicit InterpTables(const Module& module);
  InterpTables(InterpTables&&) noexcept;
  InterpTables& operator=(InterpTables&&) noexcept;
  ~InterpTables();
  interp::Layout& layout() const { return *layout_; }

 private:
  std::unique_ptr<interp::Layout> layout_;
};

struct InterpOptions {
  // Lanes of kernels whose target record does not say it; workitems are grouped by their flat
  // number.
  uint32_t subgroup_size = 32;
  TargetFacts target;  // for template requirements; subgroup_size above counts as known
  uint64_t step_limit = uint64_t{1} << 34;  // operations; RUN/029 when it is reached
  uint32_t call_limit = 1u << 20;           // nested calls; RUN/029
  bool check_uninitialized = true;
  bool check_alignment = true;
  bool check_races = true;               // between workitems, workgroups and concurrent commands
  bool check_promises = true;            // assumptions and `where` contracts
  const InterpTables* tables = nullptr;  // of the module; without any, a run makes its own
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

// Whether the `where` contract of a kernel.def holds for a launch with these arguments; of a
// command.program.def, whose specializations come before its bindings, also those of all that it
// launches. No kernel runs, and neither storage nor parameters are read. A contract that is false
// is RUN/026, at the operation `at` or where a program launches. False when an error was reported.
bool check_contracts(const Module& module, OpId at, std::string_view symbol,
                     std::span<const InterpArgument> arguments, const InterpOptions& options,
                     Diagnostics& diagnostics);

// A scalar or vector, or the storage of a tensor.
using CaseValue = std::variant<LaneValues, std::span<std::byte>>;

// Does what a `check.case` holds besides structured control, calls and pure operations.
class CaseHost {
 public:
  virtual ~CaseHost() = default;
  // Executes an operation of the check dialect. `operands` are in its order; `results` is to get
  // one value for each result. Storage of tensors stays the host's and valid until the case ends.
  // False ends the case; the host knows why.
  virtual bool check(OpId op, std::span<const CaseValue> operands,
                     std::vector<CaseValue>& results) = 0;
  // Launches a kernel or program that is defined in the module. Nothing: the interpreter is to do
  // it. False ends the case.
  virtual std::optional<bool> launch(OpId op, std::span<const CaseValue> operands) = 0;
  // The bytes of a parameter of a program that the interpreter launches; `root` is the name in its
  // signature. Nothing ends the case; the host knows why.
  virtual std::optional<std::span<const std::byte>> parameter(std::string_view root,
                                                              std::string_view key,
                                                              uint64_t bytes) = 0;
};

// Runs the body of the `check.case` once. False when an error was reported or the host ended it.
// `check.tensor.view` is done here; every other operation of its dialect is the host's.
bool run_case(const Module& module, OpId check_case, CaseHost& host, const InterpOptions& options,
              Diagnostics& diagnostics);

}  // namespace loom
