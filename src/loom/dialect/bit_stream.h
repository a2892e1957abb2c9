// Fields of a little-endian bit stream: the first bit is bit 0 of the first word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace loom {

class BitStream {
 public:
  size_t size() const { return size_; }

  // Appends the low `width` bits; width is from 1 to 64.
  void append(uint64_t bits, unsigned width) {
    for (unsigned i = 0; i < width; ++i, ++size_) {
      if (size_ % 64 == 0) words_.push_back(0);
      words_.back() |= (bits >> i & 1) << (size_ % 64);
    }
  }
  // The `width` bits from bit `position` on.
  uint64_t field(size_t position, unsigned width) const {
    uint64_t bits = 0;
    for (unsigned i = 0; i < width; ++i, ++position) {
      bits |= (words_[position / 64] >> (position % 64) & 1) << i;
    }
    return bits;
  }

 private:
  std::vector<uint64_t> words_;
  size_t size_ = 0;
};

}  // namespace loom
