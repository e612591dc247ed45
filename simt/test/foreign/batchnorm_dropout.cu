// Training-mode batch normalisation (Welford, forward and backward), ReLU, dropout with Philox on the device, NCHW.
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <vector>

#define CEIL(a, b) (((a) + (b)-1) / (b))
#define CHECK_CUDA(call)                                                                               \
  if (cudaError_t status = (call); status != cudaSuccess) {                                            \
    fprintf(stderr, "CUDA Error at %s:%d, %s\n", __FILE__, __LINE__, cudaGetErrorString(status));      \
    return EXIT_FAILURE;                                                                               \
  }

struct Welford {
  float mean = 0.f, m2 = 0.f;
  int n = 0;
  __device__ void add(float x) { ++n; const float d = x - mean; mean += d / n; m2 += d * (x - mean); }
  __device__ void merge(const Welford& o) {
    if (o.n == 0) return;
    const float d = o.mean - mean;
    const int total = n + o.n;
    mean += d * o.n / total;
    m2 += o.m2 + d * d * (float)n * o.n / total;
    n = total;
  }
};

__device__ __forceinline__ Welford shfl_down(Welford w, int d) {
  Welford r;
  r.mean = __shfl_down_sync(0xffffffff, w.mean, d);
  r.m2 = __shfl_down_sync(0xffffffff, w.m2, d);
  r.n = __shfl_down_sync(0xffffffff, w.n, d);
  return r;
}

// one block for each channel
__global__ void bn_forward(const float* x, float* y, const float* gamma, const float* beta, float* save_mean, float* save_rstd, int N, int C, int HW) {
  const int c = blockIdx.x;
  Welford w;
  for (int i = threadIdx.x; i < N * HW; i += blockDim.x) w.add(x[(i / HW * C + c) * HW + i % HW]);
  for (int d = 16; d; d >>= 1) w.merge(shfl_down(w, d));
  __shared__ float s_mean[32], s_m2[32], stat[2];
  __shared__ int s_n[32];
  if (threadIdx.x % 32 == 0) { s_mean[threadIdx.x / 32] = w.mean; s_m2[threadIdx.x / 32] = w.m2; s_n[threadIdx.x / 32] = w.n; }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < (int)blockDim.x / 32; ++k) { Welford o; o.mean = s_mean[k]; o.m2 = s_m2[k]; o.n = s_n[k]; w.merge(o); }
    save_mean[c] = stat[0] = w.mean;
    save_rstd[c] = stat[1] = rsqrtf(w.m2 / w.n + 1e-5f);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < N * HW; i += blockDim.x) {
    const int k = (i / HW * C + c) * HW + i % HW;
    y[k] = fmaxf((x[k] - stat[0]) * stat[1] * gamma[c] + beta[c], 0.f);   // with ReLU
  }
}

template <int T>
__device__ float2 block_sum2(float2 v) {
  __shared__ float2 s[T];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int k = T / 2; k; k /= 2) {
    if (threadIdx.x < k) { s[threadIdx.x].x += s[threadIdx.x + k].x; s[threadIdx.x].y += s[threadIdx.x + k].y; }
    __syncthreads();
  }
  return s[0];
}

template <int T>
__global__ void bn_backward(const float* x, const float* y, const float* dy, float* dx, const float* gamma, float* dgamma, float* dbeta,
                            const float* mean, const float* rstd, int N, int C, int HW) {
  const int c = blockIdx.x, M = N * HW;
  float2 s = make_float2(0, 0);
  for (int i = threadIdx.x; i < M; i += T) {
    const int k = (i / HW * C + c) * HW + i % HW;
    const float g = y[k] > 0 ? dy[k] : 0.f;
    s.x += g;
    s.y += g * (x[k] - mean[c]) * rstd[c];
  }
  s = block_sum2<T>(s);
  if (threadIdx.x == 0) { dbeta[c] = s.x; dgamma[c] = s.y; }
  for (int i = threadIdx.x; i < M; i += T) {
    const int k = (i / HW * C + c) * HW + i % HW;
    const float g = y[k] > 0 ? dy[k] : 0.f, xh = (x[k] - mean[c]) * rstd[c];
    dx[k] = gamma[c] * rstd[c] * (g - s.x / M - xh * s.y / M);
  }
}

__global__ void dropout(float* x, unsigned char* mask, int n, float p, unsigned long long seed, unsigned long long offset) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  curandStatePhilox4_32_10_t state;
  curand_init(seed, i / 4, offset, &state);
  const float4 r = curand_uniform4(&state);
  const float u[4] = {r.x, r.y, r.z, r.w};
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (i + k < n) {
      mask[i + k] = u[k] > p;
      x[i + k] = mask[i + k] ? x[i + k] / (1 - p) : 0.f;
    }
}

