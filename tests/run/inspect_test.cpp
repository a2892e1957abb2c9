// What an optimizer reads of modules and of compiled code.
#include "loom/api/inspect.h"

#include <gtest/gtest.h>

#include <array>

#include "api_test.h"
#include "loom/api/reference_run.h"

namespace loom {
namespace {

TEST(Inspect, ConfigurationKeysSayWhatRestrictsThem) {
  const api::Context context;
  api::Messages messages(context);
  const auto module =
      api::Module::read(context,
                        "config.decl @tile : %value: index where [range(%value, 2, 64), "
                        "mul(%value, 2), le(%value, 48)]\n"
                        "\n"
                        "config.decl @wide : %value: i32 where [pow2(%value), gt(%value, 3)]\n"
                        "\n"
                        "config.def @scale = 1.5 : f32\n",
                        "keys.loom", messages);
  ASSERT_TRUE(module) << messages.text();
  const auto keys = api::configuration(*module);
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_EQ(keys[0].key, "tile");
  EXPECT_EQ(keys[0].type, "index");
  EXPECT_FALSE(keys[0].value);
  EXPECT_EQ(keys[0].predicates.size(), 3u);
  EXPECT_EQ(keys[0].minimum, 2);
  EXPECT_EQ(keys[0].maximum, 48);
  EXPECT_EQ(keys[0].multiple_of, 2);
  EXPECT_EQ(keys[0].line, 1u);
  EXPECT_TRUE(keys[1].power_of_two);
  EXPECT_EQ(keys[1].minimum, 4);
  EXPECT_EQ(keys[2].value, "1.5");
  EXPECT_EQ(keys[2].type, "f32");
  EXPECT_EQ(keys[2].file, "keys.loom");
  EXPECT_EQ(keys[2].line, 5u);
}

TEST(Inspect, ASymbolsPlaceIsTheLinesOfItsText) {
  const api::Context context;
  api::Messages messages(context);
  const auto module = api::Module::read(
      context,
      "// first\n" + kAddLibrary + "\n// a remark\n\n// more\n" + "config.def @x = 1 : i32\n",
      "add.loom", messages);
  ASSERT_TRUE(module) << messages.text();
  const auto places = api::source_places(*module);
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0].symbol, "add");
  EXPECT_EQ(places[0].kind, "kernel");
  EXPECT_EQ(places[0].file, "add.loom");
  EXPECT_EQ(places[0].line, 2u);
  EXPECT_EQ(places[0].end_line, 15u);
  EXPECT_EQ(places[1].line, 20u);
  EXPECT_EQ(places[1].end_line, 20u);
}

std::string hash_of(const std::string& library, float* result = nullptr) {
  const api::Context context;
  api::Messages messages(context);
  api::Modules inputs(context), modules(context);
  EXPECT_TRUE(inputs.add(kAddProgram, "program", messages));
  EXPECT_TRUE(modules.add(library, "library", messages));
  auto linked = api::link(inputs, api::Library(std::move(modules)), {.roots = {"run"}}, messages);
  EXPECT_TRUE(linked) << messages.text();
  if (!linked) return "";
  if (result != nullptr) {
    std::array<float, 4> in = {1, 2, 3, 4}, out{};
    const std::array<api::NamedStorage, 2> rows = {
        {{"input", loom::storage(in)}, {"output", loom::storage(out)}}};
    EXPECT_EQ(api::run_reference(*linked, "run", rows, {}, 1u << 20, messages),
              api::ReferenceOutcome::Done)
        << messages.text();
    *result = out[3];
    EXPECT_EQ(api::run_reference(*linked, "run", rows, {}, 10, messages),
              api::ReferenceOutcome::TooLong);
    messages.clear();
  }
  auto plan = api::prepare(std::move(*linked), {}, messages);
  EXPECT_TRUE(plan) << messages.text();
  const auto code = api::compile(*plan, {}, messages);
  EXPECT_TRUE(code) << messages.text();
  return code ? api::code_hash(*code) : "";
}

TEST(Inspect, TheWorkOfAKernelIsWhatEveryLaunchDoes) {
  const api::Context context;
  api::Messages messages(context);
  api::Modules inputs(context);
  const std::string text =
      "kernel.def @k(%n: index) {\n"
      "  %two = index.constant 2 : index\n"
      "  kernel.launch.config workgroups(%n, %n, %n) workgroup_size(%two, %two, %two) : index\n"
      "} launch(%n: index, %live: i1, %x: f32, %y: i32) {\n"
      "  %zero = index.constant 0 : index\n"
      "  %step = index.constant 3 : index\n"
      "  %sum = scf.for %i = [%zero to %n step %step](%total = %x : f32) -> (f32) {\n"
      "    %next = scalar.fmaf %x, %x, %total : f32\n"
      "    %more = scalar.addf %next, %x : f32\n"
      "    scf.yield %more : f32\n"
      "  }\n"
      "  %z = scalar.muli %y, %y : i32\n"
      "  scf.if %live {\n"
      "    %w = scalar.muli %y, %y : i32\n"
      "  }\n"
      "  kernel.return\n"
      "}\n"
      "\n"
      "command.program.def public @run() launch() {\n"
      "  %ten = index.constant 10 : index\n"
      "  %yes = scalar.constant true : i1\n"
      "  %x = scalar.constant 1.0 : f32\n"
      "  %y = scalar.constant 1 : i32\n"
      "  kernel.launch @k[%ten](%ten, %yes, %x, %y) : [index](index, i1, f32, i32)\n"
      "  command.return\n"
      "}\n";
  ASSERT_TRUE(inputs.add(text, "program", messages)) << messages.text();
  const auto linked = api::link(inputs, {}, {.roots = {"run"}}, messages);
  ASSERT_TRUE(linked) << messages.text();
  const auto work = api::kernel_work(*linked);
  ASSERT_EQ(work.size(), 1u);
  EXPECT_EQ(work[0].kernel, "k");
  EXPECT_EQ(work[0].f32, 8u * 4 * 3);  // workitems, iterations, operations
  EXPECT_EQ(work[0].i32, 8u);
  EXPECT_EQ(work[0].f64, 0u);
}

TEST(Inspect, EqualCodeHasAnEqualHash) {
  float result = 0;
  const std::string first = hash_of(kAddLibrary, &result);
  EXPECT_EQ(result, 6);
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(hash_of("// a remark\n" + kAddLibrary), first);
  std::string other = kAddLibrary;
  other.replace(other.find("constant 1.0"), 12, "constant 2.0");
  EXPECT_NE(hash_of(other), first);
}

}  // namespace
}  // namespace loom
