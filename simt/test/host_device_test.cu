/* host_device_test.cu - devices, attributes, limits, kernels' attributes and occupancy. The same program passes on a
 * GPU of compute capability 8.0 or newer. */
#include "collective.h"
#include "copied.cuh"

static void test_choosing(void **state) {
  (void)state;
  int count = 0, device = -1;
  CHECK(cudaGetDeviceCount(&count));
  assert_true(count >= 1);
  CHECK(cudaSetDevice(0));
  CHECK(cudaGetDevice(&device));
  assert_int_equal(device, 0);
  assert_int_equal(cudaSetDevice(count), cudaErrorInvalidDevice);
  assert_int_equal(cudaSetDevice(-1), cudaErrorInvalidDevice);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
  CHECK(cudaGetDevice(&device));
  assert_int_equal(device, 0);
  int version = 0;
  CHECK(cudaRuntimeGetVersion(&version));
  assert_int_equal(version, CUDART_VERSION);
  CHECK(cudaDriverGetVersion(&version));
  assert_true(version >= CUDART_VERSION / 1000 * 1000);
}

static int attribute(enum cudaDeviceAttr which) {
  int value = -1;
  CHECK(cudaDeviceGetAttribute(&value, which, 0));
  return value;
}

static void test_properties_and_attributes_agree(void **state) {
  (void)state;
  cudaDeviceProp p;
  CHECK(cudaGetDeviceProperties(&p, 0));
  assert_int_equal(cudaGetDeviceProperties(&p, 1000), cudaErrorInvalidDevice);
  cudaGetLastError();
  assert_true(strlen(p.name) > 0);
  assert_int_equal(p.warpSize, 32);
  assert_int_equal(p.maxThreadsPerBlock, 1024);
  assert_int_equal(p.maxThreadsDim[2], 64);
  assert_int_equal(p.maxGridSize[0], 2147483647);
  assert_int_equal(p.maxGridSize[1], 65535);
  assert_int_equal(p.sharedMemPerBlock, 49152);
  assert_int_equal(p.totalConstMem, 65536);
  assert_int_equal(p.regsPerBlock, 65536);
  assert_true(p.sharedMemPerBlockOptin >= 163 * 1024);
  assert_int_equal(p.sharedMemPerMultiprocessor, p.sharedMemPerBlockOptin + p.reservedSharedMemPerBlock);
  assert_int_equal(p.maxThreadsPerMultiProcessor, 2048);
  assert_int_equal(attribute(cudaDevAttrWarpSize), p.warpSize);
  assert_int_equal(attribute(cudaDevAttrMaxThreadsPerBlock), p.maxThreadsPerBlock);
  assert_int_equal(attribute(cudaDevAttrMultiProcessorCount), p.multiProcessorCount);
  assert_int_equal(attribute(cudaDevAttrComputeCapabilityMajor), p.major);
  assert_int_equal(attribute(cudaDevAttrComputeCapabilityMinor), p.minor);
  assert_int_equal(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin), p.sharedMemPerBlockOptin);
  assert_int_equal(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor), p.sharedMemPerMultiprocessor);
  assert_int_equal(attribute(cudaDevAttrL2CacheSize), p.l2CacheSize);
  assert_int_equal(attribute(cudaDevAttrMaxBlocksPerMultiprocessor), p.maxBlocksPerMultiProcessor);
  assert_int_equal(attribute(cudaDevAttrUnifiedAddressing), 1);
  assert_int_equal(attribute(cudaDevAttrManagedMemory), 1);
  assert_int_equal(attribute(cudaDevAttrCooperativeLaunch), 1);
  assert_true(attribute(cudaDevAttrClockRate) > 0);
  int value;
  assert_int_equal(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, -1), cudaErrorInvalidDevice);
  assert_int_equal(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)9999, 0), cudaErrorInvalidValue);
  cudaGetLastError();
#ifdef SIMT_REWRITTEN
  assert_non_null(strstr(p.name, "emulated"));
  assert_int_equal(p.major * 10 + p.minor, 80);
  assert_int_equal(p.multiProcessorCount, 16);
  assert_true(p.clockRate > 0 && p.memoryClockRate > 0); /* CUDA 12's fields are there, too */
  static const int known[] = {
#define NUMBER(name, number) number,
      SIMT_DEVICE_ATTRIBUTES(NUMBER)};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) attribute((enum cudaDeviceAttr)known[i]);
