/* launch_test.cu - every way to write a launch, and a variable's memory space, compiled and run. Valid for nvcc as
 * well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cuda_runtime.h>

extern "C" {
#include <cmocka.h>
}

static int *out; /* device, 64 ints */

static void expect(int index, int value) {
  int got[64];
  assert_int_equal(cudaGetLastError(), cudaSuccess);
  assert_int_equal(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost), cudaSuccess);
  assert_int_equal(got[index], value);
  assert_int_equal(cudaMemset(out, 0, sizeof got), cudaSuccess);
}

/* ---- names ---- */

__global__ void store(int *p, int value) { p[blockIdx.x * blockDim.x + threadIdx.x] = value; }

__global__ void no_parameters() {}

template <int N>
__global__ void store_n(int *p) {
  p[threadIdx.x] = N;
}

template <class T, int N>
__global__ void store_size(int *p) {
  p[threadIdx.x] = (int)sizeof(T) * N;
}

template <class T>
__global__ void store_deduced(T *p, T value) {
  p[threadIdx.x] = value;
}

template <int N>
struct Twice {
  static const int v = 2 * N;
};

namespace space {
namespace inner {
__global__ void store(int *p, int value) { p[threadIdx.x] = 100 + value; }
}  // namespace inner
template <class T>
__global__ void store_as(T *p, T value) {
  p[threadIdx.x] = value;
}
}  // namespace space

/* overloads, told apart by the argument */
__global__ void overloaded(int *p, int) { p[0] = 1; }
__global__ void overloaded(int *p, float) { p[0] = 2; }
__global__ void overloaded(int *p, int *) { p[0] = 3; }

static void names(void **state) {
  (void)state;
  store<<<1, 1>>>(out, 7);
  expect(0, 7);
  store<<<2, 3>>>(out, 8);
  expect(5, 8);
  ::store<<<1, 1>>>(out, 9);
  expect(0, 9);
  space::inner::store<<<1, 1>>>(out, 1);
  expect(0, 101);
  ::space::store_as<int><<<1, 1>>>(out, 2);
  expect(0, 2);
  store_n<5><<<1, 1>>>(out);
  expect(0, 5);
  store_n<(3 > 2) ? 5 : 6><<<1, 1>>>(out);
  expect(0, 5);
  store_n<Twice<(8 >> 1)>::v><<<1, 1>>>(out);
  expect(0, 8);
  store_n<1 << 3><<<1, 1>>>(out);
  expect(0, 8);
  store_size<double, 3><<<1, 1>>>(out);
  expect(0, 24);
  store_size<Twice<3>, Twice<2>::v><<<1, 1>>>(out);
  expect(0, 4);
  store_deduced<<<1, 1>>>(out, 11);
  expect(0, 11);
  overloaded<<<1, 1>>>(out, 1.0f);
  expect(0, 2);
  overloaded<<<1, 1>>>(out, out);
  expect(0, 3);
  no_parameters<<<1, 1>>>();
  expect(0, 0);
  using namespace space;
  store_as<<<1, 1>>>(out, 12);
  expect(0, 12);
}

/* ---- pointers to kernels ---- */

typedef void (*Kernel)(int *, int);

struct Holder {
  Kernel kernel;
  Kernel table[2];
  void launch(int value) { kernel<<<1, 1>>>(out, value); }
  void launch_this(int value) { this->table[1]<<<1, 1>>>(out, value); }
};

static Kernel choose(int n) { return n ? space::inner::store : store; }

template <class F, class... A>
static void launch_any(F kernel, A... arguments) {
  kernel<<<1, 1>>>(arguments...);
}

template <class F, class... A>
static void launch_forwarded(F &&kernel, A &&...arguments) {
  kernel<<<dim3(1), dim3(1), 0, 0>>>(arguments...);
}

template <void (*K)(int *, int)>
static void launch_constant(int value) {
  K<<<1, 1>>>(out, value);
}

template <class T>
struct Member {
  static void launch(T *p) { store_size<T, 2><<<1, 1>>>((int *)p); }
};

