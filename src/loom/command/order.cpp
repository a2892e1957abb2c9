#include "loom/command/order.h"

namespace loom {

CommandOrder::CommandOrder(const PreparedProgram& program) : backward_(program.commands.size()) {
  const std::vector<ScheduleNode>& nodes = program.schedule;
  std::vector<uint32_t> before;  // by node: the commands in front of it
  before.reserve(nodes.size() + 1);
  uint32_t commands = 0;
  for (const ScheduleNode& node : nodes) {
    before.push_back(commands);
    if (node.kind == ScheduleNode::Kind::Command) ++commands;
  }
  before.push_back(commands);
  struct Open {
    uint32_t end;
    bool concurrent;
    uint32_t next;  // the children that follow begin here, or end here below a concurrent node
  };
  std::vector<Open> open;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    while (!open.empty() && open.back().end == i) open.pop_back();
    const ScheduleNode& node = nodes[i];
    const uint32_t size = before[node.end] - before[i];
    uint32_t begin = 0;
    if (!open.empty()) {
      Open& parent = open.back();
      if (parent.concurrent) parent.next -= size;
      begin = parent.next;
      if (!parent.concurrent) parent.next += size;
    }
    if (node.kind == ScheduleNode::Kind::Command) {
      backward_[node.command] = begin;
    } else {
      const bool concurrent = node.kind == ScheduleNode::Kind::Concurrent;
      open.push_back({node.end, concurrent, concurrent ? begin + size : begin});
    }
  }
}

}  // namespace loom
