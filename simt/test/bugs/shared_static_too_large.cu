// Two tiles of 80 x 80 floats: 51,200 bytes of static shared memory. nvcc refuses, and so does simtcc.
// mode: compile
// expect: refused
// expect-text: 51200
#include <stdio.h>

__global__ void load(const float *a, float *y) {  // BUG
  __shared__ float s_a[80][80], s_b[80][80];
  for (int i = threadIdx.x; i < 6400; i += blockDim.x) {
    s_a[i / 80][i % 80] = a[i];
    s_b[i % 80][i / 80] = a[i];
  }
  __syncthreads();
  y[threadIdx.x] = s_a[threadIdx.x][1] + s_b[threadIdx.x][2];
}

int main(void) {
  float *da, *dy;
  cudaMalloc(&da, 6400 * sizeof(float));
  cudaMalloc(&dy, 64 * sizeof(float));
  cudaMemset(da, 0, 6400 * sizeof(float));
  load<<<1, 64>>>(da, dy);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(da);
  cudaFree(dy);
}
