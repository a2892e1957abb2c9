// Bytes in and out: variable-length integers, fixed words, text.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace loom {

class ByteWriter {
 public:
  // Seven bits a byte, least significant first.
  void varint(uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<char>(value));
  }
  // Small magnitudes of either sign stay short.
  void signed_varint(int64_t value) {
    varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  void word64(uint64_t value) {
    for (unsigned i = 0; i < 8; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
  }
  void text(std::string_view text) {
    varint(text.size());
    bytes_.append(text);
  }
  void raw(std::string_view bytes) { bytes_.append(bytes); }

  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads never go past the end. The first failure sticks: every later read gives zero, so a decoder
// may check ok() once a step, but must bound each count with count() before it loops or allocates.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return error_ == nullptr; }
  const char* error() const { return error_; }
  // Keeps the first reason; `reason` is a literal. Always returns false.
  bool fail(const char* reason) {
    if (ok()) error_ = reason;
    position_ = bytes_.size();
    return false;
  }
  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (position_ == bytes_.size()) {
        fail("it ends in the middle of a number");
        return 0;
      }
      const auto byte = static_cast<uint8_t>(bytes_[position_++]);
      if (shift == 63 && byte > 1) break;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail("a number is longer than 64 bits");
    return 0;
  }
  int64_t signed_varint() {
    const uint64_t value = varint();
    return static_cast<int64_t>((value >> 1) ^ (0 - (value & 1)));
  }
  // A number below `limit`.
  uint32_t below(size_t limit, const char* reason) {
    const uint64_t value = varint();
    if (value >= limit) {
      fail(reason);
      return 0;
    }
    return static_cast<uint32_t>(value);
  }
  // A count of items that take at least `item_bytes` each from what remains.
  size_t count(size_t item_bytes) {
    const uint64_t value = varint();
    if (value > remaining() / item_bytes) {
      fail("a count is larger than the file");
      return 0;
    }
    return static_cast<size_t>(value);
  }
  uint64_t word64() {
    if (remaining() < 8) {
      fail("it ends in the middle of a word");
      return 0;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; ++i) {
      value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes_[position_ + i])) << (8 * i);
    }
    position_ += 8;
    return value;
  }
  std::string_view text() { return raw(count(1)); }
  std::string_view raw(size_t size) {
    if (size > remaining()) {
      fail("it ends in the middle of a text");
      return {};
    }
    const std::string_view found = bytes_.substr(position_, size);
    position_ += size;
    return found;
  }

 private:
  std::string_view bytes_;
  size_t position_ = 0;
  const char* error_ = nullptr;
};

}  // namespace loom
