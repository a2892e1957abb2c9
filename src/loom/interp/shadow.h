// Who touched each byte of a root, and which two touches conflict.
//
// Two accesses of one byte conflict when at least one writes, not both are atomic, and neither
// happens before the other. The interpreter runs one of many possible orders; what happens before
// what is derived from the program alone:
//
//   - an invocation's accesses follow each other
//   - a barrier orders what its scope did before it and what its scope does after it: `epoch`
//     counts the workgroup's barriers over the root's memory, `subgroup_epoch` the subgroup's
//   - an atomic that releases makes known what its invocation knew to an atomic of the same element
//     that acquires (Knowledge)
//   - commands are ordered unless their paths part at a command.concurrent (CommandOrder)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "loom/ir/module.h"

namespace loom::interp {

// One access. Numbers of workgroups, subgroups and invocations count within the command.
struct Touch {
  uint32_t command = 0;
  uint32_t invocation = 0;
  uint32_t group = 0;
  uint32_t subgroup = 0;
  uint32_t epoch = 0;
  uint32_t subgroup_epoch = 0;
  uint32_t releases = 0;  // that the invocation had done
  OpId op;
  bool atomic = false;

  // A transfer that nothing waited for: no barrier orders it.
  static constexpr uint32_t kInFlight = ~uint32_t{0};
  bool in_flight() const { return epoch == kInFlight; }
};

// What an acquiring invocation learned: everything before the counts given.
struct Knowledge {
  struct Epochs {
    uint32_t of[2] = {0, 0};  // by memory: [0] global, [1] workgroup
  };
  std::unordered_map<uint32_t, Epochs> groups;
  std::unordered_map<uint32_t, Epochs> subgroups;
  std::unordered_map<uint32_t, uint32_t> releases;  // by invocation

  void join(const Knowledge& other);
};

// The places of commands in the tree of concurrent regions.
class CommandOrder {
 public:
  struct Step {
    uint32_t region = 0;
    uint32_t child = 0;
  };
  uint32_t add(std::vector<Step> path);
  // Both were issued, `a` first.
  bool ordered(uint32_t a, uint32_t b) const;

 private:
  std::vector<std::vector<Step>> paths_;
};

// Decides for one access what came before it.
struct TouchOrder {
  const CommandOrder* commands = nullptr;
  const Knowledge* known = nullptr;  // null: nothing was acquired in this command
  bool workgroup_memory = false;
  // Atomics that acquire or release are in use, so that any two workgroups may be ordered.
  bool synchronizing = false;

  bool before(const Touch& earlier, const Touch& now) const;
};

class Shadow {
 public:
  struct Conflict {
    Touch earlier;
    bool earlier_wrote = false;
  };
  // Records an access of one byte, or says what it conflicts with.
  std::optional<Conflict> read(uint64_t byte, const Touch& touch, const TouchOrder& order);
  std::optional<Conflict> write(uint64_t byte, const Touch& touch, const TouchOrder& order);
  // Every touch of the byte by invocation `from` becomes `to`.
  void rename(uint64_t byte, uint32_t from, const Touch& to);
  void clear() { cells_.clear(); }

  uint64_t generation = 0;  // the owner's: which history this is

 private:
  struct Cell {
    std::optional<Touch> write;  // the last plain one
    std::vector<Touch> reads;    // since then, those that nothing here follows
    std::vector<Touch> atomics;  // the same for atomic writes
  };
  static void note(std::vector<Touch>& touches, const Touch& touch, const TouchOrder& order);

  std::unordered_map<uint64_t, Cell> cells_;
};

}  // namespace loom::interp
