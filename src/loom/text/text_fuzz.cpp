// Parses arbitrary text; what is accepted must print as text that reads back and prints the same.
#include <cstdlib>

#include "loom/text/parser.h"
#include "loom/text/printer.h"

namespace {

std::optional<loom::Module> parse(loom::SourceFiles& files, std::string text) {
  loom::Diagnostics diagnostics;
  const loom::FileId file = files.add_text("fuzz.loom", std::move(text));
  auto module = loom::parse_text(files, file, diagnostics);
  if (module.has_value() == diagnostics.has_errors()) std::abort();
  return module;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  loom::SourceFiles files;
  const auto module = parse(files, std::string(reinterpret_cast<const char*>(data), size));
  if (!module) return 0;
  const std::string text = loom::print_text(*module);
  loom::SourceFiles again_files;
  const auto again = parse(again_files, text);
  if (!again || loom::print_text(*again) != text) std::abort();
  return 0;
}
