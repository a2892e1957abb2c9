// OpenBLAS on the matrix products of suite `kernels`.
//
// usage: bench_kernels_openblas BUDGET_MS CASE@THREADS...

#include <cblas.h>

#include "common.h"
#include "kernel_cases.h"

namespace loom::bench {
namespace {

Run make(const Problem& problem, unsigned threads) {
  const auto m = static_cast<blasint>(problem.size(0));
  const auto n = static_cast<blasint>(problem.size(1));
  const auto k = static_cast<blasint>(problem.size(2));
  const float* a = problem.in(0);
  const float* b = problem.in(1);
  float* c = problem.out();
  openblas_set_num_threads(static_cast<int>(threads));
  if (problem.kind() == "gemm_f32") {
    return [=] {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, k, b, n, 0, c, n);
    };
  }
  fail(fmt::format("OpenBLAS has no '{}'", problem.kind()));
}

}  // namespace
}  // namespace loom::bench

int main(int argc, char** argv) {
  return loom::bench::measure_cases(argc, argv, 1, loom::bench::make);
}
