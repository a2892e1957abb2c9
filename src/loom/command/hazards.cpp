#include "loom/command/hazards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "loom/command/touches.h"
#include "loom/dialect/op_info.h"

namespace loom {
namespace {

using Place = std::tuple<uint32_t, uint32_t, uint32_t>;  // file, line, column
constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();

// The hazards on one storage.
class StorageHazards {
 public:
  StorageHazards(std::vector<StorageAccess> accesses, const CommandOrder& order,
                 std::vector<Hazard>& found)
      : accesses_(std::move(accesses)), order_(order), found_(found) {}

  // Looks at all pairs that are concurrent, or at all that overlap, whichever are fewer.
  void run() {
    const auto writes = [](const StorageAccess& access) { return access.write; };
    if (std::ranges::none_of(accesses_, writes)) return;
    if (concurrent_pairs() <= overlapping_pairs()) {
      by_order();
    } else {
      by_bytes();
    }
  }

 private:
  // Pairs whose order differs between the two numberings.
  uint64_t concurrent_pairs() {
    std::ranges::sort(accesses_, {}, &StorageAccess::command);
    std::vector<uint32_t> backward;
    for (const StorageAccess& access : accesses_) {
      backward.push_back(order_.backward(access.command));
    }
    std::vector<uint32_t> ranks = backward;
    std::ranges::sort(ranks);
    std::vector<uint64_t> tree(ranks.size() + 1);  // counts of those seen, by rank
    uint64_t pairs = 0;
    for (size_t i = 0; i < backward.size(); ++i) {
      const auto rank =
          static_cast<size_t>(std::ranges::upper_bound(ranks, backward[i]) - ranks.begin());
      uint64_t not_greater = 0;
      for (size_t at = rank; at > 0; at -= at & (~at + 1)) not_greater += tree[at];
      pairs += i - not_greater;
      for (size_t at = rank; at < tree.size(); at += at & (~at + 1)) ++tree[at];
    }
    return pairs;
  }

  uint64_t overlapping_pairs() const {
    std::vector<uint64_t> ends;
    for (const StorageAccess& access : accesses_) ends.push_back(access.end);
    std::ranges::sort(ends);
    const uint64_t count = accesses_.size();
    uint64_t pairs = count * (count - 1) / 2;
    for (const StorageAccess& access : accesses_) {
      pairs -= std::min<uint64_t>(
          pairs,
          static_cast<uint64_t>(std::ranges::upper_bound(ends, access.begin) - ends.begin()));
    }
    return pairs;
  }

  void by_order() {
    std::set<std::pair<uint32_t, uint32_t>> seen;  // backward number, access
    std::set<std::pair<uint32_t, uint32_t>> writes;
    for (uint32_t i = 0; i < accesses_.size(); ++i) {
      const StorageAccess& access = accesses_[i];
      const uint32_t backward = order_.backward(access.command);
      const auto& others = access.write ? seen : writes;
      for (auto at = others.rbegin(); at != others.rend() && at->first > backward; ++at) {
        meet(accesses_[at->second], access);
      }
      seen.insert({backward, i});
      if (access.write) writes.insert({backward, i});
    }
  }

  void by_bytes() {
    std::ranges::sort(accesses_, {}, &StorageAccess::begin);
    std::set<std::pair<uint64_t, uint32_t>> open;  // end, access
    for (uint32_t i = 0; i < accesses_.size(); ++i) {
      const StorageAccess& access = accesses_[i];
      while (!open.empty() && open.begin()->first <= access.begin) open.erase(open.begin());
      for (const auto& [end, other] : open) {
        if (!access.write && !accesses_[other].write) continue;
        if (order_.concurrent(accesses_[other].command, access.command)) {
          meet(accesses_[other], access);
        }
      }
      open.insert({access.end, i});
    }
  }

  void meet(const StorageAccess& a, const StorageAccess& b) {
    const uint64_t begin = std::max(a.begin, b.begin);
    const uint64_t end = std::min(a.end, b.end);
    if (begin >= end) return;
    found_.push_back({std::min(a.command, b.command), std::max(a.command, b.command), a.storage,
                      a.index, begin, end, a.known && b.known});
  }

  std::vector<StorageAccess> accesses_;
  const CommandOrder& order_;
  std::vector<Hazard>& found_;
};

class Checker {
 public:
  Checker(const Module& module, const EntryTable& entries, const PreparedProgram& program,
          Diagnostics& diagnostics)
      : module_(module), entries_(entries), program_(program), diagnostics_(diagnostics) {}

  void run() {
    open_kernels();
    for (uint32_t c = 0; c < program_.commands.size(); ++c) collect(c);
    const CommandOrder order(program_);
    for (const Hazard& hazard : find_hazards(accesses_, order)) report(hazard);
  }

 private:
  void open_kernels() {
    for (const uint32_t entry : program_.slots) {
      const OpId kernel = entries_.kernel(entry);
      const auto facet = module_.access_facets.find(kernel.index());
      facets_.push_back(facet == module_.access_facets.end() ? std::span<const Access>()
                                                             : std::span(facet->second));
      touches_.emplace_back();
      if (module_.op(kernel).kind != OpKind::KernelDef) continue;
      const RegionId body = module_.op_region(kernel, region_slot(OpKind::KernelDef, "body"));
      if (module_.region(body).deferred) continue;
      touches_.back() = kernel_touches(module_, kernel, facets_.back());
    }
  }

