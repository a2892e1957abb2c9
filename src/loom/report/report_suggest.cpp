#include "loom/report/report_suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "loom/report/report_text.h"

namespace loom {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kProposalSchema = "loom.compile-report-proposals.v0";

// One report entry with the identity around it, and where proposals go.
struct Case {
  const Report& report;
  const ReportEntry& entry;
  std::vector<Proposal>& proposals;
  std::string_view rule;

  void propose(std::string action, std::vector<ReportEvidence> evidence) const {
    proposals.push_back({rule, fmt::format("{} @{}", entry.kind, entry.name), std::move(action),
                         std::move(evidence)});
  }
  const std::vector<ReportRow>& rows(FieldId field) const {
    static const std::vector<ReportRow> none;
    const auto* const rows = entry.fields.get<std::vector<ReportRow>>(field);
    return rows == nullptr ? none : *rows;
  }
  // Nothing where the count or the part is absent.
  std::optional<uint64_t> part(FieldId field, std::string_view name) const {
    const auto* const counts = entry.fields.get<ReportCounts>(field);
    if (counts == nullptr) return std::nullopt;
    for (const auto& [key, count] : *counts) {
      if (key == name) return count;
    }
    return std::nullopt;
  }
  ReportEvidence value(FieldId field) const {
    return {field, value_text(field_info(field), entry.fields[field])};
  }
};

std::string text_of(FieldId field, const ReportRow& row, std::string_view column) {
  const ReportCell& cell = row[column_of(field, column)];
  return cell.index() == 0 ? std::string() : cell_text(cell);
}

ReportEvidence row_evidence(FieldId field, const ReportRow& row) {
  std::string text;
  for (const ReportCell& cell : row) {
    if (cell.index() != 0) text += (text.empty() ? "" : "  ") + cell_text(cell);
  }
  return {field, std::move(text)};
}

std::vector<ReportEvidence> missing_facts(const Case& at, std::string_view fact) {
  std::vector<ReportEvidence> evidence;
  for (const ReportRow& row : at.rows(FieldId::FactsMissing)) {
    if (text_of(FieldId::FactsMissing, row, "fact") == fact) {
      evidence.push_back(row_evidence(FieldId::FactsMissing, row));
    }
  }
  return evidence;
}

// --- the rules ----------------------------------------------------------------------------------

void state_noalias(const Case& at) {
  std::vector<ReportEvidence> evidence = missing_facts(at, "noalias");
  if (evidence.empty()) return;
  std::string subjects;
  for (const ReportRow& row : at.rows(FieldId::FactsMissing)) {
    if (text_of(FieldId::FactsMissing, row, "fact") != "noalias") continue;
    subjects += (subjects.empty() ? "" : ", ") + text_of(FieldId::FactsMissing, row, "subject");
  }
  at.propose(fmt::format("say that the buffers are apart, at the start of the kernel: "
                         "buffer.assume.noalias of {} and the others",
                         subjects),
             std::move(evidence));
}

void fix_workgroup_size(const Case& at) {
  std::vector<ReportEvidence> evidence = missing_facts(at, "workgroup size");
  if (evidence.empty()) return;
  at.propose("give the workgroup a constant size in kernel.launch.config", std::move(evidence));
}

void prove_condition(const Case& at) {
  for (const ReportRow& row : at.rows(FieldId::Templates)) {
    if (text_of(FieldId::Templates, row, "outcome") != "unknown") continue;
    at.propose(fmt::format("prove {} where {} is applied, by a predicate, a specialization or a "
                           "configuration key: then '@{}' can be chosen",
                           text_of(FieldId::Templates, row, "reason"),
                           text_of(FieldId::Templates, row, "family"),
                           text_of(FieldId::Templates, row, "candidate")),
               {row_evidence(FieldId::Templates, row)});
  }
}

void name_processor(const Case& at) {
  const auto* const cpu = at.report.identity.get<std::string>(FieldId::Cpu);
  const auto narrow = at.part(FieldId::VectorInstructions, "128");
  if (cpu == nullptr || *cpu != "x86-64" || narrow.value_or(0) == 0) return;
  at.propose(
      "compile for the processor that runs it: --target=x86_64:native, or a level such as "
      "x86_64:x86-64-v3",
      {{FieldId::Cpu, *cpu}, at.value(FieldId::VectorInstructions)});
}

void lower_pressure(const Case& at) {
  const auto* const spills = at.entry.fields.get<uint64_t>(FieldId::Spills);
  if (spills == nullptr || *spills == 0) return;
  std::vector<ReportEvidence> evidence = {at.value(FieldId::Spills), at.value(FieldId::Reloads)};
  for (const ReportRow& row : at.rows(FieldId::Loops)) {
    const bool done = text_of(FieldId::Loops, row, "outcome") == "done";
    if (done) evidence.push_back(row_evidence(FieldId::Loops, row));
  }
  at.propose(
      "keep fewer values alive at once: a smaller tile or unroll factor, or loads closer to "
      "their uses",
      std::move(evidence));
}

void help_vectorizer(const Case& at) {
  for (const ReportRow& row : at.rows(FieldId::Loops)) {
    if (text_of(FieldId::Loops, row, "transform") != "vectorize" ||
        text_of(FieldId::Loops, row, "outcome") != "missed" ||
        text_of(FieldId::Loops, row, "detail").empty()) {
      continue;
    }
    at.propose(fmt::format("take away what keeps this loop scalar: {}",
                           text_of(FieldId::Loops, row, "detail")),
               {row_evidence(FieldId::Loops, row)});
  }
}

void inline_function(const Case& at) {
  if (at.entry.kind != "function") return;
  at.propose("mark the function 'inline', so that its callers' facts reach it",
             {at.value(FieldId::CodeBytes)});
}

struct Rule {
  SuggestRule info;
  void (*run)(const Case& at);
};

constexpr Rule kRules[] = {
    {{"state-noalias", false, "buffers that may overlap"}, state_noalias},
    {{"fix-workgroup-size", false, "a workgroup size that is read at each launch"},
     fix_workgroup_size},
    {{"prove-condition", false, "an implementation whose condition is not proven"},
     prove_condition},
    {{"name-processor", false, "code for every processor"}, name_processor},
    {{"lower-pressure", false, "values on the stack for want of registers"}, lower_pressure},
    {{"help-vectorizer", true, "a loop that stayed scalar"}, help_vectorizer},
    {{"inline-function", true, "a function that is called out of line"}, inline_function},
};

}  // namespace

