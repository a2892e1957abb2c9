// Runs a command program inside a C++ application: embed_cpp double.loom [CACHE FOLDER]
#include <array>
#include <cstdio>
#include <span>

#include "loom/api/loom.h"

namespace api = loom::api;

namespace {

int fail(const api::Messages& messages) {
  std::fputs(messages.text().c_str(), stderr);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  const api::Context context;
  api::Messages messages(context);
  api::Modules inputs(context);
  if (!inputs.add_file(argv[1], messages)) return fail(messages);
  auto linked = api::link(inputs, {}, {}, messages);
  if (!linked) return fail(messages);
  const auto plan = api::prepare(std::move(*linked), {.roots = {"twice"}}, messages);
  if (!plan) return fail(messages);
  // Requests are compiled by a pool of threads; a folder keeps their code for the next run.
  api::CompileOptions options;
  options.threads = 4;
  if (argc == 3) options.cache_folder = argv[2];
  const auto code = api::compile(*plan, options, messages);
  if (!code) return fail(messages);
  const auto program = api::materialize(api::Device::cpu(), *plan, 0, *code, {}, messages);
  if (!program) return fail(messages);

  // Two invocations of one program, each with storage of its own.
  for (float start = 1; start < 3; ++start) {
    std::array<float, 4> input = {start, start + 1, start + 2, start + 3};
    std::array<float, 4> output = {};
    api::Invocation invocation(*program);
    if (!invocation.bind("input", std::as_writable_bytes(std::span(input)), messages) ||
        !invocation.bind("output", std::as_writable_bytes(std::span(output)), messages) ||
        !invocation.issue(messages)) {
      return fail(messages);
    }
    std::printf("%g %g %g %g\n", output[0], output[1], output[2], output[3]);
  }
  return 0;
}
