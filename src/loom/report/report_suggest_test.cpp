#include "loom/report/report_suggest.h"

#include <gtest/gtest.h>

#include <set>

namespace loom {
namespace {

// A report that gives every rule its evidence.
Report with_everything() {
  Report report;
  report.identity.set(FieldId::Cpu, "x86-64");
  ReportFields& kernel = report.add("kernel", "k").fields;
  kernel.set(FieldId::Spills, uint64_t{4});
  kernel.set(FieldId::Reloads, uint64_t{9});
  kernel.count(FieldId::VectorInstructions, "128", 6);
  kernel.add_texts(FieldId::Templates, {"k.loom:9:3", "f", "fast", "2", "unknown", "mul(%n, 8)"});
  kernel.add_texts(FieldId::Loops, {"k.loom:7:3", "vectorize", "missed", "call instruction"});
  kernel.add_texts(FieldId::FactsMissing, {"k.loom:1:1", "noalias", "%to", "order"});
  kernel.add_texts(FieldId::FactsMissing, {"k.loom:1:1", "workgroup size", "x", "read"});
  report.add("function", "helper").fields.set(FieldId::CodeBytes, uint64_t{12});
  return report;
}

TEST(ReportSuggest, EachRuleProposesWithItsEvidence) {
  std::set<std::string_view> fired;
  for (const Proposal& proposal : suggest(with_everything(), true)) {
    EXPECT_FALSE(proposal.evidence.empty()) << proposal.rule;
    EXPECT_FALSE(proposal.action.empty()) << proposal.rule;
    fired.insert(proposal.rule);
  }
  for (const SuggestRule& rule : suggest_rules())
    EXPECT_TRUE(fired.contains(rule.name)) << rule.name;
}

TEST(ReportSuggest, ExperimentalRulesAreAskedFor) {
  for (const Proposal& proposal : suggest(with_everything(), false)) {
    for (const SuggestRule& rule : suggest_rules()) {
      EXPECT_FALSE(rule.name == proposal.rule && rule.experimental) << rule.name;
    }
  }
}

TEST(ReportSuggest, WhatIsUnknownSupportsNothing) {
  Report report;
  report.identity.set(FieldId::Cpu, "x86-64");
  report.add("kernel", "k");
  EXPECT_TRUE(suggest(report, true).empty());
  EXPECT_EQ(suggest_text({}), "nothing to propose\n");
}

TEST(ReportSuggest, NothingIsProposedWhereAllIsWell) {
  Report report;
  report.identity.set(FieldId::Cpu, "znver3");
  ReportFields& kernel = report.add("kernel", "k").fields;
  kernel.set(FieldId::Spills, uint64_t{0});
  kernel.count(FieldId::VectorInstructions, "128", 6);
  kernel.add_texts(FieldId::Templates, {"k.loom:9:3", "f", "slow", "1", "outranked", ""});
  kernel.add_texts(FieldId::Loops, {"k.loom:7:3", "vectorize", "done", "8 lanes"});
  EXPECT_TRUE(suggest(report, true).empty());
}

}  // namespace
}  // namespace loom
