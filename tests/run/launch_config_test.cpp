// Launch configurations as companions: the same geometry as the source, and safe against any bytes.
#include <gtest/gtest.h>

#include <array>

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
