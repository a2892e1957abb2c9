// Random programs compute the same before and after the passes.
#include <gtest/gtest.h>

#include "loom/pass/canonicalize.h"
#include "loom/pass/cse.h"
#include "pass_harness.h"
#include "random_program.h"

namespace loom {
namespace {

std::vector<ScalarValue> random_arguments(std::mt19937& random) {
  std::vector<ScalarValue> arguments;
  const int64_t small[] = {0, 1, 2, 5, 8, 63, 64, -1, -128, 127};
  const double reals[] = {0.0, -0.0, 1.0, -1.5, 1e30, 0.1};
  for (ScalarKind kind : RandomProgram::kKinds) {
    for (int i = 0; i < 2; ++i) {
      if (is_float(kind)) {
        arguments.push_back(from_double(kind, reals[random() % std::size(reals)]));
      } else {
        const uint64_t wide = random() % 2 == 0 ? static_cast<uint64_t>(small[random() % 10])
                                                : (uint64_t{random()} << 32 | random());
        arguments.push_back(from_bits(kind, kind == ScalarKind::Offset ? wide >> 1 : wide));
      }
    }
  }
  return arguments;
}

// The passes may give a result where the program had none, never a different one.
void expect_same(const std::vector<std::optional<ScalarValue>>& before,
                 const std::vector<std::optional<ScalarValue>>& after, const std::string& text) {
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    if (!before[i]) continue;
    ASSERT_TRUE(after[i]) << "result " << i << " got lost\n" << text;
    if (is_float(before[i]->kind) && is_nan(*before[i]) && is_nan(*after[i])) continue;
    ASSERT_EQ(before[i]->bits, after[i]->bits) << "result " << i << "\n" << text;
  }
}

TEST(Differential, PassesKeepWhatRandomProgramsCompute) {
  std::mt19937 random(11);
  size_t folded = 0;
  for (uint32_t seed = 0; seed < 600; ++seed) {
    SourceFiles files;
    Diagnostics diagnostics;
    Module module(files);
    const OpId function = RandomProgram(module, seed).make(40);
    const std::string source = print_text(module);
    ASSERT_TRUE(verify_module(module, diagnostics)) << source;
    std::vector<std::vector<ScalarValue>> arguments;
    std::vector<std::vector<std::optional<ScalarValue>>> before;
    for (int i = 0; i < 12; ++i) {
      arguments.push_back(random_arguments(random));
      before.push_back(evaluate_program(module, function, arguments.back()));
    }
    PassContext context(module, diagnostics);
    PassRunner runner;
    ASSERT_TRUE(runner.run(context, function, {"canonicalize", "cse", "canonicalize", "dce"}));
    const std::string text = source + "becomes\n" + print_text(module);
    ASSERT_TRUE(verify_module(module, diagnostics)) << diagnostics.all().front().message() << "\n"
                                                    << text;
    folded += text.size() < 2 * source.size() ? 1 : 0;
    for (size_t i = 0; i < arguments.size(); ++i) {
      expect_same(before[i], evaluate_program(module, function, arguments[i]), text);
      if (HasFatalFailure()) return;
    }
  }
  // The passes did something in nearly all of them.
  EXPECT_GT(folded, 500u);
}

TEST(Differential, FixingAnArgumentEqualsCallingWithIt) {
  std::mt19937 random(5);
  for (uint32_t seed = 1000; seed < 1300; ++seed) {
    SourceFiles files;
    Diagnostics diagnostics;
    Module module(files);
    const OpId function = RandomProgram(module, seed).make(30);
    const std::string source = print_text(module);
    const auto arguments = random_arguments(random);
    const auto before = evaluate_program(module, function, arguments);
    // Every integer-like argument gets its value by an `eq` predicate.
    const auto args = module.args(module.op_region(function, 0));
    std::vector<Predicate> where;
    for (size_t i = 0; i < args.size(); ++i) {
      if (is_float(arguments[i].kind)) continue;
      const int64_t value = arguments[i].kind == ScalarKind::I1
                                ? static_cast<int64_t>(arguments[i].bits)
                                : as_signed(arguments[i]);
      where.push_back({PredicateKind::Eq, {PredicateArg::of(args[i]), PredicateArg::of(value)}});
    }
    module.set_attr(function, attr_slot(OpKind::FuncDef, "where"),
                    module.attrs.intern(Attr::predicate_list(where)));
    PassContext context(module, diagnostics);
    ASSERT_TRUE(canonicalize(context, function));
    ASSERT_TRUE(cse(context, function));
    expect_same(before, evaluate_program(module, function, arguments),
                source + "becomes\n" + print_text(module));
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace loom
