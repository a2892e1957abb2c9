/* Runs kernels of the library and of odd.loom on each level that the processor has, or on the
 * levels that are named, and prints what they make. C99 and C++. */
#include <stdio.h>
#include <stdlib.h>

#include "made/kernels.h"
#include "made/odd.h"

static int failures = 0;

static void expect(int good, const char* what) {
  if (good) return;
  printf("wrong: %s\n", what);
  ++failures;
}

static int close_to(double a, double b) {
  const double difference = a > b ? a - b : b - a;
  return difference <= 1e-5 * (1.0 + (b < 0 ? -b : b));
}

enum { N = 20011, ROWS = 5, COLUMNS = 301 };
static float x[N], y[N], w[ROWS * COLUMNS], out[ROWS * COLUMNS];

static void scale(void) {
  int i;
  int good = 1;
  for (i = 0; i < N; ++i) x[i] = (float)(i % 97) - 40.0f;
  expect(scale_f32_run(N, 2.5f, -1.0f, x, y) == 0, "scale ran");
  for (i = 0; i < N; ++i) good = good && close_to(y[i], 2.5 * x[i] - 1.0);
  expect(good, "scale");
}

/* The same by hand, in two parts. */
static void scale_in_parts(void) {
  int i;
  int good = 1;
  uint64_t args[5] = {0};
  const int64_t n = N;
  const float a = 0.5f;
  const float b = 3.0f;
  float* const from = x;
  float* const to = y;
  LoomDispatchShape shape;
  uint64_t groups;
  expect(scale_f32_shape(N, &shape) == 0, "scale has a shape");
  expect(shape.count[1] == 1 && shape.count[2] == 1 && shape.size[0] == 1, "the shape of scale");
  groups = shape.count[0];
  expect(groups > 1, "scale has several workgroups");
  memcpy(&args[0], &n, 8);
  memcpy(&args[1], &a, 4);
  memcpy(&args[2], &b, 4);
  memcpy(&args[3], &from, 8);
  memcpy(&args[4], &to, 8);
  scale_f32(args, &shape, 0, 1);
  scale_f32(args, &shape, 1, groups);
  for (i = 0; i < N; ++i) good = good && close_to(y[i], 0.5 * x[i] + 3.0);
  expect(good, "scale in parts");
}

static void softmax(void) {
  int row;
  int column;
  for (row = 0; row < ROWS * COLUMNS; ++row) w[row] = (float)(row % 13) * 0.25f;
  expect(softmax_f32_run(ROWS, COLUMNS, w, out) == 0, "softmax ran");
  for (row = 0; row < ROWS; ++row) {
    double sum = 0;
    const float* const to = out + row * COLUMNS;
    const float* const from = w + row * COLUMNS;
    for (column = 0; column < COLUMNS; ++column) sum += to[column];
    expect(close_to(sum, 1.0), "a row of softmax sums to 1");
    /* e^0.25 */
    for (column = 1; column < COLUMNS; ++column) {
      if (from[column] < from[column - 1]) continue;
      expect(close_to(to[column] / to[column - 1], 1.2840254), "neighbours in softmax");
    }
  }
}

static void gemv(void) {
  int row;
  int column;
  for (column = 0; column < COLUMNS; ++column) x[column] = (float)(column % 7) - 3.0f;
  expect(gemv_f32_run(ROWS, COLUMNS, w, x, y) == 0, "gemv ran");
  for (row = 0; row < ROWS; ++row) {
    double sum = 0;
    for (column = 0; column < COLUMNS; ++column)
      sum += (double)w[row * COLUMNS + column] * x[column];
    expect(close_to(y[row], sum), "gemv");
  }
}

static void odd(void) {
  double from[8] = {0, 1, 2, 3, -1, 0.5, 0.25, -2};
  double to[8];
  int64_t counted = 0;
  int i;
  /* 0x3fc0 is 1.5 as bf16 */
  expect(odd_exp_run(2, true, -3, -300, 70000, -5000000000, 0.5f, 0.125, 0x3fc0, from, to) == 0,
         "odd_exp ran");
  /* e, and the numbers */
  expect(close_to(to[1] - to[0], 1.71828182845904) && close_to(to[7] - to[0], -0.864664716763387),
         "exponentials");
  expect(close_to(to[0], 1 - 3 - 300 + 70000 - 5000000000.0 + 0.5 + 0.125 + 1.5), "numbers");
  odd_exp_run(2, false, 0, 0, 0, 0, 0, 0, 0, from, to);
  for (i = 0; i < 8; ++i) expect(to[i] == from[i], "a false condition");

  expect(count_items_run(3, 4, 5, 6, &counted) == 0 && counted == 360, "all workitems ran");
  expect(count_items_run(3, 0, 5, 6, &counted) == 0 && counted == 360, "no workgroups");
  expect(count_items_run(-1, 4, 5, 6, &counted) == -1, "a negative count");
  expect(count_items_run(3, 4, 5, 0, &counted) == -1, "a size of 0");
  expect(count_items_run(INT64_C(1) << 32, 1, 1, 1, &counted) == -1, "a count above 32 bits");
  expect(count_items_run(INT64_C(0xffffffff), INT64_C(0xffffffff), 3, 1, &counted) == -1,
         "more workgroups than 64 bits can number");
  expect(counted == 360, "nothing else ran");
}

/* What the compiler's own library finds out is what the kernels' library does. */
static void levels(void) {
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
  expect(kernels_use_cpu_level("x86-64-v2") == !!__builtin_cpu_supports("x86-64-v2"), "v2");
  expect(kernels_use_cpu_level("x86-64-v3") == !!__builtin_cpu_supports("x86-64-v3"), "v3");
  expect(kernels_use_cpu_level("x86-64-v4") == !!__builtin_cpu_supports("x86-64-v4"), "v4");
#endif
}

int main(int argc, char** argv) {
  int i;
  if (argc == 2 && strcmp(argv[1], "never") == 0) return never_run();
  printf("chosen %s\n", kernels_cpu_level());
  expect(kernels_use_cpu_level("x86-64-v9") == 0, "an unknown level");
  expect(kernels_use_cpu_level("x86-64-v") == 0 && kernels_use_cpu_level("") == 0, "half a level");
  levels();
  for (i = 1; i < argc; ++i) {
    if (!kernels_use_cpu_level(argv[i])) {
      printf("without %s\n", argv[i]);
      continue;
    }
    expect(strcmp(kernels_cpu_level(), argv[i]) == 0, "the level in use");
    expect(odd_use_cpu_level(argv[i]) == 1, "the level of the other library");
    scale();
    scale_in_parts();
    softmax();
    gemv();
    odd();
    printf("ran %s\n", argv[i]);
  }
  expect(kernels_use_cpu_level(NULL) == 1, "the best level again");
  printf("chosen %s\n", kernels_cpu_level());
  return failures == 0 ? 0 : 1;
}
