// cudaMalloc() fails (more than the device has), nobody looks, and the kernel runs with the null pointer.
// mode: plain inspect
// expect: null pointer
#include <stdio.h>

__global__ void zero(float *x) {
  x[blockIdx.x * blockDim.x + threadIdx.x] = 0;  // BUG
}

int main(void) {
  float *dx = nullptr;
  cudaMalloc(&dx, (size_t)1 << 60);
  cudaGetLastError();
  zero<<<2, 32>>>(dx);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
