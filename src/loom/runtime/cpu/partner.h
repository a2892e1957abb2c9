// One thread that stands by to run the other half of what an issue does.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>

namespace loom {

// Hands one job at a time to a thread that after its last one spins for kSpin, looks again after
// every kNap until kStandby has passed, and then sleeps until it is woken. The caller never waits
// for a job that has not begun: what the partner did not take up by the time the caller is done
// with its own half is taken back. So a machine without a free core loses nothing but the attempt.
// Nothing here allocates or takes a lock. Everything may be called by any thread.
class Partner {
 public:
  // Nanoseconds. Waking a sleeping thread takes longer than a nap, and its core is free meanwhile.
  static constexpr uint64_t kSpin = 100'000;
  static constexpr uint64_t kNap = 20'000;
  static constexpr uint64_t kStandby = 10'000'000;
  // A spinning partner that finds as much time gone did not run: others want its core.
  static constexpr uint64_t kPreempted = 50'000;
  // How long it does not listen to `want` after it spun for nothing, from the first such time to
  // the longest.
  static constexpr uint64_t kFirstRest = 1'000'000;
  static constexpr uint64_t kLongestRest = 64'000'000;
  // A sleeping one is woken for as much wanted work: some sixty times what waking it takes.
  static constexpr uint64_t kWorthWaking = 1'000'000;

  // A function and what it is called with. Both threads find all of it in one cache line.
  struct Job {
    using Run = void (*)(const uint64_t* words);
    Run run = nullptr;
    std::array<uint64_t, 5> words{};
  };

  Partner() : thread_([this] { loop(); }) {}
  ~Partner();
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;

  // Whether it spins, so that an offer is taken up within a fraction of a microsecond.
  bool present() const { return present_.load(std::memory_order_relaxed); }
  // A caller had `worth` nanoseconds of work to share, and the partner was not present. Makes it
  // present soon, unless that was in vain before.
  void want(uint64_t worth);
  // False when the partner works for another caller; then nothing happened. Wakes one that sleeps.
  bool offer(const Job& job);
  // After an accepted offer, exactly once, by the same thread: true when the job had not begun and
  // will not, false when it has been done. What the job wrote is visible then.
  bool take_back();
  // Nanoseconds from the offer of a job that takes none until it is seen to be done, by a partner
  // that is present: the least of a few. Nothing while it is not, or works for another caller.
  std::optional<uint64_t> hand_over();

 private:
  enum State : uint32_t { Idle, Offered, Taken, Stopped };
  // What happened while it was not present, the most of it.
  enum Call : uint32_t { Nothing, Wanted, Missed };

  void loop();
  void spin();
  bool stand_by();
  void sleep();
  bool work();
  bool leave_core_of_caller();
  void rest();
  void call(Call call);
  void wake();

  // Written by the caller for an offer, and once by the partner, which takes it.
  alignas(128) std::atomic<uint32_t> state_{Idle};
  Job job_;
  // Written once for each job by the partner: how many it has done.
  alignas(128) std::atomic<uint64_t> done_{0};
  // Callers only: whether one has the partner, and `done_` after its job.
  alignas(128) std::atomic<bool> engaged_{false};
  uint64_t done_then_ = 0;
  // Written when the partner comes and goes.
  alignas(128) std::atomic<bool> present_{false};
  std::atomic<uint32_t> call_{Nothing};
  std::atomic<int> caller_core_{-1};  // of a caller that did not find it present
  std::atomic<bool> asleep_{false};
  std::atomic<uint32_t> wakes_{0};
  std::atomic<uint64_t> wanted_work_{0};  // while it sleeps
  std::atomic<uint64_t> rest_{0};         // how long it does not listen
  // The partner only.
  alignas(128) uint64_t resting_until_ = 0;
  bool useful_ = false;  // it worked since it began to spin
  std::thread thread_;
};

}  // namespace loom
