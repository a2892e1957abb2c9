#include "hyperloom/coordinator/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "hyperloom/coordinator/phase_hooks.h"
#include "hyperloom/coordinator/records.h"
#include "hyperloom/core/process.h"
#include "hyperloom/integrate/integrate.h"
#include "hyperloom/lane/engines.h"
#include "hyperloom/lane/gates.h"
#include "hyperloom/optimize/ledger.h"
#include "hyperloom/optimize/run.h"
#include "hyperloom/optimize/select.h"
#include "hyperloom/policy/denials.h"
#include "hyperloom/policy/sandbox.h"
#include "hyperloom/trace/analyze.h"

namespace hyperloom::coordinator {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kQuietTicksOfPrelude = 2;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Json initial_state(const workload::Workload& workload, const Options& options,
                   const Environment& environment) {
  return {{"phase", "PRELUDE"},
          {"phase_entered", false},
          {"phase_history", Json::array()},
          {"phase_seconds", Json::object()},
          {"session_seconds", 0.0},
          {"framework", workload.framework()},
          {"workload_kind", "native"},
          {"gpu_type", workload.device()},
          {"throughput_unit", "issues/s"},
          {"kernel_enabled", options.kernel_enabled},
          {"allow_empty_kernel_shape", options.allow_empty_kernel_shape},
          {"auto_kernel_opt_enabled", options.auto_kernel_opt && options.kernel.empty()},
          {"collective_only_mode", lane::collective_only(environment)},
          {"orchestrator_turns", Json::object()},
          {"not_run", Json::array()},
          {"macro_cycle", 0}};
}

struct Coordinator::Impl {
  Impl(const task::Context& given, bus::Tasks& tasks_given, Options options_given,
       std::vector<std::unique_ptr<agent::Orchestrator>> roles_given)
      : context(given),
        tasks(tasks_given),
        options(std::move(options_given)),
        roles(std::move(roles_given)),
        services{.session = context.session,
                 .bus = context.bus,
                 .tasks = tasks,
                 .environment = context.environment},
        router((wire(), services)) {}

  // --- wiring -----------------------------------------------------------------------------------

  void wire() {
    services.handlers = {
        {"trace_analyze",
         [this](const Json& payload) { return trace::trace_analyze(payload, limited()); }},
        {"run_optimization",
         [this](const Json& payload) {
           return optimize::run_optimization(payload, limited(),
                                             [this](const Json& sub) { record(scope(), sub); });
         }},
        {"integrate",
         [this](const Json& payload) { return integrate::integrate(payload, limited()); }},
        {"run_gemm_tuning", [](const Json&) { return lane::not_available("run_gemm_tuning"); }},
        {"run_collective", [](const Json&) { return lane::not_available("run_collective"); }},
    };
    services.record = {
        {"trace_analyze",
         [this](const Json& payload, const Json& result) {
           const std::string status = text_of(result, "status");
           if (status != "ok" && status != "succeeded") return;
           update("record_trace_analyze",
                  [&](Json& state) { trace::record_trace_analyze(state, payload, result); });
         }},
        {"run_optimization",
         [this](const Json&, const Json& result) {
           if (!flag_of(result, "batch_mode")) coordinator::record(scope(), result);
         }},
        {"run_gemm_tuning",
         [this](const Json&, const Json& result) {
           update("last_gemm_tuning", [&](Json& state) { state["last_gemm_tuning"] = result; });
         }},
    };
    services.follow_up = {{"run_optimization", [this](const Json&, const Json&) {
                             keep(integrate_ready(scope(), SIZE_MAX));
                           }}};
    services.patch_key = [this](const Json& payload) {
      return integrate::patch_key(payload, context);
    };
    // Asked while the state changes, so not of the state.
    services.phase = [this] { return std::string(name_of(timed)); };
    services.closing = [this] { return timed == Phase::Close; };
    services.seconds_left = [this] { return session_deadline.seconds_left(); };
    services.trusted = policy::trusted_roots(context.environment, context.workload.tree());
  }

