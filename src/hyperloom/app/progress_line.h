// What people see of a running session: one line on a terminal, one line a step elsewhere.
#pragma once

#include <mutex>
#include <string>

#include "hyperloom/task/context.h"

namespace hyperloom::app {

// Threads: any.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const task::Progress& progress);
  // Takes the line away; what was printed off a terminal stays.
  void clear();

  // "KERNEL_AGENT | integrate | k001 | forge-12 | best 1.42x | 95 s left"
  static std::string text(const task::Progress& progress);

 private:
  std::mutex mutex_;
  bool enabled_;
  bool terminal_;
  bool shown_ = false;
  std::string last_;
};

}  // namespace hyperloom::app
