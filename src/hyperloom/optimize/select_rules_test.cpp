#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "hyperloom/optimize/select.h"
#include "hyperloom/optimize/task_key.h"
#include "hyperloom/optimize/testing.h"

namespace hyperloom::optimize {
namespace {

// The rules of 4.4 once more, each as one question about one row, without any index.
class PlainReading {
 public:
  PlainReading(const Json& candidates, const Json& state, std::set<std::string> in_flight)
      : candidates_(candidates), state_(state), in_flight_(std::move(in_flight)) {}

  bool selected(const Json& row) const {
    if (!usable(row) || integrated(row)) return false;
    const Json* group = group_of(row);
    return group != nullptr ? represents(row, *group) : stands_alone(row);
  }

 private:
  static bool usable(const Json& row) {
    return value_of(row, "reusable_native_kernel") == true && row["source_file"] != "" &&
           value_of(row, "shape_dispatchable") != false && value_of(row, "is_multigpu") != true;
  }
  const Json* group_of(const Json& row) const {
    for (const Json& group : candidates_["task_groups"]) {
      for (const Json& id : group["kernel_ids"]) {
        if (id == row["kernel_id"]) return &group;
      }
    }
    return nullptr;
  }
  const Json* row_of(const Json& id) const {
    for (const Json& row : candidates_["hot_kernels"]) {
      if (row["kernel_id"] == id) return &row;
    }
    return nullptr;
  }
  bool integrated_alone(const Json& row) const {
    for (const Json& kept : state_["optimization_stack"]) {
      if (value_of(kept, "target_file") == row["source_file"]) return true;
    }
    return false;
  }
  bool integrated(const Json& row) const {
    const Json* group = group_of(row);
    if (group == nullptr) return integrated_alone(row);
    for (const Json& kept : state_["optimization_stack"]) {
      if (value_of(kept, "task_group_key") == (*group)["task_group_key"]) return true;
    }
    for (const Json& id : (*group)["kernel_ids"]) {
      if (const Json* member = row_of(id); member != nullptr && integrated_alone(*member)) {
        return true;
      }
    }
    return false;
  }
  const Json* entry_of(const std::string& key) const {
    const Json& ledger = state_["kernel_opt_task_attempts"];
    return ledger.contains(key) ? &ledger[key] : nullptr;
  }
  static bool runs_again(const Json* entry, const Json& row) {
    if (entry == nullptr || (*entry)["last_source_file"] != row["source_file"]) return true;
    const Json& decision = (*entry)["last_decision"];
    if (decision == "PARTIAL") return (*entry)["partial_count"] < 2;
    if (decision != "") return false;
    return (*entry)["failure_count"] < ((*entry)["last_gpu_pct"] >= 5.0 ? 4 : 2);
  }
  bool rejected(const Json& row, const Json* entry, bool keyed) const {
    bool listed = false;
    for (const Json& id : state_["rejected_kernel_ids"]) listed |= id == row["kernel_id"];
    if (!listed) return false;
    if (entry == nullptr) return !keyed && !tried_elsewhere(row);
    return entry->contains("rejected_reason") && (*entry)["last_source_file"] == row["source_file"];
  }
  bool tried_elsewhere(const Json& row) const {
    for (const Json& entry : state_["kernel_opt_task_attempts"]) {
      if (entry["current_kernel_id"] == row["kernel_id"]) return true;
    }
    return false;
  }
  bool represents(const Json& row, const Json& group) const {
    const Json* entry = entry_of(group["task_group_key"]);
    bool all_rejected = true;
    std::string first;
    for (const Json& id : group["kernel_ids"]) {
      if (in_flight_.contains(id)) return false;
      const Json* member = row_of(id);
      if (member == nullptr) continue;
      all_rejected &= rejected(*member, entry, true);
      if (usable(*member) && (first.empty() || id == text_of(group, "primary_kernel_id")))
        first = id;
    }
    return !all_rejected && first == text_of(row, "kernel_id") && runs_again(entry, row) &&
           row["gpu_pct"] >= 5.0;
  }
  bool stands_alone(const Json& row) const {
    if (!lives_alone(row)) return false;
    double sum = 0;
    for (const Json& other : candidates_["hot_kernels"]) {
      if (other["source_file"] != row["source_file"] || group_of(other) != nullptr) continue;
      if (!usable(other) || integrated(other) || !lives_alone(other)) continue;
      sum += other["gpu_pct"].get<double>();
      if (other["gpu_pct"] > row["gpu_pct"]) return false;
      if (other["gpu_pct"] == row["gpu_pct"] && other["kernel_id"] < row["kernel_id"]) return false;
    }
    return sum >= 5.0;
  }
  bool lives_alone(const Json& row) const {
    const Json* entry = entry_of(legacy_task_key(row["kernel_id"], row["source_file"]));
    return !in_flight_.contains(row["kernel_id"]) && !rejected(row, entry, false) &&
           runs_again(entry, row);
  }

