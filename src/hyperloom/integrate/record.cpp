#include "hyperloom/integrate/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "loom/base/hash.h"

namespace hyperloom::integrate {
namespace {

Json& object_of(Json& parent, const std::string& name) {
  Json& value = parent[name];
  if (!value.is_object()) value = Json::object();
  return value;
}

int64_t count_of(const Json& object, std::string_view key) {
  const Json& value = value_of(object, key);
  return value.is_number_integer() ? value.get<int64_t>() : 0;
}

void add(Json& entry, const char* key) { entry[key] = count_of(entry, key) + 1; }

// What the attempts' rows hold.
constexpr const char* kAttemptFields[] = {
    "new_tput",  "gain_pct",           "gain_low_pct",  "gain_high_pct",   "pairs",
    "accuracy",  "accuracy_pass",      "artifact_kind", "validation_tier", "workspace",
    "base_tput", "keep_threshold_pct", "report_path"};

Json attempt_row(const Outcome& outcome, const Json& state) {
  Json row = {{"decision", decision_name(outcome.judgement.decision)},
              {"status", outcome.status},
              {"error_class", outcome.error_class},
              {"is_fault", outcome.fault},
              {"decision_reason", outcome.judgement.reason},
              {"integration_id", outcome.integration_id},
              {"request_id", outcome.request_id},
              {"ts", outcome.ts},
              {"cycle", count_of(state, "macro_cycle")}};
  for (const char* field : kAttemptFields) {
    if (const Json& value = value_of(outcome.fields, field); !value.is_null()) row[field] = value;
  }
  return row;
}

// The reason for which a patch is given up for good, empty when it is not.
std::string rejection_reason(const Outcome& outcome, const Json& entry) {
  if (outcome.fault) {
    const int64_t faults = count_of(entry, "fault_count");
    return faults >= kMaxFaults ? fmt::format("fault_attempts_exhausted_{}", kMaxFaults) : "";
  }
  return outcome.judgement.decision == Decision::Revert ? "revert_decision" : "";
}

void reject(Json& state, const Outcome& outcome, const Json& entry, const std::string& reason) {
  Json row = {{"key", outcome.key},
              {"integration_id", outcome.integration_id},
              {"reason", reason},
              {"decision_reason", outcome.judgement.reason},
              {"attempt_count", value_of(entry, "attempt_count")},
              {"keep_threshold_pct", outcome.keep_threshold_pct},
              {"ts", outcome.ts}};
  if (entry.contains("best_gain_pct")) row["best_gain_pct"] = entry["best_gain_pct"];
  object_of(state, "rejected_kernel_patches")[outcome.key] = std::move(row);
  const Json record = pending_record(state, outcome.integration_id);
  const std::string group = text_of(record, "task_group_key");
  const std::string kernel = text_of(record, "kernel_id");
  Json& ledger = object_of(state, "kernel_opt_task_attempts");
  if (const std::string task = text_of(record, "task_key", group); ledger.contains(task)) {
    Json& attempt = ledger[task];
    attempt["integration_status"] = "rejected";
    attempt["integration_rejected_reason"] = reason;
    attempt["integration_rejected_at"] = outcome.ts;
  }
  if (!group.empty() || kernel.empty()) return;
  Json& ids = state["rejected_kernel_ids"];
  if (!ids.is_array()) ids = Json::array();
  if (std::ranges::find(ids, Json(kernel)) == ids.end()) ids.push_back(kernel);
}

bool is_open(const Json& record) {
  return is_queued(record) || text_of(record, "status") == "waiting";
}

// A loss of nothing: what did not clear the threshold alone may do so together with others.
void list_small_positive(Json& state, const Outcome& outcome) {
  const std::string& reason = outcome.judgement.reason;
  const double gain = number_of(outcome.fields, "gain_pct");
  if (outcome.judgement.decision != Decision::Revert || !(gain > 0)) return;
  if (reason != "below_threshold" && reason != "within_noise") return;
  Json record = pending_record(state, outcome.integration_id);
  if (!record.is_object()) return;
  record["status"] = "small_positive";
  record["reason"] = reason;
  record["gain_pct"] = gain;
  record["measured_end_to_end"] = true;
  object_of(state, "small_positives")[outcome.integration_id] = std::move(record);
}

// Candidates of files that a kept change has moved on wait in vain; the queue says so.
void supersede(Json& records, const Json& kept) {
  const std::vector<std::string> moved = files_of(kept);
  for (auto& [id, record] : records.items()) {
    if (!is_open(record)) continue;
    const auto files = files_of(record);
    const bool shares = std::ranges::any_of(files, [&](const std::string& file) {
      return std::ranges::find(moved, file) != moved.end();
    });
    if (shares) record["reason"] = "source_in_stack";
  }
}

void move_pending(Json& state, const Outcome& outcome, const std::string& rejected) {
  Json& records = object_of(state, "pending_kernel_integrations");
  if (!records.contains(outcome.integration_id)) return;
  Json& record = records[outcome.integration_id];
  record["reason"] = outcome.judgement.reason;
  record["last_decision"] = decision_name(outcome.judgement.decision);
  if (outcome.judgement.decision == Decision::Keep) {
    record["status"] = "integrated";
    const std::string task = text_of(record, "task_key", text_of(record, "task_group_key"));
    Json& ledger = object_of(state, "kernel_opt_task_attempts");
    if (ledger.contains(task)) ledger[task]["integration_status"] = "integrated";
    supersede(records, Json(record));
  } else if (!rejected.empty()) {
    record["status"] = "rejected";
  } else if (outcome.judgement.decision == Decision::NeedsReview) {
    record["status"] = "waiting";
    record["waiting_reason"] = outcome.judgement.reason;
    record["turn"] = false;
  } else {
    record["status"] = "pending";  // a fault that may be tried once more
  }
}

}  // namespace

std::string recording_key(const std::string& patch_hash, const Json& envs,
                          const Json& server_args) {
  return loom::sha256_hex(
      compact({{"patch", patch_hash}, {"envs", envs}, {"server_args", server_args}}));
}

void record_integration(Json& state, const Outcome& outcome) {
  Json& entry = object_of(object_of(state, "kernel_integrate_attempts"), outcome.key);
  Json& attempts = entry["attempts"];
  if (!attempts.is_array()) attempts = Json::array();
  attempts.push_back(attempt_row(outcome, state));
  add(entry, "attempt_count");
  const bool review = outcome.judgement.decision == Decision::NeedsReview;
  if (outcome.fault && !review) {
    add(entry, "fault_count");
  } else if (!review) {
    add(entry, "verdict_attempt_count");
  }
  if (const Json& gain = value_of(outcome.fields, "gain_pct"); gain.is_number()) {
    const double best = number_of(entry, "best_gain_pct", gain.get<double>());
    entry["best_gain_pct"] = std::max(best, gain.get<double>());
  }
  entry["last_decision"] = decision_name(outcome.judgement.decision);
  entry["last_status"] = outcome.status;
  entry["last_error_class"] = outcome.error_class;
  entry["last_decision_reason"] = outcome.judgement.reason;
  entry["last_integration_id"] = outcome.integration_id;
  entry["last_ts"] = outcome.ts;
  const std::string rejected = review ? "" : rejection_reason(outcome, entry);
  entry["rejected"] = !rejected.empty();
  entry["retryable"] = outcome.fault && !review && rejected.empty();
  if (!rejected.empty()) reject(state, outcome, Json(entry), rejected);
  list_small_positive(state, outcome);
  move_pending(state, outcome, rejected);
}

bool is_queued(const Json& record) {
  const std::string status = text_of(record, "status");
  return status == "pending" || status == "dispatch_failed";
}

const Json& pending_record(const Json& state, const std::string& integration_id) {
  return value_of(value_of(state, "pending_kernel_integrations"), integration_id);
}

const Json& rejection_of(const Json& state, const std::string& integration_id,
                         const std::string& key) {
  const Json& rejected = value_of(state, "rejected_kernel_patches");
  if (const Json& found = value_of(rejected, key); found.is_object()) return found;
  static const Json none;
  if (integration_id.empty() || !rejected.is_object()) return none;
  for (const auto& [other, row] : rejected.items()) {
    if (text_of(row, "integration_id") == integration_id) return row;
  }
  return none;
}

int64_t attempt_count(const Json& state, const std::string& key) {
  return count_of(value_of(value_of(state, "kernel_integrate_attempts"), key), "attempt_count");
}

Json recorded_result(const Json& state, const std::string& request_id) {
  if (request_id.empty()) return {};
  const Json& last = value_of(state, "last_integrate_result");
  return text_of(last, "request_id") == request_id ? value_of(last, "result") : Json();
}

std::vector<std::string> files_of(const Json& record) {
  std::vector<std::string> files;
  const auto add = [&](const Json& list) {
    if (!list.is_array()) return;
    for (const Json& file : list) {
      if (file.is_string()) files.push_back(file.get<std::string>());
    }
  };
  if (const std::string source = text_of(record, "source_file"); !source.empty()) {
    files.push_back(source);
  }
  const Json& bundle = value_of(record, "artifact_bundle");
  add(value_of(bundle, "write_paths"));
  add(value_of(bundle, "delete_paths"));
  add(value_of(record, "source_files"));  // of a stack entry
  return files;
}

Settled::Settled(const Json& state) {
  const Json& stack = value_of(state, "optimization_stack");
  if (stack.is_array()) {
    for (const Json& entry : stack) {
      for (std::string& file : files_of(entry)) stacked_.insert(std::move(file));
    }
  }
  const Json& rejected = value_of(state, "rejected_kernel_patches");
  if (!rejected.is_object()) return;
  for (const auto& [key, row] : rejected.items()) rejected_.insert(text_of(row, "integration_id"));
}

bool Settled::is_stacked(const Json& record) const {
  return std::ranges::any_of(files_of(record),
                             [&](const std::string& file) { return stacked_.contains(file); });
}

bool Settled::is_rejected(const Json& record) const {
  return rejected_.contains(text_of(record, "integration_id"));
}

}  // namespace hyperloom::integrate
