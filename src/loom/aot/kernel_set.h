// Kernels as a C program sees them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"

namespace loom {

// One value of a workload or one argument of a launch.
struct CParameter {
  std::string name;       // in C; free within the kernel's functions
  std::string type;       // in C, such as "int64_t" or "const float*"
  std::string loom_type;  // such as "index", "buffer" or "view<[%n]xf32>"
  std::string notes;      // what else is known, such as "read"; may be empty
  bool is_pointer = false;
};

struct CKernel {
  OpId kernel;
  std::string name;                   // of the entry
  std::string symbol;                 // in Loom
  std::vector<std::string> comment;   // what stands above it in the source, line by line
  std::vector<std::string> contract;  // its predicates
  std::vector<CParameter> workload;
  std::vector<CParameter> arguments;  // one for each slot
  // For each argument the workload value that it is, by name and type; -1 where it is none.
  std::vector<int> same_as;
  uint64_t frame_bytes = 0;  // of its largest variant, known when they are compiled
};

// The functions that a header has besides the entry of a kernel.
std::string geometry_name(std::string_view kernel);  // turns a workload into counts and sizes
std::string shape_name(std::string_view kernel);
std::string run_name(std::string_view kernel);
// What the functions of a library begin with: its file's name without "lib" and ending.
std::string library_prefix(std::string_view file_name);

// Verified kernels of `module`, whose access facets are brought up to date. A name that C does not
// take or that two functions would have is TARGET/069; nothing then.
std::optional<std::vector<CKernel>> describe_kernels(Module& module, std::span<const OpId> kernels,
                                                     std::string_view prefix,
                                                     Diagnostics& diagnostics);

}  // namespace loom
