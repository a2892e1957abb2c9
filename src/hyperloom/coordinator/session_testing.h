// Whole sessions on a fake workload, whose sources say what every variant of it measures. For
// tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hyperloom/agent/orchestrator.h"
#include "hyperloom/coordinator/coordinator.h"
#include "hyperloom/core/testing.h"
#include "hyperloom/task/testing.h"

namespace hyperloom::coordinator {

// One kernel takes nearly all the time; its choice of tile 4 halves that.
inline constexpr const char* kModel = R"(// fake: kernel work 1000000
// fake: fixed 10000
// fake: when tile 4 work 0.5
config.def @tile = 2 : index

kernel.def @work() {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%out: buffer) {
  %tile = config.get @tile : index
  %base = index.constant 0 : offset
  %to = buffer.view %out[%base] : buffer -> view<1xi64>
  %value = index.cast %tile : index to i64
  view.store %value, %to[0] : i64, view<1xi64>
  kernel.return
}

command.program.def public @p() launch(%out: buffer) {
  kernel.launch @work(%out) : (buffer)
  command.return
}
)";

// Says its envelopes turn by turn, whatever happens, and remembers what it was told.
class Listed final : public agent::Orchestrator {
 public:
  Listed(std::vector<Json> envelopes, std::vector<agent::Turn>* told)
      : envelopes_(std::move(envelopes)), told_(told) {}
  std::string_view role() const override { return "orchestration"; }
  Result<Json> turn(const agent::Turn& turn) override {
    if (told_ != nullptr) told_->push_back(turn);
    if (turn.number >= envelopes_.size()) return Json{{"intents", Json::array()}};
    return envelopes_[turn.number];
  }

 private:
  std::vector<Json> envelopes_;
  std::vector<agent::Turn>* told_;
};

inline Json says(const std::string& type, const Json& payload) {
  return {{"intents", {{{"intent_type", type}, {"payload", payload}}}}};
}
inline Json asks(const std::string& kind, const Json& params = Json::object()) {
  return says("request", {{"target_agent", "kernel_agent"}, {"kind", kind}, {"params", params}});
}
inline Json hints(const std::string& word) {
  return says("update_state", {{"changes", {{"phase_hint", word}}}});
}
inline const Json kSilent = {{"intents", Json::array()}};

struct Plan {
  std::map<std::string, std::string> variables;
  Options options;
  std::string model = kModel;
  std::vector<Json> envelopes;  // of the listed role, where there are any
  std::vector<agent::Turn>* told = nullptr;
  std::function<std::unique_ptr<agent::Orchestrator>()> role;  // another one
  std::function<void(const std::string& call)> before;         // of the fake workload
  std::function<void(Json& state)> change;                     // before the session goes on
};

inline Options quick() {
  Options options;
  options.budget_seconds = 3600;
  return options;
}

// Runs the session in `folder` from where it stands to its end.
struct SessionRun {
  explicit SessionRun(const std::filesystem::path& folder, const Plan& setup) : session(folder) {
    session.variables = setup.variables;
    if (!std::filesystem::exists(session.tree() / "model.loom")) {
      session.write("tree/model.loom", setup.model);
    }
    session.recording = folder / "measured.jsonl";
    session.start({"model.loom"});
    if (session.state().value("phase", "").empty()) {
      const Environment environment(setup.variables);
      const Json initial = initial_state(session.workload(), setup.options, environment);
      session.change([&](Json& state) { state.update(initial); });
    }
    if (setup.change) session.change(setup.change);
    session.script().before = setup.before;
    bus::Tasks tasks(
        bus::Database::open(session.layout().database(), Environment(setup.variables)).value());
    std::vector<std::unique_ptr<agent::Orchestrator>> roles;
    if (setup.role) {
      roles.push_back(setup.role());
    } else if (!setup.envelopes.empty()) {
      roles.push_back(std::make_unique<Listed>(setup.envelopes, setup.told));
    } else if (setup.options.transcript.empty()) {
      roles.push_back(agent::scripted(setup.options.kernel));
    } else {
      roles = std::move(agent::replayed(setup.options.transcript)).value();
    }
    context.emplace(session.context());
    Coordinator coordinator(*context, tasks, setup.options, std::move(roles));
    ended = coordinator.run();
  }

  // Oldest first.
  std::vector<bus::Message> rows(const std::string& topic = "") const {
    auto all = context->bus.tail(SIZE_MAX).value();
    std::ranges::reverse(all);
    std::erase_if(all, [&](const bus::Message& row) { return topic != "" && row.topic != topic; });
    return all;
  }
  // The kinds of the requests, in order.
  std::vector<std::string> asked() const {
    std::vector<std::string> kinds;
    for (const bus::Message& row : rows("request")) kinds.push_back(text_of(row.payload, "kind"));
    return kinds;
  }
  std::vector<std::string> phases() const {
    std::vector<std::string> names;
    const Json state = session.state();
    for (const Json& row : state["phase_history"]) names.push_back(row["phase"]);
    return names;
  }
  std::string not_run(const std::string& step) const {
    const Json state = session.state();
    for (const Json& row : state["not_run"]) {
      if (row["step"] == step) return row["reason"];
    }
    return "";
  }
  Json report() const { return read_json(session.layout().reports() / "report.json").value(); }

  task::FakeSession session;
  std::optional<task::Context> context;
  Result<Ended> ended;
};

inline const std::map<std::string, std::string> kForge = {
    {"KERNEL_OPT_BACKEND_ORDER", "forge"}, {"HYPERLOOM_KERNEL_OPT_MIN_GPU_PCT", "5"}};
inline const std::map<std::string, std::string> kGeak = {{"GEAK_MIN_RUN_S", "1"},
                                                         {"GEAK_BUDGET_MARGIN_S", "1"}};

class SessionTest : public testing::Test {
 protected:
  std::unique_ptr<SessionRun> run(const Plan& setup) {
    auto made = std::make_unique<SessionRun>(folder_.path(), setup);
    EXPECT_TRUE(made->ended.has_value()) << made->ended.error().message;
    return made;
  }
  TempFolder folder_;
};

}  // namespace hyperloom::coordinator