static void pointers(void **state) {
  (void)state;
  Kernel kernel = store;
  kernel<<<1, 1>>>(out, 1);
  expect(0, 1);
  (*kernel)<<<1, 1>>>(out, 2);
  expect(0, 2);
  Kernel table[2][2] = {{store, store}, {store, space::inner::store}};
  int i = 0;
  table[i + 1][1]<<<1, 1>>>(out, 3);
  expect(0, 103);
  Holder holder = {store, {store, space::inner::store}}, *pointer = &holder;
  holder.kernel<<<1, 1>>>(out, 4);
  expect(0, 4);
  pointer->table[1]<<<1, 1>>>(out, 5);
  expect(0, 105);
  (*pointer).kernel<<<1, 1>>>(out, 6);
  expect(0, 6);
  holder.launch(7);
  expect(0, 7);
  holder.launch_this(8);
  expect(0, 108);
  choose(1)<<<1, 1>>>(out, 9);
  expect(0, 109);
  (i ? store : space::inner::store)<<<1, 1>>>(out, 10);
  expect(0, 110);
  launch_any(store, out, 11);
  expect(0, 11);
  launch_any(store_n<13>, out);
  expect(0, 13);
  launch_forwarded(store, out, 12);
  expect(0, 12);
  launch_constant<store>(14);
  expect(0, 14);
  Member<int>::launch(out);
  expect(0, 8);
  if (i == 0) (*kernel)<<<1, 1>>>(out, 15);
  expect(0, 15);
  for (int k = 0; k < 3; k++) (kernel)<<<1, 1>>>(out, k);
  expect(0, 2);
}

/* ---- parameters between <<< and >>> ---- */

__global__ void shape(int *p) {
  extern __shared__ int s[];
  if (threadIdx.y + threadIdx.z == 0) s[threadIdx.x] = 1;
  if (threadIdx.x + threadIdx.y + threadIdx.z + blockIdx.x + blockIdx.y + blockIdx.z) return;
  p[0] = gridDim.x;
  p[1] = gridDim.y;
  p[2] = gridDim.z;
  p[3] = blockDim.x;
  p[4] = blockDim.y;
  p[5] = blockDim.z;
  p[6] = s[0];
}

#define LAUNCH(kernel, grid, block, ...)  \
  do {                                    \
    kernel<<<grid, block>>>(__VA_ARGS__); \
  } while (0)

static void parameters(void **state) {
  (void)state;
  int n = 1000, shared = 4 * 32;
  cudaStream_t stream;
  assert_int_equal(cudaStreamCreate(&stream), cudaSuccess);
  shape<<<dim3(2, 3, 4), dim3(4, 2, 1), shared>>>(out);
  expect(1, 3);
  shape<<<{2, 3}, {4, 2}, sizeof(int) * 32>>>(out);
  expect(4, 2);
  shape<<<(n + 255) / 256, Twice<3>::v, 128>>>(out);
  expect(3, 6);
  shape<<<1, sizeof(double), 128, 0>>>(out);
  expect(3, 8);
  shape<<<1, 8, 128, NULL>>>(out);
  expect(6, 1);
  shape<<<1, 8, 128, nullptr>>>(out);
  expect(6, 1);
  // clang-format off
  shape<<<n >> 8, 1 << 4, 4 * 32, stream>>>(out);
  assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
  expect(3, 16);
  shape << <3, 8, 128 >> > (out);
  expect(0, 3);
  store_n < 9 > << < 1, 1 >> >(out);
  expect(0, 9);
  store
  <<<
    1 /* ) >>>( */, 1   // >>>(
  >>>
  (
    out, // "
    21
  )
  ;
  expect(0, 21);
  // clang-format on
  LAUNCH(store, 1, 1, out, 22);
  expect(0, 22);
  LAUNCH(store_n<Twice<4>::v>, dim3(1), dim3(1), out);
  expect(0, 8);
  store<<<1, 1>>>(out, 1), store<<<1, 1>>>(out + 1, 2);
  expect(1, 2);
  n ? store<<<1, 1>>>(out, 3) : store<<<1, 1>>>(out, 4);
  expect(0, 3);
  if (!n)
    store<<<1, 1>>>(out, 5);
  else
    store<<<1, 1>>>(out, 6);
  expect(0, 6);
  auto later = [&](int value) { store<<<1, 1>>>(out, value); };
  later(31);
  expect(0, 31);
  const char *text = "store<<<1, 1>>>(out, 5)";
  assert_int_equal(strlen(text), 23);
  assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
}

