// A place where programs run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "loom/diag/diagnostic.h"
#include "loom/runtime/buffer.h"
#include "loom/runtime/program.h"

namespace loom {

// Thread-safe. Programs and buffers of a device must not outlive it.
class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // As --device spells it.
  virtual std::string_view name() const = 0;
  // Zeroed storage that programs of this device reach; nothing when there is not enough.
  virtual std::optional<Buffer> allocate(uint64_t bytes) = 0;
  // Everything that happens once: parameters found and placed, commands made ready. Null when an
  // error was reported.
  virtual std::unique_ptr<Program> materialize(const ProgramSource& source,
                                               Diagnostics& diagnostics) = 0;

 protected:
  Device() = default;
};

}  // namespace loom
