#include "loom/command/counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace loom {
namespace {

// The commands that may write one storage, in their order. Behind each stands the least backward
// number up to it, so that whether one of them precedes a command is found by bisection.
class Writers {
 public:
  void add(uint32_t command, const CommandOrder& order) {
    const uint32_t backward = order.backward(command);
    if (!list_.empty() && list_.back().command == command) return;
    const uint32_t least = list_.empty() ? backward : std::min(list_.back().least, backward);
    list_.push_back({command, least});
  }
  bool any_precedes(uint32_t command, const CommandOrder& order) const {
    const auto behind = std::ranges::lower_bound(list_, command, {}, &Writer::command);
    return behind != list_.begin() && std::prev(behind)->least < order.backward(command);
  }
  bool empty() const { return list_.empty(); }
  uint32_t first() const { return list_.front().command; }

 private:
  struct Writer {
    uint32_t command;
    uint32_t least;
  };
  std::vector<Writer> list_;
};

}  // namespace

bool check_counts(const PreparedProgram& program, std::span<const std::string> names,
                  std::span<const Access> access, const CommandOrder& order,
                  Diagnostics& diagnostics) {
  if (program.indirect_storage.empty()) return true;
  std::vector<Writers> bindings(program.bindings.size());
  std::vector<Writers> transients(program.transients.size());
  for (uint32_t c = 0; c < program.commands.size(); ++c) {
    const DispatchCommand& command = program.commands[c];
    for (uint32_t i = command.argument_begin; i < command.argument_begin + command.argument_count;
         ++i) {
      const BufferRef& ref = program.arguments[i].buffer;
      if (access[i] < Access::Write || ref.storage == StorageClass::Fixed) continue;
      const bool transient = ref.storage == StorageClass::Transient;
      (transient ? transients : bindings)[ref.index].add(c, order);
    }
  }
  bool ok = true;
  for (uint32_t c = 0; c < program.commands.size(); ++c) {
    const DispatchCommand& command = program.commands[c];
    if (command.indirect == DispatchCommand::kDirect) continue;
    const BufferRef& ref = program.indirect_storage[command.indirect];
    const std::string& kernel = names[command.slot];
    if (ref.storage == StorageClass::Transient && !transients[ref.index].any_precedes(c, order)) {
      diagnostics.emit(
          Diag::CommandCountUnwritten, program.locations[c],
          {{"name", fmt::format("%{}", program.transients[ref.index].name)}, {"kernel", kernel}});
      ok = false;
    } else if (ref.storage == StorageClass::Rebindable && !bindings[ref.index].empty()) {
      const uint32_t writer = bindings[ref.index].first();
      diagnostics
          .emit(Diag::CommandCountWritten, program.locations[c],
                {{"kernel", kernel},
                 {"name", fmt::format("%{}", program.bindings[ref.index].name)},
                 {"writer", names[program.commands[writer].slot]}})
          .notes.push_back({program.locations[writer], "written here"});
      ok = false;
    }
  }
  return ok;
}

}  // namespace loom
