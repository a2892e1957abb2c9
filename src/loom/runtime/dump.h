// Writes what dispatches leave in storage, one after the other.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "loom/base/file.h"
#include "loom/command/program_view.h"
#include "loom/runtime/parameters/array_type.h"

namespace loom {

// A folder with one file for each binding and transient that a dispatch was given, as it is after
// the dispatch, and `index.json`, which lists them and is written last:
//
//   {"schema": "loom.dump.v0", "program": "p", "complete": true, "dispatches": [{"command": 0,
//    "kernel": "scale", "workgroups": [8, 1, 1], "storage": [{"name": "x", "kind": "binding",
//    "file": "0000-x.npy", "bytes": 32, "type": "8xf32"}]}]}
//
// A binding whose array type is known is a .npy file, everything else the bare bytes (.bin); the
// counts of an indirect dispatch are left out. Parameters do not change and are not written.
class StorageDump {
 public:
  struct Binding {
    std::string name;
    std::span<const std::byte> bytes;
    std::optional<ArrayType> type;  // of the first bytes
  };
  // What `program` was made from and the bindings' storage must outlive the dump.
  StorageDump(const ProgramView& program, std::string folder, std::vector<Binding> bindings);

  // Creates the folder and its missing parents.
  FileResult<void> begin();
  // After a command; `slab` holds the transients. The first failure stops all later writes.
  void after(uint32_t command, std::span<const std::byte> slab);
  // Writes the index; `complete` says whether the program came to its end.
  FileResult<void> finish(bool complete);

 private:
  struct File {
    std::string name;
    const char* kind;
    std::string file;
    uint64_t bytes = 0;
    std::string type;  // empty for bare bytes
  };
  struct Dispatch {
    uint32_t command = 0;
    std::vector<File> files;
  };
  void write(File file, std::span<const std::byte> bytes, const std::optional<ArrayType>& type,
             std::vector<File>& files);

  const ProgramView program_;
  const std::string folder_;
  std::vector<Binding> bindings_;
  std::vector<Dispatch> dispatches_;
  std::optional<FileError> failed_;
};

}  // namespace loom
