#include "hyperloom/coordinator/intent_router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

#include "hyperloom/coordinator/records.h"
#include "hyperloom/core/testing.h"
#include "hyperloom/policy/denials.h"

namespace hyperloom::coordinator {
namespace {

class RouterTest : public testing::Test {
 protected:
  RouterTest()
      : layout_(session::Layout::make(folder_.path(), "one").value()),
        session_(session::Session::create(layout_, Json::object(), Json::object()).value()) {
    open();
    set("baseline_tput", 1000.0);
    set("current_best", {{"tput", 1020.0}});
  }

  // Bus and router over what is on disk, as a start and a resume have them.
  void open() {
    router_.reset();
    services_.reset();
    tasks_.reset();
    bus_.reset();
    auto database = bus::Database::open(layout_.database(), environment_).value();
    bus_ = std::make_unique<bus::Bus>(database);
    tasks_ = std::make_unique<bus::Tasks>(database);
    services_.reset(new Services{session_, *bus_, *tasks_, environment_});
    services_->phase = [this] { return phase_; };
    services_->trusted = {folder_ / "tree"};
    for (const std::string& kind : registered_kinds()) {
      if (kind == "apply_patch") continue;
      services_->handlers[kind] = [this, kind](const Json& payload) {
        calls_.push_back({kind, payload});
        return answer_;
      };
    }
    router_ = std::make_unique<IntentRouter>(*services_);
  }
  void set(const std::string& field, const Json& value) {
    ASSERT_TRUE(session_.state().update("test", [&](Json& state) { state[field] = value; }));
  }
  Json state(const std::string& field) { return session_.state().get(field); }

  static Json request(const std::string& kind, Json params = Json::object()) {
    return one("request", {{"target_agent", "kernel_agent"}, {"kind", kind}, {"params", params}});
  }
  static Json one(const std::string& type, const Json& payload) {
    return {{"intents", {{{"intent_type", type}, {"payload", payload}}}}};
  }
  Handled handle(const Json& envelope, const std::string& role = "orchestration") {
    auto outcome = router_->handle(role, envelope);
    EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message);
    EXPECT_EQ(outcome->intents.size(), 1U);
    return outcome->intents.at(0);
  }
  // The rows of a topic, oldest first.
  std::vector<bus::Message> rows(const std::string& topic = "") const {
    auto all = bus_->tail(SIZE_MAX).value();
    std::ranges::reverse(all);
    std::erase_if(all, [&](const bus::Message& row) { return topic != "" && row.topic != topic; });
    return all;
  }
  bus::Message last_response() const { return rows("response").back(); }

