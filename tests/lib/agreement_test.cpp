// Every kernel of lib/ computes on x86-64 what the interpreter says, at random shapes and with
// special values.
//
// LOOM_LIBRARY_ROUNDS=N launches each N times instead of a few, for older processors, too, and
// LOOM_LIBRARY_SEED=N with other numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>

#include "rows.h"

namespace loom::lib {
namespace {

uint64_t number_of(const char* variable, uint64_t usual) {
  const char* const wanted = std::getenv(variable);
  return wanted == nullptr ? usual : std::strtoull(wanted, nullptr, 10);
}

TEST(Agreement, OfEveryKernelOfTheLibrary) {
  Rows rows;
  add_array_rows(rows);
  add_row_rows(rows);
  add_product_rows(rows);
  add_attention_rows(rows);
  constexpr uint64_t kUsualRounds = 4;
  const uint64_t rounds = number_of("LOOM_LIBRARY_ROUNDS", kUsualRounds);
  const uint64_t first = number_of("LOOM_LIBRARY_SEED", 1) * 1'000'000;
  Library library;
  std::set<std::string_view> unused;
  for (const auto& [name, row] : rows) unused.insert(name);
  ASSERT_FALSE(library.exports().empty());
  for (const Library::Export& kernel : library.exports()) {
    SCOPED_TRACE(kernel.file + " @" + kernel.kernel);
    const auto row = rows.find(kernel.kernel);
    if (row == rows.end()) {
      ADD_FAILURE() << "the kernel has no row in tests/lib/*_rows.cpp";
      continue;
    }
    unused.erase(row->first);
    const KernelPair pair(library, kernel, rounds > kUsualRounds);
    if (!pair.good()) {
      ADD_FAILURE() << pair.problems();
      continue;
    }
    for (uint64_t round = 0; round < rounds; ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      // With special values in every other one.
      Inputs inputs(first + round, round % 2 == 1);
      pair.expect_same(row->second(inputs));
    }
  }
  for (const std::string_view name : unused) ADD_FAILURE() << "no kernel is called " << name;
}

// Matrices of so many elements are written around the caches; a few of their rows alone are not.
TEST(Agreement, OfRowsThatAreWrittenAroundTheCaches) {
  constexpr size_t kColumns = 4099, kKinds = 3, kRows = 1026;
  static_assert(kColumns * kRows > (1 << 22));
  Library library;
  for (const Library::Export& kernel : library.exports()) {
    const bool is_norm = kernel.file == "norms.loom";
    if (!is_norm && kernel.file != "softmax.loom") continue;
    SCOPED_TRACE(kernel.kernel);
    const KernelPair pair(library, kernel, false);
    ASSERT_TRUE(pair.good()) << pair.problems();
    Inputs inputs(1, true);
    const Buffer few = inputs.numbers(ScalarKind::F32, kKinds * kColumns).buffer;
    const Buffer gain = inputs.numbers(ScalarKind::F32, kColumns).buffer;
    const auto rows_of = [&](size_t rows) {
      Buffer x = ops::zeros(ScalarKind::F32, rows * kColumns);
      for (size_t at = 0; at < x.bytes.size(); at += few.bytes.size()) {
        std::ranges::copy(few.bytes, x.bytes.begin() + static_cast<ptrdiff_t>(at));
      }
      Launch launch{.workload = {rows, kColumns}};
      launch.index(rows).index(kColumns);
      if (is_norm) launch.number(1e-5);
      launch.buffer(x);
      if (is_norm) launch.buffer(gain);
      if (kernel.kernel == "layer_norm_f32") launch.buffer(gain);
      return pair.compute(launch.result(ScalarKind::F32, rows * kColumns)).back();
    };
    const Buffer cached = rows_of(kKinds);
    const Buffer streamed = rows_of(kRows);
    for (size_t i = 0; i < kRows * kColumns; ++i) {
      const ScalarValue want = element_of(cached, i % (kKinds * kColumns));
      const ScalarValue got = element_of(streamed, i);
      ASSERT_TRUE(want.bits == got.bits || (is_nan(want) && is_nan(got)))
          << "element " << i << ": " << to_double(want) << " and " << to_double(got);
    }
  }
}

}  // namespace
}  // namespace loom::lib
