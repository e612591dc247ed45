/* Convolution of int8 numbers: every version gives the bits of the loops on the host, on ragged shapes, with every
 * end. */
#include "phase5_production/09_int8/conv2d_int8.cuh"

#include "phase5_production/09_int8/conv2d_int8_mma.cuh"
#include "phase5_production/09_int8/conv2d_int8_wgmma.cuh"
#include "phase5_production/09_int8/test_int8.h"

typedef enum Way { NAIVE, DP4A, MMA, WGMMA } Way;
static const char *const way_names[] = {"naive", "dp4a", "mma", "wgmma"};

template <typename T>
static void run(Way way, T *y, const int8_t *x, const int8_t *w, Conv2dShape s, Int8End end) {
  if (way == NAIVE) conv2d_int8_naive(y, x, w, s, end);
  if (way == DP4A) conv2d_int8_dp4a(y, x, w, s, end);
  if (way == MMA) conv2d_int8_mma(y, x, w, s, end);
}
static void run_wgmma(int8_t *y, const int8_t *x, const int8_t *w, Conv2dShape s, Int8End end) {
  conv2d_int8_wgmma(y, x, w, s, end);
}
static void run_wgmma(float *, const int8_t *, const int8_t *, Conv2dShape, Int8End) {}

/* Above so many products the loops of the host would take seconds. On a GPU dp4a, which they have proven on small
 * shapes, then says what is right. */
#define MOST_PRODUCTS 1e8

/* y as it shall be, on the host. */
template <typename T>
static void expected_of(T *expected, T *device_y, const int8_t *device_x, const int8_t *device_w, const int8_t *x,
                        const int8_t *w, Conv2dShape s, const TestEnd *end) {
  const size_t n_y = conv2d_y_count(s);
#ifndef SIMT_REWRITTEN
  if ((double)n_y * (conv2d_w_count(s) / s.k) > MOST_PRODUCTS) {
    CUDA_CHECK(cudaMemset(device_y, 0x55, n_y * sizeof *device_y));
    conv2d_int8_dp4a(device_y, device_x, device_w, s, end->device);
    device_download(DEVICE_GPU, expected, device_y, n_y * sizeof *expected);
    CUDA_CHECK(cudaMemset(device_y, 0x2A, n_y * sizeof *device_y)); /* nobody finds the answer there */
    return;
  }
#else
  (void)n_y, (void)device_y, (void)device_x, (void)device_w;
#endif
  conv2d_int8_cpu(expected, x, w, s, end->host);
}

/* kind: see test_end(). */
template <typename T>
static void expect_forward(Way way, Conv2dShape s, int kind) {
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s), pixels = n_y / s.n / s.k;
  int8_t *x = random_int8(n_x, 1), *w = random_int8(n_w, 2);
  T *y = (T *)xmalloc(n_y * sizeof *y), *expected = (T *)xmalloc(n_y * sizeof *y);
  TestEnd end = test_end(s.k, n_y, (int)(n_w / s.k), kind, 3, sizeof(T) == sizeof(float));
  int8_t *device_x = (int8_t *)upload_bytes(x, n_x, 1), *device_w = (int8_t *)upload_bytes(w, n_w, 1);
  T *device_y = (T *)upload_bytes(NULL, n_y, sizeof *y);
  expected_of(expected, device_y, device_x, device_w, x, w, s, &end);
  run(way, device_y, device_x, device_w, s, end.device);
  if (way == WGMMA) run_wgmma(device_y, device_x, device_w, s, end.device);
  download_bytes(y, device_y, n_y, sizeof *y, "y");
  download_bytes(NULL, device_x, n_x, 1, "x");
  download_bytes(NULL, device_w, n_w, 1, "w");
  float *wide = widen_int8(y, n_y), *wide_expected = widen_int8(expected, n_y);
  Comparison c = compare_arrays(wide, wide_expected, s.n * pixels, s.k, tolerance_make(0, 0));
  if (!c.ok)
    fail_msg("%s, %zu bytes, end %d, %s: %s", way_names[way], sizeof(T), kind, conv2d_shape_text(s).text, c.message);
  test_end_free(&end);
  void *all[] = {x, w, y, expected, wide, wide_expected};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static int pick(uint64_t *counter, const int *from, int count) {
  return from[philox4x32(33, 1, (*counter)++).word[0] % count];
}

static Conv2dShape random_shape(Way way, uint64_t *counter) {
  const int n[] = {1, 2, 3, 5}, c[] = {1, 3, 8, 16, 24, 48, 72}, h[] = {1, 2, 3, 5, 7, 8, 13},
            k[] = {1, 2, 6, 9, 66, 72};
  const int c16[] = {16, 32, 48, 64, 128, 144, 272}, k16[] = {16, 32, 64, 80, 128, 144}; /* such as TMA copies */
  const int side[] = {1, 2, 3, 3, 5}, stride[] = {1, 1, 2, 3}, padding[] = {0, 1, 2};
  const int dilation[] = {1, 1, 2}, groups[] = {1, 1, 2, 3};
  const bool any = way != WGMMA;
  for (;;) {
    const Conv2dShape s = {
        pick(counter, n, 4),        pick(counter, any ? c : c16, 7),    pick(counter, h, 7),
        pick(counter, h, 7),        pick(counter, any ? k : k16, 6),    pick(counter, side, 5),
        pick(counter, side, 5),     pick(counter, stride, any ? 4 : 3), pick(counter, stride, any ? 4 : 3),
        pick(counter, padding, 3),  pick(counter, padding, 3),          pick(counter, dilation, 3),
        pick(counter, dilation, 3), pick(counter, groups, any ? 4 : 2)};
    if (conv2d_shape_check(s, NULL) != 0) continue;
    if ((double)conv2d_y_count(s) * s.c * s.r * s.s > (any ? 3e5 : 1e6)) continue; /* keeps the emulated run short */
    return s;
  }
}

