// Where the time of one issue goes, dispatch by dispatch.
//
//   loom::api::Profile profile(program);
//   invocation.issue(profile, messages);
//   for (const auto& dispatch : profile.dispatches()) {
//     const auto& command = profile.commands()[dispatch.command];
//     std::cout << command.kernel << ' ' << dispatch.end - dispatch.begin << " ns\n";
//   }
//   write(profile.chrome_trace());  // opens in Perfetto and chrome://tracing
//
// An issue without a profile does not pay for this. Times are of the steady clock around the call
// of each kernel, in nanoseconds since the issue began.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "loom/api/loom.h"

namespace loom::api {

// A range of storage that a command hands to its kernel.
struct ProfiledOperand {
  enum class Storage : uint8_t { Parameter, Binding, Transient };
  Storage storage = Storage::Binding;
  std::string name;     // the key of a parameter, else the name in the source without '%'
  uint64_t offset = 0;  // bytes from the begin of that storage
  // Up to its end. Of a binding that is passed whole, what was bound at the issue; 0 before one.
  uint64_t bytes = 0;
};

// A launch of the program, as far as it is the same in every issue.
struct ProfiledCommand {
  uint32_t node = 0;   // row of the schedule tree in pre-order; the root is 0
  uint32_t wave = 0;   // length of the longest chain of commands that precede it
  std::string kernel;  // symbol, without '@'
  std::string export_name;
  int32_t request = -1;  // ordinal of the kernel request that it runs; -1 where none was published
  std::array<uint32_t, 3> workgroup_size = {1, 1, 1};
  bool indirect = false;                  // its grid is read from storage at issue
  std::vector<ProfiledOperand> operands;  // in argument order, without scalars
  std::string file;                       // where the launch is written; empty where unknown
  uint32_t line = 0;
  uint32_t column = 0;  // both from 1
};

// What one thread did of one dispatch; a wide dispatch that several threads share has several.
struct ProfiledDispatch {
  uint32_t command = 0;  // launch ordinal in textual order: the place in Profile::commands()
  uint32_t thread = 0;   // 0 is the issuing one, the others count up as they first appear
  uint64_t begin = 0;    // nanoseconds since the issue began
  uint64_t end = 0;
  std::array<uint32_t, 3> grid = {1, 1, 1};  // workgroups of the whole dispatch, along x, y, z
  uint64_t first_workgroup = 0;              // the part that this thread ran, x fastest
  uint64_t last_workgroup = 0;               // one past it
};

// Profile of issues of one program. It keeps the program alive and belongs to one thread at a time.
// Running out of memory throws std::bad_alloc, from an issue only after that issue is done.
class Profile {
 public:
  explicit Profile(const Program& program);
  Profile(Profile&&) noexcept;
  Profile& operator=(Profile&&) noexcept;
  ~Profile();

  // Every launch of the program, in textual order. A span lives as long as the profile.
  std::span<const ProfiledCommand> commands() const;
  // Of the last issue, in order of their begin; empty before one and after one that failed.
  // Launches without workgroups have none. A span lives until the next issue.
  std::span<const ProfiledDispatch> dispatches() const;
  // Nanoseconds from the begin of the last issue to its end.
  uint64_t duration() const;
  // The last issue as a document in Chrome's trace format: one complete event for the issue and for
  // each dispatch, microseconds since the issue began, `tid` the thread. The arguments say kernel,
  // command, node, wave, grid, workgroups, workgroup size, operands with their bytes, and the
  // source of the launch.
  std::string chrome_trace() const;

  struct State;
  explicit Profile(std::unique_ptr<State> state);
  State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace loom::api