  // --- small helpers ----------------------------------------------------------------------------

  std::string text(const char* field) const {
    const Json value = context.state().get(field);
    return value.is_string() ? value.get<std::string>() : "";
  }
  Json state() const {
    Json copy;
    context.state().read([&](const Json& current) { copy = current; });
    return copy;
  }
  // The first failure of the session's own storage ends the loop.
  void keep(Result<void> done) {
    if (!done && !broken) broken = done.error();
  }
  void update(std::string_view step, const std::function<void(Json&)>& change) {
    keep(context.state().update(step, change));
  }
  Phase phase() const { return phase_named(text("phase")).value_or(Phase::Prelude); }

  double used(Phase which) const {
    const Json seconds = context.state().get("phase_seconds");
    return number_of(seconds, name_of(which)) + (which == timed ? seconds_since(phase_start) : 0);
  }
  double allowed(Phase which) const {
    const auto extensions = static_cast<int>(
        number_of(Json{{"n", context.state().get("kernel_budget_extensions")}}, "n"));
    return options.budget_seconds *
           budget_share(which, true, which == Phase::KernelAgent ? extensions : 0);
  }
  // Of the current phase. PRELUDE may take what it needs: without it there is nothing to do.
  Deadline phase_deadline() const {
    const Phase current = phase();
    if (current == Phase::Prelude || current == Phase::Close) return session_deadline;
    double left = std::max(0.0, allowed(current) - used(current));
    if (current == Phase::KernelAgent && options.kernel_cap_seconds > 0) {
      left = std::min(left, std::max(0.0, options.kernel_cap_seconds - used(current)));
    }
    return session_deadline.earlier(Deadline::in_seconds(left));
  }
  task::Context limited() const {
    task::Context copy = context;
    copy.deadline = phase_deadline();
    return copy;
  }
  HookScope scope() { return {limited(), router, options}; }

  // --- the loop ---------------------------------------------------------------------------------

  Result<Ended> run() {
    begin();
    while (!broken && !finished && !context.stop.stop_requested()) {
      tick();
      context.session.heartbeat();
    }
    return end();
  }

  void begin() {
    session_start = phase_start = Clock::now();
    const double before = number_of(state(), "session_seconds");
    session_deadline = Deadline::in_seconds(std::max(0.0, options.budget_seconds - before))
                           .earlier(context.deadline);
    timed = phase();
    update("session_begin", [&](Json& changed) {
      // What the environment says at this start counts, whatever an earlier one said.
      changed["collective_only_mode"] = lane::collective_only(context.environment);
      changed["stop_reason"] = "";
    });
    if (timed == Phase::Close && !(number_of(state(), "baseline_tput") > 0)) {
      // It ended before there was anything to go on from; what was in the way may be gone.
      go_to(Phase::Prelude, {"nothing_measured", ""}, "");
    }
    recover();
  }

  // What a killed process left behind.
  void recover() {
    // The session is this process's own, so whoever carries its token is left over.
    const size_t strays = end_strays(context.layout().session.string());
    std::vector<Json> actions = integrate::recover(context);
    if (strays > 0) actions.push_back({{"action", "strays_ended"}, {"count", strays}});
    if (!actions.empty()) {
      update("recovery", [&](Json& changed) {
        Json& rows = changed["recovery_actions"];
        if (!rows.is_array()) rows = Json::array();
        for (const Json& action : actions) {
          rows.push_back(action);
          add_lifecycle(changed, {{"phase", text_of(changed, "phase")},
                                  {"step", "recover"},
                                  {"label", text_of(action, "action")},
                                  {"status", "END"},
                                  {"detail", text_of(action, "integration_id")}});
        }
      });
    }
    auto interrupted = router.answer_interrupted();
    if (!interrupted) return keep(std::unexpected(interrupted.error()));
    bool reenter = false;
    for (const Redispatch& one : *interrupted) {
      if (one.synthesized) {
        reenter = true;
      } else if (auto again = router.redispatch(one); !again) {
        return keep(std::unexpected(again.error()));
      }
    }
    if (reenter) update("reenter", [](Json& changed) { changed["phase_entered"] = false; });
    validate_stack();
  }

