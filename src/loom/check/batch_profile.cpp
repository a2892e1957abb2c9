#include "loom/check/batch_profile.h"

#include <nlohmann/json.hpp>

namespace loom::check {

std::string chrome_trace(std::span<const ProfiledDispatch> dispatches) {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  for (const ProfiledDispatch& dispatch : dispatches) {
    const DispatchEvent& event = dispatch.event;
    events.push_back({{"name", "@" + dispatch.kernel},
                      {"ph", "X"},
                      {"ts", static_cast<double>(event.begin) / 1e3},
                      {"dur", static_cast<double>(event.end - event.begin) / 1e3},
                      {"pid", 1},
                      {"tid", event.thread},
                      {"args",
                       {{"operation", dispatch.operation},
                        {"input_set", dispatch.input_set},
                        {"workgroups", event.count},
                        {"first_workgroup", event.first_workgroup},
                        {"last_workgroup", event.last_workgroup}}}});
  }
  const nlohmann::ordered_json document = {{"displayTimeUnit", "ns"},
                                           {"traceEvents", std::move(events)}};
  return document.dump(1) + "\n";
}

}  // namespace loom::check
