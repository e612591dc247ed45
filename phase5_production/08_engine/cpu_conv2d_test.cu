/* cpu_conv2d_test.cu - the CPU's kernels of inference against the loops of the formula, for every processor that this
 * machine can stand in for: convolutions, linear layers, pools and sums of ragged sizes.
 */
#include "common/test.h"

#include "common/compare.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_cpu.cuh"
#include "phase5_production/08_engine/cpu_conv2d.h"

static const char *const all_kernels[] = {"avx512", "avx2", "portable"};

/* n images of a layout in blocks, between two bands that nothing may write; poisoned. */
enum { BAND = 64 };

static float *blocks_create(CpuShape s, int n) {
  const size_t count = n * cpu_count(s) + 2 * BAND;
  float *x = (float *)xmalloc(count * sizeof *x);
  compare_poison(x, count);
  return x + BAND;
}

static int is_poison(const float *x) {
  uint32_t bits;
  memcpy(&bits, x, sizeof bits);
  return bits == COMPARE_POISON;
}

static void blocks_free(float *x, CpuShape s, int n) {
  for (int i = 0; i < BAND; i++)
    if (!is_poison(x - BAND + i) || !is_poison(x + n * cpu_count(s) + i))
      fail_msg("float %d of a band beside the array was written", i);
  free(x - BAND);
}

/* The border of every plane, and the channels that the last block has too many, are zeros. */
static void check_zeros(const float *y, CpuShape s, int n) {
  for (int image = 0; image < n; image++)
    for (int c = 0; c < cpu_blocks(s) * CPU_BLOCK; c++)
      for (int h = -s.border; h < s.h + s.border; h++)
        for (int w = -s.border; w < s.w + s.border; w++) {
          if (c < s.c && h >= 0 && h < s.h && w >= 0 && w < s.w) continue;
          const float is = y[image * cpu_count(s) + c / CPU_BLOCK * cpu_plane(s) + cpu_first(s) +
                             h * (ptrdiff_t)cpu_row(s) + (ptrdiff_t)w * CPU_BLOCK + c % CPU_BLOCK];
          if (is != 0) fail_msg("image %d, channel %d, row %d, column %d is %g and not zero", image, c, h, w, is);
        }
}

static float clip(float x, CpuActivation f) { return x < f.least ? f.least : x > f.most ? f.most : x; }

typedef struct Case {
  Conv2dShape shape;
  int plain, more_border, y_border, with_bias, with_added, threads;
  CpuActivation activation;
} Case;

