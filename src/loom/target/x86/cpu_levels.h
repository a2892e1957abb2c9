// The levels of x86-64 processors that code is made for ahead of time: the psABI's, and one above.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace loom {

// A processor is of a level when it has all of these bits of `cpuid` and its operating system saves
// the registers of these bits of XCR0.
struct CpuLevel {
  std::string_view name;
  std::string_view cpu;       // LLVM's name of a processor with all or most of that
  std::string_view features;  // LLVM's flags of the rest
  uint32_t leaf_1_ecx = 0;
  uint32_t leaf_7_ebx = 0;
  uint32_t leaf_7_ecx = 0;
  uint32_t leaf_7_1_eax = 0;  // leaf 7, subleaf 1
  uint32_t leaf_80000001_ecx = 0;
  uint32_t xcr0 = 0;
};

// From the lowest; each holds the ones before it.
std::span<const CpuLevel> cpu_levels();
// Null where there is none of that name.
const CpuLevel* find_cpu_level(std::string_view name);

}  // namespace loom
