// Where the content of a program's parameters lies: in the mapped files, or in one packed block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "loom/command/program_view.h"
#include "loom/diag/diagnostic.h"
#include "loom/runtime/buffer.h"
#include "loom/runtime/parameters/parameter_file.h"

namespace loom {

// A key whose mapped bytes did not meet its alignment, so that it was copied.
struct ParameterCopy {
  uint32_t row = 0;  // of the parameter table
  std::string file;
  uint64_t offset = 0;  // in the packed block
  uint64_t length = 0;
  uint64_t alignment = 1;  // what the key asks for
};

// Resolves a parameter table once. Bytes that are aligned stay where the set's files map them, so
// the set must outlive the placement; the others are packed in table order, each at a multiple of
// 256 or of its alignment if that is greater. Immutable afterwards.
class ParameterPlacement {
 public:
  // `reached` is empty or says by row how many bytes kernels view. Reports every key that no file
  // has (RUN/004), or that has another size or a smaller one than is viewed (RUN/005), and tells of
  // copies in one remark a file (RUN/016).
  static std::optional<ParameterPlacement> resolve(const ProgramView& program,
                                                   const ParameterSet& parameters,
                                                   std::span<const uint64_t> reached,
                                                   Diagnostics& diagnostics);

  // First byte of each row of the table.
  std::span<const std::byte* const> addresses() const { return addresses_; }
  // In table order.
  std::span<const ParameterCopy> copies() const { return copies_; }
  std::span<const std::byte> block() const { return block_.bytes(); }

 private:
  std::vector<const std::byte*> addresses_;
  std::vector<ParameterCopy> copies_;
  Buffer block_;
};

}  // namespace loom
