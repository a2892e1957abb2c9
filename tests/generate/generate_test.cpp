// Random programs survive text -> bytecode -> text, and every operation that random programs can
// hold occurs in them.
//
// LOOM_GENERATE_PROGRAMS=N makes N programs of each property instead of the usual number, and
// LOOM_GENERATE_FIRST=N begins with those of the seed N.
#include <gtest/gtest.h>

#include "generator.h"
#include "loom/bytecode/bytecode.h"
#include "loom/diag/render.h"
#include "loom/dialect/verify.h"
#include "loom/text/parser.h"
#include "loom/text/printer.h"
#include "program_count.h"

namespace loom::generate {
namespace {

std::string report(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics.all()) {
    out += diag_code(d.id) + " " + d.message() + "\n";
  }
  return out;
}

TEST(Generate, ProgramsSurviveTextAndBytecode) {
  std::set<OpKind> used;
  for (const uint64_t seed : program_seeds(1500)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SourceFiles files;
    Diagnostics diagnostics;
    Module module(files);
    Generator generator(module, seed, {});
    generator.run();
    used.insert(generator.used().begin(), generator.used().end());
    const std::string text = print_text(module);
    ASSERT_TRUE(verify_module(module, diagnostics)) << report(diagnostics) << text;
    auto parsed = parse_text(files, files.add_text("generated.loom", text), diagnostics);
    ASSERT_TRUE(parsed && verify_module(*parsed, diagnostics)) << report(diagnostics) << text;
    ASSERT_EQ(print_text(*parsed), text);
    auto read = read_bytecode(files, write_bytecode(*parsed), "generated.loombc", diagnostics);
    ASSERT_TRUE(read && verify_module(*read, diagnostics)) << report(diagnostics) << text;
    ASSERT_EQ(print_text(*read), text);
  }
  if (program_count(1500) < 1500) return;  // too few for every operation
  for (const OpKind kind : kAllOpKinds) {
    EXPECT_TRUE(!Generator::covers(kind) || used.contains(kind))
        << op_info(kind).name << " occurs in no program";
  }
}

}  // namespace
}  // namespace loom::generate