  TempFolder folder_;
  session::Layout layout_;
  session::Session session_;
  Environment environment_{std::map<std::string, std::string>{}};
  std::string phase_ = "KERNEL_AGENT";
  std::unique_ptr<bus::Bus> bus_;
  std::unique_ptr<bus::Tasks> tasks_;
  std::unique_ptr<Services> services_;
  std::unique_ptr<IntentRouter> router_;
  Json answer_ = {{"status", "ok"}};
  std::vector<std::pair<std::string, Json>> calls_;
};

using Spec_1_2 = RouterTest;
using Spec_1_4 = RouterTest;
using Spec_2_1_Router = RouterTest;
using Spec_2_3 = RouterTest;
using Spec_12 = RouterTest;
using Spec_14_Router = RouterTest;

TEST_F(Spec_14_Router, WithoutABaselineNothingIsOnTheBusAndTheRequesterIsTold) {
  set("baseline_tput", 0.0);
  for (const char* kind :
       {"integrate", "run_optimization", "run_collective", "run_fusion", "kernel_opt"}) {
    for (const char* phase : {"PRELUDE", "KERNEL_AGENT", "CLOSE"}) {
      phase_ = phase;
      EXPECT_EQ(handle(request(kind)).denial->rule, "execution_order");
    }
    EXPECT_EQ(state("policy_denial_streaks").at(std::string(kind) + ":execution_order"), 3);
  }
  EXPECT_TRUE(rows().empty());
  EXPECT_TRUE(calls_.empty());
  Json all;
  session_.state().read([&](const Json& document) { all = document; });
  EXPECT_EQ(policy::open_denials(all, "orchestration").size(), 15U);
}

TEST_F(Spec_14_Router, TraceAnalyzeRunsWithoutABaseline) {
  set("baseline_tput", 0.0);
  phase_ = "PRELUDE";
  EXPECT_EQ(handle(request("trace_analyze")).result.at("status"), "ok");
  EXPECT_EQ(calls_.size(), 1U);
}

TEST_F(Spec_14_Router, ActionNameIsAnUnknownKindInEveryPhase) {
  for (const char* phase : {"PRELUDE", "EXPLORE", "KERNEL_AGENT", "SWEEP", "CLOSE"}) {
    phase_ = phase;
    const Handled handled = handle(request("kernel_opt"));
    EXPECT_FALSE(handled.denial);
    const bus::Message asked = rows("request").back();
    EXPECT_EQ(asked.msg_id, handled.msg_id);
    const Json& payload = last_response().payload;
    EXPECT_EQ(payload.at("source"), "coordinator_auto_reject");
    EXPECT_EQ(payload.at("status"), "failed");
    EXPECT_EQ(payload.at("in_reply_to"), asked.msg_id);
    EXPECT_EQ(payload.at("result").at("error_class"), "unknown_kernel_kind");
    EXPECT_EQ(payload.at("result").at("valid_kinds"),
              Json({"apply_patch", "integrate", "run_collective", "run_gemm_tuning",
                    "run_optimization", "trace_analyze"}));
    EXPECT_EQ(state("last_action_failures").back().at("error_class"), "unknown_kernel_kind");
    EXPECT_EQ(state("last_action_failures").back().at("task_id"), asked.msg_id);
  }
}

TEST_F(Spec_14_Router, CoordinatorOwnedKindIsDeniedWithAnObservationAndNoRequestRow) {
  EXPECT_EQ(handle(request("run_fusion")).denial->rule, "phase_incompatible");
  EXPECT_TRUE(rows("request").empty());
  const auto told = rows("observation");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].to_agent, "orchestration");
  EXPECT_EQ(told[0].payload.at("rule"), "phase_incompatible");
  EXPECT_EQ(state("policy_denial_history").size(), 1U);
}

TEST_F(Spec_14_Router, NoKernelAnswersAgentDisabledAndRecordsIt) {
  set("kernel_enabled", false);
  const Handled handled = handle(request("kernel_opt"));
  EXPECT_EQ(handled.result.at("error_class"), "agent_disabled");
  EXPECT_EQ(handle(request("integrate")).result.at("error_class"), "agent_disabled");
  EXPECT_EQ(last_response().payload.at("source"), "coordinator_auto_reject");
  EXPECT_EQ(state("last_action_failures").size(), 2U);
  EXPECT_TRUE(calls_.empty());
}

TEST_F(Spec_14_Router, ParamsWinOverTheTopLevel) {
  handle(one("request", {{"target_agent", "kernel_agent"},
                         {"kind", "run_optimization"},
                         {"kernel_id", "top"},
                         {"params", {{"kernel_id", "inner"}}}}));
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_EQ(calls_[0].second.at("kernel_id"), "inner");
}

TEST_F(Spec_1_2, RequestRowIsTheIntentsPayload) {
  const Json envelope = request("run_optimization", {{"kernel_id", "k1"}});
  const Handled handled = handle(envelope);
  const auto asked = rows("request");
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].from_agent, "orchestration");
  EXPECT_EQ(asked[0].to_agent, "kernel_agent");
  EXPECT_EQ(asked[0].priority, 1);
  EXPECT_EQ(asked[0].payload, envelope["intents"][0]["payload"]);
  EXPECT_EQ(calls_[0].second.at("request_id"), handled.msg_id);
}

TEST_F(Spec_1_2, CandidatesPathComesFromTheLastAnalysis) {
  set("last_trace_analyze", {{"candidates_path", "/x/kernel_candidates.json"}});
  handle(request("run_optimization"));
  EXPECT_EQ(calls_[0].second.at("candidates_path"), "/x/kernel_candidates.json");
}

