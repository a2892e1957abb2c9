// Direct and indirect dispatches, and dispatches of nothing.
#include <numeric>

#include "devices.h"

namespace loom::device {
namespace {

class Dispatch : public Fixture {};
LOOM_ON_EVERY_DEVICE(Dispatch);

std::vector<int32_t> places(int32_t groups) {
  std::vector<int32_t> all;
  for (int32_t group = 0; group < groups; ++group) {
    for (int32_t y = 0; y < 2; ++y) {
      for (int32_t x = 0; x < 3; ++x) all.push_back(1000 * group + 10 * y + x);
    }
  }
  return all;
}

TEST_P(Dispatch, RunsEveryWorkitemOfEveryWorkgroupOnce) {
  for (const auto& [x, y, z] : {std::array{1, 1, 1}, std::array{7, 1, 1}, std::array{2, 3, 4}}) {
    SCOPED_TRACE(fmt::format("{} x {} x {}", x, y, z));
    build(fmt::format(R"(command.program.def public @run() launch(%to: buffer) {{
  %x = index.constant {} : index
  %y = index.constant {} : index
  %z = index.constant {} : index
  kernel.launch @place[%x, %y, %z](%to) : [index, index, index](buffer)
  command.return
}}
)",
                      x, y, z));
    const auto groups = static_cast<size_t>(x) * static_cast<size_t>(y) * static_cast<size_t>(z);
    const api::Storage to = storage(groups * 24 + 8);
    api::Invocation run = invocation();
    ASSERT_TRUE(run.bind("to", to, messages_)) << messages_.text();
    ASSERT_TRUE(run.issue(messages_)) << messages_.text();
    std::vector<int32_t> expected = places(x * y * z);
    expected.insert(expected.end(), {0, 0});  // nothing behind it is written
    EXPECT_EQ(values_in<int32_t>(to, expected.size()), expected);
  }
}

TEST_P(Dispatch, OfNothingRunsNothing) {
  build(R"(command.program.def public @run() launch(%to: buffer) {
  %none = index.constant 0 : index
  %two = index.constant 2 : index
  kernel.dispatch @count[%none, %two, %two](%to) : [index, index, index](buffer)
  kernel.launch @count[%none](%to) : [index](buffer)
  kernel.launch @count[%two](%to) : [index](buffer)
  command.return
}
)");
  const api::Storage to = storage(4);
  api::Invocation run = invocation();
  ASSERT_TRUE(run.bind("to", to, messages_));
  ASSERT_TRUE(run.issue(messages_)) << messages_.text();
  EXPECT_EQ(values_in<int32_t>(to, 1)[0], 2);
}

TEST_P(Dispatch, AProgramWithoutCommandsIsIssued) {
  build("command.program.def public @run() launch(%to: buffer) {\n  command.return\n}\n");
  api::Invocation run = invocation();
  const api::Storage to = storage(4);
  run.bind("to", to, messages_);
  codes();
  EXPECT_TRUE(run.issue(messages_)) << messages_.text();
}

const std::string kIndirect =
    R"(command.program.def public @run() launch(%counts: buffer, %to: buffer) {
  %base = index.constant 0 : offset
  %c = buffer.view %counts[%base] : buffer -> view<3xi32>
  kernel.dispatch @count[%c](%to) : [view<3xi32>](buffer)
  command.return
}
)";

TEST_P(Dispatch, ByCountsInMemoryFollowsThemAtEachIssue) {
  build(kIndirect);
  const api::Storage counts = storage(12);
  const api::Storage to = storage(4);
  api::Invocation run = invocation();
  ASSERT_TRUE(run.bind("counts", counts, messages_));
  ASSERT_TRUE(run.bind("to", to, messages_));
  int32_t ran = 0;
  for (const auto& [x, y, z] : {std::array{3, 2, 1}, std::array{0, 5, 5}, std::array{100, 7, 2},
                                std::array{1, 1, 0}, std::array{1, 1, 1}}) {
    upload_values(counts, std::vector<int32_t>{x, y, z});
    ASSERT_TRUE(run.issue(messages_)) << messages_.text();
    ran += x * y * z;
    EXPECT_EQ(values_in<int32_t>(to, 1)[0], ran);
  }
}

TEST_P(Dispatch, ByCountsThatCannotBeNumberedIsReportedAndTheRestRuns) {
  build(kIndirect);
  const api::Storage counts = storage_of<uint32_t>({0xffffffff, 0xffffffff, 0xffffffff});
  const api::Storage to = storage(4);
  api::Invocation run = invocation();
  ASSERT_TRUE(run.bind("counts", counts, messages_));
  ASSERT_TRUE(run.bind("to", to, messages_));
  EXPECT_FALSE(run.issue(messages_));
  EXPECT_EQ(codes(), std::vector<std::string>{"RUN/012"});
  upload_values(counts, std::vector<uint32_t>{2, 1, 1});
  EXPECT_TRUE(run.issue(messages_));
  EXPECT_EQ(values_in<int32_t>(to, 1)[0], 2);
}

// The counts are what an earlier command of the same issue leaves.
TEST_P(Dispatch, ByCountsThatAnEarlierCommandWrites) {
  build(R"(command.program.def public @run() launch(%counts: buffer, %to: buffer) {
  %base = index.constant 0 : offset
  %three = index.constant 3 : index
  %bytes = index.constant 12 : offset
  %next = buffer.alloca<global> align(16) %bytes : buffer
  kernel.launch @increment[%three](%counts, %next) : [index](buffer, buffer)
  %c = buffer.view %next[%base] : buffer -> view<3xi32>
  kernel.dispatch @count[%c](%to) : [view<3xi32>](buffer)
  command.return
}
)");
  const api::Storage counts = storage_of<int32_t>({3, 0, 1});
  const api::Storage to = storage(4);
  api::Invocation run = invocation();
  ASSERT_TRUE(run.bind("counts", counts, messages_));
  ASSERT_TRUE(run.bind("to", to, messages_));
  ASSERT_TRUE(run.issue(messages_)) << messages_.text();
  EXPECT_EQ(values_in<int32_t>(to, 1)[0], 4 * 1 * 2);
}

TEST_P(Dispatch, WorkgroupsMeetAtTheirBarriers) {
  build(R"(command.program.def public @run() launch(%data: buffer) {
  %five = index.constant 5 : index
  kernel.launch @reverse[%five](%data) : [index](buffer)
  command.return
}
)");
  std::vector<int32_t> values(5 * 64);
  std::iota(values.begin(), values.end(), 0);
  const api::Storage data = storage_of(values);
  api::Invocation run = invocation();
  ASSERT_TRUE(run.bind("data", data, messages_));
  ASSERT_TRUE(run.issue(messages_)) << messages_.text();
  std::vector<int32_t> expected(values.size());
  for (int32_t i = 0; i < 5 * 64; ++i) {
    const int32_t group = i / 64;
    expected[static_cast<size_t>(i)] = group * 64 + 63 - i % 64 + 64 * 64 * group + 63 * 32;
  }
  EXPECT_EQ(values_in<int32_t>(data, values.size()), expected);
}

}  // namespace
}  // namespace loom::device
