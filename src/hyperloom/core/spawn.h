// Starting a process; for the sources of this room.
#pragma once

#include "hyperloom/core/child.h"

namespace hyperloom {

// A closed-on-destruction descriptor. Move-only.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

struct Spawned {
  ProcessId process;
  Descriptor alive;   // readable once it has ended; not open where the system has none
  Descriptor input;   // a socket; not open when the child has nothing to read
  Descriptor output;  // both do not block
  Descriptor errors;
};

// Errors: "child_not_started".
Result<Spawned> spawn(const ChildOptions& options, bool with_input);

}  // namespace hyperloom
