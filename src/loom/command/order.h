// Which command precedes which, in constant time.
#pragma once

#include <cstdint>
#include <vector>

#include "loom/command/plan.h"

namespace loom {

// Commands are numbered as the leaves of the tree stand. `backward` numbers them as if the children
// of every concurrent node stood in the opposite order: a command precedes another exactly when it
// comes first in both.
class CommandOrder {
 public:
  explicit CommandOrder(const PreparedProgram& program);

  bool precedes(uint32_t a, uint32_t b) const { return a < b && backward_[a] < backward_[b]; }
  bool concurrent(uint32_t a, uint32_t b) const {
    return a != b && (a < b) != (backward_[a] < backward_[b]);
  }
  uint32_t backward(uint32_t command) const { return backward_[command]; }

 private:
  std::vector<uint32_t> backward_;
};

}  // namespace loom
