/* Every version of both gradients against the references: ragged shapes of every stride, padding, dilation and groups,
 * guard bands round every array, a workspace full of NaN; the same bits in a second run; the phases of a stride. */
#include "phase3_cnn/06_conv2d_backward/conv2d_backward.cuh"

#include "common/philox.h"
#include "common/test_arrays.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_cpu.cuh"

static int pick(uint64_t *counter, const int *from, int count) {
  PhiloxBlock block = philox4x32(23, 1, (*counter)++);
  return from[block.word[0] % count];
}

/* Calls `check` with `count` shapes that are possible and small. */
static void each_shape(int count, void check(Conv2dShape)) {
  const int n[] = {1, 2, 3, 5}, c[] = {1, 2, 3, 6, 33}, h[] = {1, 2, 3, 5, 7, 8, 13}, k[] = {1, 2, 4, 6, 9, 36};
  const int side[] = {1, 2, 3, 4, 5}, stride[] = {1, 1, 2, 3, 4}, padding[] = {0, 1, 2, 5};
  const int dilation[] = {1, 1, 2, 3}, groups[] = {1, 1, 2, 3};
  uint64_t counter = 0;
  for (int done = 0; done < count;) {
    Conv2dShape s = {pick(&counter, n, 4),        pick(&counter, c, 5),       pick(&counter, h, 7),
                     pick(&counter, h, 7),        pick(&counter, k, 6),       pick(&counter, side, 5),
                     pick(&counter, side, 5),     pick(&counter, stride, 5),  pick(&counter, stride, 5),
                     pick(&counter, padding, 4),  pick(&counter, padding, 4), pick(&counter, dilation, 4),
                     pick(&counter, dilation, 4), pick(&counter, groups, 4)};
    if (conv2d_shape_check(s, NULL) != 0) continue;
    if ((double)conv2d_y_count(s) * s.c * s.r * s.s > 200000) continue; /* keeps the emulated run short */
    check(s);
    done++;
  }
}

/* Shapes of several tiles along each axis, with the last one partial; of few pixels and of few filters. */
static void each_larger_shape(void check(Conv2dShape)) {
  const Conv2dShape shapes[] = {
      conv2d_shape(3, 64, 5, 6, 70, 3, 3, 1, 1),    conv2d_shape(2, 96, 6, 5, 66, 2, 2, 2, 1),
      conv2d_shape(33, 2, 9, 7, 3, 3, 3, 2, 0),     conv2d_shape(3, 64, 5, 8, 64, 2, 3, 1, 1),
      {2, 130, 4, 4, 4, 3, 3, 1, 1, 1, 2, 1, 2, 2}, conv2d_shape(1, 128, 6, 7, 128, 1, 2, 1, 0),
      conv2d_shape(1, 16, 1, 1, 4, 1, 1, 65536, 0), conv2d_shape(2, 16, 3, 2, 4, 2, 2, 3000, 1)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check(shapes[i]);
}

static bool with_nan; /* one element of dy or of x is NaN */

static void expect(const char *name, const float *actual, const float *expected, size_t rows, size_t cols, size_t terms,
                   Conv2dShape s) {
  Tolerance tolerance = tolerance_dot(terms, 1);
  tolerance.nan_equal = with_nan;
  Comparison c = compare_arrays(actual, expected, rows, cols, tolerance);
  if (!c.ok) fail_msg("%s, %s: %s", name, conv2d_shape_text(s).text, c.message);
}

static void expect_same(const char *name, const float *first, const float *second, size_t n, Conv2dShape s) {
  Comparison c = compare_runs(first, second, n);
  if (!c.ok) fail_msg("%s, %s: %s", name, conv2d_shape_text(s).text, c.message);
}

static size_t no_floats(Conv2dShape s) {
  (void)s;
  return 0;
}

/* ---- the gradient of the input ---- */

template <typename Tile>
static void input_of_tile(float *dx, const float *dy, const float *w, Conv2dShape s, float *workspace) {
  conv2d_backward_input_gemm_run<Tile>(dx, dy, w, s, 2, workspace); /* two images at a time */
}

static const struct {
  const char *name;
  Conv2dBackwardInput *launch;
  size_t (*floats)(Conv2dShape s);
} input_versions[] = {
    {"gather", conv2d_backward_input_gather, no_floats},
    {"gemm", conv2d_backward_input_gemm, conv2d_input_gemm_floats},
    {"method", conv2d_method_backward_input, conv2d_gemm_method_floats},
    {"gemm, tiny tiles", input_of_tile<Conv2dInputTiny>, conv2d_input_gemm_floats},
    {"gemm, small tiles", input_of_tile<Conv2dInputSmall>, conv2d_input_gemm_floats},
};

static void check_input(Conv2dShape s) {
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s), pixels = s.h * s.w;
  float *dy = arrays_random(n_y, 1), *w = arrays_random(n_w, 2), *expected = arrays_poison(n_x);
  if (with_nan) dy[n_y / 2] = NAN;
  conv2d_backward_input_cpu(expected, dy, w, s);
  for (size_t v = 0; v < sizeof input_versions / sizeof *input_versions; v++) {
    float *dx[2];
    for (int run = 0; run < 2; run++) {
      size_t floats = input_versions[v].floats(s);
      dx[run] = arrays_poison(n_x);
      float *device_dx = arrays_upload(DEVICE_GPU, dx[run], n_x), *device_dy = arrays_upload(DEVICE_GPU, dy, n_y);
      float *device_w = arrays_upload(DEVICE_GPU, w, n_w), *workspace = guard_alloc(DEVICE_GPU, floats);
      input_versions[v].launch(device_dx, device_dy, device_w, s, workspace);
      arrays_download(DEVICE_GPU, dx[run], device_dx, n_x, "dx");
      arrays_download(DEVICE_GPU, NULL, device_dy, n_y, "dy");
      arrays_download(DEVICE_GPU, NULL, device_w, n_w, "w");
      arrays_download(DEVICE_GPU, NULL, workspace, floats, "workspace");
    }
    expect(input_versions[v].name, dx[0], expected, s.n * s.c, pixels, (size_t)s.k / s.groups * s.r * s.s, s);
    expect_same(input_versions[v].name, dx[0], dx[1], n_x, s);
    free(dx[0]);
    free(dx[1]);
  }
  free(dy);
  free(w);
  free(expected);
}