TEST_F(Spec_1_2, AnalysisOfTheSameTraceIsAnsweredFromState) {
  const std::string candidates = (layout_.session / "kernel_candidates.json").string();
  const std::string trace = (layout_.session / "trace.json").string();
  set("last_trace_analyze", {{"trace_input", trace},
                             {"candidates_path", candidates},
                             {"hot_kernels_top15", {1}},
                             {"reusable_native_kernel_ids", {"k1"}},
                             {"ts", "then"}});
  handle(request("trace_analyze", {{"trace_input", trace}}));
  EXPECT_EQ(calls_.size(), 1U) << "the artifact is not there";
  std::ofstream(candidates) << "{}";
  const Handled cached = handle(request("trace_analyze", {{"trace_input", trace}}));
  EXPECT_EQ(calls_.size(), 1U);
  EXPECT_EQ(last_response().payload.at("source"), "shared_state_cache");
  EXPECT_EQ(last_response().payload.at("status"), "ok");
  for (const char* field : {"status", "candidates_path", "hot_kernels_top15",
                            "reusable_native_kernel_ids", "cached_at", "note"}) {
    EXPECT_TRUE(cached.result.contains(field)) << field;
  }
  EXPECT_EQ(state("lifecycle_events").back().at("detail"), "cache_hit");
  EXPECT_EQ(state("lifecycle_events").back().at("status"), "END");
  handle(request("trace_analyze", {{"trace_input", trace + ".2"}}));
  EXPECT_EQ(calls_.size(), 2U);
}

TEST_F(Spec_1_2, RejectedPatchIsSkipped) {
  services_->patch_key = [](const Json& payload) { return text_of(payload, "kernel_id"); };
  set("rejected_kernel_patches", {{"k1", {{"reason", "revert_decision"}}}});
  for (const char* kind : {"integrate", "apply_patch"}) {
    const Handled handled = handle(request(kind, {{"kernel_id", "k1"}}));
    EXPECT_EQ(handled.result.at("status"), "skipped");
    EXPECT_EQ(handled.result.at("decision"), "REVERT");
    EXPECT_EQ(handled.result.at("reason"), "kernel_patch_rejected");
    EXPECT_EQ(last_response().payload.at("source"), "shared_state_kernel_rejection");
    EXPECT_EQ(state("lifecycle_events").back().at("detail"), "rejected");
  }
  EXPECT_TRUE(calls_.empty());
  handle(request("integrate", {{"kernel_id", "k2"}}));
  EXPECT_EQ(calls_.size(), 1U);
}

TEST_F(Spec_1_2, BaseThroughputIsThatOfTheCurrentBest) {
  handle(request("integrate"));
  EXPECT_EQ(calls_.back().second.at("base_tput"), 1020.0);
  set("current_best", Json::object());
  handle(request("apply_patch"));
  EXPECT_EQ(calls_.back().first, "integrate");
  EXPECT_EQ(calls_.back().second.at("base_tput"), 1000.0);
}

TEST_F(Spec_1_2, HandlerThatThrowsIsAFailedResult) {
  services_->handlers["integrate"] = [](const Json&) -> Json {
    throw std::runtime_error("broken");
  };
  const Handled handled = handle(request("integrate"));
  EXPECT_EQ(handled.result.at("status"), "failed");
  EXPECT_EQ(handled.result.at("error_class"), "handler_exception");
  EXPECT_EQ(handled.result.at("error"), "broken");
  EXPECT_EQ(state("lifecycle_events").back().at("status"), "ERROR");
  const Json failure = state("last_action_failures").back();
  for (const char* field :
       {"ts", "action", "task_id", "error_class", "error_excerpt", "stderr_tail", "stderr_log_path",
        "workspace", "raw_result_path", "reported_success", "variant_name", "failure_id"}) {
    EXPECT_TRUE(failure.contains(field)) << field;
  }
  EXPECT_EQ(failure.at("action"), "integrate");
  EXPECT_EQ(failure.at("error_excerpt"), "broken");
  EXPECT_EQ(last_response().payload.at("source"), "programmatic_handler");
}

