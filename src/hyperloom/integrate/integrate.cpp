#include "hyperloom/integrate/integrate.h"

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <utility>

#include "hyperloom/integrate/active.h"
#include "hyperloom/integrate/apply_session.h"
#include "hyperloom/integrate/evaluate.h"
#include "hyperloom/integrate/gain_ledger.h"
#include "hyperloom/integrate/inputs.h"
#include "hyperloom/integrate/kept.h"
#include "hyperloom/integrate/patch.h"
#include "hyperloom/integrate/record.h"
#include "hyperloom/integrate/small_positives.h"

namespace hyperloom::integrate {
namespace {

// The stack as it is in the tree; the caller holds the devices.
Result<double> measure_kept(const task::Context& context, const std::string& tag,
                            const PairOptions& options) {
  Json envs = value_of(context.state().get("current_best"), "extra_envs");
  if (!envs.is_object()) envs = Json::object();
  const auto measured = measure_stack(context, {context.workload.tree(), envs}, tag, options);
  if (!measured) return measured;
  const auto saved = context.state().update("integrate.rebaseline", [&](Json& state) {
    add_rebaseline(state, *measured, utc_now());
    state.erase("rebaseline_due");
  });
  if (!saved) return std::unexpected(saved.error());
  return measured;
}

// The re-baseline that goes with the last KEEP, where it was not made yet; 0 where it was.
Result<double> measure_due(const task::Context& context, const PairOptions& options) {
  const Json due = context.state().get("rebaseline_due");
  if (!due.is_string()) return 0;
  return measure_kept(context, due.get<std::string>(), options);
}

class Integration {
 public:
  Integration(const task::Context& context, Inputs inputs)
      : context_(context), inputs_(std::move(inputs)) {}

  Json run() {
    if (Json known = told_before(); known.is_object()) return known;
    if (!admit()) return finish();
    context_.show({.phase = "integrate",
                   .kernel = text_of(inputs_.carried, "kernel_id"),
                   .step = "apply",
                   .seconds_left = context_.deadline.seconds_left()});
    auto session = ApplySession::open(context_, inputs_.integration_id);
    if (!session) {
      stopped_or(session.error(), Decision::NeedsReview, session.error().error_class);
      return finish();
    }
    session_.emplace(std::move(*session));
    if (!make_plan() || !check_tree()) return finish();
    auto hold = hold_devices(context_, "integrate", context_.deadline);
    if (!hold) {
      stopped_or(hold.error(), Decision::NeedsReview, "evaluation_impossible");
      return finish();
    }
    try {
      if (apply()) judge();
    } catch (const std::exception& raised) {
      give_up({"rebaseline_exception", raised.what(), ""}, Decision::NeedsReview,
              "rebaseline_exception");
    } catch (...) {
      give_up({"rebaseline_exception", "something was thrown that is no exception", ""},
              Decision::NeedsReview, "rebaseline_exception");
    }
    return finish();
  }

 private:
  void give_up(const Error& error, Decision decision, std::string reason, bool fault = false) {
    answer_.judgement = {decision, std::move(reason)};
    answer_.error_class = error.error_class;
    answer_.error = error.message;
    if (!error.hint.empty()) answer_.error += "; " + error.hint;
    answer_.fault = fault;
  }
  void stopped_or(const Error& error, Decision decision, std::string reason) {
    if (error.error_class != "cancelled" && !context_.stopped()) {
      return give_up(error, decision, std::move(reason));
    }
    give_up(stop_error(context_), Decision::NeedsReview, "stopped");
  }

