#include "loom/dialect/records.h"

#include "loom/dialect/encoding_info.h"

namespace loom {
namespace {

using Bytes = std::span<const uint8_t>;
using Elements = std::vector<RecordElement>;

uint16_t half_at(Bytes record, size_t offset) {
  return static_cast<uint16_t>(record[offset] | record[offset + 1] << 8);
}

int32_t signed_byte(uint8_t byte) { return static_cast<int8_t>(byte); }

void read_q4_0(Bytes record, Elements& out) {
  for (size_t i = 0; i < 32; ++i) {
    const uint8_t byte = record[2 + i % 16];
    const int nibble = i < 16 ? byte & 15 : byte >> 4;
    out.push_back({.scale = half_at(record, 0), .code = nibble - 8});
  }
}

void read_q8_0(Bytes record, Elements& out) {
  for (size_t i = 0; i < 32; ++i) {
    out.push_back({.scale = half_at(record, 0), .code = signed_byte(record[2 + i])});
  }
}

// The 6-bit scale and minimum of sub-block `g`, from the twelve bytes they are packed in.
void unpack_subscales(Bytes s, size_t g, RecordElement& element) {
  if (g < 4) {
    element.subscale = s[g] & 63;
    element.minimum = s[g + 4] & 63;
  } else {
    element.subscale = (s[g + 4] & 15) | (s[g - 4] >> 6) << 4;
    element.minimum = (s[g + 4] >> 4) | (s[g] >> 6) << 4;
  }
}

// q4_k, and q5_k whose fifth bits lie in a plane before the nibbles.
void read_q45_k(Bytes record, bool fifth_bit, Elements& out) {
  const Bytes nibbles = record.subspan(fifth_bit ? 48 : 16);
  for (size_t g = 0; g < 8; ++g) {
    RecordElement element{.scale = half_at(record, 0), .minimum_scale = half_at(record, 2)};
    element.has_subscale = element.has_minimum = true;
    unpack_subscales(record.subspan(4, 12), g, element);
    for (size_t j = 0; j < 32; ++j) {
      const uint8_t byte = nibbles[32 * (g / 2) + j];
      element.code = g % 2 == 0 ? byte & 15 : byte >> 4;
      if (fifth_bit) element.code |= (record[16 + j] >> g & 1) << 4;
      out.push_back(element);
    }
  }
}

void read_q6_k(Bytes record, Elements& out) {
  for (size_t i = 0; i < 256; ++i) {
    const size_t h = i / 128;
    const size_t q = i / 32 % 4;
    const size_t j = i % 32;
    const uint8_t low = record[64 * h + 32 * (q % 2) + j];
    const int nibble = q < 2 ? low & 15 : low >> 4;
    const int upper = record[128 + 32 * h + j] >> (2 * q) & 3;
    out.push_back({.scale = half_at(record, 208),
                   .code = (nibble | upper << 4) - 32,
                   .subscale = signed_byte(record[192 + i / 16]),
                   .has_subscale = true});
  }
}

void read_q8_1_x4(Bytes record, Elements& out) {
  for (size_t i = 0; i < 128; ++i) {
    out.push_back({.scale = half_at(record, 4 * (i / 32)), .code = signed_byte(record[16 + i])});
  }
}

}  // namespace

bool read_records(std::string_view family, Bytes bytes, Elements& out) {
  const EncodingFamilyInfo* info = find_encoding_family(family);
  if (info == nullptr || info->record.bytes == 0 || bytes.size() % info->record.bytes != 0) {
    return false;
  }
  for (size_t begin = 0; begin < bytes.size(); begin += info->record.bytes) {
    const Bytes record = bytes.subspan(begin, info->record.bytes);
    if (family == "ggml.q4_0") {
      read_q4_0(record, out);
    } else if (family == "ggml.q8_0") {
      read_q8_0(record, out);
    } else if (family == "ggml.q4_k" || family == "ggml.q5_k") {
      read_q45_k(record, family == "ggml.q5_k", out);
    } else if (family == "ggml.q6_k") {
      read_q6_k(record, out);
    } else {
      read_q8_1_x4(record, out);
    }
  }
  return true;
}

}  // namespace loom
