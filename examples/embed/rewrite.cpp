// What an optimizer does, with nothing but the installed headers: enumerates the symbols of a
// module, puts another kernel in the place of one, binds configuration, and runs the result on
// memory of its own, with the time of each dispatch: embed_rewrite scaled.loom
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "loom/api/loom.h"
#include "loom/api/profile.h"

namespace api = loom::api;

namespace {

// The same contract as @scale, and another body: it negates.
constexpr const char* kCandidate = R"(kernel.def @candidate(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%from: buffer, %to: buffer) {
  %i = kernel.workgroup.id<x> : index
  %base = index.constant 0 : offset
  %in = buffer.view %from[%base] : buffer -> view<4xi32>
  %out = buffer.view %to[%base] : buffer -> view<4xi32>
  %zero = scalar.constant 0 : i32
  %a = view.load %in[%i] : view<4xi32> -> i32
  %b = scalar.subi %zero, %a : i32
  view.store %b, %out[%i] : i32, view<4xi32>
  kernel.return
}
)";

using Numbers = std::array<int32_t, 4>;

// Compiles the module's @run, runs it once and prints what came out and what was dispatched.
bool run(const api::Context& context, const api::Module& module, api::Messages& messages) {
  api::Modules inputs(context);
  if (!inputs.add(module.bytecode(), "rewritten", messages)) return false;
  auto linked = api::link(inputs, {}, {.roots = {"run"}}, messages);
  if (!linked) return false;
  const auto plan = api::prepare(std::move(*linked), {}, messages);
  if (!plan) return false;
  const auto code = api::compile(*plan, {}, messages);
  if (!code) return false;
  const api::Device device = api::Device::cpu(1);
  const auto program = api::materialize(device, *plan, 0, *code, {}, messages);
  if (!program) return false;

  Numbers input = {1, 2, 3, 4};
  Numbers output = {};
  api::Invocation invocation(*program);
  api::Profile profile(*program);
  if (!invocation.bind("input", api::Storage::import(device, input.data(), sizeof input),
                       messages) ||
      !invocation.bind("output", api::Storage::import(device, output.data(), sizeof output),
                       messages) ||
      !invocation.issue(profile, messages)) {
    return false;
  }
  std::printf("%d %d %d %d\n", output[0], output[1], output[2], output[3]);
  for (const api::ProfiledDispatch& dispatch : profile.dispatches()) {
    const api::ProfiledCommand& command = profile.commands()[dispatch.command];
    std::printf("@%s [%u, %u, %u], %zu operands, %s\n", command.kernel.c_str(), dispatch.grid[0],
                dispatch.grid[1], dispatch.grid[2], command.operands.size(),
                dispatch.begin <= dispatch.end ? "timed" : "not timed");
  }
  return true;
}

int fail(const api::Messages& messages) {
  std::fputs(messages.text().c_str(), stderr);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const api::Context context;
  api::Messages messages(context);
  auto module = api::Module::read(context, text, argv[1], messages);
  const auto candidate = api::Module::read(context, kCandidate, "candidate", messages);
  if (!module || !candidate) return fail(messages);
  for (const api::Symbol& symbol : module->symbols()) {
    std::printf("%s @%s%s%s\n", symbol.kind.c_str(), symbol.name.c_str(),
                symbol.contract.empty() ? "" : " ", symbol.contract.c_str());
  }
  // A value that breaks the key's condition is refused, and the module stays as it is.
  if (module->bind_config("factor", "1000", messages)) return 1;
  messages.clear();
  if (!module->bind_config("factor", "10", messages)) return fail(messages);
  if (!run(context, *module, messages)) return fail(messages);
  if (!module->replace_kernel("scale", *candidate, "candidate", messages)) return fail(messages);
  if (!run(context, *module, messages)) return fail(messages);
  return 0;
}
