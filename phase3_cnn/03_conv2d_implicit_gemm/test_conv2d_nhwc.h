/* test_conv2d_nhwc.h - for the tests of convolution in NHWC: arrays of T on the GPU, between guard bands, from and to
 * floats. */
#ifndef PHASE3_CNN_TEST_CONV2D_NHWC_H
#define PHASE3_CNN_TEST_CONV2D_NHWC_H

#include "common/test_arrays.h"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc.cuh"

/* As tensor cores take them: TF32 has 10 bits of fraction. */
static inline void round_to(float *x) {
  uint32_t bits;
  memcpy(&bits, x, sizeof bits);
  bits = (bits + 0x1000) & 0xFFFFE000;
  memcpy(x, &bits, sizeof bits);
}
static inline void round_to(__nv_bfloat16 *x) { (void)x; }
static inline void round_to(__half *x) { (void)x; }

/* n numbers of T, random; the same numbers as floats to `wide`. */
template <typename T>
static inline T *upload_random(float *wide, size_t n, uint64_t seed) {
  T *narrow = (T *)xmalloc(n * sizeof *narrow);
  test_random_fill(wide, n, seed);
  for (size_t i = 0; i < n; i++) {
    conv2d_narrow(&narrow[i], wide[i]);
    round_to(&narrow[i]);
    wide[i] = conv2d_widen(narrow[i]);
  }
  T *device = (T *)guard_alloc_elements(DEVICE_GPU, n, sizeof *device);
  device_upload(DEVICE_GPU, device, narrow, n * sizeof *device);
  free(narrow);
  return device;
}

/* What the device has, as floats; frees it. */
template <typename T>
static inline void download(float *wide, T *device, size_t n, const char *name) {
  Error err;
  T *narrow = (T *)xmalloc(n * sizeof *narrow);
  if (guard_check_elements(DEVICE_GPU, device, n, sizeof *device, name, &err) != 0) fail_msg("%s", err.message);
  device_download(DEVICE_GPU, narrow, device, n * sizeof *device);
  for (size_t i = 0; i < n && wide != NULL; i++) wide[i] = conv2d_widen(narrow[i]);
  free(narrow);
  guard_free(DEVICE_GPU, device);
}

/* (N,pixels,C) -> (N,C,pixels), on the host */
static inline float *channels_first(const float *x, int n, int c, size_t pixels) {
  float *to = (float *)xmalloc((size_t)n * c * pixels * sizeof *to);
  for (int i = 0; i < n; i++)
    for (size_t p = 0; p < pixels; p++)
      for (int j = 0; j < c; j++) to[((size_t)i * c + j) * pixels + p] = x[(i * pixels + p) * c + j];
  return to;
}

/* Half a unit of the last place, and what the sum may err by. */
template <typename T>
static inline Tolerance tolerance_of(size_t terms) {
  Tolerance t = tolerance_dot(terms, 1);
  t.relative = sizeof(T) == 4 ? FLT_EPSILON : Conv2dIsHalf<T>::value ? 1.0 / 2048 : 1.0 / 256;
  t.relative *= 1.01;
  return t;
}

#endif /* PHASE3_CNN_TEST_CONV2D_NHWC_H */
