// Transients and counts that are read at issue, through the device interface.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "loom/runtime/cpu/count_allocations.h"
#include "loom/runtime/cpu/cpu_device.h"
#include "loom/runtime/cpu/plan_builder.h"
#include "loom/runtime/cpu/two_cores.h"

namespace loom {
namespace {

using Kind = ScheduleNode::Kind;
using Shape = LoomDispatchShape;

uint32_t* words(uint64_t slot) { return reinterpret_cast<uint32_t*>(slot); }

// to[0..2] = from[0..2]
void copy_counts(const uint64_t* args, const Shape*, uint64_t, uint64_t) {
  for (int axis = 0; axis < 3; ++axis) words(args[1])[axis] = words(args[0])[axis];
}
// Adds up workgroups, and keeps the counts that the kernel sees.
void tally(const uint64_t* args, const Shape* shape, uint64_t begin, uint64_t end) {
  reinterpret_cast<std::atomic<uint64_t>*>(args[0])->fetch_add(end - begin);
  reinterpret_cast<std::atomic<uint64_t>*>(args[0])[1] =
      shape->count[0] * 100 + shape->count[1] * 10 + shape->count[2];
}
// Says that it was here, and waits until `args[1]` was.
void say(const uint64_t* args, const Shape*, uint64_t, uint64_t) {
  reinterpret_cast<std::atomic<uint64_t>*>(args[0])->store(1);
}
void await(const uint64_t* args, const Shape*, uint64_t, uint64_t) {
  auto& said = *reinterpret_cast<std::atomic<uint64_t>*>(args[0]);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (said.load() == 0 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  *words(args[1]) = static_cast<uint32_t>(said.load());
}
void nothing(const uint64_t*, const Shape*, uint64_t, uint64_t) {}
// Writes a number into its transient, lets others do the same, and adds up what it finds there.
void stamp(const uint64_t* args, const Shape*, uint64_t, uint64_t) {
  words(args[0])[0] = words(args[1])[0];
}
void unstamp(const uint64_t* args, const Shape*, uint64_t, uint64_t) {
  words(args[1])[0] = words(args[0])[0];
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

using Counts = std::array<uint32_t, 3>;

// Copies the counts into a transient and dispatches by them, at once or on both sides of a fork.
void build_counted(PlanBuilder& builder, bool forked) {
  const Argument counts = builder.transient("counts", 64, 12);
  builder.dispatch(copy_counts, {builder.binding("from"), counts});
  if (forked) {
    builder.begin(Kind::Concurrent);
    builder.dispatch(nothing, {});
    builder.begin(Kind::Serial);
  }
  builder.dispatch_indirect(tally, {builder.binding("to")}, counts);
  if (forked) {
    builder.end();
    builder.end();
  }
}

TEST(IndirectCounts, AreReadBehindTheCommandThatWritesThem) {
  for (const bool forked : {false, true}) {
    PlanBuilder builder;
    build_counted(builder, forked);
    Running run(builder, 3);
    Counts from = {};
    std::array<std::atomic<uint64_t>, 2> to = {};
    run.bind("from", storage(from));
    run.bind("to", storage(to));
    // Few, many, none and many again: what one issue measured must not stick to the next.
    for (const Counts& counts :
         {Counts{2, 3, 1}, Counts{50, 40, 2}, Counts{0, 7, 7}, Counts{1, 1, 1}, Counts{9, 9, 9}}) {
      from = counts;
      to[0] = to[1] = 0;
      ASSERT_TRUE(run.issue());
      const uint64_t all = uint64_t{counts[0]} * counts[1] * counts[2];
      EXPECT_EQ(to[0].load(), all);
      EXPECT_EQ(to[1].load(), all == 0 ? 0 : counts[0] * 100 + counts[1] * 10 + counts[2]);
    }
  }
}

TEST(IndirectCounts, OfABindingFollowWhatIsBound) {
  PlanBuilder builder;
  builder.dispatch_indirect(tally, {builder.binding("to")}, builder.binding("counts", 4));
  Running run(builder);
  const Program::Binding& counted = run.program->bindings()[*run.program->find("counts")];
  EXPECT_EQ(counted.need.bytes, 16u);
  EXPECT_EQ(counted.need.alignment, 4u);
  std::array<std::atomic<uint64_t>, 2> to = {};
  std::array<uint32_t, 4> few = {99, 2, 1, 1};
  std::array<uint32_t, 4> many = {99, 5, 2, 1};
  run.bind("to", storage(to));
  run.bind("counts", storage(few));
  ASSERT_TRUE(run.issue());
  EXPECT_EQ(to[0].exchange(0), 2u);
  run.bind("counts", storage(many));
  ASSERT_TRUE(run.issue());
  EXPECT_EQ(to[0].load(), 10u);
}

TEST(IndirectCounts, ThatCannotBeNumberedAreReportedAndTheRestRuns) {
  for (const bool forked : {false, true}) {
    PlanBuilder builder;
    build_counted(builder, forked);
    builder.dispatch(tally, {builder.binding("to")}, {3, 1, 1});
    Running run(builder, 2);
    Counts from = {0xffffffff, 0xffffffff, 0xffffffff};
    std::array<std::atomic<uint64_t>, 2> to = {};
    run.bind("from", storage(from));
    run.bind("to", storage(to));
    EXPECT_FALSE(run.issue());
    EXPECT_EQ(to[0].load(), 3u);
    ASSERT_EQ(run.diagnostics.all().size(), 1u);
    EXPECT_EQ(run.diagnostics.all()[0].id, Diag::RunDispatchSize);
    from = {1, 1, 1};
    EXPECT_TRUE(run.issue());
    EXPECT_EQ(to[0].load(), 7u);
  }
}

TEST(IndirectCounts, TraceTellsTheWorkgroupsThatRan) {
  PlanBuilder builder;
  build_counted(builder, false);
  Running run(builder, 1);
  Counts from = {4, 2, 1};
  std::array<std::atomic<uint64_t>, 2> to = {};
  run.bind("from", storage(from));
  run.bind("to", storage(to));
  Trace trace;
  ASSERT_TRUE(run.invocation->issue_traced(trace, run.diagnostics));
  ASSERT_EQ(trace.events().size(), 2u);
  EXPECT_EQ(trace.events()[1].command, 1u);
  EXPECT_EQ(trace.events()[1].last_workgroup, 8u);
}

TEST(Transients, LieAlignedInTheSlabOfTheirInvocation) {
  PlanBuilder builder;
  const Argument hidden = builder.transient("hidden", 128, 16);
  builder.dispatch(stamp, {hidden, builder.binding("in")});
  builder.dispatch(unstamp, {hidden, builder.binding("out")});
  Running run(builder);
  EXPECT_EQ(run.program->slab().bytes, 144u);
  EXPECT_EQ(run.program->slab().alignment, 64u);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (uint32_t caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      Diagnostics diagnostics;
      const auto invocation = run.program->make_invocation();
      uint32_t in = 0;
      uint32_t out = 0;
      invocation->bind("in", storage(in), diagnostics);
      invocation->bind("out", storage(out), diagnostics);
      for (uint32_t i = 0; i < 2000; ++i) {
        in = caller * 10'000 + i;
        if (!invocation->issue(diagnostics) || out != in) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Transients, ThatAreTooSmallOrMisalignedForAKernelAreRefused) {
  PlanBuilder builder;
  builder.dispatch(nothing, {builder.transient("hidden", 0, 16)});
  const std::vector<StorageNeed> needs = {{32, 128}};
  const auto device = make_cpu_device({});
  ParameterSet parameters;
  Diagnostics diagnostics;
  EXPECT_EQ(device->materialize({builder.view(), &parameters, builder.entries(), {}, {}, needs},
                                diagnostics),
            nullptr);
  ASSERT_EQ(diagnostics.all().size(), 2u);
  EXPECT_EQ(diagnostics.all()[0].id, Diag::RunTransientSize);
  EXPECT_EQ(diagnostics.all()[1].id, Diag::RunTransientAlignment);
}

TEST(Transients, AndIndirectCountsAllocateNothingAtIssue) {
  PlanBuilder builder;
  build_counted(builder, true);
  Running run(builder, 2);
  Counts from = {3, 1, 1};
  std::array<std::atomic<uint64_t>, 2> to = {};
  run.bind("from", storage(from));
  run.bind("to", storage(to));
  run.issue();
  const uint64_t before = allocation_count();
  for (int i = 0; i < 1000; ++i) run.issue();
  EXPECT_EQ(allocation_count() - before, 0u);
}

// concurrent{serial{A, B}, serial{C, D}}: no edge leads from C to B. C waits until B has run, so
// the issue ends in time only if B starts before C ends, whichever branch is written first.
TEST(Schedule, TheSecondOfOneBranchStartsBeforeTheFirstOfAnotherEnds) {
  if (!has_two_cores()) GTEST_SKIP() << "needs two cores";
  for (const bool waiting_first : {false, true}) {
    PlanBuilder builder;
    const Argument said = builder.binding("said");
    const Argument heard_at = builder.binding("heard");
    builder.begin(Kind::Concurrent);
    for (const bool waiting : {waiting_first, !waiting_first}) {
      builder.begin(Kind::Serial);
      if (waiting) {
        builder.dispatch(await, {said, heard_at});  // C
        builder.dispatch(nothing, {});              // D
      } else {
        builder.dispatch(nothing, {});  // A
        builder.dispatch(say, {said});  // B
      }
      builder.end();
    }
    builder.end();
    Running run(builder, 2);
    std::atomic<uint64_t> was_said = 0;
    uint32_t heard = 0;
    run.bind("said", storage(was_said));
    run.bind("heard", storage(heard));
    ASSERT_TRUE(run.issue());
    EXPECT_EQ(heard, 1u);
  }
}

}  // namespace
}  // namespace loom
