// Concurrent branches, reuse, rebinding, several issues at once, and long programs.
#include <thread>

#include "devices.h"

namespace loom::device {
namespace {

class Issue : public Fixture {};
LOOM_ON_EVERY_DEVICE(Issue);

constexpr size_t kNumbers = 16;

std::vector<int32_t> all(int32_t value) { return std::vector<int32_t>(kNumbers, value); }

// Branches add different amounts to buffers of their own; a serial branch and one within it too.
const std::string kBranches =
    R"(command.program.def public @run() launch(%in: buffer, %a: buffer, %b: buffer, %c: buffer) {
  %n = index.constant 16 : index
  %bytes = index.constant 64 : offset
  %t = buffer.alloca<global> align(16) %bytes : buffer
  %u = buffer.alloca<global> align(16) %bytes : buffer
  command.concurrent {
    kernel.launch @increment[%n](%in, %a) : [index](buffer, buffer)
    command.serial {
      kernel.launch @increment[%n](%in, %t) : [index](buffer, buffer)
      command.concurrent {
        kernel.launch @increment[%n](%t, %b) : [index](buffer, buffer)
        kernel.launch @increment[%n](%t, %u) : [index](buffer, buffer)
      }
      kernel.launch @increment[%n](%u, %c) : [index](buffer, buffer)
    }
  }
  kernel.launch @increment[%n](%a, %a) : [index](buffer, buffer)
  command.return
}
)";

TEST_P(Issue, ConcurrentBranchesEndBeforeWhatFollows) {
  for (const unsigned threads : {1u, 2u, 0u}) {
    build(kBranches, threads);
    const api::Storage in = storage_of(all(10));
    const api::Storage a = storage(64);
    const api::Storage b = storage(64);
    const api::Storage c = storage(64);
    api::Invocation run = invocation();
    for (const auto& [name, bytes] :
         {std::pair("in", &in), std::pair("a", &a), std::pair("b", &b), std::pair("c", &c)}) {
      ASSERT_TRUE(run.bind(name, *bytes, messages_));
    }
    for (int issue = 0; issue < 50; ++issue) {
      ASSERT_TRUE(run.issue(messages_)) << messages_.text();
      ASSERT_EQ(values_in<int32_t>(a, kNumbers), all(12));
      ASSERT_EQ(values_in<int32_t>(b, kNumbers), all(12));
      ASSERT_EQ(values_in<int32_t>(c, kNumbers), all(13));
    }
  }
}

const std::string kTwice = R"(command.program.def public @run() launch(%from: buffer, %to: buffer) {
  %n = index.constant 16 : index
  %bytes = index.constant 64 : offset
  %base = index.constant 0 : offset
  %t = buffer.alloca<global> align(16) %bytes : buffer
  %out = buffer.view %to[%base] : buffer -> view<16xi32>
  kernel.launch @increment[%n](%from, %t) : [index](buffer, buffer)
  kernel.launch @increment[%n](%t, %out) : [index](buffer, view<16xi32>)
  command.return
}
)";

TEST_P(Issue, APreparedProgramIsReusedWithoutLeftovers) {
  build(kTwice);
  const api::Storage values = storage_of(all(0));
  api::Invocation run = invocation();
  ASSERT_TRUE(run.bind("from", values, messages_));
  ASSERT_TRUE(run.bind("to", values, messages_));
  for (int issue = 0; issue < 200; ++issue) ASSERT_TRUE(run.issue(messages_));
  EXPECT_EQ(values_in<int32_t>(values, kNumbers), all(400));
}

TEST_P(Issue, RebindingCountsFromTheNextIssueOn) {
  build(kTwice);
  const api::Storage from = storage_of(all(5));
  const api::Storage other = storage_of(all(-5));
  const api::Storage first = storage(64);
  const api::Storage second = storage(64);
  api::Invocation run = invocation();
  ASSERT_TRUE(run.bind("from", from, messages_));
  ASSERT_TRUE(run.bind("to", first, messages_));
  ASSERT_TRUE(run.issue(messages_));
  ASSERT_TRUE(run.bind("to", second, messages_));
  ASSERT_TRUE(run.bind("from", other, messages_));
  ASSERT_TRUE(run.issue(messages_));
  EXPECT_EQ(values_in<int32_t>(first, kNumbers), all(7));
  EXPECT_EQ(values_in<int32_t>(second, kNumbers), all(-3));
  // What is refused leaves the binding as it was.
  const api::Storage small = storage(60);
  EXPECT_FALSE(run.bind("to", small, messages_));
  EXPECT_FALSE(run.bind("nothing", first, messages_));
  EXPECT_EQ(codes(), (std::vector<std::string>{"RUN/002", "RUN/011"}));
  upload_values(second, all(0));
  ASSERT_TRUE(run.issue(messages_));
  EXPECT_EQ(values_in<int32_t>(second, kNumbers), all(-3));
}

