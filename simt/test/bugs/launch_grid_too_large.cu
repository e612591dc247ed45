// One block a row in the grid's y, which ends at 65,535.
// mode: plain inspect
// expect: launch
// expect-text: 70000
#include <stdio.h>

__global__ void fill(float *x) { x[blockIdx.y] = 1; }

int main(void) {
  float *dx;
  cudaMalloc(&dx, 70000 * sizeof(float));
  fill<<<dim3(1, 70000), 1>>>(dx);  // BUG
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(dx);
}
