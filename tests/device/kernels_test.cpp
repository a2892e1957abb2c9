// Every kernel of tests/ops computes on the device what the interpreter says.
#include "../ops/cases.h"
#include "devices.h"

namespace loom::device {
namespace {

class Kernels : public Fixture {
 protected:
  // The kernel @k, launched by a program @run.
  static std::string launched(const ops::Case& one) {
    std::string formals;
    std::string actuals;
    std::string types;
    for (size_t i = 0; i < one.buffers.size(); ++i) {
      const std::string_view comma = i == 0 ? "" : ", ";
      formals += fmt::format("{}%b{}: buffer", comma, i);
      actuals += fmt::format("{}%b{}", comma, i);
      types += fmt::format("{}buffer", comma);
    }
    return fmt::format(
        "{}command.program.def public @run() launch({}) {{\n  kernel.launch @k({}) : ({})\n"
        "  command.return\n}}\n",
        one.text, formals, actuals, types);
  }
};
LOOM_ON_EVERY_DEVICE(Kernels);

TEST_P(Kernels, ComputeWhatTheInterpreterSays) {
  for (const ops::Case& one : ops::all_cases()) {
    SCOPED_TRACE(one.name);
    ops::Program reference(one.text);
    const auto expected = reference.interpret(one.buffers);
    ASSERT_TRUE(expected.has_value()) << reference.problems;
    build(launched(one));
    if (HasFatalFailure()) return;
    api::Invocation run = invocation();
    std::vector<api::Storage> storages;
    for (size_t i = 0; i < one.buffers.size(); ++i) {
      storages.push_back(storage_of(one.buffers[i].bytes));
      ASSERT_TRUE(run.bind(static_cast<uint32_t>(i), storages[i], messages_)) << messages_.text();
    }
    ASSERT_TRUE(run.issue(messages_)) << messages_.text();
    std::vector<ops::Buffer> actual = one.buffers;
    for (size_t i = 0; i < actual.size(); ++i) {
      actual[i].bytes = download(storages[i], actual[i].bytes.size());
    }
    ops::expect_equal(*expected, actual, one.tolerance);
    if (HasFailure()) FAIL() << one.text;
  }
}

}  // namespace
}  // namespace loom::device
