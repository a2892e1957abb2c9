// A request runs the tool of its kind; it cannot name another one.
#include <fmt/format.h>

#include "hyperloom/policy/rules.h"
#include "hyperloom/policy/words.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kRule = "tool_whitelist";

}  // namespace

Objection rule_tool_whitelist(const Intent& intent, const Situation& situation) {
  if (intent.type != "request") return std::nullopt;
  const std::string kind = text_of(intent.payload, "kind");
  if (!situation.kinds.contains(kind)) return std::nullopt;
  for (const Json* fields : {&intent.payload, &value_of(intent.payload, "params")}) {
    for (const char* name : {"tool", "tools"}) {
      const Json& tool = value_of(*fields, name);
      if (tool.is_null() || tool == kind || tool == Json::array({kind})) continue;
      return object(kRule, fmt::format("'{}' of '{}' is {}", name, kind, shorten(compact(tool))),
                    fmt::format("leave '{}' out", name));
    }
  }
  return std::nullopt;
}

}  // namespace hyperloom::policy