TEST_F(Spec_1_2, LifecycleSaysStartAndEndWithDuration) {
  handle(request("integrate", {{"kernel_id", "k1"}}));
  const Json events = state("lifecycle_events");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].at("status"), "START");
  EXPECT_EQ(events[1].at("status"), "END");
  EXPECT_TRUE(events[1].at("duration_s").is_number());
  for (const char* field : {"seq", "ts", "phase", "step", "label", "detail", "artifacts"}) {
    EXPECT_TRUE(events[1].contains(field)) << field;
  }
  EXPECT_EQ(events[1].at("step"), "integrate");
  EXPECT_EQ(events[1].at("label"), "k1");
  EXPECT_EQ(events[1].at("phase"), "KERNEL_AGENT");
}

TEST_F(Spec_1_2, LongStepSaysOnTheBusThatItRuns) {
  services_->heartbeat_seconds = 0.001;
  services_->handlers["integrate"] = [this](const Json&) -> Json {
    while (rows("observation").empty()) std::this_thread::yield();
    return {{"status", "ok"}};
  };
  handle(request("integrate"));
  const bus::Message beat = rows("observation").front();
  EXPECT_EQ(beat.from_agent, "orchestration");
  EXPECT_EQ(beat.to_agent, "*");
  EXPECT_EQ(beat.payload.at("kind"), "kernel_step_running");
  EXPECT_EQ(beat.payload.at("step"), "integrate");
  EXPECT_TRUE(beat.payload.at("elapsed_sec").is_number());
}

TEST_F(Spec_1_2, KindWhoseEngineIsMissingIsNotAvailable) {
  services_->handlers.erase("run_gemm_tuning");
  const Handled handled = handle(request("run_gemm_tuning"));
  EXPECT_EQ(handled.result.at("status"), "failed");
  EXPECT_EQ(handled.result.at("error_class"), "not_available");
  EXPECT_NE(handled.result.at("error").get<std::string>().find("run_gemm_tuning"),
            std::string::npos);
}

TEST_F(Spec_1_2, WrongPayloadIsAnsweredWithTheField) {
  const Handled handled = handle(request("run_optimization", {{"max_parallel", "8"}}));
  EXPECT_EQ(handled.result.at("error_class"), "invalid_payload");
  EXPECT_NE(handled.result.at("error").get<std::string>().find("max_parallel"), std::string::npos);
  EXPECT_TRUE(calls_.empty());
  EXPECT_EQ(state("last_action_failures").back().at("error_class"), "invalid_payload");
  const Handled odd = handle(request("run_optimization", {{"kernel", "k1"}}));
  EXPECT_EQ(odd.result.at("payload_warnings").size(), 1U);
}

TEST_F(Spec_1_2, NewestThirtyFailuresAndFiveHundredEventsAreKept) {
  Json document = Json::object();
  for (int i = 0; i < 600; ++i) {
    add_lifecycle(document, {{"step", "integrate"}});
    add_failure(document, "integrate", std::to_string(i), {{"error_class", "x"}});
  }
  EXPECT_EQ(document["lifecycle_events"].size(), 500U);
  EXPECT_EQ(document["lifecycle_events"].back().at("seq"), 600);
  EXPECT_EQ(document["last_action_failures"].size(), 30U);
  EXPECT_EQ(document["last_action_failures"].back().at("task_id"), "599");
}

TEST_F(Spec_1_4, ResultIsRecordedBeforeTheResponseAndFollowedUpAfterIt) {
  std::vector<std::string> order;
  services_->record["integrate"] = [&](const Json&, const Json& result) {
    EXPECT_EQ(result.at("status"), "ok");
    order.push_back("record " + std::to_string(rows("response").size()));
  };
  services_->follow_up["integrate"] = [&](const Json&, const Json&) {
    order.push_back("follow " + std::to_string(rows("response").size()));
  };
  handle(request("apply_patch"));
  EXPECT_EQ(order, (std::vector<std::string>{"record 0", "follow 1"}));
}

TEST_F(Spec_1_4, AnswerFromStateIsNotRecordedAgain) {
  services_->patch_key = [](const Json&) { return std::string("key"); };
  set("rejected_kernel_patches", {{"key", Json::object()}});
  services_->record["integrate"] = [](const Json&, const Json&) { FAIL(); };
  handle(request("integrate"));
}

