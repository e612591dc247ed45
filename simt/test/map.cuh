/* map.cuh - for the tests of device functions: one expression, computed on the device for every element of an array.
 *
 *     MAP(popc_map, unsigned, int, __popc(a))
 *     std::vector<int> got = map(popc_map, inputs);
 *
 * The same tests run on a GPU (nvcc) and on the emulator (simtcc); what is expected is computed on the host,
 * otherwise. */
#ifndef SIMT_TEST_MAP_CUH
#define SIMT_TEST_MAP_CUH

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" { /* cmocka 1 does not say so itself */
#include <cmocka.h>
}

#include <vector>

#define CHECK(call)                                                                                    \
  do {                                                                                                 \
    const cudaError_t error = (call);                                                                  \
    if (error != cudaSuccess) fail_msg("line %d: %s: %s", __LINE__, #call, cudaGetErrorString(error)); \
  } while (0)

#define MAP(name, In, Out, expression)                          \
  static __global__ void name(const In *in, Out *out, int n) {  \
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); \
    if (i >= n) return;                                         \
    const In a = in[i];                                         \
    out[i] = expression;                                        \
  }

/* The same for a struct with operator(), which may be a template: map(function_map<Twice<float>, float, float>,
 * inputs) */
template <class Function, class In, class Out>
static __global__ void function_map(const In *in, Out *out, int n) {
  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = Function()(in[i]);
}

template <class T>
static T *device_array(size_t count) {
  T *array = NULL;
  CHECK(cudaMalloc((void **)&array, count * sizeof(T)));
  CHECK(cudaMemset((void *)array, 0xff, count * sizeof(T)));
  return array;
}

template <class T>
static T *upload(const std::vector<T> &values) {
  T *array = device_array<T>(values.size());
  CHECK(cudaMemcpy((void *)array, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return array;
}

/* Copies and frees. */
template <class T>
static std::vector<T> download(T *array, size_t count) {
  std::vector<T> values(count);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy((void *)values.data(), array, count * sizeof(T), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(array));
  return values;
}

template <class In, class Out>
static std::vector<Out> map(void (*kernel)(const In *, Out *, int), const std::vector<In> &inputs) {
  const int n = (int)inputs.size();
  In *in = upload(inputs);
  Out *out = device_array<Out>(n);
  kernel<<<(n + 127) / 128, 128>>>(in, out, n);
  std::vector<Out> results = download(out, n);
  CHECK(cudaFree(in));
  return results;
}

/* Two, three of a kind, as input of an expression in a.x, a.y, a.z. */
template <class T>
struct Two {
  T x, y;
};
template <class T>
struct Three {
  T x, y, z;
};

/* A conversion to an integer as PTX's cvt: clamped; NaN is 0, or 0x80.. where the source is .f64 or the destination has
 * 64 bits. `rounded` is a whole number. */
template <class To>
static To clamped(long double rounded, bool from_double) {
  const bool is_signed = (To)-1 < 0;
  const int bits = 8 * (int)sizeof(To) - is_signed;
  const To top = (To)(~0ull >> (64 - bits));
  if (rounded != rounded) return from_double || sizeof(To) == 8 ? (To)(1ull << (8 * sizeof(To) - 1)) : 0;
  if (rounded >= ldexpl(1, bits)) return top;
  if (rounded < (is_signed ? -ldexpl(1, bits) : 0)) return is_signed ? (To)~top : 0;
  return (To)rounded;
}

static const char *const directions[] = {"rn", "rz", "ru", "rd"};
static inline long double rounded(long double x, int direction) {
  return direction == 0 ? rintl(x) : direction == 1 ? truncl(x) : direction == 2 ? ceill(x) : floorl(x);
}
#define EACH_WAY(f, ...) \
  { f##_rn(__VA_ARGS__), f##_rz(__VA_ARGS__), f##_ru(__VA_ARGS__), f##_rd(__VA_ARGS__) }

/* xorshift64*: the same numbers everywhere. */
static uint64_t random_state = 88172645463325252ull;
static uint64_t random_bits(void) {
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return random_state * 2685821657736338717ull;
}
static double random_uniform(double low, double high) {
  return low + (high - low) * ((double)(random_bits() >> 11) / 9007199254740992.0);
}

static inline float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline double double_of(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

#endif /* SIMT_TEST_MAP_CUH */
