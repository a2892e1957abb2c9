#include "loom/command/cmd_core.h"

#include <fmt/format.h>

#include <algorithm>

#include "loom/command/schedule.h"

namespace loom {
namespace {

void append_resources(std::string& text, const PreparedPlan& plan, const PreparedProgram& program) {
  for (const ParameterRow& row : program.parameters) {
    text += fmt::format("  cmd.core.parameter %{} \"{}\" length({}) align({})\n",
                        program.roots[row.binding], row.key, row.length, row.alignment);
  }
  for (const BindingRow& row : program.bindings) {
    text += fmt::format("  cmd.core.binding %{} ordinal({})\n", row.name, row.ordinal);
  }
  if (!program.transients.empty()) {
    const StorageNeed slab = slab_need(program);
    text += fmt::format("  cmd.core.slab length({}) align({})\n", slab.bytes, slab.alignment);
  }
  for (const TransientRow& row : program.transients) {
    text += fmt::format("  cmd.core.transient %{} offset({}) length({}) align({})\n", row.name,
                        row.offset, row.length, row.alignment);
  }
  for (size_t slot = 0; slot < program.slots.size(); ++slot) {
    const EntryRequirement& entry = plan.entries[program.slots[slot]];
    text +=
        fmt::format("  cmd.core.entry slot({}) @{} export(\"{}\") workgroup_size({}, {}, {}) {}\n",
                    slot, entry.symbol, entry.export_name, entry.workgroup_size[0],
                    entry.workgroup_size[1], entry.workgroup_size[2], entry.contract);
  }
}

}  // namespace

std::string cmd_core_text(const PreparedPlan& plan, const PreparedProgram& program) {
  std::string text = fmt::format("cmd.core.program @{} {{\n", program.symbol);
  append_resources(text, plan, program);
  std::vector<uint32_t> ends;
  const auto indent = [&] { text.append(2 * std::min(ends.size() + 1, kMaxScheduleIndent), ' '); };
  const auto close_until = [&](uint32_t node) {
    while (!ends.empty() && ends.back() == node) {
      ends.pop_back();
      indent();
      text += "}\n";
    }
  };
  for (uint32_t i = 0; i < program.schedule.size(); ++i) {
    close_until(i);
    const ScheduleNode& node = program.schedule[i];
    indent();
    if (node.kind == ScheduleNode::Kind::Command) {
      text += fmt::format("cmd.core.dispatch slot({}) {}\n", program.commands[node.command].slot,
                          command_text(plan, program, node.command));
      continue;
    }
    text +=
        node.kind == ScheduleNode::Kind::Serial ? "cmd.core.serial {\n" : "cmd.core.concurrent {\n";
    ends.push_back(node.end);
  }
  close_until(static_cast<uint32_t>(program.schedule.size()));
  return text + "}\n";
}

}  // namespace loom
