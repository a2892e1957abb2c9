#include "loom/interp/shadow.h"

#include <algorithm>

namespace loom::interp {

void Knowledge::join(const Knowledge& other) {
  const auto take = [](auto& mine, const auto& theirs) {
    for (const auto& [key, epochs] : theirs) {
      for (int m = 0; m < 2; ++m) mine[key].of[m] = std::max(mine[key].of[m], epochs.of[m]);
    }
  };
  take(groups, other.groups);
  take(subgroups, other.subgroups);
  for (const auto& [key, count] : other.releases) {
    releases[key] = std::max(releases[key], count);
  }
}

uint32_t CommandOrder::add(std::vector<Step> path) {
  paths_.push_back(std::move(path));
  return static_cast<uint32_t>(paths_.size() - 1);
}

bool CommandOrder::ordered(uint32_t a, uint32_t b) const {
  const auto& left = paths_[a];
  const auto& right = paths_[b];
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (left[i].region != right[i].region) return true;
    if (left[i].child != right[i].child) return false;
  }
  return true;
}

bool TouchOrder::before(const Touch& earlier, const Touch& now) const {
  if (earlier.command != now.command) return commands->ordered(earlier.command, now.command);
  if (earlier.invocation == now.invocation) return true;
  if (earlier.group == now.group && earlier.epoch < now.epoch) return true;
  if (earlier.subgroup == now.subgroup && earlier.subgroup_epoch < now.subgroup_epoch) return true;
  if (known == nullptr) return false;
  const int memory = workgroup_memory ? 1 : 0;
  const auto group = known->groups.find(earlier.group);
  if (group != known->groups.end() && earlier.epoch < group->second.of[memory]) return true;
  const auto subgroup = known->subgroups.find(earlier.subgroup);
  if (subgroup != known->subgroups.end() && earlier.subgroup_epoch < subgroup->second.of[memory]) {
    return true;
  }
  const auto released = known->releases.find(earlier.invocation);
  return released != known->releases.end() && earlier.releases < released->second;
}

// Keeps what a later access can still conflict with. A touch that happened before the new one is
// covered by it, and the new one is covered by any that every later access conflicts with anyway:
// commands and workgroups run one after another, and what is unordered with a command or workgroup
// of the past stays so.
void Shadow::note(std::vector<Touch>& touches, const Touch& touch, const TouchOrder& order) {
  const auto covers = [](const Touch& a, const Touch& b) { return !a.atomic || b.atomic; };
  std::erase_if(touches,
                [&](const Touch& old) { return covers(touch, old) && order.before(old, touch); });
  unsigned in_subgroup = 0;
  const Touch* elsewhere = nullptr;
  for (const Touch& old : touches) {
    if (!covers(old, touch) || order.before(old, touch) || old.in_flight()) continue;
    if (old.command != touch.command) return;
    if (order.synchronizing) continue;
    if (old.group != touch.group) return;
    if (old.subgroup == touch.subgroup) {
      // One of two is not the later access's own; what orders both orders this one too.
      if (++in_subgroup == 2) return;
    } else if (elsewhere == nullptr) {
      elsewhere = &old;
    } else if (elsewhere->subgroup != old.subgroup) {
      return;
    }
  }
  touches.push_back(touch);
}

std::optional<Shadow::Conflict> Shadow::read(uint64_t byte, const Touch& touch,
                                             const TouchOrder& order) {
  Cell& cell = cells_[byte];
  if (cell.write && !order.before(*cell.write, touch)) return Conflict{*cell.write, true};
  if (!touch.atomic) {
    for (const Touch& old : cell.atomics) {
      if (!order.before(old, touch)) return Conflict{old, true};
    }
  }
  note(cell.reads, touch, order);
  return std::nullopt;
}

std::optional<Shadow::Conflict> Shadow::write(uint64_t byte, const Touch& touch,
                                              const TouchOrder& order) {
  Cell& cell = cells_[byte];
  if (cell.write && !order.before(*cell.write, touch)) return Conflict{*cell.write, true};
  for (const Touch& old : cell.reads) {
    if (!(old.atomic && touch.atomic) && !order.before(old, touch)) return Conflict{old, false};
  }
  if (touch.atomic) {
    note(cell.atomics, touch, order);
    return std::nullopt;
  }
  for (const Touch& old : cell.atomics) {
    if (!order.before(old, touch)) return Conflict{old, true};
  }
  cell.write = touch;
  cell.reads.clear();
  cell.atomics.clear();
  return std::nullopt;
}

void Shadow::rename(uint64_t byte, uint32_t from, const Touch& to) {
  const auto found = cells_.find(byte);
  if (found == cells_.end()) return;
  Cell& cell = found->second;
  if (cell.write && cell.write->invocation == from) cell.write = to;
  for (Touch& old : cell.reads) {
    if (old.invocation == from) old = to;
  }
}

}  // namespace loom::interp
