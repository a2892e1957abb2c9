#include "hyperloom/optimize/attempt_record.h"

#include <fmt/format.h>

#include "hyperloom/core/time.h"

namespace hyperloom::optimize {
namespace {

constexpr size_t kPromptSource = 64 << 10;

size_t count_authentication_failures(std::string_view output) {
  size_t count = 0;
  for (size_t begin = 0; begin < output.size();) {
    const size_t end = std::min(output.find('\n', begin), output.size());
    const std::string_view line = output.substr(begin, end - begin);
    if (line.find("authentication") != std::string_view::npos &&
        (line.find("fail") != std::string_view::npos ||
         line.find("error") != std::string_view::npos)) {
      ++count;
    }
    begin = end + 1;
  }
  return count;
}

std::string_view priorities(std::string_view bound_type) {
  if (bound_type == "memory") {
    return "Memory bound: fewer bytes, wider loads, reuse of what is loaded, fused passes.";
  }
  if (bound_type == "compute") {
    return "Compute bound: vector width, register tiles, unrolling, cheaper instructions.";
  }
  return "Not known what bounds it: vector width and tile sizes first, then memory traffic.";
}

}  // namespace

std::string attempt_status(int returncode, bool has_evidence, std::string_view output) {
  if (count_authentication_failures(output) >= 3) return "failed";
  if (returncode == 0) return "completed";
  if (has_evidence) return "partial";
  return returncode == 124 ? "timeout" : "failed";
}

Json AttemptRecord::to_row() const {
  const double baseline = outcome.baseline_ms;
  const bool improved = outcome.best && outcome.best->speedup > 1;
  const double speedup = outcome.best ? outcome.best->speedup : 1.0;
  const Json best_ms = outcome.best ? Json(outcome.best->after_ms) : Json();
  const bool timed_out = outcome.returncode == 124;
  return {{"attempt_id", attempt_id},
          {"backend", backend},
          {"status", status},
          {"error_type", error_type},
          {"error", message},
          {"returncode", outcome.returncode},
          {"skipped", outcome.returncode == 2},
          {"timed_out", timed_out},
          {"salvaged", status == "partial"},
          {"best_commit", outcome.best ? outcome.best->content_hash : ""},
          {"forge_result",
           {{"evaluated", outcome.evaluated},
            {"exhausted", outcome.exhausted},
            {"words", outcome.best ? outcome.best->words : ""}}},
          {"flydsl_applyback", false},
          {"kb_experience", Json::array()},
          {"pristine_baseline_ms", outcome.measured ? Json(baseline) : Json()},
          {"search_start_ms", outcome.measured ? Json(baseline) : Json()},
          {"best_ms", best_ms},
          {"mean_case_speedup", outcome.measured ? Json(speedup) : Json()},
          {"search_start_mean_case_speedup", outcome.measured ? Json(1.0) : Json()},
          {"total_improved", improved},
          {"incremental_improved", improved},
          {"improved", improved},
          {"improved_during_search", improved},
          {"elapsed_s", elapsed_s},
          {"prompt_path", prompt_path.string()},
          {"optimized_path", output_path.string()},
          {"stdout_tail", output_tail},
          {"created_at", utc_now()},
          {"backend_paths",
           {{"forge_workspace", workspace.string()},
            {"forge_patch", text_of(bundle, "patch_path")},
            {"forge_changed_files", value_of(bundle, "write_paths")},
            {"forge_best_manifest", text_of(bundle, "producer_manifest")},
            {"forge_canonical_patch", text_of(bundle, "patch_path")},
            {"forge_canonical_files_root", text_of(bundle, "snapshot_dir")},
            {"output_dir", workspace.string()},
            {"forge_checkpoint", (workspace / "checkpoint.json").string()}}},
          {"user_specified_backends", false},
          {"benchmark_available", true}};
}

std::string prompt_text(const Attempt& attempt, std::string_view source, const Json& device_peaks) {
  const Json& row = attempt.candidate;
  std::string text = fmt::format("# {} ({})\n\nAttempt {}.\n\n", attempt.kernel, attempt.kernel_id,
                                 attempt.attempt_id);
  text += "## Goal\n\n";
  text += std::string(priorities(text_of(row, "bound_type"))) + "\n\n";
  const auto section = [&](const char* title, const Json& value) {
    if (value.is_null()) return;
    text += fmt::format("## {}\n\n```json\n{}\n```\n\n", title, value.dump(2));
  };
  section("Captured shapes", value_of(row, "shapes"));
  section("Contract", value_of(row, "kernel_contract"));
  section("Benchmark cases", value_of(value_of(row, "task_group"), "shape_cases"));
  section("Hardware", device_peaks);
  text += "## Hypotheses\n\n";
  for (const Axis& axis : attempt.space.axes()) {
    text += fmt::format("- {}: {}\n", axis.name, fmt::join(axis.options, " | "));
  }
  text += fmt::format("\n## Source\n\n```\n{}\n```\n", source.substr(0, kPromptSource));
  return text;
}

}  // namespace hyperloom::optimize
