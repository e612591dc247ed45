#include <stdio.h>
#include <algorithm>
using namespace std;

/* saxpy with effective bandwidth: scalar, grid-stride and float4 versions */

#define cudaCheck(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line, bool abort=true)
{
   if (code != cudaSuccess)
   {
      fprintf(stderr,"GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
      if (abort) exit(code);
   }
}

__global__ void saxpy(int n, float a, float * __restrict__ x, float * __restrict__ y)
{
  int i = blockIdx.x*blockDim.x + threadIdx.x;
  if (i < n) y[i] = a*x[i] + y[i];
}

__global__ void saxpy_stride(int n, float a, const float *x, float *y)
{
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    y[i] = fmaf(a, __ldg(&x[i]), y[i]);
}

__global__ void saxpy_vec4(int n, float a, const float *x, float *y)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n/4) {
    float4 xv = reinterpret_cast<const float4*>(x)[i];
    float4 yv = reinterpret_cast<float4*>(y)[i];
    yv.x += a*xv.x; yv.y += a*xv.y; yv.z += a*xv.z; yv.w += a*xv.w;
    reinterpret_cast<float4*>(y)[i] = yv;
  }
  // the tail, by the first threads
  int tail = n - n/4*4;
  if (i < tail) { int j = n - tail + i; y[j] = a*x[j] + y[j]; }
}

static bool run(int version, int N, float *x, float *y, float *d_x, float *d_y)
{
  for (int i = 0; i < N; i++) { x[i] = 1.0f; y[i] = 2.0f; }
  cudaEvent_t start, stop;
  cudaCheck(cudaEventCreate(&start));
  cudaCheck(cudaEventCreate(&stop));

  cudaCheck(cudaMemcpy(d_x, x, N*sizeof(float), cudaMemcpyHostToDevice));
  cudaCheck(cudaMemcpy(d_y, y, N*sizeof(float), cudaMemcpyHostToDevice));

  cudaCheck(cudaEventRecord(start));
  switch (version) {
    case 0: saxpy<<<(N+511)/512, 512>>>(N, 2.0f, d_x, d_y); break;
    case 1: saxpy_stride<<<32, 256>>>(N, 2.0f, d_x, d_y); break;
    case 2: saxpy_vec4<<<(N/4+255)/256, 256>>>(N, 2.0f, d_x, d_y); break;
  }
  cudaCheck(cudaPeekAtLastError());
  cudaCheck(cudaEventRecord(stop));

  cudaCheck(cudaMemcpy(y, d_y, N*sizeof(float), cudaMemcpyDeviceToHost));

  cudaCheck(cudaEventSynchronize(stop));
  float milliseconds = 0;
  cudaCheck(cudaEventElapsedTime(&milliseconds, start, stop));

  float maxError = 0.0f;
  for (int i = 0; i < N; i++) maxError = max(maxError, abs(y[i]-4.0f));

  printf("version %d: Max error: %f, %.3f ms, Effective Bandwidth (GB/s): %f\n",
         version, maxError, milliseconds, N*4*3/milliseconds/1e6);
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  return maxError == 0.0f && milliseconds >= 0.0f;
}

int main(void)
{
  int N = 1 * (1 << 20) + 3;

  float *x, *y, *d_x, *d_y;
  x = (float*)malloc(N*sizeof(float));
  y = (float*)malloc(N*sizeof(float));

  cudaCheck(cudaMalloc(&d_x, N*sizeof(float)));
  cudaCheck(cudaMalloc(&d_y, N*sizeof(float)));

  bool ok = true;
  for (int v = 0; v < 3; v++) ok = run(v, N, x, y, d_x, d_y) && ok;

  cudaFree(d_x); cudaFree(d_y);
  free(x); free(y);
  printf(ok ? "SUCCESS\n" : "FAILURE\n");
  return !ok;
}
