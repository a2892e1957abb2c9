// Each rewrite gives a kernel that means what it meant: both run on the interpreter.
#include "loom/api/rewrites.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "api_test.h"
#include "loom/api/reference_run.h"

namespace loom {
namespace {

// One kernel over buffers of 64 words, with its launch.
std::string program(const std::string& config, const std::string& body) {
  return "// What stands in front stays.\n"
         "kernel.def @k(%n: index) {\n" +
         config +
         "} launch(%a0: buffer, %b0: buffer, %c0: buffer) {\n"
         "  %base = index.constant 0 : offset\n"
         "  %zero = index.constant 0 : index\n"
         "  %step = index.constant 1 : index\n"
         "  %five = index.constant 5 : index\n"
         "  %eleven = index.constant 11 : index\n"
         "  %a, %b, %c = buffer.assume.noalias %a0, %b0, %c0 : buffer, buffer, buffer\n" +
         body +
         "  kernel.return\n"
         "}\n"
         "\n"
         "// And what stands behind.\n"
         "command.program.def public @run() launch(%a: buffer, %b: buffer, %c: buffer) {\n"
         "  %twelve = index.constant 12 : index\n"
         "  kernel.launch @k[%twelve](%a, %b, %c) : [index](buffer, buffer, buffer)\n"
         "  command.return\n"
         "}\n";
}

const std::string kOne =
    "  %one = index.constant 1 : index\n"
    "  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%one, %one, %one) : "
    "index\n";
const std::string kAll =
    "  %one = index.constant 1 : index\n"
    "  %m = index.assume %n [mul(%n, 4)] : index\n"
    "  kernel.launch.config workgroups(%m, %one, %one) workgroup_size(%one, %one, %one) : index\n";

const std::string kViews =
    "  %x = buffer.view %a[%base] : buffer -> view<5x11xi32>\n"
    "  %y = buffer.view %b[%base] : buffer -> view<11xi32>\n"
    "  %z = buffer.view %c[%base] : buffer -> view<5x11xi32>\n";

// z[i, j] += x[i, j] * y[j], with the columns outside.
const std::string kMatrix = kViews +
                            "  scf.for %j = [%zero to %eleven step %step] {\n"
                            "    // y is loaded once a column\n"
                            "    %v = view.load %y[%j] : view<11xi32> -> i32\n"
                            "    scf.for %i = [%zero to %five step %step] {\n"
                            "      %u = view.load %x[%i, %j] : view<5x11xi32> -> i32\n"
                            "      %w = view.load %z[%i, %j] : view<5x11xi32> -> i32\n"
                            "      %p = scalar.muli %u, %v : i32\n"
                            "      %s = scalar.addi %w, %p : i32\n"
                            "      view.store %s, %z[%i, %j] : i32, view<5x11xi32>\n"
                            "    }\n"
                            "  }\n";

// c[0] = sum of a, of which only the last `skip` words are left out.
std::string sum(const std::string& add, const std::string& type, const std::string& zero) {
  return "  %x = buffer.view %a[%base] : buffer -> view<55x" + type +
         ">\n"
         "  %z = buffer.view %c[%base] : buffer -> view<1x" +
         type +
         ">\n"
         "  %end = index.constant 53 : index\n"
         "  %none = scalar.constant " +
         zero + " : " + type +
         "\n"
         "  %sum = scf.for %i = [%zero to %end step %step](%total = %none : " +
         type + ") -> (" + type +
         ") {\n"
         "    %v = view.load %x[%i] : view<55x" +
         type + "> -> " + type +
         "\n"
         "    %next = " +
         add + " : " + type +
         "\n"
         "    scf.yield %next : " +
         type +
         "\n"
         "  }\n"
         "  view.store %sum, %z[%zero] : " +
         type + ", view<1x" + type + ">\n";
}

// c[i] = a[i] + 7 for the twelve workgroups; the constant is made in each.
const std::string kElements =
    "  %id = kernel.workgroup.id<x> : index\n"
    "  %x = buffer.view %a[%base] : buffer -> view<55xi32>\n"
    "  %z = buffer.view %c[%base] : buffer -> view<55xi32>\n"
    "  %seven = scalar.constant 7 : i32\n"
    "  %v = view.load %x[%id] : view<55xi32> -> i32\n"
    "  %s = scalar.addi %v, %seven : i32\n"
    "  view.store %s, %z[%id] : i32, view<55xi32>\n";

using Words = std::array<int32_t, 64>;

// What the three buffers hold after a run that began with the words of the seed.
std::array<Words, 3> run(const std::string& text, uint32_t seed, bool floats) {
  std::array<Words, 3> words{};
  for (Words& buffer : words) {
    for (int32_t& word : buffer) {
      seed = seed * 1664525 + 1013904223;
      const float value = static_cast<float>(seed >> 8) / 65536.0F;
      word = static_cast<int32_t>(seed);
      if (floats) std::memcpy(&word, &value, sizeof word);
    }
  }
  const api::Context context;
  api::Messages messages(context);
  api::Modules inputs(context);
  EXPECT_TRUE(inputs.add(text, "program", messages)) << messages.text() << text;
  const auto linked = api::link(inputs, {}, {.roots = {"run"}}, messages);
  EXPECT_TRUE(linked) << messages.text();
  if (!linked) return words;
  const std::array<api::NamedStorage, 3> rows = {{{"a", loom::storage(words[0])},
                                                  {"b", loom::storage(words[1])},
                                                  {"c", loom::storage(words[2])}}};
  EXPECT_EQ(api::run_reference(*linked, "run", rows, {}, 1u << 20, messages),
            api::ReferenceOutcome::Done)
      << messages.text() << text;
  return words;
}

std::vector<api::Rewrite> list(const std::string& text) {
  const api::Context context;
  api::Messages messages(context);
  const auto module = api::Module::read(context, text, "program.loom", messages);
  EXPECT_TRUE(module) << messages.text();
  return module ? api::list_rewrites(*module, "k") : std::vector<api::Rewrite>();
}

std::vector<std::string> names(const std::string& text) {
  std::vector<std::string> result;
  for (const api::Rewrite& row : list(text)) {
    result.push_back(row.site.empty() ? row.name : row.name + " " + row.site);
  }
  return result;
}

std::optional<std::string> apply(const std::string& text, const std::string& name,
                                 const std::string& site, const std::string& value) {
  const api::Context context;
  api::Messages messages(context);
  const auto module = api::Module::read(context, text, "program.loom", messages);
  EXPECT_TRUE(module) << messages.text();
  auto result = api::apply_rewrite(*module, "k", name, site, value, messages);
  EXPECT_FALSE(messages.has_errors()) << messages.text();
  return result;
}

// Every rewrite with every value keeps the meaning, and changes the kernel's lines alone.
void expect_same_meaning(const std::string& text, bool floats = false) {
  for (const api::Rewrite& row : list(text)) {
    for (const std::string& value : row.values) {
      const auto changed = apply(text, row.name, row.site, value);
      ASSERT_TRUE(changed) << row.name << " " << row.site << " " << value;
      EXPECT_NE(*changed, text) << row.name;
      EXPECT_TRUE(changed->starts_with("// What stands in front stays.\nkernel.def @k"))
          << *changed;
      EXPECT_TRUE(changed->ends_with(text.substr(text.find("// And what stands behind."))));
      for (uint32_t seed = 1; seed < 5; ++seed) {
        const auto before = run(text, seed, floats), after = run(*changed, seed, floats);
        if (!floats) {
          EXPECT_EQ(before, after) << row.name << " " << row.site << " " << value << "\n"
                                   << *changed;
          continue;
        }
        float a = 0, b = 0;
        std::memcpy(&a, before[2].data(), sizeof a);
        std::memcpy(&b, after[2].data(), sizeof b);
        EXPECT_NEAR(a, b, std::abs(a) * 1e-5) << *changed;
      }
    }
  }
}

using Names = std::vector<std::string>;

TEST(Rewrites, LoopsThatTouchEachElementByOnePairAreInterchanged) {
  const std::string text = program(kOne, kMatrix);
  EXPECT_EQ(names(text), (Names{"interchange loop 1", "unroll loop 1", "unroll loop 2"}));
  EXPECT_EQ(list(text)[0].line, 15u);
  const auto changed = apply(text, "interchange", "loop 1", "yes");
  ASSERT_TRUE(changed);
  EXPECT_LT(changed->find("scf.for %i"), changed->find("scf.for %j"));
  EXPECT_NE(changed->find("// y is loaded once a column"), std::string::npos);
  expect_same_meaning(text);
}

TEST(Rewrites, ASumAlongTheInnerLoopKeepsItsOrder) {
  // z[0, j] -= x[i, j] * ...: the elements of a column meet in one, in the order of i.
  std::string body = kMatrix;
  for (size_t at = 0; (at = body.find("%z[%i, %j]", at)) != std::string::npos;) {
    body.replace(at, 10, "%z[%zero, %j]");
  }
  EXPECT_EQ(names(program(kOne, body))[0], "interchange loop 1");
  expect_same_meaning(program(kOne, body));
}

TEST(Rewrites, LoopsThatMeetAcrossBothAreNotInterchanged) {
  const auto is_offered = [](const std::string& text) {
    const Names all = names(text);
    return std::ranges::find(all, "interchange loop 1") != all.end();
  };
  // All iterations in one element.
  std::string one = kMatrix;
  for (size_t at = 0; (at = one.find("%z[%i, %j]", at)) != std::string::npos;) {
    one.replace(at, 10, "%z[%zero, %zero]");
  }
  EXPECT_FALSE(is_offered(program(kOne, one)));
  // A diagonal of them.
  std::string diagonal = kMatrix;
  for (size_t at = 0; (at = diagonal.find("%z[%i, %j]", at)) != std::string::npos;) {
    diagonal.replace(at, 10, "%z[%zero, %d]");
  }
  const std::string load = "      %u = view.load";
  diagonal.insert(diagonal.find(load),
                  "      %d0 = index.add %i, %j : index\n"
                  "      %ten = index.constant 10 : index\n"
                  "      %d = index.min %d0, %ten : index\n");
  EXPECT_FALSE(is_offered(program(kOne, diagonal)));
  // Neighbours that another iteration writes.
  std::string neighbour = kMatrix;
  neighbour.replace(neighbour.find("%w = view.load %z[%i, %j]"), 25,
                    "%w = view.load %z[%i, %zero]");
  EXPECT_FALSE(is_offered(program(kOne, neighbour)));
  // Buffers that may be one.
  std::string alias = program(kOne, kMatrix);
  const std::string promise =
      "  %a, %b, %c = buffer.assume.noalias %a0, %b0, %c0 : buffer, buffer, buffer\n";
  alias.erase(alias.find(promise), promise.size());
  for (const char* name : {"%a", "%b", "%c"}) {
    const std::string view = std::string("buffer.view ") + name + "[";
    alias.replace(alias.find(view), view.size(), std::string("buffer.view ") + name + "0[");
  }
  EXPECT_FALSE(is_offered(alias));
  // Carried values.
  EXPECT_FALSE(is_offered(program(kOne, sum("scalar.addi %total, %v", "i32", "0"))));
  EXPECT_FALSE(apply(program(kOne, one), "interchange", "loop 1", "yes"));
}

TEST(Rewrites, ReductionsOfIntegersAreSplit) {
  for (const char* add :
       {"scalar.addi %total, %v", "scalar.addi %v, %total", "scalar.muli %total, %v",
        "scalar.xori %v, %total", "scalar.andi %total, %v", "scalar.ori %total, %v"}) {
    const std::string zero = std::string(add).find("andi") == std::string::npos ? "3" : "-1";
    const std::string text = program(kOne, sum(add, "i32", zero));
    EXPECT_EQ(names(text), (Names{"unroll loop 1", "split_accumulators loop 1"})) << add;
    expect_same_meaning(text);
  }
}

TEST(Rewrites, ReductionsOfFloatsAreSplitWhereReassociationIsAllowed) {
  const std::string free = program(kOne, sum("scalar.addf<reassoc> %total, %v", "f32", "0.0"));
  EXPECT_EQ(names(free), (Names{"unroll loop 1", "split_accumulators loop 1"}));
  expect_same_meaning(free, true);
  const std::string strict = program(kOne, sum("scalar.addf %total, %v", "f32", "0.0"));
  EXPECT_EQ(names(strict), Names{"unroll loop 1"});
  EXPECT_EQ(names(program(kOne, sum("scalar.addi<nsw> %total, %v", "i32", "0"))),
            Names{"unroll loop 1"});
  EXPECT_EQ(names(program(kOne, sum("scalar.subi %total, %v", "i32", "0"))),
            Names{"unroll loop 1"});
}

TEST(Rewrites, WorkgroupsOfOneWorkitemAreMergedWhereTheContractDividesThem) {
  const std::string text = program(kAll, kElements);
  const auto rows = list(text);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].name, "coarsen");
  EXPECT_EQ(rows[0].values, (Names{"2", "4"}));
  expect_same_meaning(text);
}

