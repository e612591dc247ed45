// The last batch of a data set is copied at full size and runs beyond its end.
// mode: plain inspect
// expect: out of bounds
#include <stdio.h>
#define BATCH 64

int main(void) {
  float x[BATCH], *dset;
  cudaMalloc(&dset, 150 * sizeof(float));
  cudaMemset(dset, 0, 150 * sizeof(float));
  for (int first = 0; first < 150; first += BATCH)
    cudaMemcpy(x, dset + first, BATCH * sizeof(float), cudaMemcpyDeviceToHost);  // BUG
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
  cudaFree(dset);
}
