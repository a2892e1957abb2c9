// The decision vectors that need a part which is not built in. Each is skipped with its mark until
// the part is there, and fails from then on until it is proven.
#include <gtest/gtest.h>

#include <algorithm>

#include "hyperloom/core/environment.h"
#include "hyperloom/lane/engines.h"

namespace hyperloom::lane {
namespace {

struct Vector {
  const char* name;  // of the test
  const char* mark;
  const char* part;  // the kind of a lane's engine, else the variable that would steer the part
};

// Whether the program says itself that it does not have the part.
bool is_missing(std::string_view part) {
  if (std::ranges::count(missing_engines(), part, &MissingEngine::kind) > 0) return true;
  const auto table = environment_table();
  const auto row = std::ranges::find(table, part, &EnvRow::name);
  return row != table.end() && row->meaning.ends_with("not built");
}

constexpr Vector kVectors[] = {
    {"BothLanesRunWithoutTheAutomaticBatch", "lane", "run_fusion"},
    {"AKillInTheCollectiveLaneResumesAtTheMeasurement", "lane", "run_collective"},
    {"OfSeveralCollectivesTheHottestResolvedOneIsTaken", "lane", "run_collective"},
    {"AFailedCampaignRunsAgain", "lane", "run_collective"},
    {"ASettledCampaignBlocksItsAnalysis", "lane", "run_collective"},
    {"AResumedAndSalvagedCampaignIsOneAttempt", "lane", "run_collective"},
    {"AThresholdOfTheLaneThatIsNoNumberKeepsNothing", "lane", "run_collective"},
    {"AFusionIsKeptOnlyAsMeasured", "lane", "run_fusion"},
    {"ARunnerWithoutAResultLeavesTheTreeUnchanged", "external", "GEAK_CONFIG"},
    {"AKeptPatchThatANodeLacksBlocksTheMeasurement", "cluster", "HYPERLOOM_MN_KERNEL_BACKUP_DIR"},
};

class Spec_14_Marked : public testing::TestWithParam<Vector> {};

TEST_P(Spec_14_Marked, VectorWaitsForItsPart) {
  ASSERT_TRUE(is_missing(GetParam().part))
      << GetParam().part << " is there: prove the vector, and take it from this list";
  GTEST_SKIP() << "[" << GetParam().mark << "] " << GetParam().part << " is not built in";
}

INSTANTIATE_TEST_SUITE_P(Section14, Spec_14_Marked, testing::ValuesIn(kVectors),
                         [](const auto& vector) { return std::string(vector.param.name); });

}  // namespace
}  // namespace hyperloom::lane
