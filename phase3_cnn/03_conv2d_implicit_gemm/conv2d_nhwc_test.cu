/* NHWC: the layouts, and every version on bfloat16, half and TF32 against the reference in NCHW, on ragged shapes. */
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc.cuh"

#include "phase3_cnn/01_conv2d_naive/conv2d_cpu.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_mma.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_wgmma.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/test_conv2d_nhwc.h"

/* ---------------------------------------------------------------------------------------------------------------- */

typedef enum Way { NAIVE, MMA, TAPS, WGMMA } Way;
static const char *const way_names[] = {"naive", "mma", "wgmma_taps", "wgmma"};

template <typename T>
static void run(Way way, T *y, const T *x, const T *w, const float *bias, Conv2dShape s, bool relu) {
  if (way == NAIVE) conv2d_forward_nhwc_naive(y, x, w, bias, s, relu);
  if (way == MMA) conv2d_forward_nhwc_mma(y, x, w, bias, s, relu);
}
template <typename T>
static void run_wgmma(Way way, T *y, const T *x, const T *w, const float *bias, Conv2dShape s, bool relu) {
  if (way == TAPS) conv2d_forward_nhwc_wgmma_taps(y, x, w, bias, s, relu);
  if (way == WGMMA) conv2d_forward_nhwc_wgmma(y, x, w, bias, s, relu);
}
static void run_wgmma(Way, float *, const float *, const float *, const float *, Conv2dShape, bool) {} /* no such way */

template <typename T>
static void expect_forward(Way way, Conv2dShape s, bool biased, bool relu) {
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s), pixels = n_y / s.n / s.k;
  float *x = arrays_random(n_x, 0), *w = arrays_random(n_w, 0), *y = arrays_poison(n_y), *bias = arrays_random(s.k, 3);
  T *device_x = upload_random<T>(x, n_x, 1), *device_w = upload_random<T>(w, n_w, 2);
  T *device_y = (T *)guard_alloc_elements(DEVICE_GPU, n_y, sizeof(T));
  float *device_bias = arrays_upload(DEVICE_GPU, bias, s.k);
  run(way, device_y, device_x, device_w, biased ? device_bias : NULL, s, relu);
  run_wgmma(way, device_y, device_x, device_w, biased ? device_bias : NULL, s, relu);
  download(y, device_y, n_y, "y");
  download((float *)NULL, device_x, n_x, "x");
  download((float *)NULL, device_w, n_w, "w");
  arrays_download(DEVICE_GPU, NULL, device_bias, s.k, "bias");

  float *x_first = channels_first(x, s.n, s.c, (size_t)s.h * s.w),
        *w_first = channels_first(w, s.k, s.c / s.groups, (size_t)s.r * s.s);
  float *y_first = channels_first(y, s.n, s.k, pixels), *expected = arrays_poison(n_y);
  conv2d_forward_cpu(expected, x_first, w_first, biased ? bias : NULL, s);
  for (size_t i = 0; i < n_y && relu; i++) expected[i] = fmaxf(expected[i], 0);
  Comparison c = compare_arrays(y_first, expected, s.n * s.k, pixels, tolerance_of<T>(n_w / s.k + 1));
  if (!c.ok) fail_msg("%s, %zu bytes, %s: %s", way_names[way], sizeof(T), conv2d_shape_text(s).text, c.message);
  float *all[] = {x, w, y, bias, x_first, w_first, y_first, expected};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static int pick(uint64_t *counter, const int *from, int count) {
  PhiloxBlock block = philox4x32(33, 1, (*counter)++);
  return from[block.word[0] % count];
}

