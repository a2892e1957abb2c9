#include "loom/api/issue_queue.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace loom {

struct IssueQueue::Core {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  std::vector<std::thread> threads;
  size_t idle = 0;
  bool closed = false;

  // `self` keeps this alive when a task destroys the queue.
  static void serve(const std::shared_ptr<Core>& self);
};

void IssueQueue::Core::serve(const std::shared_ptr<Core>& self) {
  std::unique_lock lock(self->mutex);
  while (true) {
    ++self->idle;
    self->changed.wait(lock, [&] { return self->closed || !self->tasks.empty(); });
    --self->idle;
    if (self->tasks.empty()) return;
    std::function<void()> task = std::move(self->tasks.front());
    self->tasks.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

IssueQueue::IssueQueue() : core_(std::make_shared<Core>()) {}

IssueQueue::~IssueQueue() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(core_->mutex);
    core_->closed = true;
    threads = std::move(core_->threads);
  }
  core_->changed.notify_all();
  for (std::thread& thread : threads) {
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

void IssueQueue::run(std::function<void()> task) {
  {
    const std::lock_guard lock(core_->mutex);
    const size_t most = std::max(1u, std::thread::hardware_concurrency());
    if (core_->idle <= core_->tasks.size() && core_->threads.size() < most) {
      try {
        core_->threads.emplace_back([core = core_] { Core::serve(core); });
      } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch)
        // Those that there are do the work.
      }
    }
    if (!core_->threads.empty()) {
      core_->tasks.push_back(std::move(task));
      task = nullptr;
    }
  }
  if (task) {
    task();
  } else {
    core_->changed.notify_one();
  }
}

}  // namespace loom
