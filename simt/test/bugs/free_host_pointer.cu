// cudaFree() of memory that came from malloc().
// mode: plain inspect
// expect: invalid free
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  float *x = (float *)malloc(100 * sizeof(float));
  cudaFree(x);  // BUG
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
  free(x);
}
