// Prepares command programs: linked module in, plan and kernel requests out.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "loom/command/plan.h"
#include "loom/diag/diagnostic.h"
#include "loom/dialect/target_info.h"
#include "loom/ir/module.h"

namespace loom {

// A self-contained rooted module in bytecode, from which one executable entry is compiled. It holds
// the kernel under its own symbol with everything it reaches, and neither comments, SSA names nor
// locations but those of checks, which a failure reports; so equal requests are equal bytes.
struct KernelRequest {
  uint32_t ordinal = 0;     // first-use number over the plan: kernel-<ordinal>.loombc
  std::string symbol;       // without '@'
  std::string export_name;  // artifact name
  std::string bytecode;
  // The same module with locations and names, where PrepareOptions asks for it; it compiles to the
  // same code with line tables, and is no key of anything but that.
  std::string located;
};

// Receives requests as each is complete; ownership moves to the recipient. Publication is
// provisional until prepare() returns: a plan commits the requests, a failure cancels them.
// Returns false to refuse a request, which fails the plan.
using RequestRecipient = std::function<bool(KernelRequest&&)>;

// What the preparation tells while it runs. Every member may be empty.
struct PrepareHooks {
  // Called after each pass with the pass name and the module as it stands.
  std::function<void(std::string_view pass, const Module&)> after_pass;
  // Called with the seconds that each pass took.
  std::function<void(std::string_view pass, double seconds)> timing;
};

class PassWorkspace;

struct PrepareOptions {
  std::vector<std::string> roots;  // program symbols without '@', in the wanted order
  // The most request classes of one kernel at one workgroup size, the last of which serves all
  // sites that the others do not; 0 for no limit.
  uint32_t max_request_classes = 0;
  PrepareHooks hooks;
  // Reports hazards between concurrent commands (COMMAND/013). Byte ranges are narrowed by those
  // kernel bodies that are open in the module; without one a hazard is a remark that says unknown.
  bool check_hazards = false;
  // What is known of the target of the kernels; folds launch configurations. Requests do not depend
  // on it.
  TargetFacts target;
  bool locate_requests = false;     // makes KernelRequest::located
  PassWorkspace* tables = nullptr;  // lent to the passes, which keep their memory in it
};

// The names of the passes, in their order, as --print-after accepts them.
std::span<const std::string_view> prepare_pass_names();

// Consumes the command programs of `module` (they are rewritten in place; kernels are not touched,
// and their bodies are read only to publish requests). Without a recipient no request is made.
// Returns nothing when it emitted errors.
std::optional<PreparedPlan> prepare(Module& module, const PrepareOptions& options,
                                    const RequestRecipient& recipient, Diagnostics& diagnostics);

// The default roots of a command product: public or retained programs, in module order.
std::vector<std::string> default_command_roots(const Module& module);

}  // namespace loom
