#include "loom/runtime/placement.h"

#include <algorithm>
#include <cstring>

namespace loom {
namespace {

uint64_t round_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// One remark a file, in the order of the first copy from each.
void report_copies(const ProgramView& program, std::span<const ParameterCopy> copies,
                   Diagnostics& diagnostics) {
  struct Total {
    const ParameterCopy* first;
    uint64_t count = 0;
    uint64_t bytes = 0;
  };
  std::vector<Total> totals;
  for (const ParameterCopy& copy : copies) {
    auto total = std::ranges::find(totals, copy.file, [](const Total& t) { return t.first->file; });
    if (total == totals.end()) total = totals.insert(totals.end(), {&copy});
    ++total->count;
    total->bytes += copy.length;
  }
  for (const Total& total : totals) {
    diagnostics.emit(Diag::RunParametersCopied, {},
                     {{"count", std::to_string(total.count)},
                      {"file", total.first->file},
                      {"bytes", std::to_string(total.bytes)},
                      {"key", std::string(program.parameter(total.first->row).key)},
                      {"alignment", std::to_string(total.first->alignment)}});
  }
}

}  // namespace

std::optional<ParameterPlacement> ParameterPlacement::resolve(const ProgramView& program,
                                                              const ParameterSet& parameters,
                                                              std::span<const uint64_t> reached,
                                                              Diagnostics& diagnostics) {
  ParameterPlacement placement;
  placement.addresses_.resize(program.parameter_count());
  uint64_t block_size = 0;
  uint64_t block_alignment = Buffer::kAlignment;
  const size_t errors = diagnostics.error_count();
  for (uint32_t i = 0; i < program.parameter_count(); ++i) {
    const auto row = program.parameter(i);
    const ParameterSet::Found found = parameters.find(program.root(row.binding), row.key);
    if (!found) {
      parameters.report_missing(program.root(row.binding), row.key, diagnostics);
      continue;
    }
    const std::span<const std::byte> bytes = found.entry->bytes;
    const uint64_t needed = std::max(row.length, reached.empty() ? 0 : reached[i]);
    if (bytes.size() != row.length || needed > row.length) {
      diagnostics.emit(Diag::RunParameterSize, {},
                       {{"key", std::string(row.key)},
                        {"found", std::to_string(bytes.size())},
                        {"file", found.file->path()},
                        {"needed", std::to_string(needed)}});
      continue;
    }
    placement.addresses_[i] = bytes.data();
    if (reinterpret_cast<uintptr_t>(bytes.data()) % row.alignment == 0) continue;
    const uint64_t alignment = std::max(Buffer::kAlignment, row.alignment);
    const uint64_t offset = round_up(block_size, alignment);
    placement.copies_.push_back({i, found.file->path(), offset, row.length, row.alignment});
    block_size = offset + row.length;
    block_alignment = std::max(block_alignment, alignment);
  }
  if (diagnostics.error_count() != errors) return std::nullopt;
  if (placement.copies_.empty()) return placement;

  // The block's own start must meet the greatest alignment of what is packed into it.
  auto block_buffer = Buffer::allocate(block_size, block_alignment);
  if (!block_buffer) {
    diagnostics.emit(Diag::RunOutOfMemory, {},
                     {{"bytes", std::to_string(block_size)}, {"what", "copied parameters"}});
    return std::nullopt;
  }
  placement.block_ = std::move(*block_buffer);
  std::byte* block = placement.block_.bytes().data();
  for (const ParameterCopy& copy : placement.copies_) {
    std::memcpy(block + copy.offset, placement.addresses_[copy.row],
                static_cast<size_t>(copy.length));
    placement.addresses_[copy.row] = block + copy.offset;
  }
  report_copies(program, placement.copies_, diagnostics);
  return placement;
}

}  // namespace loom
