// Modules read and rewritten through the API, as an optimizer does.
#include <gtest/gtest.h>

#include <array>

#include "api_test.h"

namespace loom {
namespace {

// The same contract as @add, another body, and a helper whose name means something else here.
const std::string kFaster = R"(func.def pure @step(%x: f32) -> (f32) {
  %two = scalar.constant 2.0 : f32
  %y = scalar.addf %x, %two : f32
  func.return %y : f32
}

kernel.def @faster(%count: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%count, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%source: buffer, %target: buffer) {
  %i = kernel.workgroup.id<x> : index
  %base = index.constant 0 : offset
  %in = buffer.view %source[%base] : buffer -> view<4xf32>
  %out = buffer.view %target[%base] : buffer -> view<4xf32>
  %a = view.load %in[%i] : view<4xf32> -> f32
  %c = func.call pure @step(%a) : (f32) -> (f32)
  view.store %c, %out[%i] : f32, view<4xf32>
  kernel.return
}

kernel.def @narrower(%count: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%count, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%length: index) where [mul(%length, 16)] {
  kernel.return
}

kernel.def @wrong(%count: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%count, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%source: buffer) {
  kernel.return
}
)";

const std::string kModule = kAddLibrary + R"(
kernel.def export("sized") @sized(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%size: index) where [mul(%size, 4)] {
  kernel.return
}

func.def public pure @step(%x: f32) -> (f32) {
  func.return %x : f32
}

config.decl @width : %value: index where [range(%value, 1, 64)]

func.def public @configured() -> (index) {
  %w = config.get @width : index
  func.return %w : index
}

config.decl @unread : %value: index where [range(%value, 1, 64)]
)";

struct Rewrite : testing::Test {
  Rewrite() : messages(context) {
    module = api::Module::read(context, kModule, "module.loom", messages);
    other = api::Module::read(context, kFaster, "faster.loom", messages);
  }
  api::Context context;
  api::Messages messages;
  std::optional<api::Module> module, other;
};

TEST_F(Rewrite, SymbolsSayWhatTheyAre) {
  ASSERT_TRUE(module) << messages.text();
  const std::vector<api::Symbol> symbols = module->symbols();
  ASSERT_EQ(symbols.size(), 6u);
  EXPECT_EQ(symbols[0].name, "add");
  EXPECT_EQ(symbols[0].kind, "kernel");
  EXPECT_TRUE(symbols[0].exported);
  EXPECT_FALSE(symbols[0].declaration);
  EXPECT_EQ(symbols[0].contract, "config(%n: index) body(%from: buffer, %to: buffer)");
  EXPECT_TRUE(symbols[3].declaration);
  EXPECT_EQ(symbols[4].references, std::vector<std::string>{"width"});
  ASSERT_TRUE(other) << messages.text();
  const std::vector<api::Symbol> others = other->symbols();
  EXPECT_EQ(others[1].references, std::vector<std::string>{"step"});
  EXPECT_EQ(others[2].contract,
            "config(%count: index) body(%length: index) where [mul(%length, 16)]");
}

TEST_F(Rewrite, AKernelGivesWayToAnotherOfTheSameContract) {
  ASSERT_TRUE(module && other) << messages.text();
  ASSERT_TRUE(module->replace_kernel("add", *other, "faster", messages)) << messages.text();
  const std::string text = module->text();
  EXPECT_EQ(text.find("@faster"), std::string::npos) << text;
  EXPECT_NE(text.find("func.call pure @step$0("), std::string::npos) << text;
  EXPECT_EQ(module->symbols()[0].name, "add");
  EXPECT_TRUE(module->symbols()[0].exported);

  // The bytecode is linked and computes what the replacement says.
  api::Modules inputs(context);
  ASSERT_TRUE(inputs.add(module->bytecode(), "rewritten", messages)) << messages.text();
  ASSERT_TRUE(inputs.add(kAddProgram, "run.loom", messages));
  auto linked = api::link(inputs, {}, {{"run"}, {}, {}, {}}, messages);
  ASSERT_TRUE(linked) << messages.text();
  const auto plan = api::prepare(std::move(*linked), {.roots = {"run"}}, messages);
  ASSERT_TRUE(plan) << messages.text();
  const auto code = api::compile(*plan, {.tier = api::Tier::Fast}, messages);
  ASSERT_TRUE(code) << messages.text();
  const auto program = api::materialize(api::Device::cpu(1), *plan, 0, *code, {}, messages);
  ASSERT_TRUE(program);
  std::array<float, 4> values = {1, 2, 3, 4};
  api::Invocation invocation(*program);
  invocation.bind("input", storage(values), messages);
  invocation.bind("output", storage(values), messages);
  ASSERT_TRUE(invocation.issue(messages));
  EXPECT_EQ(values, (std::array<float, 4>{5, 6, 7, 8}));
}

TEST_F(Rewrite, AnotherContractIsRefusedAndNothingChanges) {
  ASSERT_TRUE(module && other) << messages.text();
  const std::string before = module->text();
  EXPECT_FALSE(module->replace_kernel("add", *other, "wrong", messages));
  EXPECT_FALSE(module->replace_kernel("sized", *other, "narrower", messages));
  EXPECT_FALSE(module->replace_kernel("step", *other, "faster", messages));
  EXPECT_FALSE(module->replace_kernel("add", *other, "nobody", messages));
  const auto all = messages.all();
  ASSERT_EQ(all.size(), 4u) << messages.text();
  EXPECT_EQ(all[0].code, "LINK/002");
  EXPECT_EQ(all[1].code, "LINK/002");
  EXPECT_NE(all[1].text.find("mul(%length, 16)"), std::string::npos) << all[1].text;
  EXPECT_EQ(all[2].code, "SYMBOL/003");
  EXPECT_EQ(all[3].code, "SYMBOL/002");
  EXPECT_EQ(module->text(), before);
}

TEST_F(Rewrite, AConfigurationKeyIsBound) {
  ASSERT_TRUE(module) << messages.text();
  const std::string before = module->text();
  EXPECT_FALSE(module->bind_config("width", "100", messages));
  EXPECT_FALSE(module->bind_config("nothing", "1", messages));
  EXPECT_EQ(messages.all().at(0).code, "CONFIG/001");
  EXPECT_EQ(messages.all().at(1).code, "SYMBOL/002");
  EXPECT_EQ(module->text(), before);
  messages.clear();
  EXPECT_FALSE(module->bind_config("unread", "many", messages));
  EXPECT_EQ(messages.all().at(0).code, "CONFIG/001");
  EXPECT_FALSE(module->bind_config("unread", "65", messages));
  EXPECT_TRUE(module->bind_config("unread", "64", messages));
  ASSERT_TRUE(module->bind_config("width", "16", messages)) << messages.text();
  EXPECT_NE(module->text().find("index.constant 16"), std::string::npos);
  EXPECT_EQ(module->text().find("config.get"), std::string::npos);
}

}  // namespace
}  // namespace loom
