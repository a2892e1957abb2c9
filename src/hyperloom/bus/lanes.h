// Who may use what: lanes of capacity one, and leases on devices.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "hyperloom/bus/database.h"
#include "hyperloom/core/error.h"
#include "hyperloom/core/time.h"

namespace hyperloom::bus {

// Given back when it ends. Move-only; may end on another thread.
class Lease {
 public:
  Lease();
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  ~Lease();
  bool held() const { return impl_ != nullptr; }

  struct Impl;
  explicit Lease(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

// Lanes: server_lifecycle, workspace_mutation, benchmark_lane, profile_lane, research_lane,
// gpu_research_lane, build_lane. Taking one takes its conflict set along: benchmark, profile,
// server_lifecycle and gpu_research exclude each other. Rows of dead holders are reclaimed.
// Threads: any.
class Lanes {
 public:
  explicit Lanes(std::shared_ptr<Database> database);

  // Errors: "lane_busy", "lane_full", "unknown_lane".
  Result<Lease> try_acquire(const std::string& lane, const std::string& action);
  // Waits its turn. Errors: "cancelled" when stopped, "lane_timeout" at the deadline.
  Result<Lease> acquire(const std::string& lane, const std::string& action,
                        const Deadline& deadline, std::stop_token stop);
  // Any one of `devices` free devices ("cpu:0", "gpu:1", ...), which `device` is set to.
  Result<Lease> acquire_device(const std::vector<std::string>& devices, std::string& device,
                               const Deadline& deadline, std::stop_token stop);

 private:
  std::shared_ptr<Database> database_;
};

}  // namespace hyperloom::bus
