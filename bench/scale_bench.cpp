// How time and memory grow with a module: text to a verified module, canonicalized and printed.
//
// usage: bench_scale FILE.loom
// Prints one JSON object: operations, milliseconds of each step, and the bytes that the process
// grew by at its peak beyond the source text.
#include <fmt/core.h>

#include <cstdint>

#include "common.h"
#include "loom/ir/walk.h"
#include "loom/pass/canonicalize.h"
#include "loom/pass/pass_context.h"
#include "loom/text/printer.h"
#include "timing.h"

namespace loom::bench {
namespace {

double milliseconds_since(Clock::time_point start) { return 1e-6 * nanoseconds_since(start); }

int run(const std::string& path) {
  std::string text = read_input(path);
  const uint64_t before = peak_bytes();
  SourceFiles files;
  const Clock::time_point parse_start = Clock::now();
  Module module = load(files, std::move(text), path);
  const double parse = milliseconds_since(parse_start);
  const size_t ops = module.op_count();
  const uint64_t parsed = peak_bytes();

  const Clock::time_point print_start = Clock::now();
  const size_t printed = print_text(module).size();
  const double print = milliseconds_since(print_start);
  require(printed > ops, "the printer printed too little");

  Diagnostics diagnostics;
  PassContext context(module, diagnostics);
  const Clock::time_point canonicalize_start = Clock::now();
  for_each_op(module, module.body(), [&](OpId op) {
    if (module.op(op).region_count != 0) canonicalize(context, op);
  });
  const double canonical = milliseconds_since(canonicalize_start);
  require(!diagnostics.has_errors(), "canonicalize reports errors");
  fmt::print(
      "{{\"ops\":{},\"parse\":{},\"canonicalize\":{},\"print\":{},\"module_bytes_per_op\":{},"
      "\"bytes_per_op\":{}}}\n",
      ops, parse, canonical, print, static_cast<double>(parsed - before) / static_cast<double>(ops),
      static_cast<double>(peak_bytes() - before) / static_cast<double>(ops));
  return 0;
}

}  // namespace
}  // namespace loom::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: bench_scale FILE.loom\n");
    return 2;
  }
  return loom::bench::run(argv[1]);
}
