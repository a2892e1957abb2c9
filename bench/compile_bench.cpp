// Our side of suite `compile`.
//
// usage: bench_compile INPUTS BUDGET_MS
// INPUTS is the folder that generate.py filled. Prints one JSON object of key and value.

#include <fmt/core.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common.h"
#include "loom/bytecode/bytecode.h"
#include "loom/target/x86/jit.h"
#include "loom/text/printer.h"
#include "prepared.h"
#include "timing.h"

namespace loom::bench {
namespace {

using Budget = std::chrono::milliseconds;

// Generated text to a verified module, in operations a second. Only operations that are spelled
// count; both languages leave out the terminators of plain loops.
double parse_ops_per_second(const std::string& inputs, Budget budget) {
  const std::string text = read_input(inputs + "/twin.loom");
  const size_t spelled = std::strtoull(read_input(inputs + "/twin.ops").c_str(), nullptr, 10);
  struct Input {
    std::string text;
    SourceFiles files;
    std::optional<Module> module;
  };
  const auto setup = [&] {
    auto input = std::make_unique<Input>();
    input->text = text;
    return input;
  };
  const auto parse = [](std::unique_ptr<Input>& input) {
    input->module = load(input->files, std::move(input->text), "twin.loom");
  };
  auto checked = setup();
  parse(checked);
  require(checked->module->op_count() == spelled,
          fmt::format("the module has {} operations, {} are spelled", checked->module->op_count(),
                      spelled));
  checked.reset();
  return static_cast<double>(spelled) / (1e-9 * median_ns_with_setup(budget, setup, parse));
}

// A module to canonical text, in operations a second.
double print_ops_per_second(const std::string& inputs, Budget budget) {
  SourceFiles files;
  const std::string text = read_input(inputs + "/twin.loom");
  const Module module = load(files, text, "twin.loom");
  require(print_text(module) == text, "the printed module differs from its canonical source");
  const double ns = median_ns(budget, [&] { print_text(module); });
  return static_cast<double>(module.op_count()) / (1e-9 * ns);
}

// Bytecode to a verified module, in operations a second.
double bytecode_ops_per_second(const std::string& inputs, Budget budget) {
  SourceFiles text_files;
  const Module source = load(text_files, read_input(inputs + "/twin.loom"), "twin.loom");
  const std::string bytecode = write_bytecode(source);
  struct Input {
    std::string bytes;
    SourceFiles files;
    std::optional<Module> module;
  };
  const auto setup = [&] {
    auto input = std::make_unique<Input>();
    input->bytes = bytecode;
    return input;
  };
  const double ns = median_ns_with_setup(budget, setup, [](std::unique_ptr<Input>& input) {
    input->module = load(input->files, std::move(input->bytes), "twin.loombc");
  });
  return static_cast<double>(source.op_count()) / (1e-9 * ns);
}

// Links one root of three kernels against a frozen index of 5,000; milliseconds.
double link_ms(const std::string& inputs, Budget budget) {
  SourceFiles files;
  const LoadOptions deferred{.defer_kernel_bodies = true};
  std::string bytecode;
  {
    SourceFiles text_files;
    bytecode =
        write_bytecode(load(text_files, read_input(inputs + "/library.loom"), "library.loom"));
  }
  std::vector<LinkInput> libraries;
  libraries.push_back(
      {load(files, std::move(bytecode), "library.loombc", deferred), "library.loombc"});
  std::vector<LinkInput> primary;
  primary.push_back({load(files, read_input(inputs + "/main.loom"), "main.loom"), "main.loom"});
  const LibraryIndex index(std::move(libraries));
  LinkOptions options;
  options.roots = {"main"};
  const auto run = [&](std::vector<LinkedSymbol>* plan) {
    Diagnostics diagnostics;
    return value_or_fail(link(primary, index, options, diagnostics, plan), diagnostics, "link");
  };
  std::vector<LinkedSymbol> plan;
  run(&plan);
  require(plan.size() == 4, fmt::format("{} symbols are linked instead of 4", plan.size()));
  return 1e-6 * median_ns(budget, [&] { run(nullptr); });
}

// Milliseconds from a linked module to its plan, with or without kernel requests.
double prepare_ms(const std::string& inputs, size_t launches, bool publish, Budget budget) {
  const ProgramText model(fmt::format("{}/model-{}.loom", inputs, launches), "model");
  size_t requests = 0;
  const auto count = [&](KernelRequest&&) { return ++requests > 0; };
  const RequestRecipient recipient = publish ? RequestRecipient(count) : RequestRecipient();
  Module first = model.linked();
  const PreparedPlan plan = model.prepare(first, recipient);
  require(plan.programs.at(0).commands.size() == launches &&
              plan.programs.at(0).parameters.size() == launches && plan.entries.size() == 8,
          fmt::format("{} commands are prepared", plan.programs.at(0).commands.size()));
  require(requests == (publish ? 8 : 0), fmt::format("{} requests are published", requests));
  struct State {
    Module module;
    std::optional<PreparedPlan> plan;
  };
  return 1e-6 * median_ns_with_setup(
                    budget, [&] { return State{model.linked(), std::nullopt}; },
                    [&](State& state) { state.plan = model.prepare(state.module, recipient); });
}

// Bytes that the process grows by at its peak while it prepares a model, its plan included, a
// launch. Nothing may have been freed before that this could use.
double prepare_bytes(const std::string& inputs, size_t launches) {
  const ProgramText model(fmt::format("{}/model-{}.loom", inputs, launches), "model");
  Module module = model.linked();
  const uint64_t before = peak_bytes();
  const PreparedPlan plan = model.prepare(module, {});
  const uint64_t grown = peak_bytes() - before;
  require(plan.programs.at(0).commands.size() == launches, "commands are missing");
  return static_cast<double>(grown) / static_cast<double>(launches);
}

// One kernel request in memory to callable code.
class KernelCompile {
 public:
  explicit KernelCompile(const std::string& path) {
    const ProgramText model(path, "run");
    Module linked = model.linked();
    model.prepare(linked, [&](KernelRequest&& request) {
      request_ = std::move(request);
      return true;
    });
    Diagnostics diagnostics;
    engine_ = JitEngine::create(diagnostics);
    require(engine_ != nullptr, "no code can be generated here");
  }

