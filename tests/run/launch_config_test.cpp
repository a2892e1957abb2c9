// Launch configurations as companions: the same geometry as the source, and safe against any bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "api_test.h"

namespace loom {
namespace {

const std::string kTiled = R"(kernel.def export("tiled") @tiled(%n: index) {
  %one = index.constant 1 : index
  %two = index.constant 2 : index
  %tiles = index.add %n, %two : index
  kernel.launch.config workgroups(%tiles, %two, %one) workgroup_size(%n, %one, %one) : index
} launch(%from: buffer) {
  kernel.return
}
)";

struct Companion : testing::Test {
  Companion() : messages(context) {
    api::Modules inputs(context);
    inputs.add(kTiled, "tiled.loom", messages);
    auto linked = api::link(inputs, {}, {}, messages);
    if (linked) bytes = api::write_launch_config(std::move(*linked), {}, messages);
  }
  api::Context context;
  api::Messages messages;
  std::optional<std::string> bytes;
};

TEST_F(Companion, GivesTheGeometryOfTheSource) {
  ASSERT_TRUE(bytes) << messages.text();
  const auto config = api::LaunchConfig::read(context, *bytes, "x.loomlaunch", messages);
  ASSERT_TRUE(config) << messages.text();
  EXPECT_EQ(config->kernels(), std::vector<std::string>{"tiled"});
  for (uint64_t n = 1; n < 300; ++n) {
    const auto geometry = config->evaluate("tiled", {&n, 1}, messages);
    ASSERT_TRUE(geometry) << messages.text();
    const auto wide = static_cast<uint32_t>(n);
    EXPECT_EQ(geometry->count, (std::array<uint32_t, 3>{wide + 2, 2, 1}));
    EXPECT_EQ(geometry->size, (std::array<uint32_t, 3>{wide, 1, 1}));
  }
}

TEST_F(Companion, RefusesWhatNoLaunchHas) {
  ASSERT_TRUE(bytes) << messages.text();
  const auto config = api::LaunchConfig::read(context, *bytes, "x.loomlaunch", messages);
  ASSERT_TRUE(config);
  const uint64_t zero = 0;
  EXPECT_FALSE(config->evaluate("tiled", {&zero, 1}, messages));
  EXPECT_FALSE(config->evaluate("tiled", {}, messages));
  EXPECT_FALSE(config->evaluate("nobody", {&zero, 1}, messages));
  EXPECT_EQ(messages.all().size(), 3u) << messages.text();
}

// The counts call functions: one that is made part, and two that cannot be.
const std::string kCalling = R"(func.def pure @twice(%n: index) -> (index) {
  %m = index.add %n, %n : index
  func.return %m : index
}

func.def pure noinline @lanes(%n: index) -> (index) {
  %s = target.subgroup.size : index
  %m = index.mul %n, %s : index
  func.return %m : index
}

func.def pure @levels(%n: index) -> (index) {
  %one = index.constant 1 : index
  %two = index.constant 2 : index
  %more = index.cmp slt, %one, %n : index
  %r = scf.if %more -> (index) {
    %m = index.div %n, %two : index
    %x = func.call pure @levels(%m) : (index) -> (index)
    %y = index.add %x, %one : index
    scf.yield %y : index
  } else {
    scf.yield %one : index
  }
  func.return %r : index
}

kernel.def @plain() {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%to: buffer) {
  kernel.return
}

kernel.def @calling(%n: index, %wide: i1, %scale: f32) {
  %one = index.constant 1 : index
  %x = func.call pure @twice(%n) : (index) -> (index)
  %y = func.call pure @lanes(%n) : (index) -> (index)
  %z = func.call pure @levels(%n) : (index) -> (index)
  %size = scf.select %wide, %x, %one : index
  kernel.launch.config workgroups(%x, %y, %z) workgroup_size(%size, %one, %one) : index
} launch(%from: buffer) {
  kernel.return
}
)";

TEST_F(Companion, BringsTheFunctionsThatConfigurationsCall) {
  api::Modules inputs(context);
  ASSERT_TRUE(inputs.add(kCalling, "calling.loom", messages)) << messages.text();
  auto linked = api::link(inputs, {}, {.roots = {"calling", "plain"}}, messages);
  ASSERT_TRUE(linked) << messages.text();
  bytes = api::write_launch_config(std::move(*linked), {}, messages);
  ASSERT_TRUE(bytes) << messages.text();
  const auto config = api::LaunchConfig::read(context, *bytes, "x.loomlaunch", messages);
  ASSERT_TRUE(config) << messages.text();
  // Functions are no kernels.
  std::vector<std::string> kernels = config->kernels();
  std::ranges::sort(kernels);
  EXPECT_EQ(kernels, (std::vector<std::string>{"calling", "plain"}));
  EXPECT_EQ(config->workload("calling"), (std::vector<std::string>{"index", "i1", "f32"}));
  EXPECT_EQ(config->workload("plain"), std::vector<std::string>());
  EXPECT_FALSE(config->workload("levels"));
  const std::array<uint64_t, 3> workload = {12, 1, 0};
  const auto geometry = config->evaluate("calling", workload, messages);
  ASSERT_TRUE(geometry) << messages.text();
  EXPECT_EQ(geometry->count[0], 24u);
  EXPECT_GE(geometry->count[1], 12u);  // times the machine's lanes
  EXPECT_EQ(geometry->count[1] % 12, 0u);
  EXPECT_EQ(geometry->count[2], 4u);
  EXPECT_EQ(geometry->size[0], 24u);
  EXPECT_FALSE(config->evaluate("levels", {workload.data(), 1}, messages));
}

