#include "loom/report/report.h"

#include <gtest/gtest.h>

namespace loom {
namespace {

Report small() {
  Report report;
  report.identity.set(FieldId::Target, "x86_64");
  report.identity.set(FieldId::Flags, std::vector<std::string>{"denormals=keep"});
  ReportEntry& entry = report.add("kernel", "k");
  entry.fields.set(FieldId::CodeBytes, uint64_t{0});
  entry.fields.count(FieldId::Loads, "16", 2);
  entry.fields.count(FieldId::Loads, "4");
  entry.fields.add_texts(FieldId::Loops, {"a.loom:1:2", "unroll", "done", ""});
  entry.fields.add_row(FieldId::Passes, ReportRow{"emit", 0.5, uint64_t{1}});
  return report;
}

std::string error_of(std::string_view text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(read_report(text, "r.json", diagnostics));
  EXPECT_EQ(diagnostics.error_count(), 1u);
  return diag_code(diagnostics.all()[0].id) + " " + diagnostics.all()[0].message();
}

TEST(Report, ComesBackFromItsText) {
  Diagnostics diagnostics;
  for (const bool indent : {false, true}) {
    const auto again = read_report(write_report(small(), indent), "r.json", diagnostics);
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, small());
  }
}

TEST(Report, WhatIsUnknownIsAbsentAndZeroIsThere) {
  const std::string text = write_report(small());
  EXPECT_NE(text.find("\"code_bytes\": 0"), std::string::npos);
  EXPECT_EQ(text.find("spills"), std::string::npos);
  EXPECT_EQ(text.find("detail\""), std::string::npos);  // of the loop
  EXPECT_EQ(text.find("null"), std::string::npos);
}

TEST(Report, CountsByNumberAreInTheirOrder) {
  const std::string text = write_report(small());
  EXPECT_LT(text.find("\"4\": 1"), text.find("\"16\": 2"));
}

TEST(Report, ASummaryLeavesTheDetailsOut) {
  Report report = small();
  report.level = ReportLevel::Summary;
  const std::string text = write_report(report);
  EXPECT_NE(text.find("code_bytes"), std::string::npos);
  EXPECT_EQ(text.find("passes"), std::string::npos);
}

TEST(Report, EveryFieldHasADistinctNameAndTheColumnsOfItsForm) {
  for (const FieldInfo& field : all_report_fields()) {
    EXPECT_EQ(find_field(field.kind, field.name), &field) << field.name;
    EXPECT_EQ(field.columns.empty(), field.form != FieldForm::Rows) << field.name;
    EXPECT_FALSE(field.doc.empty()) << field.name;
  }
}

TEST(Report, BadReportsAreNamedWithTheirPlace) {
  const std::string head = R"({"schema": "loom.compile-report.v0", "level": "details",)";
  EXPECT_EQ(error_of("[]"), "REPORT/001 'r.json' is not a compile report: it is not a JSON object");
  EXPECT_EQ(error_of("{}"), "REPORT/001 'r.json' is not a compile report: it names no schema");
  EXPECT_EQ(error_of(R"({"schema": "loom.compile-report.v1"})"),
            "REPORT/002 'r.json' has the schema 'loom.compile-report.v1', but this program reads "
            "'loom.compile-report.v0'");
  const auto says = [&](const std::string& rest, const std::string& detail) {
    EXPECT_EQ(error_of(head + rest), "REPORT/001 'r.json' is not a compile report: " + detail);
  };
  says(R"("identity": {"cpu": 3}, "entries": []})", "identity.cpu is not a text");
  says(R"("identity": {"code_bytes": 3}, "entries": []})",
       "identity has an unknown member 'code_bytes'");
  says(R"("identity": {}, "entries": [], "more": 1})", "the report has an unknown member 'more'");
  says(R"("identity": {}})", "entries is not a list");
  says(R"("identity": {}, "entries": [{"kind": "k", "name": "k"}]})",
       "entries[0].kind is not one of module, kernel, function, program");
  const std::string entry = R"("identity": {}, "entries": [{"kind": "kernel", "name": "k", )";
  says(entry + R"("artifact": {"code_bytes": -1}}]})",
       "entries[0].artifact.code_bytes is not a count");
  says(entry + R"("artifact": {"loads": {"4": 1.5}}}]})",
       "entries[0].artifact.loads.4 is not a count");
  says(entry + R"("analysis": {"passes": [{"seconds": -1}]}}]})",
       "entries[0].analysis.passes[0].seconds is not a number of seconds");
  says(entry + R"("analysis": {"loops": [{"when": "x"}]}}]})",
       "entries[0].analysis.loops[0] has an unknown member 'when'");
  says(R"("identity": {}, "entries": [{"kind": "kernel", "name": "k"}, {"kind": "kernel",)"
       R"( "name": "k"}]})",
       "entries[1] is the second kernel 'k'");
}

TEST(Report, DeepNestingIsRefused) {
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  EXPECT_EQ(error_of(deep),
            "REPORT/001 'r.json' is not a compile report: it is nested deeper than 16 levels");
}

}  // namespace
}  // namespace loom
