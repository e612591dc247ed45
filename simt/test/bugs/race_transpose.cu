// A transpose through shared memory: the tile is written and read in different directions with no barrier between.
// mode: inspect
// expect: data race
// also: uninitialised read
// expect-text: s_tile
#include <stdio.h>
#define N 64

__global__ void transpose(const float *in, float *out) {
  __shared__ float s_tile[32][33];
  int x = threadIdx.x, y = threadIdx.y;
  s_tile[y][x] = in[(blockIdx.y * 32 + y) * N + blockIdx.x * 32 + x];   // BUG
  out[(blockIdx.x * 32 + y) * N + blockIdx.y * 32 + x] = s_tile[x][y];  // BUG-OTHER
}

int main(void) {
  static float in[N * N], out[N * N];
  float *din, *dout;
  for (int i = 0; i < N * N; i++) in[i] = i;
  cudaMalloc(&din, sizeof in);
  cudaMalloc(&dout, sizeof out);
  cudaMemcpy(din, in, sizeof in, cudaMemcpyHostToDevice);
  transpose<<<dim3(2, 2), dim3(32, 32)>>>(din, dout);
  cudaMemcpy(out, dout, sizeof out, cudaMemcpyDeviceToHost);
  printf("%g\n", out[1]);
  cudaFree(din);
  cudaFree(dout);
}
