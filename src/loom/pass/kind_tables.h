// Effect and traits of operation kinds as constants: sweeps ask for them once or more an operation.
#pragma once

#include "loom/dialect/op_info.h"

namespace loom {
namespace detail {
using namespace trait;
inline constexpr uint32_t kKindTraits[] = {
#define LOOM_OP(name, text, tier, effect, traits, operands, results, attrs, regions, format, doc) \
  traits,
#include "loom/dialect/ops.def"
};
inline constexpr Effect kKindEffects[] = {
#define LOOM_OP(name, text, tier, effect, traits, operands, results, attrs, regions, format, doc) \
  Effect::effect,
#include "loom/dialect/ops.def"
};
}  // namespace detail

constexpr bool kind_has(OpKind kind, uint32_t traits) {
  return (detail::kKindTraits[static_cast<size_t>(kind)] & traits) != 0;
}
constexpr Effect effect_of(OpKind kind) { return detail::kKindEffects[static_cast<size_t>(kind)]; }

}  // namespace loom