/* ---- arguments ---- */

struct Pair {
  int a, b;
};

__global__ void is_null(int *p, const float *q, int value) { p[0] = q == NULL ? value : -1; }
__global__ void two_numbers(int *p, size_t a, float b) { p[0] = (int)a + (int)(10 * b) + 1; }
__global__ void pair(int *p, Pair v) { p[0] = 10 * v.a + v.b; }
__global__ void with_default(int *p, int a, int b = 40) { p[0] = a + b; }
template <class T>
__global__ void size_of(int *p, T) {
  p[0] = (int)sizeof(T);
}
__global__ void by_lambda(int *p, bool a, bool b, int c) { p[0] = 4 * a + 2 * b + c; }
template <class F>
__global__ void apply(int *p, F f) {
  p[0] = f(3);
}
struct Plus {
  int n;
  __host__ __device__ int operator()(int x) const { return x + n; }
};
template <class T, int N>
static T scaled(T x) {
  return x * N;
}

static void arguments(void **state) {
  (void)state;
  is_null<<<1, 1>>>(out, NULL, 1);
  expect(0, 1);
  is_null<<<1, 1>>>(out, 0, 2);
  expect(0, 2);
  is_null<<<1, 1>>>(out, nullptr, 3);
  expect(0, 3);
  two_numbers<<<1, 1>>>(out, 0, 0);
  expect(0, 1);
  pair<<<1, 1>>>(out, {4, 2});
  expect(0, 42);
  pair<<<1, 1>>>(out, Pair{4, 3});
  expect(0, 43);
  with_default<<<1, 1>>>(out, 2);
  expect(0, 42);
  size_of<<<1, 1>>>(out, 0);
  expect(0, 4);
  size_of<<<1, 1>>>(out, 'x');
  expect(0, 1);
  int a = 1, b = 2, c = 3, d = 4;
  by_lambda<<<1, 1>>>(out, a<b, c> d, 0);
  expect(0, 4);
  store<<<1, 1>>>(out, scaled<int, 3>(5));
  expect(0, 15);
  apply<<<1, 1>>>(out, Plus{4});
  expect(0, 7);
  store<<<1, 1>>>(out, a++);
  expect(0, 1);
  assert_int_equal(a, 2); /* once, not once a thread */
}

/* What preprocesses this file and what compiles it must agree on the dialect: headers choose by it. */
#ifndef __STRICT_ANSI__
typedef typeof(out) Pointer;
#else
typedef int *Pointer;
#endif

/* ---- memory spaces ---- */

__device__ int counter;
__device__ float table[3] = {1, 2, 3}, *floating;
static __device__ volatile int flag;
__constant__ int factors[2];
__constant__ const int fixed = 5;
__device__ int (*pointer_to_function)(int);
__device__ const float *const nothing = 0;
__managed__ int managed = 3;
namespace space {
__device__ Pair here = {4, 5};
}
template <class T>
__constant__ T weights[3];
template <class T, int N>
__device__ T total;
template <class T>
__global__ void use_templates(T *p) {
  total<T, 2> += weights<T>[2];
  p[0] = total<T, 2> + weights<T>[0] * 2;
}
__global__ void use_variables(int *p) {
  counter += 3;
  flag = 1;
  p[0] = counter + factors[1] + fixed + (int)table[2] + managed + space::here.b + flag;
  p[1] = pointer_to_function == NULL && floating == NULL && nothing == NULL;
  managed = 9;
}

