// Which build of the compiler is running.
#pragma once

#include <string>

namespace loom {

// Equal for two processes only when they run the same machine code of this library: the build id
// that the linker gave the program or shared library this function is in, or, where it has none, a
// hash of that file. Empty when neither can be read; nothing may be cached then. Computed once.
const std::string& build_id();

}  // namespace loom
