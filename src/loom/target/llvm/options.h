// Choices that every LLVM target offers.
#pragma once

#include <cstdint>

namespace loom {

enum class DenormalMode : uint8_t {
  Keep,   // gradual underflow
  Flush,  // denormal inputs and results may count as zero
};

enum class OutputForm : uint8_t { Object, LlvmIr, LlvmBitcode, Assembly };

}  // namespace loom