#endif
}

static void test_settings(void **state) {
  (void)state;
  size_t bytes = 0;
  CHECK(cudaDeviceGetLimit(&bytes, cudaLimitStackSize));
  assert_true(bytes >= 1024);
  CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
  CHECK(cudaDeviceGetLimit(&bytes, cudaLimitMallocHeapSize));
  assert_true(bytes >= 16 << 20);
  assert_int_equal(cudaDeviceSetLimit((enum cudaLimit)99, 1), cudaErrorInvalidValue); /* as on an H200 */
  cudaGetLastError();
  enum cudaFuncCache cache;
  CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
  CHECK(cudaDeviceGetCacheConfig(&cache));
  CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferNone));
  int least = 1, greatest = 1;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  assert_int_equal(least, 0);
  assert_true(greatest < 0);
  int can = 1;
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 0));
  assert_int_equal(can, 0);
}

/* ---- kernels ---- */

__global__ void small(float *x) {
  __shared__ float s_a[100];
  __shared__ int s_b[7];
  s_a[threadIdx.x % 100] = 1;
  s_b[threadIdx.x % 7] = 2;
  __syncthreads();
  x[threadIdx.x] = s_a[(threadIdx.x + 1) % 100] + s_b[(threadIdx.x + 1) % 7];
}

template <class T>
__global__ void sized(T *x) {
  __shared__ T s[64];
  s[threadIdx.x % 64] = 1;
  __syncthreads();
  x[threadIdx.x] = s[(threadIdx.x + 1) % 64];
}

namespace inner {
static __global__ void plain(int *x, int n) {
  extern __shared__ int dynamic[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) dynamic[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) *x = dynamic[n - 1];
}
}  // namespace inner

static void test_function_attributes(void **state) {
  (void)state;
  cudaFuncAttributes a;
  CHECK(cudaFuncGetAttributes(&a, small));
  assert_true(a.sharedSizeBytes >= 428 && a.sharedSizeBytes <= 432); /* nvcc rounds up */
  assert_true(a.maxThreadsPerBlock >= 32 && a.maxThreadsPerBlock <= 1024);
  assert_true(a.numRegs > 0);
  CHECK(cudaFuncGetAttributes(&a, (const void *)small));             /* by address */
  assert_true(a.sharedSizeBytes >= 428 && a.sharedSizeBytes <= 432); /* nvcc rounds up */
  CHECK(cudaFuncGetAttributes(&a, sized<float>));
  assert_int_equal(a.sharedSizeBytes, 256);
  CHECK(cudaFuncGetAttributes(&a, sized<double>));
  assert_int_equal(a.sharedSizeBytes, 512);
  CHECK(cudaFuncGetAttributes(&a, inner::plain));
  assert_int_equal(a.sharedSizeBytes, 0);
  assert_int_equal(a.maxDynamicSharedSizeBytes, 49152);
  assert_int_equal(cudaFuncGetAttributes(&a, (const void *)NULL), cudaErrorInvalidDeviceFunction);
  cudaGetLastError();
}

/* The shared memory of a kernel is counted once, however many files have a copy of it. */
static void test_a_kernel_of_two_files(void **state) {
  (void)state;
  int *x = new_array<int>(2);
  cudaFuncAttributes a;
  CHECK(cudaFuncGetAttributes(&a, copied));
  assert_int_equal(a.sharedSizeBytes, COPIED_INTS * sizeof(int));
  copied<<<1, 32>>>(x);
  CHECK(cudaGetLastError());
  launch_the_other_copy(x + 1);
  CHECK(cudaGetLastError());
  finish();
  assert_int_equal(x[0], COPIED_INTS - 1);
  assert_int_equal(x[1], COPIED_INTS - 1);
  CHECK(cudaFree(x));
}