static void input_matches_the_reference(void **state) {
  (void)state;
  test_requires_gpu();
  each_shape(60, check_input);
  each_larger_shape(check_input);
}

/* ---- the gradients of filters and bias ---- */

template <typename Tile>
static void weight_of_tile(float *dw, float *dbias, const float *dy, const float *x, Conv2dShape s, float *workspace) {
  conv2d_backward_bias(dbias, dy, s, workspace);
  if (conv2d_weight_gemm_fits(s))
    conv2d_backward_weight_gemm_run<Tile>(dw, dy, x, s, workspace, false);
  else
    conv2d_backward_weight_gemm(dw, NULL, dy, x, s, workspace);
}

/* Large tiles, where they are full. */
static void weight_of_large(float *dw, float *dbias, const float *dy, const float *x, Conv2dShape s, float *workspace) {
  conv2d_backward_bias(dbias, dy, s, workspace);
  if (conv2d_weight_is_even<Conv2dWeightLarge>(s))
    conv2d_backward_weight_gemm_of<Conv2dWeightLarge, true>(dw, dy, x, s, workspace, false);
  else
    conv2d_backward_weight_gemm(dw, NULL, dy, x, s, workspace);
}

static const struct {
  const char *name;
  Conv2dBackwardWeight *launch;
  size_t (*floats)(Conv2dShape s);
  bool ordered;
} weight_versions[] = {
    {"blocks", conv2d_backward_weight_blocks, conv2d_bias_floats, true},
    {"split", conv2d_backward_weight_split, conv2d_weight_split_floats, true},
    {"atomic", conv2d_backward_weight_atomic, conv2d_bias_floats, false},
    {"gemm", conv2d_backward_weight_gemm, conv2d_backward_gemm_floats, true},
    {"method", conv2d_method_backward_weight, conv2d_gemm_method_floats, true},
    {"gemm, atomic", conv2d_backward_weight_gemm_atomic, conv2d_backward_gemm_floats, false},
    {"gemm, tiny tiles", weight_of_tile<Conv2dWeightTiny>, conv2d_backward_gemm_floats, true},
    {"gemm, large tiles", weight_of_large, conv2d_backward_gemm_floats, true},
    {"gemm, one warp", weight_of_tile<Conv2dWeightWarp>, conv2d_backward_gemm_floats, true},
};

