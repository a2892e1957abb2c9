// What one compilation says about its output, in memory and as JSON.
//
//   Report report;
//   report.identity.set(FieldId::Target, "x86_64");
//   ReportEntry& entry = report.add("kernel", "scale");
//   entry.fields.set(FieldId::CodeBytes, uint64_t{192});
//   const std::string text = write_report(report);
//
// The document:
//
//   {"schema": "loom.compile-report.v0", "level": "details", "identity": {...},
//    "entries": [{"kind": "kernel", "name": "scale", "artifact": {...}, "analysis": {...}}]}
//
// Members stand in table order. What is not known is absent.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "loom/diag/diagnostic.h"
#include "loom/report/fields.h"

namespace loom {

inline constexpr std::string_view kReportSchema = "loom.compile-report.v0";

// A value of a row; monostate is absent.
using ReportCell = std::variant<std::monostate, uint64_t, double, std::string>;
// One cell a column.
using ReportRow = std::vector<ReportCell>;
using ReportCounts = std::vector<std::pair<std::string, uint64_t>>;  // see ReportFields::set
using ReportValue = std::variant<std::monostate, uint64_t, double, std::string,
                                 std::vector<std::string>, ReportCounts, std::vector<ReportRow>>;

// A value for each field, most of them absent.
class ReportFields {
 public:
  // The value must have the field's form. Counts are sorted: numbers by value, then names.
  void set(FieldId id, ReportValue value);
  // Adds a row with one text a column, "" for an absent one.
  void add_texts(FieldId id, std::vector<std::string> texts);
  void add_row(FieldId id, ReportRow row);
  // Adds to a count by name.
  void count(FieldId id, std::string_view name, uint64_t by = 1);

  const ReportValue& operator[](FieldId id) const { return values_[static_cast<size_t>(id)]; }
  bool has(FieldId id) const { return (*this)[id].index() != 0; }
  // Null where the field is absent.
  template <class T>
  const T* get(FieldId id) const {
    return std::get_if<T>(&(*this)[id]);
  }
  friend bool operator==(const ReportFields&, const ReportFields&) = default;

 private:
  std::array<ReportValue, kReportFields> values_;
};

struct ReportEntry {
  std::string kind;  // "module" (the whole output), "kernel", "function" or "program"
  std::string name;  // without '@'; of the module its output form
  ReportFields fields;
  friend bool operator==(const ReportEntry&, const ReportEntry&) = default;
};

struct Report {
  ReportLevel level = ReportLevel::Details;
  ReportFields identity;
  std::vector<ReportEntry> entries;

  ReportEntry& add(std::string kind, std::string name);
  // Null where there is none.
  const ReportEntry* find(std::string_view kind, std::string_view name) const;
  friend bool operator==(const Report&, const Report&) = default;
};

// One line of JSON, or indented; fields of a higher level than the report's are left out.
std::string write_report(const Report& report, bool indent = true);

// REPORT/001 when the text is no report, REPORT/002 when it is one of another schema. `file` is
// what the diagnostics call it. Reports that are read are written back as the same bytes.
std::optional<Report> read_report(std::string_view text, std::string_view file,
                                  Diagnostics& diagnostics);

// Whether the text could be a report at all: its first character that is not space opens an object.
bool looks_like_report(std::string_view text);

}  // namespace loom
