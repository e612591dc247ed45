// Two owners, two cudaFree() of one pointer.
// mode: plain inspect
// expect: double free
#include <stdio.h>

int main(void) {
  float *dx, *view;
  cudaMalloc(&dx, 100 * sizeof(float));
  view = dx;
  cudaFree(dx);
  cudaFree(view);  // BUG
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
}
