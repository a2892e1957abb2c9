// SIGINT and SIGTERM as a stop token; a second SIGINT ends the process as usual.
#pragma once

#include <memory>
#include <stop_token>

namespace hyperloom::app {

// One at a time in a process; the signals behave as before once it is gone.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();
  std::stop_token token() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperloom::app
