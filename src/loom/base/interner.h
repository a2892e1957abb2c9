// Interns strings: equal text gives the equal id, and an id gives back stable text.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "loom/base/check.h"
#include "loom/base/hash.h"
#include "loom/base/id.h"
#include "loom/base/intern_table.h"

namespace loom {

using StringId = Id<struct StringTag>;

// Ids are dense, in first-intern order. Text lives as long as the interner and never moves.
// Not thread-safe; one per module.
class StringInterner {
 public:
  StringInterner();
  StringInterner(StringInterner&&) = default;
  StringInterner& operator=(StringInterner&&) = default;

  StringId intern(std::string_view text);
  // Invalid when `text` was never interned.
  StringId find(std::string_view text) const;
  std::string_view text(StringId id) const { return texts_[id.index()]; }
  size_t size() const { return texts_.size(); }

 private:
  static uint32_t hash_of(std::string_view text);
  uint32_t row_of(std::string_view text, uint32_t hash) const;
  std::string_view store(std::string_view text);

  std::vector<std::string_view> texts_;
  InternTable table_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t block_used_ = 0;
  size_t block_size_ = 0;
};

}  // namespace loom