static void test_more_than_48_kb(void **state) {
  (void)state;
  int *x = new_array<int>(1), n = 25000; /* 100,000 bytes */
  inner::plain<<<1, 128, n * sizeof(int)>>>(x, n);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
  assert_int_equal(cudaFuncSetAttribute(inner::plain, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20),
                   cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(cudaFuncSetAttribute(inner::plain, cudaFuncAttributeMaxDynamicSharedMemorySize, n * (int)sizeof(int)));
  inner::plain<<<1, 128, n * sizeof(int)>>>(x, n);
  finish();
  assert_int_equal(*x, n - 1);
  inner::plain<<<1, 128, n * sizeof(int) + 4>>>(x, n); /* no more than was asked for */
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
  cudaFuncAttributes a;
  CHECK(cudaFuncGetAttributes(&a, inner::plain));
  assert_int_equal(a.maxDynamicSharedSizeBytes, n * (int)sizeof(int));
  CHECK(cudaFree(x));
}

static void test_occupancy(void **state) {
  (void)state;
  int blocks = 0, grid = 0, block = 0;
  cudaDeviceProp p;
  CHECK(cudaGetDeviceProperties(&p, 0));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, 1024, 0));
  assert_int_equal(blocks, 2);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, 128, 0));
  assert_int_equal(blocks, 16);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, 32, 0));
  assert_int_equal(blocks, p.maxBlocksPerMultiProcessor);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, inner::plain, 128, 40000)); /* shared memory limits */
  assert_int_equal(blocks, (int)(p.sharedMemPerMultiprocessor / (40000 + 1024)));
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, small, 0, 0));
  assert_int_equal(block, 1024);
  assert_int_equal(grid, 2 * p.multiProcessorCount);
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, small, 0, 256));
  assert_int_equal(block, 256);
  assert_int_equal(grid, 8 * p.multiProcessorCount);
  CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, small,
                                                       [](int threads) { return threads * sizeof(float); }));
  assert_int_equal(block, 1024);
  assert_int_equal(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, 0, 0), cudaErrorInvalidValue);
  cudaGetLastError();
}

/* ---- launches by address ---- */

struct Pair {
  double a;
  char b;
};

__global__ void mixed(float *out, char c, double d, Pair pair, int n) {
  if (threadIdx.x < n) out[threadIdx.x] = c + d + pair.a + pair.b;
}

static void test_launch_by_address(void **state) {
  (void)state;
  float *out = new_array<float>(64);
  char c = 1;
  double d = 0.5;
  Pair pair = {100, 7};
  int n = 60;
  void *arguments[] = {&out, &c, &d, &pair, &n};
  CHECK(cudaLaunchKernel(mixed, dim3(1), dim3(64), arguments, 0, 0));
  c = 99; /* arguments were taken at the call */
  finish();
  assert_float_equal(out[59], 108.5f, 0);
  assert_float_equal(out[60], 0, 0);
  c = 2;
  CHECK(cudaLaunchKernel((const void *)mixed, dim3(1), dim3(64), arguments, 0, 0));
  finish();
  assert_float_equal(out[0], 109.5f, 0);
  c = 3;
  CHECK(cudaLaunchCooperativeKernel(mixed, dim3(1), dim3(64), arguments, 0, 0));
  finish();
  assert_float_equal(out[0], 110.5f, 0);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(64);
  CHECK(cudaLaunchKernelEx(&config, mixed, out, (char)4, 0.5, pair, 30));
  finish();
  assert_float_equal(out[29], 111.5f, 0);
  assert_float_equal(out[30], 110.5f, 0);
  CHECK(cudaFree(out));
}

static void test_reset(void **state) {
  (void)state;
  void *pointer;
  CHECK(cudaMalloc(&pointer, 100));
  CHECK(cudaDeviceReset());
  CHECK(cudaMalloc(&pointer, 100));
  CHECK(cudaFree(pointer));
  CHECK(cudaDeviceSynchronize());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_choosing),
      cmocka_unit_test(test_properties_and_attributes_agree),
      cmocka_unit_test(test_settings),
      cmocka_unit_test(test_function_attributes),
      cmocka_unit_test(test_more_than_48_kb),
      cmocka_unit_test(test_occupancy),
      cmocka_unit_test(test_launch_by_address),
      cmocka_unit_test(test_reset),
      cmocka_unit_test(test_a_kernel_of_two_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
