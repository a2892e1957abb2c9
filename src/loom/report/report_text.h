// A report for people.
#pragma once

#include <string>

#include "loom/report/report.h"

namespace loom {

// Fields by entry, one a line, rows as tables. Fields of a higher level than the report's are left
// out.
std::string report_text(const Report& report);

// "192 bytes", "12: move 7, vector_float 5"; rows give their number.
std::string value_text(const FieldInfo& field, const ReportValue& value);
// "3", "0.0021 s", "text"; "-" for an absent one.
std::string cell_text(const ReportCell& cell);

}  // namespace loom
