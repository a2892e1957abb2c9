#include "loom/command/cmd_core.h"

#include <fmt/format.h>

#include <algorithm>

#include "loom/command/schedule.h"

namespace loom {
namespace {

void append_resources(std::string& text, const ProgramView& program) {
  for (size_t i = 0; i < program.parameter_count(); ++i) {
    const auto row = program.parameter(i);
    text += fmt::format("  cmd.core.parameter %{} \"{}\" length({}) align({})\n",
                        program.root(row.binding), row.key, row.length, row.alignment);
  }
  for (size_t i = 0; i < program.binding_count(); ++i) {
    const auto row = program.binding(i);
    text += fmt::format("  cmd.core.binding %{} ordinal({})\n", row.name, row.ordinal);
  }
  if (program.transient_count() != 0) {
    const StorageNeed slab = program.slab();
    text += fmt::format("  cmd.core.slab length({}) align({})\n", slab.bytes, slab.alignment);
  }
  for (size_t i = 0; i < program.transient_count(); ++i) {
    const auto row = program.transient(i);
    text += fmt::format("  cmd.core.transient %{} offset({}) length({}) align({})\n", row.name,
                        row.offset, row.length, row.alignment);
  }
  for (size_t slot = 0; slot < program.slot_count(); ++slot) {
    const auto entry = program.entry(slot);
    text +=
        fmt::format("  cmd.core.entry slot({}) @{} export(\"{}\") workgroup_size({}, {}, {}) {}\n",
                    slot, entry.symbol, entry.export_name, entry.workgroup_size[0],
                    entry.workgroup_size[1], entry.workgroup_size[2], entry.contract);
  }
}

}  // namespace

std::string cmd_core_text(const ProgramView& program) {
  std::string text = fmt::format("cmd.core.program @{} {{\n", program.symbol());
  append_resources(text, program);
  const std::span<const ScheduleNode> schedule = program.schedule();
  std::vector<uint32_t> ends;
  const auto indent = [&] { text.append(2 * std::min(ends.size() + 1, kMaxScheduleIndent), ' '); };
  const auto close_until = [&](uint32_t node) {
    while (!ends.empty() && ends.back() == node) {
      ends.pop_back();
      indent();
      text += "}\n";
    }
  };
  for (uint32_t i = 0; i < schedule.size(); ++i) {
    close_until(i);
    const ScheduleNode& node = schedule[i];
    indent();
    if (node.kind == ScheduleNode::Kind::Command) {
      text += fmt::format("cmd.core.dispatch slot({}) {}\n", program.commands()[node.command].slot,
                          command_text(program, node.command));
      continue;
    }
    text +=
        node.kind == ScheduleNode::Kind::Serial ? "cmd.core.serial {\n" : "cmd.core.concurrent {\n";
    ends.push_back(node.end);
  }
  close_until(static_cast<uint32_t>(schedule.size()));
  return text + "}\n";
}

}  // namespace loom
