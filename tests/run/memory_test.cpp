// What preparation and compilation cost in memory, and that they give all of it back.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "loom/command/classes.h"
#include "loom/command/prepare.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/link/link.h"
#include "loom/link/load.h"
#include "loom/runtime/cpu/count_allocations.h"
#include "loom/target/x86/jit.h"

namespace loom {
namespace {

// A kernel that does one thing below 500 and another from there on.
constexpr std::string_view kProgram = R"(
kernel.def export("step") @step() {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%n: index, %to: buffer) {
  %limit = index.constant 500 : index
  %base = index.constant 0 : offset
  %x = scalar.constant 1.0 : f32
  %y = scalar.constant 2.0 : f32
  %v = buffer.view %to[%base] : buffer -> view<1xf32>
  %few = index.cmp slt, %n, %limit : index
  scf.if %few {
    view.store %x, %v[0] : f32, view<1xf32>
  } else {
    view.store %y, %v[0] : f32, view<1xf32>
  }
  kernel.return
}

command.program.def public @p() launch(%to: buffer) {
  %few = index.constant 3 : index
  %many = index.constant 700 : index
  command.concurrent {
    kernel.launch @step(%few, %to) : (index, buffer)
    kernel.launch @step(%many, %to) : (index, buffer)
  }
  command.return
}
)";

Module load_program(SourceFiles& files, Diagnostics& diagnostics) {
  auto module = load_module(files, std::string(kProgram), "p.loom", diagnostics);
  EXPECT_TRUE(module) << (diagnostics.all().empty() ? "" : diagnostics.all()[0].message());
  return std::move(*module);
}

OpId kernel_of(const Module& module) {
  OpId found;
  for_each_op(module, module.body(), [&](OpId op) {
    if (module.op(op).kind == OpKind::KernelDef) found = op;
  });
  return found;
}

// Allocations while so many launches of many sizes are classified.
uint64_t allocations_of(Module& module, uint32_t sites) {
  PreparedPlan plan;
  EntryTable entries(plan.entries);
  const OpId kernel = kernel_of(module);
  const uint32_t entry = entries.add(module, symbol_name(module, kernel), kernel, {1, 1, 1});
  PreparedProgram program;
  program.bindings = {{0, "to"}};
  program.slots = {entry};
  for (uint32_t site = 0; site < sites; ++site) {
    const uint64_t n = site % 2 == 0 ? site % 500 : 500 + site;
    program.arguments.push_back({Argument::Kind::U64, n, {}});
    program.arguments.push_back({Argument::Kind::Buffer, 0, {StorageClass::Rebindable, 0, 0, 4}});
    program.commands.push_back({0, 2 * site, 2, {1, 1, 1}});
  }
  plan.programs.push_back(std::move(program));
  Diagnostics diagnostics;
  PassContext context(module, diagnostics);
  const uint64_t before = allocation_count();
  const auto found = classify(context, entries, 0, plan);
  const uint64_t allocations = allocation_count() - before;
  EXPECT_TRUE(found);
  EXPECT_EQ(found->classes.size(), 2u);
  return allocations;
}

TEST(Memory, ClassificationAllocatesNothingForASite) {
  SourceFiles files;
  Diagnostics diagnostics;
  Module module = load_program(files, diagnostics);
  const uint64_t few = allocations_of(module, 1'000);
  EXPECT_GT(few, 0u);
  EXPECT_EQ(allocations_of(module, 100'000), few);
}

// Kernels that have nothing in common but their shape, each of so many operations.
std::string large_program(int kernels, int operations) {
  std::string text;
  std::string launches;
  for (int k = 0; k < kernels; ++k) {
    text += fmt::format(
        "kernel.def @k{}() {{\n  %one = index.constant 1 : index\n"
        "  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%one, %one, %one) : "
        "index\n}} launch(%n: index, %to: buffer) {{\n  %base = index.constant 0 : offset\n"
        "  %v = buffer.view %to[%base] : buffer -> view<1xf32>\n"
        "  %x0 = view.load %v[0] : view<1xf32> -> f32\n",
        k);
    for (int i = 0; i < operations; ++i) {
      text += fmt::format("  %x{} = scalar.{} %x{}, %x{} : f32\n", i + 1,
                          (i * 7 + k) % 3 == 0 ? "mulf" : "addf", i, i / 2);
    }
    text += fmt::format("  view.store %x{}, %v[0] : f32, view<1xf32>\n  kernel.return\n}}\n\n",
                        operations);
    launches += fmt::format("  kernel.launch @k{}(%n, %to) : (index, buffer)\n", k);
  }
  return text +
         "command.program.def public @p() launch(%to: buffer) {\n  %n = index.constant 3 : "
         "index\n" +
         launches + "  command.return\n}\n";
}

// What publishing the requests of such a program adds to what it held before, at most.
void expect_streamed(int kernels, int operations) {
  SourceFiles files;
  Diagnostics diagnostics;
  auto read = load_module(files, large_program(kernels, operations), "large.loom", diagnostics);
  ASSERT_TRUE(read);
  std::vector<LinkInput> inputs;
  inputs.push_back({std::move(*read), "large.loom"});
  LinkOptions link_options;
  link_options.roots = {"p"};
  auto linked = link(inputs, LibraryIndex(), link_options, diagnostics);
  ASSERT_TRUE(linked);
  PrepareOptions options{.roots = {"p"}};
  int64_t before = 0;
  options.hooks.after_pass = [&](std::string_view pass, const Module&) {
    if (pass != "resolve") return;
    reset_peak_bytes();
    before = *live_bytes();
  };
  size_t largest = 0;
  size_t all = 0;
  const auto plan = prepare(
      *linked, options,
      [&](KernelRequest&& request) {
        const KernelRequest taken = std::move(request);
        largest = std::max(largest, taken.bytecode.size());
        all += taken.bytecode.size();
        return true;
      },
      diagnostics);
  const auto added = static_cast<uint64_t>(peak_bytes() - before);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->entries.size(), static_cast<size_t>(kernels));
  EXPECT_GT(all, 20 * largest);
  EXPECT_LE(added, 2 * largest + (uint64_t{1} << 20))
      << "largest " << largest << ", all " << all << ", added " << added;
}

TEST(Memory, RequestsAreHeldOneAtATime) {
  if (!live_bytes()) GTEST_SKIP() << "the sanitizer owns malloc";
  expect_streamed(30, 100);
  expect_streamed(400, 100);
  expect_streamed(100, 1'000);
  expect_streamed(100, 4'000);
}

// Bytes that the program holds, and those of the process that are in memory.
struct Held {
  uint64_t heap = 0;
  uint64_t resident = 0;
};

Held held() {
  malloc_trim(0);
  const auto info = mallinfo2();
  unsigned long pages = 0, resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%lu %lu", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return {info.uordblks + info.hblkhd, uint64_t{resident} * 4096};
}

// From text to callable code, with nothing kept.
void round(JitEngine& engine) {
  SourceFiles files;
  Diagnostics diagnostics;
  std::vector<LinkInput> inputs;
  inputs.push_back({load_program(files, diagnostics), "p.loom"});
  LinkOptions options;
  options.roots = {"p"};
  auto linked = link(inputs, LibraryIndex(), options, diagnostics);
  ASSERT_TRUE(linked);
  std::vector<KernelRequest> requests;
  const auto plan = prepare(
      *linked, {.roots = {"p"}},
      [&](KernelRequest&& request) {
        requests.push_back(std::move(request));
        return true;
      },
      diagnostics);
  ASSERT_TRUE(plan);
  ASSERT_EQ(requests.size(), 2u);
  for (const KernelRequest& request : requests) {
    SourceFiles request_files;
    auto module = load_module(request_files, request.bytecode, "request", diagnostics);
    ASSERT_TRUE(module);
    const auto kernel =
        engine.add(*module, module->symbol(request.symbol), {.tier = JitTier::Fast}, diagnostics);
    ASSERT_TRUE(kernel);
  }
}

TEST(Memory, TenThousandRoundsOfPreparingAndCompilingHoldNothing) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer owns malloc";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the sanitizer owns malloc";
#endif
#endif
  Diagnostics diagnostics;
  const auto engine = JitEngine::create(diagnostics);
  ASSERT_TRUE(engine);
  constexpr int kRounds = 10'000;
  constexpr int kWarm = 200;
  Held before;
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
    if (i == kWarm) before = held();
    round(*engine);
  }
  const Held after = held();
  // Tables of the engine double now and then. One object kept a round, the smallest that there is,
  // would be 16 bytes a round.
  EXPECT_LT(after.heap, before.heap + uint64_t{8} * (kRounds - kWarm));
  EXPECT_LT(after.resident, before.resident + (uint64_t{1} << 20));
}

}  // namespace
}  // namespace loom
