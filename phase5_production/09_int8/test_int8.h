/* test_int8.h - for the tests of int8: random arrays on the host and between guard bands on the GPU, and the end of a
 * convolution on either. */
#ifndef PHASE5_PRODUCTION_TEST_INT8_H
#define PHASE5_PRODUCTION_TEST_INT8_H

#include "common/test_arrays.h"
#include "phase5_production/09_int8/int8.cuh"

/* -128 to 127. */
static inline int8_t *random_int8(size_t n, uint32_t seed) {
  int8_t *q = (int8_t *)xmalloc(n + 1);
  for (size_t i = 0; i < n; i++) q[i] = (int8_t)(philox4x32(seed, 7, i / 4).word[i % 4] & 0xFF);
  return q;
}

static inline void *upload_bytes(const void *host, size_t count, size_t bytes) {
  void *device = guard_alloc_elements(DEVICE_GPU, count, bytes);
  if (host != NULL) device_upload(DEVICE_GPU, device, host, count * bytes);
  return device;
}

/* Frees it; host NULL: only looks at the guards. */
static inline void download_bytes(void *host, void *device, size_t count, size_t bytes, const char *name) {
  Error err;
  if (guard_check_elements(DEVICE_GPU, device, count, bytes, name, &err) != 0) fail_msg("%s", err.message);
  if (host != NULL) device_download(DEVICE_GPU, host, device, count * bytes);
  guard_free(DEVICE_GPU, device);
}

/* The end of K filters with `outputs` outputs in all, as a convolution of `depth` has it. Bit 1 of `kind`: bias, 2:
 * adds, 4: ReLU, 8: a middle, 16, 32, 64: x, y, what is added are uint8. The sums of random factors have about 5400
 * sqrt(depth): y covers the range and leaves it. */
typedef struct TestEnd {
  Int8End host, device;
  int k;
  size_t outputs;
} TestEnd;

static inline TestEnd test_end(int k, size_t outputs, int depth, int kind, uint32_t seed, bool floats) {
  TestEnd t = {};
  float *scale = (float *)xmalloc(k * sizeof *scale);
  int32_t *bias = (int32_t *)xmalloc(k * sizeof *bias);
  for (int i = 0; i < k; i++) {
    const PhiloxBlock block = philox4x32(seed, 8, i);
    scale[i] = (0.5f + philox_uniform(block.word[0])) * (floats ? 1e-3f : 100.0f / (5400 * sqrtf((float)depth)));
    bias[i] = (int32_t)(block.word[1] % 20001) - 10000;
  }
  t.k = k;
  t.outputs = outputs;
  t.host = int8_end_of(scale, kind & 1 ? bias : NULL, kind & 4);
  if (!(kind & 1)) free(bias);
  if (kind & 2) {
    t.host.added = random_int8(outputs, seed + 1);
    t.host.added_scale = 0.37f;
  }
  if (kind & 8) t.host.middle = 0.7f;
  t.host.x_positive = kind & 16;
  t.host.y_positive = kind & 32;
  t.host.added_positive = kind & 64;
  t.device = t.host;
  t.device.scale = (float *)upload_bytes(scale, k, sizeof *scale);
  if (kind & 1) t.device.bias = (int32_t *)upload_bytes(bias, k, sizeof *bias);
  if (kind & 2) t.device.added = (int8_t *)upload_bytes(t.host.added, outputs, 1);
  return t;
}

static inline void test_end_free(TestEnd *t) {
  download_bytes(NULL, (void *)t->device.scale, t->k, sizeof(float), "scale");
  if (t->device.bias != NULL) download_bytes(NULL, (void *)t->device.bias, t->k, sizeof(int32_t), "bias");
  if (t->device.added != NULL) download_bytes(NULL, (void *)t->device.added, t->outputs, 1, "added");
  free((void *)t->host.scale);
  free((void *)t->host.bias);
  free((void *)t->host.added);
}

/* As floats, for compare_arrays(). */
static inline float *widen_int8(const int8_t *q, size_t n) {
  float *wide = (float *)xmalloc((n + 1) * sizeof *wide);
  for (size_t i = 0; i < n; i++) wide[i] = q[i];
  return wide;
}
static inline float *widen_int8(const float *x, size_t n) {
  float *wide = (float *)xmalloc((n + 1) * sizeof *wide);
  memcpy(wide, x, n * sizeof *wide);
  return wide;
}

#endif /* PHASE5_PRODUCTION_TEST_INT8_H */
