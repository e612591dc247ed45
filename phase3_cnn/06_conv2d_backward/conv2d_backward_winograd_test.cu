/* The gradients by Winograd's algorithm against the references: ragged shapes, paddings of 0 to 3, few and many
 * channels and filters, guard bands round every array, a workspace full of NaN; the same bits in a second run. */
#include "phase3_cnn/06_conv2d_backward/conv2d_backward_winograd.cuh"

#include "common/philox.h"
#include "common/test_arrays.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_cpu.cuh"

static int pick(uint64_t *counter, const int *from, int count) {
  PhiloxBlock block = philox4x32(29, 1, (*counter)++);
  return from[block.word[0] % count];
}

/* The transforms add rounding errors to those of a sum of as many products: 04_conv2d_winograd. */
static void expect(const char *name, const float *actual, const float *expected, size_t rows, size_t cols, size_t terms,
                   float lost, Conv2dShape s) {
  Tolerance t = tolerance_dot(terms, 1);
  t.relative *= lost;
  t.absolute *= lost;
  Comparison c = compare_arrays(actual, expected, rows, cols, t);
  if (!c.ok) fail_msg("%s, %s: %s", name, conv2d_shape_text(s).text, c.message);
}

static void expect_same(const char *name, const float *first, const float *second, size_t n, Conv2dShape s) {
  Comparison c = compare_runs(first, second, n);
  if (!c.ok) fail_msg("%s, %s: %s", name, conv2d_shape_text(s).text, c.message);
}

/* ---- the gradient of the input ---- */

static void check_input(Conv2dShape s) {
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s);
  const size_t floats = conv2d_winograd_method_floats(s);
  float *dy = arrays_random(n_y, 1), *w = arrays_random(n_w, 2), *expected = arrays_poison(n_x), *dx[2];
  conv2d_backward_input_cpu(expected, dy, w, s);
  for (int run = 0; run < 2; run++) {
    dx[run] = arrays_poison(n_x);
    float *device_dx = arrays_upload(DEVICE_GPU, dx[run], n_x), *device_dy = arrays_upload(DEVICE_GPU, dy, n_y);
    float *device_w = arrays_upload(DEVICE_GPU, w, n_w), *workspace = guard_alloc(DEVICE_GPU, floats);
    conv2d_winograd_method.backward_input(device_dx, device_dy, device_w, s, workspace);
    arrays_download(DEVICE_GPU, dx[run], device_dx, n_x, "dx");
    arrays_download(DEVICE_GPU, NULL, device_dy, n_y, "dy");
    arrays_download(DEVICE_GPU, NULL, device_w, n_w, "w");
    arrays_download(DEVICE_GPU, NULL, workspace, floats, "workspace");
  }
  expect("dx", dx[0], expected, s.n * s.c, n_x / s.n / s.c, (size_t)s.k * 9, 40, s);
  expect_same("dx", dx[0], dx[1], n_x, s);
  free(dx[0]);
  free(dx[1]);
  free(dy);
  free(w);
  free(expected);
}

/* ---- the gradients of filters and bias ---- */

static void weight_large(float *dw, float *dbias, const float *dy, const float *x, Conv2dShape s, float *workspace) {
  (void)dbias;
  winograd_weight_run<WinogradWeightLarge>(dw, dy, x, winograd_forward_shape<2, 4>(s), workspace);
}
static void weight_small(float *dw, float *dbias, const float *dy, const float *x, Conv2dShape s, float *workspace) {
  (void)dbias;
  winograd_weight_run<WinogradWeightSmall>(dw, dy, x, winograd_forward_shape<2, 2>(s), workspace);
}

static const struct {
  const char *name;
  Conv2dBackwardWeight *launch;
  bool bias;
} weight_versions[] = {{"method", conv2d_backward_weight_winograd, true},
                       {"F(2x4)", weight_large, false},
                       {"F(2x2)", weight_small, false}};

