// Programs that are deep or large, and what the passes leave of them.
#include <gtest/gtest.h>

#include "loom/ir/walk.h"
#include "loom/pass/canonicalize.h"
#include "loom/pass/constants.h"
#include "loom/pass/cse.h"
#include "loom/pass/dce.h"
#include "loom/pass/inline.h"
#include "loom/pass/specialize.h"
#include "loom/pass/unroll.h"
#include "pass_harness.h"

namespace loom {
namespace {

constexpr unsigned kDepth = 100000;

size_t nested_ops(const Module& module, OpId root) {
  size_t count = 0;
  for_each_nested(module, root, [&](OpId) { ++count; });
  return count;
}

bool run_all(PassContext& context, OpId root) {
  return inline_calls(context, root) && canonicalize(context, root) && cse(context, root) &&
         unroll(context, root) && canonicalize(context, root) && cse(context, root) &&
         dce(context, root);
}

std::string repeated(const std::string& text, unsigned count) {
  std::string all;
  all.reserve(text.size() * count);
  for (unsigned i = 0; i < count; ++i) all += text;
  return all;
}

std::string nested_loops(unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i) {
    text += "scf.for %i" + std::to_string(i) + " = [%z to %n step %o] {\n";
  }
  return text;
}

TEST(Scale, OpenBranchesMayNestWithoutLimit) {
  TestModule test("func.def @f(%c: i1, %x: f32, %w: view<4xf32>, %i: index) {\n" +
                  repeated("scf.if %c {\n", kDepth) + "view.store %x, %w[%i] : f32, view<4xf32>\n" +
                  repeated("}\n", kDepth) + "func.return\n}\n");
  ASSERT_TRUE(test.module) << test.report();
  PassContext context(*test.module, test.diagnostics);
  const OpId root = test.roots()[0];
  ASSERT_TRUE(run_all(context, root));
  // Inside the first branch the condition is known, so one branch remains.
  EXPECT_EQ(nested_ops(*test.module, root), 3u);
}

TEST(Scale, ScheduleRegionsMayNestWithoutLimit) {
  TestModule test(
      "kernel.entry.decl @e(%b: buffer)\n"
      "command.program.def @p() launch(%b: buffer) {\n%n = index.constant 4 : index\n" +
      repeated("command.serial {\n", kDepth) + "kernel.dispatch @e[%n](%b) : [index](buffer)\n" +
      repeated("}\n", kDepth) + "command.return\n}\n");
  ASSERT_TRUE(test.module) << test.report();
  PassContext context(*test.module, test.diagnostics);
  const OpId root = test.roots()[0];
  ASSERT_TRUE(run_all(context, root));
  EXPECT_EQ(nested_ops(*test.module, root), kDepth + 3);
}

TEST(Scale, LoopsMayNestWithoutLimit) {
  TestModule test(
      "func.def @f(%x: f32, %w: view<4xf32>, %n: index) {\n"
      "%z = index.constant 0 : index\n%o = index.constant 1 : index\n"
      "%k = index.add %z, %o : index\n" +
      nested_loops(kDepth) + "view.store %x, %w[%k] : f32, view<4xf32>\n" +
      repeated("}\n", kDepth) + "func.return\n}\n");
  ASSERT_TRUE(test.module) << test.report();
  PassContext context(*test.module, test.diagnostics);
  const OpId root = test.roots()[0];
  ASSERT_TRUE(run_all(context, root));
  EXPECT_EQ(nested_ops(*test.module, root), kDepth + 4);
}

TEST(Scale, ADeepRegionInsideAnExpandedLoopIsCloned) {
  constexpr unsigned kDeep = 20000;
  TestModule test(
      "kernel.entry.decl @e(%b: buffer)\n"
      "command.program.def @p() launch(%b: buffer) {\n"
      "%z = index.constant 0 : index\n%o = index.constant 1 : index\n"
      "%t = index.constant 3 : index\n"
      "scf.for %i = [%z to %t step %o] {\n" +
      repeated("command.serial {\n", kDeep) + "kernel.dispatch @e[%i](%b) : [index](buffer)\n" +
      repeated("}\n", kDeep) + "}\ncommand.return\n}\n");
  ASSERT_TRUE(test.module) << test.report();
  PassContext context(*test.module, test.diagnostics);
  const OpId root = test.roots()[0];
  ASSERT_TRUE(run_all(context, root));
  std::vector<int64_t> counts;
  for_each_nested(*test.module, root, [&](OpId op) {
    if (test.module->op(op).kind != OpKind::KernelDispatch) return;
    counts.push_back(exact_int(*test.module, test.module->operand(op, 0)).value_or(-1));
  });
  EXPECT_EQ(counts, (std::vector<int64_t>{0, 1, 2}));
}

TEST(Scale, AStackOfLayersBecomesExactDispatches) {
  TestModule test(R"(
func.def pure @k$config(%n: index) -> (index, index, index) {
  %one = index.constant 1 : index
  %round = index.constant 63 : index
  %lanes = index.constant 64 : index
  %p = index.add %n, %round : index
  %g = index.div %p, %lanes : index
  func.return %g, %one, %one : index, index, index
}

kernel.entry.decl @e(%w: view<8xf32>, %b: buffer)

command.program.def @p(%n: index) launch(%r: buffer, %b: buffer) where [range(%n, 1, 1000)] {
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %eight = index.constant 8 : index
  %layers = index.constant 128 : index
  scf.for %layer = [%zero to %layers step %one] unroll {
    scf.for %part = [%zero to %eight step %one] unroll {
      %w = command.parameter %r, "blk.{}.{}.weight"[%layer, %part] : view<8xf32>
      %x, %y, %z = func.call pure @k$config(%n) : (index) -> (index, index, index)
      kernel.dispatch @e[%x, %y, %z](%w, %b) : [index, index, index](view<8xf32>, buffer)
    }
  }
  command.return
}
)");
  ASSERT_TRUE(test.module) << test.report();
  Module& module = *test.module;
  PassContext context(module, test.diagnostics);
  const OpId root = test.roots().back();
  const ValueId n = module.args(module.op_region(root, 0))[0];
  ASSERT_TRUE(bind_value(context, root, n, 130)) << test.report();
  ASSERT_TRUE(run_all(context, root));
  size_t dispatches = 0, parameters = 0, others = 0;
  for_each_nested(module, root, [&](OpId op) {
    switch (module.op(op).kind) {
      case OpKind::KernelDispatch:
        ++dispatches;
        EXPECT_EQ(exact_int(module, module.operand(op, 0)), 3);
        EXPECT_EQ(exact_int(module, module.operand(op, 1)), 1);
        break;
      case OpKind::CommandParameter:
        ++parameters;
        EXPECT_TRUE(exact_int(module, module.operand(op, 1)));
        break;
      case OpKind::IndexConstant:
      case OpKind::CommandReturn:
        break;
      default:
        ++others;
    }
  });
  EXPECT_EQ(dispatches, 1024u);
  EXPECT_EQ(parameters, 1024u);
  EXPECT_EQ(others, 0u);
}

TEST(Scale, ALoopThatLeavesNothingMayBeLong) {
  TestModule test(R"(
func.def @sum() -> (index) {
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %end = index.constant 1000000 : index
  %r = scf.for %i = [%zero to %end step %one](%s = %zero : index) -> (index) unroll {
    %t = index.add %s, %i : index
    scf.yield %t : index
  }
  func.return %r : index
}
)");
  ASSERT_TRUE(test.module) << test.report();
  PassContext context(*test.module, test.diagnostics);
  const OpId root = test.roots()[0];
  ASSERT_TRUE(run_all(context, root)) << test.report();
  const OpId ret = test.module->region(test.module->op_region(root, 0)).last;
  EXPECT_EQ(exact_int(*test.module, test.module->operand(ret, 0)), 499999500000);
  // Intermediate values left no operations behind.
  EXPECT_EQ(nested_ops(*test.module, root), 2u);
}

TEST(Scale, ExponentialCallsAreRefused) {
  std::string text =
      "func.def pure @f0(%n: index) -> (index) {\n  %r = index.mul %n, %n : index\n"
      "  func.return %r : index\n}\n";
  for (int i = 1; i < 40; ++i) {
    const std::string callee = "@f" + std::to_string(i - 1);
    text += "func.def pure @f" + std::to_string(i) +
            "(%n: index) -> (index) {\n  %a = func.call pure " + callee +
            "(%n) : (index) -> (index)\n  %b = func.call pure " + callee +
            "(%a) : (index) -> (index)\n  func.return %b : index\n}\n";
  }
  text +=
      "kernel.entry.decl @e(%b: buffer)\ncommand.program.def @p(%n: index) launch(%b: buffer) {\n"
      "  %x = func.call pure @f39(%n) : (index) -> (index)\n"
      "  kernel.dispatch @e[%x](%b) : [index](buffer)\n  command.return\n}\n";
  TestModule test(text);
  ASSERT_TRUE(test.module) << test.report();
  PassContext context(*test.module, test.diagnostics);
  EXPECT_FALSE(inline_calls(context, test.roots().back(), {.max_operations = 10000}));
  EXPECT_NE(test.report().find("LOWERING/004"), std::string::npos) << test.report();
}

TEST(Scale, RepeatedRunsReuseTheirStorage) {
  TestModule test(R"(
func.def @f(%x: index) -> (index) {
  %one = index.constant 1 : index
  %a = index.add %x, %one : index
  func.return %a : index
}
)");
  ASSERT_TRUE(test.module) << test.report();
  PassContext context(*test.module, test.diagnostics);
  const OpId root = test.roots()[0];
  ASSERT_TRUE(run_all(context, root));
  const size_t ops = test.module->op_count(), values = test.module->value_count();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(run_all(context, root));
  EXPECT_EQ(test.module->op_count(), ops);
  EXPECT_EQ(test.module->value_count(), values);
}

}  // namespace
}  // namespace loom
