// Every field that names a file stays in its scope.
#include <fmt/format.h>

#include "hyperloom/policy/rules.h"
#include "hyperloom/policy/sandbox.h"
#include "hyperloom/policy/words.h"

namespace hyperloom::policy {
namespace {

constexpr std::string_view kSessionRule = "path_outside_session_dir";
constexpr std::string_view kSourceRule = "source_file_outside_trusted_scope";

}  // namespace

Objection rule_path_scope(const Intent& intent, const Situation& situation) {
  if (intent.type != "request") return std::nullopt;
  if (!situation.kinds.contains(text_of(intent.payload, "kind"))) return std::nullopt;
  const Sandbox sandbox(situation.layout, situation.trusted);
  Objection first;
  visit_paths(
      intent.payload, [&](const std::string& place, PathRole role, const std::string& text) {
        if (first) return;
        const auto refused = sandbox.refuse(role, text);
        if (!refused) return;
        const bool of_session = role == PathRole::ReadSession;
        first = object(of_session ? kSessionRule : kSourceRule,
                       fmt::format("'{}' is '{}', which {}", place, shorten(text), *refused),
                       of_session ? "name a file of this session, or leave the field out"
                                  : "name a source of the workload, or leave the field out",
                       Strictness::Paths);
      });
  return first;
}

}  // namespace hyperloom::policy
