// What an SSA value holds while a program is interpreted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "loom/dialect/encoding_info.h"
#include "loom/dialect/eval_vector.h"
#include "loom/interp/memory.h"

namespace loom::interp {

// No observation of it exists.
struct Poison {};

// A storage root, or the part of one that a launch passes.
struct BufferDatum {
  std::shared_ptr<Root> root;  // null: the null buffer
  uint64_t begin = 0;          // bytes of the root
  uint64_t size = 0;
};

struct ViewDatum {
  BufferDatum buffer;
  int64_t base = 0;              // byte of the root where element (0, ...) begins
  std::vector<int64_t> extents;  // elements
  std::vector<int64_t> strides;  // elements; empty when `record` is set
  ScalarKind element = ScalarKind::I8;
  uint32_t align = 0;    // bytes that an access must be aligned to
  StorageRecord record;  // records instead of elements
};

struct EncodingDatum {
  AttrId attr;  // static encoding; invalid for layouts made by their own operations
  bool dense = false;
  std::optional<std::vector<int64_t>> strides;
};

// Transfers of the invocation, by number; of a group also its own number.
struct TokenDatum {
  std::vector<uint32_t> transfers;
  uint32_t group = 0;
};

// monostate: not computed yet.
using Datum = std::variant<std::monostate, Poison, ScalarValue, std::shared_ptr<const LaneValues>,
                           BufferDatum, std::shared_ptr<const ViewDatum>,
                           std::shared_ptr<const EncodingDatum>, TokenDatum>;

// A vector or a scalar as lanes.
inline std::optional<LaneValues> lanes_of(const Datum& datum) {
  if (const auto* scalar = std::get_if<ScalarValue>(&datum)) {
    return LaneValues{scalar->kind, {}, {scalar->bits}, {}};
  }
  if (const auto* lanes = std::get_if<std::shared_ptr<const LaneValues>>(&datum)) return **lanes;
  return std::nullopt;
}
inline Datum lanes_datum(LaneValues lanes) {
  return std::make_shared<const LaneValues>(std::move(lanes));
}

}  // namespace loom::interp