TEST(Rewrites, AnExactCountIsGuardedAtItsEnd) {
  std::string config = kAll;
  config.insert(0, "  %ten = index.constant 10 : index\n");
  config.replace(config.find("workgroups(%m"), 13, "workgroups(%ten");
  const std::string text = program(config, kElements);
  EXPECT_EQ(list(text)[0].values, (Names{"2", "4", "8"}));
  expect_same_meaning(text);
}

TEST(Rewrites, WorkgroupsThatKnowOfEachOtherAreNotMerged) {
  const std::string asks = "  %count = kernel.workgroup.count<x> : index\n";
  EXPECT_EQ(names(program(kAll, kElements + asks)), Names());
  std::string two = kAll;
  two.insert(0, "  %two = index.constant 2 : index\n");
  two.replace(two.find("workgroup_size(%one"), 19, "workgroup_size(%two");
  EXPECT_EQ(names(program(two, kElements)), Names());
}

TEST(Rewrites, WhatDoesNotChangeIsMovedOutOfLoops) {
  std::string body = kMatrix;
  const std::string load = "      %u = view.load";
  body.insert(body.find(load),
              "      %k0 = scalar.constant 9 : i32\n      %k = scalar.muli %v, %k0 : i32\n");
  body.replace(body.find("scalar.muli %u, %v"), 18, "scalar.muli %u, %k");
  const std::string text = program(kOne, body);
  const Names all = names(text);
  EXPECT_EQ(all.back(), "hoist");
  expect_same_meaning(text);
}

TEST(Rewrites, WhatDoesNotApplyIsNoText) {
  const std::string text = program(kOne, kMatrix);
  EXPECT_FALSE(apply(text, "unroll", "loop 3", "2"));
  EXPECT_FALSE(apply(text, "unroll", "loop 1", "3"));
  EXPECT_FALSE(apply(text, "unroll", "loop x", "2"));
  EXPECT_FALSE(apply(text, "fuse", "loop 1", "yes"));
  EXPECT_FALSE(apply(text, "hoist", "loop 1", "yes"));
  const auto once = apply(text, "unroll", "loop 1", "2");
  ASSERT_TRUE(once);
  EXPECT_NE(once->find("unroll("), std::string::npos) << *once;
  EXPECT_FALSE(apply(*once, "unroll", "loop 1", "2"));
  const api::Context context;
  api::Messages messages(context);
  const auto module = api::Module::read(context, text, "m", messages);
  EXPECT_TRUE(api::list_rewrites(*module, "run").empty());
  EXPECT_TRUE(api::list_rewrites(*module, "none").empty());
}

}  // namespace
}  // namespace loom
