// Makes plans for the tests of this room from kernels that are plain functions.
#pragma once

#include <string>
#include <vector>

#include "loom/command/plan.h"
#include "loom/runtime/program.h"
#include "loom/target/x86/kernel_abi.h"

namespace loom {

class PlanBuilder {
 public:
  PlanBuilder() {
    plan_.programs.emplace_back();
    program().symbol = "program";
    begin(ScheduleNode::Kind::Serial);
  }

  Argument binding(const std::string& name, uint64_t offset = 0,
                   uint64_t length = BufferRef::kWholeBuffer) {
    uint32_t row = 0;
    while (row < program().bindings.size() && program().bindings[row].name != name) ++row;
    if (row == program().bindings.size()) {
      program().bindings.push_back({root(name), name});
    }
    return {Argument::Kind::Buffer, 0, {StorageClass::Rebindable, row, offset, length}};
  }
  Argument parameter(const std::string& root_name, const std::string& key, uint64_t length,
                     uint64_t alignment) {
    const auto row = static_cast<uint32_t>(program().parameters.size());
    program().parameters.push_back({root(root_name), key, length, alignment});
    return {Argument::Kind::Buffer, 0, {StorageClass::Fixed, row, 0, length}};
  }
  // A transient that lies at that place of the slab.
  Argument transient(const std::string& name, uint64_t slab_offset, uint64_t length) {
    const auto row = static_cast<uint32_t>(program().transients.size());
    program().transients.push_back({name, slab_offset, length, 64});
    return {Argument::Kind::Buffer, 0, {StorageClass::Transient, row, 0, length}};
  }
  static Argument scalar(uint64_t value) { return {Argument::Kind::U64, value, {}}; }

  void begin(ScheduleNode::Kind kind) {
    open_.push_back(static_cast<uint32_t>(program().schedule.size()));
    program().schedule.push_back({kind, 0, 0});
  }
  void end() {
    program().schedule[open_.back()].end = static_cast<uint32_t>(program().schedule.size());
    open_.pop_back();
  }
  void dispatch(LoomKernelEntry entry, const std::vector<Argument>& arguments,
                std::array<uint32_t, 3> count = {1, 1, 1}) {
    DispatchCommand command;
    command.slot = slot(entry);
    command.argument_begin = static_cast<uint32_t>(program().arguments.size());
    command.argument_count = static_cast<uint32_t>(arguments.size());
    command.count = count;
    program().arguments.insert(program().arguments.end(), arguments.begin(), arguments.end());
    const auto node = static_cast<uint32_t>(program().schedule.size());
    program().schedule.push_back(
        {ScheduleNode::Kind::Command, static_cast<uint32_t>(program().commands.size()), node + 1});
    program().commands.push_back(command);
  }
  // The same with counts that are read from the beginning of `counts`.
  void dispatch_indirect(LoomKernelEntry entry, const std::vector<Argument>& arguments,
                         const Argument& counts) {
    dispatch(entry, arguments);
    program().commands.back().indirect = static_cast<uint32_t>(program().indirect_storage.size());
    BufferRef ref = counts.buffer;
    ref.length = kCountBytes;
    program().indirect_storage.push_back(ref);
  }
  PreparedProgram& program() { return plan_.programs[0]; }
  const std::vector<EntryAddress>& entries() const { return entries_; }

  // Ends what is still open.
  const PreparedPlan& plan() {
    while (!open_.empty()) end();
    return plan_;
  }
  ProgramView view() { return {plan(), program()}; }

 private:
  uint32_t root(const std::string& name) {
    for (uint32_t i = 0; i < program().roots.size(); ++i) {
      if (program().roots[i] == name) return i;
    }
    program().roots.push_back(name);
    return static_cast<uint32_t>(program().roots.size() - 1);
  }
  uint32_t slot(LoomKernelEntry entry) {
    const auto address = reinterpret_cast<EntryAddress>(entry);
    for (uint32_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i] == address) return i;
    }
    const auto number = static_cast<uint32_t>(entries_.size());
    entries_.push_back(address);
    EntryRequirement entry_row;
    entry_row.symbol = "kernel" + std::to_string(number);
    plan_.entries.push_back(entry_row);
    program().slots.push_back(number);
    return number;
  }

  PreparedPlan plan_;
  std::vector<EntryAddress> entries_;
  std::vector<uint32_t> open_;
};

}  // namespace loom
