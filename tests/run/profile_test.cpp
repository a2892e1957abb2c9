// Profiles of issues: what ran, where, on what, and the trace that shows it.
#include "loom/api/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "api_test.h"

namespace loom {
namespace {

// @add of the library writes a transient, which two concurrent launches read.
const std::string kFork = R"(kernel.decl @add(%n: index) launch(%from: buffer, %to: buffer)

command.program.def public @fork() launch(%input: buffer, %a: buffer, %b: buffer) {
  %none = index.constant 0 : index
  %two = index.constant 2 : index
  %four = index.constant 4 : index
  %bytes = index.constant 16 : offset
  %middle = buffer.alloca<global> align(64) %bytes : buffer
  kernel.launch @add[%four](%input, %middle) : [index](buffer, buffer)
  command.concurrent {
    kernel.launch @add[%four](%middle, %a) : [index](buffer, buffer)
    kernel.launch @add[%two](%middle, %b) : [index](buffer, buffer)
    kernel.launch @add[%none](%middle, %b) : [index](buffer, buffer)
  }
  command.return
}
)";

struct Forking {
  Forking() : messages(context) {
    api::Modules inputs(context);
    inputs.add(kAddLibrary, "library.loom", messages);
    inputs.add(kFork, "fork.loom", messages);
    auto linked = api::link(inputs, {}, {}, messages);
    if (!linked) return;
    const auto plan = api::prepare(std::move(*linked), {.roots = {"fork"}}, messages);
    if (!plan) return;
    const auto code = api::compile(*plan, {.tier = api::Tier::Fast}, messages);
    if (code) program = api::materialize(api::Device::cpu(2), *plan, 0, *code, {}, messages);
    if (!program) return;
    invocation.emplace(*program);
    invocation->bind("input", storage(input), messages);
    invocation->bind("a", storage(a), messages);
    invocation->bind("b", storage(b), messages);
  }
  api::Context context;
  api::Messages messages;
  std::optional<api::Program> program;
  std::optional<api::Invocation> invocation;
  std::array<float, 4> input = {1, 2, 3, 4};
  std::array<float, 4> a = {};
  std::array<float, 6> b = {};
};

TEST(Profile, DescribesEveryLaunchOfTheProgram) {
  Forking fork;
  ASSERT_TRUE(fork.program) << fork.messages.text();
  const api::Profile profile(*fork.program);
  ASSERT_EQ(profile.commands().size(), 4u);
  EXPECT_TRUE(profile.dispatches().empty());
  EXPECT_EQ(profile.duration(), 0u);
  const std::array<uint32_t, 4> nodes = {1, 3, 4, 5};
  for (uint32_t i = 0; i < 4; ++i) {
    const api::ProfiledCommand& command = profile.commands()[i];
    EXPECT_EQ(command.node, nodes[i]);
    EXPECT_EQ(command.wave, i == 0 ? 0u : 1u);
    EXPECT_EQ(command.kernel, "add");
    EXPECT_EQ(command.export_name, "add");
    EXPECT_EQ(command.request, 0);
    EXPECT_FALSE(command.indirect);
    EXPECT_EQ(command.workgroup_size, (std::array<uint32_t, 3>{1, 1, 1}));
    EXPECT_EQ(command.file, "fork.loom");
    EXPECT_EQ(command.line, i == 0 ? 9u : 10u + i);
    ASSERT_EQ(command.operands.size(), 2u);
  }
  const auto& operands = profile.commands()[0].operands;
  EXPECT_EQ(operands[0].storage, api::ProfiledOperand::Storage::Binding);
  EXPECT_EQ(operands[0].name, "input");
  EXPECT_EQ(operands[0].bytes, 0u);  // nothing was issued
  EXPECT_EQ(operands[1].storage, api::ProfiledOperand::Storage::Transient);
  EXPECT_EQ(operands[1].name, "middle");
  EXPECT_EQ(operands[1].bytes, 16u);
}

TEST(Profile, HoldsEachDispatchOfTheLastIssue) {
  Forking fork;
  ASSERT_TRUE(fork.program) << fork.messages.text();
  api::Profile profile(*fork.program);
  for (int issue = 0; issue < 3; ++issue) {
    fork.a = {};
    ASSERT_TRUE(fork.invocation->issue(profile, fork.messages)) << fork.messages.text();
    EXPECT_EQ(fork.a, (std::array<float, 4>{3, 4, 5, 6}));
    EXPECT_EQ(fork.b, (std::array<float, 6>{3, 4, 0, 0, 0, 0}));
    // One has no workgroups; another may be spread over both threads.
    ASSERT_GE(profile.dispatches().size(), 3u);
    uint64_t end_of_first = 0;
    std::array<uint32_t, 4> workgroups = {};
    for (const api::ProfiledDispatch& dispatch : profile.dispatches()) {
      EXPECT_LE(dispatch.begin, dispatch.end);
      EXPECT_LE(dispatch.end, profile.duration());
      EXPECT_LT(dispatch.thread, 2u);
      EXPECT_EQ(dispatch.grid[0], dispatch.command == 2 ? 2u : 4u);
      workgroups[dispatch.command] +=
          static_cast<uint32_t>(dispatch.last_workgroup - dispatch.first_workgroup);
      if (dispatch.command == 0) end_of_first = std::max(end_of_first, dispatch.end);
    }
    EXPECT_EQ(workgroups, (std::array<uint32_t, 4>{4, 4, 2, 0}));
    EXPECT_EQ(profile.dispatches()[0].command, 0u);
    for (const api::ProfiledDispatch& other : profile.dispatches()) {
      if (other.command != 0) {
        EXPECT_GE(other.begin, end_of_first);
      }
    }
    EXPECT_EQ(profile.commands()[2].operands[1].bytes, sizeof fork.b);
  }
  // What is bound now counts, not what was at the first issue.
  ASSERT_TRUE(fork.invocation->bind("b", storage(fork.b).first(16), fork.messages));
  ASSERT_TRUE(fork.invocation->issue(profile, fork.messages));
  EXPECT_EQ(profile.commands()[2].operands[1].bytes, 16u);
}

TEST(Profile, AnIssueThatFailsLeavesNoDispatch) {
  Forking fork;
  ASSERT_TRUE(fork.program);
  api::Profile profile(*fork.program);
  ASSERT_TRUE(fork.invocation->issue(profile, fork.messages));
  api::Invocation unbound(*fork.program);
  EXPECT_FALSE(unbound.issue(profile, fork.messages));
  EXPECT_EQ(fork.messages.all().at(0).code, "RUN/003");
  EXPECT_TRUE(profile.dispatches().empty());
}

}  // namespace
}  // namespace loom
