// What an object says of its functions and leaves to others.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loom {

// The names that an object uses and does not define, sorted; weak ones, which may stay without a
// definition, are left out. Nothing, and the reason in `error`, when it is no object.
std::optional<std::vector<std::string>> undefined_symbols(std::string_view object,
                                                          std::string& error);

// The bytes of stack that each function of a linked object takes for itself, where the objects that
// it was made of say so (those of variants do: X86Options::variant). Nothing, and the reason in
// `error`, when it is no object.
std::optional<std::map<std::string, uint64_t>> frame_sizes(std::string_view object,
                                                           std::string& error);

// What generated code may call of the C library, and of its part for mathematics.
bool is_memory_function(std::string_view name);
bool is_math_function(std::string_view name);

}  // namespace loom
