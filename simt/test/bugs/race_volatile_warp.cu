// The last steps of a reduction "within a warp", volatile but without __syncwarp(): right before Volta, a race since.
// mode: inspect
// expect: data race
// expect-text: s_sum
#include <stdio.h>

__device__ void reduce_warp(volatile float *s_sum, int t) {
  if (t < 16) s_sum[t] += s_sum[t + 16];  // BUG
  if (t < 8) s_sum[t] += s_sum[t + 8];    // BUG-OTHER
  if (t < 4) s_sum[t] += s_sum[t + 4];
  if (t < 2) s_sum[t] += s_sum[t + 2];
  if (t < 1) s_sum[t] += s_sum[t + 1];
}

__global__ void sum(const float *x, float *total) {
  __shared__ float s_sum[32];
  int t = threadIdx.x;
  s_sum[t] = x[t];
  __syncthreads();
  reduce_warp(s_sum, t);
  if (t == 0) *total = s_sum[0];
}

int main(void) {
  float x[32], total, *dx, *dtotal;
  for (int i = 0; i < 32; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dtotal, sizeof total);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  sum<<<1, 32>>>(dx, dtotal);
  cudaMemcpy(&total, dtotal, sizeof total, cudaMemcpyDeviceToHost);
  printf("%g\n", total);
  cudaFree(dx);
  cudaFree(dtotal);
}
