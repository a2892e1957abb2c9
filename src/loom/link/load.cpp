#include "loom/link/load.h"

#include "loom/bytecode/bytecode.h"
#include "loom/dialect/verify.h"
#include "loom/text/parser.h"

namespace loom {

std::optional<Module> load_module(SourceFiles& files, std::string bytes, std::string_view path,
                                  Diagnostics& diagnostics, const LoadOptions& options) {
  const bool binary = options.form == InputForm::Bytecode ||
                      (options.form == InputForm::Auto && is_bytecode(bytes));
  std::optional<Module> module;
  if (binary) {
    module = read_bytecode(files, std::move(bytes), path, diagnostics,
                           {.defer_kernel_bodies = options.defer_kernel_bodies});
  } else {
    const FileId file = files.add_text(std::string(path), std::move(bytes));
    module = parse_text(files, file, diagnostics);
  }
  if (!module || !verify_module(*module, diagnostics)) return std::nullopt;
  return module;
}

}  // namespace loom
