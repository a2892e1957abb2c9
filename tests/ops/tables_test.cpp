// Every operation of the first two tiers that may stand in device code is compiled for x86-64 and
// compared with the interpreter: here, or on random programs (tests/generate).
#include <algorithm>
#include <set>

#include "../generate/generator.h"
#include "cases.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"

namespace loom::ops {
namespace {

using enum OpKind;

// What never reaches a code generator, because the language has it elsewhere. By operation or, with
// a point at the end, by dialect.
struct Elsewhere {
  std::string_view name;
  std::string_view reason;
};
constexpr Elsewhere kElsewhere[] = {
    {"check.", "cases and benchmarks: the host runs them"},
    {"command.", "command programs: prepared to plans, which the runtime issues"},
    {"config.def", "a declaration: config.get is replaced by its value"},
    {"config.decl", "a declaration without a value"},
    {"func.decl", "a declaration: linking gives it a body"},
    {"kernel.decl", "a declaration: linking gives it a body"},
    {"kernel.entry.decl", "a declaration of code that somebody else made"},
    {"kernel.launch", "host side: prepared to a dispatch"},
    {"kernel.dispatch", "host side: a command of a plan"},
    {"kernel.launch.config", "host side: evaluated once per launch, in front of any code"},
    {"module.import", "a declaration: linking resolves it"},
    {"target.decl", "a declaration: linking supplies the target"},
    {"target.generic", "a declaration of a target"},
    {"template.", "expanded before code is made; what it expands to is device code"},
};

bool is_elsewhere(std::string_view name) {
  return std::ranges::any_of(kElsewhere, [&](const Elsewhere& e) {
    return e.name.ends_with('.') ? name.starts_with(e.name) : name == e.name;
  });
}

std::set<OpKind> kinds_in(const Module& module) {
  std::set<OpKind> kinds;
  for_each_op(module, module.body(), [&](OpId symbol) {
    kinds.insert(module.op(symbol).kind);
    for_each_nested(module, symbol, [&](OpId op) { kinds.insert(module.op(op).kind); });
  });
  return kinds;
}

TEST(Tables, EveryOperationOfTheFirstTwoTiersIsTakenByX86) {
  std::set<OpKind> taken;
  for (const Case& one : all_cases()) {
    Program program(one.text);
    ASSERT_TRUE(program.good());
    const std::set<OpKind> kinds = kinds_in(program.module());
    if (std::ranges::includes(taken, kinds)) continue;
    ASSERT_TRUE(program.compiles()) << one.name << '\n' << program.problems << one.text;
    taken.insert(kinds.begin(), kinds.end());
  }
  for (const OpKind kind : kAllOpKinds) {
    const OpInfo& info = op_info(kind);
    if (info.tier == Tier::T3 || is_elsewhere(info.name)) continue;
    EXPECT_TRUE(taken.contains(kind) || generate::Generator::covers(kind))
        << info.name << " is in no kernel that is compiled and compared";
  }
}

// The list of what is elsewhere names nothing else.
TEST(Tables, WhatIsElsewhereExists) {
  for (const Elsewhere& e : kElsewhere) {
    SCOPED_TRACE(e.name);
    EXPECT_TRUE(std::ranges::any_of(kAllOpKinds, [&](OpKind kind) {
      const std::string_view name = op_info(kind).name;
      return e.name.ends_with('.') ? name.starts_with(e.name) : name == e.name;
    }));
    EXPECT_FALSE(e.reason.empty());
  }
}

}  // namespace
}  // namespace loom::ops
