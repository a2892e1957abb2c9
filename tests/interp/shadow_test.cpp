// The race detector against a model that keeps every access and the whole order between them.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "loom/interp/shadow.h"

namespace loom::interp {
namespace {

struct Event {
  Touch touch;
  bool write = false;
};

// Two accesses are ordered when a path of program order and barriers leads from one to the other;
// here every barrier is complete, so the counts say all there is.
bool ordered(const Event& a, const Event& b) {
  return a.touch.invocation == b.touch.invocation ||
         (a.touch.group == b.touch.group && a.touch.epoch < b.touch.epoch) ||
         (a.touch.subgroup == b.touch.subgroup && a.touch.subgroup_epoch < b.touch.subgroup_epoch);
}

bool races(const std::vector<Event>& history, const Event& next) {
  for (const Event& old : history) {
    const bool harmless = (!old.write && !next.write) || (old.touch.atomic && next.touch.atomic);
    if (!harmless && !ordered(old, next)) return true;
  }
  return false;
}

// Workgroups of two subgroups with two invocations each, one byte, random accesses and barriers.
TEST(Shadow, FindsARaceExactlyWhenTheModelDoes) {
  size_t found = 0, clean = 0;
  for (uint32_t seed = 0; seed < 20000; ++seed) {
    std::mt19937 random(seed);
    const auto roll = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
    CommandOrder commands;
    commands.add({});
    const TouchOrder order{.commands = &commands};
    Shadow shadow;
    std::vector<Event> history;
    bool stopped = false;
    const uint32_t writes_every = 2 + roll(6);
    const uint32_t atomics_every = 1 + roll(4);
    for (uint32_t group = 0; group < 2 && !stopped; ++group) {
      uint32_t epoch = 0;
      uint32_t subgroup_epochs[3] = {0, 0, 0};
      for (int step = 0; step < 8 && !stopped; ++step) {
        const uint32_t what = roll(8);
        if (what == 0) {
          ++epoch;
          continue;
        }
        if (what == 1) {
          ++subgroup_epochs[roll(3)];
          continue;
        }
        const uint32_t item = roll(6);
        Event event;
        event.write = roll(writes_every) == 0;
        event.touch = {.invocation = group * 6 + item,
                       .group = group,
                       .subgroup = group * 3 + item / 2,
                       .epoch = epoch,
                       .subgroup_epoch = subgroup_epochs[item / 2],
                       .atomic = roll(atomics_every) != 0};
        const bool expected = races(history, event);
        const bool seen = event.write ? shadow.write(0, event.touch, order).has_value()
                                      : shadow.read(0, event.touch, order).has_value();
        ASSERT_EQ(seen, expected) << "seed " << seed << " after " << history.size();
        history.push_back(event);
        stopped = expected;
      }
    }
    ++(stopped ? found : clean);
  }
  EXPECT_GT(found, 1000u);
  EXPECT_GT(clean, 1000u);
}

// Trees of serial and concurrent regions, two bytes, one access a command.
TEST(Shadow, CommandsConflictWhenTheirPathsPart) {
  size_t found = 0, clean = 0;
  for (uint32_t seed = 0; seed < 20000; ++seed) {
    std::mt19937 random(seed);
    CommandOrder commands;
    const TouchOrder order{.commands = &commands};
    Shadow shadow;
    std::vector<std::pair<std::vector<CommandOrder::Step>, bool>> history;
    std::vector<CommandOrder::Step> path;
    uint32_t next_region = 0;
    bool stopped = false;
    for (int step = 0; step < 10 && !stopped; ++step) {
      const uint32_t what = static_cast<uint32_t>(random() % 6);
      if (what == 0) {
        path.push_back({next_region++, 0});
      } else if (what == 1 && !path.empty()) {
        path.pop_back();
      } else if (what == 2 && !path.empty()) {
        ++path.back().child;
      } else {
        const bool write = random() % 3 == 0;
        bool expected = false;
        for (const auto& [other, wrote] : history) {
          if (!write && !wrote) continue;
          for (size_t i = 0; i < std::min(other.size(), path.size()); ++i) {
            if (other[i].region != path[i].region) break;
            if (other[i].child != path[i].child) {
              expected = true;
              break;
            }
          }
        }
        const Touch touch{.command = commands.add(path)};
        const bool seen = write ? shadow.write(0, touch, order).has_value()
                                : shadow.read(0, touch, order).has_value();
        ASSERT_EQ(seen, expected) << "seed " << seed;
        history.emplace_back(path, write);
        stopped = expected;
      }
    }
    ++(stopped ? found : clean);
  }
  EXPECT_GT(found, 1000u);
  EXPECT_GT(clean, 1000u);
}

}  // namespace
}  // namespace loom::interp
