#include "hyperloom/optimize/backend.h"

#include <algorithm>

#include "hyperloom/optimize/task_key.h"

namespace hyperloom::optimize {

std::string selected_backend(const Environment& environment) {
  const auto order = environment.raw("KERNEL_OPT_BACKEND_ORDER");
  return order && *order == "forge" ? "forge" : "geak";
}

std::vector<std::string> ignored_hints(const Json& payload, const Environment& environment) {
  const Json& hint = value_of(payload, "backends");
  std::vector<std::string> names = strings_of(hint);
  if (hint.is_string() && !hint.get<std::string>().empty()) names.push_back(hint);
  const std::string selected = selected_backend(environment);
  std::erase(names, selected);
  return names;
}

const Backends& installed_backends() {
  static const Backends backends = {make_forge(), make_geak()};
  return backends;
}

Backend* find_backend(const Backends& backends, const std::string& name) {
  const auto found =
      std::ranges::find_if(backends, [&](const auto& backend) { return backend->name() == name; });
  return found == backends.end() ? nullptr : found->get();
}

}  // namespace hyperloom::optimize