static void check_conv2d(const Case *t, const char *kernels, uint64_t seed) {
  const Conv2dShape s = t->shape;
  const int padding = s.padding_h > s.padding_w ? s.padding_h : s.padding_w;
  const CpuShape x_shape = cpu_shape(s.c, s.h, s.w, t->plain ? -1 : padding + t->more_border);
  const CpuShape y_shape = cpu_shape(s.k, conv2d_out_h(s), conv2d_out_w(s), t->y_border);
  const size_t x_count = conv2d_x_count(s), y_count = conv2d_y_count(s), w_count = conv2d_w_count(s);
  float *x = (float *)xmalloc(x_count * 4), *w = (float *)xmalloc(w_count * 4), *bias = (float *)xmalloc(s.k * 4);
  float *added = (float *)xmalloc(y_count * 4), *expected = (float *)xmalloc(y_count * 4);
  float *y = (float *)xmalloc(y_count * 4);
  test_random_fill(x, x_count, seed);
  test_random_fill(w, w_count, seed + 1);
  test_random_fill(bias, s.k, seed + 2);
  test_random_fill(added, y_count, seed + 3);
  conv2d_forward_cpu(expected, x, w, t->with_bias ? bias : NULL, s);
  for (size_t i = 0; i < y_count; i++) expected[i] = clip(expected[i] + (t->with_added ? added[i] : 0), t->activation);

  float *y_blocks = blocks_create(y_shape, s.n), *added_blocks = blocks_create(y_shape, s.n);
  float *x_blocks = t->plain ? NULL : blocks_create(x_shape, s.n);
  cpu_pack(added_blocks, added, y_shape, s.n, 1);
  if (x_blocks) cpu_pack(x_blocks, x, x_shape, s.n, t->threads);
  CpuConv2d *conv;
  Error err;
  if (cpu_conv2d_open(&conv, s, x_shape, y_shape, w, t->with_bias ? bias : NULL, t->activation, &err) != 0)
    fail_msg("%s", err.message);
  float *workspace = (float *)xmalloc((cpu_conv2d_workspace(conv, s.n, t->threads) + 1) * sizeof *workspace);
  cpu_conv2d_run(conv, y_blocks, x_blocks ? x_blocks : x, t->with_added ? added_blocks : NULL, workspace, s.n,
                 t->threads);
  cpu_unpack(y, y_blocks, y_shape, s.n, 1);
  const size_t length = (size_t)(s.c / s.groups) * s.r * s.s + 2;
  const Comparison c = compare_arrays(y, expected, (size_t)s.n * s.k, (size_t)y_shape.h * y_shape.w,
                                      tolerance_dot(length, cpu_conv2d_growth(conv)));
  if (!c.ok) fail_msg("%s, %s, %s: %s", conv2d_shape_text(s).text, kernels, cpu_conv2d_method(conv), c.message);
  if (!(t->activation.least > 0)) check_zeros(y_blocks, y_shape, s.n);
  blocks_free(y_blocks, y_shape, s.n);
  blocks_free(added_blocks, y_shape, s.n);
  if (x_blocks) blocks_free(x_blocks, x_shape, s.n);
  cpu_conv2d_close(conv);
  float *all[] = {x, w, bias, added, expected, y, workspace};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void check_all(const Case *cases, size_t count) {
  for (size_t k = 0; k < sizeof all_kernels / sizeof *all_kernels; k++) {
    if (cpu_kernels(all_kernels[k]) == NULL) continue; /* this processor lacks them */
    for (size_t i = 0; i < count; i++) check_conv2d(&cases[i], all_kernels[k], 10 * i);
  }
  cpu_kernels(NULL);
}

#define NONE CPU_NO_ACTIVATION

static void convolutions_of_ragged_sizes(void **state) {
  (void)state;
  const Case cases[] = {
      /*   n  c  h  w   k   r  s  stride pad  dilation groups   plain border y bias added threads */
      {{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1}, 0, 0, 0, 0, 0, 1, NONE},
      {{2, 3, 5, 7, 17, 3, 3, 1, 1, 1, 1, 1, 1, 1}, 0, 0, 1, 1, 1, 2, CPU_RELU},
      {{1, 33, 9, 31, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1}, 0, 1, 0, 1, 0, 2, NONE},
      {{1, 16, 14, 14, 64, 3, 3, 2, 2, 1, 1, 1, 1, 1}, 0, 0, 2, 0, 1, 1, NONE},
      {{3, 20, 7, 7, 64, 1, 1, 1, 1, 0, 0, 1, 1, 1}, 0, 2, 1, 1, 1, 2, CPU_RELU},
      {{1, 18, 13, 11, 48, 1, 1, 2, 2, 0, 0, 1, 1, 1}, 0, 0, 0, 1, 0, 1, NONE},
      {{1, 5, 12, 17, 31, 5, 3, 3, 3, 2, 1, 1, 1, 1}, 0, 0, 0, 1, 0, 1, CPU_RELU6},
      {{1, 7, 15, 19, 80, 3, 2, 1, 2, 2, 0, 2, 3, 1}, 0, 0, 1, 1, 1, 2, NONE},
      {{1, 4, 2, 3, 16, 1, 1, 9, 9, 0, 0, 1, 1, 1}, 0, 0, 0, 1, 0, 1, NONE},
  };
  check_all(cases, sizeof cases / sizeof *cases);
}

static void the_first_layer_reads_plain_images(void **state) {
  (void)state;
  const Case cases[] = {
      {{2, 1, 28, 28, 6, 5, 5, 1, 1, 2, 2, 1, 1, 1}, 1, 0, 0, 1, 0, 2, CPU_RELU},
      {{2, 3, 23, 37, 64, 7, 7, 2, 2, 3, 3, 1, 1, 1}, 1, 0, 1, 1, 0, 2, CPU_RELU},
      {{1, 3, 9, 10, 5, 3, 3, 1, 1, 0, 0, 1, 1, 1}, 1, 0, 0, 0, 1, 1, NONE},
      {{1, 2, 9, 10, 5, 3, 3, 3, 3, 0, 2, 2, 2, 1}, 1, 0, 0, 1, 0, 1, NONE},
      {{1, 4, 6, 6, 6, 3, 3, 1, 1, 1, 1, 1, 1, 2}, 1, 0, 0, 1, 0, 1, NONE},
  };
  check_all(cases, sizeof cases / sizeof *cases);
}

static void groups_and_depthwise(void **state) {
  (void)state;
  const Case cases[] = {
      {{1, 32, 6, 9, 64, 3, 3, 1, 1, 1, 1, 1, 1, 2}, 0, 0, 0, 1, 0, 2, NONE},
      {{1, 12, 6, 9, 30, 3, 3, 1, 1, 1, 1, 1, 1, 3}, 0, 0, 1, 1, 1, 2, CPU_RELU},
      {{1, 96, 5, 5, 96, 3, 3, 1, 1, 1, 1, 1, 1, 24}, 0, 0, 1, 1, 1, 1, NONE},
      {{2, 35, 15, 16, 35, 3, 3, 1, 1, 1, 1, 1, 1, 35}, 0, 0, 1, 1, 1, 2, CPU_RELU6},
      {{1, 16, 15, 16, 16, 5, 3, 2, 2, 2, 1, 1, 1, 16}, 0, 0, 0, 1, 0, 1, NONE},
      {{1, 17, 15, 16, 17, 3, 3, 3, 1, 2, 2, 2, 2, 17}, 0, 0, 0, 0, 0, 1, NONE},
      {{1, 8, 7, 7, 16, 3, 3, 1, 1, 1, 1, 1, 1, 8}, 0, 0, 0, 1, 0, 1, NONE},
  };
  check_all(cases, sizeof cases / sizeof *cases);
}

/* Large enough for the method of Winograd, and for tiles of two rows. */
static void convolutions_of_networks(void **state) {
  (void)state;
  const Case cases[] = {
      {{1, 64, 17, 14, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1}, 0, 0, 1, 1, 1, 2, CPU_RELU},
      {{2, 64, 28, 25, 96, 3, 3, 1, 1, 1, 1, 1, 1, 1}, 0, 0, 1, 1, 0, 2, NONE},
      {{1, 40, 22, 21, 72, 3, 3, 1, 1, 0, 0, 1, 1, 1}, 0, 1, 0, 1, 1, 1, CPU_RELU},
      {{3, 64, 7, 7, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1}, 0, 0, 1, 1, 1, 2, CPU_RELU},
      {{1, 64, 13, 6, 64, 3, 3, 2, 2, 1, 1, 1, 1, 1}, 0, 0, 1, 1, 1, 2, CPU_RELU},
  };
  check_all(cases, sizeof cases / sizeof *cases);
}

static void linear_layers(void **state) {
  (void)state;
  const struct {
    CpuShape x;
    int k, n, threads;
  } cases[] = {{{400, 1, 1, 0}, 120, 1, 1},
               {{5, 3, 2, 1}, 10, 3, 1},
               {{16, 5, 5, 0}, 84, 17, 2},
               {{1, 1, 1, 0}, 1, 1, 1},
               {{33, 2, 3, 0}, 130, 2, 2}};
  for (size_t k = 0; k < sizeof all_kernels / sizeof *all_kernels; k++) {
    if (cpu_kernels(all_kernels[k]) == NULL) continue;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      const CpuShape s = cases[i].x, y_shape = cpu_shape(cases[i].k, 1, 1, 0);
      const int n = cases[i].n, outputs = cases[i].k, features = s.c * s.h * s.w;
      const size_t count = (size_t)n * features;
      float *x = (float *)xmalloc(count * 4), *w = (float *)xmalloc((size_t)outputs * features * 4);
      float *bias = (float *)xmalloc(outputs * 4), *y = (float *)xmalloc((size_t)n * outputs * 4);
      float *expected = (float *)xmalloc((size_t)n * outputs * 4);
      test_random_fill(x, count, i);
      test_random_fill(w, (size_t)outputs * features, i + 1);
      test_random_fill(bias, outputs, i + 2);
      conv2d_forward_cpu(expected, x, w, bias, conv2d_shape(n, features, 1, 1, outputs, 1, 1, 1, 0));
      float *x_blocks = blocks_create(s, n), *y_blocks = blocks_create(y_shape, n);
      cpu_pack(x_blocks, x, s, n, 1);
      CpuConv2d *linear;
      Error err;
      if (cpu_linear_open(&linear, s, outputs, w, bias, NONE, &err) != 0) fail_msg("%s", err.message);
      cpu_conv2d_run(linear, y_blocks, x_blocks, NULL, NULL, n, cases[i].threads);
      cpu_unpack(y, y_blocks, y_shape, n, 1);
      const Comparison c = compare_arrays(y, expected, n, outputs, tolerance_dot(features + 1, 1));
      if (!c.ok) fail_msg("case %zu, %s: %s", i, all_kernels[k], c.message);
      check_zeros(y_blocks, y_shape, n);
      blocks_free(x_blocks, s, n);
      blocks_free(y_blocks, y_shape, n);
      cpu_conv2d_close(linear);
      float *all[] = {x, w, bias, y, expected};
      for (size_t j = 0; j < sizeof all / sizeof *all; j++) free(all[j]);
    }
  }
  cpu_kernels(NULL);
}

