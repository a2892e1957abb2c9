// What every pass works on, and the storage that passes share.
//
// A pass is a function over one root: a symbol-defining operation with a body (command program,
// function, kernel). It changes that body only, never a signature, and costs time linear in the
// operations of the root, not of the module. Nothing in a pass recurses over nesting.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"

namespace loom {

class PassWorkspace;

// What became of a loop that asks for a transformation.
struct LoopNote {
  OpId root;
  Location place;
  std::string_view transform;  // "pipeline"
  bool done = false;
  std::string detail;  // how, or why not
};

// Lend one context to all passes over a module: its dense tables are kept between them. The module
// and the diagnostics must outlive it. Not thread-safe.
class PassContext {
 public:
  // With `lent`, which must outlive it, the tables are those: they are kept between contexts.
  PassContext(Module& module, Diagnostics& diagnostics, PassWorkspace* lent = nullptr);
  ~PassContext();
  PassContext(const PassContext&) = delete;
  PassContext& operator=(const PassContext&) = delete;

  Module& module() const { return module_; }
  Diagnostics& diagnostics() const { return diagnostics_; }
  PassWorkspace& workspace() { return *used_; }
  // Where passes leave what they have to say about loops; null, as at first, where nobody asks. It
  // changes nothing else that they do.
  std::vector<LoopNote>* loop_notes = nullptr;

 private:
  Module& module_;
  Diagnostics& diagnostics_;
  std::unique_ptr<PassWorkspace> own_;
  PassWorkspace* used_;
};

}  // namespace loom
