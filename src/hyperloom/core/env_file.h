// `.env` files: settings beside the program, below what the environment says.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "hyperloom/core/environment.h"
#include "hyperloom/core/error.h"

namespace hyperloom {

// Lines `NAME=value`, `export NAME=value`, blank ones and comments from `#` on. A value is bare (it
// ends at blanks), '...' (taken as it is) or "..." (with \" \\ \$ and \` escaped). In bare and
// double-quoted values $NAME, ${NAME} and ${NAME:-default} are expanded: from `environment`, else
// from an earlier line, else empty; the default stands where that is empty, and is plain text.
// Errors: "invalid_env_file" naming `name` and the line.
Result<std::map<std::string, std::string>> parse_env_file(std::string_view text,
                                                          const std::string& name,
                                                          const Environment& environment);

// The environment with the file's variables added; one that is set already, be it to nothing, stays
// as it is. A file that is not there adds nothing. Errors: "unreadable_file", "invalid_env_file".
Result<Environment> with_env_file(const Environment& environment,
                                  const std::filesystem::path& file);

}  // namespace hyperloom
