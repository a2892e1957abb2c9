#include "loom/report/report_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "loom/report/report_text.h"

namespace loom {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kDiffSchema = "loom.compile-report-diff.v0";
constexpr size_t kLongValue = 60;  // longer ones are not quoted in a message

std::string row_text(const ReportRow& row) {
  std::string text;
  for (const ReportCell& cell : row) {
    if (cell.index() == 0) continue;
    text += (text.empty() ? "" : "  ") + cell_text(cell);
  }
  return text;
}

bool has_times(const FieldInfo& field) {
  return std::ranges::any_of(
      field.columns, [](const ColumnInfo& column) { return column.form == FieldForm::Seconds; });
}

// The value's parts with their names; the plain value has the name "".
std::multimap<std::string, ReportCell> parts_of(const FieldInfo& field, const ReportValue& value) {
  std::multimap<std::string, ReportCell> parts;
  if (const auto* const count = std::get_if<uint64_t>(&value)) parts.emplace("", *count);
  if (const auto* const seconds = std::get_if<double>(&value)) parts.emplace("", *seconds);
  if (const auto* const text = std::get_if<std::string>(&value)) parts.emplace("", *text);
  if (const auto* const list = std::get_if<std::vector<std::string>>(&value)) {
    for (const std::string& text : *list) parts.emplace(text, text);
  }
  if (const auto* const counts = std::get_if<ReportCounts>(&value)) {
    for (const auto& [name, count] : *counts) parts.emplace(name, count);
  }
  if (const auto* const rows = std::get_if<std::vector<ReportRow>>(&value)) {
    for (const ReportRow& row : *rows) {
      const std::string text = row_text(row);
      if (!has_times(field)) {
        parts.emplace(text, text);
        continue;
      }
      const auto column = std::ranges::find(field.columns, FieldForm::Seconds, &ColumnInfo::form);
      parts.emplace(cell_text(row[0]), row[static_cast<size_t>(column - field.columns.begin())]);
    }
  }
  return parts;
}

void compare_field(const FieldInfo& field, const ReportFields& before, const ReportFields& after,
                   std::vector<ReportChange>& changes) {
  const auto old_parts = parts_of(field, before[field.id]);
  const auto new_parts = parts_of(field, after[field.id]);
  auto a = old_parts.begin();
  auto b = new_parts.begin();
  while (a != old_parts.end() || b != new_parts.end()) {
    if (b == new_parts.end() || (a != old_parts.end() && a->first < b->first)) {
      changes.push_back({field.id, a->first, a->second, {}});
      ++a;
    } else if (a == old_parts.end() || b->first < a->first) {
      changes.push_back({field.id, b->first, {}, b->second});
      ++b;
    } else {
      if (a->second != b->second) changes.push_back({field.id, a->first, a->second, b->second});
      ++a;
      ++b;
    }
  }
}

EntryDiff compare_entries(const ReportEntry& before, const ReportEntry& after) {
  EntryDiff diff{before.kind, before.name, after.name, {}, {}};
  for (const FieldInfo& field : all_report_fields()) {
    if (field.kind == FieldKind::Identity) continue;
    compare_field(field, before.fields, after.fields, has_times(field) ? diff.times : diff.changes);
  }
  return diff;
}

std::string title(std::string_view kind, std::string_view name) {
  return fmt::format("{} {}{}", kind, kind == "module" ? "" : "@", name);
}

// Null unless the report has exactly one entry besides its module.
const ReportEntry* single(const Report& report) {
  const ReportEntry* found = nullptr;
  for (const ReportEntry& entry : report.entries) {
    if (entry.kind == "module") continue;
    if (found != nullptr) return nullptr;
    found = &entry;
  }
  return found;
}

// A field is named once, with all of its elements that differ.
std::string identity_detail(const std::vector<ReportChange>& changes) {
  std::string text;
  for (size_t i = 0; i < changes.size();) {
    const FieldId field = changes[i].field;
    std::string sides[2];
    for (; i < changes.size() && changes[i].field == field; ++i) {
      for (const bool second : {false, true}) {
        const ReportCell& cell = second ? changes[i].after : changes[i].before;
        if (cell.index() != 0)
          sides[second] += (sides[second].empty() ? "" : " ") + cell_text(cell);
      }
    }
    text += fmt::format("{}{} differs", text.empty() ? "" : ", ", field_info(field).name);
    if (sides[0].size() > kLongValue || sides[1].size() > kLongValue) continue;
    for (std::string& side : sides) {
      if (side.empty()) side = "nothing";
    }
    text += fmt::format(" ({} and {})", sides[0], sides[1]);
  }
  return text;
}

std::string change_text(const ReportChange& change) {
  const FieldInfo& field = field_info(change.field);
  // A row or an element of a list is its own value.
  if (field.form == FieldForm::List || (field.form == FieldForm::Rows && !has_times(field))) {
    return fmt::format("{}  {} {}", field.name, change.before.index() == 0 ? '+' : '-',
                       change.part);
  }
  std::string text(field.name);
  if (!change.part.empty()) text += fmt::format(".{}", change.part);
  text += fmt::format("  {} -> {}", cell_text(change.before), cell_text(change.after));
  const auto* const before = std::get_if<uint64_t>(&change.before);
  const auto* const after = std::get_if<uint64_t>(&change.after);
  if (before != nullptr && after != nullptr && *before != 0) {
    const double ratio = static_cast<double>(*after) / static_cast<double>(*before);
    text += fmt::format(" ({:+.1f}%)", (ratio - 1) * 100);
  }
  return text;
}

Json cell_json(const ReportCell& cell) {
  if (const auto* const count = std::get_if<uint64_t>(&cell)) return *count;
  if (const auto* const seconds = std::get_if<double>(&cell)) return *seconds;
  return cell_text(cell);
}

Json changes_json(const std::vector<ReportChange>& changes) {
  Json list = Json::array();
  for (const ReportChange& change : changes) {
    Json object = {{"field", field_info(change.field).name}};
    if (!change.part.empty()) object["part"] = change.part;
    if (change.before.index() != 0) object["before"] = cell_json(change.before);
    if (change.after.index() != 0) object["after"] = cell_json(change.after);
    list.push_back(std::move(object));
  }
  return list;
}

}  // namespace