template <typename T>
static void expect_shapes(Way way, int count) {
  const int n[] = {1, 2, 3, 5}, c[] = {1, 3, 8, 16, 24, 48, 72}, h[] = {1, 2, 3, 5, 7, 8, 13},
            k[] = {1, 2, 6, 9, 66, 72};
  const int c8[] = {8, 16, 24, 64, 72, 128, 136}, k8[] = {8, 16, 24, 64, 72, 136}; /* such as TMA copies */
  const int side[] = {1, 2, 3, 3, 5}, stride[] = {1, 1, 2, 3}, padding[] = {0, 1, 2};
  const bool any = way < TAPS;
  const int dilation[] = {1, 1, 2}, groups[] = {1, 1, 2, 3};
  uint64_t counter = way * 1000;
  for (int done = 0; done < count;) {
    Conv2dShape s = {pick(&counter, n, 4),        pick(&counter, any ? c : c8, 7),    pick(&counter, h, 7),
                     pick(&counter, h, 7),        pick(&counter, any ? k : k8, 6),    pick(&counter, side, 5),
                     pick(&counter, side, 5),     pick(&counter, stride, 4),          pick(&counter, stride, 4),
                     pick(&counter, padding, 3),  pick(&counter, padding, 3),         pick(&counter, dilation, 3),
                     pick(&counter, dilation, 3), pick(&counter, groups, any ? 4 : 2)};
    if (conv2d_shape_check(s, NULL) != 0) continue;
    if ((double)conv2d_y_count(s) * s.c * s.r * s.s > (any ? 3e5 : 1e7)) continue; /* keeps the emulated run short */
    expect_forward<T>(way, s, done % 2, done % 3 == 0);
    done++;
  }
}

static void naive_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  expect_shapes<__nv_bfloat16>(NAIVE, 15);
  expect_shapes<__half>(NAIVE, 5);
  expect_shapes<float>(NAIVE, 5);
}

static void mma_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  if (mma_refusal() != NULL) {
    print_message("skipped: %s\n", mma_refusal());
    skip();
  }
  expect_shapes<__nv_bfloat16>(MMA, 20);
  expect_shapes<__half>(MMA, 10);
  expect_shapes<float>(MMA, 15);
  expect_forward<__nv_bfloat16>(MMA, conv2d_shape(1, 64, 5, 16, 64, 3, 3, 1, 1), true, true);    /* several rounds */
#ifndef SIMT_REWRITTEN                                                                           /* minutes there */
  expect_forward<__nv_bfloat16>(MMA, conv2d_shape(9, 128, 57, 58, 136, 3, 3, 1, 1), true, true); /* the larger tiles */
  expect_forward<__half>(MMA, conv2d_shape(9, 128, 57, 58, 136, 3, 3, 1, 1), true, true);
  expect_forward<float>(MMA, conv2d_shape(9, 64, 57, 58, 136, 3, 3, 1, 1), true, true);
#endif
}

