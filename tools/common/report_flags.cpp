#include "common/report_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "loom/base/hash.h"
#include "loom/bytecode/bytecode.h"
#include "loom/report/report_text.h"

namespace loom {

void ReportFlags::declare(CLI::App& app) {
  app.add_option("--compile-report", form,
                 "say what was made, and why: summary or details as JSON, text-summary or "
                 "text-details for people")
      ->check(CLI::IsMember({"none", "summary", "details", "text-summary", "text-details"}))
      ->capture_default_str();
  app.add_option("--compile-report-output", output,
                 "file for the report; standard error if not stated");
}

Report ReportFlags::start(const Module& linked, const LinkFlags& link) const {
  Report report;
  report.level = form.ends_with("summary") ? ReportLevel::Summary : ReportLevel::Details;
  report.identity.set(FieldId::SourceHash, sha256_hex(write_bytecode(linked, {.strip = true})));
  report.identity.set(FieldId::Compiler, fmt::format("hyperloom {}", tool_version()));
  std::vector<std::string> bound = link.config;
  bound.insert(bound.end(), link.specialize.begin(), link.specialize.end());
  for (const std::string& file : link.config_files) bound.push_back("file " + file);
  report.identity.set(FieldId::Configuration, std::move(bound));
  return report;
}

void ReportFlags::add_steps(const std::vector<std::pair<std::string, double>>& steps,
                            Report& report) {
  if (report.entries.empty()) return;
  ReportFields& fields = report.entries[0].fields;
  std::vector<ReportRow> rows;
  for (const auto& [name, seconds] : steps) {
    const auto earlier = std::ranges::find_if(
        rows, [&](const ReportRow& row) { return row[0] == ReportCell(name); });
    if (earlier == rows.end()) {
      rows.push_back({name, seconds, uint64_t{1}});
    } else {
      std::get<double>((*earlier)[1]) += seconds;
      ++std::get<uint64_t>((*earlier)[2]);
    }
  }
  if (const auto* const own = fields.get<std::vector<ReportRow>>(FieldId::Passes)) {
    rows.insert(rows.end(), own->begin(), own->end());
  }
  fields.set(FieldId::Passes, std::move(rows));
}

std::string ReportFlags::text(const Report& report) const {
  return form.starts_with("text") ? report_text(report) : write_report(report);
}

bool ReportFlags::stage(Tool& tool, OutputSet& outputs, const Report& report) const {
  if (!wanted() || output.empty()) return true;
  const auto added = outputs.add(output, text(report));
  if (!added) tool.report_write(added.error());
  return added.has_value();
}

void ReportFlags::print(const Report& report) const {
  if (!wanted() || !output.empty()) return;
  const std::string all = text(report);
  std::fwrite(all.data(), 1, all.size(), stderr);
}

}  // namespace loom