TEST_F(Companion, EvaluationEnds) {
  api::Modules inputs(context);
  ASSERT_TRUE(inputs.add(R"(func.def pure @forever(%n: index) -> (index) {
  %x = func.call pure @forever(%n) : (index) -> (index)
  func.return %x : index
}
kernel.def @deep(%n: index) {
  %x = func.call pure @forever(%n) : (index) -> (index)
  kernel.launch.config workgroups(%x, %x, %x) workgroup_size(%x, %x, %x) : index
} launch() {
  kernel.return
}
kernel.def @long(%n: index) {
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %x = scf.for %i = [%zero to %n step %one](%s = %zero : index) -> (index) {
    %t = index.xori %s, %i : index
    scf.yield %t : index
  }
  kernel.launch.config workgroups(%x, %one, %one) workgroup_size(%one, %one, %one) : index
} launch() {
  kernel.return
}
)",
                         "endless.loom", messages))
      << messages.text();
  auto linked = api::link(inputs, {}, {.roots = {"deep", "long"}}, messages);
  ASSERT_TRUE(linked) << messages.text();
  bytes = api::write_launch_config(std::move(*linked), {}, messages);
  ASSERT_TRUE(bytes) << messages.text();
  const auto config = api::LaunchConfig::read(context, *bytes, "x.loomlaunch", messages);
  ASSERT_TRUE(config) << messages.text();
  const uint64_t huge = uint64_t{1} << 60;
  EXPECT_FALSE(config->evaluate("deep", {&huge, 1}, messages));
  EXPECT_FALSE(config->evaluate("long", {&huge, 1}, messages));
  ASSERT_EQ(messages.all().size(), 2u) << messages.text();
  EXPECT_EQ(messages.all()[0].code, "RUN/029");
  EXPECT_EQ(messages.all()[1].code, "RUN/029");
}

TEST_F(Companion, ThreadsEvaluateOneAtOnce) {
  ASSERT_TRUE(bytes);
  const auto config = api::LaunchConfig::read(context, *bytes, "x.loomlaunch", messages);
  ASSERT_TRUE(config);
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (uint64_t t = 1; t < 5; ++t) {
      threads.emplace_back([&, t] {
        api::Messages own(context);
        for (uint64_t n = t; n < 100; n += t) {
          const auto geometry = config->evaluate("tiled", {&n, 1}, own);
          if (!geometry || geometry->size[0] != n) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

// Bytecode that is whole but no companion.
TEST_F(Companion, AnotherModuleIsRefused) {
  const std::string six = "(index, index, index, index, index, index)";
  const std::vector<std::string> others = {
      kTiled,
      "func.def public @f() -> (index) {\n  %a = index.constant 1 : index\n"
      "  func.return %a : index\n}\n",
      "func.def public pure @f() -> (index) {\n  %a = index.constant 1 : index\n"
      "  func.return %a : index\n}\n",
      "func.def public pure @f(%b: buffer) -> " + six +
          " {\n  %a = index.constant 1 : index\n"
          "  func.return %a, %a, %a, %a, %a, %a : index, index, index, index, index, index\n}\n",
      "func.decl public pure @f() -> " + six + "\n",
  };
  for (const std::string& text : others) {
    messages.clear();
    const auto module = api::Module::read(context, text, "other.loom", messages);
    ASSERT_TRUE(module) << messages.text();
    EXPECT_FALSE(api::LaunchConfig::read(context, module->bytecode(), "other", messages)) << text;
    ASSERT_EQ(messages.all().size(), 1u) << messages.text();
    EXPECT_EQ(messages.all()[0].code, "BINARY/002") << messages.text();
    // Nor is text, whatever it says.
    EXPECT_FALSE(api::LaunchConfig::read(context, text, "text", messages)) << text;
  }
}

TEST_F(Companion, ChangedBytesAreRefusedOrReadSafely) {
  ASSERT_TRUE(bytes) << messages.text();
  for (size_t i = 0; i < bytes->size(); ++i) {
    std::string broken = *bytes;
    broken[i] = static_cast<char>(broken[i] ^ 0x41);
    api::Messages said(context);
    const auto config = api::LaunchConfig::read(context, broken, "broken", said);
    EXPECT_NE(config.has_value(), said.has_errors()) << i;
    api::LaunchConfig::read(context, bytes->substr(0, i), "cut", said);
    EXPECT_TRUE(said.has_errors()) << i;
  }
}

}  // namespace
}  // namespace loom
