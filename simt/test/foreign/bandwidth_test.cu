// Bandwidth of copies: pageable, pinned, mapped (zero copy), device to device, async on streams, memset; 2D and 3D copies.
#include <cassert>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#define CUDACHECK(cmd) do {                          \
  cudaError_t err = cmd;                             \
  if (err != cudaSuccess) {                          \
    char hostname[] = "localhost";                   \
    printf("%s: Test CUDA failure %s:%d '%s'\n",     \
         hostname,                                   \
        __FILE__,__LINE__,cudaGetErrorString(err));  \
    return EXIT_FAILURE;                             \
  }                                                  \
} while(0)

__global__ void touch(unsigned *p, size_t n, unsigned add) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) p[i] += add;
}

__global__ void sum3d(cudaPitchedPtr p, cudaExtent e, unsigned long long *out) {
  unsigned long long s = 0;
  for (int z = blockIdx.x; z < (int)e.depth; z += gridDim.x)
    for (int y = threadIdx.y; y < (int)e.height; y += blockDim.y) {
      const int *row = (const int *)((const char *)p.ptr + ((size_t)z * e.height + y) * p.pitch);
      for (int x = threadIdx.x; x < (int)(e.width / sizeof(int)); x += blockDim.x) s += row[x];
    }
  atomicAdd(out, s);
}

static float gbps(size_t bytes, float ms) { return bytes / (ms * 1e6f); }

