#include "hyperloom/optimize/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "hyperloom/core/time.h"
#include "hyperloom/optimize/run_again.h"
#include "hyperloom/optimize/task_key.h"
#include "loom/base/hash.h"

namespace hyperloom::optimize {
namespace {

constexpr size_t kHistory = 10;
constexpr std::string_view kLedger = "kernel_opt_task_attempts";
// kernel id -> {key, rejected}: the task that the id means, and whether `rejected_kernel_ids` has
// it, so that neither list is searched.
constexpr std::string_view kIndex = "kernel_opt_kernel_index";

Json& object_of(Json& state, std::string_view name) {
  Json& value = state[std::string(name)];
  if (!value.is_object()) value = Json::object();
  return value;
}
Json& array_of(Json& state, std::string_view name) {
  Json& value = state[std::string(name)];
  if (!value.is_array()) value = Json::array();
  return value;
}

int64_t count_of(const Json& entry, std::string_view key) {
  const Json& value = value_of(entry, key);
  return value.is_number_integer() ? value.get<int64_t>() : 0;
}

std::string decision_of(const Json& result) {
  return text_of(value_of(result, "proposal"), "decision", text_of(result, "decision"));
}

Json reasons_of(const Json& result) {
  const Json& reasons = value_of(value_of(result, "proposal"), "reasons");
  return reasons.is_array() ? reasons : Json::array();
}

bool has_reason(const Json& result, std::string_view reason) {
  return std::ranges::any_of(reasons_of(result), [&](const Json& item) { return item == reason; });
}

bool is_dispatch_skip(const Json& result) {
  static constexpr std::array kReasons = {"no_eligible_kernels", "requested_kernel_not_eligible",
                                          "candidates_unreadable", "state_unreadable"};
  return std::ranges::find(kReasons, text_of(result, "reason")) != kReasons.end();
}

// Whether the result says something about a kernel.
bool is_attempt(const Json& result) {
  const std::string status = text_of(result, "status");
  const std::string error_class = text_of(result, "error_class");
  if (flag_of(result, "batch_mode") || flag_of(result, "dry_run")) return false;
  if (error_class == "not_available" || error_class == "interrupted" ||
      error_class == "cancelled") {
    return false;
  }
  if (status == "skipped" && decision_of(result).empty()) return false;
  return !text_of(result, "kernel_id").empty() || !text_of(result, "task_group_key").empty();
}

class Recorder {
 public:
  Recorder(Json& state, const Json& result, const Environment& environment)
      : state_(state),
        result_(result),
        environment_(environment),
        verification_(value_of(result, "verification")),
        kernel_(text_of(result, "kernel_id")),
        source_(source_of(result)),
        now_(utc_now()) {
    done_.task_key = task_key(result);
  }

  Recorded run() {
    done_.counted = true;
    migrate_aliases();
    leave_other_task();
    Json& entry = count_attempt();
    judge(entry);
    fill(entry);
    if (decision_of(result_) == "KEEP") queue(entry);
    if (decision_of(result_) == "REVERT" && has_reason(result_, "below_threshold")) {
      list_small_positive(entry);
    }
    set_last();
    return std::move(done_);
  }

 private:
  Json& ledger() { return object_of(state_, kLedger); }
  Json& index_of(const std::string& kernel) {
    Json& slot = object_of(state_, kIndex)[kernel];
    if (!slot.is_object()) slot = {{"key", ""}, {"rejected", false}};
    return slot;
  }

  void migrate_aliases() {
    std::vector<std::string> aliases = strings_of(value_of(result_, "legacy_task_group_keys"));
    aliases.push_back(legacy_task_key(kernel_, source_));
    for (const std::string& alias : aliases) {
      ++done_.looked_at;
      if (alias == done_.task_key || !ledger().contains(alias)) continue;
      Json entry = std::move(ledger()[alias]);
      ledger().erase(alias);
      if (!ledger().contains(done_.task_key)) {
        if (auto kernel = text_of(entry, "current_kernel_id"); !kernel.empty()) {
          index_of(kernel)["key"] = done_.task_key;
        }
        ledger()[done_.task_key] = std::move(entry);
      }
    }
  }

