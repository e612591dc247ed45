// A scan between two arrays, but no barrier at all between its rounds.
// mode: inspect
// expect: data race
// also: uninitialised read
// expect-text: s_pair
#include <stdio.h>

__global__ void scan(int *x) {
  __shared__ int s_pair[2][128];
  int t = threadIdx.x, from = 0;
  s_pair[0][t] = x[t];
  __syncthreads();
  for (int reach = 1; reach < 128; reach *= 2, from ^= 1) {
    int left = t >= reach ? s_pair[from][t - reach] : 0;  // BUG-OTHER
    s_pair[from ^ 1][t] = s_pair[from][t] + left;         // BUG
  }
  x[t] = s_pair[from][t];
}

int main(void) {
  int x[128], *dx;
  for (int i = 0; i < 128; i++) x[i] = 1;
  cudaMalloc(&dx, sizeof x);
  cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
  scan<<<1, 128>>>(dx);
  cudaMemcpy(x, dx, sizeof x, cudaMemcpyDeviceToHost);
  printf("%d\n", x[127]);
  cudaFree(dx);
}
