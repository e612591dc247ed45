// Bits of a float by a cast of the pointer: nvcc takes it as it is meant, g++ -O2 only with -fno-strict-aliasing.
#include <stdio.h>

__device__ float fast_inverse_root(float x) {
  float half = 0.5f * x;
  int i = *(int *)&x;
  i = 0x5f3759df - (i >> 1);
  x = *(float *)&i;
  return x * (1.5f - half * x * x);
}

// An atomic maximum of floats, on their bits.
__device__ void store_both(int *bits, float *value) {
  *bits = 0;
  *value = 2.0f;
  *bits += 1;  // reads what the line above wrote, when both point to the same place
}

__global__ void kernel(float *x) {
  float v = x[threadIdx.x];
  x[threadIdx.x] = fast_inverse_root(v);
  store_both((int *)&x[32 + threadIdx.x], &x[32 + threadIdx.x]);
}

int main() {
  float *x, h[64];
  for (int i = 0; i < 32; i++) h[i] = (float)(i + 1) * (i + 1);
  cudaMalloc((void **)&x, sizeof h);
  cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
  kernel<<<1, 32>>>(x);
  cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost);
  cudaFree(x);
  for (int i = 0; i < 32; i++) {
    float wanted = 1.0f / (i + 1), error = h[i] - wanted;
    if (!(error * error < 1e-5f * wanted * wanted)) return printf("x[%d] = %g\n", i, h[i]), 1;
    if (!(h[32 + i] > 2.0f && h[32 + i] < 2.001f)) return printf("bits of x[%d]: %g\n", i, h[32 + i]), 1;
  }
  return 0;
}