  // An id is a rank: found under another task, it names that one no longer, and what was rejected
  // under it does not concern this one.
  void leave_other_task() {
    std::vector<std::string> members = strings_of(value_of(result_, "task_group_kernel_ids"));
    members.push_back(kernel_);
    for (const std::string& member : members) {
      ++done_.looked_at;
      const std::string other = text_of(index_of(member), "key");
      if (other.empty() || other == done_.task_key) continue;
      if (flag_of(index_of(member), "rejected")) {
        Json& rejected = array_of(state_, "rejected_kernel_ids");
        done_.looked_at += rejected.size();
        const auto kept = std::remove(rejected.begin(), rejected.end(), Json(member));
        rejected.erase(kept, rejected.end());
      }
      if (ledger().contains(other)) ledger()[other]["current_kernel_id"] = "";
      index_of(member) = {{"key", ""}, {"rejected", false}};
    }
  }

  Json& count_attempt() {
    Json& entry = ledger()[done_.task_key];
    ++done_.looked_at;
    if (!entry.is_object()) entry = Json::object();
    if (text_of(entry, "last_source_file") != source_) {
      entry["partial_count"] = 0;
      entry["failure_count"] = 0;
      for (const char* field : {"rejected_reason", "integration_status",
                                "integration_rejected_reason", "integration_rejected_at"}) {
        entry.erase(field);
      }
    }
    entry["attempts"] = count_of(entry, "attempts") + 1;
    Json& per_source = entry["attempts_per_source"];
    if (!per_source.is_object()) per_source = Json::object();
    per_source[source_] = count_of(per_source, source_) + 1;
    index_of(kernel_)["key"] = done_.task_key;
    return entry;
  }

  double gpu_pct(const Json& entry) const {
    return number_of(result_, "gpu_pct", number_of(entry, "last_gpu_pct"));
  }

  void judge(Json& entry) {
    const std::string decision = decision_of(result_);
    if (decision == "KEEP") {
      entry["partial_count"] = 0;
      entry["failure_count"] = 0;
      entry.erase("rejected_reason");
      return;
    }
    std::string reason;
    if (decision == "REVERT") reason = "revert_decision";
    if (decision == "PARTIAL") {
      const int64_t count = count_of(entry, "partial_count") + 1;
      entry["partial_count"] = count;
      if (count >= partial_cap(environment_)) {
        reason = fmt::format("max_partial_attempts_{}_without_keep", count);
      }
    }
    if (is_infrastructure_failure(result_)) {
      const int64_t count = count_of(entry, "failure_count") + 1;
      entry["failure_count"] = count;
      if (count >= failure_cap(environment_, gpu_pct(entry))) {
        reason = fmt::format("max_failures_{}_without_keep", count);
      }
    }
    if (!reason.empty()) reject(entry, std::move(reason));
  }

  void reject(Json& entry, std::string reason) {
    entry["rejected_reason"] = reason;
    done_.rejected_reason = std::move(reason);
    Json& slot = index_of(kernel_);
    if (flag_of(slot, "rejected")) return;
    array_of(state_, "rejected_kernel_ids").push_back(kernel_);
    slot["rejected"] = true;
  }

