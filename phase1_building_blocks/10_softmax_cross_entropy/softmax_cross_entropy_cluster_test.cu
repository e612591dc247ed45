/* A row in the registers of a cluster, against the loops. On the emulated GPU SIMT_CAPABILITY=9.0 gives clusters. */
#include "common/test_arrays.h"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_cluster.cuh"

/* Arrays begin `offset` floats past an aligned address; in_place: dlogits is the array of the logits. */
static void check(const float *logits, const int *labels, int batch, int classes, size_t offset, int in_place) {
  const size_t n = (size_t)batch * classes;
  const float scale = 1.0f / batch;
  float *padded = arrays_poison(n + offset), *actual = arrays_poison(n + offset), *losses = arrays_poison(batch);
  float *expected = arrays_poison(n), *expected_losses = arrays_poison(batch);
  softmax_cross_entropy_forward_cpu(expected_losses, expected, logits, labels, batch, classes);
  softmax_cross_entropy_backward_cpu(expected, expected, labels, scale, batch, classes);
  memcpy(padded + offset, logits, n * sizeof *logits);
  float *from = arrays_upload(DEVICE_GPU, padded, n + offset), *device_losses = guard_alloc(DEVICE_GPU, batch);
  float *to = in_place ? from : arrays_upload(DEVICE_GPU, actual, n + offset);
  int *device_labels = (int *)arrays_upload_bytes(DEVICE_GPU, labels, batch * sizeof *labels);
  softmax_cross_entropy_cluster(device_losses, to + offset, from + offset, device_labels, scale, batch, classes);
  arrays_download(DEVICE_GPU, losses, device_losses, batch, "losses");
  if (!in_place) arrays_download(DEVICE_GPU, NULL, from, n + offset, "logits");
  arrays_download(DEVICE_GPU, actual, to, n + offset, "dlogits");
  for (size_t i = 0; i < offset; i++) assert_true(compare_is_poison(&actual[i]));
  /* exp() errs by 2 units, its argument by the rounding of a difference up to 100, the sum as a random walk */
  const double relative = (8 + 100 + 4 * sqrt((double)classes)) * FLT_EPSILON / 2;
  Tolerance t = tolerance_make(relative, 2 * relative / batch);
  t.nan_equal = 1;
  Comparison c = compare_arrays(actual + offset, expected, batch, classes, t);
  if (!c.ok) fail_msg("(%d,%d), offset %zu, dlogits: %s", batch, classes, offset, c.message);
  t.absolute = relative;
  c = compare_arrays(losses, expected_losses, 1, batch, t);
  if (!c.ok) fail_msg("(%d,%d), offset %zu, losses: %s", batch, classes, offset, c.message);
  device_free(DEVICE_GPU, device_labels);
  free(padded);
  free(actual);
  free(losses);
  free(expected);
  free(expected_losses);
}

/* Two, four and seven float4 per thread; lengths that are a multiple of four and others, so that rows begin anywhere;
 * one that is too short, and one that is too long. */
static void clusters_match_the_loops(void **state) {
  (void)state;
  test_requires_gpu();
  const int shapes[][2] = {{3, 8193}, {2, 15001}, {5, 20011}, {2, 32204}, {3, 50257}, {1, 56832}, {2, 1000}, {1, 60001}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const int batch = shapes[i][0], classes = shapes[i][1];
    const size_t n = (size_t)batch * classes;
    float *logits = arrays_random(n, i);
    int *labels = (int *)xmalloc(batch * sizeof *labels);
    for (size_t at = 0; at < n; at++) logits[at] *= 5;
    for (int b = 0; b < batch; b++) labels[b] = (int)((b * 7919LL + classes - 1) % classes);
    check(logits, labels, batch, classes, 0, 0);
    check(logits, labels, batch, classes, 3, 1);
    free(logits);
    free(labels);
  }
}

/* NaN, +inf, -inf, nothing but -inf, one huge, a label outside. */
static void rows_of_extremes(void **state) {
  (void)state;
  test_requires_gpu();
  enum { ROWS = 6, COLS = 9001 };
  float *logits = arrays_random((size_t)ROWS * COLS, 5);
  const int labels[ROWS] = {0, COLS - 1, 17, 4000, 8999, COLS};
  for (int c = 0; c < COLS; c++) {
    logits[0 * COLS + c] = c == 70 ? 3e38f : logits[c];
    logits[1 * COLS + c] = c % 3 != 0 || c == COLS - 1 ? 1 : -INFINITY;
    logits[2 * COLS + c] = -INFINITY;
    logits[3 * COLS + c] = c == COLS - 1 ? NAN : 1;
    logits[4 * COLS + c] = c == 0 ? INFINITY : 1;
  }
  check(logits, labels, ROWS, COLS, 0, 0);
  check(logits, labels, ROWS, COLS, 1, 1);
  free(logits);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(clusters_match_the_loops),
      cmocka_unit_test(rows_of_extremes),
  };
  return TEST_MAIN("softmax_cross_entropy_cluster", tests);
}
