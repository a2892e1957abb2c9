// Executables that someone else built, as entries of this process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loom/command/plan.h"
#include "loom/diag/diagnostic.h"
#include "loom/target/x86/jit.h"

namespace loom {

// Who serves an entry of a plan, in place of its request where it has one: a function of this
// process that follows target/x86/kernel_abi.h, or one in a file.
struct ExternalEntry {
  std::string symbol;                  // of the entry, without '@'
  LoomKernelEntry function = nullptr;  // or else:
  std::string file;                    // ELF relocatable or shared object for x86-64
  std::string name;                    // in the file; empty: the entry's artifact name
};

// A loaded file's entry. Dies with this object, so nothing may run it then.
class ExternalCode {
 public:
  // Reports IO/001, RUN/041 for a file that is no executable or is damaged, RUN/042 for a name that
  // it does not define, RUN/044 for one that another kind of device runs, and RUN/043 when the file
  // says (objects of this compiler do) that the entry takes other arguments than `row` passes. A
  // shared object's initializers run, so the file must be trusted.
  static std::optional<ExternalCode> load(const ExternalEntry& entry, const EntryRequirement& row,
                                          JitEngine& engine, Diagnostics& diagnostics);
  LoomKernelEntry entry() const { return entry_; }

 private:
  struct Unload {
    void operator()(void* handle) const;
  };
  JitKernel code_;                         // of a relocatable object
  std::unique_ptr<void, Unload> library_;  // a shared object
  LoomKernelEntry entry_ = nullptr;
};

}  // namespace loom
