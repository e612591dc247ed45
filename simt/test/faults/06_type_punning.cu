// Bits of a float by a cast of the pointer: nvcc takes it as it is meant, g++ -O2 only with -fno-strict-aliasing.
#include <stdio.h>

// x / 2: the exponent, from bit 23 on, is one less.
__device__ float half_of(float x) {
  int bits = *(int *)&x;
  bits -= 1 << 23;
  x = *(float *)&bits;
  return x;
}

// The next float above 2: its bits are one more.
__device__ void store_both(int *bits, float *value) {
  *bits = 0;
  *value = 2.0f;
  *bits += 1;  // reads what the line above wrote, when both point to the same place
}

__global__ void kernel(float *x) {
  float v = x[threadIdx.x];
  x[threadIdx.x] = half_of(v);
  store_both((int *)&x[32 + threadIdx.x], &x[32 + threadIdx.x]);
}

int main() {
  float *x, h[64];
  for (int i = 0; i < 32; i++) h[i] = 3.0f * (i + 1);
  cudaMalloc((void **)&x, sizeof h);
  cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
  kernel<<<1, 32>>>(x);
  cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost);
  cudaFree(x);
  for (int i = 0; i < 32; i++) {
    if (h[i] != 1.5f * (i + 1)) return printf("x[%d] = %g\n", i, h[i]), 1;
    if (!(h[32 + i] > 2.0f && h[32 + i] < 2.001f)) return printf("bits of x[%d]: %g\n", i, h[32 + i]), 1;
  }
  return 0;
}
