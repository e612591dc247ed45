/* blas.cuh - for the tests of cuBLAS and cublasLt: matrices and vectors of any type, on the host and on the device.
 * Between their columns is padding, round them are guards; both hold NaN, and must stay as they are. */
#ifndef SIMT_TEST_BLAS_CUH
#define SIMT_TEST_BLAS_CUH

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>

#include <complex>

#include "map.cuh"

typedef std::complex<double> Complex;

#define BLAS(call)                                                               \
  do {                                                                           \
    const cublasStatus_t status = (call);                                        \
    if (status != CUBLAS_STATUS_SUCCESS) {                                       \
      fail_msg("line %d: %s: %s", __LINE__, #call, cublasGetStatusName(status)); \
    }                                                                            \
  } while (0)
#define BLAS_GIVES(expected, call) assert_string_equal(cublasGetStatusName(call), cublasGetStatusName(expected))

static size_t type_bytes(cudaDataType type) {
  switch (type) {
    case CUDA_R_8I:
      return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_64F:
    case CUDA_C_32F:
      return 8;
    case CUDA_C_64F:
      return 16;
    default:
      return 4;
  }
}

/* Half the distance between 1 and the next number. */
static double roundoff(cudaDataType type) {
  switch (type) {
    case CUDA_R_16F:
      return 0x1p-11;
    case CUDA_R_16BF:
      return 0x1p-8;
    case CUDA_R_64F:
    case CUDA_C_64F:
      return 0x1p-53;
    case CUDA_R_8I:
    case CUDA_R_32I:
      return 0;
    default:
      return 0x1p-24;
  }
}

static void put(cudaDataType type, void *array, size_t i, Complex value) {
  switch (type) {
    case CUDA_R_8I:
      ((signed char *)array)[i] = (signed char)value.real();
      break;
    case CUDA_R_32I:
      ((int *)array)[i] = (int)value.real();
      break;
    case CUDA_R_16F:
      ((__half *)array)[i] = __float2half((float)value.real());
      break;
    case CUDA_R_16BF:
      ((__nv_bfloat16 *)array)[i] = __float2bfloat16((float)value.real());
      break;
    case CUDA_R_64F:
      ((double *)array)[i] = value.real();
      break;
    case CUDA_C_32F:
      ((cuComplex *)array)[i] = make_cuComplex((float)value.real(), (float)value.imag());
      break;
    case CUDA_C_64F:
      ((cuDoubleComplex *)array)[i] = make_cuDoubleComplex(value.real(), value.imag());
      break;
    default:
      ((float *)array)[i] = (float)value.real();
      break;
  }
}

static Complex get(cudaDataType type, const void *array, size_t i) {
  switch (type) {
    case CUDA_R_8I:
      return (double)((const signed char *)array)[i];
    case CUDA_R_32I:
      return (double)((const int *)array)[i];
    case CUDA_R_16F:
      return (double)__half2float(((const __half *)array)[i]);
    case CUDA_R_16BF:
      return (double)__bfloat162float(((const __nv_bfloat16 *)array)[i]);
    case CUDA_R_64F:
      return ((const double *)array)[i];
    case CUDA_C_32F:
      return Complex(((const cuComplex *)array)[i].x, ((const cuComplex *)array)[i].y);
    case CUDA_C_64F:
      return Complex(((const cuDoubleComplex *)array)[i].x, ((const cuDoubleComplex *)array)[i].y);
    default:
      return (double)((const float *)array)[i];
  }
}

static bool is_complex(cudaDataType type) { return type == CUDA_C_32F || type == CUDA_C_64F; }

/* A matrix (rows, columns), or a vector: rows = length, ld = length. On the host, rounded to its type, and on the
 * device. */
struct Array {
  cudaDataType type;
  int rows, columns, ld, guard; /* elements before and after */
  std::vector<char> host;
  void *device_base;

  void *device(void) const { return (char *)device_base + (size_t)guard * type_bytes(type); }
  size_t index(int i, int j) const { return (size_t)guard + (size_t)i + (size_t)j * (size_t)ld; }
  Complex at(int i, int j = 0) const { return get(type, host.data(), index(i, j)); }
  size_t count(void) const { return 2 * (size_t)guard + (size_t)ld * (size_t)(columns > 0 ? columns : 1); }
};

enum Fill { RANDOM, POISON }; /* 0xff in every byte: NaN, or -1 */

static Array array_new(cudaDataType type, int rows, int columns, int ld, Fill fill) {
  Array a = {type, rows, columns, ld, 8, {}, NULL};
  a.host.assign(a.count() * type_bytes(type), (char)0xff);
  for (int j = 0; fill == RANDOM && j < columns; j++) {
    for (int i = 0; i < rows; i++) {
      double real = type == CUDA_R_8I || type == CUDA_R_32I ? floor(random_uniform(-100, 100)) : random_uniform(-1, 1);
      put(type, a.host.data(), a.index(i, j), Complex(real, is_complex(type) ? random_uniform(-1, 1) : 0));
    }
  }
  CHECK(cudaMalloc(&a.device_base, a.host.size()));
  CHECK(cudaMemcpy(a.device_base, a.host.data(), a.host.size(), cudaMemcpyHostToDevice));
  return a;
}

static Array random_matrix(cudaDataType type, int rows, int columns, int padding = 0) {
  int ld = rows + padding;
  return array_new(type, rows, columns, ld > 0 ? ld : 1, RANDOM);
}
static Array random_vector(cudaDataType type, int length, int increment = 1) {
  return random_matrix(type, 1 + (length - 1) * abs(increment), 1);
}

static void array_free(Array *a) { CHECK(cudaFree(a->device_base)); }

/* Fetches what the device has, checks that padding and guards still hold the bytes of `before`, frees the device's
 * copy. Only elements for which `own` holds may have changed. */
template <class Own>
static Array fetch(Array *before, const char *what, Own own) {
  Array after = *before;
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(after.host.data(), before->device_base, after.host.size(), cudaMemcpyDeviceToHost));
  size_t bytes = type_bytes(after.type);
  for (size_t e = 0; e < after.count(); e++) {
    long at = (long)e - after.guard, j = at / after.ld, i = at % after.ld;
    bool inside = at >= 0 && j < after.columns && i < after.rows;
    if (inside && own((int)i, (int)j)) continue;
    if (memcmp(&after.host[e * bytes], &before->host[e * bytes], bytes) != 0) {
      fail_msg("%s: element %ld of the allocation (%ld, %ld), not to be touched, was written", what, (long)e, i, j);
    }
  }
  array_free(before);
  return after;
}

static Array fetch(Array *before, const char *what) {
  return fetch(before, what, [](int, int) { return true; });
}

static void check(const char *what, int i, int j, Complex got, Complex expected, double tolerance) {
  if (!(std::abs(got - expected) <= tolerance)) {
    fail_msg("%s: (%d, %d) is %.9g %+.9gi, expected %.9g %+.9gi, tolerance %.3g", what, i, j, got.real(), got.imag(),
             expected.real(), expected.imag(), tolerance);
  }
}

/* ---- alpha, beta, results: in the type that the call wants ---- */

struct Value {
  alignas(16) char bytes[16];
  Value(cudaDataType type, Complex value) { put(type, bytes, 0, value); }
  operator const void *() const { return bytes; }
  template <class T>
  operator const T *() const {
    return (const T *)bytes;
  }
};

#endif /* SIMT_TEST_BLAS_CUH */
