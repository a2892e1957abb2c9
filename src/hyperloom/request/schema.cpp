#include "hyperloom/request/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "hyperloom/policy/sandbox.h"
#include "hyperloom/policy/words.h"
#include "loom/base/suggest.h"

namespace hyperloom::request {
namespace {

using enum FieldType;

constexpr FieldRow kRows[] = {
#define HL_FIELD(kind, name, type, constraint, fallback, meaning) \
  {kind, name, type, constraint, fallback, meaning},
#include "hyperloom/request/schemas.def"
#undef HL_FIELD
};

constexpr std::array<std::string_view, 7> kEnvelope = {
    "target_agent", "kind", "params", "tool", "tools", "source", "redispatch_of"};

std::string_view schema_of(std::string_view kind) {
  return kind == "apply_patch" ? "integrate" : kind;
}

bool is_list_of_texts(const Json& value) {
  return value.is_array() &&
         std::ranges::all_of(value, [](const Json& entry) { return entry.is_string(); });
}

bool is_whole(const Json& value) {
  if (value.is_number_integer()) return true;
  return value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>() &&
         std::abs(value.get<double>()) < 1e15;
}

bool is_scalars(const Json& value) {
  return value.is_object() && std::ranges::all_of(value, [](const Json& entry) {
           return entry.is_string() || entry.is_number() || entry.is_boolean();
         });
}

bool fits(FieldType type, const Json& value) {
  switch (type) {
    case Text:
    case Path:
      return value.is_string();
    case Integer:
      return is_whole(value);
    case Number:
      return value.is_number() && std::isfinite(value.get<double>());
    case Flag:
      return value.is_boolean();
    case TextOrList:
      return value.is_string() || is_list_of_texts(value);
    case PathList:
      return is_list_of_texts(value);
    case List:
      return value.is_array();
    case Object:
      return value.is_object();
    case Scalars:
      return is_scalars(value);
  }
  return false;
}

std::string_view words_of(FieldType type) {
  switch (type) {
    case Text:
      return "text";
    case Path:
      return "path";
    case Integer:
      return "integer";
    case Number:
      return "finite number";
    case Flag:
      return "true or false";
    case TextOrList:
      return "text or list of texts";
    case PathList:
      return "list of paths";
    case List:
      return "list";
    case Object:
      return "object";
    case Scalars:
      return "object of texts, numbers and truth values";
  }
  return "";
}

bool is_choice(std::string_view choices, std::string_view word) {
  while (!choices.empty()) {
    const size_t end = std::min(choices.find('|'), choices.size());
    if (choices.substr(0, end) == word) return true;
    choices.remove_prefix(std::min(end + 1, choices.size()));
  }
  return false;
}

bool is_file_name(std::string_view name) {
  return !name.starts_with('.') && name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

// What is wrong with a value of the right type, or "".
std::string breach(const FieldRow& row, const Json& value, bool dry_run) {
  if (row.constraint.empty()) return "";
  if (row.constraint == "> 0" && !(value.get<double>() > 0)) return "is not above 0";
  if (row.constraint == ">= 0" && !(value.get<double>() >= 0)) return "is below 0";
  if (row.constraint == "dry_run" && !dry_run) return "counts only beside 'dry_run': true";
  if (row.constraint == "file name" && !is_file_name(value.get<std::string>())) {
    return "is no plain file name";
  }
  if (row.constraint.find('|') != std::string_view::npos &&
      !is_choice(row.constraint, value.get<std::string>())) {
    return fmt::format("is none of {}", row.constraint);
  }
  return "";
}

// The value as engines get it: nothing where it says that there is none.
std::optional<Json> normalized(const FieldRow& row, const Json& value) {
  if (value.is_null()) return std::nullopt;
  if (row.type == Path && policy::is_absent_path(value.get<std::string>())) return std::nullopt;
  if (row.type == Text && value.get_ref<const std::string&>().empty()) return std::nullopt;
  if (row.type == Integer && value.is_number_float()) {
    return Json(static_cast<int64_t>(value.get<double>()));
  }
  return value;
}

std::unexpected<Error> invalid(std::string_view field, const std::string& problem) {
  return fail("invalid_payload", fmt::format("'{}' {}", policy::shorten(field), problem));
}

std::string unknown_field(std::string_view kind, const std::string& field) {
  loom::Suggestion suggestion(field);
  for (const FieldRow& row : kRows) {
    if (row.kind == kind) suggestion.consider(row.name);
  }
  const std::string hint = suggestion.hint();
  return fmt::format("unknown_field: '{}' is no field of {}{}{}", policy::shorten(field), kind,
                     hint.empty() ? "" : "; ", hint);
}

}  // namespace

std::span<const FieldRow> schema_table() { return kRows; }

Result<Json> merge_params(const Json& request) {
  Json merged = request.is_object() ? request : Json::object();
  const Json params = value_of(merged, "params");
  for (const std::string_view field : kEnvelope) merged.erase(std::string(field));
  if (params.is_null()) return merged;
  if (!params.is_object()) return invalid("params", "is not an object");
  for (const auto& [field, value] : params.items()) {
    if (std::ranges::find(kEnvelope, std::string_view(field)) != kEnvelope.end()) continue;
    merged[field] = value;
  }
  return merged;
}

Result<Checked> check_payload(const std::string& kind, const Json& payload,
                              const std::string& session_id) {
  const std::string_view schema = schema_of(kind);
  if (std::ranges::find(kRows, schema, &FieldRow::kind) == std::end(kRows)) {
    return Checked{payload, {}};
  }
  Checked checked{Json::object(), {}};
  const bool dry_run = flag_of(payload, "dry_run");
  for (const auto& [field, value] : payload.items()) {
    const auto* row =
        std::ranges::find_if(kRows, [&, name = std::string_view(field)](const FieldRow& candidate) {
          return candidate.kind == schema && candidate.name == name;
        });
    if (row == std::end(kRows)) {
      checked.warnings.push_back(unknown_field(schema, field));
      continue;
    }
    if (value.is_null()) continue;
    if (!fits(row->type, value)) {
      return invalid(field, fmt::format("is {}, which is no {}", policy::shorten(compact(value)),
                                        words_of(row->type)));
    }
    const auto kept = normalized(*row, value);
    if (!kept) continue;
    if (std::string problem = breach(*row, *kept, dry_run); !problem.empty()) {
      return invalid(field, problem);
    }
    if (field == "session_id" && *kept != session_id) {
      return invalid(field, fmt::format("names another session than '{}'", session_id));
    }
    checked.payload[field] = *kept;
  }
  return checked;
}

std::string payload_help(std::string_view kind) {
  std::string help;
  for (const FieldRow& row : kRows) {
    if (row.kind != schema_of(kind)) continue;
    help += fmt::format("{} ({}{}{}; default: {})\n    {}\n", row.name, words_of(row.type),
                        row.constraint.empty() ? "" : ", ", row.constraint,
                        row.fallback.empty() ? "absent" : row.fallback, row.meaning);
  }
  return help;
}

}  // namespace hyperloom::request
