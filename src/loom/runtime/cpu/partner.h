// One thread that stands by to run the other half of a fork.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace loom {

// Hands one job at a time to a thread that after its last one spins for kSpin, looks again after
// every kNap until kStandby has passed, and then sleeps until it is woken. The caller never waits
// for a job that has not begun: what the partner did not take up by the time the caller is done
// with its own half is taken back. So a machine without a free core loses nothing but the attempt.
// Offering, taking back and finishing allocate nothing and take no lock.
class Partner {
 public:
  // Nanoseconds. Waking a sleeping thread takes longer than a nap, and its core is free meanwhile.
  static constexpr uint64_t kSpin = 100'000;
  static constexpr uint64_t kNap = 20'000;
  static constexpr uint64_t kStandby = 10'000'000;

  using Job = void (*)(void* context);

  Partner() : thread_([this] { loop(); }) {}
  ~Partner();
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;

  // False when the partner works for another caller; then nothing happened. Any thread.
  bool offer(Job job, void* context);
  // After an accepted offer, exactly once: true when the job had not begun and will not, false when
  // it has been done. What the job wrote is visible then.
  bool take_back();

 private:
  enum State : uint32_t { Free, Filling, Offered, Running, Done, Stopped };

  void loop();
  bool work();
  void sleep();

  // The state and the job change hands between two threads; what only one looks at lies elsewhere.
  alignas(64) std::atomic<uint32_t> state_{Free};
  Job job_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<bool> asleep_{false};
  std::atomic<uint32_t> wakes_{0};
  std::thread thread_;
};

}  // namespace loom
