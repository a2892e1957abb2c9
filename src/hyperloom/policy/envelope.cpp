#include "hyperloom/policy/envelope.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "hyperloom/policy/words.h"

namespace hyperloom::policy {
namespace {

struct Row {
  std::string_view type;
  std::string_view required;
};
constexpr Row kRows[] = {
#define HL_INTENT(type, required) {type, required},
#include "hyperloom/policy/intents.def"
#undef HL_INTENT
};

Result<void> check_fields(const Row& row, const Json& payload, const std::string& place) {
  std::istringstream fields{std::string(row.required)};
  for (std::string field; fields >> field;) {
    if (value_of(payload, field).is_null()) {
      return fail("intent_missing_field",
                  fmt::format("{}: '{}' needs the field '{}'", place, row.type, field));
    }
  }
  if (row.type != "review_verdict") return {};
  const bool single = !value_of(payload, "verdict").is_null();
  const bool several = !value_of(payload, "verdict_map").is_null();
  if (!single && !several) {
    return fail(
        "intent_missing_field",
        fmt::format("{}: '{}' needs the field 'verdict' or 'verdict_map'", place, row.type));
  }
  if (single && several) {
    return fail("intent_conflicting_fields",
                fmt::format("{}: '{}' has both 'verdict' and 'verdict_map'", place, row.type));
  }
  return {};
}

Result<Intent> parse_intent(const Json& entry, const std::string& place) {
  if (!entry.is_object()) return fail("intent_not_object", place + " is not an object");
  const Json& type = value_of(entry, "intent_type");
  if (!type.is_string() || type.get_ref<const std::string&>().empty()) {
    return fail("intent_missing_type", place + " has no 'intent_type'");
  }
  Intent intent;
  intent.type = type.get<std::string>();
  const auto* row = std::ranges::find(kRows, std::string_view(intent.type), &Row::type);
  if (row == std::end(kRows)) {
    return fail("intent_unknown_type",
                fmt::format("{}: there is no intent type '{}'", place, shorten(intent.type)));
  }
  const Json& payload = value_of(entry, "payload");
  if (!payload.is_object()) {
    return fail("intent_payload_not_object", place + ": 'payload' is not an object");
  }
  if (auto complete = check_fields(*row, payload, place); !complete) {
    return std::unexpected(complete.error());
  }
  intent.payload = payload;
  return intent;
}

}  // namespace

Result<std::vector<Intent>> parse_envelope(const Json& envelope) {
  if (!envelope.is_object()) {
    return fail("envelope_not_object",
                fmt::format("the turn's answer is a {}, not an object", envelope.type_name()),
                R"(answer {"intents": [...]})");
  }
  const auto found = envelope.find("intents");
  if (found == envelope.end()) {
    return fail("envelope_missing_intents", "the turn's answer has no 'intents'",
                R"(answer {"intents": []} when there is nothing to do)");
  }
  if (!found->is_array()) {
    return fail("envelope_intents_not_list",
                fmt::format("'intents' is a {}, not a list", found->type_name()));
  }
  std::vector<Intent> intents;
  intents.reserve(found->size());
  for (const Json& entry : *found) {
    auto intent = parse_intent(entry, fmt::format("intents[{}]", intents.size()));
    if (!intent) return std::unexpected(intent.error());
    intents.push_back(std::move(*intent));
  }
  return intents;
}

}  // namespace hyperloom::policy
