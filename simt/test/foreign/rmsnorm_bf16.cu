// RMSNorm in bfloat16 with a residual add, as inference engines fuse it. bf16x2 vector loads, fp32 accumulation.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#define CUDA_CHECK(cmd)                                                                                 \
  do {                                                                                                  \
    cudaError_t e = cmd;                                                                                \
    if (e != cudaSuccess) {                                                                             \
      printf("Failed: Cuda error %s:%d '%s'\n", __FILE__, __LINE__, cudaGetErrorString(e));             \
      exit(EXIT_FAILURE);                                                                               \
    }                                                                                                   \
  } while (0)

template <typename T> struct TypeTraits;
template <> struct TypeTraits<__nv_bfloat16> {
  using packed = __nv_bfloat162;
  static __device__ float2 widen(packed v) { return __bfloat1622float2(v); }
  static __device__ packed narrow(float a, float b) { return __floats2bfloat162_rn(a, b); }
};

template <typename T, int kWarps>
__device__ T block_reduce_sum(T v) {
  __shared__ T lane_sum[kWarps];
  for (int o = warpSize / 2; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  if ((threadIdx.x & 31u) == 0u) lane_sum[threadIdx.x >> 5] = v;
  __syncthreads();
  T total = T(0);
#pragma unroll
  for (int w = 0; w < kWarps; ++w) total += lane_sum[w];
  return total;
}

// residual += x;  y = residual / rms(residual) * gamma
template <typename T, int kThreads>
__global__ __launch_bounds__(kThreads) void add_rmsnorm_kernel(T *__restrict__ y, T *__restrict__ residual,
                                                               const T *__restrict__ x, const T *__restrict__ gamma,
                                                               int hidden, float eps) {
  using Tr = TypeTraits<T>;
  using T2 = typename Tr::packed;
  const size_t row = static_cast<size_t>(blockIdx.x) * hidden;
  T2 *r2 = reinterpret_cast<T2 *>(residual + row);
  const T2 *x2 = reinterpret_cast<const T2 *>(x + row);
  float ss = 0.f;
  for (int i = threadIdx.x; i < hidden / 2; i += kThreads) {
    const T2 s = __hadd2(r2[i], x2[i]);
    r2[i] = s;
    const float2 f = Tr::widen(s);
    ss = fmaf(f.x, f.x, fmaf(f.y, f.y, ss));
  }
  const float scale = rsqrtf(block_reduce_sum<float, kThreads / 32>(ss) / hidden + eps);
  const T2 *g2 = reinterpret_cast<const T2 *>(gamma);
  T2 *y2 = reinterpret_cast<T2 *>(y + row);
  for (int i = threadIdx.x; i < hidden / 2; i += kThreads) {
    const float2 f = Tr::widen(r2[i]), g = Tr::widen(__ldg(&g2[i]));
    y2[i] = Tr::narrow(f.x * scale * g.x, f.y * scale * g.y);
  }
}

int main() {
  const int rows = 37, hidden = 768;
  std::mt19937 gen(1);
  std::normal_distribution<float> dist(0.f, 1.f);
  std::vector<__nv_bfloat16> x(rows * hidden), res(rows * hidden), gamma(hidden), y(rows * hidden), res2(rows * hidden);
  for (auto &v : x) v = __float2bfloat16(dist(gen));
  for (auto &v : res) v = __float2bfloat16(dist(gen));
  for (auto &v : gamma) v = __float2bfloat16(1.f + 0.1f * dist(gen));

  __nv_bfloat16 *d_x, *d_res, *d_gamma, *d_y;
  const size_t bytes = x.size() * sizeof(__nv_bfloat16);
  CUDA_CHECK(cudaMalloc(&d_x, bytes));
  CUDA_CHECK(cudaMalloc(&d_res, bytes));
  CUDA_CHECK(cudaMalloc(&d_y, bytes));
  CUDA_CHECK(cudaMalloc(&d_gamma, hidden * sizeof(__nv_bfloat16)));
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_CHECK(cudaMemcpyAsync(d_x, x.data(), bytes, cudaMemcpyHostToDevice, stream));
  CUDA_CHECK(cudaMemcpyAsync(d_res, res.data(), bytes, cudaMemcpyHostToDevice, stream));
  CUDA_CHECK(cudaMemcpyAsync(d_gamma, gamma.data(), hidden * sizeof(__nv_bfloat16), cudaMemcpyHostToDevice, stream));
  add_rmsnorm_kernel<__nv_bfloat16, 128><<<rows, 128, 0, stream>>>(d_y, d_res, d_x, d_gamma, hidden, 1e-6f);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpyAsync(y.data(), d_y, bytes, cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaMemcpyAsync(res2.data(), d_res, bytes, cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));

  int bad = 0;
  float worst = 0.f;
  for (int r = 0; r < rows; ++r) {
    std::vector<float> s(hidden);
    double ss = 0;
    for (int i = 0; i < hidden; ++i) {
      const __nv_bfloat16 sum = __float2bfloat16(__bfloat162float(res[r * hidden + i]) + __bfloat162float(x[r * hidden + i]));
      s[i] = __bfloat162float(sum);
      if (s[i] != __bfloat162float(res2[r * hidden + i])) ++bad;
      ss += (double)s[i] * s[i];
    }
    const float scale = 1.f / std::sqrt(float(ss / hidden) + 1e-6f);
    for (int i = 0; i < hidden; ++i) {
      const float want = s[i] * scale * float(gamma[i]);
      const float err = std::fabs(want - float(y[r * hidden + i])) / (1e-2f + std::fabs(want));
      worst = std::fmax(worst, err);
    }
  }
  printf("residual mismatches: %d, worst relative error of y: %g\n", bad, worst);
  CUDA_CHECK(cudaStreamDestroy(stream));
  CUDA_CHECK(cudaFree(d_x));
  CUDA_CHECK(cudaFree(d_res));
  CUDA_CHECK(cudaFree(d_y));
  CUDA_CHECK(cudaFree(d_gamma));
  const bool ok = bad == 0 && worst < 8e-3f;
  printf("%s\n", ok ? "OK" : "FAILED");
  return ok ? 0 : 1;
}
