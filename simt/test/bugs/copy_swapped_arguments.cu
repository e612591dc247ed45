// Source and destination swapped; the direction is right for what was meant.
// mode: plain inspect
// expect: wrong direction
#include <stdio.h>

int main(void) {
  int x[32] = {0}, *dx;
  cudaMalloc(&dx, sizeof x);
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyHostToDevice);  // BUG
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
  cudaFree(dx);
}
