// What a request of each kind may carry.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hyperloom/core/json.h"

namespace hyperloom::request {

enum class FieldType : uint8_t {
  Text,
  Path,
  Integer,
  Number,
  Flag,
  TextOrList,
  PathList,
  List,
  Object,
  Scalars
};

struct FieldRow {
  std::string_view kind;
  std::string_view name;
  FieldType type;
  std::string_view constraint;  // as in schemas.def
  std::string_view fallback;
  std::string_view meaning;
};
// In the order of schemas.def; `apply_patch` is checked by the rows of `integrate`.
std::span<const FieldRow> schema_table();

// The request's own fields, laid over by those of its `params`, without the envelope's
// (target_agent, kind, params, tool, tools, source, redispatch_of). Errors: "invalid_payload" when
// `params` is no object.
Result<Json> merge_params(const Json& request);

struct Checked {
  Json payload;                       // only fields of the schema, none of them null or absent
  std::vector<std::string> warnings;  // "unknown_field: 'x' ...", one for each field left out
};
// Unknown fields are left out with a warning, since a role may say more than is needed; a field of
// the wrong type is refused, since it was meant to say something. `session_id` may only be the
// session's own. A kind without rows takes what it is given. Errors: "invalid_payload", whose
// message begins with the field's name in quotes.
Result<Checked> check_payload(const std::string& kind, const Json& payload,
                              const std::string& session_id);

// For `hyperloom request --help`: fields, types, defaults and meanings of a kind.
std::string payload_help(std::string_view kind);

}  // namespace hyperloom::request