/* One window, by the definition. */
static float pool_window(const float *plane, CpuShape s, CpuPool2d pool, int p, int q) {
  double sum = 0;
  float most = -INFINITY;
  int counted = 0;
  for (int r = 0; r < pool.kernel_h; r++)
    for (int c = 0; c < pool.kernel_w; c++) {
      const int h = p * pool.stride_h - pool.padding_h + r, w = q * pool.stride_w - pool.padding_w + c;
      if (h < 0 || h >= s.h || w < 0 || w >= s.w) continue;
      const float x = plane[h * s.w + w];
      most = x > most || isnan(x) ? x : most;
      sum += x;
      counted++;
    }
  return pool.average ? (float)(sum / (pool.count_padding ? pool.kernel_h * pool.kernel_w : counted)) : most;
}

static void pools(void **state) {
  (void)state;
  const struct {
    CpuShape x;
    CpuPool2d pool;
    int y_border, n, threads;
  } cases[] = {{{16, 28, 28, 0}, {2, 2, 2, 2, 0, 0, false, false}, 0, 1, 1},
               {{17, 11, 9, 1}, {3, 3, 2, 2, 1, 1, false, false}, 1, 2, 2},
               {{5, 7, 8, 0}, {3, 2, 1, 2, 1, 0, true, false}, 2, 1, 1},
               {{33, 7, 8, 2}, {3, 3, 2, 1, 1, 1, true, true}, 0, 3, 2},
               {{40, 7, 5, 1}, {7, 5, 1, 1, 0, 0, true, false}, 0, 2, 1}};
  for (size_t k = 0; k < sizeof all_kernels / sizeof *all_kernels; k++) {
    if (cpu_kernels(all_kernels[k]) == NULL) continue;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      const CpuShape s = cases[i].x;
      const CpuPool2d pool = cases[i].pool;
      const int n = cases[i].n;
      const CpuShape to = cpu_shape(s.c, (s.h + 2 * pool.padding_h - pool.kernel_h) / pool.stride_h + 1,
                                    (s.w + 2 * pool.padding_w - pool.kernel_w) / pool.stride_w + 1, cases[i].y_border);
      const size_t x_count = (size_t)n * s.c * s.h * s.w, y_count = (size_t)n * s.c * to.h * to.w;
      float *x = (float *)xmalloc(x_count * 4), *y = (float *)xmalloc(y_count * 4);
      float *expected = (float *)xmalloc(y_count * 4);
      test_random_fill(x, x_count, i);
      for (size_t j = 0; j < x_count; j++) x[j] -= 2; /* all are negative: a zero of the border must not win */
      if (!pool.average) x[x_count / 2] = NAN;
      for (size_t j = 0; j < y_count; j++)
        expected[j] = pool_window(x + j / (to.h * to.w) * (s.h * s.w), s, pool, (int)(j / to.w) % to.h, (int)j % to.w);
      float *x_blocks = blocks_create(s, n), *y_blocks = blocks_create(to, n);
      cpu_pack(x_blocks, x, s, n, 1);
      if (to.h == 1 && to.w == 1)
        cpu_global_avg_pool2d_run(y_blocks, to, x_blocks, s, n, cases[i].threads);
      else
        cpu_pool2d_run(y_blocks, to, x_blocks, s, pool, n, cases[i].threads);
      cpu_unpack(y, y_blocks, to, n, 1);
      Tolerance tolerance = tolerance_dot((size_t)pool.kernel_h * pool.kernel_w, pool.average ? 2 : 0);
      tolerance.nan_equal = 1;
      const Comparison c = compare_arrays(y, expected, (size_t)n * s.c, (size_t)to.h * to.w, tolerance);
      if (!c.ok) fail_msg("case %zu, %s: %s", i, all_kernels[k], c.message);
      blocks_free(x_blocks, s, n);
      blocks_free(y_blocks, to, n);
      free(x), free(y), free(expected);
    }
  }
  cpu_kernels(NULL);
}

