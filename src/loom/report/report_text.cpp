#include "loom/report/report_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace loom {
namespace {

size_t name_width(const ReportFields& fields, FieldKind kind, ReportLevel level) {
  size_t width = 0;
  for (const FieldInfo& field : all_report_fields()) {
    if (field.kind != kind || field.level > level || !fields.has(field.id)) continue;
    width = std::max(width, field.name.size());
  }
  return width;
}

// Columns that no row has are left out; the last one is not padded.
std::string table_text(const FieldInfo& field, const std::vector<ReportRow>& rows,
                       std::string_view indent) {
  std::vector<size_t> columns;
  std::vector<size_t> widths;
  for (size_t i = 0; i < field.columns.size(); ++i) {
    size_t width = 0;
    for (const ReportRow& row : rows) {
      if (row[i].index() != 0) width = std::max(width, cell_text(row[i]).size());
    }
    if (width == 0) continue;
    columns.push_back(i);
    widths.push_back(width);
  }
  std::string text;
  for (const ReportRow& row : rows) {
    std::string line(indent);
    for (size_t i = 0; i < columns.size(); ++i) {
      line += fmt::format("{:<{}}  ", cell_text(row[columns[i]]), widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

void append_fields(const ReportFields& fields, FieldKind kind, ReportLevel level,
                   std::string& text) {
  const size_t width = name_width(fields, kind, level);
  if (width == 0) return;
  text += fmt::format("  {}\n", field_kind_name(kind));
  for (const FieldInfo& field : all_report_fields()) {
    if (field.kind != kind || field.level > level || !fields.has(field.id)) continue;
    const ReportValue& value = fields[field.id];
    text += fmt::format("    {:<{}}  {}\n", field.name, width, value_text(field, value));
    if (const auto* const rows = std::get_if<std::vector<ReportRow>>(&value)) {
      text += table_text(field, *rows, "      ");
    }
  }
}

}  // namespace

std::string cell_text(const ReportCell& cell) {
  if (const auto* const count = std::get_if<uint64_t>(&cell)) return fmt::format("{}", *count);
  if (const auto* const seconds = std::get_if<double>(&cell)) {
    return fmt::format("{:.3f} ms", *seconds * 1e3);
  }
  if (const auto* const text = std::get_if<std::string>(&cell)) return *text;
  return "-";
}

std::string value_text(const FieldInfo& field, const ReportValue& value) {
  const std::string unit = field.unit.empty() ? "" : fmt::format(" {}", field.unit);
  if (const auto* const count = std::get_if<uint64_t>(&value)) {
    return fmt::format("{}{}", *count, unit);
  }
  if (const auto* const seconds = std::get_if<double>(&value)) return cell_text(*seconds);
  if (const auto* const text = std::get_if<std::string>(&value)) return *text;
  if (const auto* const list = std::get_if<std::vector<std::string>>(&value)) {
    return list->empty() ? "none" : fmt::format("{}", fmt::join(*list, " "));
  }
  if (const auto* const counts = std::get_if<ReportCounts>(&value)) {
    if (counts->empty()) return "none";
    std::string text;
    for (const auto& [name, count] : *counts) {
      text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, count);
    }
    return text;
  }
  if (const auto* const rows = std::get_if<std::vector<ReportRow>>(&value)) {
    return rows->empty() ? "none" : fmt::format("{}", rows->size());
  }
  return "unknown";
}

std::string report_text(const Report& report) {
  std::string text = fmt::format("compile report, {}\n", report_level_name(report.level));
  append_fields(report.identity, FieldKind::Identity, report.level, text);
  for (const ReportEntry& entry : report.entries) {
    text += fmt::format("\n{} {}{}\n", entry.kind, entry.kind == "module" ? "" : "@", entry.name);
    append_fields(entry.fields, FieldKind::Artifact, report.level, text);
    append_fields(entry.fields, FieldKind::Analysis, report.level, text);
  }
  return text;
}

}  // namespace loom