static void check_weight(Conv2dShape s) {
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s), terms = n_y / s.k;
  float *dy = arrays_random(n_y, 1), *x = arrays_random(n_x, 2);
  float *dw_expected = arrays_poison(n_w), *dbias_expected = arrays_poison(s.k);
  if (with_nan) x[n_x / 2] = NAN;
  conv2d_backward_weight_cpu(dw_expected, dbias_expected, dy, x, s);
  for (size_t v = 0; v < sizeof weight_versions / sizeof *weight_versions; v++) {
    const char *name = weight_versions[v].name;
    float *dw[2], *dbias[2];
    for (int run = 0; run < 2; run++) {
      size_t floats = weight_versions[v].floats(s);
      dw[run] = arrays_poison(n_w);
      dbias[run] = arrays_poison(s.k);
      float *device_dw = arrays_upload(DEVICE_GPU, dw[run], n_w),
            *device_dbias = arrays_upload(DEVICE_GPU, dbias[run], s.k);
      float *device_dy = arrays_upload(DEVICE_GPU, dy, n_y), *device_x = arrays_upload(DEVICE_GPU, x, n_x);
      float *workspace = guard_alloc(DEVICE_GPU, floats);
      weight_versions[v].launch(device_dw, device_dbias, device_dy, device_x, s, workspace);
      arrays_download(DEVICE_GPU, dw[run], device_dw, n_w, "dw");
      arrays_download(DEVICE_GPU, dbias[run], device_dbias, s.k, "dbias");
      arrays_download(DEVICE_GPU, NULL, device_dy, n_y, "dy");
      arrays_download(DEVICE_GPU, NULL, device_x, n_x, "x");
      arrays_download(DEVICE_GPU, NULL, workspace, floats, "workspace");
      expect(name, dw[run], dw_expected, s.k, n_w / s.k, terms, s);
      expect(name, dbias[run], dbias_expected, 1, s.k, terms, s);
    }
    if (weight_versions[v].ordered) expect_same(name, dw[0], dw[1], n_w, s);
    expect_same(name, dbias[0], dbias[1], s.k, s);
    for (int run = 0; run < 2; run++) {
      free(dw[run]);
      free(dbias[run]);
    }
  }
  free(dy);
  free(x);
  free(dw_expected);
  free(dbias_expected);
}

static void weight_matches_the_reference(void **state) {
  (void)state;
  test_requires_gpu();
  each_shape(40, check_weight);
  each_larger_shape(check_weight);
}

/* Filters that span more rows or columns than a short holds, and images of so many rows. */
static void long_images_match_the_reference(void **state) {
  (void)state;
  test_requires_gpu();
  const Conv2dShape shapes[] = {{1, 1, 1, 33002, 2, 1, 2, 1, 1, 0, 0, 1, 33000, 1},
                                {1, 1, 33002, 1, 2, 2, 1, 1, 1, 0, 0, 33000, 1, 1},
                                conv2d_shape(1, 2, 33000, 1, 3, 3, 1, 1, 0)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    check_input(shapes[i]);
    check_weight(shapes[i]);
  }
}

/* A NaN of dy reaches the inputs of its filter, one of x the weights that it was multiplied by, and no other number. */
static void nan_goes_where_its_products_go(void **state) {
  (void)state;
  test_requires_gpu();
  const Conv2dShape shapes[] = {conv2d_shape(2, 5, 7, 9, 6, 3, 3, 1, 1),
                                {2, 6, 9, 8, 4, 3, 2, 2, 1, 1, 0, 1, 2, 2},
                                conv2d_shape(2, 64, 8, 8, 64, 3, 3, 1, 1)};
  with_nan = true;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    check_input(shapes[i]);
    check_weight(shapes[i]);
  }
  with_nan = false;
}

/* ---- phases ---- */

/* Each pair of an input and a tap that meet at an output belongs to one phase, which names that output. */
static void phases_name_every_output(void **state) {
  (void)state;
  for (int stride = 1; stride <= 6; stride++)
    for (int dilation = 1; dilation <= 6; dilation++)
      for (int padding = 0; padding <= 7; padding++)
        for (int taps = 1; taps <= 7; taps++) {
          const int inputs = 11;
          int meet = 0, named = 0;
          for (int h = 0; h < inputs; h++)
            for (int r = 0; r < taps; r++) meet += (h + padding - r * dilation) % stride == 0;
          for (int phase = 0; phase < stride; phase++) {
            const Conv2dPhase p = conv2d_phase(phase, inputs, taps, stride, padding, dilation);
            for (int i = 0; i < p.count; i++)
              for (int t = 0; t < p.taps; t++, named++) {
                int h = p.first + i * stride, r = p.tap0 + t * p.tap_step, output = p.at + i - t * p.at_step;
                assert_true(h < inputs && r < taps);
                assert_int_equal(output * stride, h + padding - r * dilation);
              }
          }
          assert_int_equal(named, meet);
        }
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
        size_t floats = conv2d_gemm_method_floats(s);
        assert_true(floats >= before);
        before = floats;
      }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(phases_name_every_output),        cmocka_unit_test(a_smaller_batch_fits),
      cmocka_unit_test(input_matches_the_reference),     cmocka_unit_test(weight_matches_the_reference),
      cmocka_unit_test(long_images_match_the_reference), cmocka_unit_test(nan_goes_where_its_products_go),
  };
  return TEST_MAIN("conv2d_backward", tests);
}
