// Storage that a program's bindings can use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace loom {

// Zeroed memory, released on destruction. Move-only; moving it leaves the bytes where they are.
class Buffer {
 public:
  // Enough for every vector register and for a cache line.
  static constexpr uint64_t kAlignment = 256;

  // How a device gives memory back.
  using Release = void (*)(std::byte* data, uint64_t size);

  // Host memory at a multiple of `alignment`, a power of two of at least kAlignment; nothing when
  // there is not enough. Zero bytes give a buffer that is not null.
  static std::optional<Buffer> allocate(uint64_t size, uint64_t alignment = kAlignment);

  Buffer() = default;
  Buffer(std::byte* data, uint64_t size, Release release)
      : data_(data), size_(size), release_(release) {}
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::span<std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }

 private:
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
  Release release_ = nullptr;
};

}  // namespace loom
