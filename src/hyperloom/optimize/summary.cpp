#include "hyperloom/optimize/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "hyperloom/optimize/run_files.h"
#include "hyperloom/optimize/select.h"
#include "hyperloom/optimize/task_key.h"

namespace hyperloom::optimize {
namespace {

struct Glossary {
  const char* word;
  const char* meaning;
};
constexpr Glossary kGlossary[] = {
    {"INTEGRATED", "a change of this kernel was kept"},
    {"KEEP_PENDING", "a proposal waits for its end-to-end measurement or for review"},
    {"ATTEMPTED_REJECTED", "attempts were made and nothing of them is kept"},
    {"IN_FLIGHT", "an attempt runs"},
    {"UNATTEMPTED", "no attempt was made, for the reason in the row"},
    {"micro_speedup", "of the kernel alone, by the last attempt"},
    {"gpu_pct", "share of the sum of kernel times, in percent"},
};

// One of the closed set of error classes.
std::string class_of_error(const std::string& error_class) {
  if (error_class.find("timeout") != std::string::npos || error_class == "workload_hung") {
    return "timeout";
  }
  if (error_class == "build_failed" || error_class == "missing_compiler") return "compile_failed";
  if (error_class == "correctness_failed") return "correctness_failed";
  if (error_class == "backend_exception" || error_class == "backend_config_changed" ||
      error_class == "subtask_exception" || error_class == "tree_drift") {
    return "agent_error";
  }
  if (error_class.starts_with("missing_") || error_class.starts_with("un") ||
      error_class == "baseline_failed") {
    return "preprocess_failed";
  }
  return "unknown";
}

std::string outcome_of(const Json& entry) {
  const std::string decision = text_of(entry, "last_decision");
  if (decision == "KEEP") return "success";
  if (!decision.empty()) return "fail";
  return text_of(entry, "last_status") == "timeout" ? "timeout" : "fail";
}

class Summary {
 public:
  Summary(const Json& candidates, const Json& state, const Environment& environment,
          const std::set<std::string>& in_flight)
      : candidates_(candidates),
        state_(state),
        in_flight_(in_flight),
        ledger_(value_of(state, "kernel_opt_task_attempts")),
        selection_(select_candidates(candidates, state, environment, in_flight)) {
    const Json& queue = value_of(state, "pending_kernel_integrations");
    if (queue.is_object()) {
      for (const Json& record : queue) {
        const std::string status = text_of(record, "status");
        std::string& known = integration_[text_of(record, "task_key")];
        if (known != "integrated") known = status;
      }
    }
    for (const Skipped& skipped : selection_.skipped) {
      skipped_.try_emplace(skipped.kernel_id, &skipped);
    }
    read_groups();
  }

  Json make() {
    Json rows = Json::array();
    const Json& hot = value_of(candidates_, "hot_kernels");
    const Json& list = hot.is_array() ? hot : value_of(candidates_, "hot_kernels_top15");
    if (list.is_array()) {
      for (const Json& row : list) rows.push_back(describe(row));
    }
    std::stable_sort(rows.begin(), rows.end(), [](const Json& a, const Json& b) {
      return number_of(a, "gpu_pct") > number_of(b, "gpu_pct");
    });
    Json glossary = Json::object();
    for (const Glossary& entry : kGlossary) glossary[entry.word] = entry.meaning;
    return {{"schema_version", 1},
            {"totals", totals_},
            {"rejection_breakdown", rejections_},
            {"unattempted_reason_breakdown", unattempted_},
            {"failure_reason_breakdown", failures_},
            {"dispatch_skip_reason",
             text_of(value_of(state_, "last_kernel_opt_dispatch_skip"), "reason")},
            {"field_glossary", std::move(glossary)},
            {"top_takeaways", takeaways(rows)},
            {"by_kernel", std::move(rows)}};
  }

 private:
  void read_groups() {
    const Json& groups = value_of(candidates_, "task_groups");
    if (!groups.is_array()) return;
    for (const Json& group : groups) {
      for (const std::string& id : strings_of(value_of(group, "kernel_ids"))) {
        groups_.try_emplace(id, &group);
      }
    }
  }

