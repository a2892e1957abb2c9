#include "hyperloom/app/stop_signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace hyperloom::app {
namespace {

// Only what a signal handler may touch.
std::atomic<int> wake_fd = -1;

void wake(int number) {
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_fd.load(), &one, sizeof one);
  ::signal(number, SIG_DFL);
}

}  // namespace

struct StopSignals::Impl {
  int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::stop_source source;
  struct sigaction old_interrupt{};
  struct sigaction old_terminate{};
  std::jthread watcher;

  void watch(const std::stop_token& over) {
    while (!over.stop_requested()) {
      pollfd waiting{fd, POLLIN, 0};
      if (::poll(&waiting, 1, 100) > 0) {
        source.request_stop();
        return;
      }
    }
  }
};

StopSignals::StopSignals() : impl_(std::make_unique<Impl>()) {
  wake_fd = impl_->fd;
  struct sigaction action{};
  action.sa_handler = wake;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &impl_->old_interrupt);
  ::sigaction(SIGTERM, &action, &impl_->old_terminate);
  impl_->watcher = std::jthread([this](const std::stop_token& over) { impl_->watch(over); });
}

StopSignals::~StopSignals() {
  ::sigaction(SIGINT, &impl_->old_interrupt, nullptr);
  ::sigaction(SIGTERM, &impl_->old_terminate, nullptr);
  impl_->watcher.request_stop();
  impl_->watcher.join();
  wake_fd = -1;
  ::close(impl_->fd);
}

std::stop_token StopSignals::token() const { return impl_->source.get_token(); }

}  // namespace hyperloom::app