TEST_P(Issue, WithoutStorageRunsNothing) {
  build(kTwice);
  const api::Storage from = storage_of(all(5));
  api::Invocation run = invocation();
  ASSERT_TRUE(run.bind("from", from, messages_));
  EXPECT_FALSE(run.issue(messages_));
  EXPECT_EQ(codes(), std::vector<std::string>{"RUN/003"});
}

// Threads issue invocations of one program, each with storage of its own, all at the same time.
TEST_P(Issue, InvocationsAreIndependentOfEachOther) {
  build(kTwice);
  constexpr size_t kThreads = 8;
  std::vector<api::Storage> storages;
  storages.reserve(kThreads);
  for (size_t i = 0; i < kThreads; ++i) {
    storages.push_back(storage_of(all(static_cast<int32_t>(i))));
  }
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, &values = storages[i]] {
      api::Messages messages(context_);
      api::Invocation run = invocation();
      run.bind("from", values, messages);
      run.bind("to", values, messages);
      for (int issue = 0; issue < 100; ++issue) run.issue(messages);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(values_in<int32_t>(storages[i], kNumbers), all(static_cast<int32_t>(i) + 200));
  }
}

TEST_P(Issue, StartedIssuesAreWaitedForInAnyOrder) {
  build(kTwice);
  constexpr size_t kStarted = 32;
  std::vector<api::Storage> storages;
  std::vector<api::Invocation> runs;
  std::vector<api::Completion> completions;
  completions.reserve(kStarted);
  for (size_t i = 0; i < kStarted; ++i) {
    storages.push_back(storage_of(all(static_cast<int32_t>(i))));
    runs.push_back(invocation());
    ASSERT_TRUE(runs.back().bind("from", storages.back(), messages_));
    ASSERT_TRUE(runs.back().bind("to", storages.back(), messages_));
  }
  for (api::Invocation& run : runs) completions.push_back(run.start());
  for (size_t i = kStarted; i-- > 0;) EXPECT_TRUE(completions[i].wait(messages_));
  for (size_t i = 0; i < kStarted; ++i) {
    EXPECT_EQ(values_in<int32_t>(storages[i], kNumbers), all(static_cast<int32_t>(i) + 2));
  }
}

// A chain of dependent commands with wide forks in it.
TEST_P(Issue, LongProgramsKeepTheirOrder) {
  std::string source =
      "command.program.def public @run() launch(%data: buffer, %other: buffer) {\n"
      "  %n = index.constant 16 : index\n";
  constexpr int kRounds = 150;
  for (int round = 0; round < kRounds; ++round) {
    source +=
        "  kernel.launch @increment[%n](%data, %data) : [index](buffer, buffer)\n"
        "  command.concurrent {\n"
        "    kernel.launch @increment[%n](%data, %data) : [index](buffer, buffer)\n"
        "    kernel.launch @increment[%n](%other, %other) : [index](buffer, buffer)\n"
        "  }\n";
  }
  build(source + "  command.return\n}\n");
  const api::Storage data = storage_of(all(0));
  const api::Storage other = storage_of(all(0));
  api::Invocation run = invocation();
  ASSERT_TRUE(run.bind("data", data, messages_));
  ASSERT_TRUE(run.bind("other", other, messages_));
  for (int issue = 1; issue <= 20; ++issue) {
    ASSERT_TRUE(run.issue(messages_));
    ASSERT_EQ(values_in<int32_t>(data, kNumbers), all(2 * kRounds * issue));
    ASSERT_EQ(values_in<int32_t>(other, kNumbers), all(kRounds * issue));
  }
}

// More workgroups than any machine has threads, all adding to one number.
TEST_P(Issue, ManyWorkgroupsAllRun) {
  build(R"(command.program.def public @run() launch(%to: buffer) {
  %many = index.constant 100000 : index
  kernel.launch @count[%many](%to) : [index](buffer)
  command.return
}
)");
  const api::Storage to = storage(4);
  api::Invocation run = invocation();
  ASSERT_TRUE(run.bind("to", to, messages_));
  for (int32_t issue = 1; issue <= 5; ++issue) {
    ASSERT_TRUE(run.issue(messages_));
    ASSERT_EQ(values_in<int32_t>(to, 1)[0], 100000 * issue);
  }
}

}  // namespace
}  // namespace loom::device
