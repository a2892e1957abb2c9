// Numbers of the segment encoding that writer and reader share.
#pragma once

#include <cstdint>

namespace loom {

// First number of a constant. Attributes follow as kAttrConstant + AttrKind.
inline constexpr uint8_t kScalarConstant = 0;
inline constexpr uint8_t kOpaqueConstant = 1;
inline constexpr uint8_t kShapedConstant = 2;
inline constexpr uint8_t kAttrConstant = 16;

// Bits of an operation's flags.
inline constexpr uint32_t kOpHasLocation = 1;
inline constexpr uint32_t kOpHasTrivia = 2;
// Bits of a region's flags.
inline constexpr uint32_t kRegionHasBody = 1;
inline constexpr uint32_t kRegionHasTrivia = 2;

}  // namespace loom