static void wgmma_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  if (conv2d_wgmma_refusal() != NULL) {
    print_message("skipped: %s\n", conv2d_wgmma_refusal());
    skip();
  }
  for (int way = TAPS; way <= WGMMA; way++) {
    expect_shapes<__nv_bfloat16>((Way)way, 60);
    expect_shapes<__half>((Way)way, 30);
    expect_forward<__nv_bfloat16>((Way)way, conv2d_shape(9, 64, 56, 56, 64, 3, 3, 1, 1), true, true);
    expect_forward<__nv_bfloat16>((Way)way, conv2d_shape(9, 128, 28, 28, 136, 3, 3, 2, 1), true, false);
    expect_forward<__nv_bfloat16>((Way)way, conv2d_shape(33, 136, 7, 7, 264, 3, 3, 1, 1), false, true);
    expect_forward<__nv_bfloat16>((Way)way, conv2d_shape(3, 72, 31, 33, 136, 1, 1, 1, 0), true, true); /* one row */
    expect_forward<__nv_bfloat16>((Way)way, conv2d_shape(1, 8, 5, 700, 8, 3, 3, 1, 1), true, true); /* parts of rows */
    expect_forward<__nv_bfloat16>((Way)way, conv2d_shape(2, 3, 9, 9, 8, 3, 3, 1, 1), true, true);   /* goes to mma */
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */

template <typename T>
static void expect_layouts(int n, int c, int pixels) {
  size_t count = (size_t)n * c * pixels;
  float *wide = arrays_random(count, 5), *back = arrays_poison(count), *there = arrays_poison(count);
  for (size_t i = 0; i < count; i++) {
    T narrow;
    conv2d_narrow(&narrow, wide[i]);
    wide[i] = conv2d_widen(narrow);
  }
  float *from = arrays_upload(DEVICE_GPU, wide, count), *to = arrays_upload(DEVICE_GPU, back, count);
  T *middle = (T *)guard_alloc_elements(DEVICE_GPU, count, sizeof(T));
  conv2d_to_nhwc(middle, from, n, c, pixels);
  conv2d_to_nchw(to, middle, n, c, pixels);
  download(there, middle, count, "nhwc");
  arrays_download(DEVICE_GPU, back, to, count, "nchw");
  arrays_download(DEVICE_GPU, NULL, from, count, "x");
  float *first = channels_first(there, n, c, pixels);
  Comparison a = compare_arrays(first, wide, n * c, pixels, tolerance_make(0, 0));
  Comparison b = compare_arrays(back, wide, n * c, pixels, tolerance_make(0, 0));
  if (!a.ok || !b.ok) fail_msg("(%d,%d,%d): to NHWC: %s; and back: %s", n, c, pixels, a.message, b.message);
  float *all[] = {wide, back, there, first};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void layouts_are_exchanged(void **state) {
  (void)state;
  test_requires_gpu();
  const int shapes[][3] = {{1, 1, 1}, {2, 3, 35}, {3, 64, 49}, {1, 33, 31}, {2, 1, 100}, {5, 40, 1}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    expect_layouts<float>(shapes[i][0], shapes[i][1], shapes[i][2]);
    expect_layouts<__nv_bfloat16>(shapes[i][0], shapes[i][1], shapes[i][2]);
    expect_layouts<__half>(shapes[i][0], shapes[i][1], shapes[i][2]);
  }
}

/* A sum that is not a number must not become 0. */
static void relu_keeps_nan(void **state) {
  (void)state;
  test_requires_gpu();
  for (int way = NAIVE; way <= MMA; way++) {
    const Conv2dShape s = conv2d_shape(1, 8, 4, 4, 8, 1, 1, 1, 0);
    float x[128], w[64], y[128], bias[8] = {NAN, -1, 1};
    __nv_bfloat16 *device_x = upload_random<__nv_bfloat16>(x, 128, 1),
                  *device_w = upload_random<__nv_bfloat16>(w, 64, 2);
    CUDA_CHECK(cudaMemset(device_w, 0, 64 * sizeof *device_w));
    __nv_bfloat16 *device_y = (__nv_bfloat16 *)guard_alloc_elements(DEVICE_GPU, 128, sizeof *device_y);
    float *device_bias = arrays_upload(DEVICE_GPU, bias, 8);
    run((Way)way, device_y, device_x, device_w, device_bias, s, true);
    download(y, device_y, 128, "y");
    download((float *)NULL, device_x, 128, "x");
    download((float *)NULL, device_w, 64, "w");
    arrays_download(DEVICE_GPU, NULL, device_bias, 8, "bias");
    for (int i = 0; i < 128; i++)
      if (i % 8 == 0 ? !isnan(y[i]) : y[i] != (i % 8 == 2)) fail_msg("%s: y[%d] is %g", way_names[way], i, y[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layouts_are_exchanged), cmocka_unit_test(naive_matches_reference),
      cmocka_unit_test(mma_matches_reference), cmocka_unit_test(wgmma_matches_reference),
      cmocka_unit_test(relu_keeps_nan),
  };
  return TEST_MAIN("conv2d_nhwc", tests);
}