static void sums_are_clipped_and_nan_stays(void **state) {
  (void)state;
  const CpuShape s = cpu_shape(19, 3, 5, 1);
  for (size_t k = 0; k < sizeof all_kernels / sizeof *all_kernels; k++) {
    if (cpu_kernels(all_kernels[k]) == NULL) continue;
    float a[2 * 19 * 15], b[2 * 19 * 15], y[2 * 19 * 15], expected[2 * 19 * 15];
    test_random_fill(a, 570, 1);
    test_random_fill(b, 570, 2);
    a[77] = NAN;
    for (int i = 0; i < 570; i++) expected[i] = i == 77 ? NAN : clip(a[i] + b[i], CPU_RELU);
    float *a_blocks = blocks_create(s, 2), *b_blocks = blocks_create(s, 2);
    cpu_pack(a_blocks, a, s, 2, 1);
    cpu_pack(b_blocks, b, s, 2, 1);
    cpu_add_run(a_blocks, a_blocks, b_blocks, s, CPU_RELU, 2, 2);
    cpu_unpack(y, a_blocks, s, 2, 1);
    Tolerance exact = tolerance_make(0, 0);
    exact.nan_equal = 1;
    const Comparison c = compare_arrays(y, expected, 38, 15, exact);
    if (!c.ok) fail_msg("%s: %s", all_kernels[k], c.message);
    blocks_free(a_blocks, s, 2);
    blocks_free(b_blocks, s, 2);
  }
  cpu_kernels(NULL);
}