  void fill(Json& entry) {
    entry["stable_task_key"] = done_.task_key;
    if (!entry.contains("kernel_id")) entry["kernel_id"] = kernel_;
    entry["current_kernel_id"] = kernel_;
    entry["last_decision"] = decision_of(result_);
    entry["last_status"] = text_of(result_, "status");
    entry["last_error_class"] = text_of(result_, "error_class");
    entry["last_reasons"] = reasons_of(result_);
    entry["last_source_file"] = source_;
    entry["last_gpu_pct"] = gpu_pct(entry);
    entry["last_ts"] = now_;
    static constexpr std::pair<const char*, const char*> kFromVerification[] = {
        {"last_micro_speedup", "micro_speedup"},
        {"last_artifact_path", "best_artifact_path"},
        {"last_artifact_bundle", "best_artifact_bundle"},
        {"last_snapshot_dir", "deploy_snapshot_dir"},
        {"last_deploy_patch_path", "deploy_patch_path"},
        {"last_deploy_repo_root", "deploy_repo_root"},
        {"last_backend", "best_backend"},
        {"last_correctness_passed", "correctness_passed"},
        {"last_correctness_source", "correctness_source"},
        {"last_integration_validation_status", "integration_validation_status"},
        {"last_framework_applyback", "framework_applyback"}};
    for (const auto& [to, from] : kFromVerification) entry[to] = value_of(verification_, from);
    static constexpr const char* kSame[] = {"identity_route",
                                            "operator_identity",
                                            "legacy_task_group_keys",
                                            "task_group_id",
                                            "task_group_key",
                                            "task_group_kernel_ids",
                                            "task_group_primary_kernel_id",
                                            "task_group_shape_case_count",
                                            "task_group_shape_case_ids",
                                            "vendor_playbook_id",
                                            "vendor_playbook_deploy_blocked"};
    for (const char* field : kSame) {
      if (const Json& value = value_of(result_, field); !value.is_null()) entry[field] = value;
    }
    Json& history = entry["history"];
    if (!history.is_array()) history = Json::array();
    history.push_back({{"attempt", entry["attempts"]},
                       {"decision", entry["last_decision"]},
                       {"status", entry["last_status"]},
                       {"error_class", entry["last_error_class"]},
                       {"reasons", entry["last_reasons"]},
                       {"micro_speedup", entry["last_micro_speedup"]},
                       {"backend", entry["last_backend"]},
                       {"ts", now_}});
    if (history.size() > kHistory) history.erase(history.begin());
  }

  // What integrate needs to know of a candidate.
  Json integration_record(const Json& entry, const std::string& status) {
    const Json& bundle = value_of(entry, "last_artifact_bundle");
    done_.integration_id =
        integration_id(done_.task_key, source_, text_of(entry, "last_artifact_path"), bundle);
    return {
        {"integration_id", done_.integration_id},
        {"task_key", done_.task_key},
        {"task_group_key", text_of(result_, "task_group_key")},
        {"identity_route", value_of(entry, "identity_route")},
        {"legacy_task_group_keys", value_of(entry, "legacy_task_group_keys")},
        {"kernel_id", kernel_},
        {"kernel_name", text_of(result_, "kernel_name")},
        {"source_file", source_},
        {"artifact_path", value_of(entry, "last_artifact_path")},
        {"artifact_bundle", bundle},
        {"snapshot_dir", value_of(entry, "last_snapshot_dir")},
        {"deploy_patch_path", value_of(entry, "last_deploy_patch_path")},
        {"deploy_repo_root", value_of(entry, "last_deploy_repo_root")},
        {"extra_envs", value_of(verification_, "extra_envs")},
        {"micro_speedup", value_of(entry, "last_micro_speedup")},
        {"kernel_speedups", value_of(verification_, "kernel_speedups")},
        {"optimization_decision", decision_of(result_)},
        {"trace_gpu_pct", value_of(entry, "last_gpu_pct")},
        {"e2e_share", value_of(result_, "e2e_share")},
        {"backend", value_of(entry, "last_backend")},
        {"created_at", now_},
        {"status", status},
        {"correctness_source", value_of(entry, "last_correctness_source")},
        {"artifact_kind", bundle.is_object() ? text_of(bundle, "type") : "source_file"},
        {"integration_validation_status", value_of(entry, "last_integration_validation_status")},
        {"framework_applyback", value_of(entry, "last_framework_applyback")}};
  }

