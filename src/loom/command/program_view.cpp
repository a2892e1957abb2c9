#include "loom/command/program_view.h"

#include <algorithm>

#include "loom/base/check.h"

namespace loom {

ProgramView::ProgramView(const PreparedProgram& program)
    : program_(&program),
      commands_(program.commands),
      arguments_(program.arguments),
      indirect_(program.indirect_storage),
      schedule_(program.schedule) {}

ProgramView::ProgramView(const artifact::Rows& rows)
    : rows_(rows),
      commands_(rows.commands),
      arguments_(rows.arguments),
      indirect_(rows.indirect_storage),
      schedule_(rows.schedule) {}

std::string_view ProgramView::symbol() const {
  return program_ != nullptr ? std::string_view(program_->symbol) : text(rows_.roots[0].name);
}

size_t ProgramView::root_count() const {
  return program_ != nullptr ? program_->roots.size() : rows_.roots.size() - 1;
}

std::string_view ProgramView::root(size_t ordinal) const {
  return program_ != nullptr ? std::string_view(program_->roots[ordinal])
                             : text(rows_.roots[ordinal + 1].name);
}

size_t ProgramView::parameter_count() const {
  return program_ != nullptr ? program_->parameters.size() : rows_.parameters.size();
}

ProgramView::Parameter ProgramView::parameter(size_t row) const {
  if (program_ != nullptr) {
    const ParameterRow& of = program_->parameters[row];
    return {of.binding, of.key, of.length, of.alignment};
  }
  const artifact::ParameterRow& of = rows_.parameters[row];
  return {of.binding, text(of.key), of.length, of.alignment};
}

size_t ProgramView::binding_count() const {
  return program_ != nullptr ? program_->bindings.size() : rows_.bindings.size();
}

ProgramView::Binding ProgramView::binding(size_t row) const {
  if (program_ != nullptr) {
    const BindingRow& of = program_->bindings[row];
    return {of.ordinal, of.name};
  }
  return {rows_.bindings[row].ordinal, text(rows_.bindings[row].name)};
}

size_t ProgramView::transient_count() const {
  return program_ != nullptr ? program_->transients.size() : rows_.transients.size();
}

ProgramView::Transient ProgramView::transient(size_t row) const {
  if (program_ != nullptr) {
    const TransientRow& of = program_->transients[row];
    return {of.name, of.offset, of.length, of.alignment};
  }
  const artifact::TransientRow& of = rows_.transients[row];
  return {text(of.name), of.offset, of.length, of.alignment};
}

size_t ProgramView::slot_count() const {
  return program_ != nullptr ? program_->slots.size() : rows_.entries.size();
}

ProgramView::Entry ProgramView::entry(size_t slot) const {
  if (program_ != nullptr) {
    LOOM_CHECK(plan_ != nullptr, "a view with entries is made from their plan, too");
    const EntryRequirement& of = plan_->entries[program_->slots[slot]];
    return {of.symbol, of.export_name, of.contract, of.workgroup_size, of.request};
  }
  const artifact::EntryRow& of = rows_.entries[slot];
  return {text(of.symbol), text(of.export_name), text(of.contract), of.workgroup_size};
}

uint32_t ProgramView::entry_row(size_t slot) const {
  return program_ != nullptr ? program_->slots[slot] : static_cast<uint32_t>(slot);
}

StorageNeed ProgramView::slab() const {
  StorageNeed need;
  for (size_t row = 0; row < transient_count(); ++row) {
    const Transient of = transient(row);
    need.bytes = std::max(need.bytes, of.offset + of.length);
    need.alignment = std::max(need.alignment, of.alignment);
  }
  return need;
}

}  // namespace loom
