// The only source of correctness and timing: builds a candidate beside the program as it is, in a
// process that no backend writes to, checks its outputs and times both in turn.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hyperloom/optimize/clock.h"
#include "hyperloom/task/context.h"
#include "hyperloom/workload/workload.h"

namespace hyperloom::optimize {

// How much is asked of a candidate.
struct Rigour {
  std::vector<uint64_t> seeds;  // of random inputs; each also with adversarial values
  unsigned pairs = 3;           // timed in turn: before, after, before, ...
  double to_beat = 0;           // speed-up of the best so far; what is far from it is timed once
  std::string key;              // what the measurements are recorded under besides their hashes
};

struct Evaluation {
  // ok, same_code, build_failed, wrong, workload_crashed, workload_hung, workload_garbage
  std::string status;
  std::string message;  // for people, where it is not ok
  std::string content_hash;
  bool correct = false;
  std::string reference;  // that it was compared with
  double before = 0;      // median; nanoseconds of the kernel, or of one issue of the program
  double after = 0;
  double speedup = 1;  // median of the pairs' quotients
  bool usable() const { return status == "ok"; }
};

// Of one attempt, in one thread.
class Judge {
 public:
  // `kernel` is the symbol that is timed; empty: the whole program's throughput. `quiet` is shared
  // by all that measure on the device's machine; null for devices of their own. The program as it
  // is has the configuration of the state's `current_best`, and candidates have theirs over it.
  Judge(const task::Context& context, LadderClock& clock, QuietMachine* quiet, std::string kernel);
  ~Judge();

  // Errors are no statement about the candidate: "cancelled", "ladder_timeout", "missing_compiler",
  // "baseline_failed" when the program as it is does not build or run, lane errors.
  Result<Evaluation> evaluate(const workload::Variant& candidate, const Rigour& rigour);
  // Nanoseconds of the kernel (or of an issue) of the program as it is, timed once.
  Result<double> baseline(const std::string& key);
  // {kernel: speed-up} of each kernel of the program by itself, untested for correctness.
  Result<Json> kernel_speedups(const workload::Variant& candidate, const Rigour& rigour);
  // Content hash of the program as it is.
  Result<std::string> baseline_hash();

 private:
  struct Turn;
  Result<void> ensure();
  Result<workload::Loaded> load(const std::string& name, const workload::Variant& variant);
  Result<workload::Loaded> load_candidate(const workload::Variant& candidate);
  Result<void> check(Evaluation& evaluation, const Rigour& rigour);
  Result<void> time(Evaluation& evaluation, const Rigour& rigour);
  Result<double> sample(const std::string& name);
  // Waits for the device, and for timed work also until nothing else runs; once for each `turn`.
  Result<void> take(std::unique_ptr<Turn>& turn, bool timed);
  // What a failed call says of the candidate; nothing where it says something about the machinery.
  bool blame(Evaluation& evaluation, const Error& error);
  Error given_up() const;

  const task::Context& context_;
  LadderClock& clock_;
  QuietMachine* quiet_;
  std::string kernel_;
  std::unique_ptr<workload::Bench> bench_;
  std::string baseline_hash_;
  std::vector<std::string> kernels_;
  Json envs_ = Json::object();
  unsigned issues_ = 0;
};

}  // namespace hyperloom::optimize
