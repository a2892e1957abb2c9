// Modules that no text was read from.
#include "loom/text/printer.h"

#include <gtest/gtest.h>

#include "loom/ir/clone.h"
#include "loom/ir/walk.h"
#include "loom/text/text_test_util.h"

namespace loom {
namespace {

OpId function(const Module& module) { return module.region(module.body()).first; }

TEST(Printer, ClashingNamesGetANumber) {
  Parsed parsed(R"(func.def @f(%x: index, %y_1: index) {
  %y = index.add %x, %y_1 : index
  func.return
}
)");
  Module& module = *parsed.module;
  const RegionId body = module.op_region(function(module), 0);
  const OpId add = module.region(body).first;
  Cloner cloner(module, module);
  module.insert_before(module.op(add).next, cloner.clone(add));
  const std::string text = print_text(module);
  EXPECT_EQ(text, R"(func.def @f(%x: index, %y_1: index) {
  %y = index.add %x, %y_1 : index
  %y_2 = index.add %x, %y_1 : index
  func.return
}
)");
  EXPECT_EQ(Parsed(text).print(), text);
}

TEST(Printer, UnnamedValuesGetTheSmallestFreeNumber) {
  Parsed parsed(R"(func.def @f(%a: index) {
  %b = index.add %a, %a : index
  %0 = index.add %a, %b : index
  %c = index.add %0, %b : index
  func.return
}

func.def @g(%0: index) {
  func.return
}
)");
  Module& module = *parsed.module;
  const RegionId body = module.op_region(function(module), 0);
  module.value(module.args(body)[0]).name = StringId();
  for_each_op(module, body, [&](OpId op) {
    if (module.op(op).result_count == 0) return;
    const ValueId result = module.result(op);
    if (module.name_of(result) != "0") module.value(result).name = StringId();
  });
  EXPECT_EQ(print_text(module), R"(func.def @f(%1: index) {
  %2 = index.add %1, %1 : index
  %0 = index.add %1, %2 : index
  %3 = index.add %0, %2 : index
  func.return
}

func.def @g(%0: index) {
  func.return
}
)");
}

TEST(Printer, OneOperationStandsAtTheMargin) {
  const Parsed parsed(R"(func.def @f(%c: i1) {

  // why
  scf.if %c {
    %x = index.constant 1 : index
  }
  func.return
}
)");
  const Module& module = *parsed.module;
  const OpId branch = module.region(module.op_region(function(module), 0)).first;
  EXPECT_EQ(print_op(module, branch), R"(// why
scf.if %c {
  %x = index.constant 1 : index
}
)");
}

TEST(Printer, BlankLinesSeparateDefinitionsOnly) {
  const Parsed parsed(R"(func.decl @a()
func.decl @b()
// about f

func.def @f() {

  func.return
}
// about c
func.decl @c()



func.decl @d()
)");
  EXPECT_EQ(parsed.print(), R"(func.decl @a()
func.decl @b()

// about f

func.def @f() {
  func.return
}

// about c
func.decl @c()

func.decl @d()
)");
}

}  // namespace
}  // namespace loom
