// A kernel that launches kernels. nvcc takes it with -rdc=true.
#include <stdio.h>

__global__ void child(int parent) { printf("child of %d\n", parent); }

__global__ void parent(int depth) {
  if (depth == 0) return;
  child<<<1, 2>>>(threadIdx.x);   // REFUSED: a kernel launches a kernel (dynamic parallelism)
  parent<<<1, blockDim.x / 2>>>(  // REFUSED: launch it from the host
      depth - 1);
}

__device__ void helper(void) {
  child<<<1, 1>>>(0);  // REFUSED: dynamic parallelism
}

int main() {
  parent<<<1, 4>>>(2);
  return cudaDeviceSynchronize() != cudaSuccess;
}
