/* The first layers of a ResNet in one kernel give the bits of the loops, and the loops those of the three
 * operations. */
#include "phase5_production/09_int8/stem_int8.cuh"

#include "phase5_production/09_int8/pool_int8.cuh"
#include "phase5_production/09_int8/test_int8.h"

typedef struct Stem {
  StemShape s;
  float *x, *w, scale[80], factor[80];
  int32_t bias[80];
  int8_t *filters, *y;
  size_t n_x, n_w, n_y;
} Stem;

static Stem stem_of(int n, int h, int w, int k) {
  Stem t;
  memset(&t, 0, sizeof t);
  t.s = stem_shape(n, h, w, k, 0);
  t.n_x = (size_t)n * 3 * h * w;
  t.n_w = (size_t)k * 3 * 49;
  t.n_y = (size_t)n * t.s.pool_h * t.s.pool_w * k;
  t.x = arrays_random(t.n_x, 1);
  t.w = arrays_random(t.n_w, 2);
  t.filters = (int8_t *)xmalloc((size_t)k * STEM_INT8_FILTER);
  t.y = (int8_t *)xmalloc(t.n_y);
  for (int i = 0; i < k; i++) {
    t.scale[i] = 0.004f + 0.0001f * i;
    t.factor[i] = 0.0007f + 0.00001f * i;
    t.bias[i] = 700 * (i % 7) - 2000;
  }
  stem_int8_filters(t.filters, t.w, t.scale, k);
  return t;
}

static void stem_free(Stem *t) {
  free(t->x);
  free(t->w);
  free(t->filters);
  free(t->y);
}

static void expect_kernel(int n, int h, int w, int k) {
  Stem t = stem_of(n, h, w, k);
  int8_t *y = (int8_t *)xmalloc(t.n_y);
  float *x = arrays_upload(DEVICE_GPU, t.x, t.n_x), *factor = (float *)upload_bytes(t.factor, k, sizeof *factor);
  int32_t *bias = (int32_t *)upload_bytes(t.bias, k, sizeof *bias);
  int8_t *filters = (int8_t *)upload_bytes(t.filters, (size_t)k * STEM_INT8_FILTER, 1);
  int8_t *device_y = (int8_t *)upload_bytes(NULL, t.n_y, 1);
  const StemInt8 host = {t.filters, t.factor, t.bias, 0.013f}, device = {filters, factor, bias, 0.013f};
  stem_int8_gpu(device_y, x, device, t.s);
  stem_int8_cpu(t.y, t.x, host, t.s);
  download_bytes(y, device_y, t.n_y, 1, "y");
  download_bytes(NULL, filters, (size_t)k * STEM_INT8_FILTER, 1, "w");
  download_bytes(NULL, factor, k, sizeof *factor, "factor");
  download_bytes(NULL, bias, k, sizeof *bias, "bias");
  arrays_download(DEVICE_GPU, NULL, x, t.n_x, "x");
  for (size_t i = 0; i < t.n_y; i++)
    if (y[i] != t.y[i])
      fail_msg("(%d,3,%d,%d), %d filters: element %zu, filter %d, is %d; %d was expected", n, h, w, k, i, (int)(i % k),
               (uint8_t)y[i], (uint8_t)t.y[i]);
  free(y);
  stem_free(&t);
}

static void kernel_has_the_bits(void **state) {
  (void)state;
  test_requires_gpu();
  if (mma_refusal() != NULL) {
    print_message("skipped: %s\n", mma_refusal());
    skip();
  }
  expect_kernel(2, 16, 16, 16);
  expect_kernel(1, 33, 27, 48); /* no quads; several blocks of rows */
  expect_kernel(1, 5, 236, 64); /* several blocks of columns */
  expect_kernel(1, 1, 1, 80);
#ifndef SIMT_REWRITTEN
  expect_kernel(3, 224, 224, 64);
#endif
}

/* Rounding, convolution with ReLU, pooling: one after the other. */
static void loops_are_the_three_operations(void **state) {
  (void)state;
  const int n = 2, h = 19, w = 22, k = 16;
  Stem t = stem_of(n, h, w, k);
  const StemInt8 stem = {t.filters, t.factor, t.bias, 0.013f};
  const Conv2dShape s = conv2d_shape(n, 3, h, w, k, 7, 7, 2, 3);
  int8_t *x = (int8_t *)xmalloc(t.n_x), *q = (int8_t *)xmalloc(t.n_w), *outputs = (int8_t *)xmalloc(conv2d_y_count(s));
  int8_t *expected = (int8_t *)xmalloc(t.n_y);
  int8_from_nchw_cpu(x, t.x, stem.scale, false, n, 3, h * w, 3);
  for (int f = 0; f < k; f++)
    for (int tap = 0; tap < 49; tap++)
      for (int c = 0; c < 3; c++)
        q[((size_t)f * 49 + tap) * 3 + c] = int8_quantize(t.w[((size_t)f * 3 + c) * 49 + tap], t.scale[f], false);
  Int8End end = int8_end_of(t.factor, t.bias, 1);
  end.y_positive = 1;
  conv2d_int8_cpu(outputs, x, q, s, end);
  pool2d_int8_cpu(expected, outputs, true,
                  pool2d_shape_of(n, k, conv2d_out_h(s), conv2d_out_w(s), (Pool2dWindow){3, 3, 2, 2, 1, 1}), NULL);
  stem_int8_cpu(t.y, t.x, stem, t.s);
  for (size_t i = 0; i < t.n_y; i++)
    if (t.y[i] != expected[i]) fail_msg("element %zu is %d; %d was expected", i, (uint8_t)t.y[i], (uint8_t)expected[i]);
  free(x);
  free(q);
  free(outputs);
  free(expected);
  stem_free(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loops_are_the_three_operations),
      cmocka_unit_test(kernel_has_the_bits),
  };
  return TEST_MAIN("stem_int8", tests);
}
