// What the fact analysis says about places of a program.
#include "loom/pass/analysis.h"

#include <gtest/gtest.h>

#include "loom/ir/walk.h"
#include "pass_harness.h"

namespace loom {
namespace {

// Finds values and places by name in the last root of a module.
struct Asked {
  explicit Asked(std::string text) : test(std::move(text)) {
    EXPECT_TRUE(test.module) << test.report();
    root = test.roots().back();
    facts = std::make_unique<FactAnalysis>(*test.module, root);
  }
  ValueId value(std::string_view name) const {
    const Module& m = *test.module;
    for (uint32_t i = 0; i < m.value_count(); ++i) {
      if (m.name_of(ValueId(i)) == name) return ValueId(i);
    }
    ADD_FAILURE() << "no value " << name;
    return {};
  }
  OpId place(std::string_view result) const { return test.module->defining_op(value(result)); }
  std::string at(std::string_view place_of, std::string_view name) const {
    return to_text(facts->at(place(place_of), value(name)));
  }
  StorageFacts storage(std::string_view name) const {
    return facts->storage(place(name), value(name));
  }

  TestModule test;
  OpId root;
  std::unique_ptr<FactAnalysis> facts;
};

TEST(Analysis, FactsHoldWhereTheirConditionsDo) {
  Asked asked(R"(
func.def @f(%n: index, %m: index) -> (index) where [range(%n, 0, 100), mul(%n, 4)] {
  %ten = index.constant 10 : index
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %c = index.cmp slt, %n, %ten : index
  %r = scf.if %c -> (index) {
    %a = index.add %n, %one : index
    scf.yield %a : index
  } else {
    %b = index.add %n, %one : index
    %s = scf.for %i = [%zero to %n step %one](%t = %b : index) -> (index) {
      %u = index.add %t, %i : index
      scf.yield %u : index
    }
    scf.yield %s : index
  }
  %z = index.add %n, %one : index
  %y = index.add %r, %z : index
  func.return %y : index
}
)");
  EXPECT_EQ(asked.at("a", "n"), "[0, 8] mul 4");
  EXPECT_EQ(asked.at("b", "n"), "[12, 100] mul 4");
  EXPECT_EQ(asked.at("z", "n"), "[0, 100] mul 4");
  EXPECT_EQ(asked.at("u", "i"), "[0, 99]");
  EXPECT_EQ(asked.at("a", "a"), "[1, 9]");
  const auto compare = [&](Compare c, const char* a, const char* b, const char* place) {
    return asked.facts->compare(c, asked.value(a), asked.value(b), asked.place(place));
  };
  EXPECT_EQ(compare(Compare::Slt, "n", "a", "a"), true);
  EXPECT_EQ(compare(Compare::Slt, "i", "n", "u"), true);
  EXPECT_EQ(compare(Compare::Slt, "n", "ten", "a"), true);
  EXPECT_EQ(compare(Compare::Slt, "n", "ten", "u"), false);
  EXPECT_EQ(compare(Compare::Slt, "n", "ten", "z"), std::nullopt);
  EXPECT_EQ(compare(Compare::Slt, "n", "m", "a"), std::nullopt);
}

TEST(Analysis, KernelsKnowTheirTopologyStorageAndDistribution) {
  Asked asked(R"(
kernel.def @k(%n: index) {
  %one = index.constant 1 : index
  %lanes = index.constant 64 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%lanes, %one, %one) : index
} launch(%n: index, %x: buffer, %y: buffer) where [range(%n, 1, 1024), mul(%n, 4)] {
  %zero = index.constant 0 : offset
  %far = index.constant 4096 : offset
  %bytes = index.constant 256 : offset
  %i = kernel.workitem.id<x> : index
  %g = kernel.workgroup.id<x> : index
  %size = kernel.workgroup.size<x> : index
  %s = kernel.subgroup.id : index
  %sum = index.add %g, %size : index
  %p, %q = buffer.assume.noalias %x, %y : buffer, buffer
  %al = buffer.assume.alignment %p {minimum_alignment = 64} : buffer
  %v = buffer.view %al[%zero] : buffer -> view<[%n]xf32>
  %w = buffer.view %al[%far] : buffer -> view<16xf32>
  %u = buffer.view %q[%zero] : buffer -> view<16xf32>
  %plain = buffer.view %y[%zero] : buffer -> view<16xf32>
  %other = buffer.view %x[%zero] : buffer -> view<16xf32>
  %t = buffer.alloca<workgroup> align(16) %bytes : buffer
  %tv = buffer.view %t[%zero] : buffer -> view<64xf32>
  %part = view.subview %v[4] : view<[%n]xf32> -> view<4xf32>
  kernel.return
}
)");
  EXPECT_EQ(asked.at("sum", "i"), "[0, 63]");
  EXPECT_EQ(asked.at("sum", "size"), "64");
  EXPECT_EQ(asked.at("sum", "g"), "[0, 4294967294]");
  EXPECT_EQ(asked.facts->distribution(asked.value("i")), Distribution::Lane);
  EXPECT_EQ(asked.facts->distribution(asked.value("s")), Distribution::Subgroup);
  EXPECT_EQ(asked.facts->distribution(asked.value("sum")), Distribution::Workgroup);
  EXPECT_EQ(asked.facts->distribution(asked.value("size")), Distribution::Cluster);

