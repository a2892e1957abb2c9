#pragma once

// The Loom programs of suite `kernels`, linked with the library, as our sides of it need them.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common.h"
#include "loom/api/loom.h"

namespace loom::bench {

// The text that kernels.loom_programs() wrote, every file of the library's folder, and one more
// library. What fails ends the process.
class KernelPrograms {
 public:
  KernelPrograms(const std::string& programs, const std::string& folder, const std::string& kernels)
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

  // Of the program of a case, as kernels.program_name() calls it.
  api::Plan plan(std::string_view case_name) {
    std::string root(case_name);
    for (char& c : root) {
      if (c == ':' || c == '.') c = '_';
    }
    auto linked = api::link(*inputs_, *library_, {.roots = {root}}, messages_);
    demand(linked.has_value());
    auto plan = api::prepare(std::move(*linked), {.roots = {root}}, messages_);
    demand(plan.has_value());
    return std::move(*plan);
  }

  api::Messages& messages() { return messages_; }
  void demand(bool holds) {
    if (!holds) fail(messages_.text());
  }

 private:
  static std::vector<std::string> library_files(const std::string& folder) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".loom") files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  api::Context context_;
  api::Messages messages_;
  std::unique_ptr<api::Library> library_;
  std::unique_ptr<api::Modules> inputs_;
};

}  // namespace loom::bench
