// Reads Loom text into a module.
#pragma once

#include <optional>

#include "loom/ir/module.h"

namespace loom {

// Parses the text of a file that `files` holds. Syntax, names and the types that the text restates
// are checked here; what an operation's row cannot say is left to the verifier. Problems are
// reported in source order, with recovery at the next operation; nullopt when there was any.
// Operations carry the place of their name. Nesting depth costs no stack.
std::optional<Module> parse_text(SourceFiles& files, FileId file, Diagnostics& diagnostics);

}  // namespace loom
