// Kernels that make each element from one, or a few.
#include <cmath>

#include "rows.h"

namespace loom::lib {
namespace {

size_t array_extent(Inputs& in) {
  return in.below(2) == 0 ? in.extent()
                          : in.pick({511, 512, 513, 700, 1023, 1025, 2111, 8191, 8193});
}

// An operation of as many arrays, the same on both sides to the last bit.
MakeLaunch elementwise(unsigned sources, size_t alignment = 4) {
  return [=](Inputs& in) {
    const size_t n = array_extent(in);
    Launch launch{.workload = {n}};
    launch.shift = in.below(16) * 4 / alignment * alignment % 64;
    launch.index(n);
    for (unsigned i = 0; i < sources; ++i) {
      launch.buffer(in.anything(ScalarKind::F32, n).buffer);
    }
    return std::move(launch.result(ScalarKind::F32, n));
  };
}

Launch scale(Inputs& in) {
  const size_t n = array_extent(in);
  Launch launch{.workload = {n}};
  launch.index(n).number(1.5).number(-0.25).buffer(in.anything(ScalarKind::F32, n).buffer);
  return std::move(launch.result(ScalarKind::F32, n));
}

// A function whose results may differ by a few last places.
MakeLaunch activation(double (*function)(double)) {
  return [=](Inputs& in) {
    const size_t n = array_extent(in);
    const Numbers x = in.anything(ScalarKind::F32, n);
    Launch launch{.workload = {n}};
    launch.index(n).buffer(x.buffer).result(ScalarKind::F32, n);
    for (const double value : x.values) {
      const double want = function(value);
      launch.slack.push_back(std::isfinite(want) ? 0x1p-20 * std::fabs(want) + 0x1p-126 : 0);
    }
    return launch;
  };
}

double relu(double x) { return std::fmax(x, 0); }
double silu(double x) { return x / (1 + std::exp(-x)); }
double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

MakeLaunch cast(ScalarKind from, ScalarKind to) {
  return [=](Inputs& in) {
    const size_t n = array_extent(in);
    const Numbers x = in.anything(from, n);
    Launch launch{.workload = {n}};
    launch.index(n).buffer(x.buffer).result(to, n);
    for (const double value : x.values) launch.oracle.push_back(to_double(from_double(to, value)));
    return launch;
  };
}

Launch transpose(Inputs& in) {
  const size_t rows = in.extent(), columns = in.extent();
  const Numbers x = in.anything(ScalarKind::F32, rows * columns);
  Launch launch{.workload = {rows, columns}};
  launch.index(rows).index(columns).buffer(x.buffer).result(ScalarKind::F32, rows * columns);
  for (size_t c = 0; c < columns; ++c) {
    for (size_t r = 0; r < rows; ++r) launch.oracle.push_back(x.values[r * columns + c]);
  }
  return launch;
}

// Some tokens ask for rows that the table does not have.
Launch embedding(Inputs& in) {
  const size_t tokens = in.pick({1, 3, 8}), rows = in.extent(), columns = in.extent();
  std::vector<int32_t> ids(tokens);
  for (int32_t& id : ids) {
    id = in.below(4) == 0 ? static_cast<int32_t>(in.below(UINT32_MAX))
                          : static_cast<int32_t>(in.below(rows));
  }
  const Numbers table = in.anything(ScalarKind::F32, rows * columns);
  Launch launch{.workload = {tokens}};
  launch.index(tokens).index(rows).index(columns);
  launch.buffer(ops::buffer_of(ScalarKind::I32, ids)).buffer(table.buffer);
  launch.result(ScalarKind::F32, tokens * columns);
  for (const int32_t id : ids) {
    const bool known = id >= 0 && static_cast<size_t>(id) < rows;
    for (size_t c = 0; c < columns; ++c) {
      launch.oracle.push_back(known ? table.values[static_cast<size_t>(id) * columns + c] : 0);
    }
  }
  return launch;
}

Launch rotary(Inputs& in) {
  const size_t tokens = in.pick({1, 2, 5}), heads = in.pick({1, 3}), half = in.extent();
  const Numbers x = in.numbers(ScalarKind::F32, tokens * heads * half * 2);
  const Numbers cosine = in.numbers(ScalarKind::F32, tokens * half);
  const Numbers sine = in.numbers(ScalarKind::F32, tokens * half);
  Launch launch{.workload = {tokens}};
  launch.index(tokens).index(heads).index(half);
  launch.buffer(x.buffer).buffer(cosine.buffer).buffer(sine.buffer);
  launch.result(ScalarKind::F32, x.values.size());
  for (size_t i = 0; i < x.values.size(); ++i) {
    const size_t at = i % half, row = i / (2 * half), token = row / heads;
    const bool second = i % (2 * half) >= half;
    const double a = x.values[row * 2 * half + at], b = x.values[row * 2 * half + half + at];
    const double c = cosine.values[token * half + at], s = sine.values[token * half + at];
    launch.oracle.push_back(second ? a * s + b * c : a * c - b * s);
    launch.slack.push_back(0x1p-22 * (second ? std::fabs(a * s) + std::fabs(b * c)
                                             : std::fabs(a * c) + std::fabs(b * s)) +
                           0x1p-126);
  }
  return launch;
}

}  // namespace

void add_array_rows(Rows& rows) {
  for (const char* const name : {"copy_f32"}) rows[name] = elementwise(1);
  for (const char* const name :
       {"add_f32", "sub_f32", "mul_f32", "div_f32", "min_f32", "max_f32"}) {
    rows[name] = elementwise(2);
  }
  rows["copy_stream_f32"] = elementwise(1, 64);
  rows["add_stream_f32"] = elementwise(2, 64);
  rows["fma_f32"] = elementwise(3);
  rows["scale_f32"] = scale;
  rows["relu_f32"] = activation(relu);
  rows["silu_f32"] = activation(silu);
  rows["gelu_f32"] = activation(gelu);
  rows["cast_f32_bf16"] = cast(ScalarKind::F32, ScalarKind::BF16);
  rows["cast_bf16_f32"] = cast(ScalarKind::BF16, ScalarKind::F32);
  rows["cast_f32_f16"] = cast(ScalarKind::F32, ScalarKind::F16);
  rows["cast_f16_f32"] = cast(ScalarKind::F16, ScalarKind::F32);
  rows["transpose_f32"] = transpose;
  rows["embedding_f32"] = embedding;
  rows["rotary_f32"] = rotary;
}

}  // namespace loom::lib
