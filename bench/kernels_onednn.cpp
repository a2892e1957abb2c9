// oneDNN on the kernels that it has.
//
// usage: bench_kernels_onednn BUDGET_MS CASE@THREADS...

#include <algorithm>
#include <cmath>
#include <dnnl.hpp>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common.h"
#include "kernel_cases.h"

extern "C" void omp_set_num_threads(int threads);  // of the OpenMP that oneDNN was built with

namespace loom::bench {
namespace {

using dnnl::memory;
using Type = memory::data_type;

// One primitive after the other, on one stream, with the memory that they keep alive.
class Steps {
 public:
  const dnnl::engine& engine() const { return engine_; }
  memory at(const memory::desc& desc, void* data) { return memory(desc, engine_, data); }
  void add(const dnnl::primitive& primitive, std::unordered_map<int, memory> arguments) {
    steps_.emplace_back(primitive, std::move(arguments));
  }
  void run() {
    for (auto& [primitive, arguments] : steps_) primitive.execute(stream_, arguments);
    stream_.wait();
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<std::pair<dnnl::primitive, std::unordered_map<int, memory>>> steps_;
};

memory::desc dense(const memory::dims& dims, Type type) {
  memory::dims strides(dims.size());
  memory::dim step = 1;
  for (size_t axis = dims.size(); axis-- > 0;) {
    strides[axis] = step;
    step *= dims[axis];
  }
  return {dims, type, strides};
}

void product(Steps& steps, const memory& a, const memory& b, const memory& c, float scale = 1) {
  dnnl::primitive_attr attributes;
  if (scale != 1) attributes.set_output_scales(0, {scale});
  const dnnl::matmul::desc desc(a.get_desc(), b.get_desc(), c.get_desc());
  steps.add(dnnl::matmul({desc, attributes, steps.engine()}),
            {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
}

// gelu(A B + bias), of f32
void fused_product(Steps& steps, const memory& a, const memory& b, const memory& bias,
                   const memory& c) {
  dnnl::post_ops after;
  after.append_eltwise(1, dnnl::algorithm::eltwise_gelu_tanh, 0, 0);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  const dnnl::matmul::desc desc(a.get_desc(), b.get_desc(), bias.get_desc(), c.get_desc());
  steps.add(dnnl::matmul({desc, attributes, steps.engine()}),
            {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, c}});
}

// What oneDNN computes products of, and of what the results are.
struct Formats {
  std::string_view kind;
  Type factors, result;
};
constexpr Formats kProducts[] = {{"gemm_f32", Type::f32, Type::f32},
                                 {"gemm_bf16", Type::bf16, Type::f32},
                                 {"gemm_rounded_bf16", Type::bf16, Type::bf16},
                                 {"gemm_i8", Type::s8, Type::s32}};

void softmax(Steps& steps, const memory& x, const memory& y) {
  const dnnl::softmax_forward::desc desc(dnnl::prop_kind::forward_inference, x.get_desc(),
                                         x.get_desc().data.ndims - 1);
  steps.add(dnnl::softmax_forward({desc, steps.engine()}), {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
}

void layer_norm(Steps& steps, const Problem& problem) {
  const auto rows = static_cast<memory::dim>(problem.size(0));
  const auto columns = static_cast<memory::dim>(problem.size(1));
  const memory::desc desc = dense({rows, columns}, Type::f32);
  const memory::desc vector = dense({columns}, Type::f32);
  dnnl::layer_normalization_forward::desc norm(dnnl::prop_kind::forward_inference, desc,
                                               Problem::kEpsilon,
                                               dnnl::normalization_flags::use_scale);
  norm.data.flags |= dnnl_use_shift;  // the enumeration has no name for both
  steps.add(dnnl::layer_normalization_forward({norm, steps.engine()}),
            {{DNNL_ARG_SRC, steps.at(desc, problem.in(0))},
             {DNNL_ARG_SCALE, steps.at(vector, problem.in(1))},
             {DNNL_ARG_SHIFT, steps.at(vector, problem.in(2))},
             {DNNL_ARG_DST, steps.at(desc, problem.out())}});
}

void attention(Steps& steps, const Problem& problem, std::vector<float>& scores) {
  const auto heads = static_cast<memory::dim>(problem.size(0));
  const auto length = static_cast<memory::dim>(problem.size(1));
  const auto width = static_cast<memory::dim>(problem.size(2));
  scores.resize(problem.size(0) * problem.size(1) * problem.size(1));
  const memory::desc rows = dense({heads, length, width}, Type::f32);
  const memory::desc turned({heads, width, length}, Type::f32, {length * width, 1, width});
  const memory table = steps.at(dense({heads, length, length}, Type::f32), scores.data());
  product(steps, steps.at(rows, problem.in(0)), steps.at(turned, problem.in(1)), table,
          1 / std::sqrt(static_cast<float>(width)));
  softmax(steps, table, table);
  product(steps, table, steps.at(rows, problem.in(2)), steps.at(rows, problem.out()));
}

Run make(const Problem& problem, unsigned threads) {
  omp_set_num_threads(static_cast<int>(threads));
  const auto steps = std::make_shared<Steps>();
  const auto scores = std::make_shared<std::vector<float>>();
  const std::string& kind = problem.kind();
  const auto size = [&](size_t place) { return static_cast<memory::dim>(problem.size(place)); };
  const auto at = [&](const memory::dims& dims, Type type, void* data) {
    return steps->at(dense(dims, type), data);
  };
  const auto formats = std::ranges::find(kProducts, kind, &Formats::kind);
  if (formats != std::end(kProducts)) {
    product(*steps, at({size(0), size(2)}, formats->factors, problem.in(0)),
            at({size(2), size(1)}, formats->factors, problem.in(1)),
            at({size(0), size(1)}, formats->result, problem.out()));
  } else if (kind == "gemm_fused_f32") {
    fused_product(*steps, at({size(0), size(2)}, Type::f32, problem.in(0)),
                  at({size(2), size(1)}, Type::f32, problem.in(1)),
                  at({1, size(1)}, Type::f32, problem.in(2)),
                  at({size(0), size(1)}, Type::f32, problem.out()));
  } else if (kind == "gemm_batched_f32") {
    product(*steps, at({size(0), size(1), size(3)}, Type::f32, problem.in(0)),
            at({size(0), size(3), size(2)}, Type::f32, problem.in(1)),
            at({size(0), size(1), size(2)}, Type::f32, problem.out()));
  } else if (kind == "softmax") {
    const memory::desc desc = dense({size(0), size(1)}, Type::f32);
    softmax(*steps, steps->at(desc, problem.in(0)), steps->at(desc, problem.out()));
  } else if (kind == "layer_norm") {
    layer_norm(*steps, problem);
  } else if (kind == "attention") {
    attention(*steps, problem, *scores);
  } else {
    fail(fmt::format("oneDNN has no '{}'", kind));
  }
  return [steps, scores] { steps->run(); };
}

}  // namespace
}  // namespace loom::bench

int main(int argc, char** argv) {
  return loom::bench::measure_cases(argc, argv, 1, loom::bench::make);
}
