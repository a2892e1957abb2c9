// Child processes that cannot outlive their use: each leads a process group of its own, is ended by
// that group, and gets SIGKILL from the system when this process dies.
//
// Ending one is SIGTERM to the group, five seconds, SIGKILL to the group; then it is reaped. Output
// is drained for at most two seconds after the child's end, as a process it left may hold the pipe.
// Children dump no core, start with default signals, and inherit no descriptor but the three.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "hyperloom/core/error.h"
#include "hyperloom/core/process.h"
#include "hyperloom/core/time.h"

namespace hyperloom {

struct ChildOptions {
  std::vector<std::string> command;  // program, found along PATH where it has no '/', and arguments
  std::filesystem::path folder;      // where it runs; empty: here
  std::map<std::string, std::string> environment;  // on top of this process's own
  std::string session_token;                       // goes into the environment; empty: none
  size_t output_limit = size_t{16} << 20;          // bytes kept of each stream: the last ones
};

// Exit codes that stand for an end that was not the child's own.
inline constexpr int kExitOvertime = -909;
inline constexpr int kExitCancelled = -917;

struct ChildResult {
  int exit_code = 0;  // 128 + the signal when it died of one; or one of the above
  int signal = 0;     // that it died of by itself; 0 for none
  std::string output;
  std::string errors;
  bool truncated = false;  // the beginning of a stream is missing
};

// Runs a command to its end, with nothing to read. Errors: "child_not_started", naming the program
// and the system's reason. Threads: any.
Result<ChildResult> run_child(const ChildOptions& options, const Deadline& deadline = {},
                              const std::stop_token& stop = {});

// A child that is spoken to in lines. One caller at a time; the destructor ends it. Move-only.
class Child {
 public:
  // Errors: "child_not_started".
  static Result<Child> start(const ChildOptions& options);
  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;
  ~Child();

  // Sends a line; `line` holds no line break. Errors, after which the child is of no more use and
  // has been ended: "child_exited", "child_timeout", "cancelled".
  Result<void> write_line(std::string_view line, const Deadline& deadline,
                          const std::stop_token& stop);
  // The next line of its standard output, without the break. Errors as above, and "child_garbage"
  // for a line longer than the output limit.
  Result<std::string> read_line(const Deadline& deadline, const std::stop_token& stop);

  // Ends it as described above; how it ended, with what it wrote to standard error (at most the
  // last output_limit bytes). Further calls say the same.
  const ChildResult& end();
  ProcessId process() const;

  struct Impl;

 private:
  explicit Child(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperloom
