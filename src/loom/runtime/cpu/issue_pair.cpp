// How an issue shares forks with the partner. Small ones are cut in two halves when that was
// measured to be faster, and only while the partner is there; larger ones are offered to it in any
// case.
#include <algorithm>
#include <atomic>

#include "loom/runtime/cpu/clock.h"
#include "loom/runtime/cpu/issue.h"

namespace loom {

// Whether two threads may do it: two plain runs, or a dispatch.
bool CpuInvocation::is_pair(uint32_t index) const {
  const Fork& fork = cpu_.flat_.forks[index];
  return cpu_.partner_ != nullptr &&
         (fork.kind == Fork::Kind::Workgroups ||
          (fork.kind == Fork::Kind::Runs && fork.sequence_end - fork.sequence_begin == 2));
}

// Too little work for a partner that must come first, and enough for one that is there. What is
// shared may have somewhat more, since halves in two caches take longer when one thread does both.
bool CpuInvocation::is_small_pair(uint32_t index) const {
  const uint64_t work = forks_[index].last;
  return work >= kLeastPairWork && work < (choices_[index].shares() ? 2 : 1) * kCheapWork &&
         is_pair(index) && !cpu_.flat_.forks[index].indirect;
}

// Whether this issue shares a small pair with a partner that is there.
bool CpuInvocation::shares_small(uint32_t index) const {
  switch (trials_.way()) {
    case PairTrials::Way::Chosen:
      return choices_[index].shares();
    case PairTrials::Way::Alone:
      return false;
    case PairTrials::Way::Shared:
      return true;
  }
  return false;
}

// Has the partner do half of a fork. False, and nothing done, where it cannot or is busy.
bool CpuInvocation::run_pair(Position& at) {
  const uint32_t index = cpu_.flat_.steps[at.step].fork;
  if (!is_pair(index)) return false;
  if (is_small_pair(index)) {
    run_small_pair(index);
  } else if (cpu_.flat_.forks[index].kind == Fork::Kind::Runs) {
    if (!run_two_runs(index)) return false;
  } else {
    if (!run_two_ends(index)) return false;
  }
  ++at.step;
  return true;
}

// One of two plain runs.
Partner::Job CpuInvocation::records_job(uint32_t sequence) const {
  const Sequence& of = cpu_.flat_.sequences[sequence];
  return {[](const uint64_t* words) {
            reinterpret_cast<const CpuInvocation*>(words[0])->run_records(
                static_cast<uint32_t>(words[1]), static_cast<uint32_t>(words[2]));
          },
          {reinterpret_cast<uintptr_t>(this), of.first, of.last}};
}

// Workgroups of a direct dispatch. Without a trace the job is the kernel and what it is called
// with, so that the partner has nothing to look up.
Partner::Job CpuInvocation::workgroups_job(const DispatchRecord& record, uint64_t begin,
                                           uint64_t end) const {
  if (trace_ != nullptr) {
    return {[](const uint64_t* words) {
              reinterpret_cast<const CpuInvocation*>(words[0])->run_workgroups(
                  *reinterpret_cast<const DispatchRecord*>(words[1]), nullptr, words[2], words[3]);
            },
            {reinterpret_cast<uintptr_t>(this), reinterpret_cast<uintptr_t>(&record), begin, end}};
  }
  return {[](const uint64_t* words) {
            reinterpret_cast<LoomKernelEntry>(words[0])(
                reinterpret_cast<const uint64_t*>(words[1]),
                reinterpret_cast<const LoomDispatchShape*>(words[2]), words[3], words[4]);
          },
          {reinterpret_cast<uintptr_t>(record.entry),
           reinterpret_cast<uintptr_t>(slots_.data() + record.args),
           reinterpret_cast<uintptr_t>(record.shape), begin, end}};
}

// How many workgroups of a small dispatch this thread does: more than half, by what handing over
// takes. Until the next trial they are the same, so that each thread finds the data of its half in
// its own cache.
void CpuInvocation::choose_front(uint32_t index) {
  const Fork& fork = cpu_.flat_.forks[index];
  if (fork.kind == Fork::Kind::Runs) return;
  const auto size = static_cast<double>(cpu_.flat_.records[fork.first].workgroups);
  const double hand_over = static_cast<double>(cpu_.partner_->hand_over().value_or(0));
  const double more = std::min(1.0, hand_over / static_cast<double>(forks_[index].last));
  choices_[index].set_front(
      static_cast<uint64_t>(std::clamp(size * (1 + more) / 2 + 0.5, 1.0, size - 1)));
}

// The half of a small fork that the partner does.
Partner::Job CpuInvocation::partner_half(uint32_t index) const {
  const Fork& fork = cpu_.flat_.forks[index];
  if (fork.kind == Fork::Kind::Runs) return records_job(fork.sequence_begin + 1);
  const DispatchRecord& record = cpu_.flat_.records[fork.first];
  return workgroups_job(record, choices_[index].front(), record.workgroups);
}

// A half of a small fork by this thread: its own, or the partner's, which did not come to it.
void CpuInvocation::run_half(uint32_t index, bool own) const {
  const Fork& fork = cpu_.flat_.forks[index];
  if (fork.kind == Fork::Kind::Runs) {
    const Sequence& half = cpu_.flat_.sequences[fork.sequence_begin + (own ? 0 : 1)];
    run_records(half.first, half.last);
    return;
  }
  const DispatchRecord& record = cpu_.flat_.records[fork.first];
  const uint64_t front = choices_[index].front();
  run_workgroups(record, nullptr, own ? 0 : front, own ? front : record.workgroups);
}

// One that is cheap: with the partner if that is there, else alone.
void CpuInvocation::run_small_pair(uint32_t index) {
  ForkState& state = forks_[index];
  Partner& partner = *cpu_.partner_;
  const bool trial = trials_.way() == PairTrials::Way::Shared;
  if (!partner.present()) {
    partner.want(state.last);
    if (trial) trials_.missed_partner();
    run_records(cpu_.flat_.forks[index].first, cpu_.flat_.forks[index].last);
    return;
  }
  if (trial && choices_[index].tries_shared_first()) choose_front(index);
  const uint64_t start = trial ? now() : 0;
  const bool offered = partner.offer(partner_half(index));
  run_half(index, true);
  const bool shared = offered && !partner.take_back();
  if (!shared) run_half(index, false);
  if (!trial) return;
  if (shared) {
    choices_[index].measured(true, now() - start);
  } else {
    trials_.missed_partner();
  }
}

// This thread does the first of two plain runs, the partner the second if it comes to it in time.
bool CpuInvocation::run_two_runs(uint32_t index) {
  const Fork& fork = cpu_.flat_.forks[index];
  struct Half {
    const CpuInvocation& invocation;
    const Sequence& sequence;
    uint64_t work = 0;
    void run() { work = invocation.timed_records(sequence.first, sequence.last); }
  };
  Half first{*this, cpu_.flat_.sequences[fork.sequence_begin]};
  Half second{*this, cpu_.flat_.sequences[fork.sequence_begin + 1]};
  const auto job = [](const uint64_t* words) { reinterpret_cast<Half*>(words[0])->run(); };
  if (!cpu_.partner_->offer({job, {reinterpret_cast<uintptr_t>(&second)}})) return false;
  first.run();
  if (cpu_.partner_->take_back()) second.run();
  forks_[index].last = first.work + second.work;
  return true;
}

// A dispatch in parts, which two threads take from its two ends until they meet.
struct CpuInvocation::Ends {
  const CpuInvocation& invocation;
  const DispatchRecord& record;
  const IndirectCounts* counts;
  uint64_t size;
  uint64_t parts;
  std::atomic<uint64_t> taken{0};  // from the front, and in the high half from the back

