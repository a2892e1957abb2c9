// Strong 32-bit ids: an index into one store, typed by what it names.
//
//   using OpId = Id<struct OpTag>;
//
// A default-constructed id names nothing. Ids of different kinds do not convert or compare.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace loom {

template <class Tag>
class Id {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t index) : index_(index) {}
  constexpr explicit Id(size_t index) : index_(static_cast<uint32_t>(index)) {}

  constexpr uint32_t index() const { return index_; }
  constexpr bool valid() const { return index_ != kNone; }
  constexpr explicit operator bool() const { return valid(); }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  uint32_t index_ = kNone;
};

}  // namespace loom

template <class Tag>
struct std::hash<loom::Id<Tag>> {
  size_t operator()(loom::Id<Tag> id) const noexcept { return std::hash<uint32_t>{}(id.index()); }
};
