/* cpu_conv2d_int8_test.cu - the CPU's kernels of int8 have the bits of the loops of the formula, for every processor
 * that this machine can stand in for.
 */
#include "common/philox.h"
#include "common/test.h"

#include "common/compare.h"
#include "phase5_production/09_int8/cpu_conv2d_int8.h"
#include "phase5_production/09_int8/linear_int8.cuh"
#include "phase5_production/09_int8/pool_int8.cuh"
#include "phase5_production/09_int8/test_cpu_int8.h"
#include "phase5_production/09_int8/test_int8.h"

enum { BAND = 64 };

/* n images of elements of so many bytes, between two bands that nothing may write; all is filled with 0x5A. */
static char *blocks_create(CpuShape s, int n, size_t bytes) {
  const size_t all = n * cpu_count(s) * bytes + 2 * BAND;
  char *x = (char *)xmalloc(all);
  memset(x, 0x5A, all);
  return x + BAND;
}

static void blocks_free(char *x, CpuShape s, int n, size_t bytes) {
  for (int i = 0; i < BAND; i++)
    if (x[i - BAND] != 0x5A || x[n * cpu_count(s) * bytes + i] != 0x5A)
      fail_msg("byte %d of a band beside the array was written", i);
  free(x - BAND);
}

/* What lies in the border is the number zero: read as a larger image without border. */
static void check_border(const char *y, bool positive, CpuShape s, int n, const char *kernels) {
  const CpuShape whole = cpu_shape(s.c, s.h + 2 * s.border, s.w + 2 * s.border, 0);
  int8_t *all = (int8_t *)xmalloc((size_t)n * whole.h * whole.w * s.c);
  cpu_int8_unpack(all, y, positive, whole, s.c, n, 1);
  for (size_t i = 0; i < (size_t)n * whole.h * whole.w * s.c; i++) {
    const int w = (int)(i / s.c) % whole.w, h = (int)(i / s.c / whole.w) % whole.h;
    const bool inside = h >= s.border && h < s.border + s.h && w >= s.border && w < s.border + s.w;
    if (!inside && all[i] != 0) fail_msg("%s: row %d, column %d of the border is %d", kernels, h, w, all[i]);
  }
  free(all);
}

typedef struct Case {
  Conv2dShape shape;
  int more_border, y_border, threads, bias, adds, relu, to_float;
  float middle;
  int positive; /* which arrays are uint8: 1 x, 2 y, 4 added */
} Case;

typedef struct Numbers {
  int8_t *x, *w, *added;
  float *scale;
  int32_t *bias;
} Numbers;

static Numbers numbers_create(const Case *t, int depth, uint32_t seed) {
  const Conv2dShape s = t->shape;
  Numbers a = {random_int8(conv2d_x_count(s), seed), random_int8(conv2d_w_count(s), seed + 1),
               random_int8(conv2d_y_count(s), seed + 2), (float *)xmalloc(s.k * sizeof(float)),
               (int32_t *)xmalloc(s.k * sizeof(int32_t))};
  for (int k = 0; k < s.k; k++) {
    a.scale[k] = (0.5f + philox_uniform(philox4x32(seed, 3, k).word[0])) * 100 / (5400 * sqrtf((float)depth));
    a.bias[k] = (int32_t)(philox4x32(seed, 4, k).word[0] % 20001) - 10000;
  }
  return a;
}

static void numbers_free(Numbers a) { free(a.x), free(a.w), free(a.added), free(a.scale), free(a.bias); }

template <typename T>
static void check_equal(const T *y, const T *expected, size_t rows, size_t cols, const char *what,
                        const char *kernels) {
  float *is = widen_int8(y, rows * cols), *should = widen_int8(expected, rows * cols);
  const Comparison c = compare_arrays(is, should, rows, cols, tolerance_make(0, 0));
  if (!c.ok) fail_msg("%s, %s: %s", what, kernels, c.message);
  free(is), free(should);
}

