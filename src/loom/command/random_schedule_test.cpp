// Random schedules against a model that follows the definitions word by word.
// LOOM_RANDOM_SCHEDULES=1000000 sets how many are tried, LOOM_SEED where they begin.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "loom/command/counts.h"
#include "loom/command/hazards.h"
#include "loom/command/order.h"
#include "loom/command/schedule.h"
#include "loom/command/transients.h"

namespace loom {
namespace {

using Kind = ScheduleNode::Kind;

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// A tree of up to a dozen commands over two bindings and up to five transients. Nodes may be empty
// or hold nodes of their own kind, which prepared programs do not do but readers accept.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : random_(seed) {
    program.bindings = {{0, "a"}, {1, "b"}};
    const uint32_t transients = below(6);
    for (uint32_t i = 0; i < transients; ++i) {
      program.transients.push_back({"t", 0, below(5) * 8 + below(3), uint64_t{1} << below(5)});
    }
    program.slots = {0};
    commands_left_ = below(13);
    grow(Kind::Serial, 0, -1);
  }

  PreparedProgram program;
  std::vector<StorageAccess> accesses;
  std::vector<Access> argument_access;
  std::vector<int> parent;  // by node
  std::vector<int> leaf;    // by command: its node
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }

 private:
  void grow(Kind kind, int depth, int above) {
    const auto node = static_cast<int>(program.schedule.size());
    program.schedule.push_back({kind, 0, 0});
    parent.push_back(above);
    const uint32_t children = depth == 0 ? 6 : below(4);
    for (uint32_t i = 0; i < children && commands_left_ > 0; ++i) {
      const uint32_t choice = below(5);
      if (choice < 2 && depth < 5) {
        grow(choice == 0 ? Kind::Serial : Kind::Concurrent, depth + 1, node);
      } else {
        add_command(node);
      }
    }
    program.schedule[static_cast<size_t>(node)].end =
        static_cast<uint32_t>(program.schedule.size());
  }

  void add_command(int above) {
    --commands_left_;
    const auto number = static_cast<uint32_t>(program.commands.size());
    leaf.push_back(static_cast<int>(program.schedule.size()));
    parent.push_back(above);
    program.schedule.push_back(
        {Kind::Command, number, static_cast<uint32_t>(program.schedule.size()) + 1});
    DispatchCommand command;
    command.argument_begin = static_cast<uint32_t>(program.arguments.size());
    command.argument_count = below(4);
    for (uint32_t i = 0; i < command.argument_count; ++i) add_argument(number);
    if (below(4) == 0) {
      command.indirect = static_cast<uint32_t>(program.indirect_storage.size());
      program.indirect_storage.push_back(storage(0, kCountBytes));
    }
    program.commands.push_back(command);
    program.locations.emplace_back();
  }

  BufferRef storage(uint64_t offset, uint64_t length) {
    const auto bindings = static_cast<uint32_t>(program.bindings.size());
    const uint32_t row = below(bindings + static_cast<uint32_t>(program.transients.size()));
    if (row < bindings) return {StorageClass::Rebindable, row, offset, length};
    return {StorageClass::Transient, row - bindings, offset, length};
  }

  void add_argument(uint32_t command) {
    const BufferRef ref = storage(below(4), below(4));
    const auto access = static_cast<Access>(below(4));
    program.arguments.push_back({Argument::Kind::Buffer, 0, ref});
    argument_access.push_back(access);
    if (access == Access::None) return;
    accesses.push_back({command, ref.storage, ref.index, ref.offset, ref.offset + ref.length,
                        access >= Access::Write, below(4) != 0});
  }

  std::mt19937_64 random_;
  uint32_t commands_left_ = 0;
};

// The lowest node that holds both is serial, and the branch of `a` comes first.
bool model_precedes(const RandomProgram& random, uint32_t a, uint32_t b) {
  const auto path = [&](uint32_t command) {
    std::vector<int> nodes;
    for (int node = random.leaf[command]; node >= 0;
         node = random.parent[static_cast<size_t>(node)])
      nodes.insert(nodes.begin(), node);
    return nodes;
  };
  const std::vector<int> x = path(a);
  const std::vector<int> y = path(b);
  size_t common = 0;
  while (common < x.size() && common < y.size() && x[common] == y[common]) ++common;
  if (common == x.size() || common == y.size()) return false;  // the same command
  return random.program.schedule[static_cast<size_t>(x[common - 1])].kind == Kind::Serial &&
         x[common] < y[common];
}

bool uses(const PreparedProgram& program, uint32_t command, uint32_t transient) {
  const auto names = [&](const BufferRef& ref) {
    return ref.storage == StorageClass::Transient && ref.index == transient;
  };
  const DispatchCommand& c = program.commands[command];
  for (uint32_t i = 0; i < c.argument_count; ++i) {
    if (names(program.arguments[c.argument_begin + i].buffer)) return true;
  }
  return c.indirect != DispatchCommand::kDirect && names(program.indirect_storage[c.indirect]);
}

