// The levels of x86-64 processors that the psABI names.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace loom {

// A processor is of a level when it has all of these bits of `cpuid` and its operating system saves
// the registers of these bits of XCR0.
struct CpuLevel {
  std::string_view name;  // also LLVM's name of a processor with just that
  uint32_t leaf_1_ecx;
  uint32_t leaf_7_ebx;
  uint32_t leaf_80000001_ecx;
  uint32_t xcr0;
};

// From the lowest; each holds the ones before it.
std::span<const CpuLevel> cpu_levels();
// Null where there is none of that name.
const CpuLevel* find_cpu_level(std::string_view name);

}  // namespace loom
