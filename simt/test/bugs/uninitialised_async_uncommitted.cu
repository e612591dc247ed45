// Two stages: while one is summed up, the next is on its way; but no copy in the loop is committed.
// mode: inspect
// expect: uninitialised read
// expect-text: an asynchronous copy to it is under way
#include <cuda_pipeline.h>
#include <stdio.h>

enum { N = 64, STAGES = 4 };

__global__ void sum(float *out, const float4 *in) {
  __shared__ float4 tile[2][N];
  int i = threadIdx.x;
  float total = 0;
  __pipeline_memcpy_async(&tile[0][i], &in[i], 16);
  __pipeline_commit();
  for (int stage = 0; stage < STAGES; stage++) {
    if (stage + 1 < STAGES) __pipeline_memcpy_async(&tile[(stage + 1) % 2][i], &in[(stage + 1) * N + i], 16);
    __pipeline_wait_prior(1);
    __syncthreads();
    float4 v = tile[stage % 2][N - 1 - i];  // BUG
    total += v.x + v.y + v.z + v.w;
    __syncthreads();
  }
  out[i] = total;
}

int main(void) {
  float4 *in;
  float *out;
  cudaMalloc((void **)&in, STAGES * N * sizeof *in);
  cudaMalloc((void **)&out, N * sizeof *out);
  cudaMemset(in, 0, STAGES * N * sizeof *in);
  sum<<<1, N>>>(out, in);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(in);
  cudaFree(out);
}
