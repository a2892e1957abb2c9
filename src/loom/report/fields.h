// The table of what a compile report can say (report_fields.def).
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

namespace loom {

enum class FieldId : uint8_t {
#define LOOM_REPORT_FIELD(id, name, kind, form, unit, level, doc) id,
#define LOOM_REPORT_COLUMN(field, name, form, unit, doc)
#include "loom/report/report_fields.def"
#undef LOOM_REPORT_FIELD
#undef LOOM_REPORT_COLUMN
};

inline constexpr FieldId kReportFieldIds[] = {
#define LOOM_REPORT_FIELD(id, name, kind, form, unit, level, doc) FieldId::id,
#define LOOM_REPORT_COLUMN(field, name, form, unit, doc)
#include "loom/report/report_fields.def"
#undef LOOM_REPORT_FIELD
#undef LOOM_REPORT_COLUMN
};
inline constexpr size_t kReportFields = std::size(kReportFieldIds);

enum class FieldKind : uint8_t {
  Identity,  // what was compiled, for what, by what
  Artifact,  // read off the output
  Analysis,  // what the compiler found out and decided on the way
};

enum class FieldForm : uint8_t {
  Count,    // unsigned integer
  Seconds,  // number, not negative
  Text,
  List,    // texts in order
  Counts,  // unsigned integers by name, in order
  Rows,    // records with the field's columns, each of which may be absent
};

enum class ReportLevel : uint8_t { Summary, Details };

struct ColumnInfo {
  std::string_view name;
  std::string_view unit;
  std::string_view doc;
  FieldForm form;  // Count, Seconds or Text
};

struct FieldInfo {
  std::string_view name;
  std::string_view unit;  // of the counts; empty where there is none
  std::string_view doc;
  std::span<const ColumnInfo> columns;  // of Rows
  FieldId id;
  FieldKind kind;
  FieldForm form;
  ReportLevel level;  // the least level of a report that has it
};

// In table order.
std::span<const FieldInfo> all_report_fields();
const FieldInfo& field_info(FieldId id);
// "identity", "artifact" or "analysis".
std::string_view field_kind_name(FieldKind kind);
std::string_view field_form_name(FieldForm form);
std::string_view report_level_name(ReportLevel level);
// Null for a name that the table does not have under this kind.
const FieldInfo* find_field(FieldKind kind, std::string_view name);
// The number of a column of the field, which has it.
size_t column_of(FieldId field, std::string_view name);

}  // namespace loom
