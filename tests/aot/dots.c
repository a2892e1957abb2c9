/* Products of i8 are exact on each level that the processor has. C99 and C++. */
#include <stdio.h>

#include "made/dots.h"

enum { ROWS = 7, COLUMNS = 333 };

int main(int argc, char** argv) {
  static int8_t w[ROWS * COLUMNS], x[COLUMNS];
  int32_t y[ROWS];
  int row, column, i;
  for (i = 0; i < ROWS * COLUMNS; ++i) w[i] = (int8_t)(i * 37 % 256 - 128);
  for (i = 0; i < COLUMNS; ++i) x[i] = (int8_t)(i * 91 % 256 - 128);
  for (i = 1; i < argc; ++i) {
    if (!dots_use_cpu_level(argv[i])) {
      printf("without %s\n", argv[i]);
      continue;
    }
    if (gemv_i8_run(ROWS, COLUMNS, w, x, y) != 0) return 1;
    for (row = 0; row < ROWS; ++row) {
      int32_t sum = 0;
      for (column = 0; column < COLUMNS; ++column) sum += w[row * COLUMNS + column] * x[column];
      if (sum != y[row]) {
        printf("wrong: row %d on %s\n", row, argv[i]);
        return 1;
      }
    }
    printf("ran %s\n", argv[i]);
  }
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
  if (dots_use_cpu_level("x86-64-v4-dot") !=
      (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vnni") &&
       __builtin_cpu_supports("avx512bf16"))) {
    printf("wrong: the level\n");
    return 1;
  }
#endif
  return 0;
}