static void expect_shapes(Way way, int count) {
  uint64_t counter = way * 1000;
  for (int i = 0; i < count; i++) {
    const Conv2dShape s = random_shape(way, &counter);
    if (way != WGMMA && i % 4 == 3)
      expect_forward<float>(way, s, i % 6 + i / 4 % 2 * 16);
    else
      expect_forward<int8_t>(way, s, (i * 37 + 5) % 128);
  }
}

static void naive_has_the_bits(void **state) {
  (void)state;
  test_requires_gpu();
  expect_shapes(NAIVE, 10);
}

static void dp4a_has_the_bits(void **state) {
  (void)state;
  test_requires_gpu();
  expect_shapes(DP4A, 24);
  expect_forward<int8_t>(DP4A, conv2d_shape(1, 64, 5, 16, 80, 3, 3, 1, 1), 7 + 64); /* several steps, several blocks */
}

static void mma_has_the_bits(void **state) {
  (void)state;
  test_requires_gpu();
  if (mma_refusal() != NULL) {
    print_message("skipped: %s\n", mma_refusal());
    skip();
  }
  expect_shapes(MMA, 24);
  expect_forward<int8_t>(MMA, conv2d_shape(1, 128, 5, 16, 64, 3, 3, 1, 1), 15);
#ifndef SIMT_REWRITTEN
  expect_forward<int8_t>(MMA, conv2d_shape(9, 128, 57, 58, 144, 3, 3, 1, 1), 7); /* the larger tiles */
#endif
}

static void wgmma_has_the_bits(void **state) {
  (void)state;
  test_requires_gpu();
  if (conv2d_int8_wgmma_refusal() != NULL) {
    print_message("skipped: %s\n", conv2d_int8_wgmma_refusal());
    skip();
  }
#ifdef SIMT_REWRITTEN
  expect_shapes(WGMMA, 6);
  expect_forward<int8_t>(WGMMA, conv2d_shape(3, 64, 13, 11, 80, 3, 3, 1, 1), 7);
  expect_forward<int8_t>(WGMMA, conv2d_shape(3, 64, 13, 11, 80, 3, 3, 1, 1), 2 + 8 + 16 + 32 + 64);
  expect_forward<int8_t>(WGMMA, conv2d_shape(2, 144, 9, 10, 64, 3, 3, 2, 1), 5);
  expect_forward<int8_t>(WGMMA, conv2d_shape(24, 64, 14, 14, 64, 3, 3, 1, 1), 7 + 112); /* three tiles in a block */
  expect_forward<int8_t>(WGMMA, conv2d_shape(33, 144, 7, 14, 48, 1, 1, 1, 0), 5);
  expect_forward<int8_t>(WGMMA, conv2d_shape(9, 400, 12, 12, 80, 3, 3, 1, 1), 7 + 16); /* weights do not fit */
#else
  print_message("above %.0g products of a shape dp4a has the reference's place\n", MOST_PRODUCTS);
  expect_shapes(WGMMA, 200);
  for (int kind = 0; kind < 128; kind += 11) {
    expect_forward<int8_t>(WGMMA, conv2d_shape(9, 64, 56, 56, 64, 3, 3, 1, 1), kind);
    expect_forward<int8_t>(WGMMA, conv2d_shape(9, 128, 28, 28, 144, 3, 3, 2, 1), kind);
    expect_forward<int8_t>(WGMMA, conv2d_shape(33, 144, 7, 7, 272, 3, 3, 1, 1), kind);
    expect_forward<int8_t>(WGMMA, conv2d_shape(3, 80, 31, 33, 144, 1, 1, 1, 0), kind); /* one row */
    expect_forward<int8_t>(WGMMA, conv2d_shape(1, 16, 5, 700, 16, 3, 3, 1, 1), kind);  /* parts of rows */
  }
  /* Many tiles in a block: weights that stay, and weights that pass. */
  expect_forward<int8_t>(WGMMA, conv2d_shape(30, 64, 56, 56, 64, 3, 3, 1, 1), 7 + 112);
  expect_forward<int8_t>(WGMMA, conv2d_shape(60, 128, 28, 28, 128, 3, 3, 2, 1), 5 + 16);
  expect_forward<int8_t>(WGMMA, conv2d_shape(150, 512, 7, 7, 128, 3, 3, 1, 1), 15 + 32);
  expect_forward<int8_t>(WGMMA, conv2d_shape(128, 256, 14, 14, 256, 1, 1, 2, 0), 1 + 16);
#endif
  expect_forward<int8_t>(WGMMA, conv2d_shape(2, 3, 9, 9, 8, 3, 3, 1, 1), 7); /* goes to mma */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(naive_has_the_bits),
      cmocka_unit_test(dp4a_has_the_bits),
      cmocka_unit_test(mma_has_the_bits),
      cmocka_unit_test(wgmma_has_the_bits),
  };
  return TEST_MAIN("conv2d_int8", tests);
}
