// What may be changed in a program: configuration keys and source rewrites, as axes of options.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hyperloom/core/error.h"
#include "hyperloom/optimize/tree_copy.h"

namespace hyperloom::optimize {

// One option for each axis; 0 leaves the axis as it is.
using Point = std::vector<unsigned>;

// One thing that may be chosen. `options[0]` is how it is.
struct Axis {
  std::string name;  // "tile.width", "unroll @scale line 12"
  std::vector<std::string> options;
};

// The choices of one tree. Immutable; any thread.
class Space {
 public:
  virtual ~Space() = default;
  virtual const std::vector<Axis>& axes() const = 0;
  // The change that a point stands for. Errors: "not_applicable" where the choices of the point do
  // not go together.
  virtual Result<Change> change(const Point& point) const = 0;

  std::vector<unsigned> sizes() const;
  // "tile.width = 8, unroll @scale line 12 = by 4"; "as it is" for the origin.
  std::string words(const Point& point) const;
};

}  // namespace hyperloom::optimize
