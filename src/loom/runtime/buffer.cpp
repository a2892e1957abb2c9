#include "loom/runtime/buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

namespace loom {

std::optional<Buffer> Buffer::allocate(uint64_t size, uint64_t alignment) {
  constexpr uint64_t kLimit = std::numeric_limits<uint64_t>::max() / 4;
  if (size > kLimit || alignment > kLimit) return std::nullopt;
  // aligned_alloc asks for a multiple of the alignment.
  const uint64_t rounded = std::max(alignment, (size + alignment - 1) / alignment * alignment);
  void* data = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(rounded));
  if (data == nullptr) return std::nullopt;
  std::memset(data, 0, static_cast<size_t>(rounded));
  return Buffer(static_cast<std::byte*>(data), size,
                [](std::byte* bytes, uint64_t) { std::free(bytes); });
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      release_(std::exchange(other.release_, nullptr)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(release_, other.release_);
  return *this;
}

Buffer::~Buffer() {
  if (release_ != nullptr) release_(data_, size_);
}

}  // namespace loom
