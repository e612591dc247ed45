// A buffer that is never freed: in a training loop the GPU is full after a while.
// mode: leaks
// expect: leak
#include <stdio.h>

int main(void) {
  for (int step = 0; step < 3; step++) {
    float *dx, *dscratch;
    cudaMalloc(&dx, 1000 * sizeof(float));
    cudaMalloc(&dscratch, 500 * sizeof(float));  // BUG
    cudaFree(dx);
  }
  printf("done\n");
}
