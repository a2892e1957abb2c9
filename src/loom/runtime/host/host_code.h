// Code for this machine's CPU, compiled from the kernel requests of a plan.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "loom/cache/cache.h"
#include "loom/command/footprint.h"
#include "loom/command/prepare.h"
#include "loom/command/program_view.h"
#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"
#include "loom/runtime/host/external_code.h"
#include "loom/runtime/program.h"
#include "loom/target/x86/jit.h"

namespace loom {

class PassWorkspace;

struct HostCodeOptions {
  JitOptions jit;
  std::shared_ptr<JitEngine> engine;     // that compiles; one is made where there is none
  PassWorkspace* tables = nullptr;       // lent to passes of the calling thread
  unsigned threads = 0;                  // that compile; 0 takes all
  std::vector<ExternalEntry> externals;  // entries whose code is elsewhere
  Cache* cache = nullptr;  // where code may come from and goes to; only used during the call
  // HostCode::compile() makes code of the fast tier first. Where the cache has optimized code that
  // is taken at once; otherwise a thread makes it meanwhile and puts it in place, without stopping
  // those who run the kernels. It stores what it made in `later_cache`.
  bool fast_first = false;
  std::shared_ptr<Cache> later_cache;
  std::function<void()> compiled;  // called after each request, from any thread
};

// The code of one request. Immutable.
struct HostKernel {
  JitKernel code;
  KernelNeeds needs;
};
// `options` must have an engine; its externals and threads are not looked at. Null when an error
// was reported.
std::shared_ptr<const HostKernel> compile_request(const KernelRequest& request,
                                                  const HostCodeOptions& options,
                                                  Diagnostics& diagnostics);

// The entries of a plan as functions in this process. Immutable; must outlive every program that
// was materialized with its entries.
class HostCode {
 public:
  ~HostCode();
  // Compiles every request of the plan. `source` is the module that the plan was prepared from, if
  // it is still there: a kernel that cannot be compiled is then reported where it was written,
  // which a request does not know. Entries that have code elsewhere are not compiled; one that the
  // plan does not have is RUN/045. Null when an error was reported.
  static std::unique_ptr<HostCode> compile(const PreparedPlan& plan,
                                           std::span<const KernelRequest> requests,
                                           const Module* source, const HostCodeOptions& options,
                                           Diagnostics& diagnostics);

  // The same from code that is there: `kernels[i]` is that of request number i, null where it has
  // none. Only `externals` and `engine` of the options are looked at.
  static std::unique_ptr<HostCode> assemble(const PreparedPlan& plan,
                                            std::vector<std::shared_ptr<const HostKernel>> kernels,
                                            const HostCodeOptions& options,
                                            Diagnostics& diagnostics);

  // What materialization takes for one program of that plan.
  struct Attachment {
    std::vector<EntryAddress> entries;  // by slot; 0 where no request serves it
    ProgramNeeds needs;
  };
  Attachment attach(const ProgramView& program) const;
  // sha256 over the code of every entry in the plan's order; of code from elsewhere only that it
  // is.
  std::string content_hash() const;

  // With fast_first: waits until all code is optimized, or known to stay as it is.
  void settle() const;
  // With fast_first: kernels whose code was replaced so far.
  size_t replaced() const;

 private:
  struct Later;
  void improve(std::vector<KernelRequest> requests, const HostCodeOptions& options,
               std::vector<std::shared_ptr<const HostKernel>> kernels);
  bool start(const PreparedPlan& plan, bool compiles, const HostCodeOptions& options,
             Diagnostics& diagnostics);
  bool load_externals(const PreparedPlan& plan, std::span<const ExternalEntry> externals,
                      Diagnostics& diagnostics);

  std::shared_ptr<JitEngine> engine_;
  std::vector<std::shared_ptr<const HostKernel>> kernel_of_;  // by EntryRequirement; null: none
  std::vector<ExternalCode> externals_;
  std::vector<LoomKernelEntry> external_of_;  // by EntryRequirement; null where there is none
  std::unique_ptr<Later> later_;              // ends before the code that it replaces
};

}  // namespace loom