  const Json* entry_of(const Json& row) const {
    const auto found = groups_.find(text_of(row, "kernel_id"));
    if (found == groups_.end()) return ledger_.find(task_key(row), {});
    const Json& group = *found->second;
    return ledger_.find(text_of(group, "task_group_key"),
                        strings_of(value_of(group, "legacy_task_group_keys")));
  }

  Json describe(const Json& row) {
    const std::string id = text_of(row, "kernel_id");
    Json made = {{"kernel_id", id},
                 {"name", text_of(row, "name")},
                 {"gpu_pct", number_of(row, "gpu_pct")},
                 {"reason", ""},
                 {"attempts", 0},
                 {"outcome", "skip"}};
    const Json* entry = entry_of(row);
    if (entry != nullptr) describe_attempts(made, *entry);
    made["category"] = category_of(made, id, entry);
    count(totals_, made["category"]);
    return made;
  }

  void describe_attempts(Json& made, const Json& entry) {
    made["attempts"] = value_of(entry, "attempts");
    made["micro_speedup"] = value_of(entry, "last_micro_speedup");
    made["outcome"] = outcome_of(entry);
    if (made["outcome"] == "success") return;
    std::string error_class = text_of(entry, "last_error_class");
    const auto reasons = strings_of(value_of(entry, "last_reasons"));
    if (error_class.empty() && !reasons.empty()) error_class = reasons.front();
    made["error_class"] = class_of_error(error_class);
    made["reason"] = error_class;
    count(failures_, made["error_class"]);
  }

  std::string category_of(Json& made, const std::string& id, const Json* entry) {
    if (in_flight_.contains(id)) return "IN_FLIGHT";
    if (entry != nullptr) {
      const auto found = integration_.find(text_of(*entry, "stable_task_key"));
      const std::string status = found == integration_.end() ? "" : found->second;
      if (status == "integrated") return "INTEGRATED";
      if (status == "pending" || status == "dispatch_failed" || status == "waiting") {
        return "KEEP_PENDING";
      }
      const std::string reason =
          text_of(*entry, "integration_rejected_reason",
                  text_of(*entry, "rejected_reason", made["reason"].get<std::string>()));
      made["reason"] = reason;
      count(rejections_, reason);
      return "ATTEMPTED_REJECTED";
    }
    const auto skipped = skipped_.find(id);
    made["reason"] = skipped == skipped_.end() ? "never_dispatched" : skipped->second->text;
    count(unattempted_,
          skipped == skipped_.end()
              ? "never_dispatched"
              : std::string(skip_reasons()[static_cast<size_t>(skipped->second->reason)].word));
    return "UNATTEMPTED";
  }

  static void count(Json& of, const std::string& word) {
    if (word.empty()) return;
    of[word] = (of.contains(word) ? of[word].get<int64_t>() : 0) + 1;
  }

  static Json takeaways(const Json& rows) {
    Json list = Json::array();
    for (const Json& row : rows) {
      if (list.size() == 5) break;
      const std::string reason = text_of(row, "reason");
      list.push_back(fmt::format("{} ({:.1f} %): {}{}", text_of(row, "name"),
                                 number_of(row, "gpu_pct"), text_of(row, "category"),
                                 reason.empty() ? "" : ", " + reason));
    }
    return list;
  }

  const Json& candidates_;
  const Json& state_;
  const std::set<std::string>& in_flight_;
  LedgerIndex ledger_;
  Selection selection_;
  std::map<std::string, std::string> integration_;  // task key -> status of its record
  std::map<std::string, const Skipped*> skipped_;
  std::map<std::string, const Json*> groups_;  // kernel id -> its group
  Json totals_ = Json::object();
  Json rejections_ = Json::object();
  Json unattempted_ = Json::object();
  Json failures_ = Json::object();
};

}  // namespace

Json session_summary(const Json& candidates, const Json& state, const Environment& environment,
                     const std::set<std::string>& in_flight) {
  return Summary(candidates, state, environment, in_flight).make();
}

Json session_summary(const session::Layout& layout, const Json& state,
                     const Environment& environment) {
  const std::string path = text_of(value_of(state, "last_trace_analyze"), "candidates_path");
  const auto candidates = read_json(path);
  if (!candidates) return {};
  return session_summary(*candidates, state, environment, in_flight_ids(layout));
}

}  // namespace hyperloom::optimize
