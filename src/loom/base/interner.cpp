#include "loom/base/interner.h"

#include <algorithm>

namespace loom {
namespace {
constexpr uint32_t kFree = StringId::kNone;
constexpr size_t kFirstTableSize = 256;
constexpr size_t kBlockSize = 16 * 1024;
}  // namespace

StringInterner::StringInterner() : table_(kFirstTableSize, kFree) {}

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

size_t StringInterner::slot_of(std::string_view text, uint32_t hash) const {
  const size_t mask = table_.size() - 1;
  size_t slot = hash & mask;
  while (table_[slot] != kFree) {
    const Entry& entry = entries_[table_[slot]];
    if (entry.hash == hash && entry.text == text) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

StringId StringInterner::intern(std::string_view text) {
  const uint32_t hash = hash_of(text);
  size_t slot = slot_of(text, hash);
  if (table_[slot] != kFree) return StringId(table_[slot]);
  if ((entries_.size() + 1) * 2 > table_.size()) {
    grow();
    slot = slot_of(text, hash);
  }
  const auto index = static_cast<uint32_t>(entries_.size());
  entries_.push_back({store(text), hash});
  table_[slot] = index;
  return StringId(index);
}

StringId StringInterner::find(std::string_view text) const {
  const size_t slot = slot_of(text, hash_of(text));
  return table_[slot] == kFree ? StringId() : StringId(table_[slot]);
}

void StringInterner::grow() {
  std::vector<uint32_t> larger(table_.size() * 2, kFree);
  const size_t mask = larger.size() - 1;
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t slot = entries_[i].hash & mask;
    while (larger[slot] != kFree) slot = (slot + 1) & mask;
    larger[slot] = static_cast<uint32_t>(i);
  }
  table_ = std::move(larger);
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
