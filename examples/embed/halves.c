/* A program that has nothing of Loom but a shared object and its header. */
#include <halves.h>
#include <stdio.h>

int main(void) {
  const float x[4] = {1, 2, 3, 4};
  float y[4];
  if (halves_cpu_level() == NULL) {
    fprintf(stderr, "the kernels need a later processor\n");
    return 1;
  }
  if (halve_run(4, x, y) != 0) return 1;
  printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
  return 0;
}
