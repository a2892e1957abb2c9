// A bounds-checked cursor over little-endian bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace loom {

// A read that does not fit returns false and leaves the cursor.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

  template <class T>
    requires std::is_arithmetic_v<T>
  bool read(T& value) {
    if (remaining() < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return true;
  }
  bool skip(uint64_t count) {
    if (remaining() < count) return false;
    position_ += static_cast<size_t>(count);
    return true;
  }
  // A view into the bytes.
  bool read_text(uint64_t size, std::string_view& text) {
    if (remaining() < size) return false;
    text = {reinterpret_cast<const char*>(bytes_.data()) + position_, static_cast<size_t>(size)};
    position_ += static_cast<size_t>(size);
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

template <class T>
void append_bytes(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

}  // namespace loom
