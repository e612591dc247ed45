// __CUDA_ARCH__ is defined in kernels and device functions and nowhere else; what depends on it takes the GPU's branch.
#include <stdio.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 600
__device__ double atomicAdd(double *address, double value) {  // for GPUs that have none
  unsigned long long *bits = (unsigned long long *)address, old = *bits, assumed;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}
#endif

#ifdef __CUDA_ARCH__
#define WHERE 1
#else
#define WHERE 2
#endif

__host__ __device__ int where() { return WHERE; }

struct Vector {
  float x;
  __host__ __device__ Vector(float v) {
#ifdef __CUDA_ARCH__
    x = v + 1;
#else
    x = v + 2;
#endif
  }
  __host__ __device__ __forceinline__ float get() const {
#ifdef __CUDA_ARCH__
    return x;
#else
    return -x;
#endif
  }
};

#if __CUDA_ARCH__ >= 700
__device__ int only_on_new_gpus() { return 7; }
#else
__device__ int only_on_new_gpus() { return 6; }
#endif

template <class T>
__global__ void kernel(T *x, double *sum) {
#if __CUDA_ARCH__ >= 800
  x[0] = where();
#elif __CUDA_ARCH__ >= 700
  x[0] = 100;
#else
  x[0] = 200;
#endif
  x[1] = Vector(4).get();
  x[2] = only_on_new_gpus();
#ifdef __CUDA_ARCH__
  x[3] = __CUDA_ARCH__;
#endif
  atomicAdd(sum, 0.5);
}

int main() {
#ifdef __CUDA_ARCH__
  return 1;
#endif
  float *x, h[4];
  double *sum, s = 0;
  cudaMalloc((void **)&x, sizeof h);
  cudaMalloc((void **)&sum, sizeof s);
  cudaMemcpy(sum, &s, sizeof s, cudaMemcpyHostToDevice);
  kernel<<<1, 32>>>(x, sum);
  cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost);
  cudaMemcpy(&s, sum, sizeof s, cudaMemcpyDeviceToHost);
  cudaFree(x);
  cudaFree(sum);
  if (h[0] != 1 || h[1] != 5 || h[2] != 7 || h[3] < 800 || s != 16)
    return printf("device: %g %g %g %g, %g\n", h[0], h[1], h[2], h[3], s), 1;
  if (where() != 2 || Vector(4).get() != -6) return printf("host: %d %g\n", where(), Vector(4).get()), 1;
  return 0;
}
