// Adding two arrays with unified memory, a grid-stride loop and (optionally) prefetching.
#include <iostream>
#include <math.h>

// CUDA kernel to add elements of two arrays
__global__
void add(int n, float *x, float *y)
{
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  int stride = blockDim.x * gridDim.x;
  for (int i = index; i < n; i += stride)
    y[i] = x[i] + y[i];
}

__global__ void init(int n, float *x, float *y) {
  int index = threadIdx.x + blockIdx.x * blockDim.x;
  int stride = blockDim.x * gridDim.x;
  for (int i = index; i < n; i += stride) {
    x[i] = 1.0f;
    y[i] = 2.0f;
  }
}

int main(void)
{
  int N = 1<<20;
  float *x, *y;

  // Allocate Unified Memory -- accessible from CPU or GPU
  cudaMallocManaged(&x, N*sizeof(float));
  cudaMallocManaged(&y, N*sizeof(float));

  int device = -1;
  cudaGetDevice(&device);
  int concurrent = 0;
  cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, device);
  if (concurrent) {
#if CUDART_VERSION >= 13000
    cudaMemLocation where;
    where.type = cudaMemLocationTypeDevice;
    where.id = device;
    cudaMemPrefetchAsync(x, N*sizeof(float), where, 0, 0);
    cudaMemPrefetchAsync(y, N*sizeof(float), where, 0, 0);
#else
    cudaMemPrefetchAsync(x, N*sizeof(float), device, NULL);
    cudaMemPrefetchAsync(y, N*sizeof(float), device, NULL);
#endif
  }

  // Launch kernels on 1M elements on the GPU
  int blockSize = 256;
  int numBlocks = (N + blockSize - 1) / blockSize;
  init<<<numBlocks, blockSize>>>(N, x, y);
  add<<<numBlocks, blockSize>>>(N, x, y);
  add<<<1, 1>>>(1000, x, y);      // one lonely thread
  add<<<1, 256>>>(1000, x, y);    // one block

  // Wait for GPU to finish before accessing on host
  cudaDeviceSynchronize();

  // Check for errors: 5 below 1000, 3 above
  float maxError = 0.0f;
  for (int i = 0; i < N; i++)
    maxError = fmax(maxError, fabs(y[i] - (i < 1000 ? 5.0f : 3.0f)));
  std::cout << "Max error: " << maxError << std::endl;

  // Free memory
  cudaFree(x);
  cudaFree(y);

  return maxError == 0.0f ? 0 : 1;
}