int main() {
  const int N = 6, C = 10, HW = 11 * 13, n = N * C * HW;
  srand(77);
  std::vector<float> x(n), dy(n), gamma(C), beta(C), y(n), dx(n), dgamma(C), dbeta(C), ref(n);
  for (auto& v : x) v = rand() / (float)RAND_MAX * 4 + 3;
  for (auto& v : dy) v = rand() / (float)RAND_MAX - 0.5f;
  for (int c = 0; c < C; c++) { gamma[c] = 0.5f + c * 0.1f; beta[c] = 0.3f - c * 0.05f; }
  float *d[10];
  const size_t sizes[10] = {(size_t)n, (size_t)n, (size_t)n, (size_t)n, (size_t)C, (size_t)C, (size_t)C, (size_t)C, (size_t)C, (size_t)C};
  for (int i = 0; i < 10; i++) CHECK_CUDA(cudaMalloc(&d[i], sizes[i] * sizeof(float)));
  auto [dX, dY, dDY, dDX] = std::make_tuple(d[0], d[1], d[2], d[3]);
  CHECK_CUDA(cudaMemcpy(dX, x.data(), n * 4, cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpy(dDY, dy.data(), n * 4, cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpy(d[4], gamma.data(), C * 4, cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpy(d[5], beta.data(), C * 4, cudaMemcpyHostToDevice));
  bn_forward<<<C, 256>>>(dX, dY, d[4], d[5], d[6], d[7], N, C, HW);
  bn_backward<128><<<C, 128>>>(dX, dY, dDY, dDX, d[4], d[8], d[9], d[6], d[7], N, C, HW);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaMemcpy(y.data(), dY, n * 4, cudaMemcpyDeviceToHost));
  CHECK_CUDA(cudaMemcpy(dx.data(), dDX, n * 4, cudaMemcpyDeviceToHost));
  CHECK_CUDA(cudaMemcpy(dgamma.data(), d[8], C * 4, cudaMemcpyDeviceToHost));
  CHECK_CUDA(cudaMemcpy(dbeta.data(), d[9], C * 4, cudaMemcpyDeviceToHost));
  double ey = 0, ed = 0, eg = 0;
  for (int c = 0; c < C; c++) {
    double m = 0, v = 0, sb = 0, sg = 0;
    const int M = N * HW;
    for (int i = 0; i < M; i++) m += x[(i / HW * C + c) * HW + i % HW] / M;
    for (int i = 0; i < M; i++) v += std::pow(x[(i / HW * C + c) * HW + i % HW] - m, 2) / M;
    const double r = 1 / std::sqrt(v + 1e-5);
    for (int pass = 0; pass < 2; pass++)
      for (int i = 0; i < M; i++) {
        const int k = (i / HW * C + c) * HW + i % HW;
        const double xh = (x[k] - m) * r, pre = xh * gamma[c] + beta[c], g = y[k] > 0 ? dy[k] : 0;
        if (pass == 0) { ey = std::fmax(ey, std::fabs(std::fmax(pre, 0) - y[k])); sb += g; sg += g * xh; }
        else ed = std::fmax(ed, std::fabs(gamma[c] * r * (g - sb / M - xh * sg / M) - dx[k]));
      }
    eg = std::fmax(eg, std::fmax(std::fabs(sb - dbeta[c]), std::fabs(sg - dgamma[c])));
  }
  printf("errors: y %g, dx %g, parameters %g\n", ey, ed, eg);

  unsigned char* d_mask;
  std::vector<unsigned char> mask(n), mask2(n);
  CHECK_CUDA(cudaMalloc(&d_mask, n));
  int kept[2] = {0, 0}, wrong = 0, differ = 0;
  for (int round = 0; round < 2; round++) {
    CHECK_CUDA(cudaMemcpy(dX, x.data(), n * 4, cudaMemcpyHostToDevice));
    dropout<<<CEIL(n, 4 * 128), 128>>>(dX, d_mask, n, 0.3f, 42ULL, round * 4ULL);
    CHECK_CUDA(cudaMemcpy(round ? mask2.data() : mask.data(), d_mask, n, cudaMemcpyDeviceToHost));
    CHECK_CUDA(cudaMemcpy(ref.data(), dX, n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
      const int k = round ? mask2[i] : mask[i];
      kept[round] += k;
      wrong += std::fabs(ref[i] - (k ? x[i] / 0.7f : 0.f)) > 1e-4f;
    }
  }
  for (int i = 0; i < n; i++) differ += mask[i] != mask2[i];
  printf("dropout keeps %.3f and %.3f, masks differ in %.3f, %d wrong\n", (double)kept[0] / n, (double)kept[1] / n, (double)differ / n, wrong);
  const bool ok = ey < 1e-4 && ed < 1e-4 && eg < 1e-2 && !wrong && std::abs(kept[0] - 0.7 * n) < 5 * std::sqrt(0.21 * n) && differ > n / 4;
  for (float* p : d) cudaFree(p);
  cudaFree(d_mask);
  puts(ok ? "training ops OK" : "training ops FAILED");
  return ok ? 0 : 1;
}
