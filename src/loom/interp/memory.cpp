#include "loom/interp/memory.h"

#include <algorithm>
#include <new>
#include <stdexcept>

namespace loom::interp {

std::shared_ptr<Root> allocate_root(std::string name, MemorySpace space, uint64_t alignment,
                                    uint64_t bytes) {
  constexpr uint64_t kMost = uint64_t{1} << 36;
  if (bytes > kMost) return nullptr;
  try {
    auto root = std::make_shared<Root>();
    root->name = std::move(name);
    root->space = space;
    root->alignment = alignment;
    root->owned.resize(static_cast<size_t>(bytes));
    root->initialized.resize(static_cast<size_t>(bytes));
    root->bytes = root->owned;
    return root;
  } catch (const std::bad_alloc&) {
    return nullptr;
  } catch (const std::length_error&) {
    return nullptr;
  }
}

std::shared_ptr<Root> wrap_root(std::string name, std::span<std::byte> bytes) {
  constexpr uint64_t kMost = 4096;
  auto root = std::make_shared<Root>();
  root->name = std::move(name);
  root->bytes = bytes;
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  root->alignment = std::min<uint64_t>(kMost, address == 0 ? kMost : address & (~address + 1));
  return root;
}

}  // namespace loom::interp
