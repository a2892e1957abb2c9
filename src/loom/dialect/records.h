// The fixed storage records of the quantized families.
//
// Pure functions; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace loom {

// One element stands for scale * subscale * code - minimum_scale * minimum, without the factors it
// does not have.
struct RecordElement {
  uint16_t scale = 0;          // bits of an f16
  uint16_t minimum_scale = 0;  // bits of an f16
  int32_t code = 0;
  int32_t subscale = 0;
  int32_t minimum = 0;
  bool has_subscale = false;
  bool has_minimum = false;
};
// The elements of whole records in logical order; false when the bytes are not whole records.
bool read_records(std::string_view family, std::span<const uint8_t> bytes,
                  std::vector<RecordElement>& out);

}  // namespace loom
