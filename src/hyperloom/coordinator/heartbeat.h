// Says on the bus that a long step still runs.
#pragma once

#include <string>
#include <thread>

#include "hyperloom/coordinator/services.h"

namespace hyperloom::coordinator {

// While it lives, every `heartbeat_seconds` an observation {kind: kernel_step_running, step,
// elapsed_sec} goes to everyone, and the session's lock says that its owner is alive.
class Heartbeat {
 public:
  Heartbeat(Services& services, std::string step);

 private:
  std::jthread thread_;
};

}  // namespace hyperloom::coordinator
