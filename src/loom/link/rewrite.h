// Changes a module as an optimizer does: whole symbols and values of the configuration.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"

namespace loom {

// What a symbol of a module says about itself.
struct SymbolSummary {
  std::string name;  // without '@'
  std::string kind;  // "kernel", "function", "command program", ...
  bool declaration = false;
  bool exported = false;
  bool retained = false;
  // The arguments of each region that has some, under the region's name, and the preconditions:
  // `config(%n: index) body(%from: buffer, %to: buffer) where [mul(%n, 4)]`.
  std::string contract;
  std::vector<std::string> references;  // symbols that it mentions, without '@', in first-use order
};
// In module order. Bodies that are still encoded are summarized from the symbol index.
std::vector<SymbolSummary> summarize_symbols(const Module& module);

// Puts the kernel `replacement` of `from` in the place of the kernel `name`, whose name, linkage,
// export name, target and retention it takes over. What the replacement reaches comes along: a
// symbol that `module` has in the same words already is used, another of the same name is given a
// new one; configuration keys keep theirs. Both modules are verified and have all bodies open; so
// is the result. On failure `module` is what it was: SYMBOL/002 or SYMBOL/003 where a name is not
// that of a kernel with a body, LINK/002 where the replacement has another signature or requires
// what the contract of `name` does not imply, or what the verifier reports.
bool replace_kernel(Module& module, std::string_view name, const Module& from,
                    std::string_view replacement, Diagnostics& diagnostics);

// Binds one configuration key to a value, written as in `config.def`: every `config.get` of it
// becomes a constant. On failure `module` is what it was: SYMBOL/002 where it has no such key,
// CONFIG/001 where the value has another type or breaks a predicate.
bool bind_configuration(Module& module, std::string_view key, std::string_view value,
                        Diagnostics& diagnostics);

}  // namespace loom
