#include "cases.h"

#include <iterator>

namespace loom::ops {

std::string kernel_text(unsigned buffers, const std::string& body, LoomDispatchShape shape,
                        const std::string& before) {
  std::string arguments;
  for (unsigned i = 0; i < buffers; ++i) {
    arguments += fmt::format("{}%b{}: buffer", i == 0 ? "" : ", ", i);
  }
  std::string text = before + "kernel.def @k() {\n";
  for (unsigned axis = 0; axis < 3; ++axis) {
    text +=
        fmt::format("  %c{0} = index.constant {1} : index\n  %s{0} = index.constant {2} : index\n",
                    axis, shape.count[axis], shape.size[axis]);
  }
  text += fmt::format(
      "  kernel.launch.config workgroups(%c0, %c1, %c2) workgroup_size(%s0, %s1, %s2) : index\n"
      "}} launch({}) {{\n"
      "  %base = index.constant 0 : offset\n"
      "  %i = kernel.workitem.dispatch.id<x> : index\n",
      arguments);
  return text + body + "  kernel.return\n}\n";
}

std::string with_subgroups(std::string kernel_text, unsigned lanes) {
  constexpr std::string_view kPlain = "kernel.def @k()";
  kernel_text.replace(kernel_text.find(kPlain), kPlain.size(), "kernel.def target(@wide) @k()");
  return fmt::format("target.generic<reference> @wide {{subgroup_size = {}}}\n", lanes) +
         kernel_text;
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (auto* const group :
       {apart_cases, atomic_cases, check_cases, collective_cases, control_cases, fragment_cases,
        lane_cases, memory_cases, schema_cases, transfer_cases}) {
    std::ranges::move(group(), std::back_inserter(all));
  }
  return all;
}

void expect_all_same(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    Program program(one.text);
    program.expect_same(one.buffers, one.shape, {}, one.tolerance);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace loom::ops
