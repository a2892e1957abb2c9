#include "loom/runtime/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "loom/base/check.h"

namespace loom {
namespace {

constexpr uint32_t kNoRow = std::numeric_limits<uint32_t>::max();

// Stands for "nothing bound": an address that no storage has, since null is one that empty storage
// may have.
std::byte* const kUnbound = reinterpret_cast<std::byte*>(std::numeric_limits<uintptr_t>::max());

uint64_t saturating_add(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}

std::string binding_list(std::span<const Program::Binding> bindings) {
  std::string text;
  for (const Program::Binding& binding : bindings) {
    if (!text.empty()) text += ", ";
    text += '%';
    text += binding.name;
  }
  return text.empty() ? "none" : text;
}

void report_unknown(const Program& program, std::string binding, Diagnostics& diagnostics) {
  diagnostics.emit(Diag::RunBindingUnknown, {},
                   {{"binding", std::move(binding)},
                    {"root", program.symbol()},
                    {"known", binding_list(program.bindings())}});
}

void report_small_transients(const ProgramView& program, std::span<const StorageNeed> needs,
                             Diagnostics& diagnostics) {
  for (size_t row = 0; row < needs.size(); ++row) {
    const auto transient = program.transient(row);
    const StorageNeed& need = needs[row];
    if (need.bytes > transient.length) {
      diagnostics.emit(Diag::RunTransientSize, {},
                       {{"name", std::string(transient.name)},
                        {"size", std::to_string(transient.length)},
                        {"needed", std::to_string(need.bytes)}});
    }
    if (need.alignment > transient.alignment) {
      diagnostics.emit(Diag::RunTransientAlignment, {},
                       {{"name", std::string(transient.name)},
                        {"alignment", std::to_string(transient.alignment)},
                        {"needed", std::to_string(need.alignment)}});
    }
  }
}

}  // namespace

std::optional<uint64_t> workgroup_total(const std::array<uint32_t, 3>& count) {
  constexpr uint64_t kLimit = std::numeric_limits<int64_t>::max();
  const uint64_t plane = uint64_t{count[0]} * count[1];
  if (plane == 0 || count[2] == 0) return 0;
  if (plane > kLimit / count[2]) return std::nullopt;
  return plane * count[2];
}

std::optional<uint32_t> Program::find(uint32_t ordinal) const {
  if (ordinal >= row_of_ordinal_.size() || row_of_ordinal_[ordinal] == kNoRow) return std::nullopt;
  return row_of_ordinal_[ordinal];
}

std::optional<uint32_t> Program::find(std::string_view name) const {
  for (uint32_t row = 0; row < bindings_.size(); ++row) {
    if (bindings_[row].name == name) return row;
  }
  return std::nullopt;
}

// The ranges that dispatches state, and the counts that they read.
void Program::add_storage_needs(const ProgramView& program) {
  for (const Argument& argument : program.arguments()) {
    const BufferRef& ref = argument.buffer;
    if (argument.kind != Argument::Kind::Buffer || ref.storage != StorageClass::Rebindable) {
      continue;
    }
    const uint64_t length = ref.length == BufferRef::kWholeBuffer ? 0 : ref.length;
    uint64_t& bytes = bindings_[ref.index].need.bytes;
    bytes = std::max(bytes, saturating_add(ref.offset, length));
  }
  for (const BufferRef& ref : program.indirect_storage()) {
    if (ref.storage != StorageClass::Rebindable) continue;
    StorageNeed& need = bindings_[ref.index].need;
    need.bytes = std::max(need.bytes, saturating_add(ref.offset, kCountBytes));
    need.alignment = std::max(need.alignment, kCountAlignment);
  }
  slab_ = program.slab();
}

bool Program::prepare(const ProgramSource& source, Diagnostics& diagnostics) {
  const size_t errors = diagnostics.error_count();
  const ProgramView& program = source.program;
  LOOM_CHECK(source.entries.size() == program.slot_count(), "one entry a slot");
  LOOM_CHECK(source.needs.empty() || source.needs.size() == program.binding_count(),
             "one need a binding");
  symbol_ = program.symbol();
  row_of_ordinal_.assign(program.root_count(), kNoRow);
  for (uint32_t row = 0; row < program.binding_count(); ++row) {
    const auto binding = program.binding(row);
    row_of_ordinal_[binding.ordinal] = row;
    bindings_.push_back({binding.ordinal, std::string(binding.name),
                         source.needs.empty() ? StorageNeed{} : source.needs[row]});
  }
  add_storage_needs(program);
  report_small_transients(program, source.transient_needs, diagnostics);
  for (uint32_t slot = 0; slot < program.slot_count(); ++slot) {
    if (source.entries[slot] != 0) continue;
    diagnostics.emit(Diag::RunEntryMissing, {},
                     {{"symbol", std::string(program.entry(slot).symbol)}, {"root", symbol_}});
  }
  if (!program.indirect_storage().empty()) {
    for (const DispatchCommand& command : program.commands()) {
      indirect_symbols_.emplace_back(program.entry(command.slot).symbol);
    }
  }
  for (const DispatchCommand& command : program.commands()) {
    if (command.indirect != DispatchCommand::kDirect || workgroup_total(command.count)) continue;
    diagnostics.emit(Diag::RunDispatchSize, {},
                     {{"symbol", std::string(program.entry(command.slot).symbol)},
                      {"count", fmt::format("{} x {} x {}", command.count[0], command.count[1],
                                            command.count[2])}});
  }
  auto placed =
      ParameterPlacement::resolve(program, *source.parameters, source.parameter_bytes, diagnostics);
  if (placed) parameters_ = std::move(*placed);
  return diagnostics.error_count() == errors;
}

Invocation::Invocation(const Program& program)
    : program_(program),
      bases_(program.bindings().size(), kUnbound),
      sizes_(bases_.size()),
      unbound_(static_cast<uint32_t>(bases_.size())) {}

bool Invocation::bind(uint32_t ordinal, std::span<std::byte> storage, Diagnostics& diagnostics) {
  const std::optional<uint32_t> row = program_.find(ordinal);
  if (row) return bind_row(*row, storage, diagnostics);
  report_unknown(program_, fmt::format("{}", ordinal), diagnostics);
  return false;
}

bool Invocation::bind(std::string_view name, std::span<std::byte> storage,
                      Diagnostics& diagnostics) {
  const std::optional<uint32_t> row = program_.find(name);
  if (row) return bind_row(*row, storage, diagnostics);
  report_unknown(program_, fmt::format("%{}", name), diagnostics);
  return false;
}

bool Invocation::issue_stepped(const StepObserver& after, Diagnostics& diagnostics) {
  if (unbound_ != 0) {
    report_unbound(diagnostics);
    return false;
  }
  run_stepped(after);
  return ran_well() || report_run(diagnostics);
}

bool Invocation::issue_traced(Trace& trace, Diagnostics& diagnostics) {
  if (unbound_ != 0) {
    report_unbound(diagnostics);
    return false;
  }
  trace.begin();
  run_traced(trace);
  trace.end();
  return ran_well() || report_run(diagnostics);
}

bool Invocation::report_run(Diagnostics& diagnostics) {
  const uint32_t command = overflow_.exchange(kNoCommand, std::memory_order_relaxed);
  if (command != kNoCommand) {
    diagnostics.emit(Diag::RunDispatchSize, {},
                     {{"symbol", program_.indirect_symbols_[command]}, {"count", "2^63 or more"}});
  }
  // Some other invocation's check may be the one that is pending.
  const auto slots = argument_slots();
  const auto failed = take_failed_check(slots.data(), slots.size());
  if (failed) diagnostics.emit(Diag::RunAssertion, {}, {{"detail", *failed}});
  return command == kNoCommand && !failed;
}

bool Invocation::bind_row(uint32_t row, std::span<std::byte> storage, Diagnostics& diagnostics) {
  const Program::Binding& binding = program_.bindings()[row];
  if (storage.size() < binding.need.bytes) {
    diagnostics.emit(Diag::RunBindingSize, {},
                     {{"name", binding.name},
                      {"size", std::to_string(storage.size())},
                      {"needed", std::to_string(binding.need.bytes)}});
    return false;
  }
  if (reinterpret_cast<uintptr_t>(storage.data()) % binding.need.alignment != 0) {
    diagnostics.emit(
        Diag::RunBindingAlignment, {},
        {{"name", binding.name}, {"alignment", std::to_string(binding.need.alignment)}});
    return false;
  }
  sizes_[row] = storage.size();
  if (bases_[row] == storage.data()) return true;
  if (bases_[row] == kUnbound) --unbound_;
  bases_[row] = storage.data();
  place(row, storage.data());
  return true;
}

void Invocation::report_unbound(Diagnostics& diagnostics) const {
  for (uint32_t row = 0; row < bases_.size(); ++row) {
    if (bases_[row] != kUnbound) continue;
    diagnostics.emit(Diag::RunBindingMissing, {},
                     {{"name", program_.bindings()[row].name}, {"root", program_.symbol()}});
  }
}

}  // namespace loom
