// The many ways in which people launch kernels.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#define CHECK_LAUNCH(...)                                                             \
  do {                                                                                \
    __VA_ARGS__;                                                                      \
    cudaError_t e = cudaGetLastError();                                               \
    if (e != cudaSuccess) { printf("%s: %s\n", #__VA_ARGS__, cudaGetErrorString(e)); return 1; } \
  } while (0)

// a launch over several lines inside a macro
#define LAUNCH_ADD(T, grid, block, ptr, value, n) \
  add<T>                                          \
      <<<grid,                                    \
         block>>>(                                \
          ptr, static_cast<T>(value), n)

#define KERNEL_NAME(suffix) kernel_##suffix
#define DEFINE_KERNEL(suffix, expr) \
  __global__ void KERNEL_NAME(suffix)(float *p, int n) { \
    int i = blockIdx.x * blockDim.x + threadIdx.x; \
    if (i < n) p[i] = (expr); \
  }

template <typename T>
__global__ void add(T *p, T value, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) p[i] += value;
}
template <typename T, int UNROLL = 4, bool SUBTRACT = false>
__global__ void add_unrolled(T *p, T value, int n) {
  int base = (blockIdx.x * blockDim.x + threadIdx.x) * UNROLL;
#pragma unroll UNROLL
  for (int k = 0; k < UNROLL; ++k)
    if (base + k < n) p[base + k] += SUBTRACT ? -value : value;
}
__global__ void optional(float *p, const float *maybe, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += maybe != nullptr ? maybe[i] : 1.f;
}
DEFINE_KERNEL(twice, p[i] * 2)
DEFINE_KERNEL(half, p[i] / 2)

namespace outer { namespace inner {
  __global__ void negate(float *p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] = -p[i]; }
  struct Op { float a; __device__ float operator()(float x) const { return x + a; } };
  template <class F> __global__ void apply(float *p, int n, F f) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] = f(p[i]); }
} }

class Runner {
 public:
  Runner(int n) : n_(n) { cudaMalloc(&p_, n * sizeof(float)); cudaMemset(p_, 0, n * sizeof(float)); }
  ~Runner() { cudaFree(p_); }
  template <typename K, typename... Args>
  void operator()(K kernel, dim3 grid, dim3 block, Args... args) const { kernel<<<grid, block>>>(p_, args...); }
  void member() { add<<<this->grid(), threads_>>>(p_, 1.f, n_); }
  unsigned grid() const { return (n_ + threads_ - 1) / threads_; }
  float *p_;
  int n_;
  enum { threads_ = 96 };
};

typedef void (*kernel_t)(float *, int);
__constant__ int c_dummy = 3;

int main(int argc, char **) {
  const int n = 1000;
  int zero = 0, two = argc > 0 ? 2 : 0;
  Runner r(n);
  cudaStream_t s = 0;
  double expect = 0;
  CHECK_LAUNCH(add<<<dim3(2, 2, 1), dim3{8, 8}>>>(r.p_, 1.f, 0)); // n = 0: nothing to do
  CHECK_LAUNCH(add<float><<<4, 64>>>(r.p_, 1.f, n)); expect += 1;
  CHECK_LAUNCH(add<float> <<< 4, 64, 0 >>> (r.p_, 1.f, n)); expect += 1;
  add << <4, 64, 0, s >> > (r.p_, 1.f, n); expect += 1;
  add <<<
      /* grid  */ 4,
      /* block */ (two > 1 ? 64 : 32),  // a comment with >>> in it
      zero,
      s
      >>> (r.p_, 1.f,
           n);
  expect += 1;
  LAUNCH_ADD(float, 4, 128, r.p_, 1, n); expect += 1;
  add_unrolled<float><<<(n + 255) / 256, 64>>>(r.p_, 1.f, n); expect += 1;
  add_unrolled<float, 8><<<(n / 8 + 31) / 32, 32>>>(r.p_, 2.f, n); expect += 2;
  add_unrolled<float, (4 >> 1), (3 > 2)><<<n / 64 + 1, 32>>>(r.p_, 1.f, n); expect -= 1;
  optional<<<8, 128>>>(r.p_, NULL, n); expect += 1;
  optional<<<8, 128>>>(r.p_, nullptr, n); expect += 1;
  optional<<<8, 128>>>(r.p_, 0, n); expect += 1;
  if (two == 2) kernel_twice<<<8, 128>>>(r.p_, n); else kernel_half<<<8, 128>>>(r.p_, n);
  expect *= 2;
  for (int i = 0; i < 3; i++) add<<<1, 1024>>>(r.p_, 1.f, n);
  expect += 3;
  kernel_t table[] = {kernel_twice, &kernel_half, outer::inner::negate}, *p = table;
  table[2]<<<8, 128>>>(r.p_, n); expect = -expect;
  (*p)<<<8, 128>>>(r.p_, n); expect *= 2;
  p[1]<<<8, 128>>>(r.p_, n); expect /= 2;
  outer::inner::negate<<<8, 128>>>(r.p_, n); expect = -expect;
  using namespace outer;
  inner::apply<<<8, 128>>>(r.p_, n, inner::Op{5.f}); expect += 5;
  float captured = 2.f;
  inner::apply<<<8, 128>>>(r.p_, n, [=] __device__(float x) { return x * captured; }); expect *= 2;
  inner::apply<<<8, 128>>>(r.p_, n, [] __host__ __device__(float x) -> float { return x - 1; }); expect -= 1;
  r(add_unrolled<float, 2>, dim3(16), dim3(64), 3.f, n); expect += 3;
  r.member(); expect += 1;
  std::map<std::string, std::function<void()>> named = {
      {"first", [&] { add<<<2, 256>>>(r.p_, 10.f, n); }},
      {"second", [&, n] { outer::inner::negate<<<4, 256>>>(r.p_, n); }},
  };
  for (auto &[name, f] : named) f();
  expect = -(expect + 10);

  // through the runtime's C interface
  float value = 7.f;
  int count = n;
  void *args[] = {&r.p_, &value, &count};
  CHECK_LAUNCH(cudaLaunchKernel((void *)add<float>, dim3(3), dim3(50), args, 0, NULL)); expect += 7;
  CHECK_LAUNCH(cudaLaunchKernel((const void *)&add_unrolled<float, 4, true>, dim3(4), dim3(64), args, (size_t)0, s)); expect -= 7;
  cudaLaunchConfig_t config = {0};
  config.gridDim = dim3(4);
  config.blockDim = dim3(64);
  config.stream = s;
  CHECK_LAUNCH(cudaLaunchKernelEx(&config, add<float>, r.p_, 2.f, n)); expect += 2;

  std::vector<float> h(n);
  if (cudaMemcpy(h.data(), r.p_, n * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess) return 2;
  int bad = 0;
  for (int i = 0; i < n; i++) bad += h[i] != (float)expect;
  printf("expected %g, got %g ... %g, %d wrong\n", expect, h[0], h[n - 1], bad);
  puts(bad ? "launches FAILED" : "every launch counted");
  return bad != 0;
}
