// Two GPUs: the struct points to memory of the first, the kernel runs on the second, and peer access is not enabled.
// mode: inspect
// env: SIMT_DEVICES=2
// expect: memory of another device
#include <stdio.h>

struct Vector {
  int count;
  float *data;
};

__global__ void zero(Vector a) {
  int i = threadIdx.x;
  if (i < a.count) a.data[i] = 0;  // BUG
}

int main(void) {
  Vector a = {32, NULL};
  cudaMalloc(&a.data, 32 * sizeof(float));
  cudaSetDevice(1);
  zero<<<1, 32>>>(a);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaSetDevice(0);
  cudaFree(a.data);
}