/* A convolution, or, linear, a product of images whose numbers lie as (H,W,C). */
static void check_case(const Case *t, bool linear, const char *kernels, uint32_t seed) {
  const Conv2dShape s = t->shape;
  const int padding = s.padding_h > s.padding_w ? s.padding_h : s.padding_w;
  const Numbers a = numbers_create(t, s.c / s.groups * s.r * s.s, seed);
  const size_t y_count = conv2d_y_count(s), bytes = t->to_float ? sizeof(float) : cpu_int8_bytes();
  Int8End end = int8_end_of(a.scale, t->bias ? a.bias : NULL, t->relu);
  end.added = t->adds ? a.added : NULL;
  end.added_scale = 0.37f;
  end.middle = t->middle;
  end.x_positive = t->positive & 1;
  end.y_positive = t->positive & 2;
  end.added_positive = t->positive & 4;
  const CpuInt8End cpu_end = {a.scale,
                              end.bias,
                              end.middle,
                              end.added_scale,
                              t->relu != 0,
                              t->to_float != 0,
                              end.x_positive != 0,
                              end.y_positive != 0,
                              end.added_positive != 0};
  const CpuShape x_shape = cpu_shape(s.c, s.h, s.w, padding + t->more_border);
  const CpuShape y_shape = cpu_shape(s.k, conv2d_out_h(s), conv2d_out_w(s), t->y_border);
  char *x = blocks_create(x_shape, s.n, cpu_int8_bytes()), *y = blocks_create(y_shape, s.n, bytes);
  char *added = blocks_create(y_shape, s.n, cpu_int8_bytes());
  cpu_int8_pack(x, a.x, cpu_end.x_positive, x_shape, s.c, s.n, t->threads);
  cpu_int8_pack(added, a.added, cpu_end.added_positive, y_shape, s.k, s.n, 1);
  CpuInt8 *conv;
  Error err;
  if ((linear ? cpu_int8_linear_open(&conv, x_shape, s.k, a.w, cpu_end, &err)
              : cpu_int8_conv2d_open(&conv, s, x_shape, y_shape, a.w, cpu_end, &err)) != 0)
    fail_msg("%s", err.message);
  cpu_int8_run(conv, y, x, t->adds ? added : NULL, s.n, t->threads);
  if (t->to_float) {
    float *expected = (float *)xmalloc(y_count * 4), *plain = (float *)xmalloc(y_count * 4);
    float *nhwc = (float *)xmalloc(y_count * 4);
    conv2d_int8_cpu(expected, a.x, a.w, s, end);
    cpu_unpack(plain, (const float *)y, y_shape, s.n, 1);
    const int pixels = y_shape.h * y_shape.w;
    for (size_t i = 0; i < y_count; i++)
      nhwc[i] = plain[(i / s.k / pixels * s.k + i % s.k) * pixels + i / s.k % pixels];
    check_equal(nhwc, expected, y_count / s.k, s.k, conv2d_shape_text(s).text, kernels);
    free(expected), free(plain), free(nhwc);
  } else {
    int8_t *expected = (int8_t *)xmalloc(y_count), *nhwc = (int8_t *)xmalloc(y_count);
    conv2d_int8_cpu(expected, a.x, a.w, s, end);
    cpu_int8_unpack(nhwc, y, cpu_end.y_positive, y_shape, s.k, s.n, 1);
    check_equal(nhwc, expected, y_count / s.k, s.k, conv2d_shape_text(s).text, kernels);
    check_border(y, cpu_end.y_positive, y_shape, s.n, kernels);
    free(expected), free(nhwc);
  }
  cpu_int8_close(conv);
  blocks_free(x, x_shape, s.n, cpu_int8_bytes());
  blocks_free(y, y_shape, s.n, bytes);
  blocks_free(added, y_shape, s.n, cpu_int8_bytes());
  numbers_free(a);
}

static void check_all(const Case *cases, size_t count, bool linear) {
  for (size_t k = 0; k < sizeof all_kernels / sizeof *all_kernels; k++) {
    if (cpu_int8_kernels(all_kernels[k]) == NULL) continue; /* this processor lacks them */
    for (size_t i = 0; i < count; i++) check_case(&cases[i], linear, all_kernels[k], (uint32_t)(10 * i));
  }
  cpu_int8_kernels(NULL);
}