  // A request that a kill interrupted after its outcome was recorded, a patch that was rejected,
  // and one that is kept already are not judged again.
  Json told_before() {
    Json result;
    context_.state().read([&](const Json& state) {
      result = recorded_result(state, inputs_.redispatch_of);
      if (result.is_object()) return;
      if (text_of(pending_record(state, inputs_.integration_id), "status") == "integrated") {
        const Json& last = value_of(state, "last_integrate_result");
        if (text_of(last, "integration_id") == inputs_.integration_id) {
          result = value_of(last, "result");
        } else {
          result = short_result("skipped", Decision::Keep, "already_integrated");
        }
        return;
      }
      if (rejection_of(state, inputs_.integration_id, "").is_object()) {
        result = short_result("skipped", Decision::Revert, "kernel_patch_rejected");
        result["source"] = "shared_state_kernel_rejection";
      }
    });
    return result;
  }
  Json short_result(const char* status, Decision decision, const char* reason) const {
    Json result = inputs_.carried;
    result["status"] = status;
    result["decision"] = decision_name(decision);
    result["decision_reason"] = reason;
    result["integration_id"] = inputs_.integration_id;
    result["patch_cleanup_status"] = "complete";
    result["patch_cleanup_action"] = "";
    return result;
  }

  // Everything that can be said before the tree is looked at, in the order of the specification.
  bool admit() {
    if (flag_of(inputs_.ledger_entry, "vendor_playbook_deploy_blocked")) {
      give_up({"vendor_playbook_not_deployable",
               "the result tunes a launch of a closed operator: there is no patch to evaluate", ""},
              Decision::NeedsReview, "vendor_playbook_not_deployable");
      return false;
    }
    if (!(inputs_.base_tput > 0)) {
      give_up({"", "there is no throughput to judge against", ""}, Decision::NeedsReview,
              "no_baseline");
      return false;
    }
    if (!inputs_.has_patch && !inputs_.env_only) {
      give_up({"missing_integration_inputs",
               fmt::format("missing: {}", fmt::join(inputs_.missing, ", ")), ""},
              Decision::Revert, "missing_integration_inputs", true);
      return false;
    }
    if (auto settled = settle_recovery(context_); !settled) {
      give_up(settled.error(), Decision::NeedsReview, "recovery_required");
      return false;
    }
    return true;
  }

  bool refuse_apply(const Error& error) {
    stopped_or(error, Decision::Revert, "apply_failed");
    if (answer_.judgement.decision != Decision::Revert) return false;
    answer_.error = fmt::format("{}: {}", error.error_class, answer_.error);
    answer_.error_class = "apply_failed";
    answer_.fault = true;
    return false;
  }

  Result<PatchPlan> whole_plan() const {
    auto first = plan_patch(inputs_.patch);
    if (!first || inputs_.more.empty()) return first;
    std::vector<PatchPlan> plans;
    plans.push_back(std::move(*first));
    for (const PatchRequest& request : inputs_.more) {
      auto plan = plan_patch(request);
      if (!plan) return plan;
      plans.push_back(std::move(*plan));
    }
    return merge_plans(std::move(plans));
  }

  bool make_plan() {
    if (!inputs_.preapplied_manifest.empty()) {
      const auto adopted = session_->adopt(inputs_.preapplied_manifest);
      if (adopted) return true;
      if (adopted.error().error_class == "tree_drift") {
        give_up(adopted.error(), Decision::NeedsReview, "tree_drift");
        return false;
      }
      return refuse_apply(adopted.error());
    }
    if (inputs_.env_only) return true;
    auto plan = whole_plan();
    if (!plan) return refuse_apply(plan.error());
    patch_hash_ = content_hash(*plan);
    plan_ = std::move(*plan);
    bool stale = false;
    context_.state().read(
        [&](const Json& state) { stale = Settled(state).is_stacked(inputs_.record); });
    if (stale) {
      return refuse_apply({"superseded", "a kept change of one of its files came later",
                           "optimize the kernel again"});
    }
    const Json rejected = context_.state().get("rejected_kernel_patches");
    if (!value_of(rejected, key()).is_object()) return true;
    give_up({"", "this patch was rejected before", ""}, Decision::Revert, "kernel_patch_rejected");
    skipped_ = true;
    return false;
  }

  bool check_tree() {
    if (auto checked = session_->check_tree(); !checked) {
      give_up(checked.error(), Decision::NeedsReview, checked.error().error_class);
      return false;
    }
    return true;
  }

