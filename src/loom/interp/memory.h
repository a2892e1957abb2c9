// Storage roots: bytes, which of them were written, and who touched them last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "loom/dialect/op_kind.h"
#include "loom/interp/shadow.h"

namespace loom::interp {

struct Root {
  std::string name;  // without '%'
  MemorySpace space = MemorySpace::Global;
  uint64_t alignment = 1;      // of byte 0
  std::span<std::byte> bytes;  // `owned`, or the caller's
  std::vector<std::byte> owned;
  std::vector<uint8_t> initialized;  // by byte; empty: all of them
  bool is_binding = false;           // of a command program
  bool is_transient = false;         // allocated by a command program
  bool read_only = false;
  bool shared = false;  // between invocations or commands
  Shadow shadow;

  std::string text() const { return "'%" + name + "'"; }
  bool is_workgroup() const { return space == MemorySpace::Workgroup; }
};

// A root with undefined contents; null when there is no memory for it.
std::shared_ptr<Root> allocate_root(std::string name, MemorySpace space, uint64_t alignment,
                                    uint64_t bytes);
// The caller's storage, aligned as it happens to be.
std::shared_ptr<Root> wrap_root(std::string name, std::span<std::byte> bytes);

}  // namespace loom::interp
