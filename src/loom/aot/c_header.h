// The C header of a library of kernels.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "loom/aot/kernel_set.h"

namespace loom {

struct HeaderParts {
  std::string file_name;            // of the shared object
  std::string prefix;               // library_prefix()
  std::vector<std::string> levels;  // from the lowest
  std::span<const CKernel> kernels;
};

// Text for C99 and C++ that includes nothing of ours: for each kernel what it takes, its entry, and
// functions that take named arguments. Headers of several libraries and kernel_abi.h may be
// included together.
std::string c_header(const HeaderParts& parts);

}  // namespace loom
