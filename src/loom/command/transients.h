// Where transients lie in the slab of one issue.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "loom/command/order.h"
#include "loom/command/plan.h"

namespace loom {

// One transient to place: its size, and where its uses stand in the two numberings of CommandOrder.
struct PackItem {
  uint64_t length = 0;
  uint64_t alignment = 1;
  uint32_t first = 0;  // least and greatest command that uses it
  uint32_t last = 0;
  uint32_t backward_first = 0;
  uint32_t backward_last = 0;
};

// Whether all uses of one precede all uses of the other; then they may share bytes.
bool may_share(const PackItem& a, const PackItem& b);

// An offset for each item, a multiple of its alignment, such that items that may not share bytes do
// not overlap. Depends on nothing but the items. Items are placed by first fit, in the best of
// several orders while they are few enough to try some; time is near linear for many.
std::vector<uint64_t> pack(std::span<const PackItem> items);

// Sets the offset of every transient of a program whose schedule is closed.
void place_transients(PreparedProgram& program, const CommandOrder& order);

}  // namespace loom
