// Whether a text can be a complete replacement of a source file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hyperloom::integrate {

// Why not, in words; nothing when it may be. `extension` is that of the file, with its dot.
std::optional<std::string> refuse_replacement(std::string_view original, std::string_view text,
                                              std::string_view extension);

// Names by which the host reaches the file: public command programs of Loom, `extern "C"` functions
// and functions that a binding module defines. Sorted.
std::vector<std::string> host_entries(std::string_view text, std::string_view extension);

}  // namespace hyperloom::integrate
