#include "loom/report/fields.h"

#include <algorithm>
#include <array>
#include <vector>

#include "loom/base/check.h"

namespace loom {
namespace {

struct Column {
  FieldId field;
  ColumnInfo info;
};

constexpr Column kColumns[] = {
#define LOOM_REPORT_FIELD(id, name, kind, form, unit, level, doc)
#define LOOM_REPORT_COLUMN(field, name, form, unit, doc) \
  {FieldId::field, {name, unit, doc, FieldForm::form}},
#include "loom/report/report_fields.def"
#undef LOOM_REPORT_FIELD
#undef LOOM_REPORT_COLUMN
};

constexpr FieldInfo kFields[] = {
#define LOOM_REPORT_FIELD(id, name, kind, form, unit, level, doc) \
  {name, unit, doc, {}, FieldId::id, FieldKind::kind, FieldForm::form, ReportLevel::level},
#define LOOM_REPORT_COLUMN(field, name, form, unit, doc)
#include "loom/report/report_fields.def"
#undef LOOM_REPORT_FIELD
#undef LOOM_REPORT_COLUMN
};

constexpr std::array<std::string_view, 3> kKindNames = {"identity", "artifact", "analysis"};
constexpr std::array<std::string_view, 6> kFormNames = {"count", "seconds", "text",
                                                        "list",  "counts",  "rows"};

struct Tables {
  std::vector<ColumnInfo> columns;
  std::vector<FieldInfo> fields{std::begin(kFields), std::end(kFields)};

  Tables() {
    columns.reserve(std::size(kColumns));
    for (FieldInfo& field : fields) {
      const size_t begin = columns.size();
      for (const Column& column : kColumns) {
        if (column.field == field.id) columns.push_back(column.info);
      }
      field.columns = std::span(columns).subspan(begin);
    }
  }
};

const Tables& tables() {
  static const Tables instance;
  return instance;
}

}  // namespace

std::span<const FieldInfo> all_report_fields() { return tables().fields; }

const FieldInfo& field_info(FieldId id) { return tables().fields[static_cast<size_t>(id)]; }

std::string_view field_kind_name(FieldKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

std::string_view field_form_name(FieldForm form) { return kFormNames[static_cast<size_t>(form)]; }

std::string_view report_level_name(ReportLevel level) {
  return level == ReportLevel::Summary ? "summary" : "details";
}

const FieldInfo* find_field(FieldKind kind, std::string_view name) {
  for (const FieldInfo& field : all_report_fields()) {
    if (field.kind == kind && field.name == name) return &field;
  }
  return nullptr;
}

size_t column_of(FieldId field, std::string_view name) {
  const auto columns = field_info(field).columns;
  const auto found = std::ranges::find(columns, name, &ColumnInfo::name);
  LOOM_CHECK(found != columns.end(), "a report field without this column");
  return static_cast<size_t>(found - columns.begin());
}

}  // namespace loom
