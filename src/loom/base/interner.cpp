#include "loom/base/interner.h"

#include <algorithm>

namespace loom {
namespace {
constexpr size_t kFirstTableSize = 256;
constexpr size_t kBlockSize = 16 * 1024;
}  // namespace

StringInterner::StringInterner() : table_(kFirstTableSize) {}

// Names are short, so a plain multiply over eight-byte chunks beats a general hash call.
uint32_t StringInterner::hash_of(std::string_view text) {
  uint64_t h = text.size() * 0x9e3779b97f4a7c15ull;
  const char* data = text.data();
  size_t left = text.size();
  while (left >= 8) {
    uint64_t chunk;
    std::memcpy(&chunk, data, 8);
    h = (h ^ chunk) * 0xd6e8feb86659fd93ull;
    h ^= h >> 32;
    data += 8;
    left -= 8;
  }
  uint64_t tail = 0;
  for (size_t i = 0; i < left; ++i)
    tail |= static_cast<uint64_t>(static_cast<uint8_t>(data[i])) << (8 * i);
  h = (h ^ tail) * 0xd6e8feb86659fd93ull;
  return static_cast<uint32_t>(h >> 32);
}

uint32_t StringInterner::row_of(std::string_view text, uint32_t hash) const {
  return table_.find(hash, [&](uint32_t row) { return texts_[row] == text; });
}

StringId StringInterner::intern(std::string_view text) {
  const uint32_t hash = hash_of(text);
  if (const uint32_t row = row_of(text, hash); row != InternTable::kNone) return StringId(row);
  texts_.push_back(store(text));
  return StringId(table_.add(hash));
}

StringId StringInterner::find(std::string_view text) const {
  const uint32_t row = row_of(text, hash_of(text));
  return row == InternTable::kNone ? StringId() : StringId(row);
}

std::string_view StringInterner::store(std::string_view text) {
  if (text.empty()) return {};
  if (block_used_ + text.size() > block_size_) {
    block_size_ = std::max(kBlockSize, text.size());
    blocks_.push_back(std::make_unique<char[]>(block_size_));
    block_used_ = 0;
  }
  char* place = blocks_.back().get() + block_used_;
  std::memcpy(place, text.data(), text.size());
  block_used_ += text.size();
  return {place, text.size()};
}

}  // namespace loom
