// Which process is meant: a pid alone may be another one's by the time it is used.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hyperloom {

// A process of this host. `start_time` is in clock ticks since boot, so that pid and start time
// together are never used twice before a reboot.
struct ProcessId {
  pid_t pid = 0;
  uint64_t start_time = 0;
  bool operator==(const ProcessId&) const = default;
};

// This process.
ProcessId own_process();
// Nothing when there is no such process, or it is dead and only not yet reaped.
std::optional<ProcessId> find_process(pid_t pid);
// Whether exactly this process still runs.
bool is_running(const ProcessId& process);

// Every child carries its session's token in this environment variable.
inline constexpr const char* kSessionTokenVariable = "HYPERLOOM_SESSION_TOKEN";
// Running processes of this user that carry the token, ascending by pid; the caller is not among
// them.
std::vector<ProcessId> processes_with_token(const std::string& token);
// Ends what a killed run left: SIGKILL to each of them, after looking at pid and start time again.
// Waits, a second at most, until they are gone. The number of processes that were sent one.
size_t end_strays(const std::string& token);

}  // namespace hyperloom
