// The C++ API as an application uses it.
#include <gtest/gtest.h>

#include <stdlib.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <thread>

#include "api_test.h"
#include "loom/target/x86/kernel_abi.h"
#include "weights.h"

namespace loom {
namespace {

const std::vector<float> kWeights = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f};

// Everything up to a program that can be invoked.
struct Ready {
  explicit Ready(const std::string& specialize = "@twice:n=5")
      : weights("w.safetensors", {{"w", kWeights}}), messages(context) {
    api::Modules inputs(context);
    inputs.add_file(kFixtures + "/scale.loom", messages);
    auto linked = api::link(inputs, {}, {{"twice"}, {specialize}, {}, {}}, messages);
    if (linked) plan = api::prepare(std::move(*linked), {}, messages);
    if (plan) code = api::compile(*plan, {}, messages);
    if (!code) return;
    api::Parameters parameters;
    parameters.open(weights.path(), "params", messages);
    program = api::materialize(api::Device::cpu(), *plan, 0, *code, parameters, messages);
  }

  WeightsFile weights;
  api::Context context;
  api::Messages messages;
  std::optional<api::Plan> plan;
  std::optional<api::Executables> code;
  std::optional<api::Program> program;
};

void expect_twice(std::span<const float> input, std::span<const float> output, size_t active) {
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(output[i], i < active ? input[i] * kWeights[i] * kWeights[i] : -1.0f) << i;
  }
}

TEST(Api, TakesSourceToNumbers) {
  Ready ready;
  ASSERT_TRUE(ready.program) << ready.messages.text();
  EXPECT_EQ(ready.plan->program_count(), 1u);
  EXPECT_EQ(ready.plan->symbol(0), "twice");
  EXPECT_NE(ready.plan->schedule_text(0).find("wave 1: @scale [5, 1, 1]"), std::string::npos);
  EXPECT_TRUE(ready.plan->schedule_dot(0).starts_with("digraph"));
  EXPECT_TRUE(ready.plan->artifact(0).starts_with("LOOMCMD"));
  ASSERT_EQ(ready.plan->requests().size(), 1u);
  EXPECT_EQ(ready.plan->requests()[0].symbol, "scale");

  const std::vector<api::Binding> bindings = ready.program->bindings();
  ASSERT_EQ(bindings.size(), 2u);
  EXPECT_EQ(bindings[0].name, "input");
  EXPECT_EQ(bindings[0].ordinal, 1u);
  EXPECT_EQ(bindings[0].bytes, 32u);
  EXPECT_EQ(bindings[0].alignment, 4u);

  std::array<float, 8> input = {1, 2, 3, 4, 5, 6, 7, 8};
  std::array<float, 8> output;
  output.fill(-1);
  api::Invocation invocation(*ready.program);
  ASSERT_TRUE(invocation.bind("input", storage(input), ready.messages));
  ASSERT_TRUE(invocation.bind(2, storage(output), ready.messages));
  ASSERT_TRUE(invocation.issue(ready.messages)) << ready.messages.text();
  expect_twice(input, output, 5);
}

TEST(Api, ARequestIsAModuleThatStandsAlone) {
  Ready ready;
  ASSERT_TRUE(ready.plan);
  api::Modules alone(ready.context);
  EXPECT_TRUE(alone.add(std::string(ready.plan->requests()[0].bytecode), "request", ready.messages))
      << ready.messages.text();
}

TEST(Api, StorageSmallerThanAViewInsideOfAKernelIsRefused) {
  Ready ready;
  ASSERT_TRUE(ready.program);
  std::array<float, 7> small = {};
  api::Invocation invocation(*ready.program);
  EXPECT_FALSE(invocation.bind("input", storage(small), ready.messages));
  EXPECT_FALSE(invocation.issue(ready.messages));
  const std::vector<api::Message> all = ready.messages.all();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].code, "RUN/002");
  EXPECT_EQ(all[0].text, "binding 'input' has 28 bytes but a view of it needs 32");
  EXPECT_EQ(all[1].code, "RUN/003");
  EXPECT_EQ(all[2].code, "RUN/003");
  ready.messages.clear();
  EXPECT_FALSE(ready.messages.has_errors());
}

TEST(Api, HandlesKeepAliveWhatTheyWereMadeFrom) {
  std::optional<api::Invocation> invocation;
  {
    Ready ready("@twice:n=8");
    ASSERT_TRUE(ready.program);
    invocation.emplace(*ready.program);
  }
  const api::Context context;
  api::Messages messages(context);
  std::array<float, 8> input = {8, 7, 6, 5, 4, 3, 2, 1};
  std::array<float, 8> output = {};
  ASSERT_TRUE(invocation->bind("input", storage(input), messages));
  ASSERT_TRUE(invocation->bind("output", storage(output), messages));
  ASSERT_TRUE(invocation->issue(messages));
  expect_twice(input, output, 8);
}

