#include "hyperloom/coordinator/request_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "hyperloom/coordinator/heartbeat.h"
#include "hyperloom/coordinator/records.h"
#include "hyperloom/request/schema.h"

namespace hyperloom::coordinator {
namespace {

constexpr const char* kOrchestration = "orchestration";
constexpr const char* kHandler = "programmatic_handler";
constexpr const char* kRejected = "coordinator_auto_reject";
constexpr const char* kCache = "shared_state_cache";
constexpr const char* kRejection = "shared_state_kernel_rejection";
constexpr const char* kEntry = "kernel_entry_auto";

bool is_integrate(const std::string& kind) { return kind == "integrate" || kind == "apply_patch"; }

bool is_failure(const Json& result) {
  const std::string status = text_of(result, "status", "ok");
  return status == "failed" || status == "error";
}

Json failure(const std::string& error_class, const std::string& error) {
  return {{"status", "failed"}, {"error_class", error_class}, {"error", error}};
}

// What a row about a result may point at.
Json artifacts_of(const Json& result) {
  Json artifacts = Json::array();
  for (const char* field : {"candidates_path", "report_path", "workspace", "patch_path"}) {
    const std::string path = text_of(result, field);
    if (!path.empty()) artifacts.push_back(path);
  }
  return artifacts;
}

std::string label_of(const RequestRow& row) {
  const std::string flat = text_of(row.payload, "kernel_id");
  return text_of(value_of(row.payload, "params"), "kernel_id", flat);
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Whether two payloads of one kind mean the same work.
bool same_work(const Json& a, const Json& b) {
  for (const char* field : {"integration_id", "kernel_id", "task_id"}) {
    if (text_of(a, field) != text_of(b, field)) return false;
  }
  return true;
}

}  // namespace

const std::set<std::string>& registered_kinds() {
  static const std::set<std::string> kinds = {"apply_patch",      "integrate",
                                              "run_collective",   "run_gemm_tuning",
                                              "run_optimization", "trace_analyze"};
  return kinds;
}

// Responses.

Result<void> RequestFlow::respond(const RequestRow& row, const Json& result,
                                  const std::string& source) {
  bus::Message response;
  response.from_agent = kKernelAgent;
  response.to_agent = row.role;
  response.topic = "response";
  response.in_reply_to = row.msg_id;
  response.payload = {{"in_reply_to", row.msg_id},
                      {"kind", row.kind + "_done"},
                      {"status", text_of(result, "status", "ok")},
                      {"result", result},
                      {"source", source}};
  if (row.kind.ends_with("integrate") || row.kind == "apply_patch") {
    response.payload["decision"] = value_of(result, "decision");
    response.payload["gain_pct"] = value_of(result, "gain_pct");
  }
  if (row.kind == "geak_e2e") {
    response.payload["speedup"] = value_of(result, "speedup");
    response.payload["result_path"] = value_of(result, "result_path");
  }
  auto appended = services_.bus.append(std::move(response));
  if (!appended) return std::unexpected(appended.error());
  return {};
}

Result<Json> RequestFlow::refuse(const RequestRow& row, const std::string& error_class,
                                 const std::string& error, const Json& more) {
  Json result = failure(error_class, error);
  result.update(more);
  auto recorded = services_.session.state().update(
      "request.refuse", [&](Json& state) { add_failure(state, row.kind, row.msg_id, result); });
  if (!recorded) return std::unexpected(recorded.error());
  if (auto sent = respond(row, result, kRejected); !sent) return std::unexpected(sent.error());
  return result;
}

// Lifecycle.

Result<void> RequestFlow::start(const RequestRow& row) {
  const std::string phase = services_.phase();
  return services_.session.state().update("request.start", [&](Json& state) {
    add_lifecycle(state, {{"phase", phase},
                          {"step", row.kind},
                          {"label", label_of(row)},
                          {"status", "START"},
                          {"detail", row.msg_id}});
  });
}

Result<void> RequestFlow::finish(const RequestRow& row, const Ran& ran, double seconds) {
  const std::string status = text_of(ran.result, "status", "ok");
  const std::string phase = services_.phase();
  return services_.session.state().update("request.finish", [&](Json& state) {
    add_lifecycle(state, {{"phase", phase},
                          {"step", row.kind},
                          {"label", label_of(row)},
                          {"status", is_failure(ran.result) ? "ERROR" : "END"},
                          {"detail", ran.detail.empty() ? status : ran.detail},
                          {"artifacts", artifacts_of(ran.result)},
                          {"duration_s", seconds}});
    if (is_failure(ran.result)) add_failure(state, row.kind, row.msg_id, ran.result);
  });
}

// Running.

Json RequestFlow::guarded(const std::string& kind, const std::function<Json()>& run) {
  try {
    const Heartbeat heartbeat(services_, kind);
    Json result = run();
    if (!result.is_object()) {
      return failure("handler_exception",
                     fmt::format("the handler gave a {}, not an object", result.type_name()));
    }
    return result;
  } catch (const std::exception& exception) {
    return failure("handler_exception", exception.what());
  }
}

// What a payload leaves out and the state knows.
Json RequestFlow::complete(const RequestRow& row, Json payload) const {
  services_.session.state().read([&](const Json& state) {
    if (row.kind == "run_optimization" && !payload.contains("candidates_path")) {
      const Json& path = value_of(value_of(state, "last_trace_analyze"), "candidates_path");
      if (path.is_string()) payload["candidates_path"] = path;
    }
    if (is_integrate(row.kind) && !payload.contains("base_tput")) {
      double base = number_of(value_of(state, "current_best"), "tput");
      if (!(base > 0)) base = number_of(state, "baseline_tput");
      payload["base_tput"] = base;
    }
  });
  payload["request_id"] = row.msg_id;
  if (!row.redispatch_of.empty()) payload["redispatch_of"] = row.redispatch_of;
  return payload;
}

// What was analyzed before, or rejected before, is not done again.
bool RequestFlow::answer_from_state(const RequestRow& row, const Json& payload, Ran& ran) const {
  if (row.kind == "trace_analyze") {
    const std::string input = text_of(payload, "trace_input", text_of(payload, "trace_dir"));
    const Json last = services_.session.state().get("last_trace_analyze");
    const std::string candidates = text_of(last, "candidates_path");
    std::error_code error;
    const bool same = !input.empty() && (input == text_of(last, "trace_input") ||
                                         input == text_of(last, "trace_dir"));
    if (!same || candidates.empty() || !std::filesystem::exists(candidates, error)) return false;
    ran.result = {{"status", "ok"},
                  {"candidates_path", candidates},
                  {"hot_kernels_top15", value_of(last, "hot_kernels_top15")},
                  {"reusable_native_kernel_ids", value_of(last, "reusable_native_kernel_ids")},
                  {"cached_at", value_of(last, "ts")},
                  {"note", "this trace was analyzed before; the artifact is still there"}};
    ran.source = kCache;
    ran.detail = "cache_hit";
    return true;
  }
  if (!is_integrate(row.kind) || !services_.patch_key) return false;
  const std::string key = services_.patch_key(payload);
  const Json rejected = services_.session.state().get("rejected_kernel_patches");
  if (key.empty() || !rejected.contains(key)) return false;
  ran.result = {{"status", "skipped"},
                {"decision", "REVERT"},
                {"error_class", "kernel_patch_rejected"},
                {"reason", "kernel_patch_rejected"},
                {"decision_reason", "kernel_patch_rejected"},
                {"kernel_id", text_of(payload, "kernel_id")},
                {"rejection", rejected.at(key)}};
  ran.source = kRejection;
  ran.detail = "rejected";
  return true;
}

Json RequestFlow::run_handler(const RequestRow& row, const Json& payload) {
  auto found = services_.handlers.find(row.kind);
  if (found == services_.handlers.end() && row.kind == "apply_patch") {
    found = services_.handlers.find("integrate");
  }
  if (found == services_.handlers.end() || !found->second) {
    return failure("not_available",
                   fmt::format("the engine of '{}' is not part of this program", row.kind));
  }
  return guarded(row.kind, [&] { return found->second(payload); });
}

Result<Json> RequestFlow::answer(const RequestRow& row) {
  if (row.target != kKernelAgent) {
    return refuse(row, "unknown_target_agent", fmt::format("'{}' takes no requests", row.target));
  }
  // Whether kernel work is switched off, then whether there is such a kind.
  if (services_.session.state().get("kernel_enabled") == false) {
    return refuse(row, "agent_disabled", "kernel work is switched off (--no-kernel)");
  }
  if (!registered_kinds().contains(row.kind)) {
    return refuse(row, "unknown_kernel_kind", "there is no such kind of request",
                  {{"valid_kinds", registered_kinds()}});
  }
  // The payload, complete and checked, or the result that says what is wrong with it.
  Ran ran;
  ran.source = kHandler;
  auto merged = request::merge_params(row.payload);
  auto checked = merged ? request::check_payload(row.kind, *merged, services_.session.layout().id)
                        : std::unexpected(merged.error());
  const Json payload = checked ? complete(row, std::move(checked->payload)) : Json::object();
  if (auto started = start(row); !started) return std::unexpected(started.error());
  const auto begin = std::chrono::steady_clock::now();
  if (!checked) {
    ran.result = failure(checked.error().error_class, checked.error().message);
  } else if (!answer_from_state(row, payload, ran)) {
    ran.result = run_handler(row, payload);
    if (!checked->warnings.empty()) ran.result["payload_warnings"] = checked->warnings;
  }
  // What the state keeps of it, then the response, then what follows from it.
  const bool ran_it = ran.source == kHandler && checked.has_value();
  const std::string effect = row.kind == "apply_patch" ? "integrate" : row.kind;
  const auto record = services_.record.find(effect);
  if (ran_it && record != services_.record.end()) record->second(payload, ran.result);
  if (auto ended = finish(row, ran, seconds_since(begin)); !ended) {
    return std::unexpected(ended.error());
  }
  if (auto sent = respond(row, ran.result, ran.source); !sent) {
    return std::unexpected(sent.error());
  }
  const auto follow_up = services_.follow_up.find(effect);
  if (ran_it && follow_up != services_.follow_up.end()) follow_up->second(payload, ran.result);
  return ran.result;
}

// Work of the coordinator's own.

Result<std::string> RequestFlow::append_request(const std::string& role, const std::string& kind,
                                                const Json& params,
                                                const std::string& redispatch_of) {
  bus::Message request;
  request.from_agent = role;
  request.to_agent = kKernelAgent;
  request.topic = "request";
  request.payload = {
      {"target_agent", kKernelAgent}, {"kind", kind}, {"params", params}, {"source", kEntry}};
  if (!redispatch_of.empty()) request.payload["redispatch_of"] = redispatch_of;
  auto appended = services_.bus.append(std::move(request));
  if (!appended) return std::unexpected(appended.error());
  if (redispatch_of.empty()) return appended->msg_id;
  // The row is the second try; a kill from here on interrupts that one.
  auto taken = services_.session.state().update("request.redispatch", [&](Json& state) {
    if (state.contains("pending_redispatches")) state["pending_redispatches"].erase(redispatch_of);
  });
  if (!taken) return std::unexpected(taken.error());
  return appended->msg_id;
}

Result<Json> RequestFlow::post_synthesized(
    const std::string& kind, const Json& params,
    const std::function<Json(const std::string& request_id)>& run) {
  std::string redispatch_of;
  int64_t first = 0;
  const Json pending = services_.session.state().get("pending_redispatches");
  for (const auto& [msg_id, entry] : pending.items()) {
    const auto seq = static_cast<int64_t>(number_of(entry, "seq"));
    if (text_of(entry, "kind") != kind || !same_work(value_of(entry, "params"), params)) continue;
    if (!redispatch_of.empty() && seq > first) continue;
    redispatch_of = msg_id;
    first = seq;
  }
  auto msg_id = append_request(kOrchestration, kind, params, redispatch_of);
  if (!msg_id) return std::unexpected(msg_id.error());
  const RequestRow row = {*msg_id, kOrchestration, kKernelAgent, kind, params, redispatch_of};
  if (auto started = start(row); !started) return std::unexpected(started.error());
  const auto begin = std::chrono::steady_clock::now();
  Ran ran;
  ran.source = kEntry;
  ran.result = guarded(kind, [&] { return run(*msg_id); });
  if (auto ended = finish(row, ran, seconds_since(begin)); !ended) {
    return std::unexpected(ended.error());
  }
  if (auto sent = respond(row, ran.result, ran.source); !sent) {
    return std::unexpected(sent.error());
  }
  return ran.result;
}

Result<std::vector<Redispatch>> RequestFlow::answer_interrupted() {
  auto open = services_.bus.unanswered_requests();
  if (!open) return std::unexpected(open.error());
  for (const bus::Message& message : *open) {
    const Json& payload = message.payload;
    const RequestRow row = {message.msg_id,   message.from_agent,
                            message.to_agent, text_of(payload, "kind"),
                            payload,          text_of(payload, "redispatch_of")};
    const Json result = failure("interrupted", "the program ended while the request ran");
    auto recorded = services_.session.state().update("request.interrupted", [&](Json& state) {
      add_failure(state, row.kind, row.msg_id, result);
      Json& pending = state["pending_redispatches"];
      if (!pending.is_object()) pending = Json::object();
      if (!row.redispatch_of.empty()) {
        pending.erase(row.redispatch_of);
        return;
      }
      const auto merged = request::merge_params(payload);
      pending[row.msg_id] = {{"kind", row.kind},
                             {"role", row.role},
                             {"params", merged ? *merged : Json::object()},
                             {"seq", message.seq},
                             {"synthesized", text_of(payload, "source") == kEntry}};
    });
    if (!recorded) return std::unexpected(recorded.error());
    if (auto sent = respond(row, result, kRejected); !sent) return std::unexpected(sent.error());
  }
  std::vector<std::pair<int64_t, Redispatch>> pending;
  const Json entries = services_.session.state().get("pending_redispatches");
  for (const auto& [msg_id, entry] : entries.items()) {
    pending.emplace_back(static_cast<int64_t>(number_of(entry, "seq")),
                         Redispatch{msg_id, text_of(entry, "role"), text_of(entry, "kind"),
                                    value_of(entry, "params"), flag_of(entry, "synthesized")});
  }
  std::ranges::sort(pending, {}, &std::pair<int64_t, Redispatch>::first);
  std::vector<Redispatch> again;
  again.reserve(pending.size());
  for (auto& [seq, entry] : pending) again.push_back(std::move(entry));
  return again;
}

Result<Json> RequestFlow::redispatch(const Redispatch& interrupted) {
  auto msg_id =
      append_request(interrupted.role, interrupted.kind, interrupted.params, interrupted.msg_id);
  if (!msg_id) return std::unexpected(msg_id.error());
  return answer({*msg_id,
                 interrupted.role,
                 kKernelAgent,
                 interrupted.kind,
                 {{"params", interrupted.params}},
                 interrupted.msg_id});
}

}  // namespace hyperloom::coordinator