TEST_F(Spec_2_1_Router, MalformedEnvelopeExecutesNothingAndTellsTheRole) {
  Json envelope = request("integrate");
  envelope["intents"].push_back(1);
  const Outcome outcome = router_->handle("orchestration", envelope).value();
  ASSERT_TRUE(outcome.malformed);
  EXPECT_EQ(outcome.malformed->error_class, "intent_not_object");
  EXPECT_TRUE(outcome.intents.empty());
  EXPECT_TRUE(calls_.empty());
  ASSERT_EQ(rows().size(), 1U);
  EXPECT_EQ(rows()[0].to_agent, "orchestration");
  EXPECT_EQ(rows()[0].payload.at("error_class"), "intent_not_object");
}

TEST_F(Spec_2_3, ResponseCarriesItsRequestInPayloadAndColumn) {
  answer_ = {{"status", "skipped"}, {"decision", "REVERT"}, {"gain_pct", 1.5}};
  const Handled handled = handle(request("integrate"));
  const bus::Message response = last_response();
  EXPECT_EQ(response.from_agent, "kernel_agent");
  EXPECT_EQ(response.to_agent, "orchestration");
  EXPECT_EQ(response.priority, 1);
  EXPECT_EQ(response.in_reply_to, handled.msg_id);
  EXPECT_EQ(response.payload, Json({{"in_reply_to", handled.msg_id},
                                    {"kind", "integrate_done"},
                                    {"status", "skipped"},
                                    {"result", handled.result},
                                    {"source", "programmatic_handler"},
                                    {"decision", "REVERT"},
                                    {"gain_pct", 1.5}}));
}

TEST_F(Spec_2_3, ResultWithoutStatusIsOk) {
  answer_ = Json::object();
  handle(request("run_optimization"));
  EXPECT_EQ(last_response().payload.at("status"), "ok");
}

TEST_F(Spec_2_3, SynthesizedWorkLooksAsIfItHadBeenRequested) {
  std::set<std::string> replied;
  for (const char* kind :
       {"run_gemm_tuning", "run_optimization", "integrate", "run_fusion", "fusion_integrate",
        "run_collective", "collective_integrate", "geak_e2e"}) {
    std::string seen;
    const Json result = {{"status", "ok"},
                         {"decision", "KEEP"},
                         {"gain_pct", 2.0},
                         {"speedup", 1.2},
                         {"result_path", "p"}};
    const auto done = router_->post_synthesized(kind, {{"a", 1}}, [&](const std::string& id) {
      seen = id;
      EXPECT_EQ(rows("request").back().msg_id, id) << "the row is there before the work";
      return result;
    });
    EXPECT_EQ(done.value(), result);
    const bus::Message asked = rows("request").back();
    EXPECT_EQ(asked.from_agent, "orchestration");
    EXPECT_EQ(asked.to_agent, "kernel_agent");
    EXPECT_EQ(asked.priority, 1);
    EXPECT_EQ(asked.payload, Json({{"target_agent", "kernel_agent"},
                                   {"kind", kind},
                                   {"params", {{"a", 1}}},
                                   {"source", "kernel_entry_auto"}}));
    const bus::Message response = last_response();
    EXPECT_EQ(response.in_reply_to, seen);
    EXPECT_EQ(response.payload.at("in_reply_to"), seen);
    EXPECT_EQ(response.payload.at("kind"), std::string(kind) + "_done");
    EXPECT_EQ(response.payload.at("source"), "kernel_entry_auto");
    EXPECT_TRUE(replied.insert(seen).second) << "two responses share a request";
    const bool decided = std::string(kind).ends_with("integrate");
    EXPECT_EQ(response.payload.contains("decision"), decided) << kind;
    EXPECT_EQ(response.payload.contains("gain_pct"), decided) << kind;
    EXPECT_EQ(response.payload.contains("speedup"), std::string(kind) == "geak_e2e");
    EXPECT_EQ(response.payload.contains("result_path"), std::string(kind) == "geak_e2e");
  }
  EXPECT_TRUE(calls_.empty()) << "nothing dispatches the row";
  EXPECT_TRUE(bus_->unanswered_requests()->empty());
}

