#include "loom/report/report.h"

#include <algorithm>

#include "loom/base/check.h"

namespace loom {
namespace {

// The alternative of ReportValue that a form has.
size_t alternative(FieldForm form) { return static_cast<size_t>(form) + 1; }

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Numbers by value, then names.
bool counts_before(const ReportCounts::value_type& a, const ReportCounts::value_type& b) {
  const bool a_number = is_number(a.first);
  const bool b_number = is_number(b.first);
  if (a_number != b_number) return a_number;
  if (a_number && a.first.size() != b.first.size()) return a.first.size() < b.first.size();
  return a.first < b.first;
}

}  // namespace

void ReportFields::set(FieldId id, ReportValue value) {
  LOOM_CHECK(value.index() == 0 || value.index() == alternative(field_info(id).form),
             "a report value of another form than its field");
  if (auto* const counts = std::get_if<ReportCounts>(&value)) {
    std::ranges::sort(*counts, counts_before);
  }
  values_[static_cast<size_t>(id)] = std::move(value);
}

void ReportFields::add_row(FieldId id, ReportRow row) {
  LOOM_CHECK(row.size() == field_info(id).columns.size(), "a report row has one cell a column");
  ReportValue& value = values_[static_cast<size_t>(id)];
  if (value.index() == 0) value = std::vector<ReportRow>();
  std::get<std::vector<ReportRow>>(value).push_back(std::move(row));
}

void ReportFields::add_texts(FieldId id, std::vector<std::string> texts) {
  ReportRow row;
  for (std::string& text : texts) {
    row.push_back(text.empty() ? ReportCell() : ReportCell(std::move(text)));
  }
  add_row(id, std::move(row));
}

void ReportFields::count(FieldId id, std::string_view name, uint64_t by) {
  LOOM_CHECK(field_info(id).form == FieldForm::Counts, "only counts are counted");
  ReportValue& value = values_[static_cast<size_t>(id)];
  if (value.index() == 0) value = ReportCounts();
  auto& counts = std::get<ReportCounts>(value);
  ReportCounts::value_type row(name, by);
  const auto place = std::ranges::lower_bound(counts, row, counts_before);
  if (place == counts.end() || place->first != name) {
    counts.insert(place, std::move(row));
  } else {
    place->second += by;
  }
}

ReportEntry& Report::add(std::string kind, std::string name) {
  return entries.emplace_back(ReportEntry{std::move(kind), std::move(name), {}});
}

const ReportEntry* Report::find(std::string_view kind, std::string_view name) const {
  const auto found = std::ranges::find_if(
      entries, [&](const ReportEntry& entry) { return entry.kind == kind && entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

bool looks_like_report(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

}  // namespace loom