bool ReportDiff::empty() const {
  return identity.empty() && only_before.empty() && only_after.empty() &&
         std::ranges::all_of(entries, [](const EntryDiff& entry) { return entry.changes.empty(); });
}

std::optional<ReportDiff> diff_reports(const Report& before, const Report& after,
                                       const DiffOptions& options, Diagnostics& diagnostics) {
  ReportDiff diff;
  for (const FieldInfo& field : all_report_fields()) {
    if (field.kind != FieldKind::Identity) continue;
    compare_field(field, before.identity, after.identity, diff.identity);
  }
  const std::string before_file(options.before_file);
  const std::string after_file(options.after_file);
  if (!diff.identity.empty() && !options.force) {
    diagnostics.emit(Diag::ReportIdentity, {},
                     {{"before", before_file},
                      {"after", after_file},
                      {"detail", identity_detail(diff.identity)}});
    return std::nullopt;
  }
  const ReportEntry* const lone_before = options.force ? single(before) : nullptr;
  const ReportEntry* const lone_after = options.force ? single(after) : nullptr;
  // Forms of output may differ where identities do, and there is one module in each report.
  std::map<std::pair<std::string_view, std::string_view>, const ReportEntry*> others;
  const auto key = [&](const ReportEntry& entry) {
    const bool any_name = options.force && entry.kind == "module";
    const std::string_view name = entry.name;
    return std::pair<std::string_view, std::string_view>(entry.kind,
                                                         name.substr(0, any_name ? 0 : name.npos));
  };
  for (const ReportEntry& entry : after.entries) others.emplace(key(entry), &entry);
  bool common = false;
  for (const ReportEntry& entry : before.entries) {
    const ReportEntry* match = nullptr;
    if (const auto found = others.find(key(entry)); found != others.end()) match = found->second;
    if (match == nullptr && &entry == lone_before) match = lone_after;
    if (match == nullptr) {
      diff.only_before.push_back(title(entry.kind, entry.name));
      continue;
    }
    common = common || entry.kind != "module";
    others.erase(key(*match));
    diff.entries.push_back(compare_entries(entry, *match));
  }
  for (const ReportEntry& entry : after.entries) {
    if (others.contains(key(entry))) diff.only_after.push_back(title(entry.kind, entry.name));
  }
  if (common) return diff;
  diagnostics.emit(Diag::ReportEntries, {}, {{"before", before_file}, {"after", after_file}});
  return std::nullopt;
}

std::string diff_text(const ReportDiff& diff) {
  std::string text;
  if (!diff.identity.empty()) text += "identity\n";
  for (const ReportChange& change : diff.identity) text += "  " + change_text(change) + "\n";
  for (const EntryDiff& entry : diff.entries) {
    if (entry.changes.empty() && entry.times.empty()) continue;
    text += title(entry.kind, entry.before);
    if (entry.before != entry.after) text += " and " + title(entry.kind, entry.after);
    text += "\n";
    for (const ReportChange& change : entry.changes) text += "  " + change_text(change) + "\n";
    for (const ReportChange& change : entry.times) text += "  " + change_text(change) + "\n";
  }
  for (const std::string& name : diff.only_before) text += fmt::format("only before: {}\n", name);
  for (const std::string& name : diff.only_after) text += fmt::format("only after: {}\n", name);
  if (diff.empty()) text += "nothing differs but times\n";
  return text;
}

std::string diff_json(const ReportDiff& diff) {
  Json document;
  document["schema"] = kDiffSchema;
  document["equal"] = diff.empty();
  document["identity"] = changes_json(diff.identity);
  Json& entries = document["entries"] = Json::array();
  for (const EntryDiff& entry : diff.entries) {
    entries.push_back({{"kind", entry.kind},
                       {"before", entry.before},
                       {"after", entry.after},
                       {"changes", changes_json(entry.changes)},
                       {"times", changes_json(entry.times)}});
  }
  document["only_before"] = diff.only_before;
  document["only_after"] = diff.only_after;
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace loom
