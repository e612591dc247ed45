// __syncthreads() inside `if (t < half)`: only some threads of the block come to it, the others wait at the next one.
// mode: plain inspect
// expect: barrier divergence
#include <stdio.h>

__global__ void sum(const float *x, float *total) {
  __shared__ float s_sum[64];
  int t = threadIdx.x;
  s_sum[t] = x[t];
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) {
      s_sum[t] += s_sum[t + half];
      __syncthreads();  // BUG
    }
  }
  __syncthreads();  // BUG-OTHER
  if (t == 0) *total = s_sum[0];
}

int main(void) {
  float x[64], total, *dx, *dtotal;
  for (int i = 0; i < 64; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dtotal, sizeof total);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  sum<<<1, 64>>>(dx, dtotal);
  cudaMemcpy(&total, dtotal, sizeof total, cudaMemcpyDeviceToHost);
  printf("%g\n", total);
}
