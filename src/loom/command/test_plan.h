// A plan for tests: serial{concurrent{0, serial{1, 2}}, 3} over one parameter and two bindings.
#pragma once

#include "loom/command/plan.h"

namespace loom {

inline PreparedPlan make_test_plan() {
  using Kind = ScheduleNode::Kind;
  PreparedPlan plan;
  plan.entries = {{"gain", "gain", "launch(%w: view<4xf32>, %x: buffer)", {4, 1, 1}, -1},
                  {"join", "join_entry", "launch(%x: buffer, %n: index)", {1, 1, 1}, -1}};
  PreparedProgram program;
  program.symbol = "model.fork";
  program.roots = {"params", "left", "right"};
  program.parameters = {{0, "mix.0.gain", 16, 4}};
  program.bindings = {{1, "left"}, {2, "right"}};
  program.slots = {0, 1};
  program.arguments = {
      {Argument::Kind::Buffer, 0, {StorageClass::Fixed, 0, 0, 16}},
      {Argument::Kind::Buffer, 0, {StorageClass::Rebindable, 0, 0, BufferRef::kWholeBuffer}},
      {Argument::Kind::Buffer, 0, {StorageClass::Rebindable, 1, 32, 16}},
      {Argument::Kind::U64, 8, {}},
      {Argument::Kind::U32, 0x3f800000, {}},
  };
  program.commands = {{0, 0, 2, {1, 1, 1}},
                      {0, 0, 2, {2, 1, 1}},
                      {1, 2, 2, {0, 1, 1}},
                      {1, 2, 3, {4294967295u, 1, 1}}};
  program.schedule = {{Kind::Serial, 0, 7}, {Kind::Concurrent, 0, 6}, {Kind::Command, 0, 3},
                      {Kind::Serial, 0, 6}, {Kind::Command, 1, 5},    {Kind::Command, 2, 6},
                      {Kind::Command, 3, 7}};
  plan.programs.push_back(std::move(program));
  return plan;
}

}  // namespace loom
