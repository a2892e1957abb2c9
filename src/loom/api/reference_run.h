// A linked program on the reference interpreter, for applications: what the program means, against
// which compiled code can be held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "loom/api/loom.h"

namespace loom::api {

// Storage of a binding; the caller's, read and written.
struct NamedStorage {
  std::string name;  // without '%'
  std::span<std::byte> bytes;
};

enum class ReferenceOutcome : uint8_t {
  Done,
  Failed,   // the messages say why
  TooLong,  // `step_limit` operations were not enough; the storage is half written
};

// Runs the program `root` (without '@') once. The module was linked from text, or from bytecode
// that was read whole.
ReferenceOutcome run_reference(const LinkedModule& module, const std::string& root,
                               std::span<const NamedStorage> storage, const Parameters& parameters,
                               uint64_t step_limit, Messages& messages);

}  // namespace loom::api
