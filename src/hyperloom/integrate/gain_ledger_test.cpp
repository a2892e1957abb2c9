#include "hyperloom/integrate/gain_ledger.h"

#include <gtest/gtest.h>

#include <random>

namespace hyperloom::integrate {
namespace {

int64_t sum(const Json& state) {
  int64_t total = 0;
  for (const Json& row : state["gain_ledger"]) total += row["delta_tput"].get<int64_t>();
  return total;
}

TEST(Spec_14, LedgerOfTwoKeepsAndTwoRebaselinesSumsExactly) {
  Json state = {{"baseline_tput", 1000}};
  add_keep(state, "i1", 1000, 1020, "t1");
  add_keep(state, "i2", 1015, 1035, "t2");
  add_rebaseline(state, 1034, "t3");
  std::vector<std::string> kinds;
  std::vector<int64_t> deltas;
  for (const Json& row : state["gain_ledger"]) {
    kinds.push_back(row["kind"]);
    deltas.push_back(row["delta_tput"].get<int64_t>());
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"keep", "rebaseline", "keep", "rebaseline"}));
  EXPECT_EQ(deltas, (std::vector<int64_t>{20'000'000, -5'000'000, 20'000'000, -1'000'000}));
  EXPECT_EQ(sum(state), 34'000'000);
  EXPECT_NEAR(state["cumulative_gain_validated"].get<double>(), 3.4, 1e-12);
}

TEST(Spec_7_6, DeltasOfAnyHistorySumToFinalMinusBaseline) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> tput(1e-3, 1e6);
  for (int run = 0; run < 200; ++run) {
    Json state = {{"baseline_tput", tput(random)}};
    for (int i = 0; i < 30; ++i) {
      if (random() % 2 == 0) {
        add_keep(state, "i", tput(random), tput(random), "t");
      } else {
        add_rebaseline(state, tput(random), "t");
      }
    }
    int64_t at = ledger_baseline(state);
    uint64_t seq = 0;
    for (const Json& row : state["gain_ledger"]) {
      EXPECT_EQ(row["seq"].get<uint64_t>(), ++seq);
      EXPECT_EQ(row["before"].get<int64_t>(), at);
      at = row["after"].get<int64_t>();
    }
    ASSERT_EQ(sum(state), ledger_final(state) - ledger_baseline(state));
  }
}

TEST(Spec_7_6, AnUnchangedMeasurementAddsNoRow) {
  Json state = {{"baseline_tput", 1000.5}};
  add_rebaseline(state, 1000.5, "t");
  EXPECT_FALSE(state.contains("gain_ledger"));
}

TEST(Spec_7_6, LiftMovesCurrentBestStackAndLedgerTogether) {
  Json state = {{"baseline_tput", 1000}};
  Kept kept{.integration_id = "i1", .tput_a = 1000, .tput_b = 1020, .gain_pct = 2, .ts = "t"};
  kept.entry = {{"kernel_id", "k001"}, {"target_file", "model.loom"}};
  kept.extra_envs = {{"tile", "8"}};
  lift_to_current_best(state, kept);
  EXPECT_EQ(state["current_best"]["tput"], 1020.0);
  EXPECT_EQ(state["current_best"]["extra_envs"]["tile"], "8");
  ASSERT_EQ(state["optimization_stack"].size(), 1u);
  EXPECT_EQ(state["optimization_stack"][0]["action"], "integrate");
  EXPECT_EQ(state["optimization_stack"][0]["delta_tput"], 20.0);
  EXPECT_EQ(state["gain_per_stack_entry"], Json({2.0}));
  EXPECT_EQ(state["cumulative_gain_validated_stack_len"], 1u);
  EXPECT_EQ(state["gain_ledger"].size(), 1u);
  for (const char* field : {"tput", "action", "extra_server_args", "extra_envs"}) {
    EXPECT_TRUE(state["current_best"].contains(field)) << field;
  }
  for (const char* field :
       {"seq", "kind", "integration_id", "before", "after", "delta_tput", "ts"}) {
    EXPECT_TRUE(state["gain_ledger"][0].contains(field)) << field;
  }
  EXPECT_TRUE(state["gain_ledger"][0]["delta_tput"].is_number_integer());
  EXPECT_EQ(state["gain_ledger"][0]["delta_tput"], 20000000);
}

}  // namespace
}  // namespace hyperloom::integrate
