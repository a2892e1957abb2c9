#include "hyperloom/report/report.h"

#include <gtest/gtest.h>

#include <limits>

namespace hyperloom::report {
namespace {

Json keep_row(int64_t before, int64_t after) {
  return {{"seq", 1},          {"kind", "keep"}, {"integration_id", "i1"},
          {"before", before},  {"after", after}, {"delta_tput", after - before},
          {"ts", "2026-01-01"}};
}

TEST(Report, GainComesFromTheLedgerAlone) {
  const Json state = {{"baseline_tput", 1000.0},
                      {"cumulative_gain_validated", 99.0},
                      {"gain_ledger", {keep_row(1000000000, 1034000000)}}};
  const Json report = build({{"session_id", "s"}}, state, {}, {});
  EXPECT_EQ(report["outcome"], "improved");
  EXPECT_EQ(report["baseline_tput"], "1000");
  EXPECT_EQ(report["final_tput"], "1034");
  EXPECT_EQ(report["delta_tput"], "34");
  EXPECT_NEAR(report["gain_pct"].get<double>(), 3.4, 1e-9);
  EXPECT_NE(markdown(report).find("**+3.40 %** end to end: 1000 → 1034 issues/s"),
            std::string::npos);
}

TEST(Report, NoGainIsAResult) {
  const Json report = build({}, {{"baseline_tput", 12.5}}, {}, {});
  EXPECT_EQ(report["outcome"], "no_gain");
  EXPECT_EQ(report["final_tput"], "12.5");
  EXPECT_NE(markdown(report).find("No gain"), std::string::npos);
}

TEST(Report, WithoutABaselineNothingWasMeasured) {
  const Json report = build({}, Json::object(), {}, {});
  EXPECT_EQ(report["outcome"], "nothing_measured");
  EXPECT_FALSE(report.contains("gain_pct"));
  EXPECT_NE(markdown(report).find("Nothing was measured"), std::string::npos);
}

TEST(Report, ARebaselineAloneIsNoImprovement) {
  Json row = keep_row(1000000, 1100000);
  row["kind"] = "rebaseline";
  const Json report = build({}, {{"baseline_tput", 1.0}, {"gain_ledger", {row}}}, {}, {});
  EXPECT_EQ(report["outcome"], "no_gain");
}

TEST(Report, TellsWhatDidNotRunAndWhy) {
  const Json state = {
      {"baseline_tput", 1.0},
      {"not_run", {{{"phase", "KERNEL_AGENT"}, {"step", "fusion"}, {"reason", "skip_switch"}}}},
      {"pending_kernel_integrations",
       {{"i9", {{"status", "waiting"}, {"kernel_id", "k9"}, {"reason", "implausible"}}}}}};
  const std::string text = markdown(build({}, state, {}, {}));
  EXPECT_NE(text.find("| KERNEL_AGENT | fusion | skip_switch |"), std::string::npos);
  EXPECT_NE(text.find("| i9 | k9 | waiting | implausible |"), std::string::npos);
  EXPECT_NE(text.find("run_fusion"), std::string::npos);
}

TEST(Report, TheKeptConfigurationIsShownAndUsable) {
  const Json state = {{"baseline_tput", 1.0},
                      {"current_best", {{"extra_envs", {{"tile", "8"}, {"width", 4}}}}}};
  const Json report = build({}, state, {}, {});
  EXPECT_EQ(config_flags(report), "--config=tile=8\n--config=width=4\n");
  EXPECT_NE(markdown(report).find("- tile = 8\n- width = 4\n"), std::string::npos);
  EXPECT_EQ(config_flags(build({}, {{"baseline_tput", 1.0}}, {}, {})), "");
  const Json manifest = {{"workload",
                          {{"root", "p"},
                           {"config", {{"tile", "1"}, {"other", "2"}}},
                           {"original", {{"a.loom", "text"}}}}}};
  EXPECT_EQ(kept_workload(build(manifest, state, {}, {})),
            Json({{"root", "p"}, {"config", {{"tile", "8"}, {"other", "2"}, {"width", 4}}}}));
}

TEST(Report, ACellCannotBreakItsTable) {
  const Json state = {{"baseline_tput", 1.0},
                      {"last_action_failures", {{{"action", "a|b\nc"}, {"error_class", "x"}}}}};
  EXPECT_NE(markdown(build({}, state, {}, {})).find("| a b c | x |"), std::string::npos);
}

TEST(Report, DecimalsAreExact) {
  EXPECT_EQ(decimal(0), "0");
  EXPECT_EQ(decimal(1), "0.000001");
  EXPECT_EQ(decimal(-1500000), "-1.5");
  EXPECT_EQ(decimal(-20000000), "-20");
  EXPECT_EQ(decimal(std::numeric_limits<int64_t>::min()), "-9223372036854.775808");
}

}  // namespace
}  // namespace hyperloom::report
