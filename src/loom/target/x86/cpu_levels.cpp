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

constexpr uint32_t kVnni = bits({11});
constexpr uint32_t kBf16 = bits({5});

constexpr CpuLevel kLevels[] = {
    {.name = "x86-64", .cpu = "x86-64"},
    {.name = "x86-64-v2",
     .cpu = "x86-64-v2",
     .leaf_1_ecx = kLeaf1V2,
     .leaf_80000001_ecx = kExtendedV2},
    {.name = "x86-64-v3",
     .cpu = "x86-64-v3",
     .leaf_1_ecx = kLeaf1V3,
     .leaf_7_ebx = kLeaf7V3,
     .leaf_80000001_ecx = kExtendedV3,
     .xcr0 = kSavesYmm},
    {.name = "x86-64-v4",
     .cpu = "x86-64-v4",
     .leaf_1_ecx = kLeaf1V3,
     .leaf_7_ebx = kLeaf7V4,
     .leaf_80000001_ecx = kExtendedV3,
     .xcr0 = kSavesZmm},
    // Dot products of bf16 and i8.
    {.name = "x86-64-v4-dot",
     .cpu = "x86-64-v4",
     .features = "+avx512vnni,+avx512bf16",
     .leaf_1_ecx = kLeaf1V3,
     .leaf_7_ebx = kLeaf7V4,
     .leaf_7_ecx = kVnni,
     .leaf_7_1_eax = kBf16,
     .leaf_80000001_ecx = kExtendedV3,
     .xcr0 = kSavesZmm},
};

}  // namespace

std::span<const CpuLevel> cpu_levels() { return kLevels; }

const CpuLevel* find_cpu_level(std::string_view name) {
  const auto* const found = std::ranges::find(kLevels, name, &CpuLevel::name);
  return found == std::end(kLevels) ? nullptr : found;
}

}  // namespace loom
