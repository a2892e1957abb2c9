// Bytecode: the binary form of a module (`.loombc`).
//
// A file holds everything that the text holds, SSA names, comments and blank lines included, and in
// addition the place of each operation, the path and hash of each source, and a symbol index. The
// device body of each kernel is a section of its own, so a reader that only plans never touches
// one. The layout is described in README.md. Equal modules give equal bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"

namespace loom {

inline constexpr uint32_t kBytecodeMajor = 1;
inline constexpr uint32_t kBytecodeMinor = 0;

// Whether the bytes start as bytecode does; says nothing about what follows.
bool is_bytecode(std::string_view bytes);

struct WriteOptions {
  // Leaves out what does not change the meaning: locations, sources, comments, blank lines and SSA
  // names. Needs every kernel body to be opened.
  bool strip = false;
  // With `strip`: keeps the places of checks (kernel.assert, sanitizer.*), which failures report,
  // with the names of their files but not of folders.
  bool keep_check_places = false;
};

// Encodes the module. A kernel body that is still deferred is copied as it stands.
std::string write_bytecode(const Module& module, const WriteOptions& options = {});

struct ReadOptions {
  // Leaves device bodies of kernels encoded: their regions are `deferred`, the module keeps the
  // bytes, and load_kernel_body() opens one when it is needed.
  bool defer_kernel_bodies = false;
  // Refuses sections whose bytes do not match their recorded hash. Off only where a test wants to
  // reach the decoder behind it.
  bool check_hashes = true;
};

// Decodes a module; nothing after a diagnostic (BINARY/001 for another version, BINARY/002 for
// malformed bytes). Whatever the bytes are, memory stays proportional to their number, and a module
// that is returned is well formed: operations hold what their table rows say, values are visible
// where they are used. Types, contracts and effects are the verifier's to check.
std::optional<Module> read_bytecode(SourceFiles& files, std::string bytes, std::string_view path,
                                    Diagnostics& diagnostics, const ReadOptions& options = {});

// Opens the device body of `kernel`; true at once when it is not deferred. On failure BINARY/002 is
// reported and the body stays deferred. The opened body has not been verified.
bool load_kernel_body(Module& module, OpId kernel, Diagnostics& diagnostics,
                      const ReadOptions& options = {});
// Opens every deferred body of the module.
bool load_kernel_bodies(Module& module, Diagnostics& diagnostics);

// Gives `to`, a clone of the kernel `from` of another module, the still encoded body of `from`.
void share_kernel_body(const Module& source, OpId from, Module& target, OpId to);

}  // namespace loom
