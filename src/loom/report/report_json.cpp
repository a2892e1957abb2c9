#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "loom/report/report.h"

namespace loom {
namespace {

using Json = nlohmann::ordered_json;  // keeps the order of the table
using Parsed = nlohmann::json;        // finds members fast, whatever a file holds

constexpr std::array<std::string_view, 4> kEntryKinds = {"module", "kernel", "function", "program"};
// Deeper documents are no reports; the parser keeps one state a level.
constexpr int kMaxDepth = 16;

// --- writing ------------------------------------------------------------------------------------

Json cell_json(const ReportCell& cell) {
  return std::visit(
      [](const auto& value) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
          return nullptr;
        } else {
          return value;
        }
      },
      cell);
}

Json value_json(const FieldInfo& field, const ReportValue& value) {
  switch (field.form) {
    case FieldForm::Count:
      return std::get<uint64_t>(value);
    case FieldForm::Seconds:
      return std::get<double>(value);
    case FieldForm::Text:
      return std::get<std::string>(value);
    case FieldForm::List:
      return std::get<std::vector<std::string>>(value);
    case FieldForm::Counts: {
      Json counts = Json::object();
      for (const auto& [name, count] : std::get<ReportCounts>(value)) counts[name] = count;
      return counts;
    }
    case FieldForm::Rows: {
      Json rows = Json::array();
      for (const ReportRow& row : std::get<std::vector<ReportRow>>(value)) {
        Json object = Json::object();
        for (size_t i = 0; i < row.size(); ++i) {
          if (row[i].index() != 0) object[field.columns[i].name] = cell_json(row[i]);
        }
        rows.push_back(std::move(object));
      }
      return rows;
    }
  }
  return nullptr;
}

Json fields_json(const ReportFields& fields, FieldKind kind, ReportLevel level) {
  Json object = Json::object();
  for (const FieldInfo& field : all_report_fields()) {
    if (field.kind != kind || field.level > level || !fields.has(field.id)) continue;
    object[field.name] = value_json(field, fields[field.id]);
  }
  return object;
}

// --- reading ------------------------------------------------------------------------------------

// What is wrong, as the rest of a sentence; the first one wins.
class Reader {
 public:
  std::string error;

  bool read(const Parsed& document, Report& report);

 private:
  bool fail(std::string text) {
    if (error.empty()) error = std::move(text);
    return false;
  }
  bool read_fields(const Parsed& object, std::string_view where, FieldKind kind,
                   ReportFields& fields);
  bool read_value(const Parsed& json, const FieldInfo& field, const std::string& where,
                  ReportFields& fields);
  bool read_rows(const Parsed& json, const FieldInfo& field, const std::string& where,
                 ReportFields& fields);
  bool read_cell(const Parsed& json, FieldForm form, const std::string& where, ReportCell& cell);
  bool read_entry(const Parsed& json, const std::string& where, Report& report);
  bool members(const Parsed& object, std::string_view where,
               std::initializer_list<std::string_view> known);

  std::set<std::pair<std::string, std::string>> names_;  // kind and name of each entry
};

bool Reader::members(const Parsed& object, std::string_view where,
                     std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : object.items()) {
    if (std::ranges::find(known, name) == known.end()) {
      return fail(fmt::format("{} has an unknown member '{}'", where, name));
    }
  }
  return true;
}

bool Reader::read_cell(const Parsed& json, FieldForm form, const std::string& where,
                       ReportCell& cell) {
  if (form == FieldForm::Text) {
    if (!json.is_string()) return fail(where + " is not a text");
    cell = json.get<std::string>();
  } else if (form == FieldForm::Count) {
    if (!json.is_number_unsigned()) return fail(where + " is not a count");
    cell = json.get<uint64_t>();
  } else {
    if (!json.is_number() || !(json.get<double>() >= 0) || !std::isfinite(json.get<double>())) {
      return fail(where + " is not a number of seconds");
    }
    cell = json.get<double>();
  }
  return true;
}

bool Reader::read_rows(const Parsed& json, const FieldInfo& field, const std::string& where,
                       ReportFields& fields) {
  if (!json.is_array()) return fail(where + " is not a list");
  std::vector<ReportRow> rows;
  for (const Parsed& object : json) {
    const std::string place = fmt::format("{}[{}]", where, rows.size());
    if (!object.is_object()) return fail(place + " is not an object");
    ReportRow row(field.columns.size());
    for (const auto& [name, value] : object.items()) {
      const auto column = std::ranges::find(field.columns, name, &ColumnInfo::name);
      if (column == field.columns.end()) {
        return fail(fmt::format("{} has an unknown member '{}'", place, name));
      }
      const auto number = static_cast<size_t>(column - field.columns.begin());
      if (!read_cell(value, column->form, fmt::format("{}.{}", place, name), row[number])) {
        return false;
      }
    }
    rows.push_back(std::move(row));
  }
  fields.set(field.id, std::move(rows));
  return true;
}

bool Reader::read_value(const Parsed& json, const FieldInfo& field, const std::string& where,
                        ReportFields& fields) {
  if (field.form == FieldForm::Rows) return read_rows(json, field, where, fields);
  if (field.form == FieldForm::List) {
    if (!json.is_array()) return fail(where + " is not a list");
    std::vector<std::string> list;
    for (const Parsed& text : json) {
      if (!text.is_string()) return fail(fmt::format("{}[{}] is not a text", where, list.size()));
      list.push_back(text.get<std::string>());
    }
    fields.set(field.id, std::move(list));
    return true;
  }
  if (field.form == FieldForm::Counts) {
    if (!json.is_object()) return fail(where + " is not an object");
    ReportCounts counts;
    for (const auto& [name, count] : json.items()) {
      if (!count.is_number_unsigned())
        return fail(fmt::format("{}.{} is not a count", where, name));
      counts.emplace_back(name, count.get<uint64_t>());
    }
    fields.set(field.id, std::move(counts));
    return true;
  }
  ReportCell cell;
  if (!read_cell(json, field.form, where, cell)) return false;
  if (auto* const count = std::get_if<uint64_t>(&cell)) fields.set(field.id, *count);
  if (auto* const seconds = std::get_if<double>(&cell)) fields.set(field.id, *seconds);
  if (auto* const text = std::get_if<std::string>(&cell)) fields.set(field.id, std::move(*text));
  return true;
}

