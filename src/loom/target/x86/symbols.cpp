#include "loom/target/x86/symbols.h"

#include <llvm/Support/Endian.h>
#include <llvm/Support/LEB128.h>

#include <algorithm>
#include <iterator>

#include "loom/target/x86/object_file.h"

namespace loom {

std::optional<std::vector<std::string>> undefined_symbols(std::string_view object,
                                                          std::string& error) {
  const auto parsed = open_object(object, error);
  if (!parsed) return std::nullopt;
  std::vector<std::string> names;
  for (const llvm::object::SymbolRef& symbol : parsed->symbols()) {
    auto flags = symbol.getFlags();
    if (!flags) return failed(flags.takeError(), error);
    using llvm::object::BasicSymbolRef;
    if ((*flags & BasicSymbolRef::SF_Undefined) == 0 || (*flags & BasicSymbolRef::SF_Weak) != 0) {
      continue;
    }
    auto name = symbol.getName();
    if (!name) return failed(name.takeError(), error);
    if (!name->empty()) names.push_back(name->str());
  }
  std::ranges::sort(names);
  return names;
}

std::optional<std::map<std::string, uint64_t>> frame_sizes(std::string_view object,
                                                           std::string& error) {
  const auto parsed = open_object(object, error);
  if (!parsed) return std::nullopt;
  std::map<uint64_t, uint64_t> by_address;
  for (const llvm::object::SectionRef& section : parsed->sections()) {
    auto name = section.getName();
    if (!name) return failed(name.takeError(), error);
    if (*name != ".stack_sizes") continue;
    auto content = section.getContents();
    if (!content) return failed(content.takeError(), error);
    // The address of a function, and its size in a number of its own length.
    for (size_t at = 0; at + sizeof(uint64_t) < content->size();) {
      const uint64_t address = llvm::support::endian::read64le(content->data() + at);
      at += sizeof address;
      unsigned length = 0;
      const char* problem = nullptr;
      const uint64_t bytes =
          llvm::decodeULEB128(content->bytes_begin() + at, &length, content->bytes_end(), &problem);
      if (problem != nullptr) break;
      at += length;
      by_address[address] = bytes;
    }
  }
  std::map<std::string, uint64_t> sizes;
  for (const llvm::object::SymbolRef& symbol : parsed->symbols()) {
    auto name = symbol.getName();
    if (!name) return failed(name.takeError(), error);
    auto address = symbol.getAddress();
    if (!address) return failed(address.takeError(), error);
    const auto found = by_address.find(*address);
    if (found != by_address.end()) sizes[name->str()] = found->second;
  }
  return sizes;
}

bool is_memory_function(std::string_view name) {
  static constexpr std::string_view kNames[] = {"bcmp", "memcmp", "memcpy", "memmove", "memset"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

bool is_math_function(std::string_view name) {
  // In double; those in float have an `f` behind them.
  static constexpr std::string_view kNames[] = {
      "acos",   "asin",      "atan", "atan2",     "cbrt",  "ceil",  "copysign",  "cos",
      "cosh",   "erf",       "erfc", "exp",       "exp10", "exp2",  "expm1",     "fabs",
      "floor",  "fma",       "fmax", "fmin",      "fmod",  "frexp", "hypot",     "ldexp",
      "llrint", "llround",   "log",  "log10",     "log1p", "log2",  "lrint",     "lround",
      "modf",   "nearbyint", "pow",  "remainder", "rint",  "round", "roundeven", "sin",
      "sincos", "sinh",      "sqrt", "tan",       "tanh",  "trunc"};
  const auto known = [](std::string_view text) {
    return std::ranges::find(kNames, text) != std::end(kNames);
  };
  return known(name) || (name.ends_with('f') && known(name.substr(0, name.size() - 1)));
}

}  // namespace loom