  bool apply() {
    pairs_.max_pairs = inputs_.max_pairs;
    pairs_.min_pairs = std::min(pairs_.min_pairs, pairs_.max_pairs);
    pairs_.sample_seconds = inputs_.sample_seconds;
    pairs_.call_timeout_sec = inputs_.call_timeout_sec;
    if (auto copied = session_->copy_base(); !copied) return refuse_apply(copied.error());
    base_ = {session_->base(), value_of(context_.state().get("current_best"), "extra_envs")};
    if (!base_.envs.is_object()) base_.envs = Json::object();
    const auto floor = noise_floor_pct(context_, base_, pairs_);
    if (!floor) {
      stopped_or(floor.error(), Decision::NeedsReview, "evaluation_impossible");
      return false;
    }
    noise_floor_ = *floor;
    // What a kill has left out is made up for before anything is measured on top of it.
    (void)measure_due(context_, pairs_);
    // The measuring budget begins here; the noise floor belongs to the session.
    deadline_ = pairs_.deadline = Deadline::in_seconds(inputs_.timeout_sec);
    if (!plan_) return true;
    if (inputs_.dry_run_patch) {
      give_up(
          {"patch_not_applied", "a dry run applies nothing, so there is nothing to measure", ""},
          Decision::Revert, "patch_not_applied");
      skipped_ = true;
      return false;
    }
    const Json applied = session_->apply(*plan_, deadline_);
    extra_["apply_result"] = applied;
    if (text_of(applied, "status") == "ok") return checkpoint(applied);
    return refuse_apply({text_of(applied, "error_class"), text_of(applied, "error"), ""});
  }

  // What a combined integration has put into the tree, member by member.
  bool checkpoint(const Json& applied) {
    if (inputs_.members.empty()) return true;
    const auto saved = context_.state().update("integrate.checkpoint", [&](Json& state) {
      note_applied(state, inputs_.members, applied);
    });
    if (saved) return true;
    give_up(saved.error(), Decision::NeedsReview, saved.error().error_class);
    return false;
  }

  void judge() {
    const int64_t attempt = context_attempts();
    Question question{.a = base_,
                      .b = {context_.workload.tree(), inputs_.extra_envs},
                      .tag = fmt::format("{}", attempt + 1),
                      .keep_threshold_pct = inputs_.keep_threshold_pct,
                      .noise_floor_pct = noise_floor_,
                      .pairs = pairs_};
    context_.state().read([&](const Json& state) { question.kernels = inputs_.kernels(state); });
    const Environment& environment = context_.environment;
    question.accuracy.required = environment.flag("INFERENCE_OPTIMIZER_REQUIRE_KERNEL_ACCURACY");
    question.accuracy.framework_apply =
        text_of(inputs_.carried, "artifact_kind") == "framework_applyback";
    const auto umbrella = [&](const char* name) {
      return environment.flag(environment.has(name) ? name : "HL_HONEST_E2E");
    };
    question.strict_import =
        umbrella("HL_CONFIRM_SOURCE_IMPORTED") && umbrella("HL_CONFIRM_SOURCE_IMPORTED_STRICT");
    context_.show({.phase = "integrate",
                   .kernel = text_of(inputs_.carried, "kernel_id"),
                   .step = "measure",
                   .seconds_left = context_.deadline.seconds_left()});
    answer_ = evaluate(context_, question);
    // What was measured must still be what is in the tree.
    if (const auto same = session_->is_as_applied(); !same) {
      give_up(same.error(), Decision::NeedsReview, same.error().error_class);
    }
  }

  std::string key() const {
    return recording_key(patch_hash_, inputs_.extra_envs, inputs_.extra_server_args);
  }
  int64_t context_attempts() const {
    int64_t count = 0;
    context_.state().read([&](const Json& state) { count = attempt_count(state, key()); });
    return count;
  }

  Json finish() {
    const bool keep = answer_.judgement.decision == Decision::Keep;
    Json contents = Json::object();
    if (keep && session_) {
      auto saved = session_->save_contents();
      if (saved) {
        contents = std::move(*saved);
      } else {
        give_up(saved.error(), Decision::NeedsReview, saved.error().error_class);
      }
    }
    if (answer_.judgement.decision != Decision::Keep && session_) revert();
    if (!skipped_) record(contents);
    if (finished_) (void)clear_active(context_);
    if (kept_) rebaseline();
    return result();
  }

