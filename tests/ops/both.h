// Runs one kernel on x86-64 and on the interpreter and compares what is in its buffers afterwards.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "loom/dialect/verify.h"
#include "loom/interp/interp.h"
#include "loom/target/x86/jit.h"
#include "loom/target/x86/kernel_abi.h"
#include "loom/text/parser.h"

namespace loom::ops {

// A buffer argument and what its elements are.
struct Buffer {
  ScalarKind element = ScalarKind::I8;
  std::vector<std::byte> bytes;
};

inline std::string messages(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics.all()) {
    text += fmt::format("{} line {}: {}\n", diag_code(d.id), d.location.line, d.message());
  }
  return text;
}

template <class T>
Buffer buffer_of(ScalarKind element, const std::vector<T>& values) {
  Buffer made{element, std::vector<std::byte>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}
inline Buffer zeros(ScalarKind element, size_t count) {
  return {element, std::vector<std::byte>(count * scalar_bytes(element))};
}
// Bytes of every kind.
inline Buffer noise(ScalarKind element, size_t count, uint64_t seed) {
  Buffer made = zeros(element, count);
  std::mt19937_64 random(seed);
  for (std::byte& byte : made.bytes) byte = static_cast<std::byte>(random());
  return made;
}
// Every special value of a float format, edges of its range, and ordinary numbers between them.
Buffer special_floats(ScalarKind element, size_t count, uint64_t seed);

// How close results must be: equal bits, NaNs of any kind alike, or within a share of the largest
// number of the buffer.
struct Tolerance {
  double share = 0;
};

// The module `text` with the kernel @k.
class Program {
 public:
  explicit Program(std::string text);
  bool good() const { return module_.has_value(); }
  Module& module() { return *module_; }

  // What the interpreter leaves in the buffers; nothing, with its messages, where it refuses.
  std::optional<std::vector<Buffer>> interpret(std::vector<Buffer> buffers,
                                               std::vector<ScalarValue> workload = {});
  // The same of x86-64; `size` and `count` as the configuration has them.
  std::optional<std::vector<Buffer>> compute(std::vector<Buffer> buffers, JitTier tier,
                                             LoomDispatchShape shape = {{1, 1, 1}, {1, 1, 1}});
  std::optional<std::vector<Buffer>> compute_for(std::vector<Buffer> buffers,
                                                 const std::string& cpu, LoomDispatchShape shape);
  // Runs both, x86-64 in both tiers, and expects the same.
  void expect_same(const std::vector<Buffer>& buffers,
                   LoomDispatchShape shape = {{1, 1, 1}, {1, 1, 1}},
                   std::vector<ScalarValue> workload = {}, Tolerance tolerance = {});
  bool compiles();
  // What x86-64 makes of it for that processor; empty where it refuses.
  std::string assembly(const std::string& cpu);
  const std::string& text() const { return text_; }
  std::string problems;               // of the last of these
  std::optional<std::string> failed;  // the check that failed in the last kernel that computed

 private:
  void run(LoomKernelEntry entry, std::vector<Buffer>& buffers, const LoomDispatchShape& shape);

  std::string text_;
  SourceFiles files_;
  std::optional<Module> module_;
};

void expect_equal(const std::vector<Buffer>& expected, const std::vector<Buffer>& actual,
                  Tolerance tolerance);

}  // namespace loom::ops
