// ELF objects to a shared object.
#pragma once

#include <string>
#include <vector>

#include "loom/base/file.h"

namespace loom {

struct SharedObjectParts {
  std::vector<std::string> objects;  // bytes of relocatable objects, in this order
  // Bytes of shared objects. Those that define what an object needs are named in the result; only
  // their names and their symbols count.
  std::vector<std::string> libraries;
  std::string soname;
};

// The bytes of a shared object for x86-64 without debug information; they depend only on the
// arguments. It exports what has default visibility, and everything is bound when it is loaded.
// The error is what the linker says, without a path, or a file in the system's temporary folder
// that cannot be used. Any number of threads may call; they take turns.
FileResult<std::string> link_shared_object(const SharedObjectParts& parts);

}  // namespace loom