bool Reader::read_fields(const Parsed& object, std::string_view where, FieldKind kind,
                         ReportFields& fields) {
  if (!object.is_object()) return fail(fmt::format("{} is not an object", where));
  for (const auto& [name, value] : object.items()) {
    const FieldInfo* const field = find_field(kind, name);
    if (field == nullptr) return fail(fmt::format("{} has an unknown member '{}'", where, name));
    if (!read_value(value, *field, fmt::format("{}.{}", where, name), fields)) return false;
  }
  return true;
}

bool Reader::read_entry(const Parsed& json, const std::string& where, Report& report) {
  if (!json.is_object()) return fail(where + " is not an object");
  if (!members(json, where, {"kind", "name", "artifact", "analysis"})) return false;
  const auto kind = json.find("kind");
  const auto name = json.find("name");
  if (kind == json.end() || !kind->is_string() ||
      std::ranges::find(kEntryKinds, kind->get<std::string>()) == kEntryKinds.end()) {
    return fail(where + ".kind is not one of module, kernel, function, program");
  }
  if (name == json.end() || !name->is_string()) return fail(where + ".name is not a text");
  if (!names_.emplace(kind->get<std::string>(), name->get<std::string>()).second) {
    return fail(fmt::format("{} is the second {} '{}'", where, kind->get<std::string>(),
                            name->get<std::string>()));
  }
  ReportEntry& entry = report.add(kind->get<std::string>(), name->get<std::string>());
  for (const FieldKind part : {FieldKind::Artifact, FieldKind::Analysis}) {
    const auto found = json.find(field_kind_name(part));
    if (found == json.end()) continue;
    if (!read_fields(*found, fmt::format("{}.{}", where, field_kind_name(part)), part,
                     entry.fields)) {
      return false;
    }
  }
  return true;
}

bool Reader::read(const Parsed& document, Report& report) {
  if (!members(document, "the report", {"schema", "level", "identity", "entries"})) return false;
  const auto level = document.find("level");
  if (level == document.end() || (*level != "summary" && *level != "details")) {
    return fail("level is neither \"summary\" nor \"details\"");
  }
  report.level = *level == "summary" ? ReportLevel::Summary : ReportLevel::Details;
  const auto identity = document.find("identity");
  if (identity == document.end()) return fail("it has no identity");
  if (!read_fields(*identity, "identity", FieldKind::Identity, report.identity)) return false;
  const auto entries = document.find("entries");
  if (entries == document.end() || !entries->is_array()) return fail("entries is not a list");
  size_t number = 0;
  for (const Parsed& entry : *entries) {
    if (!read_entry(entry, fmt::format("entries[{}]", number++), report)) return false;
  }
  return true;
}

std::optional<Parsed> parse(std::string_view text, std::string& error) {
  bool too_deep = false;
  const auto watch = [&](int depth, Parsed::parse_event_t, Parsed&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  try {
    Parsed document = Parsed::parse(text, watch);
    if (too_deep) {
      error = fmt::format("it is nested deeper than {} levels", kMaxDepth);
      return std::nullopt;
    }
    return document;
  } catch (const Parsed::exception& failure) {  // a number that overflows is no parse_error
    const std::string_view what = failure.what();
    // "[json.exception.parse_error.101] parse error at ...": the name is of no use to a reader.
    const size_t bracket = what.find("] ");
    error = bracket == std::string_view::npos ? what : what.substr(bracket + 2);
  }
  return std::nullopt;
}

}  // namespace

std::string write_report(const Report& report, bool indent) {
  Json document;
  document["schema"] = kReportSchema;
  document["level"] = report_level_name(report.level);
  document["identity"] = fields_json(report.identity, FieldKind::Identity, report.level);
  Json& entries = document["entries"] = Json::array();
  for (const ReportEntry& entry : report.entries) {
    entries.push_back({{"kind", entry.kind},
                       {"name", entry.name},
                       {"artifact", fields_json(entry.fields, FieldKind::Artifact, report.level)},
                       {"analysis", fields_json(entry.fields, FieldKind::Analysis, report.level)}});
  }
  return document.dump(indent ? 2 : -1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<Report> read_report(std::string_view text, std::string_view file,
                                  Diagnostics& diagnostics) {
  const auto malformed = [&](std::string detail) -> std::optional<Report> {
    diagnostics.emit(Diag::ReportMalformed, {},
                     {{"file", std::string(file)}, {"detail", std::move(detail)}});
    return std::nullopt;
  };
  std::string error;
  const auto document = parse(text, error);
  if (!document) return malformed(std::move(error));
  if (!document->is_object()) return malformed("it is not a JSON object");
  const auto schema = document->find("schema");
  if (schema == document->end() || !schema->is_string()) return malformed("it names no schema");
  if (*schema != kReportSchema) {
    diagnostics.emit(Diag::ReportSchema, {},
                     {{"file", std::string(file)},
                      {"found", schema->get<std::string>()},
                      {"expected", std::string(kReportSchema)}});
    return std::nullopt;
  }
  Report report;
  Reader reader;
  if (!reader.read(*document, report)) return malformed(std::move(reader.error));
  return report;
}

}  // namespace loom
