// What an author could try, each proposal with the facts of the report that speak for it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/report/report.h"

namespace loom {

struct ReportEvidence {
  FieldId field;
  std::string value;  // as report_text shows it: a value, a part "name: count", or a row
};

struct Proposal {
  std::string_view rule;                 // stable name
  std::string entry;                     // "kernel @k"
  std::string action;                    // what to do, lower-case, without a full stop
  std::vector<ReportEvidence> evidence;  // at least one
};

struct SuggestRule {
  std::string_view name;
  bool experimental;  // may well not pay
  std::string_view doc;
};
std::span<const SuggestRule> suggest_rules();

// In entry order, then rule order. Only what the report holds is evidence: a report without
// details supports few rules, and an absent fact supports none.
std::vector<Proposal> suggest(const Report& report, bool experimental);

std::string suggest_text(const std::vector<Proposal>& proposals);
// {"schema": "loom.compile-report-proposals.v0", "proposals": [{"rule", "entry", "action",
// "evidence": [{"field": "artifact.spills", "value": "4 instructions"}]}]}
std::string suggest_json(const std::vector<Proposal>& proposals);

}  // namespace loom
