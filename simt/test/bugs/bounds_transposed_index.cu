// A transpose whose output is indexed with the input's width; on a square matrix nobody would notice.
// mode: inspect
// expect: out of bounds
// expect-text: [row * COLUMNS + ...
#include <stdio.h>
#define ROWS 24
#define COLUMNS 40

__global__ void transpose(const float *in, float *out) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < ROWS && column < COLUMNS) out[column * COLUMNS + row] = in[row * COLUMNS + column];  // BUG
}

int main(void) {
  static float in[ROWS * COLUMNS], out[ROWS * COLUMNS];
  float *din, *dout;
  cudaMalloc(&din, sizeof in);
  cudaMalloc(&dout, sizeof out);
  cudaMemset(dout, 0, sizeof out);
  cudaMemcpy(din, in, sizeof in, cudaMemcpyHostToDevice);
  transpose<<<dim3(5, 3), dim3(8, 8)>>>(din, dout);
  cudaMemcpy(out, dout, sizeof out, cudaMemcpyDeviceToHost);
  printf("%g\n", out[1]);
  cudaFree(din);
  cudaFree(dout);
}
