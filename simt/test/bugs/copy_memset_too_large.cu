// cudaMemset takes bytes; the size was multiplied by sizeof(float) twice.
// mode: plain inspect
// expect: out of bounds
#include <stdio.h>

int main(void) {
  const size_t bytes = 100 * sizeof(float);
  float *dx;
  cudaMalloc(&dx, bytes);
  cudaMemset(dx, 0, bytes * sizeof(float));  // BUG
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
  cudaFree(dx);
}
