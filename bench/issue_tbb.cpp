// Peer of suite `issue`: the same dispatches as a oneTBB flow graph of empty bodies.
//
// usage: bench_issue_tbb DISPATCHES BUDGET_MS
// Prints one JSON object: nanoseconds per dispatch of a chain and per fork and join of two, and
// what forks.h says of branches with work.

#include <fmt/core.h>
#include <tbb/flow_graph.h>
#include <tbb/parallel_invoke.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <string>

#include "forks.h"
#include "timing.h"

namespace {

namespace flow = tbb::flow;
using Message = flow::continue_msg;
using Inline = flow::continue_node<Message, flow::lightweight>;
using Spawned = flow::continue_node<Message>;
// A body is called through a pointer, as a runtime that loads its kernels has to.
using Body = void (*)() noexcept;

std::atomic<long> executed{0};
void count() noexcept { executed.fetch_add(1, std::memory_order_relaxed); }
void nothing() noexcept {}

// `dispatches` lightweight nodes, each the successor of the one before.
class Chain {
 public:
  Chain(int dispatches, Body body) {
    for (int i = 0; i < dispatches; ++i) {
      nodes_.emplace_back(graph_, [body](Message) noexcept { body(); });
      if (i > 0) flow::make_edge(nodes_[nodes_.size() - 2], nodes_.back());
    }
  }
  void run() {
    nodes_.front().try_put(Message());
    graph_.wait_for_all();
  }

 private:
  flow::graph graph_;
  std::deque<Inline> nodes_;
};

// `forks` times two siblings that may run at the same time, and a node that joins them.
class Forks {
 public:
  Forks(int forks, Body body) {
    heads_.emplace_back(graph_, [](Message) noexcept {});
    for (int i = 0; i < forks; ++i) {
      Inline& head = heads_.back();
      heads_.emplace_back(graph_, [](Message) noexcept {});
      for (int sibling = 0; sibling < 2; ++sibling) {
        siblings_.emplace_back(graph_, [body](Message) noexcept { body(); });
        flow::make_edge(head, siblings_.back());
        flow::make_edge(siblings_.back(), heads_.back());
      }
    }
  }
  void run() {
    heads_.front().try_put(Message());
    graph_.wait_for_all();
  }

 private:
  flow::graph graph_;
  std::deque<Inline> heads_;
  std::deque<Spawned> siblings_;
};

void invoke_pairs(int forks, Body body) {
  for (int i = 0; i < forks; ++i) tbb::parallel_invoke(body, body);
}

// Branches with work, each on a cache line of its own.
struct alignas(64) Branch {
  uint32_t steps = 0;
  uint32_t x = 0;
  void run() { x = loom::bench::recurrence(steps, x); }
};

// A node with two successors that may run at the same time.
class WorkFork {
 public:
  WorkFork() {
    flow::make_edge(head_, left_);
    flow::make_edge(head_, right_);
  }
  void run() {
    head_.try_put(Message());
    graph_.wait_for_all();
  }
  std::array<Branch, 2> branches;

 private:
  flow::graph graph_;
  Inline head_{graph_, [](Message) noexcept {}};
  Spawned left_{graph_, [this](Message) noexcept { branches[0].run(); }};
  Spawned right_{graph_, [this](Message) noexcept { branches[1].run(); }};
};

std::string work_rows(std::chrono::milliseconds budget) {
  Branch one;
  WorkFork fork;
  const auto set_steps = [&](uint32_t steps) {
    one.steps = fork.branches[0].steps = fork.branches[1].steps = steps;
  };
  set_steps(1000);
  fork.branches[1].x = 8;
  fork.run();
  if (fork.branches[0].x != loom::bench::recurrence(1000, 0) ||
      fork.branches[1].x != loom::bench::recurrence(1000, 8)) {
    fmt::print(stderr, "bench_issue_tbb: a branch computed something else\n");
    std::exit(1);
  }
  return loom::bench::fork_rows(budget, set_steps, [&] { one.run(); }, [&] { fork.run(); });
}

bool runs_every_body(int dispatches) {
  const auto ran = [dispatches] { return executed.exchange(0) == dispatches; };
  Chain(dispatches, count).run();
  if (!ran()) return false;
  Forks(dispatches / 2, count).run();
  if (!ran()) return false;
  invoke_pairs(dispatches / 2, count);
  return ran();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: bench_issue_tbb DISPATCHES BUDGET_MS\n");
    return 2;
  }
  const int dispatches = std::atoi(argv[1]) / 2 * 2;
  const std::chrono::milliseconds budget(std::atoi(argv[2]));
  if (dispatches < 2 || !runs_every_body(dispatches)) {
    fmt::print(stderr, "bench_issue_tbb: a body did not run exactly once\n");
    return 1;
  }
  const int forks = dispatches / 2;
  Chain chain(dispatches, nothing);
  const double serial = loom::bench::median_ns(budget, [&] { chain.run(); }) / dispatches;
  Forks graph(forks, nothing);
  const double fork = loom::bench::median_ns(budget, [&] { graph.run(); }) / forks;
  const double invoke =
      loom::bench::median_ns(budget, [&] { invoke_pairs(forks, nothing); }) / forks;
  fmt::print(R"({{"serial":{},"fork_join":{},"parallel_invoke":{},{}}})"
             "\n",
             serial, fork, invoke, work_rows(budget));
  return 0;
}
