// Thread 0 puts the row's maximum into shared memory and the others read it without waiting.
// mode: inspect
// expect: data race
// expect-text: s_max
#include <stdio.h>

__global__ void subtract_max(float *x, int n) {
  __shared__ float s_max;
  int t = threadIdx.x;
  if (t == 0) {
    float max = x[0];
    for (int i = 1; i < n; i++) max = x[i] > max ? x[i] : max;
    s_max = max;  // BUG
  }
  float shifted = t < n ? s_max - 1 : 0;  // BUG-OTHER
  __syncthreads();
  if (t < n) x[t] = shifted;
}

int main(void) {
  float x[64], *dx;
  for (int i = 0; i < 64; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  subtract_max<<<1, 64>>>(dx, 64);
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyDeviceToHost);
  printf("%g\n", x[5]);
  cudaFree(dx);
}
