#include "loom/report/report_diff.h"

#include <gtest/gtest.h>

namespace loom {
namespace {

Report report_of(std::string name, uint64_t bytes, double seconds = 1) {
  Report report;
  report.identity.set(FieldId::Cpu, "x86-64");
  ReportEntry& whole = report.add("module", "object");
  whole.fields.add_row(FieldId::Passes, ReportRow{"emit", seconds, uint64_t{1}});
  ReportEntry& kernel = report.add("kernel", std::move(name));
  kernel.fields.set(FieldId::CodeBytes, bytes);
  kernel.fields.count(FieldId::Loads, "4", bytes / 10);
  return report;
}

std::string compare(const Report& before, const Report& after, bool force = false) {
  Diagnostics diagnostics;
  const auto diff = diff_reports(
      before, after, {.force = force, .before_file = "a", .after_file = "b"}, diagnostics);
  EXPECT_EQ(diff.has_value(), !diagnostics.has_errors());
  if (diff) return diff_text(*diff);
  return diag_code(diagnostics.all()[0].id) + " " + diagnostics.all()[0].message();
}

TEST(ReportDiff, TimesAreNoDifference) {
  EXPECT_EQ(compare(report_of("k", 100), report_of("k", 100)), "nothing differs but times\n");
  EXPECT_EQ(
      compare(report_of("k", 100), report_of("k", 100, 2)),
      "module object\n  passes.emit  1000.000 ms -> 2000.000 ms\nnothing differs but times\n");
}

TEST(ReportDiff, ChangesHaveTheirSize) {
  EXPECT_EQ(compare(report_of("k", 100), report_of("k", 150)),
            "kernel @k\n  code_bytes  100 -> 150 (+50.0%)\n  loads.4  10 -> 15 (+50.0%)\n");
}

TEST(ReportDiff, UnknownIsNotZero) {
  Report without = report_of("k", 100);
  Report with = without;
  with.entries[1].fields.set(FieldId::Spills, uint64_t{0});
  EXPECT_EQ(compare(without, with), "kernel @k\n  spills  - -> 0\n");
}

TEST(ReportDiff, UnlikeIdentitiesAreRefusedAndNamed) {
  Report other = report_of("k", 100);
  other.identity.set(FieldId::Cpu, "znver3");
  other.identity.set(FieldId::SourceHash, std::string(64, 'a'));
  EXPECT_EQ(compare(report_of("k", 100), other),
            "REPORT/003 'a' and 'b' are not of the same compilation: source_hash differs, cpu "
            "differs (x86-64 and znver3)");
  EXPECT_EQ(
      compare(report_of("k", 100), other, true),
      "identity\n  source_hash  - -> " + std::string(64, 'a') + "\n  cpu  x86-64 -> znver3\n");
}

TEST(ReportDiff, SingleEntriesOfOtherNamesNeedForce) {
  EXPECT_EQ(compare(report_of("k", 100), report_of("m", 100)),
            "REPORT/004 'a' and 'b' have no entry in common");
  EXPECT_EQ(compare(report_of("k", 100), report_of("m", 110), true),
            "kernel @k and kernel @m\n  code_bytes  100 -> 110 (+10.0%)\n"
            "  loads.4  10 -> 11 (+10.0%)\n");
}

TEST(ReportDiff, EntriesOfOneReportAreListed) {
  Report more = report_of("k", 100);
  more.add("function", "f");
  EXPECT_EQ(compare(report_of("k", 100), more), "only after: function @f\n");
  EXPECT_EQ(compare(more, report_of("k", 100)), "only before: function @f\n");
}

TEST(ReportDiff, RowsComeAndGo) {
  Report before = report_of("k", 100);
  Report after = before;
  before.entries[1].fields.add_texts(FieldId::Loops, {"a.loom:3:1", "unroll", "missed", "why"});
  after.entries[1].fields.add_texts(FieldId::Loops, {"a.loom:3:1", "unroll", "done", "by 4"});
  EXPECT_EQ(compare(before, after),
            "kernel @k\n  loops  + a.loom:3:1  unroll  done  by 4\n"
            "  loops  - a.loom:3:1  unroll  missed  why\n");
}

}  // namespace
}  // namespace loom
