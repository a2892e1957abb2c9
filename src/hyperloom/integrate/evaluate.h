// The judgement of a candidate: is it what runs, is it faster, is that possible, are its results
// right.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hyperloom/integrate/decision.h"
#include "hyperloom/integrate/pairs.h"

namespace hyperloom::integrate {

struct Question {
  workload::Variant a;
  workload::Variant b;
  std::string tag;  // of the measurements
  double keep_threshold_pct = 1;
  double noise_floor_pct = 0;
  std::vector<ChangedKernel> kernels;  // empty: no bound is known
  PairOptions pairs;
  AccuracyRule accuracy;
  bool strict_import = true;  // the loaded code has to differ
};

struct Answer {
  Judgement judgement;
  std::string error_class;  // empty unless something went wrong
  std::string error;
  bool fault = false;  // the candidate failed, rather than being judged
  double tput_a = 0;
  double tput_b = 0;
  Json fields = Json::object();  // the measured fields of an integrate result
};

// The caller holds the devices. A failure of B is B's only where A runs; else nothing is known.
Answer evaluate(const task::Context& context, const Question& question);

// Throughput of one variant from a fresh start, the geometric mean of a few samples. Errors: those
// of the bench.
Result<double> measure_stack(const task::Context& context, const workload::Variant& variant,
                             const std::string& tag, const PairOptions& options);

// Class and words of a stop: of the session's own, or of its time.
Error stop_error(const task::Context& context);

}  // namespace hyperloom::integrate