  const Json& candidates_;
  const Json& state_;
  std::set<std::string> in_flight_;
};

// A small session in which every rule has something to bite on.
class RandomSession {
 public:
  explicit RandomSession(uint64_t seed) : random_(seed) {
    candidates = {{"hot_kernels", Json::array()}, {"task_groups", Json::array()}};
    state = {{"kernel_opt_task_attempts", Json::object()},
             {"rejected_kernel_ids", Json::array()},
             {"optimization_stack", Json::array()}};
    const int rows = 1 + pick(7);
    for (int i = 0; i < rows; ++i) add_row("k" + std::to_string(i));
    for (int i = 0; i < pick(3); ++i) add_group(rows, "tg" + std::to_string(i));
    for (const Json& made : candidates["hot_kernels"]) {
      if (chance(3)) add_entry(legacy_task_key(made["kernel_id"], made["source_file"]), made);
    }
    if (chance(3)) {
      state["optimization_stack"].push_back(
          {{"action", "integrate"}, {"target_file", source()}, {"task_group_key", "key-tg0"}});
    }
    if (chance(3)) in_flight.insert("k" + std::to_string(pick(rows)));
  }

  Json candidates;
  Json state;
  std::set<std::string> in_flight;

 private:
  int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }
  bool chance(int of) { return pick(of) == 0; }
  std::string source() { return std::string(1, static_cast<char>('a' + pick(4))) + ".loom"; }
  void add_row(const std::string& id) {
    Json made = row(id, pick(5) * 2.5, source());
    if (chance(6)) made["reusable_native_kernel"] = false;
    if (chance(8)) made["source_file"] = "";
    if (chance(8)) made["shape_dispatchable"] = false;
    if (chance(8)) made["is_multigpu"] = true;
    if (chance(4)) state["rejected_kernel_ids"].push_back(id);
    candidates["hot_kernels"].push_back(made);
  }
  void add_group(int rows, const std::string& id) {
    const int first = pick(rows);
    Json kernels = Json::array();
    for (int i = first; i < std::min(rows, first + 1 + pick(3)); ++i) {
      if (grouped_.insert(i).second) kernels.push_back("k" + std::to_string(i));
    }
    if (kernels.empty()) return;
    Json made = group(id, kernels);
    made["primary_kernel_id"] =
        kernels[static_cast<size_t>(pick(static_cast<int>(kernels.size())))];
    candidates["task_groups"].push_back(made);
    if (chance(2)) {
      const auto member = static_cast<size_t>(std::stoi(kernels[0].get<std::string>().substr(1)));
      add_entry("key-" + id, candidates["hot_kernels"][member]);
    }
  }
  void add_entry(const std::string& key, const Json& of) {
    static const char* const kDecisions[] = {"KEEP", "REVERT", "PARTIAL", "NEEDS_REVIEW", ""};
    Json made = {{"current_kernel_id", of["kernel_id"]},
                 {"last_decision", kDecisions[pick(5)]},
                 {"last_status", "failed"},
                 {"partial_count", pick(3)},
                 {"failure_count", 1 + pick(4)},
                 {"last_gpu_pct", pick(3) * 5.0},
                 {"last_source_file", of["source_file"]}};
    if (chance(4)) made["last_source_file"] = "other.loom";
    if (chance(2)) made["rejected_reason"] = "revert_decision";
    state["kernel_opt_task_attempts"][key] = made;
  }

  std::mt19937_64 random_;
  std::set<int> grouped_;
};

TEST(Spec_4_4, SelectionEqualsAPlainReadingOfTheRules) {
  size_t selected = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const RandomSession session(seed);
    const auto selection =
        select_candidates(session.candidates, session.state, kDefault, session.in_flight);
    ASSERT_EQ(selection.failure, "");
    const auto ids = selection.ids();
    const PlainReading plain(session.candidates, session.state, session.in_flight);
    for (const Json& made : session.candidates["hot_kernels"]) {
      const bool is_selected =
          std::ranges::find(ids, made["kernel_id"].get<std::string>()) != ids.end();
      ASSERT_EQ(is_selected, plain.selected(made)) << "seed " << seed << ", " << made << "\n"
                                                   << session.candidates << "\n"
                                                   << session.state;
      ASSERT_NE(is_selected,
                selection.find_skipped(made["kernel_id"].get<std::string>()) != nullptr);
    }
    selected += ids.size();
  }
  EXPECT_GT(selected, 1000U);
}

}  // namespace
}  // namespace hyperloom::optimize
