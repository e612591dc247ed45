// extern, static, volatile, alignment, the type and __shared__ come in every order.
#include <stdio.h>

template <class T>
__global__ void reverse(T *x) {
  extern __shared__ float first[];
  __shared__ extern float second[];
  extern float __shared__ third[];
  extern __shared__ __align__(16) unsigned char fourth[];
  static __shared__ T a[32];
  __shared__ static T b[32];
  volatile __shared__ T c[32];
  T __shared__ d[32], e[32][2];
  __shared__ __align__(16) T f[32];
  int i = threadIdx.x;
  first[i] = a[i] = b[i] = c[i] = d[i] = e[i][1] = f[i] = x[i];
  __syncthreads();
  int j = 31 - i;
  bool same = second[j] == first[j] && third[j] == first[j] && (void *)fourth == (void *)first;
  bool equal = a[j] == b[j] && b[j] == c[j] && c[j] == d[j] && d[j] == e[j][1] && e[j][1] == f[j];
  x[i] = same && equal && a[j] == first[j] ? a[j] : -1;
}

int main() {
  float *x, h[32];
  for (int i = 0; i < 32; i++) h[i] = i;
  cudaMalloc((void **)&x, sizeof h);
  cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
  reverse<float><<<1, 32, sizeof h>>>(x);
  cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost);
  cudaFree(x);
  for (int i = 0; i < 32; i++)
    if (h[i] != 31 - i) return printf("x[%d] = %g\n", i, h[i]), 1;
  return 0;
}
