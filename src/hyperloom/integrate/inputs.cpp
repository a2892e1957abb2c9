#include "hyperloom/integrate/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hyperloom/integrate/record.h"
#include "loom/base/hash.h"

namespace hyperloom::integrate {
namespace {

// The first of the texts that is not empty.
template <class... Texts>
std::string first_text(Texts... texts) {
  std::string result;
  ((result.empty() ? void(result = texts) : void()), ...);
  return result;
}

bool names(const Json& record, const std::string& kernel, const std::string& group) {
  if (!group.empty()) return text_of(record, "task_group_key") == group;
  return !kernel.empty() && text_of(record, "kernel_id") == kernel;
}

// By id, else the newest that waits for the kernel or its group.
Json find_record(const Json& state, const Json& payload) {
  const std::string id = text_of(payload, "integration_id");
  if (!id.empty()) {
    if (const Json& found = pending_record(state, id); found.is_object()) return found;
    return value_of(value_of(state, "small_positives"), id);
  }
  Json best;
  const Json& records = value_of(state, "pending_kernel_integrations");
  if (!records.is_object()) return best;
  for (const auto& [key, record] : records.items()) {
    if (!is_queued(record) && text_of(record, "status") != "waiting") continue;
    if (!names(record, text_of(payload, "kernel_id"), text_of(payload, "task_group_key"))) continue;
    if (best.is_null() || text_of(best, "created_at") < text_of(record, "created_at")) {
      best = record;
    }
  }
  return best;
}

Json find_entry(const Json& state, const Json& record, const Json& payload) {
  const Json& ledger = value_of(state, "kernel_opt_task_attempts");
  for (const std::string& key : {text_of(record, "task_key"), text_of(record, "task_group_key"),
                                 text_of(payload, "task_group_key")}) {
    if (const Json& entry = value_of(ledger, key); entry.is_object()) return entry;
  }
  const std::string kernel = text_of(payload, "kernel_id");
  if (kernel.empty() || !ledger.is_object()) return {};
  for (const auto& [key, entry] : ledger.items()) {
    if (text_of(entry, "current_kernel_id") == kernel) return entry;
  }
  return {};
}

// Where the candidate's files are, from the request, else from the first of the records that knows.
Json patch_fields(const Json& payload, const Json& record, const Json& last, const Json& entry) {
  const Json& bundle = value_of(record, "artifact_bundle");
  Json fields = payload;
  fields["snapshot_dir"] =
      first_text(text_of(payload, "snapshot_dir"), text_of(bundle, "snapshot_dir"),
                 text_of(record, "snapshot_dir"), text_of(entry, "last_snapshot_dir"));
  const bool snapshot = !text_of(fields, "snapshot_dir").empty();
  // A diff goes with a snapshot, a complete source with none.
  fields["patch_path"] =
      snapshot ? first_text(text_of(payload, "patch_path"), text_of(bundle, "patch_path"),
                            text_of(record, "deploy_patch_path"),
                            text_of(entry, "last_deploy_patch_path"))
               : first_text(text_of(payload, "patch_path"), text_of(record, "artifact_path"),
                            text_of(last, "artifact_path"), text_of(entry, "last_artifact_path"));
  fields["target_file"] =
      first_text(text_of(payload, "target_file"), text_of(payload, "source_file"),
                 text_of(record, "source_file"), text_of(last, "source_file"),
                 text_of(entry, "last_source_file"));
  fields.erase("source_file");
  fields["kernel_repo"] = first_text(
      text_of(payload, "kernel_repo"), text_of(payload, "repo"), text_of(bundle, "repo_root"),
      text_of(record, "deploy_repo_root"), text_of(entry, "last_deploy_repo_root"));
  fields.erase("repo");
  fields["producer_manifest"] =
      first_text(text_of(payload, "producer_manifest"), text_of(bundle, "producer_manifest"));
  fields["kernel_id"] = first_text(text_of(payload, "kernel_id"), text_of(record, "kernel_id"),
                                   text_of(entry, "current_kernel_id"));
  for (const char* field :
       {"snapshot_dir", "patch_path", "target_file", "kernel_repo", "producer_manifest"}) {
    if (text_of(fields, field).empty()) fields.erase(field);
  }
  return fields;
}

// What plan_patch() needs, with paths that are taken from the workload's tree.
Json located(Json fields, const fs::path& tree) {
  for (const char* field : {"target_file", "kernel_repo"}) {
    const fs::path path = text_of(fields, field);
    if (!path.empty() && path.is_relative()) fields[field] = (tree / path).string();
  }
  fields["known_roots"] = Json::array({tree.string()});
  return fields;
}

void overlay(Json& values, const Json& more) {
  if (!more.is_object()) return;
  for (const auto& [key, value] : more.items()) values[key] = value;
}

Result<double> positive(const Json& payload, const char* name, double fallback) {
  const Json& value = value_of(payload, name);
  if (value.is_null()) return fallback;
  const double number = value.is_number() ? value.get<double>() : 0;
  if (number > 0 && std::isfinite(number)) return number;
  return fail("invalid_payload", fmt::format("'{}' must be a positive number", name));
}

// timeout_sec, else budget_minutes, else that of the configuration, else 7800.
Result<double> timeout_of(const Json& payload) {
  double seconds = 7800;
  if (const std::string path = text_of(payload, "config_path"); !path.empty()) {
    const auto config = read_json(path);
    if (!config) return fail("invalid_payload", "'config_path': " + config.error().message);
    const auto set = positive(value_of(*config, "benchmark"), "timeout_seconds", seconds);
    if (!set) return set;
    seconds = *set;
  }
  const auto minutes = positive(payload, "budget_minutes", seconds / 60);
  if (!minutes) return minutes;
  return positive(payload, "timeout_sec", *minutes * 60);
}

Result<void> read_numbers(const Json& payload, Inputs& inputs) {
  const auto timeout = timeout_of(payload);
  const auto call = positive(payload, "call_timeout_sec", inputs.call_timeout_sec);
  const auto sample = positive(payload, "sample_seconds", inputs.sample_seconds);
  const auto pairs = positive(payload, "max_pairs", static_cast<double>(inputs.max_pairs));
  for (const auto* each : {&timeout, &call, &sample, &pairs}) {
    if (!*each) return std::unexpected(each->error());
  }
  inputs.timeout_sec = *timeout;
  inputs.call_timeout_sec = std::min(*call, *timeout);
  inputs.sample_seconds = *sample;
  inputs.max_pairs = static_cast<size_t>(std::min(*pairs, 1e6));
  const Json& threshold = value_of(payload, "keep_threshold_pct");
  if (threshold.is_null()) return {};
  inputs.keep_threshold_pct = threshold.is_number() ? threshold.get<double>() : -1;
  if (inputs.keep_threshold_pct >= 0 && std::isfinite(inputs.keep_threshold_pct)) return {};
  return fail("invalid_payload", "'keep_threshold_pct' must be a number that is not negative");
}

void name_it(Inputs& inputs, const Json& payload) {
  inputs.integration_id =
      first_text(text_of(payload, "integration_id"), text_of(inputs.record, "integration_id"));
  if (!inputs.integration_id.empty()) return;
  inputs.integration_id =
      "kernel-integration:" +
      loom::sha256_hex(compact({{"kernel_id", text_of(inputs.carried, "kernel_id")},
                                {"patch_path", inputs.patch.patch_path.string()},
                                {"target_file", inputs.patch.target_file.string()},
                                {"extra_envs", inputs.extra_envs}}));
}

// Rows of the analysis by kernel id and by name.
const Json* row_of(const Json& candidates, const std::string& id, const std::string& name) {
  const Json& rows = value_of(candidates, "hot_kernels");
  if (!rows.is_array()) return nullptr;
  for (const Json& row : rows) {
    if ((!id.empty() && text_of(row, "kernel_id") == id) ||
        (!name.empty() && text_of(row, "name") == name)) {
      return &row;
    }
  }
  return nullptr;
}

std::optional<double> roofline_of(const Json& row) {
  for (const char* field : {"efficiency_uncapped_pct", "efficiency_percent"}) {
    const double value = number_of(row, field, -1);
    if (value > 0) return value;
  }
  return std::nullopt;
}

}  // namespace

Result<Inputs> Inputs::read(const Json& payload, const task::Context& context) {
  Inputs inputs;
  Json best;
  Json last;
  double baseline = 0;
  context.state().read([&](const Json& state) {
    inputs.record = find_record(state, payload);
    inputs.ledger_entry = find_entry(state, inputs.record, payload);
    best = value_of(state, "current_best");
    last = value_of(state, "last_kernel_opt");
    baseline = number_of(state, "baseline_tput");
  });
  const std::string kernel = text_of(payload, "kernel_id", text_of(inputs.record, "kernel_id"));
  // The last optimization speaks for this request only if it is about the same kernel.
  if (kernel.empty() || text_of(last, "kernel_id") != kernel || inputs.record.is_object())
    last = {};
  const Json fields = located(patch_fields(payload, inputs.record, last, inputs.ledger_entry),
                              context.workload.tree());
  overlay(inputs.extra_envs, value_of(best, "extra_envs"));
  Json fresh = Json::object();
  overlay(fresh, value_of(inputs.record, "extra_envs"));
  overlay(fresh, value_of(payload, "extra_envs"));
  overlay(inputs.extra_envs, fresh);
  inputs.extra_server_args = payload.contains("extra_server_args")
                                 ? payload["extra_server_args"]
                                 : Json(text_of(best, "extra_server_args"));
  const bool has_configuration = !fresh.empty() || !text_of(payload, "extra_server_args").empty();
  const bool patch = fields.contains("patch_path");
  const bool snapshot = fields.contains("snapshot_dir");
  const bool target = fields.contains(snapshot ? "kernel_repo" : "target_file");
  inputs.has_patch = patch && target;
  inputs.env_only = !patch && has_configuration;
  if (!patch) inputs.missing.emplace_back("patch_path");
  if (!target) inputs.missing.emplace_back(snapshot ? "kernel_repo" : "target_file");
  auto request = PatchRequest::read(fields);
  if (!request) return std::unexpected(request.error());
  inputs.patch = std::move(*request);
  for (const char* field : {"kernel_id", "task_group_key", "identity_route", "artifact_kind",
                            "gap_canonical_id", "model_path", "kernel_name", "source_file",
                            "backend", "framework_applyback", "integration_validation_status"}) {
    const Json& given = value_of(payload, field);
    const Json& value = given.is_null() ? value_of(inputs.record, field) : given;
    if (!value.is_null()) inputs.carried[field] = value;
  }
  inputs.carried["kernel_id"] = text_of(fields, "kernel_id");
  inputs.request_id = text_of(payload, "request_id");
  inputs.redispatch_of = text_of(payload, "redispatch_of");
  inputs.base_tput = number_of(payload, "base_tput", number_of(best, "tput", baseline));
  inputs.dry_run_patch = flag_of(payload, "dry_run_patch");
  inputs.defer_finalize = flag_of(payload, "defer_patch_finalize");
  inputs.preapplied_manifest =
      text_of(value_of(payload, "preapplied_apply_result"), "manifest_path");
  if (auto numbers = read_numbers(payload, inputs); !numbers) {
    return std::unexpected(numbers.error());
  }
  name_it(inputs, payload);
  return inputs;
}

std::vector<ChangedKernel> Inputs::kernels(const Json& state) const {
  Json candidates;
  const std::string path = text_of(value_of(state, "last_trace_analyze"), "candidates_path");
  if (!path.empty()) candidates = read_json(path).value_or(Json());
  std::vector<ChangedKernel> result;
  const auto add = [&](const std::string& id, const std::string& name, double speed_up,
                       double known_share) {
    const Json* row = row_of(candidates, id, name);
    const double share = row == nullptr ? known_share : number_of(*row, "e2e_share", known_share);
    if (!(share > 0)) return;
    ChangedKernel kernel{.e2e_share = share};
    if (speed_up > 0) kernel.speed_up = speed_up;
    if (row != nullptr) kernel.roofline_pct = roofline_of(*row);
    kernel.name = row == nullptr ? name : text_of(*row, "name", name);
    result.push_back(kernel);
  };
  const auto add_record = [&](const Json& each, const std::string& id, const std::string& name) {
    const Json& several = value_of(each, "kernel_speedups");
    if (several.is_object() && !several.empty()) {
      for (const auto& [kernel, speed_up] : several.items()) {
        add("", kernel, speed_up.is_number() ? speed_up.get<double>() : 0, 0);
      }
      return;
    }
    add(id, name, number_of(each, "micro_speedup"), number_of(each, "e2e_share"));
  };
  for (const Json& member : members) {
    add_record(member, text_of(member, "kernel_id"), text_of(member, "kernel_name"));
  }
  if (members.empty()) {
    add_record(record, text_of(carried, "kernel_id"), text_of(carried, "kernel_name"));
  }
  return result;
}

Inputs Inputs::combine(std::vector<Json> members, const task::Context& context) {
  Inputs inputs;
  inputs.action = "combined";
  inputs.timeout_sec = 1200;
  context.state().read([&](const Json& state) {
    const Json& best = value_of(state, "current_best");
    inputs.base_tput = number_of(best, "tput", number_of(state, "baseline_tput"));
    overlay(inputs.extra_envs, value_of(best, "extra_envs"));
    inputs.extra_server_args = text_of(best, "extra_server_args");
  });
  Json ids = Json::array();
  for (Json& member : members) {
    auto request = PatchRequest::read(
        located(patch_fields(Json::object(), member, {}, {}), context.workload.tree()));
    const bool patch = request && !request->patch_path.empty();
    if (patch && !plan_patch(*request)) continue;
    const Json& envs = value_of(member, "extra_envs");
    if (!patch && (!envs.is_object() || envs.empty())) continue;
    overlay(inputs.extra_envs, envs);
    if (patch) inputs.more.push_back(std::move(*request));
    ids.push_back(text_of(member, "integration_id"));
    inputs.members.push_back(std::move(member));
  }
  inputs.has_patch = !inputs.more.empty();
  inputs.env_only = !inputs.has_patch;
  if (inputs.has_patch) {
    inputs.patch = std::move(inputs.more.front());
    inputs.more.erase(inputs.more.begin());
  }
  inputs.carried = {{"kernel_id", ""}, {"members", ids}};
  inputs.integration_id = "stack-validation:" + loom::sha256_hex(compact(ids));
  return inputs;
}

}  // namespace hyperloom::integrate
