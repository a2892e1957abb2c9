// Attention of many queries, and of one a head over a cache.
#include <cmath>
#include <span>

#include "rows.h"

namespace loom::lib {
namespace {

using enum ScalarKind;

// What one query makes of the first `end` keys: appends it and how far off it may be.
struct Query {
  std::span<const double> q, k, v;
  size_t end, dim;
  double scale;

  void add_to(Launch& launch) const {
    std::vector<double> scores(end);
    double most = -kInfinity, size = 0;
    for (size_t j = 0; j < end; ++j) {
      double sum = 0;
      for (size_t d = 0; d < dim; ++d) {
        sum += q[d] * k[j * dim + d];
        size = std::fmax(size, std::fabs(q[d] * k[j * dim + d]));
      }
      scores[j] = sum * scale;
      most = std::fmax(most, scores[j]);
    }
    double total = 0;
    for (double& score : scores) {
      score = std::exp(score - most);
      total += score;
    }
    for (size_t d = 0; d < dim; ++d) {
      double sum = 0, largest = 0;
      for (size_t j = 0; j < end; ++j) {
        sum += scores[j] / total * v[j * dim + d];
        largest = std::fmax(largest, std::fabs(v[j * dim + d]));
      }
      launch.oracle.push_back(end == 0 ? kNan : sum);
      const double slack =
          largest * (0x1p-18 + 0x1p-20 * size * static_cast<double>(dim) * std::fabs(scale));
      launch.slack.push_back(std::isfinite(slack) ? slack : 0);
    }
  }
};

Launch prefill(Inputs& in) {
  const size_t kv_heads = in.pick({1, 2}), heads = kv_heads * in.pick({1, 2, 3});
  const size_t queries = in.pick({1, 2, 3, 17, 64, 65}),
               keys = in.pick({1, 3, 17, 63, 64, 65, 130});
  const size_t dim = in.pick({1, 3, 7, 8, 16, 33});
  const bool causal = in.below(2) == 0;
  const Numbers q = in.numbers(F32, heads * queries * dim);
  const Numbers k = in.numbers(F32, kv_heads * keys * dim);
  const Numbers v = in.numbers(F32, kv_heads * keys * dim);
  Launch launch{.workload = {heads, queries}};
  launch.index(heads).index(kv_heads).index(queries).index(keys).index(dim).index(causal ? 1 : 0);
  launch.number(0.5).buffer(q.buffer).buffer(k.buffer).buffer(v.buffer);
  launch.result(F32, q.values.size());
  for (size_t h = 0; h < heads; ++h) {
    const size_t shared = h / (heads / kv_heads) * keys * dim;
    for (size_t i = 0; i < queries; ++i) {
      const size_t last = i + keys + 1;
      const size_t end = !causal ? keys : last > queries ? last - queries : 0;
      Query{std::span(q.values).subspan((h * queries + i) * dim),
            std::span(k.values).subspan(shared),
            std::span(v.values).subspan(shared),
            end,
            dim,
            0.5}
          .add_to(launch);
    }
  }
  if (in.with_specials()) launch.oracle.clear();
  return launch;
}

Launch decode(Inputs& in) {
  const size_t kv_heads = in.pick({1, 2, 3}), heads = kv_heads * in.pick({1, 2, 4, 7});
  const size_t length = in.extent(), capacity = length + in.pick({0, 1, 7});
  const size_t dim = in.pick({1, 7, 16, 63, 64, 65, 70, 128});
  const Numbers q = in.numbers(F32, heads * dim);
  const Numbers k = in.numbers(F32, kv_heads * capacity * dim);
  const Numbers v = in.numbers(F32, kv_heads * capacity * dim);
  Launch launch{.workload = {kv_heads}};
  launch.index(heads).index(kv_heads).index(length).index(capacity).index(dim).number(0.25);
  launch.buffer(q.buffer).buffer(k.buffer).buffer(v.buffer).result(F32, q.values.size());
  for (size_t h = 0; h < heads; ++h) {
    const size_t shared = h / (heads / kv_heads) * capacity * dim;
    Query{std::span(q.values).subspan(h * dim),
          std::span(k.values).subspan(shared),
          std::span(v.values).subspan(shared),
          length,
          dim,
          0.25}
        .add_to(launch);
  }
  if (in.with_specials()) launch.oracle.clear();
  return launch;
}

}  // namespace

void add_attention_rows(Rows& rows) {
  rows["attention_f32"] = prefill;
  rows["attention_decode_f32"] = decode;
}

}  // namespace loom::lib
