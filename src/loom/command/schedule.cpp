#include "loom/command/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace loom {
namespace {

std::string buffer_text(const ProgramView& program, const BufferRef& ref) {
  std::string text;
  if (ref.storage == StorageClass::Fixed) {
    const auto row = program.parameter(ref.index);
    text = fmt::format("%{} \"{}\"", program.root(row.binding), row.key);
  } else {
    text = fmt::format("%{}", ref.storage == StorageClass::Transient
                                  ? program.transient(ref.index).name
                                  : program.binding(ref.index).name);
  }
  if (ref.offset != 0) text += fmt::format(" + {}", ref.offset);
  return text;
}

std::string argument_text(const ProgramView& program, const Argument& argument) {
  switch (argument.kind) {
    case Argument::Kind::U32:
      return fmt::format("u32 {}", argument.value);
    case Argument::Kind::U64:
      return fmt::format("u64 {}", argument.value);
    case Argument::Kind::Buffer:
      return buffer_text(program, argument.buffer);
  }
  return {};
}

std::string count_text(const ProgramView& program, const DispatchCommand& dispatch) {
  const CountForm form = program.count_form(dispatch);
  if (form == CountForm::Direct) {
    return fmt::format("[{}, {}, {}]", dispatch.count[0], dispatch.count[1], dispatch.count[2]);
  }
  return fmt::format("[{} indirect {}]", form == CountForm::DynamicIndirect ? "dynamic" : "static",
                     buffer_text(program, program.indirect_storage()[dispatch.indirect]));
}

std::string_view node_name(ScheduleNode::Kind kind) {
  return kind == ScheduleNode::Kind::Serial ? "serial" : "concurrent";
}

std::string escape_dot(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

}  // namespace

std::vector<uint32_t> wave_numbers(const ProgramView& program) {
  std::vector<uint32_t> waves(program.commands().size());
  struct Open {
    uint32_t end;
    ScheduleNode::Kind kind;
    uint32_t start;   // wave at which the node's children may start
    uint32_t finish;  // wave after everything seen so far
  };
  std::vector<Open> open;
  const auto close_until = [&](uint32_t node) {
    while (!open.empty() && open.back().end == node) {
      const uint32_t finish = open.back().finish;
      open.pop_back();
      if (!open.empty()) open.back().finish = std::max(open.back().finish, finish);
    }
  };
  for (uint32_t i = 0; i < program.schedule().size(); ++i) {
    close_until(i);
    const ScheduleNode& node = program.schedule()[i];
    uint32_t start = 0;
    if (!open.empty()) {
      start =
          open.back().kind == ScheduleNode::Kind::Serial ? open.back().finish : open.back().start;
    }
    if (node.kind == ScheduleNode::Kind::Command) {
      waves[node.command] = start;
      if (!open.empty()) open.back().finish = std::max(open.back().finish, start + 1);
    } else {
      open.push_back({node.end, node.kind, start, start});
    }
  }
  return waves;
}

std::string command_text(const ProgramView& program, uint32_t command) {
  const DispatchCommand& dispatch = program.commands()[command];
  std::string text =
      fmt::format("@{} {} (", program.entry(dispatch.slot).symbol, count_text(program, dispatch));
  for (const Argument& argument : program.arguments_of(dispatch)) {
    if (!text.ends_with('(')) text += ", ";
    text += argument_text(program, argument);
  }
  return text + ")";
}

std::string schedule_text(const ProgramView& program) {
  const std::vector<uint32_t> waves = wave_numbers(program);
  std::string text = fmt::format("schedule of @{}\n", program.symbol());
  std::vector<uint32_t> ends;
  for (uint32_t i = 0; i < program.schedule().size(); ++i) {
    while (!ends.empty() && ends.back() == i) ends.pop_back();
    const ScheduleNode& node = program.schedule()[i];
    text.append(2 * std::min(ends.size() + 1, kMaxScheduleIndent), ' ');
    if (node.kind == ScheduleNode::Kind::Command) {
      text +=
          fmt::format("wave {}: {}\n", waves[node.command], command_text(program, node.command));
    } else {
      text += node_name(node.kind);
      text += '\n';
      ends.push_back(node.end);
    }
  }
  return text;
}

std::string schedule_dot(const ProgramView& program) {
  const std::vector<uint32_t> waves = wave_numbers(program);
  std::string text =
      fmt::format("digraph \"{}\" {{\n  node [shape=box];\n", escape_dot(program.symbol()));
  std::vector<uint32_t> open;
  for (uint32_t i = 0; i < program.schedule().size(); ++i) {
    while (!open.empty() && program.schedule()[open.back()].end == i) open.pop_back();
    const ScheduleNode& node = program.schedule()[i];
    if (node.kind == ScheduleNode::Kind::Command) {
      text += fmt::format("  n{} [label=\"wave {}\\n{}\"];\n", i, waves[node.command],
                          escape_dot(command_text(program, node.command)));
    } else {
      text += fmt::format("  n{} [label=\"{}\", shape=ellipse];\n", i, node_name(node.kind));
    }
    if (!open.empty()) text += fmt::format("  n{} -> n{};\n", open.back(), i);
    if (node.kind != ScheduleNode::Kind::Command) open.push_back(i);
  }
  return text + "}\n";
}

}  // namespace loom
