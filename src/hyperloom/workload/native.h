// A Loom command program with weights and inputs, built and issued in a worker process.
#pragma once

#include <memory>
#include <string>

#include "hyperloom/core/child.h"
#include "hyperloom/workload/description.h"
#include "hyperloom/workload/workload.h"

namespace hyperloom::workload {

class NativeWorkload final : public Workload {
 public:
  explicit NativeWorkload(Description description) : description_(std::move(description)) {}

  std::string framework() const override { return "loom"; }
  std::string name() const override { return description_.name; }
  Json describe() const override { return description_.json(); }
  fs::path tree() const override { return description_.tree; }
  std::vector<fs::path> files() const override;
  std::string device() const override { return "cpu:0"; }
  Result<std::unique_ptr<Bench>> start(double call_timeout_seconds,
                                       std::stop_token stop) const override;
  void mark_processes(const std::string& token) override { token_ = token; }
  Result<Json> measure_peaks(std::stop_token stop) const override;

 private:
  Description description_;
  std::string token_;
};

// The command that starts a worker: HYPERLOOM_WORKER from the environment, or this very program,
// with the argument "worker".
std::vector<std::string> worker_command();

}  // namespace hyperloom::workload
