// Storage and issues that nobody waits for.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "api_test.h"

namespace loom {
namespace {

struct Adder {
  explicit Adder(unsigned threads = 2) : messages(context), device(api::Device::cpu(threads)) {
    api::Modules inputs(context);
    inputs.add(kAddLibrary, "library.loom", messages);
    inputs.add(kAddProgram, "run.loom", messages);
    auto linked = api::link(inputs, {}, {}, messages);
    if (!linked) return;
    const auto plan = api::prepare(std::move(*linked), {.roots = {"run"}}, messages);
    if (!plan) return;
    const auto code = api::compile(*plan, {.tier = api::Tier::Fast}, messages);
    if (code) program = api::materialize(device, *plan, 0, *code, {}, messages);
  }
  api::Context context;
  api::Messages messages;
  api::Device device;
  std::optional<api::Program> program;
};

TEST(Issue, ImportedMemoryIsUsedWhereItLies) {
  Adder adder;
  ASSERT_TRUE(adder.program) << adder.messages.text();
  alignas(64) std::array<float, 4> input = {1, 2, 3, 4};
  const api::Storage in = api::Storage::import(adder.device, input.data(), sizeof input);
  EXPECT_EQ(static_cast<void*>(in.bytes().data()), input.data());
  const api::Storage out = api::Storage::allocate(adder.device, 16);
  EXPECT_EQ(out.bytes()[0], std::byte{0});
  api::Invocation invocation(*adder.program);
  ASSERT_TRUE(invocation.bind("input", in, adder.messages));
  ASSERT_TRUE(invocation.bind(1, out, adder.messages));
  input[2] = 30;
  ASSERT_TRUE(invocation.issue(adder.messages));
  EXPECT_EQ(reinterpret_cast<const float*>(out.bytes().data())[2], 32.0f);
  // The program's rules for storage hold for imported memory, too.
  const api::Storage small = api::Storage::import(adder.device, input.data(), 12);
  EXPECT_FALSE(invocation.bind("input", small, adder.messages));
  EXPECT_EQ(adder.messages.all().at(0).code, "RUN/002");
}

TEST(Issue, AStartedIssueIsWaitedForOrCallsBack) {
  Adder adder;
  ASSERT_TRUE(adder.program);
  std::array<float, 4> input = {1, 2, 3, 4};
  std::array<float, 4> output = {};
  api::Invocation invocation(*adder.program);
  invocation.bind("input", storage(input), adder.messages);
  invocation.bind("output", storage(output), adder.messages);
  std::atomic<bool> called = false;
  std::thread::id where;
  const api::Completion completion = invocation.start([&] {
    where = std::this_thread::get_id();
    called = true;
    called.notify_all();
  });
  EXPECT_TRUE(completion.wait(adder.messages));
  EXPECT_TRUE(completion.done());
  EXPECT_EQ(output, (std::array<float, 4>{3, 4, 5, 6}));
  called.wait(false);
  EXPECT_NE(where, std::this_thread::get_id());
  EXPECT_FALSE(invocation.in_flight());
  EXPECT_TRUE(invocation.issue(adder.messages));
}

TEST(Issue, AFailedIssueSaysWhyWhenItIsWaitedFor) {
  Adder adder;
  ASSERT_TRUE(adder.program);
  api::Invocation invocation(*adder.program);
  const api::Completion completion = invocation.start();
  EXPECT_FALSE(completion.wait(adder.messages));
  ASSERT_EQ(adder.messages.all().size(), 2u);
  EXPECT_EQ(adder.messages.all()[0].code, "RUN/003");
}

TEST(Issue, ACallbackMayStartTheNextIssue) {
  Adder adder;
  ASSERT_TRUE(adder.program);
  std::array<float, 4> values = {};
  api::Invocation invocation(*adder.program);
  invocation.bind("input", storage(values), adder.messages);
  invocation.bind("output", storage(values), adder.messages);
  std::atomic<int> left = 10;
  std::function<void()> again = [&] {
    if (--left != 0) {
      invocation.start(again);
    } else {
      left.notify_all();
    }
  };
  invocation.start(again);
  for (int now = left; now != 0; now = left) left.wait(now);
  EXPECT_EQ(values[0], 20.0f);
}

TEST(Issue, IssuesOfSeveralInvocationsAreInFlightAtOnceAndHandlesMayGo) {
  constexpr size_t kCount = 64;
  std::vector<std::array<float, 4>> values(kCount);
  std::vector<api::Completion> completions;
  api::Context context;
  api::Messages messages(context);
  {
    Adder adder;
    ASSERT_TRUE(adder.program);
    for (auto& value : values) {
      api::Invocation invocation(*adder.program);
      invocation.bind("input", storage(value), messages);
      invocation.bind("output", storage(value), messages);
      completions.push_back(invocation.start());
    }
  }
  for (const api::Completion& completion : completions) EXPECT_TRUE(completion.wait(messages));
  for (const auto& value : values) EXPECT_EQ(value[3], 2.0f);
}

}  // namespace
}  // namespace loom
