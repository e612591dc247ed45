// A block's sum by halving, without the barrier between the steps. A GPU gets it right most of the time.
// mode: inspect
// expect: data race
// expect-text: s_sum
#include <stdio.h>

__global__ void sum_of_block(const float *x, float *sum) {
  __shared__ float s_sum[256];
  int t = threadIdx.x;
  s_sum[t] = x[blockIdx.x * 256 + t];
  __syncthreads();
  for (int half = 128; half > 0; half /= 2)
    if (t < half) s_sum[t] += s_sum[t + half];  // BUG
  if (t == 0) sum[blockIdx.x] = s_sum[0];
}

int main(void) {
  float x[512], sum[2], *dx, *dsum;
  for (int i = 0; i < 512; i++) x[i] = i;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dsum, sizeof sum);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  sum_of_block<<<2, 256>>>(dx, dsum);
  cudaMemcpy(sum, dsum, sizeof sum, cudaMemcpyDeviceToHost);
  printf("%g %g\n", sum[0], sum[1]);
  cudaFree(dx);
  cudaFree(dsum);
}