int main(int argc, char **argv) {
  const size_t N = 1 << 20, bytes = N * sizeof(unsigned);
  unsigned *pageable = (unsigned *)malloc(bytes), *back = (unsigned *)malloc(bytes), *pinned, *mapped, *mapped_dev, *d1, *d2;
  std::iota(pageable, pageable + N, 0u);
  CUDACHECK(cudaMallocHost(&pinned, bytes));
  CUDACHECK(cudaHostAlloc(&mapped, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
  CUDACHECK(cudaHostGetDevicePointer((void **)&mapped_dev, mapped, 0));
  CUDACHECK(cudaMalloc(&d1, bytes));
  CUDACHECK(cudaMalloc(&d2, bytes));
  memcpy(pinned, pageable, bytes);
  int bad = 0;

  cudaEvent_t start, stop;
  CUDACHECK(cudaEventCreate(&start));
  CUDACHECK(cudaEventCreate(&stop));
  float ms;
  #define MEASURE(name, moved, ...) do { \
      CUDACHECK(cudaEventRecord(start, 0)); \
      __VA_ARGS__; \
      CUDACHECK(cudaEventRecord(stop, 0)); \
      CUDACHECK(cudaEventSynchronize(stop)); \
      CUDACHECK(cudaEventElapsedTime(&ms, start, stop)); \
      printf(" %-34s %8.3f ms  %8.2f GB/s\n", name, ms, gbps(moved, ms)); \
    } while (0)
  MEASURE("Host to device, pageable", bytes, CUDACHECK(cudaMemcpy(d1, pageable, bytes, cudaMemcpyHostToDevice)));
  MEASURE("Host to device, pinned, async", bytes, CUDACHECK(cudaMemcpyAsync(d1, pinned, bytes, cudaMemcpyHostToDevice, 0)));
  MEASURE("Device to device", 2 * bytes, CUDACHECK(cudaMemcpy(d2, d1, bytes, cudaMemcpyDeviceToDevice)));
  MEASURE("Kernel read-modify-write", 2 * bytes, touch<<<64, 256>>>(d2, N, 5u));
  MEASURE("Device to host, pageable", bytes, CUDACHECK(cudaMemcpy(back, d2, bytes, cudaMemcpyDeviceToHost)));
  for (size_t i = 0; i < N; i++) bad += back[i] != i + 5;
  MEASURE("Memset", bytes, CUDACHECK(cudaMemset(d1, 0x3c, bytes)));
  CUDACHECK(cudaMemcpy(back, d1, bytes, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < N; i++) bad += back[i] != 0x3c3c3c3cu;

  // zero copy: the kernel works on host memory
  memset(mapped, 0, bytes);
  MEASURE("Kernel on mapped host memory", 2 * bytes, touch<<<32, 128>>>(mapped_dev, N, 7u));
  CUDACHECK(cudaDeviceSynchronize());
  for (size_t i = 0; i < N; i++) bad += mapped[i] != 7;
  unsigned flags;
  CUDACHECK(cudaHostGetFlags(&flags, mapped));
  bad += !(flags & cudaHostAllocMapped);

  // registering ordinary memory
  unsigned *registered = (unsigned *)aligned_alloc(4096, bytes);
  memset(registered, 1, bytes);
  CUDACHECK(cudaHostRegister(registered, bytes, cudaHostRegisterDefault));
  MEASURE("Host to device, registered", bytes, CUDACHECK(cudaMemcpyAsync(d1, registered, bytes, cudaMemcpyDefault)));
  CUDACHECK(cudaDeviceSynchronize());
  CUDACHECK(cudaHostUnregister(registered));
  cudaPointerAttributes attr;
  CUDACHECK(cudaPointerGetAttributes(&attr, d1));
  bad += attr.type != cudaMemoryTypeDevice || attr.devicePointer != d1;
  CUDACHECK(cudaPointerGetAttributes(&attr, pinned));
  bad += attr.type != cudaMemoryTypeHost;

  // four streams, each its quarter: in, kernel, out
  const int NS = 4;
  cudaStream_t streams[NS];
  for (int i = 0; i < NS; ++i) CUDACHECK(cudaStreamCreate(&streams[i]));
  MEASURE("In, kernel, out on four streams", 4 * bytes, for (int i = 0; i < NS; ++i) {
    const size_t q = N / NS, off = i * q;
    CUDACHECK(cudaMemcpyAsync(d1 + off, pinned + off, q * 4, cudaMemcpyHostToDevice, streams[i]));
    touch<<<16, 256, 0, streams[i]>>>(d1 + off, q, (unsigned)i);
    CUDACHECK(cudaMemcpyAsync(pinned + off, d1 + off, q * 4, cudaMemcpyDeviceToHost, streams[i]));
  });
  CUDACHECK(cudaDeviceSynchronize());
  for (size_t i = 0; i < N; i++) bad += pinned[i] != i + i / (N / NS);
  for (int i = 0; i < NS; ++i) CUDACHECK(cudaStreamDestroy(streams[i]));

  // 3D: a box of ints, copied into pitched memory and part of it back
  const int W = 37, H = 11, D = 5;
  std::vector<int> vol(W * H * D), part(7 * 3 * 2, -1);
  std::iota(vol.begin(), vol.end(), 1);
  cudaExtent extent = make_cudaExtent(W * sizeof(int), H, D);
  cudaPitchedPtr dp;
  CUDACHECK(cudaMalloc3D(&dp, extent));
  cudaMemcpy3DParms p = {0};
  p.srcPtr = make_cudaPitchedPtr(vol.data(), W * sizeof(int), W, H);
  p.dstPtr = dp;
  p.extent = extent;
  p.kind = cudaMemcpyHostToDevice;
  CUDACHECK(cudaMemcpy3D(&p));
  unsigned long long *d_sum, sum;
  CUDACHECK(cudaMalloc(&d_sum, sizeof sum));
  CUDACHECK(cudaMemset(d_sum, 0, sizeof sum));
  sum3d<<<2, dim3(8, 4)>>>(dp, extent, d_sum);
  CUDACHECK(cudaMemcpy(&sum, d_sum, sizeof sum, cudaMemcpyDeviceToHost));
  bad += sum != (unsigned long long)(W * H * D) * (W * H * D + 1) / 2;
  cudaMemcpy3DParms r = {};
  r.srcPtr = dp;
  r.srcPos = make_cudaPos(4 * sizeof(int), 2, 1);
  r.dstPtr = make_cudaPitchedPtr(part.data(), 7 * sizeof(int), 7, 3);
  r.extent = make_cudaExtent(7 * sizeof(int), 3, 2);
  r.kind = cudaMemcpyDeviceToHost;
  CUDACHECK(cudaMemcpy3D(&r));
  for (int z = 0; z < 2; z++) for (int y = 0; y < 3; y++) for (int x = 0; x < 7; x++)
    bad += part[(z * 3 + y) * 7 + x] != vol[((z + 1) * H + y + 2) * W + x + 4];
  CUDACHECK(cudaMemset3D(dp, 0, extent));
  CUDACHECK(cudaMemset(d_sum, 0, 8));
  sum3d<<<2, dim3(8, 4)>>>(dp, extent, d_sum);
  CUDACHECK(cudaMemcpy(&sum, d_sum, sizeof sum, cudaMemcpyDeviceToHost));
  bad += sum != 0;

  CUDACHECK(cudaFree(dp.ptr));
  CUDACHECK(cudaFree(d_sum));
  CUDACHECK(cudaFree(d1));
  CUDACHECK(cudaFree(d2));
  CUDACHECK(cudaFreeHost(pinned));
  CUDACHECK(cudaFreeHost(mapped));
  CUDACHECK(cudaEventDestroy(start));
  CUDACHECK(cudaEventDestroy(stop));
  free(pageable); free(back); free(registered);
  printf("Result = %s\n", bad ? "FAIL" : "PASS");
  return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
