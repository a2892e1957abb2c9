// Kernels that make something of each row, or column.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "rows.h"

namespace loom::lib {
namespace {

struct Matrix {
  size_t rows;
  size_t columns;
  Numbers x;
  std::span<const double> row(size_t r) const {
    return std::span(x.values).subspan(r * columns, columns);
  }
};

// The longest row that stays in private storage has 4,096 columns.
Matrix matrix(Inputs& in, bool any = false) {
  const size_t columns = in.below(4) == 0 ? in.pick({255, 257, 300, 601, 4095, 4097}) : in.extent();
  const size_t rows = columns > 600 ? in.pick({1, 2}) : in.pick({1, 2, 3, 9, 17});
  Numbers x = any ? in.anything(ScalarKind::F32, rows * columns)
                  : in.numbers(ScalarKind::F32, rows * columns);
  return {rows, columns, std::move(x)};
}

Launch launch_of(const Matrix& m) {
  Launch launch{.workload = {m.rows, m.columns}};
  launch.index(m.rows).index(m.columns);
  return launch;
}

double size_of(std::span<const double> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0,
                         [](double sum, double x) { return sum + std::fabs(x); });
}

Launch row_sum(Inputs& in) {
  const Matrix m = matrix(in);
  Launch launch = launch_of(m);
  launch.buffer(m.x.buffer).result(ScalarKind::F32, m.rows);
  for (size_t r = 0; r < m.rows; ++r) {
    launch.oracle.push_back(std::accumulate(m.row(r).begin(), m.row(r).end(), 0.0));
    launch.slack.push_back(0x1p-20 * size_of(m.row(r)));
  }
  return launch;
}

Launch row_max(Inputs& in) {
  const Matrix m = matrix(in, true);
  Launch launch = launch_of(m);
  launch.buffer(m.x.buffer).result(ScalarKind::F32, m.rows);
  for (size_t r = 0; r < m.rows; ++r) {
    double most = -kInfinity;
    for (const double x : m.row(r)) most = std::fmax(most, x);
    launch.oracle.push_back(most);
    launch.slack.push_back(0);  // zeros of either sign are equal
  }
  return launch;
}

Launch column_sum(Inputs& in) {
  const Matrix m = matrix(in);
  Launch launch = launch_of(m);
  launch.buffer(m.x.buffer).result(ScalarKind::F32, m.columns);
  launch.oracle.resize(m.columns);
  launch.slack.resize(m.columns);
  for (size_t i = 0; i < m.x.values.size(); ++i) {
    launch.oracle[i % m.columns] += m.x.values[i];
    launch.slack[i % m.columns] += 0x1p-20 * std::fabs(m.x.values[i]);
  }
  return launch;
}

Launch block_sums(Inputs& in) {
  const size_t n = in.below(3) != 0 ? in.extent() : in.pick({65535, 65537, 70000});
  const Numbers x = in.numbers(ScalarKind::F32, n);
  const size_t blocks = (n + 65535) / 65536;
  Launch launch{.workload = {n}};
  launch.index(n).buffer(x.buffer).result(ScalarKind::F32, blocks);
  for (size_t b = 0; b < blocks; ++b) {
    const auto part =
        std::span(x.values).subspan(b * 65536, std::min<size_t>(65536, n - b * 65536));
    launch.oracle.push_back(std::accumulate(part.begin(), part.end(), 0.0));
    launch.slack.push_back(0x1p-20 * size_of(part));
  }
  return launch;
}

Launch softmax(Inputs& in) {
  const Matrix m = matrix(in);
  Launch launch = launch_of(m);
  launch.buffer(m.x.buffer).result(ScalarKind::F32, m.x.values.size());
  for (size_t r = 0; r < m.rows; ++r) {
    double most = -kInfinity, total = 0;
    for (const double x : m.row(r)) most = std::isnan(x) ? kNan : std::max(most, x);
    for (const double x : m.row(r)) total += std::exp(x - most);
    const bool has_nan =
        std::ranges::any_of(m.row(r), [](double x) { return std::isnan(x); }) || std::isinf(most);
    for (const double x : m.row(r)) {
      launch.oracle.push_back(has_nan ? kNan : std::exp(x - most) / total);
      launch.slack.push_back(0x1p-18);
    }
  }
  return launch;
}

// (x - center) * gamma / root, with the center zero for `rms`.
MakeLaunch norm(bool rms) {
  return [=](Inputs& in) {
    const Matrix m = matrix(in);
    const Numbers gamma = in.numbers(ScalarKind::F32, m.columns);
    const Numbers beta = in.numbers(ScalarKind::F32, m.columns);
    Launch launch = launch_of(m);
    launch.number(1e-5).buffer(m.x.buffer).buffer(gamma.buffer);
    if (!rms) launch.buffer(beta.buffer);
    launch.result(ScalarKind::F32, m.x.values.size());
    const auto count = static_cast<double>(m.columns);
    for (size_t r = 0; r < m.rows; ++r) {
      const auto row = m.row(r);
      const double center = rms ? 0 : std::accumulate(row.begin(), row.end(), 0.0) / count;
      double square = 0, largest = 0;
      for (const double x : row) {
        square += (x - center) * (x - center);
        largest = std::fmax(largest, std::fabs(x));
      }
      const double inverse = 1 / std::sqrt(square / count + 1e-5);
      for (size_t c = 0; c < m.columns; ++c) {
        const double shift = rms ? 0 : beta.values[c];
        launch.oracle.push_back((row[c] - center) * inverse * gamma.values[c] + shift);
        const double slack = 0x1p-18 * (largest * inverse * std::fabs(gamma.values[c]));
        launch.slack.push_back(std::isnan(slack) ? 0
                                                 : slack + 0x1p-22 * std::fabs(shift) + 0x1p-126);
      }
    }
    return launch;
  };
}

// Numbers of which many are equal, and every special value.
Matrix choices(Inputs& in) {
  Matrix m = matrix(in, in.below(2) == 0);
  return m;
}

Launch argmax(Inputs& in) {
  const Matrix m = choices(in);
  Launch launch = launch_of(m);
  launch.buffer(m.x.buffer).result(ScalarKind::I32, m.rows);
  for (size_t r = 0; r < m.rows; ++r) {
    double place = INT32_MAX;
    for (size_t c = 0; c < m.columns; ++c) {
      const double x = m.row(r)[c];
      const bool first = place == INT32_MAX && !std::isnan(x);
      if (first || (place != INT32_MAX && x > m.row(r)[static_cast<size_t>(place)])) {
        place = static_cast<double>(c);
      }
    }
    launch.oracle.push_back(place);
  }
  return launch;
}

// The places are what the oracle is about: both sides must have the same values to the last bit.
Launch top_k(Inputs& in) {
  const Matrix m = choices(in);
  const size_t count = in.pick({1, 2, 5, m.columns, m.columns + 2}) % 140 + 1;
  Launch launch{.workload = {m.rows}};
  launch.index(m.rows).index(m.columns).index(count).buffer(m.x.buffer);
  launch.result(ScalarKind::F32, m.rows * count).result(ScalarKind::I32, m.rows * count);
  for (size_t r = 0; r < m.rows; ++r) {
    std::vector<size_t> places;
    for (size_t c = 0; c < m.columns; ++c) {
      if (!std::isnan(m.row(r)[c])) places.push_back(c);
    }
    std::ranges::stable_sort(places, [&](size_t a, size_t b) { return m.row(r)[a] > m.row(r)[b]; });
    for (size_t i = 0; i < count; ++i) {
      launch.oracle.push_back(i < places.size() ? static_cast<double>(places[i]) : INT32_MAX);
    }
  }
  return launch;
}

}  // namespace

void add_row_rows(Rows& rows) {
  rows["row_sum_f32"] = rows["row_sum_grouped_f32"] = row_sum;
  rows["row_max_f32"] = rows["row_max_grouped_f32"] = row_max;
  rows["column_sum_f32"] = column_sum;
  rows["block_sums_f32"] = block_sums;
  rows["softmax_f32"] = softmax;
  rows["layer_norm_f32"] = norm(false);
  rows["rms_norm_f32"] = norm(true);
  rows["argmax_f32"] = argmax;
  rows["top_k_f32"] = top_k;
}

}  // namespace loom::lib
