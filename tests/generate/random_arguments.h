// Arguments for random programs: small numbers, and some of any size.
#pragma once

#include <random>
#include <vector>

#include "loom/interp/interp.h"

namespace loom::generate {

inline uint64_t random_lane(std::mt19937_64& random, ScalarKind kind) {
  const int64_t small[] = {0, 1, 2, 3, 5, 8, -1, -2, 63, 64, 127, -128};
  const double reals[] = {0.0, -0.0, 1.0, -1.5, 0.1, 3.25, 1e30, -448.0};
  if (is_float(kind)) return from_double(kind, reals[random() % std::size(reals)]).bits;
  const int64_t number =
      random() % 4 != 0 ? small[random() % std::size(small)] : static_cast<int64_t>(random());
  const ScalarValue value = from_bits(kind, static_cast<uint64_t>(number));
  return kind == ScalarKind::Offset ? value.bits >> 1 : value.bits;
}

inline std::vector<InterpArgument> random_arguments(const Module& module, OpId function,
                                                    std::mt19937_64& random) {
  std::vector<InterpArgument> out;
  for (const ValueId arg : module.args(module.op_region(function, 0))) {
    const Type& type = module.types[module.type_of(arg)];
    LaneValues value;
    value.element = type.element;
    for (const Dim dim : type.dims) value.shape.push_back(dim.extent());
    value.lanes.resize(lane_count(value.shape));
    for (uint64_t& lane : value.lanes) lane = random_lane(random, type.element);
    out.emplace_back(std::move(value));
  }
  return out;
}

}  // namespace loom::generate
