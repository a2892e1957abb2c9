// Source places of the code that is lowered: DWARF line tables and the places of remarks.
#pragma once

#include <llvm/IR/DebugLoc.h>

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "loom/ir/module.h"

namespace llvm {
class DIBuilder;
class DIFile;
class DILocation;
class DIScope;
class DISubprogram;
class Function;
class Module;
}  // namespace llvm

namespace loom {

// Lines alone: no variables, no types. A module that knows no places (a kernel request is one) gets
// no debug information at all. Files are named as the module does, relative to the folder in which
// the debugger runs.
class DebugLines {
 public:
  // Both must outlive this.
  DebugLines(const Module& module, llvm::Module& target);
  ~DebugLines();

  // Until the next call, places are of this function, which `op` defines.
  void begin(llvm::Function& function, std::string_view name, OpId op);
  // Places between the two are of the callee's body, seen from the call.
  void enter_call(OpId call, OpId callee, std::string_view name);
  void leave_call();

  // The place of an operation in the current function. Code of an operation without a place belongs
  // to no line.
  llvm::DebugLoc at(OpId op);

  // Once, when everything is lowered.
  void finish();

 private:
  struct Scope {
    llvm::DISubprogram* subprogram = nullptr;
    FileId file;
    llvm::DILocation* called_at = nullptr;
  };
  llvm::DIFile* file_of(FileId id);
  llvm::DISubprogram* subprogram(OpId op, std::string_view name);
  llvm::DIScope* scope_in(FileId file);

  const Module& module_;
  llvm::Module& target_;
  std::unique_ptr<llvm::DIBuilder> builder_;  // null where no places are known
  std::vector<Scope> scopes_;                 // the function, and the calls that are open
  std::unordered_map<uint32_t, llvm::DIFile*> files_;
  std::unordered_map<uint32_t, llvm::DISubprogram*> inlined_;  // by function
};

}  // namespace loom
