// The allocation's size lacks sizeof(float), so the copy runs beyond it.
// mode: plain inspect
// expect: out of bounds
#include <stdio.h>
#define N 256

int main(void) {
  float x[N] = {0}, *dx;
  cudaMalloc(&dx, N);
  cudaMemcpy(dx, x, N * sizeof(float), cudaMemcpyHostToDevice);  // BUG
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
  cudaFree(dx);
}
