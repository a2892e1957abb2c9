// Workers with workspaces: libraries shared by threads, requests that are streamed, code assembled.
#include <gtest/gtest.h>

#include <malloc.h>

#include <array>
#include <atomic>
#include <thread>

#include "api_test.h"
#include "loom/runtime/cpu/count_allocations.h"

namespace loom {
namespace {

struct Base {
  Base() : messages(context) {
    api::Modules modules(context);
    EXPECT_TRUE(modules.add(kAddLibrary, "library.loom", messages)) << messages.text();
    library = api::Library(std::move(modules));
  }
  api::Context context;
  api::Messages messages;
  api::Library library;
};

std::optional<api::LinkedModule> link_run(const Base& base, const api::Context& job,
                                          api::Messages& messages) {
  api::Modules inputs(job);
  if (!inputs.add(kAddProgram, "run.loom", messages)) return std::nullopt;
  return api::link(inputs, base.library, {}, messages);
}

std::array<float, 4> run(const api::Plan& plan, const api::Executables& code,
                         api::Messages& messages) {
  const auto program = api::materialize(api::Device::cpu(1), plan, 0, code, {}, messages);
  std::array<float, 4> input = {1, 2, 3, 4};
  std::array<float, 4> output = {};
  if (!program) return output;
  api::Invocation invocation(*program);
  invocation.bind("input", storage(input), messages);
  invocation.bind("output", storage(output), messages);
  invocation.issue(messages);
  return output;
}

constexpr std::array<float, 4> kExpected = {3, 4, 5, 6};

TEST(Workspace, ThreadsShareALibraryEachWithItsOwnContextAndWorkspace) {
  const Base base;
  std::atomic<int> good = 0;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 4; ++i) {
      workers.emplace_back([&] {
        api::Workspace workspace;
        for (int job = 0; job < 3; ++job) {
          const api::Context context = api::Context::over(base.context);
          api::Messages messages(context);
          auto linked = link_run(base, context, messages);
          if (!linked) continue;
          const auto plan = api::prepare(std::move(*linked),
                                         {.roots = {"run"}, .workspace = &workspace}, messages);
          if (!plan) continue;
          const auto code = api::compile(
              *plan, {.tier = api::Tier::Fast, .threads = 1, .workspace = &workspace}, messages);
          if (code && run(*plan, *code, messages) == kExpected) ++good;
        }
      });
    }
  }
  EXPECT_EQ(good, 12);
}

TEST(Workspace, MessagesOfAContextQuoteTheFilesBelowIt) {
  const Base base;
  const api::Context context = api::Context::over(base.context);
  api::Messages messages(context);
  api::Modules inputs(context);
  // The library's kernel takes two buffers.
  ASSERT_TRUE(
      inputs.add("kernel.decl @add(%n: index) launch(%from: buffer)\n"
                 "command.program.def public @run() launch(%input: buffer) {\n"
                 "  %four = index.constant 4 : index\n"
                 "  kernel.launch @add[%four](%input) : [index](buffer)\n"
                 "  command.return\n}\n",
                 "wrong.loom", messages))
      << messages.text();
  EXPECT_FALSE(api::link(inputs, base.library, {}, messages));
  EXPECT_NE(messages.text().find("wrong.loom:1:"), std::string::npos) << messages.text();
  EXPECT_NE(messages.text().find("library.loom:1:"), std::string::npos) << messages.text();
}

// Bytes that the C library has handed out.
size_t bytes_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kRounds = 200;  // a sanitizer owns memory; it finds what is lost at the end
#else
constexpr int kRounds = 10'000;
#endif

TEST(Workspace, TenThousandRoundsGrowMemoryByNothing) {
  const Base base;
  api::Workspace workspace;
  const auto round = [&] {
    const api::Context context = api::Context::over(base.context);
    api::Messages messages(context);
    auto linked = link_run(base, context, messages);
    ASSERT_TRUE(linked) << messages.text();
    const auto plan = api::prepare(std::move(*linked), {.workspace = &workspace}, messages);
    ASSERT_TRUE(plan) << messages.text();
    ASSERT_TRUE(api::compile(
        *plan, {.tier = api::Tier::Fast, .threads = 1, .workspace = &workspace}, messages));
  };
  for (int i = 0; i < 100; ++i) round();
  const size_t before = bytes_in_use();
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) round();
  EXPECT_LE(bytes_in_use(), before + 64 * 1024);
}

struct Collector : api::RequestRecipient {
  bool take(api::OwnedRequest&& request) override {
    if (requests.size() == limit) return false;
    requests.push_back(std::move(request));
    return true;
  }
  void commit() override { ++commits; }
  void cancel() override { ++cancels; }
  std::vector<api::OwnedRequest> requests;
  size_t limit = 100;
  int commits = 0;
  int cancels = 0;
};

TEST(Workspace, RequestsAreStreamedCompiledOneByOneAndAssembled) {
  const Base base;
  const api::Context context = api::Context::over(base.context);
  api::Messages messages(context);
  auto linked = link_run(base, context, messages);
  ASSERT_TRUE(linked);
  Collector collector;
  const auto plan = api::prepare(std::move(*linked), {.recipient = &collector}, messages);
  ASSERT_TRUE(plan);
  EXPECT_EQ(collector.commits, 1);
  EXPECT_EQ(collector.cancels, 0);
  EXPECT_TRUE(plan->requests().empty());
  ASSERT_EQ(collector.requests.size(), 1u);
  api::Workspace workspace;
  const auto code = api::compile(collector.requests[0].view(), {.workspace = &workspace}, messages);
  ASSERT_TRUE(code) << messages.text();
  const auto executables = api::assemble(*plan, {&*code, 1}, {}, messages);
  ASSERT_TRUE(executables);
  EXPECT_EQ(run(*plan, *executables, messages), kExpected);
  // An entry without code is found when the program is made.
  const auto none = api::assemble(*plan, {}, {}, messages);
  ASSERT_TRUE(none);
  EXPECT_FALSE(api::materialize(api::Device::cpu(1), *plan, 0, *none, {}, messages));
  EXPECT_EQ(messages.all().at(0).code, "RUN/009");
}

TEST(Workspace, ARefusedRequestCancelsThePlan) {
  const Base base;
  const api::Context context = api::Context::over(base.context);
  api::Messages messages(context);
  auto linked = link_run(base, context, messages);
  ASSERT_TRUE(linked);
  Collector collector;
  collector.limit = 0;
  EXPECT_FALSE(api::prepare(std::move(*linked), {.recipient = &collector}, messages));
  EXPECT_EQ(collector.commits, 0);
  EXPECT_EQ(collector.cancels, 1);
}

TEST(Workspace, APlanWithoutRequestsIsStillAPlan) {
  const Base base;
  const api::Context context = api::Context::over(base.context);
  api::Messages messages(context);
  auto linked = link_run(base, context, messages);
  ASSERT_TRUE(linked);
  const auto plan = api::prepare(std::move(*linked), {.plan_only = true}, messages);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->requests().empty());
  EXPECT_NE(plan->schedule_text(0).find("@add [4, 1, 1]"), std::string::npos);
}

}  // namespace
}  // namespace loom