  void revert() {
    const Json reverted = session_->revert();
    if (reverted.is_null()) return;
    extra_["revert_result"] = reverted;
    extra_["patch_cleanup_action"] = "revert";
    if (text_of(reverted, "status") == "ok") return;
    extra_["patch_cleanup_status"] = "recovery_required";
    revert_failed_ = text_of(reverted, "error", compact(value_of(reverted, "revert_issues")));
  }

  void record(const Json& contents) {
    const std::string ts = utc_now();
    Outcome outcome{.key = key(),
                    .integration_id = inputs_.integration_id,
                    .request_id = inputs_.request_id,
                    .judgement = answer_.judgement,
                    .status = status(),
                    .error_class = answer_.error_class,
                    .fault = answer_.fault,
                    .fields = answer_.fields,
                    .keep_threshold_pct = inputs_.keep_threshold_pct,
                    .ts = ts};
    outcome.fields["workspace"] = context_.layout().integration(inputs_.integration_id).string();
    outcome.fields["artifact_kind"] = value_of(inputs_.carried, "artifact_kind");
    const bool keep = answer_.judgement.decision == Decision::Keep;
    const Json log = log_entry(
        fmt::format("integrate|{}|{}", inputs_.integration_id, context_attempts() + 1), log_row());
    const std::string new_hash = keep ? session_->tree_hash() : "";
    const auto saved = context_.state().update("integrate.record", [&](Json& state) {
      if (keep) {
        lift(state, contents, ts);
        state["rebaseline_due"] = "keep|" + inputs_.integration_id;
        session_->move_tree_hash(state, new_hash);
      }
      record_integration(state, outcome);
      if (!inputs_.members.empty()) resolve_members(state, inputs_.members, outcome);
      state["last_integrate_result"] = {{"request_id", inputs_.request_id},
                                        {"integration_id", inputs_.integration_id},
                                        {"result", result()}};
      Json& active = state["active_integration"];
      if (!active.is_object()) active = {{"integration_id", inputs_.integration_id}};
      active["phase"] = keep ? "kept" : "recorded";
      active["defer_finalize"] = inputs_.defer_finalize;
      active["log"] = log;
    });
    if (!saved) return not_recorded(saved.error());
    if (keep) session_->keep();
    kept_ = keep;
    if (const auto logged = write_log(context_, log); !logged) {
      extra_["log_error"] = logged.error().message;
      finished_ = false;
    }
    if (keep && !inputs_.defer_finalize) {
      extra_["finalize_result"] = session_->finalize();
      extra_["patch_cleanup_action"] = "finalize";
    }
  }

  // The devices are still held.
  void rebaseline() {
    const auto measured = measure_due(context_, pairs_);
    if (measured) {
      extra_["stack_tput"] = *measured;
    } else {
      extra_["rebaseline_error"] = measured.error().message;
    }
  }

  // A KEEP that is not on the disk is none.
  void not_recorded(const Error& error) {
    if (answer_.judgement.decision == Decision::Keep && session_) {
      give_up(error, Decision::NeedsReview, "not_recorded");
      revert();
    }
    extra_["record_error"] = error.message;
    finished_ = false;
    answer_.error_class = error.error_class;
    answer_.error = error.message;
  }

  void lift(Json& state, const Json& contents, const std::string& ts) {
    Kept kept{.action = inputs_.action,
              .integration_id = inputs_.integration_id,
              .tput_a = answer_.tput_a,
              .tput_b = answer_.tput_b,
              .gain_pct = number_of(answer_.fields, "gain_pct"),
              .extra_server_args = inputs_.extra_server_args,
              .extra_envs = inputs_.extra_envs,
              .ts = ts};
    for (const char* field : {"kernel_id", "kernel_name", "task_group_key", "backend"}) {
      kept.entry[field] = value_of(inputs_.carried, field);
    }
    kept.entry["target_file"] = inputs_.patch.target_file.string();
    kept.entry["source_file"] =
        text_of(inputs_.carried, "source_file", inputs_.patch.target_file.string());
    kept.entry["source_files"] = files_of(inputs_.record);
    kept.entry["patch_path"] = inputs_.patch.patch_path.string();
    kept.entry["source"] = inputs_.env_only ? "configuration" : "patch";
    lift_to_current_best(state, kept);
    add_kept(state, contents);
  }

