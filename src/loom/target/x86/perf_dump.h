// What Linux perf reads to show code that this process made by name and source line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "loom/base/file.h"

namespace loom {

// A place in code and the line that it comes from.
struct CodeLine {
  uint64_t address = 0;
  uint32_t line = 0;
  std::string file;
};

// Writes FOLDER/jit-PID.dump in the jitdump format of perf, version 1. perf finds it by a mapping
// of the file that lasts as long as this object, so that one has to be alive while perf records.
// All members may be called from several threads at once.
class PerfDump {
 public:
  // Makes the folder where it is missing.
  static std::expected<std::unique_ptr<PerfDump>, FileError> create(const std::string& folder);
  ~PerfDump();
  PerfDump(const PerfDump&) = delete;
  PerfDump& operator=(const PerfDump&) = delete;

  // Code that begins at `address` in this process; its lines ascend. What cannot be written is
  // lost.
  void add(std::string_view name, uint64_t address, std::span<const std::byte> code,
           std::span<const CodeLine> lines);

 private:
  PerfDump(int file, void* mapping) : file_(file), mapping_(mapping) {}

  std::mutex mutex_;
  int file_;
  void* mapping_;
  uint64_t next_number_ = 0;
};

}  // namespace loom
