// A header of one byte, then ints: the file's layout is read in place.
// mode: inspect
// expect: misaligned address
#include <stdio.h>

__global__ void sum(const unsigned char *file, int *total) {
  const int *value = (const int *)(file + 1);
  atomicAdd(total, value[threadIdx.x]);  // BUG
}

int main(void) {
  unsigned char *dfile;
  int *dtotal;
  cudaMalloc(&dfile, 1 + 32 * sizeof(int));
  cudaMalloc(&dtotal, sizeof(int));
  cudaMemset(dfile, 0, 1 + 32 * sizeof(int));
  cudaMemset(dtotal, 0, sizeof(int));
  sum<<<1, 32>>>(dfile, dtotal);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
