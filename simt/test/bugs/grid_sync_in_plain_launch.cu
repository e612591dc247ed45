// grid.sync() in a kernel that was launched with <<< >>> and not with cudaLaunchCooperativeKernel().
// mode: plain inspect
// expect: grid.sync()
#include <cooperative_groups.h>
#include <stdio.h>
namespace cg = cooperative_groups;

__global__ void two_steps(int *x) {
  x[blockIdx.x] = blockIdx.x;
  cg::this_grid().sync();  // BUG
  if (blockIdx.x > 0) x[blockIdx.x] += 1;
}

int main(void) {
  int *dx;
  cudaMalloc(&dx, 4 * sizeof(int));
  cudaMemset(dx, 0, 4 * sizeof(int));
  two_steps<<<4, 1>>>(dx);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
