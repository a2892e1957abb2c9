// Candidates for the tests of integration: kernels whose time is written in their sources.
#pragma once

#include <string>
#include <vector>

#include "hyperloom/integrate/integrate.h"
#include "hyperloom/integrate/patch_testing.h"
#include "hyperloom/task/testing.h"

namespace hyperloom::integrate {

// A source of kernel `name` that takes `ns` nanoseconds an issue.
inline std::string kernel_text(const std::string& name, double ns, const std::string& more = "") {
  return "// fake: kernel " + name + " " + std::to_string(ns) + "\n" + more;
}

// Kernels ka and kb of 5 and 4 microseconds in files of their own, and 1 microsecond besides: an
// issue takes 10, so ka has half of the time. Integrations i1, i2, ... are candidates of them.
class World : public task::FakeSession {
 public:
  explicit World(const fs::path& base) : FakeSession(base) {
    if (fs::exists(tree() / "a.loom")) return;
    write("tree/a.loom", kernel_text("ka", 5000));
    write("tree/b.loom", kernel_text("kb", 4000));
    write("tree/main.loom", "// fake: fixed 1000\n");
  }
  void open() {
    const bool fresh = !fs::exists(base() / "data");
    start({"a.loom", "b.loom", "main.loom"});
    if (!fresh) return;
    const auto hash = workload::tree_hash(tree(), workload().files());
    change([&](Json& state) {
      state["baseline_tput"] = 1e5;
      state["last_trace_analyze"] = {{"tree_hash", *hash}};
    });
  }
  // Queues a candidate of a.loom (or `file`): what its source becomes.
  Json queue(const std::string& id, const std::string& text, const std::string& file = "a.loom",
             double micro = 2.0) {
    write("candidates/" + id + ".loom", text);
    Json record = {{"integration_id", id},
                   {"task_key", "task-" + file},
                   {"task_group_key", "task-" + file},
                   {"kernel_id", file == "a.loom" ? "k001" : "k002"},
                   {"kernel_name", file == "a.loom" ? "ka" : "kb"},
                   {"source_file", file},
                   {"artifact_path", (base() / "candidates" / (id + ".loom")).string()},
                   {"artifact_kind", "source_file"},
                   {"micro_speedup", micro},
                   {"e2e_share", file == "a.loom" ? 0.5 : 0.4},
                   {"trace_gpu_pct", file == "a.loom" ? 55.0 : 45.0},
                   {"created_at", "2026-01-01T00:00:00Z"},
                   {"status", "pending"}};
    change([&](Json& state) {
      state["pending_kernel_integrations"][id] = record;
      state["kernel_opt_task_attempts"]["task-" + file] = {{"kernel_id", record["kernel_id"]}};
    });
    return record;
  }
  Json run(const std::string& id, Json more = Json::object()) const {
    more["integration_id"] = id;
    return integrate(more, context());
  }
  // What is ready, best first, until nothing is or `limit` is reached.
  static std::vector<Json> drain(const task::Context& context, size_t limit = 10) {
    std::vector<Json> results;
    while (results.size() < limit && !context.stopped()) {
      std::vector<std::string> ready;
      context.state().read([&](const Json& state) { ready = ready_integrations(state); });
      if (ready.empty()) break;
      results.push_back(integrate_queued({{"integration_id", ready.front()}}, context));
    }
    return results;
  }
  Json pending(const std::string& id) const { return state()["pending_kernel_integrations"][id]; }
  // Decision and reason, "KEEP gain_confirmed".
  static std::string verdict(const Json& result) {
    return text_of(result, "decision") + " " + text_of(result, "decision_reason");
  }
};

class Integrate : public testing::Test {
 protected:
  void SetUp() override {
    world_.open();
    before_ = picture(world_.tree());
  }
  // The tree is as before, nothing is under way, and the lanes are free.
  void expect_restored() const {
    EXPECT_EQ(picture(world_.tree()), before_);
    const Json state = world_.state();
    EXPECT_FALSE(state.contains("active_integration"));
    EXPECT_FALSE(state.contains("recovery_required"));
    EXPECT_TRUE(world_.lanes().try_acquire("workspace_mutation", "test"));
    EXPECT_TRUE(world_.lanes().try_acquire("benchmark_lane", "test"));
  }
  void expect_waits(const std::string& id, const Json& result) const {
    EXPECT_EQ(text_of(result, "decision"), "NEEDS_REVIEW") << result;
    expect_restored();
    const Json record = world_.pending(id);
    EXPECT_EQ(text_of(record, "status"), "waiting");
    EXPECT_EQ(record["reason"], result["decision_reason"]);
    for (const auto& [key, entry] : world_.state()["kernel_integrate_attempts"].items()) {
      EXPECT_EQ(number_of(entry, "fault_count"), 0);
      EXPECT_EQ(number_of(entry, "verdict_attempt_count"), 0);
      EXPECT_FALSE(flag_of(entry, "rejected"));
    }
  }
  TempFolder folder_;
  World world_{folder_.path()};
  std::string before_;
};

}  // namespace hyperloom::integrate
