/* test_arrays.h - a test's arrays on either device: uploaded between guard bands, checked for them on the way back.
 *
 *     float *device_x = arrays_upload(device, x, n);
 *     float *device_y = arrays_upload(device, y, n);
 *     ON_DEVICE(device, relu_forward_gpu(device_y, device_x, n), relu_forward_cpu_fast(device_y, device_x, n));
 *     arrays_download(device, y, device_y, n, "y");
 *     arrays_download(device, NULL, device_x, n, "x");
 */
#ifndef COMMON_TEST_ARRAYS_H
#define COMMON_TEST_ARRAYS_H

#include "common/device.h"
#include "common/guard.h"
#include "common/test.h"

static inline float *arrays_upload(Device device, const float *host, size_t n) {
  float *buffer = guard_alloc(device, n);
  device_upload(device, buffer, host, n * sizeof *host);
  return buffer;
}

/* Fails the test if something was written outside the buffer, copies it to `host` unless that is NULL, and frees it. */
static inline void arrays_download(Device device, float *host, float *buffer, size_t n, const char *name) {
  Error err;
  if (guard_check(device, buffer, n, name, &err) != 0) fail_msg("%s", err.message);
  if (host != NULL) device_download(device, host, buffer, n * sizeof *host);
  guard_free(device, buffer);
}

/* For what is not float: no guard bands, to be freed with device_free(). */
static inline void *arrays_upload_bytes(Device device, const void *host, size_t bytes) {
  void *buffer = device_alloc(device, bytes);
  device_upload(device, buffer, host, bytes);
  return buffer;
}

/* n floats from test_random_fill(), to be freed with free(). */
static inline float *arrays_random(size_t n, uint64_t seed) {
  float *x = (float *)xmalloc(n * sizeof *x);
  test_random_fill(x, n, seed);
  return x;
}

/* n floats of poison: what an operation leaves alone is found by compare_arrays(). */
static inline float *arrays_poison(size_t n) {
  float *x = (float *)xmalloc(n * sizeof *x);
  compare_poison(x, n);
  return x;
}

#endif /* COMMON_TEST_ARRAYS_H */