  void queue(Json& entry) {
    if (!text_of(entry, "vendor_playbook_id").empty()) {
      entry["vendor_playbook_deploy_blocked"] = true;
      return;
    }
    Json record = integration_record(entry, "pending");
    entry["integration_status"] = "pending";
    Json& pending = object_of(state_, "pending_kernel_integrations");
    if (!pending.contains(done_.integration_id)) {
      pending[done_.integration_id] = std::move(record);
    }
  }

  void list_small_positive(const Json& entry) {
    if (!text_of(entry, "vendor_playbook_id").empty()) return;
    Json record = integration_record(entry, "small_positive");
    record["reason"] = "below_threshold";
    record["measured_end_to_end"] = false;
    object_of(state_, "small_positives")[done_.integration_id] = std::move(record);
  }

  // A KEEP that awaits its integration stays what `last_kernel_opt` tells of.
  void set_last() {
    const std::string decision = decision_of(result_);
    const std::string last = text_of(value_of(state_, "last_kernel_opt"), "integration_id");
    if (decision != "KEEP" && !last.empty()) {
      ++done_.looked_at;
      const Json& waiting =
          value_of(value_of(value_of(state_, "pending_kernel_integrations"), last), "status");
      if (waiting == "pending" || waiting == "dispatch_failed" || waiting == "waiting") return;
    }
    const Json& entry = ledger()[done_.task_key];
    state_["last_kernel_opt"] = {{"kernel_id", kernel_},
                                 {"task_key", done_.task_key},
                                 {"task_group_key", text_of(result_, "task_group_key")},
                                 {"run_id", text_of(result_, "run_id")},
                                 {"status", text_of(result_, "status")},
                                 {"decision", decision},
                                 {"reasons", reasons_of(result_)},
                                 {"error_class", text_of(result_, "error_class")},
                                 {"source_file", source_},
                                 {"artifact_path", value_of(entry, "last_artifact_path")},
                                 {"artifact_bundle", value_of(entry, "last_artifact_bundle")},
                                 {"micro_speedup", value_of(entry, "last_micro_speedup")},
                                 {"integration_id", decision == "KEEP" ? done_.integration_id : ""},
                                 {"ts", now_}};
  }

  Json& state_;
  const Json& result_;
  const Environment& environment_;
  const Json& verification_;
  std::string kernel_;
  std::string source_;
  std::string now_;
  Recorded done_;
};

}  // namespace

Recorded record_kernel_opt(Json& state, const Json& result, const Environment& environment) {
  if (text_of(result, "status") == "skipped" && is_dispatch_skip(result)) {
    state["last_kernel_opt_dispatch_skip"] = {
        {"reason", text_of(result, "reason")},
        {"message", text_of(result, "message")},
        {"kernels_considered", value_of(result, "kernels_considered")},
        {"requested_kernel_id", text_of(result, "requested_kernel_id")},
        {"ts", utc_now()}};
  }
  if (!is_attempt(result)) return {};
  return Recorder(state, result, environment).run();
}

std::string integration_id(const std::string& task_key, const std::string& source_file,
                           const std::string& artifact_path, const Json& artifact_bundle) {
  return "kernel-integration:" + loom::sha256_hex(compact({{"task_key", task_key},
                                                           {"source_file", source_file},
                                                           {"artifact_path", artifact_path},
                                                           {"artifact_bundle", artifact_bundle}}));
}

int64_t attempts_of(const Json& state, const Json& row) {
  const Json& ledger = value_of(state, kLedger);
  const Json& entry = value_of(ledger, task_key(row));
  if (entry.is_object()) return count_of(entry, "attempts");
  std::vector<std::string> aliases =
      strings_of(value_of(value_of(row, "task_group"), "legacy_task_group_keys"));
  aliases.push_back(legacy_task_key(text_of(row, "kernel_id"), source_of(row)));
  for (const std::string& alias : aliases) {
    if (const Json& found = value_of(ledger, alias); found.is_object()) {
      return count_of(found, "attempts");
    }
  }
  return 0;
}

}  // namespace hyperloom::optimize
