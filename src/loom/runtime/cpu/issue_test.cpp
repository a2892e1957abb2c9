// Programs on the CPU, through the device interface.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "loom/runtime/cpu/count_allocations.h"
#include "loom/runtime/cpu/cpu_device.h"
#include "loom/runtime/cpu/plan_builder.h"
#include "loom/runtime/cpu/two_cores.h"

namespace loom {
namespace {

using Kind = ScheduleNode::Kind;
using Shape = LoomDispatchShape;

int32_t* ints(uint64_t slot) { return reinterpret_cast<int32_t*>(slot); }

// out[w] = in[w] + addend for each workgroup w
void add(const uint64_t* args, const Shape*, uint64_t begin, uint64_t end) {
  for (uint64_t w = begin; w < end; ++w) {
    ints(args[1])[w] = ints(args[0])[w] + static_cast<int32_t>(args[2]);
  }
}
// state = state * 3 + digit: the result tells the order of the dispatches
void append(const uint64_t* args, const Shape*, uint64_t, uint64_t) {
  *ints(args[0]) = *ints(args[0]) * 3 + static_cast<int32_t>(args[1]);
}
void increment(const uint64_t* args, const Shape*, uint64_t begin, uint64_t end) {
  reinterpret_cast<std::atomic<uint64_t>*>(args[0])->fetch_add(end - begin);
}
void sum(const uint64_t* args, const Shape*, uint64_t, uint64_t) {
  *ints(args[2]) = *ints(args[0]) + *ints(args[1]);
}
void store_shape(const uint64_t* args, const Shape* shape, uint64_t begin, uint64_t end) {
  for (int axis = 0; axis < 3; ++axis) {
    ints(args[0])[axis] = static_cast<int32_t>(shape->count[axis]);
    ints(args[0])[3 + axis] = static_cast<int32_t>(shape->size[axis]);
  }
  ints(args[0])[6] = static_cast<int32_t>(begin);
  ints(args[0])[7] = static_cast<int32_t>(end);
}
// Counts its calls; each workgroup takes longer than handing it to another thread.
void take_time(const uint64_t* args, const Shape*, uint64_t begin, uint64_t end) {
  reinterpret_cast<std::atomic<uint64_t>*>(args[0])->fetch_add(1);
  const auto until =
      std::chrono::steady_clock::now() + (end - begin) * std::chrono::microseconds(50);
  while (std::chrono::steady_clock::now() < until) {
  }
}
// Says that it is there, and waits until `args[1]` kernels are.
void meet(const uint64_t* args, const Shape*, uint64_t, uint64_t) {
  auto& present = *reinterpret_cast<std::atomic<uint64_t>*>(args[0]);
  present.fetch_add(1);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (present.load() < args[1]) {
    if (std::chrono::steady_clock::now() > limit) return;
    std::this_thread::yield();
  }
  reinterpret_cast<std::atomic<uint64_t>*>(args[0])[1].fetch_add(1);
}

template <class T>
std::span<std::byte> storage(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

struct Running {
  explicit Running(PlanBuilder& builder, unsigned threads = 0) {
    device = make_cpu_device({threads});
    program =
        device->materialize({builder.view(), &parameters, builder.entries(), {}}, diagnostics);
    if (program) invocation = program->make_invocation();
  }
  bool bind(std::string_view name, std::span<std::byte> bytes) {
    return invocation->bind(name, bytes, diagnostics);
  }
  bool issue() { return invocation->issue(diagnostics); }

  ParameterSet parameters;
  Diagnostics diagnostics;
  std::unique_ptr<Device> device;
  std::unique_ptr<Program> program;
  std::unique_ptr<Invocation> invocation;
};

TEST(CpuIssue, SerialDispatchesRunInOrderWithTheirArguments) {
  PlanBuilder builder;
  builder.dispatch(add, {builder.binding("in"), builder.binding("hidden"), PlanBuilder::scalar(1)},
                   {4, 1, 1});
  builder.dispatch(add,
                   {builder.binding("hidden", 4), builder.binding("out"), PlanBuilder::scalar(10)},
                   {3, 1, 1});
  Running run(builder);
  std::array<int32_t, 4> in = {1, 2, 3, 4};
  std::array<int32_t, 4> hidden = {};
  std::array<int32_t, 4> out = {-1, -1, -1, -1};
  ASSERT_TRUE(run.bind("in", storage(in)) && run.bind("hidden", storage(hidden)) &&
              run.bind("out", storage(out)));
  ASSERT_TRUE(run.issue());
  EXPECT_EQ(hidden, (std::array<int32_t, 4>{2, 3, 4, 5}));
  EXPECT_EQ(out, (std::array<int32_t, 4>{13, 14, 15, -1}));
}

TEST(CpuIssue, KernelSeesTheShapeAndAllWorkgroupsOfItsDispatch) {
  PlanBuilder builder;
  builder.dispatch(store_shape, {builder.binding("out")}, {2, 3, 2});
  PreparedPlan plan = builder.plan();
  plan.entries[0].workgroup_size = {8, 4, 1};
  Running run(builder);
  run.invocation = nullptr;
  run.program = run.device->materialize(
      {{plan, plan.programs[0]}, &run.parameters, builder.entries(), {}}, run.diagnostics);
  run.invocation = run.program->make_invocation();
  std::array<int32_t, 8> out = {};
  run.bind("out", storage(out));
  ASSERT_TRUE(run.issue());
  EXPECT_EQ(out, (std::array<int32_t, 8>{2, 3, 2, 8, 4, 1, 0, 12}));
}

// The first issue finds out that each of the two workgroups is worth a part of its own.
TEST(CpuIssue, FewWorkgroupsWithMuchWorkAreSpread) {
  if (!has_two_cores()) GTEST_SKIP() << "needs two cores";
  PlanBuilder builder;
  builder.dispatch(take_time, {builder.binding("calls")}, {2, 1, 1});
  Running run(builder, 2);
  std::atomic<uint64_t> calls = 0;
  run.bind("calls", storage(calls));
  ASSERT_TRUE(run.issue());
  EXPECT_EQ(calls.load(), 1u);
  ASSERT_TRUE(run.issue());
  EXPECT_EQ(calls.load(), 3u);
}

TEST(CpuIssue, ZeroCountsDoNothingAndKeepTheOrderAroundThem) {
  PlanBuilder builder;
  const Argument state = builder.binding("state");
  builder.dispatch(append, {state, PlanBuilder::scalar(1)});
  builder.begin(Kind::Concurrent);
  builder.dispatch(append, {state, PlanBuilder::scalar(2)}, {1, 0, 1});
  builder.dispatch(append, {state, PlanBuilder::scalar(2)}, {0, 0, 0});
  builder.end();
  builder.dispatch(append, {state, PlanBuilder::scalar(2)});
  Running run(builder);
  int32_t value = 0;
  run.bind("state", storage(value));
  ASSERT_TRUE(run.issue());
  EXPECT_EQ(value, 1 * 3 + 2);
}

// Issues a thousand times with other storage each time; returns how many allocations that took
// after the first.
uint64_t allocations_of_rebinding(Running& run, bool sides) {
  std::vector<int32_t> in(1000);
  std::vector<int32_t> out(1000);
  std::array<std::array<int32_t, 2>, 2> side = {};
  for (int i = 0; i < 1000; ++i) in[static_cast<size_t>(i)] = i;
  uint64_t before = 0;
  for (size_t i = 0; i < 1000; ++i) {
    bool good = run.bind("in", storage(in[i])) && run.bind("out", storage(out[i]));
    if (sides) {
      good = good && run.bind("left", storage(side[0][i % 2])) &&
             run.bind("right", storage(side[1][i % 2]));
    }
    EXPECT_TRUE(good && run.issue());
    if (i == 0) before = allocation_count();
  }
  const uint64_t after = allocation_count();
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], i + 7);
  if (sides) {
    EXPECT_EQ(side[0], (std::array<int32_t, 2>{998 + 1, 999 + 1}));
    EXPECT_EQ(side[1], (std::array<int32_t, 2>{998 + 2, 999 + 2}));
  }
  return after - before;
}

TEST(CpuIssue, RebindingAThousandTimesAllocatesNothingAfterTheFirstIssue) {
  PlanBuilder builder;
  for (int i = 0; i < 100; ++i) {
    builder.dispatch(add, {builder.binding("in"), builder.binding("out"), PlanBuilder::scalar(7)});
  }
  Running run(builder);
  EXPECT_EQ(allocations_of_rebinding(run, false), 0u);
}

TEST(CpuIssue, SmallForksAllocateNothingAfterTheFirstIssue) {
  PlanBuilder builder;
  builder.begin(Kind::Concurrent);
  builder.dispatch(add, {builder.binding("in"), builder.binding("out"), PlanBuilder::scalar(7)});
  builder.dispatch(add, {builder.binding("in"), builder.binding("left"), PlanBuilder::scalar(1)});
  builder.dispatch(add, {builder.binding("in"), builder.binding("right"), PlanBuilder::scalar(2)});
  builder.end();
  Running run(builder);
  EXPECT_EQ(allocations_of_rebinding(run, true), 0u);
}

TEST(CpuIssue, ConcurrentSiblingsRunAtTheSameTime) {
  if (!has_two_cores()) GTEST_SKIP() << "needs two cores";
  PlanBuilder builder;
  const Argument place = builder.binding("place");
  builder.begin(Kind::Concurrent);
  builder.dispatch(meet, {place, PlanBuilder::scalar(2)});
  builder.begin(Kind::Serial);
  builder.dispatch(meet, {place, PlanBuilder::scalar(2)});
  builder.end();
  builder.end();
  builder.dispatch(increment, {builder.binding("place", 8)});
  Running run(builder, 2);
  std::array<std::atomic<uint64_t>, 2> place_of_meeting = {};
  run.bind("place", storage(place_of_meeting));
  ASSERT_TRUE(run.issue());
  // Two kernels met, and the third ran behind the join.
  EXPECT_EQ(place_of_meeting[1].load(), 3u);
}

TEST(CpuIssue, SiblingsInsideOfSiblingsRunAtTheSameTime) {
  if (!has_two_cores()) GTEST_SKIP() << "needs two cores";
  PlanBuilder builder;
  const Argument place = builder.binding("place");
  builder.begin(Kind::Concurrent);
  builder.dispatch(increment, {builder.binding("count")});
  builder.begin(Kind::Serial);
  builder.dispatch(increment, {builder.binding("count")});
  builder.begin(Kind::Concurrent);
  builder.dispatch(meet, {place, PlanBuilder::scalar(2)});
  builder.dispatch(meet, {place, PlanBuilder::scalar(2)});
  builder.end();
  builder.end();
  builder.end();
  Running run(builder, 2);
  std::array<std::atomic<uint64_t>, 2> place_of_meeting = {};
  std::atomic<uint64_t> count = 0;
  run.bind("place", storage(place_of_meeting));
  run.bind("count", storage(count));
  ASSERT_TRUE(run.issue());
  EXPECT_EQ(place_of_meeting[1].load(), 2u);
  EXPECT_EQ(count.load(), 2u);
}

TEST(CpuIssue, JoinSeesWhatAllSiblingsWroteAtEveryIssue) {
  PlanBuilder builder;
  builder.begin(Kind::Concurrent);
  builder.dispatch(add, {builder.binding("in"), builder.binding("a"), PlanBuilder::scalar(1)},
                   {2000, 1, 1});
  builder.dispatch(add, {builder.binding("in"), builder.binding("b"), PlanBuilder::scalar(2)},
                   {2000, 1, 1});
  builder.end();
  builder.dispatch(sum, {builder.binding("a", 4 * 1999), builder.binding("b", 4 * 1999),
                         builder.binding("out")});
  Running run(builder, 4);
  std::vector<int32_t> in(2000);
  std::vector<int32_t> a(2000);
  std::vector<int32_t> b(2000);
  int32_t out = 0;
  run.bind("in", std::as_writable_bytes(std::span(in)));
  run.bind("a", std::as_writable_bytes(std::span(a)));
  run.bind("b", std::as_writable_bytes(std::span(b)));
  run.bind("out", storage(out));
  for (int32_t i = 0; i < 500; ++i) {
    in[1999] = i;
    ASSERT_TRUE(run.issue());
    ASSERT_EQ(out, 2 * i + 3);
  }
}

TEST(CpuIssue, EachWorkgroupOfAWideDispatchRunsOnce) {
  constexpr uint32_t kSide = 300;
  PlanBuilder builder;
  builder.dispatch(add, {builder.binding("in"), builder.binding("out"), PlanBuilder::scalar(5)},
                   {kSide, kSide, 1});
  builder.dispatch(increment, {builder.binding("count")}, {0xffffffffu, 0x7fffffffu, 1});
  constexpr size_t kElements = size_t{kSide} * kSide;
  for (const unsigned threads : {2u, 3u}) {
    Running run(builder, threads);
    std::vector<int32_t> in(kElements, 1);
    std::vector<int32_t> out(kElements);
    std::atomic<uint64_t> count = 0;
    run.bind("in", std::as_writable_bytes(std::span(in)));
    run.bind("out", std::as_writable_bytes(std::span(out)));
    run.bind("count", storage(count));
    for (int i = 0; i < 100; ++i) {
      std::fill(out.begin(), out.end(), 0);
      count = 0;
      ASSERT_TRUE(run.issue());
      ASSERT_EQ(out, std::vector<int32_t>(kElements, 6));
      ASSERT_EQ(count.load(), uint64_t{0xffffffffu} * 0x7fffffffu);
    }
  }
}

// out[w] += 1 for each workgroup w, which takes a few hundred nanoseconds; out[kPlaces + w] is set
// when that was not the thread that issues.
constexpr size_t kPlaces = 10;
const void* this_thread() {
  static thread_local char here;
  return &here;
}
void count_slowly(const uint64_t* args, const Shape*, uint64_t begin, uint64_t end) {
  const bool other = reinterpret_cast<const void*>(args[1]) != this_thread();
  for (uint64_t w = begin; w < end; ++w) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(400);
    while (std::chrono::steady_clock::now() < until) {
    }
    ++ints(args[0])[w];
    if (other) ints(args[0])[kPlaces + w] = 1;
  }
}

