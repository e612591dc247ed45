// The last block adds the partial sums, but nothing orders a block's sum before its tick of the counter.
// mode: inspect
// expect: data race
// expect-text: between blocks
#include <stdio.h>

__device__ unsigned ticket;

__global__ void sum(const float *x, float *partial, float *total) {
  __shared__ bool s_last;
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < 64; i++) sum += x[blockIdx.x * 64 + i];
    partial[blockIdx.x] = sum;  // BUG
    // __threadfence() belongs here
    s_last = atomicAdd(&ticket, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (s_last && threadIdx.x == 0) {
    float sum = 0;
    for (int b = 0; b < gridDim.x; b++) sum += partial[b];  // BUG-OTHER
    *total = sum;
  }
}

int main(void) {
  float x[512], total, *dx, *dpartial, *dtotal;
  for (int i = 0; i < 512; i++) x[i] = 1;
  cudaMalloc(&dx, sizeof x);
  cudaMalloc(&dpartial, 8 * sizeof(float));
  cudaMalloc(&dtotal, sizeof(float));
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  sum<<<8, 64>>>(dx, dpartial, dtotal);
  cudaMemcpy(&total, dtotal, sizeof total, cudaMemcpyDeviceToHost);
  printf("%g\n", total);
  cudaFree(dx);
  cudaFree(dpartial);
  cudaFree(dtotal);
}
