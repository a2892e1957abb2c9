// A prepared program as everything that reads one sees it, wherever its rows lie: in a plan, or in
// the bytes of an artifact. Nothing is copied; what a view was made from must outlive it and stay
// as it is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "loom/command/artifact_layout.h"
#include "loom/command/plan.h"

namespace loom {

class ProgramView {
 public:
  struct Parameter {
    uint32_t binding = 0;  // source ordinal of the binding that is its root
    std::string_view key;
    uint64_t length = 0;     // bytes
    uint64_t alignment = 1;  // bytes, a power of two
  };
  struct Binding {
    uint32_t ordinal = 0;  // among the program's launch bindings
    std::string_view name;
  };
  struct Transient {
    std::string_view name;
    uint64_t offset = 0;     // in the slab, a multiple of the alignment
    uint64_t length = 0;     // bytes
    uint64_t alignment = 1;  // a power of two
  };
  struct Entry {
    std::string_view symbol;  // without '@'
    std::string_view export_name;
    std::string_view contract;
    std::array<uint32_t, 3> workgroup_size = {1, 1, 1};
    int32_t request = -1;  // number of the request that serves it; -1 where none is known
  };

  ProgramView() = default;
  // A view without entries: entry() must not be called.
  ProgramView(const PreparedProgram& program);  // NOLINT(google-explicit-constructor)
  ProgramView(const PreparedPlan& plan, const PreparedProgram& program) : ProgramView(program) {
    plan_ = &plan;
  }
  // Over the checked rows of an artifact.
  explicit ProgramView(const artifact::Rows& rows);

  std::string_view symbol() const;  // without '@'

  // Launch bindings by source ordinal; their names are without '%'.
  size_t root_count() const;
  std::string_view root(size_t ordinal) const;
  size_t parameter_count() const;
  Parameter parameter(size_t row) const;
  // The rebindable launch bindings, by ordinal.
  size_t binding_count() const;
  Binding binding(size_t row) const;
  size_t transient_count() const;  // in first-use order
  Transient transient(size_t row) const;

  size_t slot_count() const;
  Entry entry(size_t slot) const;
  // Row of the plan's entries; of an artifact the slot itself.
  uint32_t entry_row(size_t slot) const;

  std::span<const DispatchCommand> commands() const { return commands_; }
  std::span<const Argument> arguments() const { return arguments_; }
  std::span<const Argument> arguments_of(const DispatchCommand& command) const {
    return arguments_.subspan(command.argument_begin, command.argument_count);
  }
  // 12 bytes each, distinct, in first-use order.
  std::span<const BufferRef> indirect_storage() const { return indirect_; }
  std::span<const ScheduleNode> schedule() const { return schedule_; }

  // Of each command's source; empty over an artifact.
  std::span<const Location> locations() const {
    return program_ != nullptr ? std::span<const Location>(program_->locations)
                               : std::span<const Location>();
  }

  CountForm count_form(const DispatchCommand& command) const {
    if (command.indirect == DispatchCommand::kDirect) return CountForm::Direct;
    return indirect_[command.indirect].storage == StorageClass::Transient
               ? CountForm::DynamicIndirect
               : CountForm::StaticIndirect;
  }
  // The slab of one issue in flight: 0 bytes, alignment 1 where there are no transients.
  StorageNeed slab() const;

  // The same program with other commands, as many, which must outlive the result.
  ProgramView with_commands(std::span<const DispatchCommand> commands) const {
    ProgramView changed = *this;
    changed.commands_ = commands;
    return changed;
  }

 private:
  std::string_view text(artifact::Text range) const {
    return rows_.strings.substr(range.offset, range.length);
  }

  const PreparedPlan* plan_ = nullptr;
  const PreparedProgram* program_ = nullptr;  // null over an artifact
  artifact::Rows rows_;                       // of an artifact
  std::span<const DispatchCommand> commands_;
  std::span<const Argument> arguments_;
  std::span<const BufferRef> indirect_;
  std::span<const ScheduleNode> schedule_;
};

}  // namespace loom
