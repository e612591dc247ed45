// Launches over several lines in a macro, here and in a header, which has kernels and loops to unroll of its own.
#include "03_launch_in_macro.cuh"

// clang-format off
#define CASE(n)             \
  case n:                   \
    add_n<n>                \
        <<<                 \
            1,              \
            32              \
        >>>                 \
        (x);                \
    break;
// clang-format on

static void dispatch(int n, int *x) {
  switch (n) {
    CASE(1)
    CASE(2)
    CASE(3)
  }
}

static const int line = __LINE__;

int main() {
  int *x, h[32];
  cudaMalloc((void **)&x, sizeof h);
  cudaMemset(x, 0, sizeof h);
  for (int n = 1; n <= 3; n++) dispatch(n, x);
  RUN_ON(1, 32, add_loop, x, 4);
  cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost);
  cudaFree(x);
  for (int i = 0; i < 32; i++)
    if (h[i] != 6 + 6) return printf("x[%d] = %d\n", i, h[i]), 1;
  printf("lines %d and %d\n", line, __LINE__);
  return line != 24 || __LINE__ != 37;
}