  Json log_row() const {
    Json row = {{"id", inputs_.integration_id},
                {"kind", "integrate"},
                {"kernel_id", value_of(inputs_.carried, "kernel_id")},
                {"decision", decision_name(answer_.judgement.decision)},
                {"reason", answer_.judgement.reason}};
    for (const char* field : {"gain_pct", "gain_low_pct", "gain_high_pct", "pairs"}) {
      if (const Json& value = value_of(answer_.fields, field); !value.is_null()) row[field] = value;
    }
    return row;
  }

  std::string status() const {
    if (skipped_) return "skipped";
    return answer_.error.empty() || answer_.error_class.empty() ? "ok" : "failed";
  }

  Json result() const {
    Json result = inputs_.carried;
    for (const auto& [name, value] : answer_.fields.items()) result[name] = value;
    result["status"] = status();
    result["decision"] = decision_name(answer_.judgement.decision);
    result["decision_reason"] = answer_.judgement.reason;
    result["integration_id"] = inputs_.integration_id;
    result["patch_path"] = inputs_.patch.patch_path.string();
    result["target_file"] = inputs_.patch.target_file.string();
    result["base_tput"] = inputs_.base_tput;
    result["keep_threshold_pct"] = inputs_.keep_threshold_pct;
    result["extra_server_args"] = inputs_.extra_server_args;
    result["extra_envs"] = inputs_.extra_envs;
    result["workspace"] = context_.layout().integration(inputs_.integration_id).string();
    result["patch_cleanup_status"] = "complete";
    result["patch_cleanup_action"] = "";
    for (const char* absent : {"apply_result", "revert_result", "finalize_result", "rebuild_check",
                               "report_path", "new_tput", "gain_pct"}) {
      if (!result.contains(absent)) result[absent] = nullptr;
    }
    result["rebuild_check"] = value_of(value_of(extra_, "apply_result"), "rebuild");
    for (const auto& [name, value] : extra_.items()) result[name] = value;
    result["error_class"] = answer_.error_class;
    result["error"] = answer_.error;
    if (answer_.error_class == "missing_integration_inputs") result["missing"] = inputs_.missing;
    if (!revert_failed_.empty()) {
      result["status"] = "failed";
      result["error_class"] = "patch_revert_incomplete";
      result["error"] = revert_failed_;
    }
    return result;
  }

  const task::Context& context_;
  Inputs inputs_;
  Deadline deadline_;
  std::optional<ApplySession> session_;
  std::optional<PatchPlan> plan_;
  std::string patch_hash_;
  workload::Variant base_;
  PairOptions pairs_;
  double noise_floor_ = 0;
  Answer answer_;
  bool skipped_ = false;
  bool kept_ = false;
  bool finished_ = true;  // nothing is left for recover()
  std::string revert_failed_;
  Json extra_ = Json::object();
};

}  // namespace

Json integrate(const Json& payload, const task::Context& context) {
  auto inputs = Inputs::read(payload, context);
  if (!inputs) {
    Json result = failed(inputs.error());
    result["decision"] = decision_name(Decision::Revert);
    result["decision_reason"] = inputs.error().error_class;
    result["integration_id"] = text_of(payload, "integration_id");
    return result;
  }
  return run_integration(context, std::move(*inputs));
}

Json run_integration(const task::Context& context, Inputs inputs) {
  return Integration(context, std::move(inputs)).run();
}

Result<double> rebaseline_stack(const task::Context& context, const std::string& tag) {
  const auto hold = hold_devices(context, "rebaseline", context.deadline);
  if (!hold) return std::unexpected(hold.error());
  return measure_kept(context, tag, {});
}

Result<void> settle_rebaseline(const task::Context& context) {
  if (context.state().get("rebaseline_due").is_null()) return {};
  const auto hold = hold_devices(context, "rebaseline", context.deadline);
  if (!hold) return std::unexpected(hold.error());
  const auto measured = measure_due(context, {});
  if (!measured) return std::unexpected(measured.error());
  return {};
}

}  // namespace hyperloom::integrate