// Two dispatches behind one another, and two that are concurrent, each with too little work for a
// thread that would have to be woken.
void dispatch_slow_counts(PlanBuilder& builder) {
  const Argument here = PlanBuilder::scalar(reinterpret_cast<uintptr_t>(this_thread()));
  builder.dispatch(count_slowly, {builder.binding("out"), here}, {kPlaces, 1, 1});
  builder.dispatch(count_slowly, {builder.binding("out"), here}, {kPlaces, 1, 1});
  builder.begin(Kind::Concurrent);
  builder.dispatch(count_slowly, {builder.binding("out"), here}, {4, 1, 1});
  builder.dispatch(count_slowly, {builder.binding("out", 16), here}, {4, 1, 1});
  builder.end();
}

// A few microseconds of work are shared with a thread that is there. Whatever the machine does,
// every workgroup runs once; and sooner or later the other thread does its half of each.
TEST(CpuIssue, SmallForksAreSharedWithAThreadThatIsThere) {
  if (!has_two_cores()) GTEST_SKIP() << "needs two cores";
  PlanBuilder builder;
  dispatch_slow_counts(builder);
  Running run(builder, 2);
  std::array<int32_t, 2 * kPlaces> out = {};
  run.bind("out", storage(out));
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int32_t issues = 0;
  while ((issues < 3000 || out[2 * kPlaces - 1] == 0) && std::chrono::steady_clock::now() < limit) {
    ASSERT_TRUE(run.issue());
    ++issues;
    for (size_t w = 0; w < kPlaces; ++w) ASSERT_EQ(out[w], issues * (w < 8 ? 3 : 2));
  }
  if (out[2 * kPlaces - 1] == 0) GTEST_SKIP() << "no core was free";
}

