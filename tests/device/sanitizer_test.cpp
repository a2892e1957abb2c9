// Checks inside of kernels: what holds is not noticed, what does not hold is reported by the issue.
#include <thread>

#include "devices.h"

namespace loom::device {
namespace {

class Sanitizer : public Fixture {
 protected:
  void SetUp() override {
    build(R"(command.program.def public @run() launch(%data: buffer) {
  %n = index.constant 16 : index
  kernel.launch @checked[%n](%data) : [index](buffer)
  command.return
}
)");
  }
};
LOOM_ON_EVERY_DEVICE(Sanitizer);

std::vector<int32_t> numbers(int32_t last) {
  std::vector<int32_t> values(16, 3);
  values.back() = last;
  return values;
}

TEST_P(Sanitizer, WhatHoldsChangesNothing) {
  const api::Storage data = storage_of(numbers(7));
  api::Invocation run = invocation();
  ASSERT_TRUE(run.bind("data", data, messages_));
  ASSERT_TRUE(run.issue(messages_)) << messages_.text();
  std::vector<int32_t> doubled(16, 6);
  doubled.back() = 14;
  EXPECT_EQ(values_in<int32_t>(data, 16), doubled);
}

TEST_P(Sanitizer, WhatFailsIsReportedOnceAndTheInvocationGoesOn) {
  const api::Storage bad = storage_of(numbers(-7));
  const api::Storage good = storage_of(numbers(7));
  api::Invocation run = invocation();
  ASSERT_TRUE(run.bind("data", bad, messages_));
  EXPECT_FALSE(run.issue(messages_));
  ASSERT_EQ(messages_.all().size(), 1u) << messages_.text();
  EXPECT_NE(messages_.text().find(", 0) in '@checked'"), std::string::npos) << messages_.text();
  EXPECT_EQ(codes(), std::vector<std::string>{"RUN/027"});
  ASSERT_TRUE(run.bind("data", good, messages_));
  EXPECT_TRUE(run.issue(messages_)) << messages_.text();
  EXPECT_EQ(values_in<int32_t>(good, 16).back(), 14);
}

TEST_P(Sanitizer, AFailureIsOfTheIssueThatItHappenedIn) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(8);
  threads.reserve(wrong.size());
  for (size_t i = 0; i < wrong.size(); ++i) {
    threads.emplace_back([this, i, &wrong] {
      const bool fails = i % 2 == 0;
      api::Messages messages(context_);
      api::Invocation run = invocation();
      const api::Storage data = storage_of(std::vector<int32_t>(16));
      run.bind("data", data, messages);
      for (int issue = 0; issue < 200; ++issue) {
        upload_values(data, numbers(fails ? -1 : 1));
        wrong[i] += run.issue(messages) == fails;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(8));
}

TEST_P(Sanitizer, AStartedIssueSaysItWhenItIsWaitedFor) {
  const api::Storage bad = storage_of(numbers(-1));
  api::Invocation run = invocation();
  ASSERT_TRUE(run.bind("data", bad, messages_));
  EXPECT_FALSE(run.start().wait(messages_));
  EXPECT_EQ(codes(), std::vector<std::string>{"RUN/027"});
}

}  // namespace
}  // namespace loom::device