static void expect_refused(Conv2dShape s, CpuShape x, CpuShape y, const char *words) {
  CpuConv2d *conv;
  Error err;
  const float w[9] = {0};
  assert_int_equal(cpu_conv2d_open(&conv, s, x, y, w, NULL, NONE, &err), -1);
  if (strstr(err.message, words) == NULL) fail_msg("expected '%s' in: %s", words, err.message);
  assert_null(conv);
}

static void refuses_shapes_that_do_not_match(void **state) {
  (void)state;
  const Conv2dShape s = conv2d_shape(1, 1, 5, 5, 1, 3, 3, 1, 1);
  expect_refused(s, cpu_shape(1, 5, 5, 0), cpu_shape(1, 5, 5, 0), "x needs one of at least its padding, 1");
  expect_refused(s, cpu_shape(1, 5, 6, 1), cpu_shape(1, 5, 5, 0), "x is an array of (1,5,6)");
  expect_refused(s, cpu_shape(1, 5, 5, 1), cpu_shape(1, 3, 3, 0), "expected (1,5,5)");
  expect_refused(conv2d_shape(1, 1, 5, 5, 1, 9, 9, 1, 1), cpu_shape(1, 5, 5, 1), cpu_shape(1, 1, 1, 0), "spans 9 x 9");
}

