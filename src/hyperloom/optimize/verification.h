// What is known of a task's best result, and what is proposed to be done with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hyperloom/core/json.h"

namespace hyperloom::optimize {

// verification/<kernel_id>.json. What is not known is empty.
struct Verification {
  bool any_usable_attempt = false;
  bool dry_run = false;
  std::optional<bool> compile_passed;
  std::optional<bool> correctness_passed;
  std::string correctness_source = "missing";
  bool benchmark_available = false;
  double micro_speedup = 1;
  std::string micro_speedup_source = "default_unmeasured";
  std::optional<double> e2e_gain_pct;
  std::optional<bool> accuracy_passed;
  bool artifact_valid = false;
  std::string artifact_source = "missing";
  std::string artifact_error;
  std::string best_attempt_id;
  std::string best_backend;
  std::string best_artifact_path;
  Json best_artifact_bundle;         // null: a single file
  Json extra_envs = Json::object();  // configuration that no source can hold
  Json kernel_speedups;              // of a program: kernel -> speed-up

  bool measured() const {
    return micro_speedup_source != "default_unmeasured" &&
           micro_speedup_source != "dry_run_placeholder";
  }
  // With verification_status ("complete" iff correctness and end-to-end gain are known) and the
  // deploy_ fields of the bundle.
  Json to_json() const;
};

struct Proposal {
  std::string decision;  // KEEP, REVERT, PARTIAL, NEEDS_REVIEW
  std::vector<std::string> reasons;
  Json to_json() const;
};

// The least micro speed-up of a KEEP.
inline constexpr double kKeepSpeedup = 1.10;

// The table of section 6.4, first row that holds.
Proposal propose(const Verification& verification);

}  // namespace hyperloom::optimize
