// What differs between two reports.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loom/report/report.h"

namespace loom {

struct ReportChange {
  FieldId field;
  std::string part;   // name of a count or of a step, a whole row; empty for the value itself
  ReportCell before;  // absent: only the second report has it
  ReportCell after;
};

struct EntryDiff {
  std::string kind;
  std::string before;  // name in each report; they differ where single entries were compared
  std::string after;
  std::vector<ReportChange> changes;
  std::vector<ReportChange> times;  // measured, so never equal
};

struct ReportDiff {
  std::vector<ReportChange> identity;
  std::vector<EntryDiff> entries;        // in both reports
  std::vector<std::string> only_before;  // "kernel @k"
  std::vector<std::string> only_after;

  // Whether nothing differs but times.
  bool empty() const;
};

struct DiffOptions {
  // Compares reports whose identities differ, and two entries of other names where each report has
  // one besides its module.
  bool force = false;
  std::string_view before_file;  // what diagnostics call the reports
  std::string_view after_file;
};

// REPORT/003 when the identities differ, REPORT/004 when no entry is in both.
std::optional<ReportDiff> diff_reports(const Report& before, const Report& after,
                                       const DiffOptions& options, Diagnostics& diagnostics);

std::string diff_text(const ReportDiff& diff);
// {"schema": "loom.compile-report-diff.v0", "identity": [...], "entries": [...], ...}; an absent
// side is left out.
std::string diff_json(const ReportDiff& diff);

}  // namespace loom
