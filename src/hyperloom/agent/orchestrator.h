// Who decides what to ask for next, behind one interface: a scripted policy, a transcript that is
// replayed, or anything else that answers a turn with intents.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hyperloom/bus/bus.h"
#include "hyperloom/core/json.h"

namespace hyperloom::agent {

// What one turn is told. Copies: a turn may keep them.
struct Turn {
  uint64_t number = 0;  // completed turns of this role before this one, over all resumes
  std::string phase;
  bool work_pending = false;        // whether something in KERNEL still waits to be done
  Json denials = Json::array();     // refused since the last completed turn, shown first
  std::vector<bus::Message> inbox;  // rows since then, ascending
  Json state;                       // the state document
  Json candidates;                  // the analysis artifact, or null
};

// One caller at a time.
class Orchestrator {
 public:
  virtual ~Orchestrator() = default;
  virtual std::string_view role() const = 0;  // "orchestration", "critic", "robustness"
  // The envelope {"intents": [...]}, unjudged; no intents are a legitimate answer. An error is one
  // of the back end: the turn is not completed, and its inbox is shown again.
  virtual Result<Json> turn(const Turn& turn) = 0;
};

// The deterministic policy that runs by default: a function of the turn alone, so that a resumed
// session goes on as the killed one would have. It asks for the analysis of a fresh profile and for
// the kernel that the user named, and hints at the end of KERNEL once nothing there is pending.
// `kernel`: its symbol without '@', or empty.
std::unique_ptr<Orchestrator> scripted(std::string kernel);

// Answers turn n of a role with line n of the file: one JSON object a line, either an envelope or
// {"role": R, "envelope": {...}}, whose role is "orchestration" when absent. After the last line a
// turn has no intents. Lines that are not objects are given on as they are, for the router to
// refuse. Errors: "unreadable_file", "invalid_transcript" naming the line.
Result<std::vector<std::unique_ptr<Orchestrator>>> replayed(const std::filesystem::path& file);

}  // namespace hyperloom::agent
