#include "hyperloom/core/environment.h"

#include <gtest/gtest.h>

#include <set>

namespace hyperloom {
namespace {

using Variables = std::map<std::string, std::string>;

Environment with(const std::string& name, const std::string& value) {
  return Environment(Variables{{name, value}});
}

TEST(Spec_11, EveryVariableOfTheDocumentsHasARow) {
  std::set<std::string_view> names;
  for (const EnvRow& row : environment_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " has two rows";
    EXPECT_FALSE(row.meaning.empty()) << row.name;
  }
  for (const char* name : {"KERNEL_OPT_BACKEND_ORDER",
                           "KERNEL_OPT_MAX_PARALLEL",
                           "KERNEL_OPT_PARALLEL_BACKENDS",
                           "KERNEL_OPT_BACKEND_BUDGET_MIN",
                           "KERNEL_OPT_KERNEL_BUDGET_MIN",
                           "KERNEL_AGENT_NUM_GPUS",
                           "INFERENCE_OPTIMIZER_KERNEL_OPT_MAX_PARTIAL",
                           "INFERENCE_OPTIMIZER_KERNEL_OPT_MAX_FAILURES",
                           "HYPERLOOM_KERNEL_OPT_MIN_GPU_PCT",
                           "HYPERLOOM_KERNEL_CANDIDATES_TOP_K",
                           "HYPERLOOM_OTHER_BUCKET_MIN_GPU_PCT",
                           "HYPERLOOM_TRACE_ANALYSIS_ROUTE",
                           "HYPERLOOM_BYPASS_STEADY_STATE",
                           "HYPERLOOM_TRACELENS_IDLE_PCT_THRESHOLD",
                           "INFERENCE_OPTIMIZER_STEADY_STATE_MODE",
                           "TRACELENS_SPLIT_NUM_STEPS",
                           "TRACELENS_ROOT",
                           "TRACELENS_INTERNAL_ROOT",
                           "TRACELENS_ARCH_BENCHMARK_TIMEOUT_SEC",
                           "USER_DATA_PATH",
                           "HYPERLOOM_KERNEL_AGENT_ROOT",
                           "KERNELFORGE_PROJECT_ROOT",
                           "FORGE_GEMM_TUNE_PATH",
                           "ANTHROPIC_API_KEY",
                           "ANTHROPIC_BASE_URL",
                           "HYPERLOOM_SKIP_FUSION",
                           "FORGE_FUSION_TIMEOUT",
                           "FORGE_FUSION_MAX_TURNS",
                           "HYPERLOOM_FUSION_KEEP_PCT",
                           "HYPERLOOM_SKIP_COLLECTIVE",
                           "HYPERLOOM_COLLECTIVE_ONLY",
                           "HYPERLOOM_COLLECTIVE_KEEP_PCT",
                           "FORGE_COLLECTIVE_TIMEOUT",
                           "FORGE_COLLECTIVE_AGENT_TIMEOUT",
                           "HYPERLOOM_COLLECTIVE_ALLOW_INFERRED_SHAPES",
                           "INFERENCE_OPTIMIZER_SKIP_GEMM_TUNING",
                           "GEAK_CONFIG",
                           "GEAK_GEMM_BENCHMARK_SCRIPT",
                           "GEAK_E2E_TIMEOUT_S",
                           "GEAK_BUDGET_MARGIN_S",
                           "GEAK_MIN_RUN_S",
                           "GEAK_TERM_GRACE_S",
                           "GEAK_FLUSH_GRACE_S",
                           "HL_HONEST_E2E",
                           "INFERENCE_OPTIMIZER_REQUIRE_KERNEL_ACCURACY",
                           "HYPERLOOM_EVAL_MAX_TOKENS",
                           "MAGPIE_EVAL_LIMIT",
                           "RUN_EVAL",
                           "INFERENCE_OPTIMIZER_COLD_START_TIMEOUT_SEC",
                           "INFERENCE_OPTIMIZER_AITER_JIT_DIR",
                           "INFERENCE_OPTIMIZER_STRICT_PATHS",
                           "INFERENCE_OPTIMIZER_STRICT_PHASE",
                           "INFERENCE_OPTIMIZER_FRAMEWORK_SOURCE_ROOTS",
                           "INFERENCE_OPTIMIZER_SQLITE_JOURNAL_MODE",
                           "INFERENCE_OPTIMIZER_NODES",
                           "HYPERLOOM_MN_KERNEL_BACKUP_DIR",
                           "FRAMEWORK",
                           "MODEL_PATH",
                           "TP",
                           "EP",
                           "CONC",
                           "ISL",
                           "OSL",
                           "MAX_MODEL_LEN",
                           "TARGET_GPU_TYPE"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  // Read by nothing, and thus promised by nothing.
  EXPECT_FALSE(names.contains("FORGE_PATH"));
  EXPECT_FALSE(names.contains("GEMM_TUNING_BACKEND"));
}

TEST(Spec_11, DefaultsAreThoseOfTheTable) {
  const Environment none(Variables{});
  EXPECT_EQ(none.text("KERNEL_OPT_BACKEND_ORDER"), "geak");
  EXPECT_EQ(none.integer("KERNEL_OPT_MAX_PARALLEL"), 8);
  EXPECT_EQ(none.number("KERNEL_OPT_BACKEND_BUDGET_MIN"), 90);
  EXPECT_EQ(none.number("HYPERLOOM_KERNEL_OPT_MIN_GPU_PCT"), 5);
  EXPECT_EQ(none.integer("INFERENCE_OPTIMIZER_KERNEL_OPT_MAX_PARTIAL"), 2);
  EXPECT_EQ(none.number("GEAK_E2E_TIMEOUT_S"), 43200);
  EXPECT_EQ(none.number("FORGE_COLLECTIVE_TIMEOUT"), 14400);
  EXPECT_TRUE(none.flag("HL_HONEST_E2E"));
  EXPECT_TRUE(none.flag("INFERENCE_OPTIMIZER_REQUIRE_KERNEL_ACCURACY"));
  EXPECT_FALSE(none.flag("HYPERLOOM_SKIP_FUSION"));
  EXPECT_FALSE(none.has("KERNEL_OPT_BACKEND_ORDER"));
}

TEST(Spec_4_2, TruthyStringsAreFourInAnyCase) {
  for (const char* word : {"1", "true", "yes", "on", "TRUE", "On", "yEs"}) {
    EXPECT_TRUE(with("HYPERLOOM_SKIP_FUSION", word).flag("HYPERLOOM_SKIP_FUSION")) << word;
  }
  for (const char* word : {"0", "false", "no", "off", "", "2", "y", " on"}) {
    EXPECT_FALSE(with("HYPERLOOM_SKIP_FUSION", word).flag("HYPERLOOM_SKIP_FUSION")) << word;
  }
}

TEST(Environments, BackendOrderIsTakenByteForByte) {
  for (const char* value : {"", "forge ", " forge", "Forge", "forge,geak"}) {
    EXPECT_EQ(with("KERNEL_OPT_BACKEND_ORDER", value).text("KERNEL_OPT_BACKEND_ORDER"), value);
  }
}

TEST(Environments, ValueOfTheWrongKindReadsAsTheDefaultAndIsReported) {
  for (const char* value : {"eight", "8.5", "8 ", "99999999999999999999"}) {
    const Environment environment = with("KERNEL_OPT_MAX_PARALLEL", value);
    EXPECT_EQ(environment.integer("KERNEL_OPT_MAX_PARALLEL"), 8) << value;
    EXPECT_FALSE(environment.has("KERNEL_OPT_MAX_PARALLEL"));
    const auto errors = environment.check();
    ASSERT_EQ(errors.size(), 1U);
    EXPECT_EQ(errors[0].error_class, "invalid_environment");
    EXPECT_NE(errors[0].message.find("KERNEL_OPT_MAX_PARALLEL"), std::string::npos);
    EXPECT_NE(errors[0].hint.find("an integer"), std::string::npos);
  }
  for (const char* value : {"nan", "inf", "1e999", "x"}) {
    EXPECT_EQ(with("GEAK_MIN_RUN_S", value).number("GEAK_MIN_RUN_S"), 600) << value;
    EXPECT_EQ(with("GEAK_MIN_RUN_S", value).check().size(), 1U) << value;
  }
  EXPECT_EQ(with("HYPERLOOM_SKIP_FUSION", "maybe").check().size(), 1U);
  EXPECT_TRUE(with("UNKNOWN", "x").check().empty());
}

TEST(Environments, EmptyNumberIsAsGoodAsUnset) {
  const Environment environment = with("KERNEL_OPT_MAX_PARALLEL", "");
  EXPECT_EQ(environment.integer("KERNEL_OPT_MAX_PARALLEL"), 8);
  EXPECT_FALSE(environment.has("KERNEL_OPT_MAX_PARALLEL"));
  EXPECT_TRUE(environment.check().empty());
}

TEST(Environments, HelpNamesEachVariableWithItsDefault) {
  const std::string help = environment_help();
  for (const EnvRow& row : environment_table()) {
    const std::string line = std::string(row.name) + " (default: " +
                             std::string(row.fallback.empty() ? "unset" : row.fallback) + ")\n";
    EXPECT_NE(help.find(line), std::string::npos) << row.name;
  }
}

}  // namespace
}  // namespace hyperloom
