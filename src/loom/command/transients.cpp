#include "loom/command/transients.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace loom {
namespace {

// Up to here, who conflicts with whom is listed and several orders are tried.
constexpr size_t kListed = 2048;
// Up to here, every order is tried.
constexpr size_t kEveryOrder = 8;
// What improving an order may cost, in placements of one item next to another.
constexpr uint64_t kImprovementSteps = 100'000;
// What the sweep over many items may look at; the items behind that are stacked.
constexpr uint64_t kSweepSteps = 8'000'000;

uint64_t round_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

constexpr uint64_t kOpen = std::numeric_limits<uint64_t>::max();  // not placed yet

struct Range {
  uint64_t begin;
  uint64_t end;
};

// The lowest place between the taken ranges; sorts them.
uint64_t first_gap(std::vector<Range>& taken, const PackItem& item) {
  std::ranges::sort(taken, {}, &Range::begin);
  uint64_t at = 0;
  for (const Range& range : taken) {
    if (at + item.length <= range.begin) break;
    at = std::max(at, round_up(range.end, item.alignment));
  }
  return at;
}

// Tries orders of few items against lists of conflicts.
class ListedPacker {
 public:
  explicit ListedPacker(std::span<const PackItem> items)
      : items_(items), conflicts_(items.size()), offsets_(items.size()) {
    for (uint32_t i = 0; i < items.size(); ++i) {
      for (uint32_t k = 0; k < i; ++k) {
        if (items[i].length == 0 || items[k].length == 0 || may_share(items[i], items[k])) continue;
        conflicts_[i].push_back(k);
        conflicts_[k].push_back(i);
        pairs_ += 2;
      }
    }
    bound_ = std::max(load(&PackItem::first, &PackItem::last),
                      load(&PackItem::backward_first, &PackItem::backward_last));
  }

  std::vector<uint64_t> run() {
    std::vector<uint32_t> order(items_.size());
    std::iota(order.begin(), order.end(), 0u);
    consider(order);
    const auto by = [&](auto&& key) {
      if (best_length_ == bound_) return;
      std::vector<uint32_t> sorted(items_.size());
      std::iota(sorted.begin(), sorted.end(), 0u);
      // Equal ones stay in first-use order.
      std::ranges::sort(sorted, [&](uint32_t a, uint32_t b) {
        const auto x = key(a);
        const auto y = key(b);
        return x != y ? x > y : a < b;
      });
      consider(sorted);
    };
    by([&](uint32_t i) { return items_[i].length; });
    by([&](uint32_t i) { return std::pair(items_[i].alignment, items_[i].length); });
    by([&](uint32_t i) { return items_[i].length * conflicts_[i].size(); });
    by([&](uint32_t i) { return weight_of_conflicts(i); });
    improve();
    return std::move(best_);
  }

 private:
  // The most bytes in use at one place of a numbering: items there are pairwise unordered.
  uint64_t load(uint32_t PackItem::* first, uint32_t PackItem::* last) const {
    std::map<uint64_t, int64_t> changes;
    for (const PackItem& item : items_) {
      changes[item.*first] += static_cast<int64_t>(item.length);
      changes[uint64_t{item.*last} + 1] -= static_cast<int64_t>(item.length);
    }
    int64_t now = 0;
    int64_t most = 0;
    for (const auto& [at, change] : changes) most = std::max(most, now += change);
    return static_cast<uint64_t>(most);
  }

  uint64_t weight_of_conflicts(uint32_t item) const {
    uint64_t weight = items_[item].length;
    for (const uint32_t other : conflicts_[item]) weight += items_[other].length;
    return weight;
  }

  uint64_t place_one(uint32_t item) {
    taken_.clear();
    for (const uint32_t other : conflicts_[item]) {
      if (offsets_[other] == kOpen) continue;
      taken_.push_back({offsets_[other], offsets_[other] + items_[other].length});
    }
    return offsets_[item] = first_gap(taken_, items_[item]);
  }

  uint64_t place(const std::vector<uint32_t>& order) {
    std::ranges::fill(offsets_, kOpen);
    uint64_t length = 0;
    for (const uint32_t item : order) {
      length = std::max(length, place_one(item) + items_[item].length);
    }
    return length;
  }

  // Places the items in that order; the length of the slab, which is remembered if it is the least.
  uint64_t consider(const std::vector<uint32_t>& order) {
    const uint64_t length = place(order);
    if (best_.empty() || length < best_length_) {
      best_length_ = length;
      best_ = offsets_;
      best_order_ = order;
    }
    return length;
  }

  // All orders that begin with the items placed so far, and give up where those are no better than
  // what is known. At most kEveryOrder deep.
  void try_every_order(size_t placed, uint64_t length) {
    if (placed == items_.size()) {
      best_length_ = length;
      best_ = offsets_;
      return;
    }
    for (uint32_t item = 0; item < items_.size() && best_length_ != bound_; ++item) {
      if (offsets_[item] != kOpen) continue;
      const uint64_t end = place_one(item) + items_[item].length;
      if (end < best_length_) try_every_order(placed + 1, std::max(length, end));
      offsets_[item] = kOpen;
    }
  }

