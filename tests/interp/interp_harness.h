// Parses, verifies and interprets test modules.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "loom/dialect/verify.h"
#include "loom/interp/interp.h"
#include "loom/text/parser.h"

namespace loom::test {

struct Source {
  SourceFiles files;
  Diagnostics diagnostics;
  std::optional<Module> module;

  explicit Source(std::string text) {
    module = parse_text(files, files.add_text("test.loom", std::move(text)), diagnostics);
    if (module && !verify_module(*module, diagnostics)) module.reset();
    EXPECT_TRUE(module.has_value()) << report(diagnostics);
  }
  // "CODE line N: message" of each, and "  note line N" of each note.
  static std::string report(const Diagnostics& diagnostics) {
    std::string text;
    for (const Diagnostic& one : diagnostics.all()) {
      text += fmt::format("{} line {}: {}\n", diag_code(one.id), one.location.line, one.message());
      for (const DiagNote& note : one.notes) {
        text += fmt::format("  note line {}: {}\n", note.location.line, note.text);
      }
    }
    return text;
  }
};

inline ScalarValue index_value(int64_t value) {
  return from_bits(ScalarKind::Index, static_cast<uint64_t>(value));
}

template <class T>
InterpStorage storage(std::string name, std::vector<T>& values) {
  return {std::move(name), std::as_writable_bytes(std::span(values))};
}

// Interprets the kernel @k; what was reported, empty when all went well.
inline std::string run_k(std::string text, std::vector<int64_t> workload,
                         std::vector<InterpArgument> arguments, const InterpOptions& options = {}) {
  Source source(std::move(text));
  if (!source.module) return "not verified";
  std::vector<ScalarValue> values;
  for (int64_t value : workload) values.push_back(index_value(value));
  Diagnostics diagnostics;
  const bool good = run_kernel(*source.module, "k", values, arguments, options, diagnostics);
  EXPECT_EQ(good, !diagnostics.has_errors());
  return Source::report(diagnostics);
}

}  // namespace loom::test
