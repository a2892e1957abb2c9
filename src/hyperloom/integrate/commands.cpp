#include "hyperloom/integrate/commands.h"

#include <fmt/format.h>

#include "hyperloom/core/child.h"

namespace hyperloom::integrate {
namespace {

constexpr size_t kTail = 2000;

std::string tail(const ChildResult& result) {
  const std::string& text = result.errors.empty() ? result.output : result.errors;
  return text.substr(text.size() - std::min(text.size(), kTail));
}

}  // namespace

Result<void> rebuild(const PatchPlan& plan, Manifest& manifest, const Deadline& deadline,
                     const std::stop_token& stop) {
  if (plan.rebuild.empty()) return {};
  Json& record = manifest.document["rebuild"];
  const auto result =
      run_child({.command = plan.rebuild, .folder = plan.root},
                Deadline::in_seconds(plan.rebuild_timeout_sec).earlier(deadline), stop);
  if (!result) {
    record["status"] = "failed";
    return fail("rebuild_failed", result.error().message);
  }
  record["returncode"] = result->exit_code;
  record["status"] = result->exit_code == 0 ? "ok" : "failed";
  if (result->exit_code == 0) return {};
  if (result->exit_code == kExitCancelled) return fail("cancelled", "stopped while rebuilding");
  return fail("rebuild_failed", fmt::format("'{}' ended with {}: {}", plan.rebuild.front(),
                                            result->exit_code, tail(*result)));
}

Result<void> check_python(const fs::path& source) {
  const auto result = run_child(
      {.command = {"python3", "-c",
                   "import ast,sys; ast.parse(open(sys.argv[1],'rb').read(), sys.argv[1])",
                   source.string()}},
      Deadline::in_seconds(60));
  if (!result) {
    return fail("refused_patch", source.string() + ": cannot be checked: " + result.error().message,
                "install python3, which says whether a .py file compiles");
  }
  if (result->exit_code == 0) return {};
  return fail("refused_patch", source.string() + ": does not compile: " + tail(*result));
}

}  // namespace hyperloom::integrate
