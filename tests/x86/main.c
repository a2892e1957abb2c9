/* Calls a compiled kernel from plain C. */
#include <stdio.h>

#include "loom/target/x86/kernel_abi.h"

void smooth(const uint64_t* args, const LoomDispatchShape* shape, uint64_t begin, uint64_t end);

int main(void) {
  float data[4] = {0.0f, 1.0f, -1.0f, 20.0f};
  uint64_t args[1] = {(uint64_t)(uintptr_t)data};
  LoomDispatchShape shape = {{4, 1, 1}, {1, 1, 1}};
  smooth(args, &shape, 0, 4);
  for (int i = 0; i < 4; ++i) printf("%.5f\n", (double)data[i]);
  return 0;
}
