#include "loom/link/load.h"

#include <utility>

#include "loom/bytecode/bytecode.h"
#include "loom/dialect/verify.h"
#include "loom/text/parser.h"

namespace loom {
namespace {

// Files that people take for modules, by their first bytes.
constexpr std::pair<std::string_view, std::string_view> kForeign[] = {
    {"LOOMCMD", "a command artifact"},
    {"\x7f"
     "ELF",
     "an object or program"},
    {"GGUF", "a GGUF parameter file"},
    {"\x93NUMPY", "an npy array"},
};

// What the bytes are instead of a module; empty when nothing is known.
std::string_view foreign_kind(std::string_view bytes) {
  for (const auto& [magic, kind] : kForeign) {
    if (bytes.starts_with(magic)) return kind;
  }
  return {};
}

}  // namespace

std::optional<Module> load_module(SourceFiles& files, std::string bytes, std::string_view path,
                                  Diagnostics& diagnostics, const LoadOptions& options) {
  if (const std::string_view kind = foreign_kind(bytes); !kind.empty()) {
    diagnostics.emit(Diag::BinaryForeign, {files.add_reference(std::string(path), 0), 0, 0, 0},
                     {{"kind", std::string(kind)}});
    return std::nullopt;
  }
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
