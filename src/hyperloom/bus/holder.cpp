#include "hyperloom/bus/holder.h"

#include <fmt/format.h>

#include <charconv>

#include "hyperloom/core/process.h"

namespace hyperloom::bus {

std::string new_holder(Database::Impl& database) {
  const ProcessId self = own_process();
  return fmt::format("{}:{}:{}", self.pid, self.start_time, ++database.next_holder);
}

bool is_dead(std::string_view holder) {
  ProcessId process;
  const char* end = holder.data() + holder.size();
  const auto pid = std::from_chars(holder.data(), end, process.pid);
  if (pid.ec != std::errc() || pid.ptr == end || *pid.ptr != ':') return true;
  const auto start = std::from_chars(pid.ptr + 1, end, process.start_time);
  if (start.ec != std::errc()) return true;
  return !is_running(process);
}

}  // namespace hyperloom::bus
