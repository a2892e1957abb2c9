// Programs are in tests/fixtures/text, in canonical form.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/text/scatter_test_util.h"
#include "loom/text/text_test_util.h"

namespace loom {
namespace {

TEST(RoundTrip, CanonicalTextIsUnchanged) {
  ASSERT_GE(text_fixtures().size(), 8u);
  for (const Fixture& fixture : text_fixtures()) {
    EXPECT_EQ(Parsed(fixture.text).print(), fixture.text) << fixture.name;
  }
}

TEST(RoundTrip, FixturesHoldEveryOperation) {
  std::set<OpKind> seen;
  for (const Fixture& fixture : text_fixtures()) {
    const Parsed parsed(fixture.text);
    ASSERT_TRUE(parsed.module) << parsed.errors();
    for_each_op(*parsed.module, parsed.module->body(), [&](OpId op) {
      seen.insert(parsed.module->op(op).kind);
      for_each_nested(*parsed.module, op,
                      [&](OpId nested) { seen.insert(parsed.module->op(nested).kind); });
    });
  }
  seen.insert(OpKind::CommandYield);  // never kept, see ImplicitTerminatorsAreDropped
  for (size_t i = 0; i < kOpKindCount; ++i) {
    EXPECT_TRUE(seen.contains(static_cast<OpKind>(i))) << op_info(static_cast<OpKind>(i)).name;
  }
}

std::string without_comments_and_blank_lines(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    line = line.substr(0, line.find("//"));
    while (line.ends_with(' ')) line.pop_back();
    if (!line.empty()) out += line + "\n";
    at = end + 1;
  }
  return out;
}

// Every comment that scatter() made stands there once.
bool each_comment_once(const std::string& text, size_t comments) {
  for (size_t i = 0; i < comments; ++i) {
    const std::string comment = "// comment " + std::to_string(i) + "\n";
    const size_t at = text.find(comment);
    if (at == std::string::npos || text.find(comment, at + 1) != std::string::npos) return false;
  }
  return true;
}

TEST(RoundTrip, LayoutOfTheInputDoesNotMatter) {
  for (const Fixture& fixture : text_fixtures()) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      size_t comments = 0;
      const Parsed parsed(scatter(fixture.text, seed, comments));
      ASSERT_TRUE(parsed.module) << fixture.name << " " << seed << "\n" << parsed.errors();
      const std::string once = parsed.print();
      EXPECT_EQ(Parsed(once).print(), once) << fixture.name << " " << seed;
      EXPECT_TRUE(each_comment_once(once, comments)) << fixture.name << " " << seed << "\n" << once;
      EXPECT_EQ(without_comments_and_blank_lines(once),
                without_comments_and_blank_lines(fixture.text));
    }
  }
}

TEST(RoundTrip, ImplicitTerminatorsAreDropped) {
  const Parsed parsed(R"(command.program.def @p() launch() {
  command.serial {
    // kept
    command.yield // also kept
  }
  command.return
}
)");
  EXPECT_EQ(parsed.print(), R"(command.program.def @p() launch() {
  command.serial {
    // kept
    // also kept
  }
  command.return
}
)");
}

TEST(RoundTrip, OlderSpellingsAreReadAndPrintedAsCurrentOnes) {
  const Parsed parsed(R"(kernel.decl @k() launch(%x: buffer)
func.def @f(%x: buffer, %n: offset) {
  kernel.launch @k[](%x) : [](buffer)
  kernel.barrier<workgroup> {ordering = acq_rel, scope = workgroup}
  %a = buffer.alloca %n {base_alignment = 64, memory_space = private} : buffer
  %b = buffer.assume.memory_space %a {memory_space = private} : buffer
  func.return
}
)");
  EXPECT_EQ(parsed.print(), R"(kernel.decl @k() launch(%x: buffer)

func.def @f(%x: buffer, %n: offset) {
  kernel.launch @k(%x) : (buffer)
  kernel.barrier<workgroup> scope(workgroup) ordering(acq_rel)
  %a = buffer.alloca<private> align(64) %n : buffer
  %b = buffer.assume.memory_space<private> %a : buffer
  func.return
}
)");
}

TEST(RoundTrip, NumbersAndStringsAreNormalized) {
  const Parsed parsed(R"(config.def @a = 0x10 : index
config.def @b = 1e3 : f32
config.def @c = 0.50 : f32
config.def @d = nan : f32
func.def export("\u0041\/\u00e9") @f() {
  func.return loc("f.py":1:2)
}
)");
  EXPECT_EQ(parsed.print(), R"(config.def @a = 16 : index
config.def @b = 1000.0 : f32
config.def @c = 0.5 : f32
config.def @d = nan : f32

func.def export("A/é") @f() {
  func.return
}
)");
}

TEST(RoundTrip, EncodingAliasesStandForTheirEncoding) {
  const Parsed parsed(R"(#rows = #encoding.layout.strided<strides=[8, 1]>
func.decl @f(%v: view<4x8xf32, #rows>)
)");
  EXPECT_EQ(parsed.print(),
            "func.decl @f(%v: view<4x8xf32, #encoding.layout.strided<strides=[8, 1]>>)\n");
}

void expect_deep(const std::string& open, const std::string& before, const std::string& last) {
  constexpr size_t kDepth = 100000;
  std::string text = before + "\n";
  for (size_t i = 0; i < kDepth; ++i) text += open;
  for (size_t i = 0; i < kDepth; ++i) text += "}";
  text += last + "}";
  const Parsed parsed(text);
  ASSERT_TRUE(parsed.module) << parsed.errors();
  EXPECT_EQ(parsed.module->op_count(), kDepth + 2);
  const std::string printed = parsed.print();
  EXPECT_TRUE(printed.starts_with(before + "\n  " + open + "\n    " + open + "\n"));
  EXPECT_TRUE(printed.ends_with("\n    }\n  }\n  " + last + "\n}\n"));
  EXPECT_LT(printed.size(), kDepth * 500);  // indentation stops growing
}

TEST(RoundTrip, NestingCostsNoStack) {
  expect_deep("scf.if %c {", "func.def @f(%c: i1) {", "func.return");
  expect_deep("command.serial {", "command.program.def @p() launch() {", "command.return");
}

}  // namespace
}  // namespace loom
