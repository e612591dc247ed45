// A sum that nobody set to zero: it lives in a register, which the compiler alone sees.
// mode: warning
// expect: warning
// expect-text: uninitialized
#include <stdio.h>

__global__ void add_up(const float *in, float *out, int n) {
  float sum;
  sum += in[0];  // BUG
  for (int i = 1; i < n; i++) sum += in[i];
  *out = sum;
}

int main(void) {
  float *in, *out, sum;
  cudaMalloc(&in, 64 * sizeof *in);
  cudaMalloc(&out, sizeof *out);
  cudaMemset(in, 0, 64 * sizeof *in);
  add_up<<<1, 1>>>(in, out, 64);
  cudaMemcpy(&sum, out, sizeof sum, cudaMemcpyDeviceToHost);
  printf("%g\n", sum);
}
