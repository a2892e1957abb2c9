// The index of an interning store: from a hash to the rows that may be equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace loom {

// Open addressing over dense rows, which the store itself holds in the order in which add() numbers
// them. Rows are never removed. Not thread-safe.
class InternTable {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;

  explicit InternTable(size_t capacity = 64) : table_(capacity, kNone) {}  // a power of two

  // The row of this hash for which `equal(row)` holds; kNone when there is none.
  template <class Equal>
  uint32_t find(uint32_t hash, Equal&& equal) const {
    const size_t mask = table_.size() - 1;
    for (size_t slot = hash & mask; table_[slot] != kNone; slot = (slot + 1) & mask) {
      const uint32_t row = table_[slot];
      if (hashes_[row] == hash && equal(row)) return row;
    }
    return kNone;
  }

  // Numbers a row that find() did not know.
  uint32_t add(uint32_t hash) {
    const auto row = static_cast<uint32_t>(hashes_.size());
    hashes_.push_back(hash);
    if (hashes_.size() * 2 > table_.size()) {
      table_.assign(table_.size() * 2, kNone);
      for (uint32_t i = 0; i < hashes_.size(); ++i) place(i);
    } else {
      place(row);
    }
    return row;
  }

 private:
  void place(uint32_t row) {
    const size_t mask = table_.size() - 1;
    size_t slot = hashes_[row] & mask;
    while (table_[slot] != kNone) slot = (slot + 1) & mask;
    table_[slot] = row;
  }

  std::vector<uint32_t> hashes_;  // by row
  std::vector<uint32_t> table_;   // rows, kNone where free
};

}  // namespace loom
