/* host_error_test.cu - error codes: their texts, the last error, the sticky error. The same program passes on a GPU,
 * and its table of texts, compiled by nvcc, is compared with NVIDIA's runtime even without one. */
#undef NDEBUG /* the kernels below mean their assert() */
#include <assert.h>
#include <pthread.h>

#include "collective.h"
#if __has_include("simt/errors.h")
#include "simt/errors.h" /* simtcc's, and found by -I simt/include */
#else
#include "simt/include/simt/errors.h"
#endif

typedef struct Row {
  int code;
  const char *name, *text;
} Row;

#define ROW(name, number, text) {number, #name, text},
static const Row rows[] = {SIMT_ERRORS(ROW)};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void test_names_and_texts(void **state) {
  (void)state;
  for (int i = 0; i < ROWS; i++) {
    const char *name = cudaGetErrorName((cudaError_t)rows[i].code);
    if (CUDART_VERSION < 13000 && strcmp(name, "unrecognized error code") == 0) continue; /* newer than this runtime */
    assert_string_equal(name, rows[i].name);
    assert_string_equal(cudaGetErrorString((cudaError_t)rows[i].code), rows[i].text);
  }
}

/* Every number below 2000 that is not in the table is none in the runtime either. */
static void test_no_others(void **state) {
  (void)state;
  if (CUDART_VERSION != 13000) skip();
  for (int code = 0, i = 0; code < 2000; code++) {
    while (i < ROWS && rows[i].code < code) i++;
    if (i < ROWS && rows[i].code == code) continue;
    assert_string_equal(cudaGetErrorName((cudaError_t)code), "unrecognized error code");
    assert_string_equal(cudaGetErrorString((cudaError_t)code), "unrecognized error code");
  }
  assert_string_equal(cudaGetErrorName((cudaError_t)-1), "unrecognized error code");
}

static void no_gpu(void) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) skip();
  cudaGetLastError();
}

static void test_last_error(void **state) {
  (void)state;
  no_gpu();
  assert_int_equal(cudaGetLastError(), cudaSuccess);
  assert_int_equal(cudaSetDevice(1000), cudaErrorInvalidDevice);
  assert_int_equal(cudaFree(NULL), cudaSuccess); /* success does not wipe it out */
  assert_int_equal(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  assert_int_equal(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
  assert_int_equal(cudaGetLastError(), cudaSuccess);
  void *pointer;
  assert_int_equal(cudaMalloc(&pointer, (size_t)1 << 60), cudaErrorMemoryAllocation);
  assert_int_equal(cudaMemset(NULL, 0, 4), cudaErrorInvalidValue);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue); /* the later one */
  CHECK(cudaDeviceSynchronize());                              /* none of these is sticky */
}

static void *other_thread(void *unused) {
  (void)unused;
  return (void *)(intptr_t)(cudaPeekAtLastError() == cudaSuccess);
}

static void test_each_thread_has_its_own(void **state) {
  (void)state;
  pthread_t thread;
  void *clean;
  no_gpu();
  assert_int_equal(cudaSetDevice(-1), cudaErrorInvalidDevice);
  pthread_create(&thread, NULL, other_thread, NULL);
  pthread_join(thread, &clean);
  assert_non_null(clean);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
}

__global__ void nothing(void) {}

/* CUDA 13 says that a value is invalid, CUDA 12 that the configuration is. */
static void refused(const char *what) {
  cudaError_t error = cudaGetLastError();
  if (error != cudaErrorInvalidValue && error != cudaErrorInvalidConfiguration)
    fail_msg("%s: %s", what, cudaGetErrorName(error));
}

static void test_impossible_launches(void **state) {
  (void)state;
  no_gpu();
  nothing<<<1, 1280>>>();
  refused("block of 1280");
  nothing<<<0, 32>>>();
  refused("no blocks");
  nothing<<<1, 0>>>();
  refused("no threads");
  nothing<<<dim3(1, 70000), 32>>>();
  refused("70000 blocks in y");
  nothing<<<1, dim3(1, 1, 128)>>>();
  refused("128 threads in z");
  CHECK(cudaDeviceSynchronize());
}

__global__ void refuse(int value) { assert(value == 1); }

/* The last test: on a GPU nothing works after it. */
static void test_sticky_error(void **state) {
  (void)state;
  void *pointer = NULL;
  int device;
  no_gpu();
  CHECK(cudaMalloc(&pointer, 4));
  refuse<<<2, 3>>>(2);
  assert_int_equal(cudaDeviceSynchronize(), cudaErrorAssert);
  assert_int_equal(cudaMemset(pointer, 0, 4), cudaErrorAssert);
  assert_int_equal(cudaMalloc(&pointer, 4), cudaErrorAssert);
  assert_int_equal(cudaFree(pointer), cudaErrorAssert);
  assert_int_equal(cudaGetLastError(), cudaErrorAssert);
  assert_int_equal(cudaGetLastError(), cudaSuccess); /* told once; the next call knows it again */
  nothing<<<1, 1>>>();
  assert_int_equal(cudaGetLastError(), cudaErrorAssert);
#ifdef SIMT_REWRITTEN
  CHECK(cudaDeviceReset()); /* here, that repairs it */
  assert_int_equal(cudaGetLastError(), cudaSuccess);
  CHECK(cudaGetDevice(&device));
  nothing<<<1, 1>>>();
  finish();
#else
  (void)device;
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names_and_texts),     cmocka_unit_test(test_no_others),
      cmocka_unit_test(test_last_error),          cmocka_unit_test(test_each_thread_has_its_own),
      cmocka_unit_test(test_impossible_launches), cmocka_unit_test(test_sticky_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