TEST_F(Spec_2_3, SynthesizedWorkThatThrowsIsAFailedResponse) {
  const auto done = router_->post_synthesized(
      "run_optimization", {},
      [](const std::string&) -> Json { throw std::runtime_error("broken"); });
  EXPECT_EQ(done->at("status"), "failed");
  EXPECT_EQ(done->at("error_class"), "handler_exception");
  EXPECT_EQ(last_response().payload.at("status"), "failed");
  EXPECT_EQ(state("last_action_failures").back().at("action"), "run_optimization");
}

// What a kill leaves: a request row that nothing answers.
std::string leave_request(bus::Bus& bus, Json payload) {
  bus::Message message;
  message.from_agent = "orchestration";
  message.to_agent = "kernel_agent";
  message.topic = "request";
  message.payload = std::move(payload);
  return bus.append(std::move(message))->msg_id;
}

TEST_F(Spec_12, InterruptedRequestIsAnsweredRecordedAndDispatchedOnce) {
  const std::string id = leave_request(
      *bus_, {{"target_agent", "kernel_agent"}, {"kind", "integrate"}, {"kernel_id", "k1"}});
  const auto again = router_->answer_interrupted().value();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].msg_id, id);
  EXPECT_FALSE(again[0].synthesized);
  const bus::Message response = last_response();
  EXPECT_EQ(response.in_reply_to, id);
  EXPECT_EQ(response.payload.at("status"), "failed");
  EXPECT_EQ(response.payload.at("source"), "coordinator_auto_reject");
  EXPECT_EQ(response.payload.at("result").at("error_class"), "interrupted");
  EXPECT_EQ(state("last_action_failures").back().at("error_class"), "interrupted");
  EXPECT_EQ(state("last_action_failures").back().at("task_id"), id);

  EXPECT_EQ(router_->redispatch(again[0])->at("status"), "ok");
  const bus::Message second = rows("request").back();
  EXPECT_NE(second.msg_id, id);
  EXPECT_EQ(second.payload.at("redispatch_of"), id);
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_EQ(calls_[0].second.at("kernel_id"), "k1");
  EXPECT_EQ(calls_[0].second.at("redispatch_of"), id);
  EXPECT_TRUE(router_->answer_interrupted()->empty());
}

TEST_F(Spec_12, SecondInterruptionIsRecordedAndLeft) {
  const std::string id =
      leave_request(*bus_, {{"kind", "integrate"}, {"redispatch_of", std::string(32, 'a')}});
  EXPECT_TRUE(router_->answer_interrupted()->empty());
  EXPECT_EQ(last_response().in_reply_to, id);
  EXPECT_EQ(state("last_action_failures").size(), 1U);
  EXPECT_TRUE(router_->answer_interrupted()->empty());
  EXPECT_EQ(rows("response").size(), 1U);
}

TEST_F(Spec_12, KillBetweenAnswerAndSecondTryLosesNothing) {
  const std::string id = leave_request(*bus_, {{"kind", "run_optimization"}});
  ASSERT_EQ(router_->answer_interrupted()->size(), 1U);
  open();
  const auto again = router_->answer_interrupted().value();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].msg_id, id);
  EXPECT_EQ(rows("response").size(), 1U) << "answered once";
}

TEST_F(Spec_12, KillDuringTheSecondTryIsTheSecondInterruption) {
  const std::string id = leave_request(*bus_, {{"kind", "run_optimization"}});
  const auto again = router_->answer_interrupted().value();
  // The row of the second try is on the bus, and the state does not know it.
  leave_request(*bus_, {{"kind", "run_optimization"}, {"redispatch_of", id}});
  open();
  EXPECT_TRUE(router_->answer_interrupted()->empty());
}

TEST_F(Spec_12, InterruptedWorkOfAPhaseIsTheOneThatThePhaseStartsAgain) {
  const std::string id = leave_request(*bus_, {{"target_agent", "kernel_agent"},
                                               {"kind", "run_optimization"},
                                               {"params", {{"candidates_path", "p"}}},
                                               {"source", "kernel_entry_auto"}});
  const auto again = router_->answer_interrupted().value();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_TRUE(again[0].synthesized);
  const auto run = [](const std::string&) -> Json { return {{"status", "ok"}}; };
  ASSERT_TRUE(router_->post_synthesized("integrate", {}, run));
  EXPECT_FALSE(rows("request").back().payload.contains("redispatch_of"));
  ASSERT_TRUE(router_->post_synthesized("run_optimization", {{"candidates_path", "p"}}, run));
  EXPECT_EQ(rows("request").back().payload.at("redispatch_of"), id);
  ASSERT_TRUE(router_->post_synthesized("run_optimization", {{"candidates_path", "p"}}, run));
  EXPECT_FALSE(rows("request").back().payload.contains("redispatch_of"));
}

