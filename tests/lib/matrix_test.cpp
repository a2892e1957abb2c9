// Kernels over matrices on the interpreter, for shapes below, at and beyond whole vectors, whole
// workgroups and the longest row that stays in private storage, against results in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>

#include "loom/base/file.h"
#include "loom/diag/render.h"
#include "loom/interp/interp.h"
#include "loom/link/link.h"

namespace loom {
namespace {

constexpr double kEpsilon = 1e-5;

std::string problems(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics.all()) out += diag_code(d.id) + " " + d.message() + "\n";
  return out;
}

// One kernel of lib/NAME.loom with the functions that it uses.
class LinkedKernel {
 public:
  LinkedKernel(const std::string& name, const std::string& kernel) : kernel_(kernel) {
    std::vector<LinkInput> inputs;
    inputs.push_back(load(name));
    std::vector<LinkInput> libraries;
    libraries.push_back(load("blocks.loom"));
    libraries.push_back(load("row_functions.loom"));
    LinkOptions options;
    options.roots = {kernel};
    module_ = link(inputs, LibraryIndex(std::move(libraries)), options, diagnostics_);
  }

  // `inputs` and the scalar `between` stand as the kernels have them: rows, columns, epsilon,
  // inputs, output.
  std::vector<float> run(uint32_t rows, uint32_t columns, bool epsilon,
                         std::vector<std::vector<float>> inputs, size_t outputs) {
    if (!module_) throw std::runtime_error(problems(diagnostics_));
    const ScalarValue sizes[] = {from_bits(ScalarKind::Index, rows),
                                 from_bits(ScalarKind::Index, columns)};
    std::vector<float> y(outputs, NAN);
    std::vector<InterpArgument> arguments = {scalar_argument(sizes[0]), scalar_argument(sizes[1])};
    if (epsilon) {
      const auto bits = std::bit_cast<uint32_t>(static_cast<float>(kEpsilon));
      arguments.emplace_back(scalar_argument(from_bits(ScalarKind::F32, bits)));
    }
    for (std::vector<float>& input : inputs) {
      arguments.emplace_back(InterpStorage{"in", std::as_writable_bytes(std::span(input))});
    }
    arguments.emplace_back(InterpStorage{"y", std::as_writable_bytes(std::span(y))});
    Diagnostics diagnostics;
    if (!run_kernel(*module_, kernel_, sizes, arguments, {}, diagnostics)) {
      throw std::runtime_error(problems(diagnostics));
    }
    return y;
  }

 private:
  LinkInput load(const std::string& name) {
    const std::string path = std::string(LOOM_LIBRARY) + "/" + name;
    auto text = read_file(path);
    auto module = load_module(files_, text ? std::move(*text) : "", path, diagnostics_);
    if (!module) throw std::runtime_error(problems(diagnostics_));
    return {std::move(*module), path};
  }

  std::string kernel_;
  SourceFiles files_;
  Diagnostics diagnostics_;
  std::optional<Module> module_;
};

std::vector<float> random_values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-6.0f, 6.0f);
  std::vector<float> out(count);
  for (float& value : out) value = uniform(random);
  return out;
}

struct Shape {
  uint32_t rows;
  uint32_t columns;
};
constexpr Shape kShapes[] = {{1, 1},   {3, 15},  {2, 16},   {9, 63},  {8, 64},
                             {17, 65}, {2, 300}, {3, 4096}, {2, 4101}};

std::vector<double> row_of(const std::vector<float>& x, uint32_t row, uint32_t columns) {
  const auto first = x.begin() + static_cast<std::ptrdiff_t>(size_t{row} * columns);
  return {first, first + columns};
}

// Checks y = want(row, gamma, beta, column) for each element of each shape.
using Want =
    std::function<double(const std::vector<double>& row, float gain, float shift, uint32_t column)>;

void check_elements(LinkedKernel& kernel, size_t vectors, bool epsilon, double tolerance,
                    const Want& want) {
  for (const auto& [rows, columns] : kShapes) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    std::vector<std::vector<float>> inputs = {random_values(size_t{rows} * columns, rows)};
    for (size_t i = 0; i < vectors; ++i) {
      inputs.push_back(random_values(columns, static_cast<uint32_t>(columns + i)));
    }
    const std::vector<float> y = kernel.run(rows, columns, epsilon, inputs, size_t{rows} * columns);
    for (uint32_t r = 0; r < rows; ++r) {
      const std::vector<double> row = row_of(inputs[0], r, columns);
      for (uint32_t c = 0; c < columns; ++c) {
        const double expected =
            want(row, vectors > 0 ? inputs[1][c] : 1, vectors > 1 ? inputs[2][c] : 0, c);
        ASSERT_NEAR(y[size_t{r} * columns + c], expected, tolerance * (1 + std::abs(expected)))
            << "row " << r << ", column " << c;
      }
    }
  }
}

