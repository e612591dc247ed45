/* collective.h - what the tests of collectives share: checked calls, arrays on the device, random numbers, launches
 * of one block whose threads write one result each. */
#ifndef SIMT_TEST_COLLECTIVE_H
#define SIMT_TEST_COLLECTIVE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>
extern "C" {
#include <cmocka.h>
}

static inline void check(cudaError_t error, const char *what, const char *file, int line) {
  if (error != cudaSuccess) fail_msg("%s:%d: %s: %s", file, line, what, cudaGetErrorString(error));
}
#define CHECK(call) check(call, #call, __FILE__, __LINE__)

/* Zeroed; the host may read and write it while no kernel runs. */
template <class T>
static T *new_array(size_t count) {
  void *array = NULL;
  CHECK(cudaMallocManaged(&array, count * sizeof(T)));
  memset(array, 0, count * sizeof(T));
  return (T *)array;
}

static inline void finish(void) {
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
}

/* A linear congruential generator: 32 bits, of which the high ones are good. */
static inline unsigned next_random(void) {
  static uint64_t state = 42;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 32);
}

#endif /* SIMT_TEST_COLLECTIVE_H */
