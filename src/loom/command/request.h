// Builds kernel requests: self-contained rooted modules in bytecode.
#pragma once

#include <optional>

#include "loom/command/classes.h"
#include "loom/command/prepare.h"
#include "loom/pass/pass_context.h"

namespace loom {

// The request for one class: the definition under its own symbol, retained, with the functions and
// configuration it reaches. What the class decides is decided in it, functions that decide are
// entered for that, and what its sites share stands in its contract: integers that are equal (`eq`;
// a float stands in the body), and of buffers and views what nothing writes (`readonly`), how long
// it is (`lengths`) and where it begins (`alignments`). Where the workgroup size depends on the
// workload (`fixed_size` is false), the class's replaces it in the configuration region.
//
// Applied families are replaced by exact calls where every target would decide alike; otherwise the
// request carries the implementations that are left to choose from. The module of `context` is read
// only; its tables and diagnostics are used. `located` asks for the form with places besides.
// Nothing when an error was reported.
std::optional<KernelRequest> make_request(PassContext& context, const RequestClass& of,
                                          const KernelDecisions& decisions, bool fixed_size,
                                          bool located);

}  // namespace loom
