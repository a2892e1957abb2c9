#include "hyperloom/optimize/select.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "hyperloom/optimize/task_key.h"
#include "hyperloom/optimize/testing.h"

namespace hyperloom::optimize {
namespace {

Json entry(const std::string& kernel, const std::string& decision, const std::string& source = "") {
  return {{"current_kernel_id", kernel},
          {"last_decision", decision},
          {"last_source_file", source.empty() ? kernel + ".loom" : source}};
}

std::string reason_of(const Selection& selection, const std::string& id) {
  const Skipped* skipped = selection.find_skipped(id);
  return skipped == nullptr ? "" : skipped->text;
}
std::string detail_of(const Selection& selection, const std::string& id) {
  const Skipped* skipped = selection.find_skipped(id);
  return skipped == nullptr ? "" : skipped->detail;
}

using Ids = std::vector<std::string>;

TEST(Spec_4_3, SelectionIsOrderedByEffectiveShare) {
  Json vendor = row("k3", 6);
  vendor["vendor_playbook_aggregate_gpu_pct"] = 40;
  const auto selection = select_candidates(
      {{"hot_kernels", {row("k1", 20), row("k2", 30), vendor}}}, Json::object(), kDefault);
  EXPECT_EQ(selection.ids(), (Ids{"k3", "k2", "k1"}));
}

TEST(Spec_4_3, StateThatCannotBeReadIsAFailure) {
  const auto selection = select_candidates({{"hot_kernels", {row("k1", 20)}}},
                                           {{"kernel_opt_task_attempts", "lost"}}, kDefault);
  EXPECT_EQ(selection.failure, "state_unreadable");
  EXPECT_EQ(selection.message, "the state's `kernel_opt_task_attempts` is of another type");
  EXPECT_TRUE(selection.selected.empty());
}

TEST(Spec_4_4, UnreadableCandidatesSelectNothing) {
  for (const Json& broken :
       {Json(), Json::array(), Json{{"hot_kernels", 3}}, Json{{"hot_kernels", {1}}}}) {
    const auto selection = select_candidates(broken, Json::object(), kDefault);
    EXPECT_EQ(selection.failure, "candidates_unreadable");
    EXPECT_TRUE(selection.selected.empty());
  }
}

TEST(Spec_4_4, SummaryRowsServeWhereThereAreNoOthers) {
  const auto selection =
      select_candidates({{"hot_kernels_top15", {row("k1", 20)}}}, Json::object(), kDefault);
  EXPECT_EQ(selection.ids(), Ids{"k1"});
}

TEST(Spec_4_4, RowsThatCannotBeWorkedOnSayWhy) {
  Json guessed = row("k1", 20);
  guessed["shape_dispatchable"] = false;
  Json reduce = row("k2", 20);
  reduce["kernel_contract"] = {{"kind", "collective"}};
  Json op = row("k3", 20);
  op["collective_op"] = "all_gather";
  Json injected = row("k4", 20);
  injected["candidate_source"] = "nccl_summary";
  Json several = row("k5", 20);
  several["is_multigpu"] = true;
  Json vendor = row("k6", 20);
  vendor["reusable_native_kernel"] = 1;
  Json lost = row("k7", 20);
  lost["source_file"] = "Not found";
  Json gated = row("k8", 20);
  gated["blocked_by"] = "high_gpu_idle_pct";
  const auto selection = select_candidates(
      {{"hot_kernels", {guessed, reduce, op, injected, several, vendor, lost, gated}}},
      Json::object(), kDefault);
  EXPECT_TRUE(selection.selected.empty());
  EXPECT_EQ(reason_of(selection, "k1"), "shape_not_dispatchable");
  for (const char* id : {"k2", "k3", "k4", "k5"}) {
    EXPECT_EQ(reason_of(selection, id), "collective_lane") << id;
  }
  EXPECT_EQ(reason_of(selection, "k6"), "not_reusable_native_kernel");
  EXPECT_EQ(reason_of(selection, "k7"), "no_source_file");
  EXPECT_EQ(reason_of(selection, "k8"), "blocked_by_gate=high_gpu_idle_pct");
}

// Section 14: "GPU share exactly at the floor".
TEST(Spec_4_4, ShareExactlyAtTheFloorIsDispatched) {
  const auto selection = select_candidates({{"hot_kernels", {row("k1", 5), row("k2", 4.999)}}},
                                           Json::object(), kDefault);
  EXPECT_EQ(selection.ids(), Ids{"k1"});
  EXPECT_EQ(reason_of(selection, "k2"), "below_min_gpu_pct=5");
}

TEST(Spec_11, FloorComesFromTheEnvironmentAndFromTheRow) {
  const Environment low = with({{"HYPERLOOM_KERNEL_OPT_MIN_GPU_PCT", "2.5"}});
  Json vendor = row("k2", 8);
  vendor["vendor_playbook_min_gpu_pct_floor"] = 10;
  const auto selection =
      select_candidates({{"hot_kernels", {row("k1", 2.5), vendor}}}, Json::object(), low);
  EXPECT_EQ(selection.ids(), Ids{"k1"});
  EXPECT_EQ(reason_of(selection, "k2"), "below_min_gpu_pct=10");
}

TEST(Spec_4_4, OneTaskForEachGroup) {
  const auto selection =
      select_candidates({{"hot_kernels", {row("k1", 10, "a"), row("k2", 20, "a"), row("k3", 30)}},
                         {"task_groups", {group("tg001", {"k2", "k1"})}}},
                        Json::object(), kDefault);
  EXPECT_EQ(selection.ids(), (Ids{"k3", "k2"}));
  EXPECT_EQ(selection.selected[1]["task_group"]["task_group_id"], "tg001");
  EXPECT_EQ(reason_of(selection, "k1"), "task_group_member=k2");
}

TEST(Spec_4_4, AnotherMemberStandsInForAPrimaryThatCannotBeChanged) {
  Json primary = row("k1", 30, "a");
  primary["reusable_native_kernel"] = false;
  const auto selection = select_candidates({{"hot_kernels", {primary, row("k2", 20, "a")}},
                                            {"task_groups", {group("tg001", {"k1", "k2"})}}},
                                           Json::object(), kDefault);
  EXPECT_EQ(selection.ids(), Ids{"k2"});
  EXPECT_EQ(reason_of(selection, "k1"), "not_reusable_native_kernel");
}

TEST(Spec_4_4, WorkOnOneMemberHoldsItsWholeGroup) {
  const auto selection =
      select_candidates({{"hot_kernels", {row("k1", 30, "a"), row("k2", 20, "a"), row("k3", 9)}},
                         {"task_groups", {group("tg001", {"k1", "k2"})}}},
                        Json::object(), kDefault, {"k2", "k3"});
  EXPECT_TRUE(selection.selected.empty());
  EXPECT_EQ(reason_of(selection, "k1"), "group_in_flight");
  EXPECT_EQ(reason_of(selection, "k2"), "group_in_flight");
  EXPECT_EQ(reason_of(selection, "k3"), "not_live");
  EXPECT_EQ(detail_of(selection, "k3"), "in_flight");
}

TEST(Spec_4_4, JudgedTasksDoNotRunAgain) {
  const Json candidates = {{"hot_kernels", {row("k1", 30), row("k2", 20), row("k3", 10)}},
                           {"task_groups", {group("tg001", {"k1"}), group("tg002", {"k2"})}}};
  const Json state = {{"kernel_opt_task_attempts",
                       {{"key-tg001", entry("k1", "KEEP")},
                        {"key-tg002", entry("k2", "NEEDS_REVIEW")},
                        {legacy_task_key("k3", "k3.loom"), entry("k3", "REVERT")}}}};
  const auto selection = select_candidates(candidates, state, kDefault);
  EXPECT_TRUE(selection.selected.empty());
  EXPECT_EQ(reason_of(selection, "k1"), "group_task_complete");
  EXPECT_EQ(detail_of(selection, "k1"), "already_judged");
  EXPECT_EQ(detail_of(selection, "k2"), "waiting_for_review");
  EXPECT_EQ(reason_of(selection, "k3"), "not_live");
  EXPECT_EQ(detail_of(selection, "k3"), "already_judged");
}

// Section 14: "micro unmeasured: PARTIAL, selected again; second one -> rejected".
TEST(Spec_4_4, PartialResultsRunAgainUntilTheirCap) {
  const Json candidates = {{"hot_kernels", {row("k1", 30)}},
                           {"task_groups", {group("tg001", {"k1"})}}};
  Json partial = entry("k1", "PARTIAL");
  partial["partial_count"] = 1;
  Json state = {{"kernel_opt_task_attempts", {{"key-tg001", partial}}}};
  EXPECT_EQ(select_candidates(candidates, state, kDefault).ids(), Ids{"k1"});
  state["kernel_opt_task_attempts"]["key-tg001"]["partial_count"] = 2;
  const auto selection = select_candidates(candidates, state, kDefault);
  EXPECT_EQ(detail_of(selection, "k1"), "partial_attempts_exhausted");
  const Environment three = with({{"INFERENCE_OPTIMIZER_KERNEL_OPT_MAX_PARTIAL", "3"}});
  EXPECT_EQ(select_candidates(candidates, state, three).ids(), Ids{"k1"});
}

TEST(Spec_4_4, HotKernelsMayFailMoreOften) {
  const Json candidates = {{"hot_kernels", {row("k1", 30)}},
                           {"task_groups", {group("tg001", {"k1"})}}};
  const auto run = [&](int failures, double share, const Environment& environment) {
    const Json failed = {{"current_kernel_id", "k1"},     {"last_decision", ""},
                         {"last_status", "failed"},       {"failure_count", failures},
                         {"last_source_file", "k1.loom"}, {"last_gpu_pct", share}};
    const Json state = {{"kernel_opt_task_attempts", {{"key-tg001", failed}}}};
    return !select_candidates(candidates, state, environment).selected.empty();
  };
  EXPECT_TRUE(run(1, 4.9, kDefault));
  EXPECT_FALSE(run(2, 4.9, kDefault));
  EXPECT_TRUE(run(2, 5.0, kDefault));
  EXPECT_TRUE(run(3, 5.0, kDefault));
  EXPECT_FALSE(run(4, 5.0, kDefault));
  EXPECT_FALSE(run(2, 5.0, with({{"HL_INFRA_RETRY_HIGH_IMPACT", "off"}})));
  EXPECT_FALSE(run(2, 5.0, with({{"HL_HONEST_E2E", "false"}})));
  EXPECT_FALSE(run(3, 5.0, with({{"HL_INFRA_RETRY_MAX", "3"}})));
  EXPECT_FALSE(run(2, 5.0, with({{"HL_INFRA_RETRY_MIN_GPU_PCT", "6"}})));
  EXPECT_TRUE(run(2, 4.0, with({{"INFERENCE_OPTIMIZER_KERNEL_OPT_MAX_FAILURES", "3"}})));
}

TEST(Spec_4_4, AnotherSourceIsAnotherTask) {
  const Json candidates = {{"hot_kernels", {row("k1", 30, "new.loom")}},
                           {"task_groups", {group("tg001", {"k1"})}}};
  const Json state = {
      {"rejected_kernel_ids", {"k1"}},
      {"kernel_opt_task_attempts", {{"key-tg001", entry("k1", "REVERT", "old.loom")}}}};
  EXPECT_EQ(select_candidates(candidates, state, kDefault).ids(), Ids{"k1"});
}

TEST(Spec_4_4, RejectedIdBlocksOnlyItsOwnTask) {
  Json judged = entry("k1", "REVERT");
  judged["rejected_reason"] = "revert_decision";
  Json state = {{"rejected_kernel_ids", {"k1", "k2"}},
                {"kernel_opt_task_attempts", {{"key-tg001", judged}}}};
  const Json grouped = {{"hot_kernels", {row("k1", 30), row("k2", 20)}},
                        {"task_groups", {group("tg001", {"k1"}), group("tg002", {"k2"})}}};
  auto selection = select_candidates(grouped, state, kDefault);
  EXPECT_EQ(reason_of(selection, "k1"), "rejected");
  EXPECT_EQ(selection.ids(), Ids{"k2"}) << "its group was never tried: the id is a stale rank";
  selection = select_candidates({{"hot_kernels", {row("k2", 20)}}}, state, kDefault);
  EXPECT_EQ(reason_of(selection, "k2"), "rejected");
}

TEST(Spec_4_4, LegacyKeysFindTheTask) {
  Json renamed = group("tg001", {"k1"});
  renamed["legacy_task_group_keys"] = {"old-key"};
  const Json state = {{"kernel_opt_task_attempts", {{"old-key", entry("k7", "KEEP", "k1.loom")}}}};
  const auto selection = select_candidates(
      {{"hot_kernels", {row("k1", 30)}}, {"task_groups", {renamed}}}, state, kDefault);
  EXPECT_EQ(reason_of(selection, "k1"), "group_task_complete");
}

TEST(Spec_4_4, GroupsWithoutAKeyAreFoundByIdAndPrimary) {
  Json unkeyed = group("tg001", {"k1"});
  unkeyed.erase("task_group_key");
  Json judged = entry("k1", "KEEP");
  judged["task_group_id"] = "tg001";
  const auto run = [&](const std::string& kernel) {
    judged["current_kernel_id"] = kernel;
    return select_candidates({{"hot_kernels", {row("k1", 30)}}, {"task_groups", {unkeyed}}},
                             {{"kernel_opt_task_attempts", {{"some-key", judged}}}}, kDefault);
  };
  EXPECT_EQ(reason_of(run("k1"), "k1"), "group_task_complete");
  EXPECT_EQ(run("k2").ids(), Ids{"k1"});
}

TEST(Spec_4_4, KeptChangesTakeTheirTaskAndTheirFileOut) {
  const Json stack = {{{"action", "integrate"}, {"task_group_key", "key-tg001"}},
                      {{"action", "gemm_tuning"}, {"task_group_key", "key-tg002"}},
                      {{"action", "fusion"}, {"target_file", "./dir/../c.loom"}}};
  const auto selection = select_candidates(
      {{"hot_kernels", {row("k1", 30, "a.loom"), row("k2", 20, "b.loom"), row("k3", 10, "c.loom")}},
       {"task_groups", {group("tg001", {"k1"}), group("tg002", {"k2"})}}},
      {{"optimization_stack", stack}}, kDefault);
  EXPECT_EQ(reason_of(selection, "k1"), "already_integrated");
  EXPECT_EQ(selection.ids(), Ids{"k2"});
  EXPECT_EQ(reason_of(selection, "k3"), "already_integrated");
}

TEST(Spec_4_4, RowsOfOneSourceBecomeOneTask) {
  const Json candidates = {
      {"hot_kernels", {row("k1", 2, "a"), row("k2", 3, "a"), row("k3", 4, "b")}}};
  auto selection = select_candidates(candidates, Json::object(), kDefault);
  ASSERT_EQ(selection.ids(), Ids{"k2"});
  EXPECT_EQ(selection.selected[0]["gpu_pct"], 5);
  EXPECT_EQ(selection.selected[0]["opfanout_collapsed_ids"], Json{"k1"});
  EXPECT_EQ(reason_of(selection, "k1"), "opfanout_merged_into=k2");
  EXPECT_EQ(reason_of(selection, "k3"), "below_min_gpu_pct=5");
  for (const char* off : {"HL_KERNEL_OPFANOUT_DEDUP", "HL_HONEST_E2E"}) {
    selection = select_candidates(candidates, Json::object(), with({{off, "0"}}));
    EXPECT_EQ(reason_of(selection, "k2"), "below_min_gpu_pct=5") << off;
  }
}

TEST(Spec_4_4, OnlyListedRowsAreReusable) {
  const Json state = {{"last_trace_analyze", {{"reusable_native_kernel_ids", {"k2"}}}}};
  const Json candidates = {{"hot_kernels", {row("k1", 30), row("k2", 20)}}};
  const auto selection = select_candidates(candidates, state, kDefault);
  EXPECT_EQ(selection.ids(), Ids{"k2"});
  EXPECT_EQ(detail_of(selection, "k1"), "not_listed_as_reusable");
}

TEST(Spec_4_4, GroupWithoutALiveMemberIsExhausted) {
  Json unkeyed = group("tg001", {"k1", "k2"});
  unkeyed.erase("task_group_key");
  Json closed = row("k1", 20);
  closed["reusable_native_kernel"] = false;
  const auto selection =
      select_candidates({{"hot_kernels", {closed, row("k2", 20)}}, {"task_groups", {unkeyed}}},
                        {{"rejected_kernel_ids", {"k2"}}}, kDefault);
  EXPECT_EQ(reason_of(selection, "k2"), "group_exhausted");
}

TEST(Spec_4_3, EveryRowIsSelectedOrHasOneReason) {
  std::set<std::string_view> words;
  for (const SkipReasonRow& reason : skip_reasons()) {
    EXPECT_TRUE(words.insert(reason.word).second) << reason.word;
    EXPECT_FALSE(reason.meaning.empty()) << reason.word;
  }
  EXPECT_EQ(words.size(), 16U);
  Json nameless = row("", 20);
  const auto selection = select_candidates(
      {{"hot_kernels", {nameless, row("k1", 20), row("k1", 30)}}}, Json::object(), kDefault);
  ASSERT_EQ(selection.skipped.size(), 2U);
  EXPECT_EQ(selection.skipped[0].text, "missing_kernel_id");
  EXPECT_EQ(selection.skipped[1].text, "duplicate_kernel_id");
}

}  // namespace
}  // namespace hyperloom::optimize
