// The symbol index: what is known of each symbol without its body.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loom/ir/module.h"

namespace loom {

// Whether the linker may give the symbol to another module: `public`, or with an artifact name.
bool is_exported(const Module& module, OpId symbol);
// Kept alive through pruning.
bool is_retained(const Module& module, OpId symbol);

// The symbols that an operation and everything in it mentions, in order of first mention, its own
// name excluded. A deferred body is not opened: its references were stored beside it.
std::vector<StringId> symbol_references(const Module& module, OpId symbol);

// --- the encoded form --------------------------------------------------------------------------

std::string encode_symbol_index(const Module& module);
// Gives each module-level operation, in order, its access facets, and stores the references of
// kernels whose body is deferred. Returns the reason of a failure (a literal), null on success.
const char* decode_symbol_index(Module& module, std::string_view bytes);

}  // namespace loom
