#include "loom/command/schedule.h"

#include <gtest/gtest.h>

#include "loom/command/test_plan.h"

namespace loom {
namespace {

using Kind = ScheduleNode::Kind;

TEST(Schedule, WavesAreTheLongestChainOfPrecedingCommands) {
  const PreparedPlan plan = make_test_plan();
  EXPECT_EQ(wave_numbers(plan.programs[0]), (std::vector<uint32_t>{0, 0, 1, 2}));
}

// The tree of the reference: serial{A; concurrent{B; serial{C; D}}; E}.
TEST(Schedule, WavesOfTheReferenceExample) {
  PreparedProgram program;
  program.commands.resize(5);
  program.schedule = {{Kind::Serial, 0, 8},  {Kind::Command, 0, 2}, {Kind::Concurrent, 0, 7},
                      {Kind::Command, 1, 4}, {Kind::Serial, 0, 7},  {Kind::Command, 2, 6},
                      {Kind::Command, 3, 7}, {Kind::Command, 4, 8}};
  EXPECT_EQ(wave_numbers(program), (std::vector<uint32_t>{0, 1, 1, 2, 3}));
}

TEST(Schedule, TextShowsTheTree) {
  const PreparedPlan plan = make_test_plan();
  EXPECT_EQ(schedule_text({plan, plan.programs[0]}),
            "schedule of @model.fork\n"
            "  serial\n"
            "    concurrent\n"
            "      wave 0: @gain [1, 1, 1] (%params \"mix.0.gain\", %left)\n"
            "      serial\n"
            "        wave 0: @gain [2, 1, 1] (%params \"mix.0.gain\", %left)\n"
            "        wave 1: @join [0, 1, 1] (%right + 32, u64 8)\n"
            "    wave 2: @join [4294967295, 1, 1] (%right + 32, u64 8, u32 1065353216)\n");
}

TEST(Schedule, DotHasAnEdgeFromEachNodeToItsChildren) {
  const PreparedPlan plan = make_test_plan();
  const std::string dot = schedule_dot({plan, plan.programs[0]});
  for (const char* edge :
       {"n0 -> n1;", "n1 -> n2;", "n1 -> n3;", "n3 -> n4;", "n3 -> n5;", "n0 -> n6;"}) {
    EXPECT_NE(dot.find(edge), std::string::npos) << edge;
  }
  EXPECT_NE(dot.find("mix.0.gain\\\""), std::string::npos);
}

TEST(Schedule, DeepTreesPrintInLinearSpace) {
  PreparedProgram program;
  program.commands.resize(1);
  constexpr uint32_t kDepth = 100'000;
  for (uint32_t i = 0; i < kDepth; ++i) {
    program.schedule.push_back({i % 2 == 0 ? Kind::Serial : Kind::Concurrent, 0, kDepth + 1});
  }
  program.schedule.push_back({Kind::Command, 0, kDepth + 1});
  program.slots = {0};
  PreparedPlan plan;
  plan.entries.push_back({"k", "k", "launch()", {1, 1, 1}, -1});
  EXPECT_EQ(wave_numbers(program), std::vector<uint32_t>{0});
  EXPECT_LT(schedule_text({plan, program}).size(), kDepth * 250u);
}

}  // namespace
}  // namespace loom
