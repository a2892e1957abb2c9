// Transformations of kernels that change what they cost and not what they mean: each is proven on
// the program text, never measured. What an optimizer chooses from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "loom/api/loom.h"

namespace loom::api {

// A place where a transformation applies, and what may be chosen there.
//
//   unroll             "loop 2"   "2" "4" "8"   takes so many iterations at a time
//   interchange        "loop 1"   "yes"         exchanges the loop with the one directly inside
//   hoist              ""         "yes"         moves what does not change out of loops
//   coarsen            "x"        "2" "4" "8"   one workgroup does the work of so many
//   split_accumulators "loop 3"   "2" "4" "8"   a reduction in so many parts
//
// Loops are counted from 1 in the order of the kernel's text.
struct Rewrite {
  std::string name;
  std::string site;
  std::vector<std::string> values;
  uint32_t line = 0;  // of the loop in its file; 0 where the site is the whole kernel
};

// What applies to the kernel `kernel` (without '@') as it is, in the order of its text; nothing for
// a symbol that is no kernel with a body. Offered does not mean better.
std::vector<Rewrite> list_rewrites(const Module& module, const std::string& kernel);

// The text of the module's file with only the lines of that kernel changed, verified; its own text
// where the module was not read from text, or the kernel shares a line with another symbol. Nothing
// where the rewrite does not apply to the kernel as it is; the messages say why where that is an
// error of the result. Comments inside of the kernel stay with their operations.
std::optional<std::string> apply_rewrite(const Module& module, const std::string& kernel,
                                         const std::string& name, const std::string& site,
                                         const std::string& value, Messages& messages);

}  // namespace loom::api