  // A stack that was kept but not measured as a whole is measured before anything is added.
  void validate_stack() {
    if (auto settled = integrate::settle_rebaseline(context); !settled) {
      keep(note_not_run(context, "rebaseline", settled.error().error_class));
    }
    const Json current = state();
    const size_t stack = value_of(current, "optimization_stack").size();
    const double validated = number_of(current, "cumulative_gain_validated_stack_len", 0);
    if (stack == 0 || static_cast<size_t>(validated) == stack) return;
    if (auto measured = integrate::rebaseline_stack(context, fmt::format("resume{}", stack));
        !measured) {
      keep(note_not_run(context, "rebaseline", measured.error().error_class));
    }
  }

  void tick() {
    const std::string before = progress_fingerprint(state());
    advance();
    if (broken || finished || context.stop.stop_requested()) return;
    bool spoke = false;
    for (const auto& role : roles) spoke = take_turn(*role) || spoke;
    note_progress(before, spoke);
    if (auto pruned = context.bus.prune(); !pruned) keep(std::unexpected(pruned.error()));
    save_time();
    if (!spoke) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  void note_progress(const std::string& before, bool spoke) {
    quiet_ticks = spoke ? 0 : quiet_ticks + 1;
    if (progress_fingerprint(state()) != before) {
      idle_ticks = 0;
      idle_start = Clock::now();
    } else {
      ++idle_ticks;
    }
  }

  void save_time() {
    const double phase_spent = seconds_since(phase_start);
    const double spent = seconds_since(session_start);
    update("time", [&](Json& changed) {
      Json& seconds = changed["phase_seconds"];
      const std::string name(name_of(timed));
      seconds[name] = number_of(seconds, name) + phase_spent;
      changed["session_seconds"] = number_of(changed, "session_seconds") + spent;
    });
    phase_start = session_start = Clock::now();
  }

  // Enters the phase where that was not done, and leaves it where it is time.
  void advance() {
    while (!broken && !finished && !context.stop.stop_requested()) {
      if (session_deadline.passed() && phase() != Phase::Close) {
        return go_to(Phase::Close, {"time_budget", ""}, "the time budget is used up");
      }
      if (context.state().get("phase_entered") != Json(true)) {
        if (!enter(phase())) return;
        continue;
      }
      if (take_extension()) continue;
      // What a kill left between an optimization and its integration.
      if (phase() == Phase::KernelAgent) keep(integrate_ready(scope(), SIZE_MAX));
      const auto leaving = why_leave(phase());
      if (!leaving) return;
      if (phase() == Phase::Close) {
        finished = true;
        return;
      }
      go_to(after(phase(), *leaving), *leaving, "");
    }
  }

  // A hint that asks for more of the budget counts once.
  bool take_extension() {
    const std::string hint = text("phase_hint");
    if (hint != "extend_kernel_budget" && hint != "extend_explore_budget") return false;
    const std::string field =
        hint == "extend_kernel_budget" ? "kernel_budget_extensions" : "explore_budget_extensions";
    update("phase_hint", [&](Json& changed) {
      changed[field] = static_cast<int64_t>(number_of(changed, field)) + 1;
      changed["phase_hint"] = "";
    });
    return true;
  }

  static Phase after(Phase current, const Leave& why) {
    if (why.reason == "skip_to_close") return Phase::Close;
    const bool no_kernel =
        why.reason == "no_kernel_skipped" || why.reason == "kernel_phase_aborted_no_trace";
    if (no_kernel) return Phase::Sweep;
    return next_phase(current, true).value_or(Phase::Close);
  }

  bool enter(Phase which) {
    context.show({.phase = std::string(name_of(which)), .step = "enter"});
    Result<void> entered;
    switch (which) {
      case Phase::Prelude:
        entered = enter_prelude(scope());
        break;
      case Phase::KernelAgent:
        entered = enter_kernel(scope());
        break;
      case Phase::Sweep:
        entered = enter_sweep(scope());
        break;
      case Phase::Close:
        break;
      case Phase::FrameworkAgent:
      case Phase::Explore:
        break;
    }
    if (context.stop.stop_requested()) return false;
    if (!entered && entered.error().error_class == "baseline_failed") {
      go_to(Phase::Close, {"baseline_failed", ""},
            entered.error().message +
                (entered.error().hint.empty() ? "" : "; " + entered.error().hint));
      return true;
    }
    keep(std::move(entered));
    if (broken) return false;
    update("phase_entered", [](Json& changed) { changed["phase_entered"] = true; });
    return !broken;
  }

  void go_to(Phase next, const Leave& why, const std::string& stop_reason) {
    save_time();
    update("phase", [&](Json& changed) {
      Json row = {{"phase", changed["phase"]},
                  {"reason", why.reason},
                  {"evidence", why.evidence},
                  {"left_at", utc_now()}};
      if (changed.contains("phase_entry")) row["entry"] = changed["phase_entry"];
      changed.erase("phase_entry");
      changed["phase_history"].push_back(std::move(row));
      changed["phase"] = name_of(next);
      changed["phase_entered"] = false;
      changed["phase_hint"] = "";
      if (!stop_reason.empty()) changed["stop_reason"] = stop_reason;
    });
    timed = next;
    idle_ticks = 0;
    quiet_ticks = 0;
    idle_start = Clock::now();
  }

  std::optional<Leave> why_leave(Phase which) {
    if (which != Phase::Close && text("phase_hint") == "skip_to_close") {
      return Leave{"skip_to_close", "hint"};
    }
    switch (which) {
      case Phase::Prelude:
        return leave_prelude();
      case Phase::KernelAgent: {
        const Json current = state();
        return leave_kernel(view(current), context.environment);
      }
      case Phase::Sweep:
        return Leave{"sweep_done", ""};
      case Phase::Close:
        return Leave{"closed", ""};
      case Phase::FrameworkAgent:
      case Phase::Explore:
        break;
    }
    return Leave{"not_of_this_workload", ""};
  }

  std::optional<Leave> leave_prelude() {
    if (context.state().get("kernel_enabled") == Json(false)) return Leave{"no_kernel_skipped", ""};
    if (text("last_profile_trace").empty()) return Leave{"kernel_phase_aborted_no_trace", ""};
    if (context.state().get("last_trace_analyze").is_object()) return Leave{"analyzed", ""};
    if (text("phase_hint") == "skip_to_kernel") return Leave{"skip_to_kernel", "hint"};
    // Nobody asked for the analysis: KERNEL makes its own.
    if (quiet_ticks >= kQuietTicksOfPrelude) return Leave{"nobody_asked_for_an_analysis", ""};
    return std::nullopt;
  }

  KernelView view(const Json& current) {
    KernelView made{.state = current};
    made.auto_enabled = value_of(current, "auto_kernel_opt_enabled") != Json(false) &&
                        lane::forge_selected(context.environment);
    made.selected = optimize::select_candidates(context).selected.size();
    made.seconds_used = used(Phase::KernelAgent);
    made.seconds_allowed = allowed(Phase::KernelAgent);
    made.seconds_cap = options.kernel_cap_seconds;
    made.idle_ticks = idle_ticks;
    made.idle_seconds = seconds_since(idle_start);
    return made;
  }

  // --- turns ------------------------------------------------------------------------------------

  // Whether the role had something to say.
  bool take_turn(agent::Orchestrator& role) {
    const std::string name(role.role());
    agent::Turn turn;
    turn.state = state();
    turn.phase = text_of(turn.state, "phase");
    turn.number =
        static_cast<uint64_t>(number_of(value_of(turn.state, "orchestrator_turns"), name));
    turn.denials = policy::open_denials(turn.state, name);
    if (turn.phase == "KERNEL_AGENT") {
      turn.work_pending = kernel_work_pending(view(turn.state), context.environment);
    }
    const auto inbox = bus::read_inbox(context.bus, name);
    if (!inbox) return keep(std::unexpected(inbox.error())), false;
    turn.inbox = inbox->rows;
    if (auto candidates = read_json(context.layout().candidates())) {
      turn.candidates = std::move(*candidates);
    }
    const auto envelope = role.turn(turn);
    if (!envelope) {
      update("turn_failed", [&](Json& changed) {
        add_failure(
            changed, "turn", name,
            {{"error_class", envelope.error().error_class}, {"error", envelope.error().message}});
      });
      return false;
    }
    const auto outcome = router.handle(name, *envelope);
    if (!outcome) return keep(std::unexpected(outcome.error())), false;
    if (outcome->malformed) {
      update("turn_malformed", [&](Json& changed) {
        add_failure(changed, "turn", name,
                    {{"error_class", outcome->malformed->error_class},
                     {"error", outcome->malformed->message}});
      });
    }
    complete(name, turn, *inbox);
    return !outcome->intents.empty() || outcome->malformed.has_value();
  }

  void complete(const std::string& name, const agent::Turn& turn, const bus::Inbox& inbox) {
    if (inbox.last_seq > 0) {
      keep(context.bus.advance(name, inbox.last_seq, inbox.last_msg_id));
    }
    update("turn", [&](Json& changed) {
      policy::complete_turn(changed, name, turn.denials);
      changed["orchestrator_turns"][name] = turn.number + 1;
    });
  }

  // --- the end ----------------------------------------------------------------------------------

  Result<Ended> end() {
    if (broken) return std::unexpected(*broken);
    save_time();
    if (!finished && context.stop.stop_requested()) {
      update("interrupted", [](Json& changed) { changed["stop_reason"] = "interrupted"; });
    }
    if (auto report = write_report(context); !report) return std::unexpected(report.error());
    if (broken) return std::unexpected(*broken);
    const Json final_state = state();
    return Ended{.measured = number_of(final_state, "baseline_tput") > 0,
                 .over = finished,
                 .stop_reason = text_of(final_state, "stop_reason")};
  }

  Result<Json> request(const std::string& kind, const Json& params) {
    begin();
    if (broken) return std::unexpected(*broken);
    services.command_line = true;
    const Json envelope = {
        {"intents",
         {{{"intent_type", "request"},
           {"payload", {{"target_agent", "kernel_agent"}, {"kind", kind}, {"params", params}}}}}}};
    const auto outcome = router.handle("orchestration", envelope);
    if (!outcome) return std::unexpected(outcome.error());
    if (broken) return std::unexpected(*broken);
    if (outcome->malformed) return std::unexpected(*outcome->malformed);
    if (outcome->intents.empty()) return fail("no_answer", "the request has no answer");
    const Handled& handled = outcome->intents.front();
    if (!handled.denial) return handled.result;
    return Json{{"status", "denied"},
                {"rule", handled.denial->rule},
                {"reason", handled.denial->reason},
                {"hint", handled.denial->hint}};
  }

  const task::Context& context;
  bus::Tasks& tasks;
  Options options;
  std::vector<std::unique_ptr<agent::Orchestrator>> roles;
  Services services;
  IntentRouter router;

  std::optional<Error> broken;
  bool finished = false;
  Deadline session_deadline;
  Phase timed = Phase::Prelude;  // the current phase, as the state has it
  Clock::time_point session_start = Clock::now();
  Clock::time_point phase_start = Clock::now();
  Clock::time_point idle_start = Clock::now();
  int idle_ticks = 0;
  size_t quiet_ticks = 0;
};

Coordinator::Coordinator(const task::Context& context, bus::Tasks& tasks, Options options,
                         std::vector<std::unique_ptr<agent::Orchestrator>> roles)
    : impl_(std::make_unique<Impl>(context, tasks, std::move(options), std::move(roles))) {}
Coordinator::~Coordinator() = default;

Result<Ended> Coordinator::run() { return impl_->run(); }
Result<Json> Coordinator::request(const std::string& kind, const Json& params) {
  return impl_->request(kind, params);
}

}  // namespace hyperloom::coordinator
