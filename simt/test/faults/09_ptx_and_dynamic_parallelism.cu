// Refused with a line, not by the assembler or at run time. A __host__ __device__ function may launch: on the host.
#include <stdio.h>

__global__ void child() {}

__host__ __device__ void both() {
#ifndef __CUDA_ARCH__
  child<<<1, 1>>>();
#endif
}

__global__ void parent() {
  int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));  // REFUSED: threadIdx.x % warpSize
  if (lane == 0) child<<<1, 1>>>();           // REFUSED: dynamic parallelism
  both();
}

int main() {
  parent<<<1, 1>>>();
  both();
  return 0;
}
