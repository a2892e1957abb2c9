// Our side of suite `kernels`, through the public interface alone.
//
// usage: bench_kernels PROGRAMS LIBRARY_FOLDER KERNELS BUDGET_MS CASE@THREADS...
// PROGRAMS is the text that kernels.loom_programs() wrote: one program a case, whose bindings are
// the case's inputs and then its output. KERNELS is one more library.

#include <memory>

#include "kernel_cases.h"
#include "kernel_programs.h"

namespace loom::bench {
namespace {

Run make(KernelPrograms& programs, const Problem& problem, unsigned threads) {
  api::Messages& messages = programs.messages();
  const api::Plan plan = programs.plan(problem.name());
  const auto code = api::compile(plan, {}, messages);
  programs.demand(code.has_value());
  const auto program = api::materialize(api::Device::cpu(threads), plan, 0, *code, {}, messages);
  programs.demand(program.has_value());
  const auto invocation = std::make_shared<api::Invocation>(*program);
  uint32_t ordinal = 0;
  for (; ordinal < problem.input_count(); ++ordinal) {
    programs.demand(invocation->bind(ordinal, problem.input(ordinal).bytes(), messages));
  }
  programs.demand(invocation->bind(ordinal, problem.output().bytes(), messages));
  return [&programs, invocation] { programs.demand(invocation->issue(programs.messages())); };
}

}  // namespace
}  // namespace loom::bench

int main(int argc, char** argv) {
  using namespace loom::bench;
  require(argc > 4,
          "usage: bench_kernels PROGRAMS LIBRARY_FOLDER KERNELS BUDGET_MS CASE@THREADS...");
  KernelPrograms programs(argv[1], argv[2], argv[3]);
  return measure_cases(argc, argv, 4, [&](const Problem& problem, unsigned threads) {
    return make(programs, problem, threads);
  });
}
