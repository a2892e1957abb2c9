// What an optimizer asks of modules and of compiled code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "loom/api/loom.h"

namespace loom::api {

// A key of a module's configuration, with everything that restricts its values.
struct ConfigKey {
  std::string key;                      // without '@'
  std::string type;                     // "index", "i32", "f32", "i1", an encoding
  std::optional<std::string> value;     // of a `config.def`, as written there
  std::vector<std::string> predicates;  // "ge(%value, 1)", canonical text, of all declarations
  // The same as numbers, for integer types, as far as the predicates compare with literals.
  std::optional<int64_t> minimum;
  std::optional<int64_t> maximum;
  int64_t multiple_of = 1;
  bool power_of_two = false;
  std::string file;  // where it is defined, else declared; empty of bytecode without places
  uint32_t line = 0;
};
// In module order; a key that is both declared and defined is one row.
std::vector<ConfigKey> configuration(const Module& module);

// Where a symbol stands in the source that the module was read from. Its text is the lines `line`
// to `end_line`, both from 1.
struct SourcePlace {
  std::string symbol;  // without '@'
  std::string kind;    // as Symbol::kind
  std::string file;
  uint32_t line = 0;
  uint32_t end_line = 0;
};
// Symbols without a place in a text are left out.
std::vector<SourcePlace> source_places(const Module& module);

// Arithmetic of one workgroup of a kernel, the least that any launch does: sums, products, minima
// and the like count as one a lane, fused multiply-adds as two; what lies in branches does not
// count.
struct KernelWork {
  std::string kernel;  // without '@'
  uint64_t f32 = 0;
  uint64_t f64 = 0;
  uint64_t i32 = 0;
  uint64_t i64 = 0;
};
// Of every kernel with a body, in module order.
std::vector<KernelWork> kernel_work(const LinkedModule& module);

// sha256 over the machine code of every entry of the plan, in the plan's order: equal values run
// the same instructions. Of code that was supplied from outside only that it is counts.
std::string code_hash(const Executables& executables);

}  // namespace loom::api