static void variables(void **state) {
  (void)state;
  Pointer none = NULL;
  assert_null(none);
  int values[2] = {10, 20}, three = 1;
  assert_int_equal(cudaMemcpyToSymbol(factors, values, sizeof values), cudaSuccess);
  assert_int_equal(cudaMemcpyToSymbol(counter, &three, sizeof three), cudaSuccess);
  use_variables<<<1, 1>>>(out);
  expect(0, 4 + 20 + 5 + 3 + 3 + 5 + 1);
  assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
  assert_int_equal(managed, 9);
  assert_int_equal(cudaMemcpyFromSymbol(&three, counter, sizeof three), cudaSuccess);
  assert_int_equal(three, 4);
  use_variables<<<1, 1>>>(out);
  expect(1, 1);
}

static void template_variables(void **state) {
  (void)state;
  int integers[3] = {1, 2, 3}, sum = 40;
  float reals[3] = {5, 6, 7}, back = 0;
  assert_int_equal(cudaMemcpyToSymbol(weights<int>, integers, sizeof integers), cudaSuccess);
  assert_int_equal(cudaMemcpyToSymbol(weights<float>, reals, sizeof reals), cudaSuccess);
  assert_int_equal(cudaMemcpyToSymbol(total<int, 2>, &sum, sizeof sum), cudaSuccess);
  use_templates<<<1, 1>>>(out);
  expect(0, 45);
  assert_int_equal(cudaMemcpyFromSymbol(&back, weights<float>, sizeof back, 2 * sizeof back), cudaSuccess);
  assert_true(back == 7);
  assert_int_equal(cudaMemcpyToSymbol(weights<float>, reals, sizeof reals, 4), cudaErrorInvalidValue);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
}

extern __shared__ int dynamic_at_file_scope[];

__device__ int sum_of_dynamic(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += dynamic_at_file_scope[i];
  return sum;
}

struct Point {
  float x, y;
  __device__ Point() {}
  __device__ Point(float a, float b) : x(a), y(b) {}
};

template <class T>
struct Dynamic { /* the usual helper for templates */
  __device__ operator T *() {
    extern __shared__ __align__(16) unsigned char bytes[];
    return (T *)bytes;
  }
};

template <class T>
__device__ T block_max(T value) {
  __shared__ T best[32];
  best[threadIdx.x] = value;
  __syncthreads();
  T result = best[0];
  for (int i = 1; i < 32; i++) result = result > best[i] ? result : best[i];
  __syncthreads();
  return result;
}

template <class T>
__global__ void use_shared(int *p) {
  __shared__ float a[32][33], b;
  static __shared__ int c[32];
  volatile __shared__ int d[32];
  __shared__ __align__(16) float e[32];
  __shared__ alignas(128) char f[4];
  __shared__ Point points[32];
  __shared__ union {
    int i;
    float x;
  } both;
  int t = threadIdx.x;
  if (t == 0) {
    b = 2;
    both.x = 1;
    f[1] = 3;
  }
  a[t][32 - t] = t;
  c[t] = t;
  d[t] = t;
  e[t] = t;
  points[t] = Point(t, t);
  dynamic_at_file_scope[t] = t;
  __syncthreads();
  int o = 31 - t;
  p[t] = (int)a[o][32 - o] + c[o] + d[o] + (int)e[o] + (int)points[o].y + (int)b + (both.i == 0x3f800000) + f[1] +
         (size_t)f % 128 + (size_t)e % 16;
  __syncthreads();
  if (t == 0) p[32] = sum_of_dynamic(32);
  T *s = Dynamic<T>();
  __syncthreads();
  s[t] = (T)(2 * t);
  __syncthreads();
  if (t == 0) p[33] = (int)s[31];
  T best = block_max<T>((T)(7 * t % 32));
  if (t == 0) p[34] = (int)best;
}

static void shared(void **state) {
  (void)state;
  use_shared<double><<<1, 32, 32 * sizeof(double)>>>(out);
  int got[64];
  assert_int_equal(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost), cudaSuccess);
  for (int t = 0; t < 32; t++) assert_int_equal(got[t], 5 * (31 - t) + 2 + 1 + 3);
  assert_int_equal(got[32], 31 * 32 / 2);
  assert_int_equal(got[33], 62);
  assert_int_equal(got[34], 31);
  use_shared<short><<<1, 32, 32 * sizeof(double)>>>(out);
  expect(34, 31);
}

/* ---- loops ---- */

