// One stream produces, another consumes, and no event tells the second to wait for the first.
// mode: lazy-inspect
// expect: race between streams
#include <stdio.h>

__global__ void produce(float *x) {
  x[threadIdx.x] = threadIdx.x;  // BUG-OTHER
}

__global__ void consume(const float *x, float *y) {
  y[threadIdx.x] = 2 * x[threadIdx.x];  // BUG
}

int main(void) {
  float y[64], *dx, *dy;
  cudaStream_t first, second;
  cudaStreamCreate(&first);
  cudaStreamCreate(&second);
  cudaMalloc(&dx, sizeof y);
  cudaMalloc(&dy, sizeof y);
  cudaMemset(dx, 0, sizeof y);
  cudaDeviceSynchronize();
  produce<<<1, 64, 0, first>>>(dx);
  consume<<<1, 64, 0, second>>>(dx, dy);
  cudaDeviceSynchronize();
  cudaMemcpy(y, dy, sizeof y, cudaMemcpyDeviceToHost);
  printf("%g\n", y[5]);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
  cudaFree(dx);
  cudaFree(dy);
}