/* A network is planned for its largest batch: what smaller ones and fewer threads need must not be more. */
static void workspace_suffices_for_smaller_batches(void **state) {
  (void)state;
  static const int sides[] = {4, 7, 14, 28};
  Error err;
  for (int i = 0; i < 4; i++) {
    CpuConv2d *conv;
    const Conv2dShape s = conv2d_shape(8, 64, sides[i], sides[i], 64, 3, 3, 1, 1);
    const CpuShape x = cpu_shape(s.c, s.h, s.w, 1), y = cpu_shape(s.k, s.h, s.w, 0);
    float *w = (float *)xcalloc(conv2d_w_count(s), sizeof *w);
    if (cpu_conv2d_open(&conv, s, x, y, w, NULL, NONE, &err) != 0) fail_msg("%s", err.message);
    assert_string_equal(cpu_conv2d_method(conv), "winograd");
    for (int n = 1; n <= 8; n++)
      for (int threads = 1; threads <= 16; threads *= 2) {
        const size_t floats = cpu_conv2d_workspace(conv, 8, threads), guards = 4096;
        float *workspace = (float *)xmalloc((floats + guards) * sizeof *workspace);
        float *x_blocks = blocks_create(x, n), *y_blocks = blocks_create(y, n);
        for (size_t k = 0; k < floats + guards; k++) workspace[k] = 7;
        for (int fewer = 1; fewer <= threads; fewer++)
          if (cpu_conv2d_workspace(conv, n, fewer) > floats)
            fail_msg("%d x %d: %d images, %d threads need more than 8 and %d", s.h, s.w, n, fewer, threads);
        cpu_conv2d_run(conv, y_blocks, x_blocks, NULL, workspace, n, threads);
        for (size_t k = floats; k < floats + guards; k++) assert_true(workspace[k] == 7);
        blocks_free(x_blocks, x, n);
        blocks_free(y_blocks, y, n);
        free(workspace);
      }
    cpu_conv2d_close(conv);
    free(w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions_of_ragged_sizes),
      cmocka_unit_test(the_first_layer_reads_plain_images),
      cmocka_unit_test(groups_and_depthwise),
      cmocka_unit_test(convolutions_of_networks),
      cmocka_unit_test(workspace_suffices_for_smaller_batches),
      cmocka_unit_test(linear_layers),
      cmocka_unit_test(pools),
      cmocka_unit_test(sums_are_clipped_and_nan_stays),
      cmocka_unit_test(refuses_shapes_that_do_not_match),
  };
  return TEST_MAIN("cpu_conv2d", tests);
}