template <int N>
__global__ void unrolled(int *p) {
  int sum = 0;
#pragma unroll
  for (int i = 0; i < N; i++) sum += i;
#pragma unroll 4
  for (int i = 0; i < (int)blockDim.x; i++) sum++;
#pragma unroll N
  for (int i = 0; i < N; i++) {
#pragma unroll(2)
    for (int k = 0; k < 3; k++) sum += k;
  }
#pragma unroll 1
  while (sum % 10) sum++;
  p[0] = sum;
}

static void unroll(void **state) {
  (void)state;
  unrolled<4><<<1, 7>>>(out);
  expect(0, 30);
}

/* ---- cudaLaunchKernel: the kernel as a pointer without a type ---- */

static void untyped(void **state) {
  (void)state;
  int value = 77;
  void *values[] = {&out, &value};
  assert_int_equal(cudaLaunchKernel((void *)store, dim3(1), dim3(1), values, 0, NULL), cudaSuccess);
  expect(0, 77);
  value = 78;
  assert_int_equal(cudaLaunchKernel((const void *)&store, dim3(1), dim3(1), values, 0, 0), cudaSuccess);
  expect(0, 78);
  assert_int_equal(cudaLaunchKernel(reinterpret_cast<void *>(store_n<4>), 1, 1, values), cudaSuccess);
  expect(0, 4);
  assert_int_equal(
      cudaFuncSetAttribute((const void *)use_shared<int>, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000),
      cudaSuccess);
  cudaFuncAttributes attributes;
  assert_int_equal(cudaFuncGetAttributes(&attributes, (const void *)store), cudaSuccess);
  int blocks = 0;
  assert_int_equal(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, 128, 0), cudaSuccess);
  assert_true(blocks > 0);
}

/* ---- words ---- */

static __forceinline__ __device__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int thrice(int x) { return 3 * x; }
__attribute__((noinline)) int host_function(int x) { return x; }
template <class T>
__host__ __device__ inline T both_sides(T x) {
  return x + 1;
}
__device__ int declared_first(int x);
struct Functor {
  int n;
  __host__ __device__ Functor(int k) : n(k) {}
  __host__ __device__ ~Functor() {}
  __device__ __forceinline__ int operator()(int x) const;
};
__device__ int Functor::operator()(int x) const { return x * n; }

__global__ void __launch_bounds__(256, 2) words(int *__restrict__ p) {
  Functor f(2);
  p[0] = twice(1) + thrice(2) + both_sides(3) + declared_first(4) + f(5);
}
__device__ int declared_first(int x) { return 5 * x; }

static void qualifiers(void **state) {
  (void)state;
  words<<<1, 1>>>(out);
  expect(0, 2 + 6 + 4 + 20 + 10);
  assert_int_equal(host_function(both_sides(3)), 4);
}

/* ---- __CUDA_ARCH__: kernels are compiled for the GPU, and the rest of the file is not ---- */

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 600
#else
__device__ double atomicAdd(double *address, double value) { return *address + value; }
#endif

__host__ __device__ int side() {
#ifdef __CUDA_ARCH__
  return 1;
#else
  return 2;
#endif
}

__global__ void ask_side(int *p) {
#if __CUDA_ARCH__ >= 700
  p[0] = 10 + side();
#else
  p[0] = 20 + side();
#endif
}

static void arch(void **state) {
  (void)state;
  ask_side<<<1, 1>>>(out);
  expect(0, 11);
  assert_int_equal(side(), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names),      cmocka_unit_test(pointers),  cmocka_unit_test(parameters),
      cmocka_unit_test(arguments),  cmocka_unit_test(variables), cmocka_unit_test(template_variables),
      cmocka_unit_test(shared),     cmocka_unit_test(unroll),    cmocka_unit_test(untyped),
      cmocka_unit_test(qualifiers), cmocka_unit_test(arch),
  };
  if (cudaMalloc((void **)&out, 64 * sizeof *out) != cudaSuccess) return 1;
  if (cudaMemset(out, 0, 64 * sizeof *out) != cudaSuccess) return 1;
  int failed = cmocka_run_group_tests_name("launch", tests, NULL, NULL);
  cudaFree(out);
  return failed;
}
