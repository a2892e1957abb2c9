#include "hyperloom/coordinator/heartbeat.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace hyperloom::coordinator {
namespace {

void beat(Services& services, const std::string& step, std::stop_token stop) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto period = std::chrono::duration<double>(services.heartbeat_seconds);
  std::mutex mutex;
  std::condition_variable_any ended;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    if (ended.wait_for(lock, stop, period, [&] { return stop.stop_requested(); })) return;
    bus::Message message;
    message.from_agent = "orchestration";
    message.to_agent = "*";
    message.topic = "observation";
    const std::chrono::duration<double> elapsed = Clock::now() - begin;
    message.payload = {
        {"kind", "kernel_step_running"}, {"step", step}, {"elapsed_sec", elapsed.count()}};
    // A lost heartbeat stops no work; what the disk refuses shows at the next row that counts.
    [[maybe_unused]] const auto sent = services.bus.append(std::move(message));
    services.session.heartbeat();
  }
}

}  // namespace

Heartbeat::Heartbeat(Services& services, std::string step)
    : thread_([&services, step = std::move(step)](std::stop_token stop) {
        beat(services, step, std::move(stop));
      }) {}

}  // namespace hyperloom::coordinator
