// __noinline__ is a word of CUDA's and may stand in an attribute; isnan and its kin are visible without std::.
#include <stdio.h>
#include <algorithm>
#include <cmath>
#include <string>  // its own code says __attribute__((__noinline__))
#include <vector>

__attribute__((__noinline__)) static int host_function(int x) { return x + 1; }
__attribute__((__noinline__, __cold__)) static int cold(int x) { return x + 2; }
__noinline__ __device__ float device_function(float x) { return x * 2; }
static __device__ __forceinline__ float inlined(float x) { return x + 1; }
static __inline__ __device__ float old_inline(float x) { return x + 2; }

__global__ void classify(const float *x, int *kind) {
  float v = x[threadIdx.x];
  int k = 0;
  if (isnan(v)) k |= 1;
  if (isinf(v)) k |= 2;
  if (isfinite(v)) k |= 4;
  if (signbit(v)) k |= 8;
  if (isfinite(v) && device_function(inlined(old_inline(v))) == 2 * (v + 3)) k |= 16;
  kind[threadIdx.x] = k + 32 * max(0, min((int)threadIdx.x, 1));
}

int main() {
  float h[4] = {1, NAN, INFINITY, -2}, *x;
  int kinds[4], *kind;
  cudaMalloc((void **)&x, sizeof h);
  cudaMalloc((void **)&kind, sizeof kinds);
  cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
  classify<<<1, 4>>>(x, kind);
  cudaMemcpy(kinds, kind, sizeof kinds, cudaMemcpyDeviceToHost);
  cudaFree(x);
  cudaFree(kind);
  const int wanted[4] = {4 | 16, 1 | 32, 2 | 32, 4 | 8 | 16 | 32};
  for (int i = 0; i < 4; i++)
    if ((kinds[i] & ~8) != (wanted[i] & ~8)) return printf("kind[%d] = %d\n", i, kinds[i]), 1;
  std::vector<std::string> words(2, "a");
  std::sort(words.begin(), words.end());
  return host_function(1) + cold(1) == 5 && !isnan(h[0]) && std::isinf(h[2]) ? 0 : 1;
}
