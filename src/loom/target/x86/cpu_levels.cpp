#include "loom/target/x86/cpu_levels.h"

#include <algorithm>

namespace loom {
namespace {

constexpr uint32_t bits(std::initializer_list<unsigned> places) {
  uint32_t mask = 0;
  for (const unsigned place : places) mask |= 1u << place;
  return mask;
}

// SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT
constexpr uint32_t kLeaf1V2 = bits({0, 9, 13, 19, 20, 23});
// FMA, MOVBE, OSXSAVE, AVX, F16C
constexpr uint32_t kLeaf1V3 = kLeaf1V2 | bits({12, 22, 27, 28, 29});
// BMI1, AVX2, BMI2
constexpr uint32_t kLeaf7V3 = bits({3, 5, 8});
// AVX512F, AVX512DQ, AVX512CD, AVX512BW, AVX512VL
constexpr uint32_t kLeaf7V4 = kLeaf7V3 | bits({16, 17, 28, 30, 31});
constexpr uint32_t kExtendedV2 = bits({0});                // LAHF, SAHF
constexpr uint32_t kExtendedV3 = kExtendedV2 | bits({5});  // LZCNT
constexpr uint32_t kSavesYmm = bits({1, 2});
constexpr uint32_t kSavesZmm = kSavesYmm | bits({5, 6, 7});

constexpr CpuLevel kLevels[] = {
    {"x86-64", 0, 0, 0, 0},
    {"x86-64-v2", kLeaf1V2, 0, kExtendedV2, 0},
    {"x86-64-v3", kLeaf1V3, kLeaf7V3, kExtendedV3, kSavesYmm},
    {"x86-64-v4", kLeaf1V3, kLeaf7V4, kExtendedV3, kSavesZmm},
};

}  // namespace

std::span<const CpuLevel> cpu_levels() { return kLevels; }

const CpuLevel* find_cpu_level(std::string_view name) {
  const auto* const found = std::ranges::find(kLevels, name, &CpuLevel::name);
  return found == std::end(kLevels) ? nullptr : found;
}

}  // namespace loom
