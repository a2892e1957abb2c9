#pragma once

// Generated Loom text to a linked module and its plan, as both benchmark programs need it.

#include <string>
#include <utility>
#include <vector>

#include "common.h"
#include "loom/command/prepare.h"
#include "loom/link/link.h"

namespace loom::bench {

// One file with one command program as root.
class ProgramText {
 public:
  ProgramText(const std::string& path, std::string root) : root_(std::move(root)) {
    inputs_.push_back({load(files_, read_input(path), path), path});
  }

  Module linked() const {
    LinkOptions options;
    options.roots = {root_};
    Diagnostics diagnostics;
    return value_or_fail(link(inputs_, LibraryIndex(), options, diagnostics), diagnostics, "link");
  }

  PreparedPlan prepare(Module& module, const RequestRecipient& recipient) const {
    PrepareOptions options;
    options.roots = {root_};
    Diagnostics diagnostics;
    return value_or_fail(loom::prepare(module, options, recipient, diagnostics), diagnostics,
                         "prepare");
  }

 private:
  std::string root_;
  SourceFiles files_;
  std::vector<LinkInput> inputs_;
};

}  // namespace loom::bench
