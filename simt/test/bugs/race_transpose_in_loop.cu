// A block transposes two tiles one after the other and loads the second while the first is still being read.
// mode: inspect
// expect: data race
// expect-text: s_tile
#include <stdio.h>

__global__ void transpose_strip(const float *in, float *out, int tiles) {
  __shared__ float s_tile[16][17];
  int x = threadIdx.x, y = threadIdx.y, width = 16 * tiles;
  for (int tile = 0; tile < tiles; tile++) {
    s_tile[y][x] = in[y * width + tile * 16 + x];  // BUG
    __syncthreads();
    out[(tile * 16 + y) * 16 + x] = s_tile[x][y];  // BUG-OTHER
  }
}

int main(void) {
  static float in[16 * 64], out[16 * 64];
  float *din, *dout;
  for (int i = 0; i < 16 * 64; i++) in[i] = i;
  cudaMalloc(&din, sizeof in);
  cudaMalloc(&dout, sizeof out);
  cudaMemcpy(din, in, sizeof in, cudaMemcpyHostToDevice);
  transpose_strip<<<1, dim3(16, 16)>>>(din, dout, 4);
  cudaMemcpy(out, dout, sizeof out, cudaMemcpyDeviceToHost);
  printf("%g\n", out[1]);
  cudaFree(din);
  cudaFree(dout);
}