  // A few items are tried in every order, which finds the best there is. Otherwise items move to
  // other places of the order, every other time one at the top of the slab, as long as that makes
  // nothing worse; now and then from an order that is shuffled, to leave a place that no single
  // move leaves. The numbers are pseudo-random but always the same.
  void improve() {
    const size_t count = items_.size();
    if (count < 2 || best_length_ == bound_) return;
    if (count <= kEveryOrder) {
      std::ranges::fill(offsets_, kOpen);
      return try_every_order(0, 0);
    }
    uint64_t state = 0x9e3779b97f4a7c15;
    const auto random = [&](size_t below) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      return static_cast<size_t>((state >> 11) % below);
    };
    const uint64_t cost = pairs_ + count * 4;
    std::vector<uint32_t> current = best_order_;
    uint64_t length = place(current);
    std::vector<uint64_t> offsets = offsets_;
    for (uint64_t step = 1; step * cost < kImprovementSteps && best_length_ != bound_; ++step) {
      std::vector<uint32_t> order = current;
      const bool afresh = step % 64 == 0;
      if (afresh) {
        for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random(i)]);
      } else {
        const auto at_top = [&](uint32_t i) { return offsets[i] + items_[i].length == length; };
        const size_t from =
            step % 2 == 0 ? static_cast<size_t>(std::ranges::find_if(order, at_top) - order.begin())
                          : random(count);
        const uint32_t moved = order[from];
        order.erase(order.begin() + static_cast<ptrdiff_t>(from));
        order.insert(order.begin() + static_cast<ptrdiff_t>(random(count)), moved);
      }
      const uint64_t now = consider(order);
      if (now > length && !afresh) continue;
      current = std::move(order);
      length = now;
      offsets = offsets_;
    }
  }

  std::span<const PackItem> items_;
  std::vector<std::vector<uint32_t>> conflicts_;
  std::vector<uint64_t> offsets_;
  std::vector<Range> taken_;
  std::vector<uint64_t> best_;
  std::vector<uint32_t> best_order_;
  uint64_t best_length_ = 0;
  uint64_t bound_ = 0;
  uint64_t pairs_ = 0;
};

// First fit in first-use order. Of the items in front, those conflict that end behind the new one's
// beginning in either numbering; both sets are walked from their far ends, so the time follows the
// number of conflicts.
std::vector<uint64_t> sweep(std::span<const PackItem> items) {
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](uint32_t i) { return std::pair(items[i].first, i); });
  std::vector<uint64_t> offsets(items.size());
  std::set<std::pair<uint32_t, uint32_t>> by_last;
  std::set<std::pair<uint32_t, uint32_t>> by_backward_last;
  std::vector<Range> taken;
  uint64_t length = 0;
  uint64_t steps = 0;
  for (const uint32_t i : order) {
    const PackItem& item = items[i];
    if (item.length == 0) continue;
    taken.clear();
    const auto add = [&](const auto& ends, uint32_t begin) {
      for (auto at = ends.rbegin(); at != ends.rend() && at->first >= begin; ++at) {
        if (++steps > kSweepSteps) return;
        taken.push_back({offsets[at->second], offsets[at->second] + items[at->second].length});
      }
    };
    add(by_last, item.first);
    add(by_backward_last, item.backward_first);
    offsets[i] = steps > kSweepSteps ? round_up(length, item.alignment) : first_gap(taken, item);
    length = std::max(length, offsets[i] + item.length);
    by_last.insert({item.last, i});
    by_backward_last.insert({item.backward_last, i});
  }
  return offsets;
}

}  // namespace

bool may_share(const PackItem& a, const PackItem& b) {
  const auto precedes = [](const PackItem& x, const PackItem& y) {
    return x.last < y.first && x.backward_last < y.backward_first;
  };
  return precedes(a, b) || precedes(b, a);
}

std::vector<uint64_t> pack(std::span<const PackItem> items) {
  if (items.empty()) return {};
  return items.size() <= kListed ? ListedPacker(items).run() : sweep(items);
}

void place_transients(PreparedProgram& program, const CommandOrder& order) {
  if (program.transients.empty()) return;
  constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();
  std::vector<PackItem> items;
  for (const TransientRow& row : program.transients) {
    items.push_back({row.length, row.alignment, kNever, 0, kNever, 0});
  }
  const auto use = [&](const BufferRef& ref, uint32_t command) {
    if (ref.storage != StorageClass::Transient) return;
    PackItem& item = items[ref.index];
    item.first = std::min(item.first, command);
    item.last = std::max(item.last, command);
    item.backward_first = std::min(item.backward_first, order.backward(command));
    item.backward_last = std::max(item.backward_last, order.backward(command));
  };
  for (uint32_t c = 0; c < program.commands.size(); ++c) {
    const DispatchCommand& command = program.commands[c];
    for (uint32_t i = 0; i < command.argument_count; ++i) {
      const Argument& argument = program.arguments[command.argument_begin + i];
      if (argument.kind == Argument::Kind::Buffer) use(argument.buffer, c);
    }
    if (command.indirect != DispatchCommand::kDirect) {
      use(program.indirect_storage[command.indirect], c);
    }
  }
  const std::vector<uint64_t> offsets = pack(items);
  for (size_t i = 0; i < offsets.size(); ++i) program.transients[i].offset = offsets[i];
}

}  // namespace loom