  JitKernel compile(JitTier tier) const {
    SourceFiles files;
    const Module module = load(files, request_.bytecode, "request");
    Diagnostics diagnostics;
    return value_or_fail(
        engine_->add(module, module.symbol(request_.symbol), {.tier = tier}, diagnostics),
        diagnostics, "compile");
  }

  // Runs the code on the recurrence `acc = acc * x + y`; results are exact.
  void check(JitTier tier, int steps) const {
    constexpr uint32_t kElements = 1024;
    std::vector<float> x(kElements), y(kElements), got(kElements);
    for (uint32_t i = 0; i < kElements; ++i) {
      x[i] = 0.0004f * static_cast<float>(i);
      y[i] = 1.0f - 0.001f * static_cast<float>(i);
    }
    const JitKernel kernel = compile(tier);
    const uint64_t args[] = {reinterpret_cast<uint64_t>(x.data()),
                             reinterpret_cast<uint64_t>(y.data()),
                             reinterpret_cast<uint64_t>(got.data())};
    const LoomDispatchShape shape = {.count = {kElements, 1, 1}, .size = {1, 1, 1}};
    kernel.entry()(args, &shape, 0, kElements);
    for (uint32_t i = 0; i < kElements; ++i) {
      float want = y[i];
      for (int step = 0; step < steps; ++step) {
        const volatile float product = want * x[i];
        want = product + y[i];
      }
      require(got[i] == want, fmt::format("element {} is {} instead of {}", i, got[i], want));
    }
  }

  double milliseconds(JitTier tier, Budget budget) const {
    return 1e-6 * median_ns(budget, [&] { compile(tier); });
  }

 private:
  KernelRequest request_;
  std::unique_ptr<JitEngine> engine_;
};

std::string run(const std::string& inputs, Budget budget) {
  std::string out;
  const auto report = [&](const std::string& key, double value) {
    out += fmt::format("{}\"{}\":{}", out.empty() ? "{" : ",", key, value);
  };
  report("prepare_bytes_per_launch", prepare_bytes(inputs, 100'000));
  report("parse_ops_per_second", parse_ops_per_second(inputs, budget));
  report("print_ops_per_second", print_ops_per_second(inputs, budget));
  report("bytecode_ops_per_second", bytecode_ops_per_second(inputs, budget));
  report("link", link_ms(inputs, budget));
  double per_launch_of_1024 = 0;
  double per_launch = 0;
  for (const size_t launches : {128, 1'024, 10'000, 100'000}) {
    const double ms = prepare_ms(inputs, launches, false, budget);
    per_launch = 1e6 * ms / static_cast<double>(launches);
    if (launches == 1'024) per_launch_of_1024 = per_launch;
    report(fmt::format("prepare_{}", launches), ms);
    report(fmt::format("prepare_{}_per_launch", launches), per_launch);
  }
  report("prepare_growth", per_launch / per_launch_of_1024);
  report("prepare_requests", prepare_ms(inputs, 1'024, true, budget));
  for (const auto& [size, steps] : {std::pair("small", 1), std::pair("large", 64)}) {
    const KernelCompile kernel(fmt::format("{}/kernel-{}.loom", inputs, size));
    kernel.check(JitTier::Fast, steps);
    kernel.check(JitTier::Optimized, steps);
    report(fmt::format("{}_fast", size), kernel.milliseconds(JitTier::Fast, budget));
    report(fmt::format("{}_optimized", size), kernel.milliseconds(JitTier::Optimized, budget));
  }
  return out + "}";
}

}  // namespace
}  // namespace loom::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: bench_compile INPUTS BUDGET_MS\n");
    return 2;
  }
  fmt::print("{}\n", loom::bench::run(argv[1], std::chrono::milliseconds(std::atoi(argv[2]))));
  return 0;
}
