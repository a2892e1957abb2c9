#include "hyperloom/lane/gates.h"

#include <algorithm>
#include <array>

#include "loom/base/hash.h"

namespace hyperloom::lane {
namespace {

constexpr double kCommunicationFloor = 1.0;  // percent, of a roofline snapshot's comm_pct
constexpr double kCandidateFloor = 3.0;      // percent, of the hottest eligible candidate

bool one_of(const std::string& word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

bool fusable_framework(const Json& state) {
  const std::string framework = text_of(state, "framework", "sglang");
  // Only a workload that is issued here is a Loom program whose regions can be fused.
  if (framework == "loom") return text_of(state, "workload_kind", "native") == "native";
  return one_of(framework, {"sglang", "vllm", "vllm-aiter"});
}

bool settled(const Json& campaign) {
  return one_of(text_of(campaign, "status"), {"ok", "complete", "kept", "skipped"});
}

bool settled_under(const Json& campaign, const std::string& key) {
  return settled(campaign) && text_of(campaign, "analysis_key") == key;
}

std::optional<double> latest_communication_share(const Json& state) {
  const Json& snapshots = value_of(state, "roofline_snapshots");
  if (!snapshots.is_array() || snapshots.empty()) return std::nullopt;
  const Json& share = value_of(snapshots.back(), "comm_pct");
  if (!share.is_number()) return std::nullopt;
  return share.get<double>();
}

std::optional<double> hottest_candidate_share(const Json& candidates) {
  std::optional<double> hottest;
  const Json& rows = value_of(candidates, "hot_kernels");
  if (!rows.is_array()) return hottest;
  for (const Json& row : rows) {
    if (eligible_collective(row)) {
      hottest = std::max(hottest.value_or(0), number_of(row, "gpu_pct"));
    }
  }
  return hottest;
}

}  // namespace

bool forge_selected(const Environment& environment) {
  return environment.raw("KERNEL_OPT_BACKEND_ORDER") == "forge";
}

bool collective_only(const Environment& environment) {
  return environment.flag("HYPERLOOM_COLLECTIVE_ONLY");
}

Gate gemm_gate(const Json& state, const Environment& environment) {
  if (environment.flag("INFERENCE_OPTIMIZER_SKIP_GEMM_TUNING")) return Gate::closed("skip_switch");
  if (!fusable_framework(state)) return Gate::closed("framework");
  const Json& last = value_of(state, "last_gemm_tuning");
  if (flag_of(last, "bf16_fallback_pending")) return Gate::opened();
  if (one_of(text_of(last, "status"), {"ok", "complete", "kept", "skipped"})) {
    return Gate::closed("settled");
  }
  return Gate::opened();
}

Gate fusion_gate(const Json& state, const Environment& environment) {
  if (environment.flag("HYPERLOOM_SKIP_FUSION")) return Gate::closed("skip_switch");
  if (!fusable_framework(state)) return Gate::closed("framework");
  const Json& trace = value_of(state, "last_profile_trace");
  if (trace.is_null() || trace.empty() || trace == "") return Gate::closed("no_profile_trace");
  if (one_of(text_of(value_of(state, "last_fusion"), "status"), {"ok", "complete", "kept"})) {
    return Gate::closed("settled");
  }
  return Gate::opened();
}

bool is_collective(const Json& row) {
  const Json& contract = value_of(row, "kernel_contract");
  const std::string op = text_of(row, "collective_op", text_of(contract, "collective_op"));
  return text_of(contract, "kind") == "collective" ||
         one_of(op, {"all_reduce", "reduce_scatter", "all_gather"}) ||
         text_of(row, "candidate_source") == "nccl_summary" || flag_of(row, "is_multigpu");
}

bool eligible_collective(const Json& row) {
  const Json& contract = value_of(row, "kernel_contract");
  return text_of(contract, "kind") == "collective" && flag_of(row, "reusable_native_kernel") &&
         !text_of(row, "source_file").empty() && !text_of(row, "source_function").empty() &&
         one_of(text_of(contract, "collective_op"), {"all_reduce", "reduce_scatter", "all_gather"});
}

std::string analysis_key(const std::string& candidates_path, const std::string& content) {
  return candidates_path + "#" + loom::sha256_hex(content);
}

Result<Gate> collective_gate(const Json& state, const Json& candidates,
                             const Environment& environment) {
  if (environment.flag("HYPERLOOM_SKIP_COLLECTIVE")) return Gate::closed("skip_switch");
  const Json& ranks = value_of(state, "tp");
  if (!ranks.is_null() && !ranks.is_number_integer()) {
    return fail("invalid_tp", "state field 'tp' is " + compact(ranks) + ", not an integer",
                "start the session with an integer number of ranks");
  }
  if (ranks.is_null() || ranks.get<int64_t>() <= 1) return Gate::closed("single_rank");
  const Json& analysis = value_of(state, "last_trace_analyze");
  if (!analysis.is_object() || analysis.empty()) return Gate::closed("no_trace_analysis");

  const std::string key = text_of(analysis, "analysis_key");
  bool done = settled_under(value_of(state, "last_collective"), key);
  const Json& attempts = value_of(state, "collective_attempts");
  if (attempts.is_array()) {
    for (const Json& row : attempts) done = done || settled_under(row, key);
  }
  if (done) return Gate::closed("settled");

  const auto communication = latest_communication_share(state);
  const auto share = communication ? communication : hottest_candidate_share(candidates);
  if (!share) return Gate::closed("comm_share_unknown");
  const double floor = communication ? kCommunicationFloor : kCandidateFloor;
  return *share >= floor ? Gate::opened() : Gate::closed("comm_share_below_floor");
}

}  // namespace hyperloom::lane
