// Storage of a sample's tensors and what is generated into it.
//
// An element is stored as ScalarValue::bits in its own width, little endian. All functions write
// the same bytes on every platform.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "loom/dialect/numeric.h"
#include "loom/runtime/buffer.h"

namespace loom::check {

// Memory that is used again from sample to sample. Each tensor begins at a multiple of
// Buffer::kAlignment, with guard bytes around it.
class Arena {
 public:
  // Bytes without a value; nothing where there is no memory. Valid until reset().
  std::optional<std::span<std::byte>> take(uint64_t bytes);
  void reset();
  // The first tensor beside which something was written; by number in the order of take().
  std::optional<size_t> damaged() const;
  // What was taken since reset(), in order.
  std::span<const std::span<std::byte>> tensors() const { return taken_; }

 private:
  std::vector<Buffer> blocks_;
  size_t block_ = 0;   // that tensors are taken from
  uint64_t used_ = 0;  // bytes of it
  std::vector<std::span<std::byte>> taken_;
};

uint64_t element_count(std::span<const std::byte> tensor, ScalarKind kind);
ScalarValue load(std::span<const std::byte> tensor, ScalarKind kind, uint64_t index);
void store(std::span<std::byte> tensor, ScalarKind kind, uint64_t index, ScalarValue value);

void fill(std::span<std::byte> tensor, ScalarKind kind, ScalarValue value);

// Element i is offset + step * (i mod period): integers modulo 2^width, floats computed in double
// and rounded once to the element; 0 is no period.
void iota(std::span<std::byte> tensor, ScalarKind kind, ScalarValue offset, ScalarValue step,
          uint64_t period);

// Element i comes from random_word(seed, i) (runtime/parameters/generate.h), alone. Bounds are
// ordered; equal ones give that value.
//
// lower + (upper - lower) * u in double for u = (word >> 11) / 2^53, rounded once to the element,
// and the element below `upper` where that rounds up to it. Bounds are finite.
void random_floats(std::span<std::byte> tensor, ScalarKind kind, uint64_t seed, ScalarValue lower,
                   ScalarValue upper);
// lower + word mod (upper - lower + 1), as the low bits of the element.
void random_integers(std::span<std::byte> tensor, ScalarKind kind, uint64_t seed, int64_t lower,
                     int64_t upper);

// The neighbour of a finite float towards negative infinity.
ScalarValue next_below(ScalarValue value);

}  // namespace loom::check
