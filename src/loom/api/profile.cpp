// Profiles: the commands of a program beside what an issue of it recorded.
#include "loom/api/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>

#include "loom/api/profile_state.h"
#include "loom/api/state.h"
#include "loom/command/schedule.h"

namespace loom::api {
namespace {

using Storage = ProfiledOperand::Storage;

ProfiledOperand describe(const ProgramView& program, const BufferRef& ref) {
  ProfiledOperand operand;
  operand.offset = ref.offset;
  operand.bytes = ref.length == BufferRef::kWholeBuffer ? 0 : ref.length;
  switch (ref.storage) {
    case StorageClass::Fixed:
      operand.storage = Storage::Parameter;
      operand.name = program.parameter(ref.index).key;
      break;
    case StorageClass::Rebindable:
      operand.storage = Storage::Binding;
      operand.name = program.binding(ref.index).name;
      break;
    case StorageClass::Transient:
      operand.storage = Storage::Transient;
      operand.name = program.transient(ref.index).name;
      break;
  }
  return operand;
}

}  // namespace

Profile::State::State(const ProgramView& prepared,
                      const std::function<std::string_view(FileId)>& path_of)
    : symbol(prepared.symbol()) {
  const std::vector<uint32_t> waves = wave_numbers(prepared);
  commands.resize(prepared.commands().size());
  for (uint32_t node = 0; node < prepared.schedule().size(); ++node) {
    const ScheduleNode& row = prepared.schedule()[node];
    if (row.kind == ScheduleNode::Kind::Command) commands[row.command].node = node;
  }
  for (uint32_t i = 0; i < commands.size(); ++i) {
    const DispatchCommand& from = prepared.commands()[i];
    const ProgramView::Entry entry = prepared.entry(from.slot);
    ProfiledCommand& to = commands[i];
    to.wave = waves[i];
    to.kernel = entry.symbol;
    to.export_name = entry.export_name;
    to.request = entry.request;
    to.workgroup_size = entry.workgroup_size;
    to.indirect = from.indirect != DispatchCommand::kDirect;
    for (const Argument& argument : prepared.arguments_of(from)) {
      if (argument.kind != Argument::Kind::Buffer) continue;
      if (argument.buffer.storage == StorageClass::Rebindable &&
          argument.buffer.length == BufferRef::kWholeBuffer) {
        whole.push_back({i, static_cast<uint32_t>(to.operands.size()), argument.buffer.index});
      }
      to.operands.push_back(describe(prepared, argument.buffer));
    }
    if (i < prepared.locations().size() && prepared.locations()[i].valid()) {
      const Location& location = prepared.locations()[i];
      to.file = path_of(location.file);
      to.line = location.line;
      to.column = location.column;
    }
  }
}

bool Profile::State::issue(loom::Invocation& invocation, Diagnostics& diagnostics) {
  dispatches.clear();
  if (!invocation.issue_traced(trace, diagnostics)) return false;
  if (trace.incomplete()) throw std::bad_alloc();
  for (const WholeBinding& at : whole) {
    ProfiledOperand& operand = commands[at.command].operands[at.operand];
    const uint64_t bound = invocation.bound_bytes(at.row);
    operand.bytes = bound - std::min(bound, operand.offset);
  }
  for (const DispatchEvent& event : trace.events()) {
    dispatches.push_back({event.command, event.thread, event.begin, event.end, event.count,
                          event.first_workgroup, event.last_workgroup});
  }
  return true;
}

// --- the surface ---------------------------------------------------------------------------------

Profile::Profile(const Program& program) {
  const Plan::State& plan = *program.state()->executables->plan;
  state_ = std::make_unique<State>(
      plan.program(program.state()->index), [&](FileId file) -> std::string_view {
        return std::ranges::find(plan.paths, file, &std::pair<FileId, std::string>::first)->second;
      });
  state_->program = program.state();
}
Profile::Profile(std::unique_ptr<State> state) : state_(std::move(state)) {}
Profile::Profile(Profile&&) noexcept = default;
Profile& Profile::operator=(Profile&&) noexcept = default;
Profile::~Profile() = default;

std::span<const ProfiledCommand> Profile::commands() const { return state_->commands; }
std::span<const ProfiledDispatch> Profile::dispatches() const { return state_->dispatches; }
uint64_t Profile::duration() const {
  return state_->dispatches.empty() ? 0 : state_->trace.duration();
}

// --- Chrome's format -----------------------------------------------------------------------------

namespace {

// What every event of the command says in its arguments, without the braces.
std::string fixed_arguments(uint32_t ordinal, const ProfiledCommand& command) {
  nlohmann::ordered_json object;
  object["kernel"] = "@" + command.kernel;
  object["command"] = ordinal;
  object["node"] = command.node;
  object["wave"] = command.wave;
  object["workgroup_size"] = command.workgroup_size;
  auto& operands = object["operands"] = nlohmann::ordered_json::array();
  for (const ProfiledOperand& operand : command.operands) {
    const char* storage = operand.storage == Storage::Parameter ? "parameter"
                          : operand.storage == Storage::Binding ? "binding"
                                                                : "transient";
    operands.push_back(
        {{storage, operand.name}, {"offset", operand.offset}, {"bytes", operand.bytes}});
  }
  if (!command.file.empty()) {
    object["source"] = fmt::format("{}:{}:{}", command.file, command.line, command.column);
  }
  const std::string text =
      object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);
}

std::string microseconds(uint64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

std::string complete_event(std::string_view name, std::string_view category, uint32_t thread,
                           uint64_t begin, uint64_t end, std::string_view arguments) {
  return fmt::format(
      R"({{"name":"{}","cat":"{}","ph":"X","pid":1,"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
      name, category, thread, microseconds(begin), microseconds(end - begin), arguments);
}

}  // namespace

std::string Profile::chrome_trace() const {
  // Symbols are identifiers, so they need no escapes.
  const std::string issue = "issue @" + state_->symbol;
  std::string text =
      fmt::format(R"({{"displayTimeUnit":"ns","traceEvents":[)"
                  "\n"
                  R"({{"name":"process_name","ph":"M","pid":1,"args":{{"name":"loom @{}"}}}})",
                  state_->symbol);
  if (!dispatches().empty()) {
    text += ",\n" + complete_event(issue, "issue", 0, 0, duration(), "");
  }
  std::vector<std::string> arguments(commands().size());
  for (const ProfiledDispatch& dispatch : dispatches()) {
    const ProfiledCommand& command = commands()[dispatch.command];
    std::string& fixed = arguments[dispatch.command];
    if (fixed.empty()) fixed = fixed_arguments(dispatch.command, command);
    text += ",\n" + complete_event(
                        command.kernel, "dispatch", dispatch.thread, dispatch.begin, dispatch.end,
                        fmt::format(R"({},"grid":[{}],"first_workgroup":{},"last_workgroup":{})",
                                    fixed, fmt::join(dispatch.grid, ","), dispatch.first_workgroup,
                                    dispatch.last_workgroup));
  }
  return text + "\n]}\n";
}

}  // namespace loom::api
