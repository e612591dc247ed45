// Dynamic shared memory: of two types, of a template's type, of more than 48 KiB; occupancy follows its size.
#include "expect.h"

// One array of bytes, cut by hand: doubles first, then shorts.
__global__ void two_types(const double *x, const short *y, double *out, int n) {
  extern __shared__ __align__(8) unsigned char bytes[];
  double *doubles = reinterpret_cast<double *>(bytes);
  short *shorts = (short *)(doubles + n);
  int i = threadIdx.x;
  doubles[i] = x[i];
  shorts[i] = y[i];
  __syncthreads();
  out[i] = doubles[n - 1 - i] + shorts[(i + 1) % n];
}

// extern __shared__ T s[] would be two declarations of one name: a class gives each type its own.
template <class T>
struct Shared {
  __device__ operator T *() {
    extern __shared__ __align__(16) int any[];
    return reinterpret_cast<T *>(any);
  }
};
template <class T>
__global__ void rotate(T *x) {
  T *s = Shared<T>();
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[(threadIdx.x + 1) % blockDim.x];
}

template <int KIB>
__global__ void large(unsigned *sum) {
  extern __shared__ unsigned words[];
  for (int i = threadIdx.x; i < KIB * 256; i += blockDim.x) words[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) *sum = words[0] + words[KIB * 256 - 1];
}

__global__ void __launch_bounds__(128) half_static(int *x) {
  __shared__ int a[128], b[64];
  a[threadIdx.x] = b[threadIdx.x / 2] = threadIdx.x / 2;
  __syncthreads();
  x[threadIdx.x] = a[127 - threadIdx.x] + b[threadIdx.x / 2];
}

static size_t four_per_thread(int threads) { return 4 * threads; }

int main() {
  const int n = 33;
  double *x, *out;
  short *y;
  unsigned *sum;
  WORKS(cudaMallocManaged(&x, n * sizeof *x));
  WORKS(cudaMallocManaged(&out, n * sizeof *out));
  WORKS(cudaMallocManaged(&y, n * sizeof *y));
  WORKS(cudaMallocManaged(&sum, 128 * sizeof *sum));
  for (int i = 0; i < n; i++) x[i] = i + 0.5, y[i] = 1000 * i;
  two_types<<<1, n, n *(sizeof *x + sizeof *y)>>>(x, y, out, n);
  rotate<<<1, n, n * sizeof *x>>>(x);
  rotate<<<1, n, n * sizeof *y>>>(y);
  WORKS(cudaDeviceSynchronize());
  for (int i = 0; i < n; i++)
    EXPECT(out[i] == n - 1 - i + 0.5 + (i + 1) % n * 1000 && x[i] == (i + 1) % n + 0.5 && y[i] == (i + 1) % n * 1000);

  auto kernel = large<96>;
  WORKS(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 96 * 1024));
  WORKS(
      cudaFuncSetAttribute(large<96>, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
  WORKS(cudaFuncSetCacheConfig(large<96>, cudaFuncCachePreferShared));
  kernel<<<1, 256, 96 * 1024>>>(sum);
  WORKS(cudaDeviceSynchronize());
  EXPECT(*sum == 96 * 256 - 1);

  cudaFuncAttributes attributes;
  WORKS(cudaFuncGetAttributes(&attributes, half_static));
  EXPECT(attributes.sharedSizeBytes == (128 + 64) * sizeof(int) && attributes.maxThreadsPerBlock >= 128);
  EXPECT(attributes.constSizeBytes < 65536 && attributes.localSizeBytes < 65536 && attributes.numRegs > 0);
  half_static<<<1, 128>>>((int *)sum);
  WORKS(cudaDeviceSynchronize());
  for (int i = 0; i < 128; i++) EXPECT(sum[i] == (unsigned)((127 - i) / 2 + i / 2));

  int blocks = 0, fewer = 0, grid = 0, threads = 0;
  cudaDeviceProp device;
  WORKS(cudaGetDeviceProperties(&device, 0));
  WORKS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, two_types, 64, 0));
  WORKS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fewer, two_types, 64, 40 * 1024));
  EXPECT(blocks * 64 <= device.maxThreadsPerMultiProcessor && fewer < blocks);
  EXPECT(fewer * 40 * 1024 <= (int)device.sharedMemPerMultiprocessor && fewer > 0);
  WORKS(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &threads, rotate<double>, four_per_thread));
  EXPECT(threads % device.warpSize == 0 && threads > 0 && grid >= device.multiProcessorCount);
  WORKS(cudaFree(x));
  WORKS(cudaFree(out));
  WORKS(cudaFree(y));
  WORKS(cudaFree(sum));
  return mistakes;
}