  // A dispatch without workgroups touches nothing.
  void collect(uint32_t number) {
    const DispatchCommand& command = program_.commands[number];
    std::span<const uint32_t> counts;
    if (command.indirect != DispatchCommand::kDirect) {
      const BufferRef& ref = program_.indirect_storage[command.indirect];
      add(number, ref, 0, kCountBytes, Access::Read, true);
    } else if (std::ranges::find(command.count, 0u) != command.count.end()) {
      return;
    } else {
      counts = command.count;
    }
    const auto arguments =
        std::span(program_.arguments).subspan(command.argument_begin, command.argument_count);
    if (const auto& touches = touches_[command.slot]) {
      for (const TouchedRange& range : touched_ranges(*touches, arguments, counts)) {
        add(number, arguments[range.argument].buffer, range.begin, range.end, range.access, true);
      }
      return;
    }
    const std::span<const Access> facet = facets_[command.slot];
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].kind != Argument::Kind::Buffer) continue;
      const Access access = i < facet.size() ? facet[i] : Access::ReadWrite;
      add(number, arguments[i].buffer, 0, kEnd, access, false);
    }
  }

  // `begin` and `end` count inside of the range that the command passes.
  void add(uint32_t command, const BufferRef& ref, uint64_t begin, uint64_t end, Access access,
           bool known) {
    if (ref.storage == StorageClass::Fixed || access == Access::None) return;
    const auto plus = [&](uint64_t a) { return a > kEnd - ref.offset ? kEnd : a + ref.offset; };
    accesses_.push_back({command, ref.storage, ref.index, plus(begin),
                         plus(std::min(end, ref.length)), access != Access::Read, known});
  }

  void report(const Hazard& hazard) {
    const Location first = program_.locations[hazard.first];
    const Location second = program_.locations[hazard.second];
    const auto place = [](const Location& l) { return Place(l.file.index(), l.line, l.column); };
    if (!reported_.insert({place(first), place(second), hazard.storage, hazard.index}).second) {
      return;
    }
    const std::string range = hazard.end == kEnd
                                  ? fmt::format("bytes from {} on", hazard.begin)
                                  : fmt::format("bytes {} to {}", hazard.begin, hazard.end - 1);
    const std::string root =
        "%" + (hazard.storage == StorageClass::Transient ? program_.transients[hazard.index].name
                                                         : program_.bindings[hazard.index].name);
    if (hazard.known) {
      diagnostics_.emit(Diag::CommandHazard, second, {{"range", range}, {"root", root}})
          .notes.push_back({first, "the other command is here"});
      return;
    }
    const uint32_t slot_first = program_.commands[hazard.first].slot;
    const uint32_t slot_second = program_.commands[hazard.second].slot;
    const bool second_unknown = !touches_[slot_second];
    const uint32_t unknown = second_unknown ? slot_second : slot_first;
    const uint32_t other = second_unknown ? slot_first : slot_second;
    diagnostics_
        .emit(Diag::CommandHazardUnknown, second_unknown ? second : first,
              {{"kernel", entries_.symbol(program_.slots[unknown])},
               {"range", range},
               {"root", root},
               {"other", entries_.symbol(program_.slots[other])}})
        .notes.push_back({second_unknown ? first : second, "the other command is here"});
  }

  const Module& module_;
  const EntryTable& entries_;
  const PreparedProgram& program_;
  Diagnostics& diagnostics_;
  std::vector<std::span<const Access>> facets_;        // by slot
  std::vector<std::optional<KernelTouches>> touches_;  // by slot; nothing without a body
  std::vector<StorageAccess> accesses_;
  std::set<std::tuple<Place, Place, StorageClass, uint32_t>> reported_;
};

}  // namespace

std::vector<Hazard> find_hazards(std::span<const StorageAccess> accesses,
                                 const CommandOrder& order) {
  std::map<std::pair<StorageClass, uint32_t>, std::vector<StorageAccess>> by_storage;
  for (const StorageAccess& access : accesses) {
    if (access.begin < access.end) by_storage[{access.storage, access.index}].push_back(access);
  }
  std::vector<Hazard> found;
  for (auto& [storage, list] : by_storage) StorageHazards(std::move(list), order, found).run();
  const auto pair_of = [](const Hazard& h) {
    return std::tuple(h.second, h.first, h.storage, h.index);
  };
  std::ranges::sort(found, {}, [&](const Hazard& h) {
    return std::tuple_cat(pair_of(h), std::tuple(!h.known, h.begin, h.end));
  });
  const auto repeated = std::ranges::unique(found, {}, pair_of);
  found.erase(repeated.begin(), repeated.end());
  return found;
}

void check_hazards(const Module& module, const EntryTable& entries, const PreparedProgram& program,
                   Diagnostics& diagnostics) {
  Checker(module, entries, program, diagnostics).run();
}

}  // namespace loom
