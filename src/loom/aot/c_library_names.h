// Names that a C library already has.
#pragma once

#include <string_view>

namespace loom {

// Whether glibc's libc or libm export the name: a library that defined it, too, would be called in
// place of theirs, by everything in the process.
bool is_c_library_name(std::string_view name);

}  // namespace loom
