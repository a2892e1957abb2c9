// The shared example programs, from their sources to numbers, bit by bit.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "loom/api/loom.h"
#include "loom/runtime/cpu/count_allocations.h"
#include "weights.h"

namespace loom {
namespace {

const std::string kSeed = std::string(LOOM_SHARED_CASES) + "/seed";

using Eight = std::array<float, 8>;

// Products of these round, so that any other order of them shows.
std::vector<float> weights_of(size_t layer) {
  std::vector<float> values(8);
  for (size_t i = 0; i < 8; ++i) {
    values[i] = 0.9f + 0.0137f * static_cast<float>((layer * 7 + i * 3) % 17);
  }
  return values;
}

WeightsFile::Rows all_layers() {
  WeightsFile::Rows rows;
  for (size_t layer = 0; layer < 128; ++layer) {
    rows.emplace_back("blk." + std::to_string(layer) + ".projection.weight", weights_of(layer));
  }
  return rows;
}

Eight input_values() {
  Eight values;
  for (size_t i = 0; i < 8; ++i) values[i] = 1.1f * static_cast<float>(i) - 3.3f;
  return values;
}

class Seed : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::is_directory(kSeed)) GTEST_SKIP() << kSeed << " is not there";
  }

  // Links and compiles `root` of `file`; storage is bound by name afterwards.
  std::optional<api::Invocation> make(const std::string& file, const std::string& root,
                                      int elements, const std::string& weights,
                                      std::vector<std::string> config = {}) {
    api::Modules inputs(context_);
    api::Modules library(context_);
    inputs.add_file(kSeed + "/" + file, messages_);
    library.add_file(kSeed + "/layer.loom", messages_);
    library.add_file(kSeed + "/kernels.loom", messages_);
    auto linked = api::link(inputs, std::move(library),
                            {{root},
                             {"@" + root + ":element_count=" + std::to_string(elements)},
                             std::move(config),
                             {}},
                            messages_);
    if (!linked) return std::nullopt;
    auto plan = api::prepare(std::move(*linked), {.roots = {root}}, messages_);
    if (!plan) return std::nullopt;
    EXPECT_EQ(plan->requests().size(), 1u);
    auto code = api::compile(*plan, {}, messages_);
    api::Parameters parameters;
    if (!code || !parameters.open(weights, "", messages_)) return std::nullopt;
    auto program = api::materialize(api::Device::cpu(), *plan, 0, *code, parameters, messages_);
    if (!program) return std::nullopt;
    return api::Invocation(*program);
  }
  void bind(api::Invocation& invocation, const char* name, Eight& values) {
    EXPECT_TRUE(invocation.bind(name, std::as_writable_bytes(std::span(values)), messages_));
  }
  static Eight untouched() {
    Eight values;
    std::memset(values.data(), 0x5a, sizeof(values));
    return values;
  }
  static void expect_bits(const Eight& actual, const Eight& expected) {
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(std::memcmp(&actual[i], &expected[i], sizeof(float)), 0)
          << "element " << i << " is " << actual[i] << " instead of " << expected[i];
    }
  }

  api::Context context_;
  api::Messages messages_{context_};
};

TEST_F(Seed, TwoLayersMultiplyThePrefixAndLeaveTheRest) {
  const WeightsFile gguf("w.gguf", all_layers());
  const WeightsFile safetensors("w.safetensors", all_layers());
  const std::vector<float> w12 = weights_of(12);
  const std::vector<float> w13 = weights_of(13);
  for (int elements = 1; elements <= 8; ++elements) {
    auto invocation = make("model.loom", "two_layer", elements,
                           elements % 2 == 0 ? gguf.path() : safetensors.path());
    ASSERT_TRUE(invocation) << messages_.text();
    Eight input = input_values();
    Eight hidden = untouched();
    Eight output = untouched();
    Eight expected_hidden = untouched();
    Eight expected = untouched();
    for (size_t i = 0; i < static_cast<size_t>(elements); ++i) {
      expected_hidden[i] = input[i] * w12[i];
      expected[i] = expected_hidden[i] * w13[i];
    }
    bind(*invocation, "input", input);
    bind(*invocation, "hidden", hidden);
    bind(*invocation, "output", output);
    ASSERT_TRUE(invocation->issue(messages_)) << messages_.text();
    expect_bits(hidden, expected_hidden);
    expect_bits(output, expected);
    expect_bits(input, input_values());
  }
}

TEST_F(Seed, TwoBranchesBothArrive) {
  const WeightsFile weights("w.gguf", all_layers());
  auto invocation = make("model.loom", "two_branch", 8, weights.path());
  ASSERT_TRUE(invocation) << messages_.text();
  Eight input = input_values();
  Eight left = untouched();
  Eight right = untouched();
  bind(*invocation, "input", input);
  bind(*invocation, "left_output", left);
  bind(*invocation, "right_output", right);
  for (int i = 0; i < 100; ++i) {
    left = right = untouched();
    ASSERT_TRUE(invocation->issue(messages_)) << messages_.text();
    Eight expected_left;
    Eight expected_right;
    for (size_t k = 0; k < 8; ++k) {
      expected_left[k] = input[k] * weights_of(20)[k];
      expected_right[k] = input[k] * weights_of(21)[k];
    }
    expect_bits(left, expected_left);
    expect_bits(right, expected_right);
  }
}

TEST_F(Seed, AStackOf128LayersMultipliesInOrder) {
  const WeightsFile weights("w.safetensors", all_layers());
  auto invocation = make("stack.loom", "layer_stack", 8, weights.path(), {"model.layer_count=128"});
  ASSERT_TRUE(invocation) << messages_.text();
  Eight state = input_values();
  Eight expected = input_values();
  for (size_t layer = 0; layer < 128; ++layer) {
    for (size_t i = 0; i < 8; ++i) expected[i] *= weights_of(layer)[i];
  }
  bind(*invocation, "state", state);
  ASSERT_TRUE(invocation->issue(messages_)) << messages_.text();
  expect_bits(state, expected);
}

TEST_F(Seed, AThousandIssuesWithOtherStorageAllocateNothing) {
  const WeightsFile weights("w.gguf", all_layers());
  for (const char* root : {"two_layer", "two_branch"}) {
    auto invocation = make("model.loom", root, 8, weights.path());
    ASSERT_TRUE(invocation) << messages_.text();
    const bool layers = std::string_view(root) == "two_layer";
    std::vector<std::array<Eight, 3>> storage(1000);
    uint64_t before = 0;
    bool good = true;
    for (size_t i = 0; i < storage.size(); ++i) {
      storage[i][0].fill(static_cast<float>(i));
      for (uint32_t k = 0; k < 3; ++k) {
        good = good &&
               invocation->bind(k + 1, std::as_writable_bytes(std::span(storage[i][k])), messages_);
      }
      good = good && invocation->issue(messages_);
      if (i == 0) before = allocation_count();
    }
    EXPECT_EQ(allocation_count(), before) << root;
    ASSERT_TRUE(good) << messages_.text();
    for (size_t i = 0; i < storage.size(); ++i) {
      const float first = storage[i][0][5] * weights_of(layers ? 12 : 20)[5];
      ASSERT_EQ(storage[i][1][5], first);
      ASSERT_EQ(storage[i][2][5],
                layers ? first * weights_of(13)[5] : storage[i][0][5] * weights_of(21)[5]);
    }
  }
}

}  // namespace
}  // namespace loom
