#include "loom/api/arrays.h"

#include "loom/api/state.h"
#include "loom/runtime/parameters/parameter_file.h"

namespace loom::api {

std::optional<Array> read_array(const std::string& path, const std::optional<ArrayType>& expected,
                                Messages& messages) {
  const auto file = ArrayFile::open(path, expected, messages.state().diagnostics);
  if (!file) return std::nullopt;
  return Array{file->type, {file->bytes.begin(), file->bytes.end()}};
}

}  // namespace loom::api