double sum_of(const std::vector<double>& row, const std::function<double(double)>& term) {
  double sum = 0;
  for (const double value : row) sum += term(value);
  return sum;
}

TEST(Matrices, SoftmaxMatchesItsDefinition) {
  LinkedKernel kernel("softmax.loom", "softmax_f32");
  check_elements(kernel, 0, false, 1e-6,
                 [](const std::vector<double>& row, float, float, uint32_t column) {
                   return std::exp(row[column]) / sum_of(row, [](double v) { return std::exp(v); });
                 });
}

TEST(Matrices, SoftmaxOfRowsThatAreFarFromZero) {
  LinkedKernel kernel("softmax.loom", "softmax_f32");
  const std::vector<float> x = {-3e38f, 500, 501, 3e38f, -1e30f, -1e30f, -INFINITY, 0, 0};
  const std::vector<float> y = kernel.run(3, 3, false, {x}, 9);
  const float half = 0.5f;
  const float less = 1 / (1 + std::exp(1.0f));
  const float want[] = {0, less, 1 - less, 1, 0, 0, 0, half, half};
  for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(y[i], want[i], 1e-6) << "element " << i;
}

TEST(Matrices, SoftmaxOfARowWithoutANumberIsNone) {
  LinkedKernel kernel("softmax.loom", "softmax_f32");
  const std::vector<float> y = kernel.run(3, 2, false, {{1, NAN, -INFINITY, -INFINITY, 2, 2}}, 6);
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(y[i])) << "element " << i;
  EXPECT_NEAR(y[4], 0.5f, 1e-7);
  EXPECT_NEAR(y[5], 0.5f, 1e-7);
}

TEST(Matrices, LayerNormMatchesItsDefinition) {
  LinkedKernel kernel("norms.loom", "layer_norm_f32");
  check_elements(kernel, 2, true, 2e-5,
                 [](const std::vector<double>& row, float gain, float shift, uint32_t column) {
                   const auto count = static_cast<double>(row.size());
                   const double mean = sum_of(row, [](double v) { return v; }) / count;
                   const double variance =
                       sum_of(row, [mean](double v) { return (v - mean) * (v - mean); }) / count;
                   return (row[column] - mean) / std::sqrt(variance + kEpsilon) * gain + shift;
                 });
}

TEST(Matrices, RmsNormMatchesItsDefinition) {
  LinkedKernel kernel("norms.loom", "rms_norm_f32");
  check_elements(kernel, 1, true, 2e-5,
                 [](const std::vector<double>& row, float gain, float, uint32_t column) {
                   const double square = sum_of(row, [](double v) { return v * v; }) /
                                         static_cast<double>(row.size());
                   return row[column] / std::sqrt(square + kEpsilon) * gain;
                 });
}

TEST(Matrices, RowsAndColumnsAreReduced) {
  LinkedKernel sums("rows.loom", "row_sum_f32");
  LinkedKernel maxima("rows.loom", "row_max_f32");
  LinkedKernel columns_of("rows.loom", "column_sum_f32");
  for (const auto& [rows, columns] : kShapes) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    const std::vector<float> x = random_values(size_t{rows} * columns, rows);
    const std::vector<float> sum = sums.run(rows, columns, false, {x}, rows);
    const std::vector<float> most = maxima.run(rows, columns, false, {x}, rows);
    const std::vector<float> down = columns_of.run(rows, columns, false, {x}, columns);
    std::vector<double> want_down(columns);
    for (uint32_t r = 0; r < rows; ++r) {
      const std::vector<double> row = row_of(x, r, columns);
      for (uint32_t c = 0; c < columns; ++c) want_down[c] += row[c];
      EXPECT_NEAR(sum[r], sum_of(row, [](double v) { return v; }),
                  1e-6 * sum_of(row, [](double v) { return std::abs(v); }));
      EXPECT_EQ(most[r], *std::max_element(row.begin(), row.end()));
    }
    for (uint32_t c = 0; c < columns; ++c) EXPECT_NEAR(down[c], want_down[c], 1e-4);
  }
}

}  // namespace
}  // namespace loom
