// Hillis and Steele's scan on one array: a barrier after the write, none between the read and the write.
// mode: inspect
// expect: data race
// expect-text: s_scan
#include <stdio.h>

__global__ void scan(int *x) {
  __shared__ int s_scan[128];
  int t = threadIdx.x;
  s_scan[t] = x[t];
  __syncthreads();
  for (int reach = 1; reach < 128; reach *= 2) {
    if (t >= reach) s_scan[t] += s_scan[t - reach];  // BUG
    __syncthreads();
  }
  x[t] = s_scan[t];
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