class RandomSchedules : public ::testing::Test {
 protected:
  template <class F>
  void each(F&& check) {
    const uint64_t count = setting("LOOM_RANDOM_SCHEDULES", 10'000);
    const uint64_t first = setting("LOOM_SEED", 1);
    for (uint64_t seed = first; seed < first + count; ++seed) {
      RandomProgram random(seed);
      const auto commands = static_cast<uint32_t>(random.program.commands.size());
      std::vector<std::vector<bool>> before(commands, std::vector<bool>(commands));
      for (uint32_t a = 0; a < commands; ++a) {
        for (uint32_t b = 0; b < commands; ++b) before[a][b] = model_precedes(random, a, b);
      }
      check(random, before);
      ASSERT_FALSE(HasFailure()) << "LOOM_SEED=" << seed;
    }
  }
};
using Before = std::vector<std::vector<bool>>;

TEST_F(RandomSchedules, OrderAndWavesAreThoseOfTheTree) {
  uint64_t ordered = 0;
  each([&](RandomProgram& random, const Before& before) {
    const CommandOrder order(random.program);
    const std::vector<uint32_t> waves = wave_numbers(random.program);
    for (uint32_t b = 0; b < before.size(); ++b) {
      uint32_t wave = 0;
      for (uint32_t a = 0; a < before.size(); ++a) {
        ASSERT_EQ(order.precedes(a, b), before[a][b]) << a << " and " << b;
        ASSERT_EQ(order.concurrent(a, b), a != b && !before[a][b] && !before[b][a]);
        if (before[a][b]) wave = std::max(wave, waves[a] + 1);
        ordered += before[a][b];
      }
      ASSERT_EQ(waves[b], wave);
    }
  });
  EXPECT_GT(ordered, 0u);
}

TEST_F(RandomSchedules, HazardsAreAllConcurrentPairsThatTouchTheSameBytes) {
  uint64_t hazards = 0;
  each([&](RandomProgram& random, const Before& before) {
    using Key = std::tuple<uint32_t, uint32_t, StorageClass, uint32_t, bool>;
    std::vector<Key> expected;
    for (const StorageAccess& a : random.accesses) {
      for (const StorageAccess& b : random.accesses) {
        if (a.command >= b.command || a.storage != b.storage || a.index != b.index) continue;
        if (before[a.command][b.command] || before[b.command][a.command]) continue;
        if (!(a.write || b.write) || std::max(a.begin, b.begin) >= std::min(a.end, b.end)) continue;
        expected.emplace_back(b.command, a.command, a.storage, a.index, !(a.known && b.known));
      }
    }
    // A known one wins, and each pair counts once.
    std::ranges::sort(expected);
    const auto pair_of = [](const Key& key) {
      return std::tuple(std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key));
    };
    const auto repeated = std::ranges::unique(expected, {}, pair_of);
    expected.erase(repeated.begin(), repeated.end());
    std::vector<Key> found;
    for (const Hazard& h : find_hazards(random.accesses, CommandOrder(random.program))) {
      found.emplace_back(h.second, h.first, h.storage, h.index, !h.known);
    }
    ASSERT_EQ(found, expected);
    hazards += found.size();
  });
  EXPECT_GT(hazards, 0u);
}

TEST_F(RandomSchedules, TransientsShareBytesOnlyWhenOneEndsBeforeTheOtherBegins) {
  uint64_t sharing = 0;
  each([&](RandomProgram& random, const Before& before) {
    PreparedProgram& program = random.program;
    place_transients(program, CommandOrder(program));
    const auto all_before = [&](uint32_t t, uint32_t u) {
      for (uint32_t a = 0; a < before.size(); ++a) {
        for (uint32_t b = 0; b < before.size(); ++b) {
          if (uses(program, a, t) && uses(program, b, u) && !before[a][b]) return false;
        }
      }
      return true;
    };
    for (uint32_t t = 0; t < program.transients.size(); ++t) {
      const TransientRow& x = program.transients[t];
      ASSERT_EQ(x.offset % x.alignment, 0u);
      for (uint32_t u = 0; u < t; ++u) {
        const TransientRow& y = program.transients[u];
        const bool overlap = x.length != 0 && y.length != 0 && x.offset < y.offset + y.length &&
                             y.offset < x.offset + x.length;
        ASSERT_TRUE(!overlap || all_before(t, u) || all_before(u, t)) << t << " and " << u;
        sharing += overlap;
      }
    }
  });
  EXPECT_GT(sharing, 0u);
}

TEST_F(RandomSchedules, CountsNeedAWriterInFrontOrABindingThatIsNotWritten) {
  uint64_t refused = 0;
  each([&](RandomProgram& random, const Before& before) {
    const PreparedProgram& program = random.program;
    size_t expected = 0;
    for (uint32_t c = 0; c < program.commands.size(); ++c) {
      if (program.commands[c].indirect == DispatchCommand::kDirect) continue;
      const BufferRef& ref = program.indirect_storage[program.commands[c].indirect];
      bool written = false;
      bool written_in_front = false;
      for (uint32_t w = 0; w < program.commands.size(); ++w) {
        const DispatchCommand& writer = program.commands[w];
        for (uint32_t i = writer.argument_begin; i < writer.argument_begin + writer.argument_count;
             ++i) {
          const BufferRef& other = program.arguments[i].buffer;
          if (other.storage != ref.storage || other.index != ref.index) continue;
          if (random.argument_access[i] < Access::Write) continue;
          written = true;
          if (before[w][c]) written_in_front = true;
        }
      }
      expected += ref.storage == StorageClass::Transient ? !written_in_front : written;
    }
    Diagnostics diagnostics(1000);
    const std::vector<std::string> names = {"k"};
    const bool ok =
        check_counts(program, names, random.argument_access, CommandOrder(program), diagnostics);
    ASSERT_EQ(diagnostics.error_count(), expected);
    ASSERT_EQ(ok, expected == 0);
    refused += expected;
  });
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace loom
