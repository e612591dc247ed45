// A __device__ array handed to a kernel by its name: on a GPU that is the address of the host's shadow of it.
// mode: plain inspect
// expect: symbol
#include <stdio.h>

__device__ float table[32];

__global__ void fill(float *x) { x[threadIdx.x] = threadIdx.x; }

int main(void) {
  fill<<<1, 32>>>(table);  // BUG
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
