// What a profile holds. For the sources of this room and for programs under tools/.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loom/api/profile.h"
#include "loom/command/program_view.h"
#include "loom/runtime/program.h"

namespace loom::api {

struct Profile::State {
  // `path_of` names the files of locations.
  State(const ProgramView& prepared, const std::function<std::string_view(FileId)>& path_of);
  // False when an error was reported.
  bool issue(loom::Invocation& invocation, Diagnostics& diagnostics);

  // An operand whose bytes are what is bound, less its offset.
  struct WholeBinding {
    uint32_t command;
    uint32_t operand;
    uint32_t row;  // of the program's bindings
  };

  std::string symbol;  // of the program
  std::shared_ptr<const Program::State> program;
  std::vector<ProfiledCommand> commands;
  std::vector<WholeBinding> whole;
  Trace trace;
  std::vector<ProfiledDispatch> dispatches;
};

}  // namespace loom::api
