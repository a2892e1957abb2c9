// Where kernels and programs of a case run when the interpreter does not run them.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "loom/diag/diagnostic.h"
#include "loom/interp/interp.h"
#include "loom/ir/module.h"

namespace loom::check {

enum class LaunchOutcome : uint8_t {
  Done,
  Failed,       // it was refused or went wrong
  Unplannable,  // it could not be made ready
};

// Used by one thread at a time. It may be handed to a child process by fork() as long as nothing
// was launched yet.
class Launcher {
 public:
  virtual ~Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Makes the code of a kernel, once. False after reporting why there is none.
  virtual bool prepare(std::string_view kernel, Diagnostics& diagnostics) = 0;
  // Runs a `kernel.launch` or `command.program.launch` to its end. `operands` are in the order of
  // the operation. Reports unless it is done.
  virtual LaunchOutcome launch(OpId op, std::span<const CaseValue> operands,
                               Diagnostics& diagnostics) = 0;

 protected:
  Launcher() = default;
};

}  // namespace loom::check
