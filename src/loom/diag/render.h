// Renders diagnostics for people (with the source line and a caret) or programs (JSON lines).
#pragma once

#include <string>

#include "loom/diag/diagnostic.h"

namespace loom {

// `file:line:col: error[CODE]: message`, the source line and a caret, then hint and notes, each
// line ended by a newline. The place is left out when the diagnostic has none.
std::string render_text(const Diagnostic& diagnostic, const SourceFiles& files);

// One JSON object on one line: severity, code, message, file, line, column, length, params, hint,
// notes.
std::string render_json(const Diagnostic& diagnostic, const SourceFiles& files);

}  // namespace loom
