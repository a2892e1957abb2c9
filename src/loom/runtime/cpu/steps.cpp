#include "loom/runtime/cpu/steps.h"

#include <algorithm>
#include <array>
#include <map>

#include "loom/base/check.h"

namespace loom {
namespace {

using Kind = ScheduleNode::Kind;

class Flattener {
 public:
  Flattener(const ProgramView& program, std::span<const EntryAddress> entries)
      : program_(program), schedule_(program.schedule()), entries_(entries) {}

  FlatProgram take() {
    make_records();
    if (schedule_.empty()) {
      flat_.sequences.push_back({});
      return std::move(flat_);
    }
    // Breadth first: the sequences of a fork get consecutive numbers when the fork is met, and each
    // writes its steps in one go when its turn comes.
    add_sequence(kNone, 0, schedule_[0].end);
    for (uint32_t i = 0; i < flat_.sequences.size(); ++i) fill(i);
    classify();
    return std::move(flat_);
  }

 private:
  // Records in the order of the leaves; before_[node] is how many stand before that node.
  void make_records() {
    const std::span<const ScheduleNode> nodes = schedule_;
    std::map<std::array<uint32_t, 6>, uint32_t> shape_index;
    std::vector<uint32_t> shape_of;
    flat_.slot_count = static_cast<uint32_t>(program_.arguments().size());
    before_.reserve(nodes.size() + 1);
    for (const ScheduleNode& node : nodes) {
      before_.push_back(static_cast<uint32_t>(flat_.records.size()));
      if (node.kind != Kind::Command) continue;
      const DispatchCommand& command = program_.commands()[node.command];
      const bool indirect = command.indirect != DispatchCommand::kDirect;
      const uint64_t workgroups = indirect ? 1 : *workgroup_total(command.count);
      if (workgroups == 0) continue;
      const auto size = program_.entry(command.slot).workgroup_size;
      const std::array<uint32_t, 6> key = {command.count[0], command.count[1], command.count[2],
                                           size[0],          size[1],          size[2]};
      const auto [at, added] = shape_index.emplace(key, static_cast<uint32_t>(flat_.shapes.size()));
      if (added) flat_.shapes.push_back({{key[0], key[1], key[2]}, {key[3], key[4], key[5]}});
      shape_of.push_back(at->second);
      flat_.records.push_back(
          {indirect ? &run_indirect : reinterpret_cast<LoomKernelEntry>(entries_[command.slot]),
           nullptr, workgroups, indirect ? flat_.slot_count : command.argument_begin,
           node.command});
      if (indirect) {
        flat_.blocks.push_back({flat_.slot_count, node.command});
        flat_.slot_count += IndirectBlock::Arguments + command.argument_count;
      }
    }
    before_.push_back(static_cast<uint32_t>(flat_.records.size()));
    for (size_t i = 0; i < shape_of.size(); ++i) {
      flat_.records[i].shape = &flat_.shapes[shape_of[i]];
    }
  }

  bool is_empty(uint32_t node) const { return before_[node] == before_[schedule_[node].end]; }

  // Whether a concurrent node holds two siblings that do something.
  bool is_fork(uint32_t node) const {
    const uint32_t end = schedule_[node].end;
    int siblings = 0;
    for (uint32_t i = node + 1; i < end && siblings < 2; i = schedule_[i].end) {
      if (!is_empty(i)) ++siblings;
    }
    return siblings == 2;
  }

  void add_sequence(uint32_t fork, uint32_t begin, uint32_t end) {
    flat_.sequences.push_back({fork, 0, 0, before_[begin], before_[end]});
    nodes_.push_back({begin, end});
  }

  // Scans the nodes of a sequence in pre-order. Entering a serial node is going on with the next
  // one; what a fork holds is left to its own sequences.
  void fill(uint32_t sequence) {
    const auto [begin, end] = nodes_[sequence];
    const auto step_begin = static_cast<uint32_t>(flat_.steps.size());
    for (uint32_t i = begin; i < end;) {
      const ScheduleNode& node = schedule_[i];
      if (is_empty(i)) {
        i = node.end;
      } else if (node.kind == Kind::Command) {
        add_record(sequence, step_begin, before_[i]);
        ++i;
      } else if (node.kind == Kind::Concurrent && is_fork(i)) {
        add_fork(sequence, i);
        i = node.end;
      } else {
        ++i;
      }
    }
    flat_.sequences[sequence].step_begin = step_begin;
    flat_.sequences[sequence].step_end = static_cast<uint32_t>(flat_.steps.size());
  }

  void add_record(uint32_t sequence, uint32_t step_begin, uint32_t record) {
    const auto step = static_cast<uint32_t>(flat_.steps.size());
    if (flat_.records[record].workgroups > 1 || flat_.records[record].entry == &run_indirect) {
      flat_.steps.push_back({static_cast<uint32_t>(flat_.forks.size()), record, record + 1});
      flat_.forks.push_back({Fork::Kind::Workgroups, flat_.records[record].entry == &run_indirect,
                             0, 0, sequence, step, record, record + 1});
    } else if (step > step_begin && flat_.steps.back().fork == kNone) {
      LOOM_DCHECK(flat_.steps.back().last == record, "a run is consecutive");
      flat_.steps.back().last = record + 1;
    } else {
      flat_.steps.push_back({kNone, record, record + 1});
    }
  }

  void add_fork(uint32_t sequence, uint32_t node) {
    const auto fork = static_cast<uint32_t>(flat_.forks.size());
    const uint32_t end = schedule_[node].end;
    Fork made{.sequence = sequence,
              .step = static_cast<uint32_t>(flat_.steps.size()),
              .first = before_[node],
              .last = before_[end]};
    flat_.steps.push_back({fork, made.first, made.last});
    made.sequence_begin = static_cast<uint32_t>(flat_.sequences.size());
    for (uint32_t i = node + 1; i < end;) {
      const ScheduleNode& child = schedule_[i];
      if (is_empty(i)) {
        i = child.end;
      } else if (child.kind == Kind::Concurrent) {
        ++i;  // its siblings are unordered among ours, too
      } else {
        add_sequence(fork, i, child.end);
        i = child.end;
      }
    }
    made.sequence_end = static_cast<uint32_t>(flat_.sequences.size());
    flat_.forks.push_back(made);
  }

  void classify() {
    for (Fork& fork : flat_.forks) {
      if (fork.kind == Fork::Kind::Workgroups) continue;
      const auto siblings =
          std::span(flat_.sequences)
              .subspan(fork.sequence_begin, fork.sequence_end - fork.sequence_begin);
      const bool plain = std::all_of(siblings.begin(), siblings.end(), [&](const Sequence& s) {
        return s.step_end == s.step_begin + 1 && flat_.steps[s.step_begin].fork == kNone;
      });
      if (plain) fork.kind = Fork::Kind::Runs;
    }
  }

  const ProgramView& program_;
  std::span<const ScheduleNode> schedule_;
  std::span<const EntryAddress> entries_;
  std::vector<uint32_t> before_;
  std::vector<std::pair<uint32_t, uint32_t>> nodes_;  // by sequence: its schedule nodes
  FlatProgram flat_;
};

}  // namespace

FlatProgram flatten(const ProgramView& program, std::span<const EntryAddress> entries) {
  return Flattener(program, entries).take();
}

}  // namespace loom
