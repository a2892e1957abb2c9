// Threads that run issues which nobody waits for.
#pragma once

#include <functional>
#include <memory>

namespace loom {

// Runs tasks in the order in which they come, each on one of up to `hardware_concurrency` threads
// that are started as they are needed. Thread-safe. Destruction waits for the tasks, unless one of
// them destroys the queue, which then ends with its last task.
class IssueQueue {
 public:
  IssueQueue();
  ~IssueQueue();
  IssueQueue(const IssueQueue&) = delete;
  IssueQueue& operator=(const IssueQueue&) = delete;

  // Where the system gives no first thread, the task is run before this returns.
  void run(std::function<void()> task);

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace loom
