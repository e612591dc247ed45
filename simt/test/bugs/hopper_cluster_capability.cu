// Clusters on a GPU of compute capability 8.0.
// mode: plain
// expect: launch: clusters need compute capability 9.0; the emulated GPU has 8.0
// expect-text: SIMT_CAPABILITY=9.0
// env: SIMT_CAPABILITY=8.0
#include <cooperative_groups.h>
#include <stdio.h>

__global__ void __cluster_dims__(2) meet(void) { cooperative_groups::this_cluster().sync(); }

int main(void) {
  meet<<<4, 32>>>();  // BUG
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
