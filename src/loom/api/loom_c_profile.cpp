// The C functions for profiles.
#include "loom/api/loom_c_state.h"

using namespace loom::c;

loom_profile* loom_profile_create(const loom_program* program) {
  if (missing(program)) return nullptr;
  return created<loom_profile>(
      [&] { return new loom_profile{api::Profile(program->value), program->value, {}}; });
}
void loom_profile_destroy(loom_profile* profile) { delete profile; }

loom_status loom_issue_profiled(loom_invocation* invocation, loom_profile* profile,
                                loom_messages* messages) {
  if (missing(invocation, profile, messages) || invocation->value.in_flight() ||
      invocation->program.state() != profile->program.state()) {
    return LOOM_MISUSE;
  }
  return guarded([&] { return status(invocation->value.issue(profile->value, messages->value)); });
}

size_t loom_profile_command_count(const loom_profile* profile) {
  return missing(profile) ? 0 : profile->value.commands().size();
}
loom_status loom_profile_command(const loom_profile* profile, size_t index,
                                 loom_profiled_command* command) {
  if (missing(profile) || sizeless(command) || index >= profile->value.commands().size()) {
    return LOOM_MISUSE;
  }
  const api::ProfiledCommand& from = profile->value.commands()[index];
  loom_profiled_command made{};
  made.kernel = bytes(from.kernel);
  made.export_name = bytes(from.export_name);
  made.node = from.node;
  made.wave = from.wave;
  made.request = from.request;
  made.indirect = from.indirect ? 1 : 0;
  std::ranges::copy(from.workgroup_size, made.workgroup_size);
  made.operand_count = from.operands.size();
  made.file = bytes(from.file);
  made.line = from.line;
  made.column = from.column;
  give(made, command);
  return LOOM_OK;
}
loom_status loom_profile_operand(const loom_profile* profile, size_t command, size_t index,
                                 loom_profiled_operand* operand) {
  if (missing(profile) || sizeless(operand)) return LOOM_MISUSE;
  const auto commands = profile->value.commands();
  if (command >= commands.size() || index >= commands[command].operands.size()) return LOOM_MISUSE;
  const api::ProfiledOperand& from = commands[command].operands[index];
  give(
      {0, static_cast<loom_storage_class>(from.storage), bytes(from.name), from.offset, from.bytes},
      operand);
  return LOOM_OK;
}

size_t loom_profile_dispatch_count(const loom_profile* profile) {
  return missing(profile) ? 0 : profile->value.dispatches().size();
}
loom_status loom_profile_dispatch(const loom_profile* profile, size_t index,
                                  loom_profiled_dispatch* dispatch) {
  if (missing(profile) || sizeless(dispatch) || index >= profile->value.dispatches().size()) {
    return LOOM_MISUSE;
  }
  const api::ProfiledDispatch& from = profile->value.dispatches()[index];
  loom_profiled_dispatch made{};
  made.command = from.command;
  made.thread = from.thread;
  made.begin = from.begin;
  made.end = from.end;
  std::ranges::copy(from.grid, made.grid);
  made.first_workgroup = from.first_workgroup;
  made.last_workgroup = from.last_workgroup;
  give(made, dispatch);
  return LOOM_OK;
}
uint64_t loom_profile_duration(const loom_profile* profile) {
  return missing(profile) ? 0 : profile->value.duration();
}
loom_status loom_profile_chrome_trace(loom_profile* profile, loom_bytes* text) {
  if (missing(text)) return LOOM_MISUSE;
  *text = {nullptr, 0};
  if (missing(profile)) return LOOM_MISUSE;
  return guarded([&] {
    profile->written = profile->value.chrome_trace();
    *text = bytes(profile->written);
    return LOOM_OK;
  });
}
