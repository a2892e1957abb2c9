// What looks for something better than a kernel as it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hyperloom/core/environment.h"
#include "hyperloom/optimize/clock.h"
#include "hyperloom/optimize/judge.h"
#include "hyperloom/optimize/space.h"
#include "hyperloom/task/context.h"

namespace hyperloom::optimize {

// One attempt, lent to a backend. It writes below `workspace` and nowhere else; correctness and
// timing come from `judge` alone.
struct Attempt {
  const task::Context& context;
  std::string attempt_id;
  std::string kernel_id;  // "k001"; of a whole-program search: "geak"
  std::string kernel;     // symbol; empty: the whole program
  const Json& candidate;  // the row of the analysis, with its `task_group`
  const Space& space;
  Judge& judge;
  LadderClock& clock;
  TreeCopy& tree;                   // its own copy of the sources
  std::filesystem::path workspace;  // of this attempt; exists
  std::filesystem::path config;     // its configuration, read-only
  uint64_t seed = 0;
  std::function<void(const std::string& line)> say;  // its standard output
};

// The best that was found and passed every check so far.
struct Found {
  Change change;
  Point point;
  std::string words;
  double speedup = 1;
  double before_ms = 0;
  double after_ms = 0;
  std::string content_hash;
};

struct Outcome {
  int returncode = 0;  // 0 completed, 2 nothing to try, 124 timeout, else failed
  std::string error_type;
  std::string message;
  std::optional<Found> best;  // nothing that is better: empty
  bool measured = false;      // whether anything was compared with the kernel as it is
  double baseline_ms = 0;
  size_t evaluated = 0;
  bool exhausted = false;
};

// Threads: optimize() may run in several at once, each with an attempt of its own.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  // What it does is steered by the document that its attempts find in `config`.
  virtual Json configuration(const task::Context& context) const = 0;
  virtual Outcome optimize(Attempt& attempt) = 0;
};

// Per kernel: every point of a small space in a seeded order, samples of a large one.
std::unique_ptr<Backend> make_forge();
// Greedy coordinate descent with seeded restarts, over one kernel or the whole program.
std::unique_ptr<Backend> make_geak();

// "forge" for KERNEL_OPT_BACKEND_ORDER that is byte for byte `forge`, "geak" for every other value
// and for none.
std::string selected_backend(const Environment& environment);
// Names in the `backends` (text or list) of a payload that are not the selected one: they change
// nothing and are worth a warning `backend_hint_ignored`.
std::vector<std::string> ignored_hints(const Json& payload, const Environment& environment);

// The backends that are installed, by name.
using Backends = std::vector<std::shared_ptr<Backend>>;
const Backends& installed_backends();
Backend* find_backend(const Backends& backends, const std::string& name);

}  // namespace hyperloom::optimize
