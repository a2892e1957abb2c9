#include "hyperloom/coordinator/records.h"

#include "hyperloom/core/time.h"
#include "loom/base/hash.h"

namespace hyperloom::coordinator {
namespace {

constexpr size_t kLifecycle = 500;
constexpr size_t kFailures = 30;
constexpr size_t kExcerpt = 2000;

// The last characters of a text, which are those that say how it ended.
std::string tail(const std::string& text) {
  return text.size() <= kExcerpt ? text : text.substr(text.size() - kExcerpt);
}

Json& list_of(Json& state, const char* field) {
  Json& list = state[field];
  if (!list.is_array()) list = Json::array();
  return list;
}

}  // namespace

void add_lifecycle(Json& state, Json row) {
  Json& events = list_of(state, "lifecycle_events");
  const auto last = events.empty() ? 0 : static_cast<int64_t>(number_of(events.back(), "seq"));
  Json event = {{"label", ""},           {"detail", ""},     {"artifacts", Json::array()},
                {"duration_s", nullptr}, {"phase", nullptr}, {"step", ""},
                {"status", "START"}};
  event.update(row);
  event["seq"] = last + 1;
  event["ts"] = utc_now();
  events.push_back(std::move(event));
  if (events.size() > kLifecycle) events.erase(events.begin());
}

void add_failure(Json& state, const std::string& action, const std::string& task_id,
                 const Json& result) {
  Json& failures = list_of(state, "last_action_failures");
  const std::string error_class = text_of(result, "error_class", "unknown");
  const std::string id =
      "failure-" + loom::sha256_hex(task_id + "|" + action + "|" + error_class).substr(0, 12);
  for (auto row = failures.begin(); row != failures.end();) {
    row = text_of(*row, "failure_id") == id ? failures.erase(row) : std::next(row);
  }
  failures.push_back({{"ts", utc_now()},
                      {"action", action},
                      {"task_id", task_id},
                      {"error_class", error_class},
                      {"error_excerpt", tail(text_of(result, "error"))},
                      {"stderr_tail", tail(text_of(result, "stderr_tail"))},
                      {"stderr_log_path", text_of(result, "stderr_log_path")},
                      {"workspace", text_of(result, "workspace")},
                      {"raw_result_path", text_of(result, "raw_result_path")},
                      {"reported_success", flag_of(result, "reported_success")},
                      {"variant_name", text_of(result, "variant_name")},
                      {"failure_id", id}});
  if (failures.size() > kFailures) failures.erase(failures.begin());
}

}  // namespace hyperloom::coordinator
