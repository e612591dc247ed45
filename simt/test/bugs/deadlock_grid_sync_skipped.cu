// One block leaves before grid.sync(): the others wait for it for ever.
// mode: plain
// expect: deadlock
#include <cooperative_groups.h>
#include <stdio.h>
namespace cg = cooperative_groups;

__global__ void two_steps(int *x, int blocks_with_work) {
  if (blockIdx.x >= blocks_with_work) return;
  x[blockIdx.x] = blockIdx.x;
  cg::this_grid().sync();  // BUG
  if (blockIdx.x > 0) x[blockIdx.x] += x[blockIdx.x - 1];
}

int main(void) {
  int *dx, blocks_with_work = 3;
  cudaMalloc(&dx, 4 * sizeof(int));
  cudaMemset(dx, 0, 4 * sizeof(int));
  void *arguments[] = {&dx, &blocks_with_work};
  cudaLaunchCooperativeKernel((void *)two_steps, dim3(4), dim3(1), arguments, 0, 0);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
