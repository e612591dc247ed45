// Cooperative launches across GPUs: removed in CUDA 13.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void k() {
  cg::multi_grid_group all = cg::this_multi_grid();  // REFUSED: the emulator has one
  all.sync();
}

int main() {
  cudaLaunchParams parameters[2] = {};
  cudaLaunchCooperativeKernelMultiDevice(parameters, 2, 0);  // REFUSED: cooperative launch on several GPUs
  return 0;
}
