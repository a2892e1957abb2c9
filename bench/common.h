#pragma once

// Small helpers of the benchmark programs: a failure here means there is nothing worth timing.

#include <fmt/core.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "loom/base/file.h"
#include "loom/diag/diagnostic.h"
#include "loom/diag/render.h"
#include "loom/ir/module.h"
#include "loom/link/load.h"

namespace loom::bench {

[[noreturn]] inline void fail(std::string_view what) {
  fmt::print(stderr, "bench: {}\n", what);
  std::exit(1);
}

inline void require(bool holds, std::string_view what) {
  if (!holds) fail(what);
}

// The value of a step that reports its errors as diagnostics.
template <typename T>
T value_or_fail(std::optional<T> value, const Diagnostics& diagnostics, std::string_view step) {
  if (value.has_value()) return std::move(*value);
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    fmt::print(stderr, "{}: {}\n", diag_code(diagnostic.id), diagnostic.message());
  }
  fail(step);
}

inline std::string read_input(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes) fail("cannot read " + path);
  return std::move(*bytes);
}

// The most memory that the process has had so far.
inline uint64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

inline Module load(SourceFiles& files, std::string bytes, std::string_view path,
                   const LoadOptions& options = {}) {
  Diagnostics diagnostics;
  return value_or_fail(load_module(files, std::move(bytes), path, diagnostics, options),
                       diagnostics, path);
}

}  // namespace loom::bench
