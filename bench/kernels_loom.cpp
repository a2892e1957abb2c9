// Our side of suite `kernels`, through the public interface alone.
//
// usage: bench_kernels PROGRAMS LIBRARY_FOLDER KERNELS BUDGET_MS CASE@THREADS...
// PROGRAMS is the text that kernels.loom_programs() wrote: one program a case, whose bindings are
// the case's inputs and then its output. KERNELS is one more library.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common.h"
#include "kernel_cases.h"
#include "loom/api/loom.h"

namespace loom::bench {
namespace {

std::vector<std::string> library_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".loom") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Programs {
 public:
  Programs(const std::string& programs, const std::string& folder, const std::string& kernels)
      : messages_(context_) {
    api::Modules files(context_);
    for (const std::string& path : library_files(folder)) {
      demand(files.add_file(path, messages_));
    }
    demand(files.add_file(kernels, messages_));
    library_ = std::make_unique<api::Library>(std::move(files));
    inputs_ = std::make_unique<api::Modules>(context_);
    demand(inputs_->add_file(programs, messages_));
  }

  Run make(const Problem& problem, const std::string& root, unsigned threads) {
    auto linked = api::link(*inputs_, *library_, {.roots = {root}}, messages_);
    demand(linked.has_value());
    const auto plan = api::prepare(std::move(*linked), {.roots = {root}}, messages_);
    demand(plan.has_value());
    const auto code = api::compile(*plan, {}, messages_);
    demand(code.has_value());
    const auto program =
        api::materialize(api::Device::cpu(threads), *plan, 0, *code, {}, messages_);
    demand(program.has_value());
    const auto invocation = std::make_shared<api::Invocation>(*program);
    uint32_t ordinal = 0;
    for (; ordinal < problem.input_count(); ++ordinal) {
      demand(invocation->bind(ordinal, problem.input(ordinal).bytes(), messages_));
    }
    demand(invocation->bind(ordinal, problem.output().bytes(), messages_));
    return [this, invocation] { demand(invocation->issue(messages_)); };
  }

 private:
  void demand(bool holds) {
    if (!holds) fail(messages_.text());
  }

  api::Context context_;
  api::Messages messages_;
  std::unique_ptr<api::Library> library_;
  std::unique_ptr<api::Modules> inputs_;
};

}  // namespace
}  // namespace loom::bench

int main(int argc, char** argv) {
  using namespace loom::bench;
  require(argc > 4,
          "usage: bench_kernels PROGRAMS LIBRARY_FOLDER KERNELS BUDGET_MS CASE@THREADS...");
  Programs programs(argv[1], argv[2], argv[3]);
  return measure_cases(argc, argv, 4, [&](const Problem& problem, unsigned threads) {
    std::string root = problem.name();
    for (char& c : root) {
      if (c == ':' || c == '.') c = '_';
    }
    return programs.make(problem, root, threads);
  });
}