std::span<const SuggestRule> suggest_rules() {
  static const auto infos = [] {
    std::array<SuggestRule, std::size(kRules)> made{};
    for (size_t i = 0; i < made.size(); ++i) made[i] = kRules[i].info;
    return made;
  }();
  return infos;
}

std::vector<Proposal> suggest(const Report& report, bool experimental) {
  std::vector<Proposal> proposals;
  for (const ReportEntry& entry : report.entries) {
    for (const Rule& rule : kRules) {
      if (rule.info.experimental && !experimental) continue;
      rule.run({report, entry, proposals, rule.info.name});
    }
  }
  return proposals;
}

std::string suggest_text(const std::vector<Proposal>& proposals) {
  if (proposals.empty()) return "nothing to propose\n";
  std::string text;
  for (const Proposal& proposal : proposals) {
    text += fmt::format("{}: {} [{}]\n", proposal.entry, proposal.action, proposal.rule);
    for (const ReportEvidence& evidence : proposal.evidence) {
      const FieldInfo& field = field_info(evidence.field);
      text += fmt::format("  {}.{}: {}\n", field_kind_name(field.kind), field.name, evidence.value);
    }
  }
  return text;
}

std::string suggest_json(const std::vector<Proposal>& proposals) {
  Json document;
  document["schema"] = kProposalSchema;
  Json& list = document["proposals"] = Json::array();
  for (const Proposal& proposal : proposals) {
    Json evidence = Json::array();
    for (const ReportEvidence& one : proposal.evidence) {
      const FieldInfo& field = field_info(one.field);
      evidence.push_back({{"field", fmt::format("{}.{}", field_kind_name(field.kind), field.name)},
                          {"value", one.value}});
    }
    list.push_back({{"rule", proposal.rule},
                    {"entry", proposal.entry},
                    {"action", proposal.action},
                    {"evidence", std::move(evidence)}});
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace loom