static void convolutions_have_the_bits_of_the_loops(void **state) {
  (void)state;
  const Case cases[] = {
      /*   n  c  h  w   k   r  s  stride pad  dilation groups  border y, threads, bias, adds, relu, float, middle,
       * positive */
      {{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1}, 0, 0, 1, 0, 0, 0, 0, 0, 0},
      {{2, 3, 9, 17, 33, 7, 7, 2, 2, 3, 3, 1, 1, 1}, 0, 1, 2, 1, 0, 1, 0, 0, 1},
      {{1, 33, 9, 15, 80, 3, 3, 1, 1, 1, 1, 1, 1, 1}, 1, 1, 2, 1, 1, 1, 0, 0, 3},
      {{1, 64, 7, 7, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1}, 0, 2, 2, 1, 1, 1, 0, 0.7f, 7},
      {{3, 18, 5, 6, 17, 1, 1, 1, 1, 0, 0, 1, 1, 1}, 0, 0, 1, 0, 1, 0, 0, 0, 2},
      {{1, 20, 13, 11, 48, 1, 1, 2, 2, 0, 0, 1, 1, 1}, 0, 0, 1, 1, 0, 0, 1, 0, 1},
      {{1, 5, 12, 17, 31, 5, 3, 3, 3, 2, 1, 1, 1, 1}, 0, 1, 1, 1, 0, 1, 0, 0, 2},
      {{1, 7, 15, 19, 16, 3, 2, 1, 2, 2, 0, 2, 3, 1}, 0, 0, 2, 1, 0, 0, 0, 0, 3},
      {{1, 32, 6, 9, 64, 3, 3, 1, 1, 1, 1, 1, 1, 2}, 0, 0, 2, 1, 1, 1, 0, 0, 6},
      {{1, 12, 6, 9, 30, 3, 3, 1, 1, 1, 1, 1, 1, 3}, 0, 0, 1, 1, 0, 0, 0, 0, 5},
      {{2, 35, 9, 10, 35, 3, 3, 2, 1, 1, 1, 1, 1, 35}, 0, 1, 2, 1, 1, 1, 0, 0, 3},
  };
  check_all(cases, sizeof cases / sizeof *cases, false);
}

/* Every product has the largest size, all of one sign: a kernel that adds in 16 bits shows. */
static void the_largest_sums_are_exact(void **state) {
  (void)state;
  const Conv2dShape s = conv2d_shape(1, 64, 4, 4, 16, 3, 3, 1, 1);
  for (size_t k = 0; k < sizeof all_kernels / sizeof *all_kernels; k++) {
    if (cpu_int8_kernels(all_kernels[k]) == NULL) continue;
    for (int signs = 0; signs < 6; signs++) { /* x -128, 127, 255; w the same but for 255 */
      int8_t x[64 * 16], w[64 * 9 * 16], y[16 * 16], expected[16 * 16];
      memset(x, signs / 2 == 0 ? -128 : signs / 2 == 1 ? 127 : 255, sizeof x);
      memset(w, signs % 2 ? 127 : -128, sizeof w);
      const bool positive = signs / 2 == 2;
      float scale[16];
      for (int i = 0; i < 16; i++) scale[i] = 6e-6f;
      const CpuInt8End end = {scale, NULL, 0, 0, false, false, positive, false, false};
      Int8End loops = int8_end_of(scale, NULL, 0);
      loops.x_positive = positive;
      const CpuShape x_shape = cpu_shape(64, 4, 4, 1), y_shape = cpu_shape(16, 4, 4, 0);
      char *x_blocks = blocks_create(x_shape, 1, cpu_int8_bytes()),
           *y_blocks = blocks_create(y_shape, 1, cpu_int8_bytes());
      cpu_int8_pack(x_blocks, x, positive, x_shape, 64, 1, 1);
      CpuInt8 *conv;
      Error err;
      if (cpu_int8_conv2d_open(&conv, s, x_shape, y_shape, w, end, &err) != 0) fail_msg("%s", err.message);
      cpu_int8_run(conv, y_blocks, x_blocks, NULL, 1, 1);
      cpu_int8_unpack(y, y_blocks, false, y_shape, 16, 1, 1);
      conv2d_int8_cpu(expected, x, w, s, loops);
      check_equal(y, expected, 16, 16, "all x and all w at an end of their range", all_kernels[k]);
      cpu_int8_close(conv);
      blocks_free(x_blocks, x_shape, 1, cpu_int8_bytes());
      blocks_free(y_blocks, y_shape, 1, cpu_int8_bytes());
    }
  }
  cpu_int8_kernels(NULL);
}

