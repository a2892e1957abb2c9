// Writes that are on the disk when the call returns, names included.
#pragma once

#include <filesystem>
#include <string_view>

#include "hyperloom/core/error.h"

namespace hyperloom {

// Replaces the file atomically, then syncs the folder that names it. A path that is a symbolic link
// is refused, so that nothing outside the folder can be replaced. Errors: "unwritable_file"; the
// old content stays, besides when only the folder could not be synced.
Result<void> write_durable(const std::filesystem::path& path, std::string_view content);

// Appends `line` and a line end to the file, which is made when missing, and syncs it. On failure
// the file is cut back to what it was. One writer at a time. Errors: "unwritable_file".
Result<void> append_line(const std::filesystem::path& path, std::string_view line);

// Makes the folder and its missing parents, and syncs what names them. Errors: "unwritable_file".
Result<void> make_folder(const std::filesystem::path& path);

// Syncs the names in a folder: after a file in it was made, renamed or removed.
Result<void> sync_folder(const std::filesystem::path& path);

}  // namespace hyperloom
