// A freed pointer inside a struct: no launch argument shows it, only the access itself.
// mode: inspect
// expect: use after free
#include <stdio.h>

struct Layer {
  float *weight, *bias;
  int n;
};

__global__ void add_bias(Layer layer, float *x) {
  if (threadIdx.x < layer.n) x[threadIdx.x] += layer.bias[threadIdx.x];  // BUG
}

int main(void) {
  Layer layer = {nullptr, nullptr, 32};
  float *dx;
  cudaMalloc(&layer.bias, 32 * sizeof(float));
  cudaMalloc(&dx, 32 * sizeof(float));
  cudaMemset(layer.bias, 0, 32 * sizeof(float));
  cudaMemset(dx, 0, 32 * sizeof(float));
  cudaFree(layer.bias);
  add_bias<<<1, 32>>>(layer, dx);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(dx);
}
