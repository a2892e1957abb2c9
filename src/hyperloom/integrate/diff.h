// Unified diffs, as far as a snapshot needs them: which files they change and how.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hyperloom/core/json.h"

namespace hyperloom::integrate {

// What happens to one path. A rename is a delete and a write; a copy is a write.
struct DiffEntry {
  enum class Op : uint8_t { Write, Delete };
  Op op = Op::Write;
  std::string path;              // as written, without the a/ or b/ in front
  std::optional<unsigned> mode;  // permission bits, where the diff gives them
  bool binary = false;
};

// Reads the output of `git diff` (also --no-prefix, renames, copies, modes, binary markers, quoted
// names) and of `diff -u`. Text around the files' parts is skipped; a hunk has to have as many
// lines as its head says. Paths come as they are: whether they stay inside of a tree is for the
// caller to see. Errors: "invalid_diff" naming `name` and line; a diff without files is one.
Result<std::vector<DiffEntry>> parse_diff(std::string_view text, const std::string& name);

// [{op, path, mode?, binary?}, ...]
Json descriptors_of(const std::vector<DiffEntry>& entries);

// One file's part of a unified diff (three lines of context), empty when the two are equal. An
// absent side is a file that is added or deleted.
struct DiffSide {
  std::string_view content;
  unsigned mode = 0644;
};
std::string write_diff(const std::string& path, const std::optional<DiffSide>& before,
                       const std::optional<DiffSide>& after);

}  // namespace hyperloom::integrate
