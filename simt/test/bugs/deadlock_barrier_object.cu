// A cuda::barrier that expects 64 arrivals in a block of 32 threads.
// mode: plain inspect
// expect: deadlock
#include <stdio.h>
#include <cuda/barrier>

__global__ void meet(int *x) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0) init(&barrier, 64);
  __syncthreads();
  x[threadIdx.x] = threadIdx.x;
  barrier.arrive_and_wait();  // BUG
  x[threadIdx.x] += 1;
}

int main(void) {
  int *dx;
  cudaMalloc(&dx, 32 * sizeof(int));
  meet<<<1, 32>>>(dx);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
