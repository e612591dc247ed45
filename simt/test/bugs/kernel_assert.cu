// A label outside its range trips an assert() inside the kernel.
// mode: plain inspect
// expect: assert
// expect-text: label[i] < classes
#include <assert.h>
#include <stdio.h>

__global__ void count(const int *label, int n, int classes, int *counts) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  assert(label[i] < classes);  // BUG
  atomicAdd(&counts[label[i]], 1);
}

int main(void) {
  int label[100], *dlabel, *dcounts;
  for (int i = 0; i < 100; i++) label[i] = i % 11;
  cudaMalloc(&dlabel, sizeof label);
  cudaMalloc(&dcounts, 10 * sizeof(int));
  cudaMemset(dcounts, 0, 10 * sizeof(int));
  cudaMemcpy(dlabel, label, sizeof label, cudaMemcpyHostToDevice);
  count<<<1, 128>>>(dlabel, 100, 10, dcounts);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
