// Several variants of each kernel in one library, of which loading it chooses one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/target/x86/cpu_levels.h"

namespace loom {

// The ending of the entries of a level, which X86Options::variant takes.
std::string variant_ending(const CpuLevel& level);

struct VariantChoice {
  std::string prefix;                   // of the functions that know of levels
  std::string library;                  // what a message calls the library
  std::vector<std::string> kernels;     // names of the entries; none is a part of LLVM's syntax
  std::vector<const CpuLevel*> levels;  // from the lowest, at least one
  std::string contracts;                // kernel_contracts() of the entries
};

// A module in LLVM's text (X86Codegen::assemble) that defines each kernel as a jump to the variant
// that was chosen, and
//
//   const char* PREFIX_cpu_level(void)               the level in use; null where the processor is
//                                                    below all of them, and kernels then trap
//                                                    behind a message on standard error
//   int PREFIX_use_cpu_level(const char* level)      1, or 0 where the library has no such level or
//                                                    the processor is below it; null is the best
//
// It needs an object for each level, compiled with that level's ending. Nothing of the C library.
std::string variant_choice_text(const VariantChoice& choice);

}  // namespace loom