  const StorageFacts v = asked.storage("v"), w = asked.storage("w"), t = asked.storage("tv");
  EXPECT_EQ(v.root, asked.value("x"));
  EXPECT_EQ(v.alignment, 64u);
  EXPECT_EQ(v.space, MemorySpace::Global);
  EXPECT_EQ(to_text(v.bytes), "[16, 4096] mul 16");
  EXPECT_EQ(to_text(w.offset), "4096");
  EXPECT_EQ(t.root, asked.value("t"));
  EXPECT_EQ(t.space, MemorySpace::Workgroup);
  EXPECT_EQ(t.alignment, 16u);
  EXPECT_EQ(to_text(t.root_bytes), "256");
  EXPECT_FALSE(t.nullable);
  EXPECT_EQ(to_text(asked.storage("part").offset), "16");
  EXPECT_EQ(asked.storage("part").alignment, 16u);
  // Behind one another in one root; promised apart; the same storage by another way.
  EXPECT_FALSE(may_overlap(v, w));
  EXPECT_FALSE(may_overlap(v, asked.storage("u")));
  EXPECT_FALSE(may_overlap(v, t));
  EXPECT_TRUE(may_overlap(v, asked.storage("other")));
  EXPECT_TRUE(may_overlap(asked.storage("plain"), asked.storage("other")));
  EXPECT_TRUE(may_overlap(v, asked.storage("part")));
}

TEST(Analysis, AnExtentKnowsWhatItsValueKnows) {
  Asked asked(R"(
func.def @f(%n: index, %w: view<[%n]x8xf32>) -> (index) where [range(%n, 2, 6)] {
  %one = index.constant 1 : index
  %r = index.add %n, %one : index
  func.return %r : index
}
)");
  const OpId place = asked.place("r");
  EXPECT_EQ(to_text(asked.facts->extent(place, asked.value("w"), 0)), "[2, 6]");
  EXPECT_EQ(to_text(asked.facts->extent(place, asked.value("w"), 1)), "8");
}

TEST(Analysis, TheTrueBranchOfATestKnowsTheEncoding) {
  Asked asked(R"(
func.def @f(%e: encoding<layout>, %x: index) -> (index) {
  %c = encoding.isa<#encoding.layout.dense> %e : encoding<layout>
  %r = scf.if %c -> (index) {
    %a = index.add %x, %x : index
    scf.yield %a : index
  } else {
    %b = index.mul %x, %x : index
    scf.yield %b : index
  }
  func.return %r : index
}
)");
  EXPECT_TRUE(asked.facts->encoding(asked.place("a"), asked.value("e")).valid());
  EXPECT_FALSE(asked.facts->encoding(asked.place("b"), asked.value("e")).valid());
}

TEST(Analysis, AskingAnywhereInDeepNestingIsLinear) {
  constexpr unsigned kDepth = 100000;
  std::string text = "func.def @f(%c: i1, %x: index, %w: view<4xindex>, %i: index) {\n";
  for (unsigned i = 0; i < kDepth; ++i) text += "scf.if %c {\n";
  text += "%last = index.add %x, %x : index\n";
  for (unsigned i = 0; i < kDepth; ++i) text += "}\n";
  Asked asked(text + "func.return\n}\n");
  EXPECT_EQ(asked.at("last", "c"), "1");
  const Module& module = *asked.test.module;
  const ValueId x = asked.value("x");
  for_each_nested(module, asked.root, [&](OpId op) { asked.facts->at(op, x); });
}

}  // namespace
}  // namespace loom