TEST(CpuIssue, SmallForksOfATracedIssueRunOnce) {
  PlanBuilder builder;
  dispatch_slow_counts(builder);
  Running run(builder, 2);
  std::array<int32_t, 2 * kPlaces> out = {};
  run.bind("out", storage(out));
  for (int32_t issue = 1; issue <= 2000; ++issue) {
    Trace trace;
    ASSERT_TRUE(run.invocation->issue_traced(trace, run.diagnostics));
    for (size_t w = 0; w < kPlaces; ++w) ASSERT_EQ(out[w], issue * (w < 8 ? 3 : 2));
    uint64_t workgroups = 0;
    for (const DispatchEvent& event : trace.events()) {
      workgroups += event.last_workgroup - event.first_workgroup;
    }
    ASSERT_EQ(workgroups, 2 * kPlaces + 8);
  }
}

TEST(CpuIssue, SmallForksOfManyInvocationsRunOnce) {
  PlanBuilder builder;
  dispatch_slow_counts(builder);
  Running run(builder, 2);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      Diagnostics diagnostics;
      const auto invocation = run.program->make_invocation();
      std::array<int32_t, 2 * kPlaces> out = {};
      invocation->bind("out", storage(out), diagnostics);
      for (int32_t issue = 1; issue <= 2000; ++issue) {
        if (!invocation->issue(diagnostics)) ++wrong;
        for (size_t w = 0; w < kPlaces; ++w) {
          if (out[w] != issue * (w < 8 ? 3 : 2)) ++wrong;
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(CpuIssue, DeepTreesNeedNoStack) {
  constexpr int kDepth = 100'000;
  for (const bool alternate : {false, true}) {
    PlanBuilder builder;
    const Argument count = builder.binding("count");
    for (int i = 0; i < kDepth; ++i) {
      builder.begin(Kind::Concurrent);
      if (alternate) builder.dispatch(increment, {count});
      builder.begin(Kind::Serial);
      if (i % 2 == 0) builder.dispatch(increment, {count});
    }
    Running run(builder, 4);
    std::atomic<uint64_t> counted = 0;
    run.bind("count", storage(counted));
    for (int i = 0; i < 3; ++i) {
      counted = 0;
      ASSERT_TRUE(run.issue());
      EXPECT_EQ(counted.load(), static_cast<uint64_t>(kDepth / 2 + (alternate ? kDepth : 0)));
    }
  }
}

TEST(CpuIssue, WideForksRunEachSiblingOnce) {
  PlanBuilder builder;
  const Argument count = builder.binding("count");
  builder.begin(Kind::Concurrent);
  for (int i = 0; i < 50'000; ++i) {
    builder.dispatch(increment, {count});
    builder.begin(Kind::Serial);
    builder.dispatch(increment, {count});
    builder.dispatch(increment, {count});
    builder.end();
  }
  Running run(builder, 4);
  std::atomic<uint64_t> counted = 0;
  run.bind("count", storage(counted));
  for (uint64_t i = 1; i <= 10; ++i) {
    ASSERT_TRUE(run.issue());
    ASSERT_EQ(counted.load(), i * 150'000);
  }
}

TEST(CpuIssue, InvocationsOfOneProgramAreIndependent) {
  PlanBuilder builder;
  builder.begin(Kind::Concurrent);
  builder.dispatch(add, {builder.binding("in"), builder.binding("a"), PlanBuilder::scalar(1)},
                   {5000, 1, 1});
  builder.dispatch(add, {builder.binding("in"), builder.binding("b"), PlanBuilder::scalar(2)},
                   {5000, 1, 1});
  Running run(builder, 2);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int32_t caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      Diagnostics diagnostics;
      const auto invocation = run.program->make_invocation();
      std::vector<int32_t> in(5000, caller);
      std::vector<int32_t> a(5000);
      std::vector<int32_t> b(5000);
      invocation->bind("in", std::as_writable_bytes(std::span(in)), diagnostics);
      invocation->bind("a", std::as_writable_bytes(std::span(a)), diagnostics);
      invocation->bind("b", std::as_writable_bytes(std::span(b)), diagnostics);
      for (int i = 0; i < 50; ++i) {
        if (!invocation->issue(diagnostics)) ++wrong;
        if (a != std::vector<int32_t>(5000, caller + 1)) ++wrong;
        if (b != std::vector<int32_t>(5000, caller + 2)) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(CpuIssue, TraceHoldsEachDispatchOnceInItsOrder) {
  PlanBuilder builder;
  builder.dispatch(increment, {builder.binding("count")}, {3, 1, 1});
  builder.begin(Kind::Concurrent);
  builder.dispatch(increment, {builder.binding("count")});
  builder.dispatch(increment, {builder.binding("count")}, {0, 1, 1});
  builder.dispatch(increment, {builder.binding("count")});
  builder.end();
  builder.dispatch(increment, {builder.binding("count")}, {100, 10, 1});
  Running run(builder, 2);
  std::atomic<uint64_t> count = 0;
  run.bind("count", storage(count));
  Trace trace;
  ASSERT_TRUE(run.invocation->issue_traced(trace, run.diagnostics));
  EXPECT_EQ(count.load(), 3u + 2u + 1000u);
  std::array<uint64_t, 5> workgroups = {};
  uint64_t end_of_first = 0;
  uint64_t end_of_siblings = 0;
  for (const DispatchEvent& event : trace.events()) {
    workgroups[event.command] += event.last_workgroup - event.first_workgroup;
    EXPECT_LE(event.begin, event.end);
    if (event.command == 0) {
      end_of_first = event.end;
    } else if (event.command == 4) {
      EXPECT_GE(event.begin, end_of_siblings);
    } else {
      EXPECT_GE(event.begin, end_of_first);
      end_of_siblings = std::max(end_of_siblings, event.end);
    }
  }
  EXPECT_EQ(workgroups, (std::array<uint64_t, 5>{3, 1, 0, 1, 1000}));
  EXPECT_EQ(trace.events().front().thread, 0u);
  EXPECT_EQ(trace.events().back().count, (std::array<uint32_t, 3>{100, 10, 1}));
  EXPECT_GE(trace.duration(), trace.events().back().end);
  // A later issue is not recorded.
  const size_t recorded = trace.events().size();
  ASSERT_TRUE(run.issue());
  EXPECT_EQ(trace.events().size(), recorded);
}

TEST(CpuIssue, ScheduleWithoutCommandsIssues) {
  PlanBuilder builder;
  builder.begin(Kind::Concurrent);
  Running run(builder);
  ASSERT_NE(run.invocation, nullptr);
  EXPECT_TRUE(run.issue());
}

TEST(CpuIssue, UnboundStorageIsReportedAndNothingRuns) {
  PlanBuilder builder;
  builder.dispatch(increment, {builder.binding("count")});
  builder.dispatch(sum, {builder.binding("a"), builder.binding("b"), builder.binding("count")});
  Running run(builder);
  std::atomic<uint64_t> count = 0;
  run.bind("count", storage(count));
  EXPECT_FALSE(run.issue());
  EXPECT_EQ(count.load(), 0u);
  ASSERT_EQ(run.diagnostics.all().size(), 2u);
  EXPECT_EQ(run.diagnostics.all()[0].id, Diag::RunBindingMissing);
  EXPECT_EQ(run.diagnostics.all()[0].param("name"), "a");
  EXPECT_EQ(run.diagnostics.all()[1].param("name"), "b");
}

}  // namespace
}  // namespace loom
