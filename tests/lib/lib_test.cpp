// Every kernel of lib/ on the interpreter, for shapes with and without tails, against results
// computed here. The check cases beside the kernels say the same to Loom's own test runner.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>

#include "loom/base/file.h"
#include "loom/diag/render.h"
#include "loom/interp/interp.h"
#include "loom/link/link.h"
#include "loom/link/load.h"

namespace loom {
namespace {

struct Library {
  SourceFiles files;
  Diagnostics diagnostics;
  std::optional<Module> module;

  explicit Library(const std::string& name) {
    const std::string path = std::string(LOOM_LIBRARY) + "/" + name;
    auto text = read_file(path);
    if (text) module = load_module(files, std::move(*text), path, diagnostics);
  }
};

ScalarValue index_value(uint64_t value) { return from_bits(ScalarKind::Index, value); }

InterpStorage storage(const std::string& name, std::vector<float>& values) {
  return {name, std::as_writable_bytes(std::span(values))};
}

std::vector<float> random_values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-6.0f, 6.0f);
  std::vector<float> out(count);
  for (float& value : out) value = uniform(random);
  return out;
}

std::string problems(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics.all()) out += diag_code(d.id) + " " + d.message() + "\n";
  return out;
}

// Whatever set of files a program takes as inputs: no two of them define one name.
TEST(Library, AllFilesAreInputsOfOneModule) {
  SourceFiles files;
  Diagnostics diagnostics;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(LOOM_LIBRARY)) {
    if (entry.path().extension() == ".loom") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  ASSERT_GT(paths.size(), 20u);
  std::vector<LinkInput> inputs;
  for (const std::filesystem::path& path : paths) {
    auto text = read_file(path.string());
    ASSERT_TRUE(text.has_value()) << path;
    auto module = load_module(files, std::move(*text), path.string(), diagnostics);
    ASSERT_TRUE(module.has_value()) << problems(diagnostics);
    inputs.push_back({std::move(*module), path.string()});
  }
  const auto module = link(inputs, LibraryIndex(std::vector<LinkInput>()), {}, diagnostics);
  EXPECT_TRUE(module.has_value()) << problems(diagnostics);
}

struct Activation {
  const char* kernel;
  std::function<double(double)> oracle;
};

TEST(Activations, KernelsMatchTheirDefinitions) {
  const Library library("activations.loom");
  ASSERT_TRUE(library.module.has_value()) << problems(library.diagnostics);
  const Activation all[] = {
      {"relu_f32", [](double x) { return x > 0 ? x : 0.0; }},
      {"silu_f32", [](double x) { return x / (1 + std::exp(-x)); }},
      {"gelu_f32",
       [](double x) {
         return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
       }},
  };
  for (const Activation& one : all) {
    for (const size_t n : {1u, 7u, 8u, 9u, 512u, 700u}) {
      SCOPED_TRACE(std::string(one.kernel) + " of " + std::to_string(n));
      std::vector<float> x = random_values(n, static_cast<uint32_t>(n));
      std::vector<float> y(n, -100.0f);
      Diagnostics diagnostics;
      const ScalarValue workload[] = {index_value(n)};
      const InterpArgument arguments[] = {scalar_argument(index_value(n)), storage("x", x),
                                          storage("y", y)};
      ASSERT_TRUE(run_kernel(*library.module, one.kernel, workload, arguments, {}, diagnostics))
          << problems(diagnostics);
      for (size_t i = 0; i < n; ++i) {
        const double want = one.oracle(x[i]);
        ASSERT_NEAR(y[i], want, 1e-6 + 1e-6 * std::abs(want)) << "element " << i;
      }
    }
  }
}

// Both providers of the families: subgroups of 32 choose the one without storage.
TEST(Rows, ReductionsMatchOnEverySubgroupWidth) {
  const Library library("rows_grouped.loom");
  ASSERT_TRUE(library.module.has_value()) << problems(library.diagnostics);
  for (const uint32_t width : {1u, 4u, 32u, 64u}) {
    for (const auto& [rows, columns] : {std::pair{1u, 1u}, {3u, 255u}, {2u, 256u}, {2u, 601u}}) {
      SCOPED_TRACE("subgroups of " + std::to_string(width) + ", " + std::to_string(rows) + " x " +
                   std::to_string(columns));
      std::vector<float> x = random_values(size_t{rows} * columns, rows + columns);
      std::vector<float> sums(rows), maxima(rows);
      const ScalarValue workload[] = {index_value(rows), index_value(columns)};
      const auto run = [&](const char* kernel, std::vector<float>& y) {
        Diagnostics diagnostics;
        InterpOptions options;
        options.subgroup_size = width;
        const InterpArgument arguments[] = {scalar_argument(workload[0]),
                                            scalar_argument(workload[1]), storage("x", x),
                                            storage("y", y)};
        EXPECT_TRUE(run_kernel(*library.module, kernel, workload, arguments, options, diagnostics))
            << problems(diagnostics);
      };
      run("row_sum_grouped_f32", sums);
      run("row_max_grouped_f32", maxima);
      for (uint32_t r = 0; r < rows; ++r) {
        double sum = 0, size = 0;
        float most = -INFINITY;
        for (uint32_t c = 0; c < columns; ++c) {
          const float value = x[size_t{r} * columns + c];
          sum += value;
          size += std::abs(value);
          most = std::max(most, value);
        }
        EXPECT_NEAR(sums[r], sum, 1e-6 * size) << "row " << r;
        EXPECT_EQ(maxima[r], most) << "row " << r;
      }
    }
  }
}

}  // namespace
}  // namespace loom