/* A linear layer of images is a convolution whose filters cover them. */
static void linear_layers_have_the_bits_of_the_loops(void **state) {
  (void)state;
  const Case cases[] = {
      {{1, 400, 1, 1, 120, 1, 1, 1, 1, 0, 0, 1, 1, 1}, 0, 0, 1, 1, 0, 1, 0, 0, 1},
      {{17, 16, 5, 5, 84, 5, 5, 1, 1, 0, 0, 1, 1, 1}, 0, 0, 2, 1, 0, 1, 0, 0, 2},
      {{3, 33, 2, 3, 10, 2, 3, 1, 1, 0, 0, 1, 1, 1}, 1, 0, 1, 1, 0, 0, 1, 0, 1},
  };
  check_all(cases, sizeof cases / sizeof *cases, true);
}

static void pools_and_sums_have_the_bits_of_the_loops(void **state) {
  (void)state;
  const struct {
    CpuShape x;
    CpuPool2d pool;
    int y_border, n;
  } cases[] = {{{16, 28, 28, 0}, {2, 2, 2, 2, 0, 0, false, false}, 1, 1},
               {{17, 11, 9, 1}, {3, 3, 2, 2, 1, 1, false, false}, 0, 2},
               {{5, 7, 8, 0}, {3, 2, 1, 2, 1, 0, true, false}, 2, 1},
               {{33, 7, 8, 2}, {3, 3, 2, 1, 1, 1, true, true}, 0, 3},
               {{40, 7, 5, 1}, {7, 5, 1, 1, 0, 0, true, false}, 0, 2}};
  for (size_t k = 0; k < sizeof all_kernels / sizeof *all_kernels; k++) {
    if (cpu_int8_kernels(all_kernels[k]) == NULL) continue;
    const size_t bytes = cpu_int8_bytes();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      const CpuShape s = cases[i].x;
      const CpuPool2d pool = cases[i].pool;
      const int n = cases[i].n;
      const Pool2dWindow window = {pool.kernel_h, pool.kernel_w,  pool.stride_h,
                                   pool.stride_w, pool.padding_h, pool.padding_w};
      const Pool2dShape shape = pool2d_shape_of(n, s.c, s.h, s.w, window);
      const CpuShape to = cpu_shape(s.c, pool2d_out_h(shape), pool2d_out_w(shape), cases[i].y_border);
      const size_t x_count = (size_t)n * s.c * s.h * s.w, y_count = (size_t)n * s.c * to.h * to.w;
      int8_t *x = random_int8(x_count, (uint32_t)i), *other = random_int8(x_count, (uint32_t)i + 7);
      int8_t *y = (int8_t *)xmalloc(x_count + y_count), *expected = (int8_t *)xmalloc(x_count + y_count);
      char *x_blocks = blocks_create(s, n, bytes), *y_blocks = blocks_create(to, n, bytes);
      char *other_blocks = blocks_create(s, n, bytes);
      const bool x_positive = i % 2 == 0, y_positive = pool.average ? i % 3 == 0 : x_positive;
      const PoolInt8Mean mean = {1.7f, pool.count_padding, y_positive};
      const CpuInt8Pool cpu_pool = {pool, mean.unit, x_positive, y_positive};
      const AddInt8 add = {0.61f, 0.83f, (int)i % 2, x_positive, i % 3 == 0, i > 2};
      const CpuInt8Add cpu_add = {add.scale_a, add.scale_b, add.relu != 0, x_positive, i % 3 == 0, i > 2};
      cpu_int8_pack(x_blocks, x, x_positive, s, s.c, n, 1);
      cpu_int8_pack(other_blocks, other, add.b_positive != 0, s, s.c, n, 2);
      pool2d_int8_cpu(expected, x, x_positive, shape, pool.average ? &mean : NULL);
      cpu_int8_pool2d_run(y_blocks, to, x_blocks, s, cpu_pool, n, 2);
      cpu_int8_unpack(y, y_blocks, y_positive, to, s.c, n, 1);
      check_equal(y, expected, y_count / s.c, s.c, pool.average ? "mean" : "largest", all_kernels[k]);
      check_border(y_blocks, y_positive, to, n, all_kernels[k]);

      add_int8_cpu(expected, x, other, add, x_count);
      cpu_int8_add_run(x_blocks, x_blocks, other_blocks, s, cpu_add, n, 2);
      cpu_int8_unpack(y, x_blocks, add.y_positive != 0, s, s.c, n, 1);
      check_equal(y, expected, x_count / s.c, s.c, "sum", all_kernels[k]);
      check_border(x_blocks, add.y_positive != 0, s, n, all_kernels[k]);
      blocks_free(x_blocks, s, n, bytes);
      blocks_free(other_blocks, s, n, bytes);
      blocks_free(y_blocks, to, n, bytes);
      free(x), free(other), free(y), free(expected);
    }
  }
  cpu_int8_kernels(NULL);
}