TEST_F(Spec_12, RoleCannotSayThatItsRequestIsTheCoordinators) {
  handle(one("request", {{"target_agent", "kernel_agent"},
                         {"kind", "integrate"},
                         {"source", "kernel_entry_auto"},
                         {"redispatch_of", std::string(32, 'a')}}));
  EXPECT_FALSE(rows("request").back().payload.contains("source"));
  EXPECT_FALSE(rows("request").back().payload.contains("redispatch_of"));
  EXPECT_FALSE(calls_[0].second.contains("redispatch_of"));
}

TEST_F(RouterTest, PassingEndsTheStreakOfItsAction) {
  phase_ = "PRELUDE";
  handle(request("integrate"));
  handle(request("integrate"));
  EXPECT_EQ(state("policy_denial_streaks").at("integrate:phase_incompatible"), 2);
  phase_ = "KERNEL_AGENT";
  handle(request("integrate"));
  EXPECT_TRUE(state("policy_denial_streaks").empty());
}

TEST_F(RouterTest, LenientPhaseIsNotedOnTheBusAndRuns) {
  environment_ =
      Environment(std::map<std::string, std::string>{{"INFERENCE_OPTIMIZER_STRICT_PHASE", "0"}});
  open();
  phase_ = "PRELUDE";
  const Handled handled = handle(request("integrate"));
  EXPECT_FALSE(handled.denial);
  ASSERT_EQ(handled.noted.size(), 1U);
  EXPECT_EQ(rows("observation").back().payload.at("kind"), "policy_noted");
  EXPECT_EQ(calls_.size(), 1U);
}

TEST_F(RouterTest, OtherIntentsAreRecordedAndTakeEffect) {
  handle(one("update_state", {{"changes", {{"notes", "x"}}}}));
  EXPECT_EQ(state("notes"), "x");
  handle(one("send_message", {{"topic", "advice"}, {"to_agent", "critic"}, {"text", "t"}}));
  EXPECT_EQ(rows("advice").back().to_agent, "critic");
  handle(one("alert", {{"severity", "high"}, {"summary", "s"}}));
  EXPECT_EQ(rows("alert").back().priority, 0);
  const Handled proposal =
      handle(one("propose_action", {{"action_name", "specialist"}, {"predicted_gain_pct", 1}}));
  handle(
      one("review_verdict", {{"target_proposal_msg_id", proposal.msg_id}, {"verdict", "approve"}}),
      "critic");
  EXPECT_EQ(rows("review_verdict").back().in_reply_to, proposal.msg_id);
  bus::Task task;
  task.kind = "sweep";
  task.idempotency_key = "k";
  const std::string id = tasks_->create_or_return_existing(task)->task.task_id;
  handle(one("prune_branch", {{"family", "sweep"}, {"reason", "r"}}), "robustness");
  EXPECT_EQ(tasks_->find(id)->value().state, "cancelled");
}

TEST_F(RouterTest, MessageOfARoleIsNoRequestResponseOrDecision) {
  for (const char* topic : {"request", "response", "proposal", "decision", "review_verdict", "x"}) {
    EXPECT_EQ(handle(one("send_message", {{"topic", topic}})).denial->rule, "payload") << topic;
  }
  const Handled asked = handle(request("integrate"));
  EXPECT_EQ(handle(one("response", {{"in_reply_to", asked.msg_id}, {"kind", "x"}})).denial->rule,
            "payload");
  EXPECT_EQ(handle(one("update_state", {{"changes", {{"notes", std::string(70'000, 'x')}}}}))
                .denial->rule,
            "payload");
}

}  // namespace
}  // namespace hyperloom::coordinator