TEST(Api, ThreadsShareAProgram) {
  Ready ready("@twice:n=8");
  ASSERT_TRUE(ready.program);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      api::Messages messages(ready.context);
      api::Invocation invocation(*ready.program);
      std::array<float, 8> input;
      input.fill(static_cast<float>(caller));
      std::array<float, 8> output = {};
      invocation.bind("input", storage(input), messages);
      invocation.bind("output", storage(output), messages);
      for (int i = 0; i < 100; ++i) EXPECT_TRUE(invocation.issue(messages));
      expect_twice(input, output, 8);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// In place of @scale: adds one.
void add_one(const uint64_t* args, const LoomDispatchShape*, uint64_t begin, uint64_t end) {
  const auto* const from = reinterpret_cast<const float*>(args[1]);
  auto* const to = reinterpret_cast<float*>(args[2]);
  for (uint64_t i = begin; i < end; ++i) to[i] = from[i] + 1;
}

TEST(Api, AFunctionOfTheApplicationServesAnEntry) {
  Ready ready("@twice:n=8");
  ASSERT_TRUE(ready.plan);
  api::CompileOptions options;
  options.externals.push_back({"scale", reinterpret_cast<void*>(&add_one), "", ""});
  const auto code = api::compile(*ready.plan, options, ready.messages);
  ASSERT_TRUE(code) << ready.messages.text();
  api::Parameters parameters;
  parameters.open(ready.weights.path(), "params", ready.messages);
  const auto program =
      api::materialize(api::Device::cpu(), *ready.plan, 0, *code, parameters, ready.messages);
  ASSERT_TRUE(program) << ready.messages.text();
  std::array<float, 8> input = {1, 2, 3, 4, 5, 6, 7, 8};
  std::array<float, 8> output = {};
  api::Invocation invocation(*program);
  invocation.bind("input", storage(input), ready.messages);
  invocation.bind("output", storage(output), ready.messages);
  ASSERT_TRUE(invocation.issue(ready.messages));
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(output[i], input[i] + 2);
  options.externals[0].symbol = "nobody";
  EXPECT_FALSE(api::compile(*ready.plan, options, ready.messages));
}

TEST(Api, AFolderKeepsCodeAndABadOneIsAWarning) {
  Ready ready("@twice:n=8");
  ASSERT_TRUE(ready.plan);
  std::string folder = "/tmp/loom-api-cache-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  api::CompileOptions options;
  options.cache_folder = folder;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(api::compile(*ready.plan, options, ready.messages));
  size_t entries = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    entries += file.is_regular_file() && file.path().filename() != "total";
  }
  EXPECT_EQ(entries, 1u);
  EXPECT_TRUE(ready.messages.all().empty());
  options.cache_folder = "/dev/null/cache";
  EXPECT_TRUE(api::compile(*ready.plan, options, ready.messages));
  ASSERT_EQ(ready.messages.all().size(), 1u);
  EXPECT_EQ(ready.messages.all()[0].code, "RUN/040");
  std::filesystem::remove_all(folder);
}

// Callers see the right results before, while and after the optimized code takes its place.
TEST(Api, FastCodeIsReplacedWhileProgramsRun) {
  Ready ready("@twice:n=8");
  ASSERT_TRUE(ready.plan);
  std::string folder = "/tmp/loom-api-cache-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  api::CompileOptions options;
  options.tier = api::Tier::FastFirst;
  options.cache_folder = folder;
  api::Parameters parameters;
  parameters.open(ready.weights.path(), "params", ready.messages);
  // The second time the cache has optimized code, so there is nothing to replace.
  for (const size_t replaced : {1u, 0u}) {
    const auto code = api::compile(*ready.plan, options, ready.messages);
    ASSERT_TRUE(code) << ready.messages.text();
    const auto program =
        api::materialize(api::Device::cpu(), *ready.plan, 0, *code, parameters, ready.messages);
    ASSERT_TRUE(program) << ready.messages.text();
    std::atomic<bool> settled = false;
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 2; ++caller) {
      callers.emplace_back([&, caller] {
        api::Messages messages(ready.context);
        api::Invocation invocation(*program);
        std::array<float, 8> input;
        input.fill(static_cast<float>(caller + 1));
        std::array<float, 8> output = {};
        invocation.bind("input", storage(input), messages);
        invocation.bind("output", storage(output), messages);
        for (int behind = 0; behind < 10; behind += settled ? 1 : 0) {
          output.fill(-1);
          EXPECT_TRUE(invocation.issue(messages));
          expect_twice(input, output, 8);
        }
      });
    }
    code->settle();
    settled = true;
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(code->replaced(), replaced);
  }
  std::filesystem::remove_all(folder);
}

// Code that is dropped while it is being replaced waits for nothing but the kernel at hand.
TEST(Api, CodeMayGoBeforeItIsReplaced) {
  Ready ready("@twice:n=8");
  ASSERT_TRUE(ready.plan);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(api::compile(*ready.plan, {.tier = api::Tier::FastFirst}, ready.messages));
  }
}

TEST(Api, AKernelThatCannotBeCompiledIsReportedWhereItWasWritten) {
  const api::Context context;
  api::Messages messages(context);
  api::Modules inputs(context);
  ASSERT_TRUE(inputs.add_file(kFixtures + "/unsupported.loom", messages)) << messages.text();
  auto linked = api::link(inputs, {}, {}, messages);
  ASSERT_TRUE(linked) << messages.text();
  auto plan = api::prepare(std::move(*linked), {}, messages);
  ASSERT_TRUE(plan) << messages.text();
  EXPECT_FALSE(api::compile(*plan, {}, messages));
  const std::vector<api::Message> all = messages.all();
  ASSERT_EQ(all.size(), 1u) << messages.text();
  EXPECT_EQ(all[0].code, "LOWERING/001");
  EXPECT_EQ(all[0].file, kFixtures + "/unsupported.loom");
  EXPECT_EQ(all[0].line, 6u);
}

TEST(Api, MessagesAreTextAndJson) {
  const api::Context context;
  api::Messages messages(context);
  api::Modules inputs(context);
  EXPECT_FALSE(inputs.add("config.def @a = 3 : nothing\n", "wrong.loom", messages));
  EXPECT_FALSE(inputs.add_file(kFixtures + "/absent.loom", messages));
  EXPECT_NE(messages.text().find("wrong.loom:1:"), std::string::npos);
  EXPECT_NE(messages.text().find("error[IO/001]"), std::string::npos);
  EXPECT_NE(messages.json().find(R"("code":"IO/001")"), std::string::npos);
}

}  // namespace
}  // namespace loom