static void check_weight(Conv2dShape s) {
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s), terms = n_y / s.k;
  const size_t floats = conv2d_winograd_method_floats(s);
  float *dy = arrays_random(n_y, 1), *x = arrays_random(n_x, 2);
  float *dw_expected = arrays_poison(n_w), *dbias_expected = arrays_poison(s.k);
  conv2d_backward_weight_cpu(dw_expected, dbias_expected, dy, x, s);
  for (size_t v = 0; v < sizeof weight_versions / sizeof *weight_versions; v++) {
    const char *name = weight_versions[v].name;
    float *dw[2];
    for (int run = 0; run < 2; run++) {
      float *dbias = arrays_poison(s.k);
      dw[run] = arrays_poison(n_w);
      float *device_dw = arrays_upload(DEVICE_GPU, dw[run], n_w), *device_dbias = arrays_upload(DEVICE_GPU, dbias, s.k);
      float *device_dy = arrays_upload(DEVICE_GPU, dy, n_y), *device_x = arrays_upload(DEVICE_GPU, x, n_x);
      float *workspace = guard_alloc(DEVICE_GPU, floats);
      const bool bias = weight_versions[v].bias && run == 0; /* NULL: not wanted */
      weight_versions[v].launch(device_dw, bias ? device_dbias : NULL, device_dy, device_x, s, workspace);
      arrays_download(DEVICE_GPU, dw[run], device_dw, n_w, "dw");
      arrays_download(DEVICE_GPU, dbias, device_dbias, s.k, "dbias");
      arrays_download(DEVICE_GPU, NULL, device_dy, n_y, "dy");
      arrays_download(DEVICE_GPU, NULL, device_x, n_x, "x");
      arrays_download(DEVICE_GPU, NULL, workspace, floats, "workspace");
      expect(name, dw[run], dw_expected, s.k, n_w / s.k, terms, 20, s);
      if (bias) expect(name, dbias, dbias_expected, 1, s.k, terms, 1, s);
      free(dbias);
    }
    expect_same(name, dw[0], dw[1], n_w, s);
    free(dw[0]);
    free(dw[1]);
  }
  free(dy);
  free(x);
  free(dw_expected);
  free(dbias_expected);
}

static void gradients_match_the_references(void **state) {
  (void)state;
  test_requires_gpu();
  const int n[] = {1, 2, 3}, c[] = {1, 3, 8, 33}, h[] = {1, 2, 3, 4, 5, 7, 8, 13}, k[] = {1, 5, 16, 66};
  const int padding[] = {0, 1, 1, 2, 3};
  uint64_t counter = 0;
  for (int done = 0; done < 24;) {
    Conv2dShape s = conv2d_shape(pick(&counter, n, 3), pick(&counter, c, 4), pick(&counter, h, 8), pick(&counter, h, 8),
                                 pick(&counter, k, 4), 3, 3, 1, 0);
    s.padding_h = pick(&counter, padding, 5);
    s.padding_w = pick(&counter, padding, 5);
    if (conv2d_shape_check(s, NULL) != 0) continue;
    if ((double)conv2d_y_count(s) * s.c > 30000) continue; /* keeps the emulated run short */
    check_input(s);
    check_weight(s);
    done++;
  }
  check_weight(conv2d_shape(3, 2, 12, 20, 3, 3, 3, 1, 1)); /* several slices of tiles */
}

/* A workspace that serves a batch serves every smaller one. */
static void a_smaller_batch_fits(void **state) {
  (void)state;
  test_requires_gpu();
  for (int c = 1; c <= 256; c *= 4)
    for (int k = 1; k <= 256; k *= 4) {
      Conv2dShape s = conv2d_shape(1, c, 14, 13, k, 3, 3, 1, 1);
      size_t before = 0;
      for (s.n = 1; s.n < 1000; s.n = s.n * 3 / 2 + 1) {
        size_t floats = conv2d_winograd_method_floats(s);
        assert_true(floats >= before);
        before = floats;
      }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_match_the_references),
      cmocka_unit_test(a_smaller_batch_fits),
  };
  return TEST_MAIN("conv2d_backward_winograd", tests);
}