static void quantizes_as_the_loops_do(void **state) {
  (void)state;
  enum { C = 19, H = 3, W = 5, N = 2, COUNT = N * C * H * W };
  const CpuShape s = cpu_shape(C, H, W, 2), other = cpu_shape(C, H, W, 1);
  float x[COUNT], back[COUNT];
  for (int i = 0; i < COUNT; i++) x[i] = (philox_uniform(philox4x32(1, 2, i).word[0]) - 0.5f) * 3;
  const float ends[] = {NAN, INFINITY, -INFINITY, 0.05f, 0.15f, -0.05f, -0.25f, 12.7f, 12.75f, -12.85f, 1e30f};
  memcpy(x, ends, sizeof ends);
  for (size_t k = 0; k < 2 * sizeof all_kernels / sizeof *all_kernels; k++) {
    const bool positive = k % 2;
    const char *const kernels = all_kernels[k / 2];
    if (cpu_int8_kernels(kernels) == NULL) continue;
    int8_t expected[COUNT], y[COUNT];
    float expected_back[COUNT];
    int8_from_nchw_cpu(expected, x, 0.1f, positive, N, C, H * W, C);
    int8_to_nchw_cpu(expected_back, expected, 0.1f, positive, N, C, H * W, C);
    char *blocks = blocks_create(s, N, cpu_int8_bytes());
    cpu_int8_quantize(blocks, x, 0.1f, positive, s, N, 2);
    cpu_int8_unpack(y, blocks, positive, s, C, N, 1);
    check_equal(y, expected, N * H * W, C, "quantised", kernels);
    check_border(blocks, positive, s, N, kernels);
    cpu_int8_dequantize(back, blocks, 0.1f, positive, s, N, 1);
    check_equal(back, expected_back, N * C, H * W, "and back", kernels);
    float *floats = (float *)xmalloc(N * cpu_count(other) * sizeof *floats);
    cpu_pack(floats, x, other, N, 1);
    cpu_int8_quantize_blocks(blocks, s, floats, other, 0.1f, positive, N, 2);
    cpu_int8_unpack(y, blocks, positive, s, C, N, 1);
    check_equal(y, expected, N * H * W, C, "from blocks", kernels);
    check_border(blocks, positive, s, N, kernels);
    blocks_free(blocks, s, N, cpu_int8_bytes());
    free(floats);
  }
  cpu_int8_kernels(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_log_has_the_kernels),
      cmocka_unit_test(convolutions_have_the_bits_of_the_loops),
      cmocka_unit_test(the_largest_sums_are_exact),
      cmocka_unit_test(linear_layers_have_the_bits_of_the_loops),
      cmocka_unit_test(pools_and_sums_have_the_bits_of_the_loops),
      cmocka_unit_test(quantizes_as_the_loops_do),
  };
  return TEST_MAIN("cpu_conv2d_int8", tests);
}