  // Nanoseconds that this thread spent.
  uint64_t run(bool back) {
    const uint64_t start = now();
    const uint64_t share = size / parts;
    const uint64_t extra = size % parts;
    for (;;) {
      const uint64_t before = taken.fetch_add(back ? uint64_t{1} << 32 : 1);
      const uint64_t front_taken = before & 0xffffffff;
      const uint64_t back_taken = before >> 32;
      if (front_taken + back_taken >= parts) return now() - start;
      const uint64_t part = back ? parts - 1 - back_taken : front_taken;
      const uint64_t begin = part * share + std::min(part, extra);
      invocation.run_workgroups(record, counts, begin, begin + share + (part < extra ? 1 : 0));
    }
  }
};

// Cuts a dispatch into parts, of which this thread takes the next one from the front and the
// partner the next one from the back, until they meet. More threads than two take it in the arena.
bool CpuInvocation::run_two_ends(uint32_t index) {
  if (cpu_.threads_ > 2) return false;
  struct Context {
    Ends& ends;
    uint64_t work = 0;
  };
  note_counts(index);
  const Fork& fork = cpu_.flat_.forks[index];
  const DispatchRecord& record = cpu_.flat_.records[fork.first];
  const IndirectCounts* counts = fork.indirect ? &forks_[index].counts : nullptr;
  const uint64_t size = counts != nullptr ? counts->workgroups : record.workgroups;
  // Counts that another kernel changes at the same time are the program's mistake, not ours.
  if (size == 0) return true;
  Ends ends{*this, record, counts, size, std::min(size, 2 * kPartsPerThread)};
  Context theirs{ends};
  const auto job = [](const uint64_t* words) {
    auto& context = *reinterpret_cast<Context*>(words[0]);
    context.work = context.ends.run(true);
  };
  if (!cpu_.partner_->offer({job, {reinterpret_cast<uintptr_t>(&theirs)}})) return false;
  const uint64_t work = ends.run(false);
  cpu_.partner_->take_back();
  forks_[index].last = work + theirs.work;
  return true;
}

}  // namespace loom
