#include "loom/aot/c_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace loom {
namespace {

constexpr std::string_view kReserved[] = {
    // C
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
    "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict",
    "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union",
    "unsigned", "void", "volatile", "while", "constexpr", "nullptr", "typeof", "typeof_unqual",
    // C++
    "alignas", "alignof", "and", "and_eq", "asm", "bitand", "bitor", "bool", "catch", "char16_t",
    "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept",
    "const_cast", "consteval", "constinit", "decltype", "delete", "dynamic_cast", "explicit",
    "export", "false", "friend", "module", "import", "mutable", "namespace", "new", "noexcept",
    "not", "not_eq", "operator", "or", "or_eq", "private", "protected", "public",
    "reinterpret_cast", "requires", "static_assert", "static_cast", "template", "this",
    "thread_local", "throw", "true", "try", "typeid", "typename", "using", "virtual", "wchar_t",
    "xor", "xor_eq",
    // what compilers and the C library define as macros
    "linux", "unix", "i386", "NULL", "EOF", "INFINITY", "NAN", "I", "assert", "complex", "errno",
    "imaginary", "offsetof", "setjmp", "stderr", "stdin", "stdout",
    // what the header itself names
    "main", "memcpy", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t",
    "uint64_t", "LoomDispatchShape", "LoomKernelEntry"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool is_c_identifier(std::string_view name) {
  return !name.empty() && !is_digit(name.front()) &&
         std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c); });
}

bool is_c_reserved(std::string_view name) {
  if (std::ranges::find(kReserved, name) != std::end(kReserved)) return true;
  // Macros of <stdint.h> and <limits.h>.
  static constexpr std::string_view kEndings[] = {"_MAX", "_MIN", "_C", "_WIDTH"};
  if (std::ranges::any_of(kEndings, [&](std::string_view end) { return name.ends_with(end); })) {
    return true;
  }
  // `__` anywhere is C++'s; `_` is both languages' outside of functions.
  return name.starts_with('_') || name.contains("__") || name.starts_with("loom_");
}

std::string c_name_like(std::string_view wanted) {
  std::string name;
  for (const char c : wanted) {
    const char next = is_letter(c) || is_digit(c) ? c : '_';
    if (next == '_' && (name.empty() || name.back() == '_')) continue;
    name += next;
  }
  if (name.empty()) return "unnamed";
  return is_digit(name.front()) ? "v" + name : name;
}

std::string free_c_name(std::string_view wanted, std::set<std::string>& taken) {
  std::string name = c_name_like(wanted);
  if (is_c_reserved(name)) name = "the_" + name;
  std::string free = name;
  for (unsigned i = 2; !taken.insert(free).second; ++i) free = fmt::format("{}_{}", name, i);
  return free;
}

}  // namespace loom
