// The bytes of bindings: how they are filled, and how two results agree.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hyperloom/workload/description.h"
#include "hyperloom/workload/workload.h"
#include "loom/api/arrays.h"

namespace hyperloom::workload {

// Which values a run gets. Equal draws give equal bytes, on every machine.
struct Draw {
  uint64_t seed = 0;
  bool seeded = false;       // false: the contents that the workload states
  bool adversarial = false;  // zeros, infinities, NaN, denormals and the largest values among them
  bool held_out = false;     // another stream of the seed, and another shape where there is one
  auto operator<=>(const Draw&) const = default;
};

// `ordinal` is the binding's place among the bindings. An npy file is read once by the caller and
// passed as `file`, empty otherwise.
void fill_values(const BindingSpec& spec, uint64_t ordinal, const Draw& draw,
                 std::span<const std::byte> file, std::span<std::byte> bytes);

// A byte that no sane result is made of; the two sides of a comparison have different ones.
inline constexpr std::byte kPoison{0xCB};
inline constexpr std::byte kReferencePoison{0x4D};

// How far a result may be from the reference: |a - b| <= absolute * scale + relative * max(|a|,
// |b|), where scale is the largest finite magnitude in the reference output, at least 1; on
// adversarial inputs it is 1, as one huge element must not excuse the others.
//
//   f64 1e-12 1e-9    f32 1e-6 1e-4    f16 1e-3 1e-2    bf16 1e-2 2e-2    f8 0.1 0.15
//
// Integers agree exactly. NaN agrees with NaN, an infinity with the same one.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};
Tolerance tolerance_of(loom::ElementType element);

// Adds what one output says to `agreement`, which begins as {.correct = true}. `elements` and
// `within` count over all outputs.
struct Count {
  uint64_t elements = 0;
  uint64_t within = 0;
};
void compare_output(const BindingSpec& spec, bool adversarial, std::span<const std::byte> found,
                    std::span<const std::byte> expected, Agreement& agreement, Count& count);

}  // namespace hyperloom::workload
