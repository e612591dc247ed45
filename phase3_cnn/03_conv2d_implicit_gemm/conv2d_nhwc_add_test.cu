/* The end of a residual block in one launch: convolution, bias, what the block adds, ReLU; and floats by wgmma. On
 * bfloat16, half and TF32 against the loops in double, on ragged shapes. */
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc.cuh"

#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_mma.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_wgmma.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/test_conv2d_nhwc.h"

typedef enum Way { MMA, WGMMA, WGMMA_ONE, WGMMA_TWO } Way; /* the last two: kernels of 128 sums, 1 and 2 blocks */
static const char *const way_names[] = {"mma", "wgmma", "wgmma of 64 filters", "wgmma of 128 filters"};

typedef enum Added { NOTHING, IMAGE, PRODUCT } Added; /* PRODUCT: of an image twice as large, with stride 2 */

#ifdef CONV2D_WITHOUT_WGMMA
template <typename T>
static void run_wgmma(Way, T *, const T *, const T *, const float *, Conv2dShape, Conv2dNhwcAdd<T>) {}
#else
/* Kernels of one kind of tile: few enough for the emulator's compiler. */
template <typename T, int BLOCKS>
static void run_blocks(T *y, const T *x, const T *w, const float *bias, Conv2dShape s, Conv2dNhwcAdd<T> add) {
  Conv2dNhwcLimits limits = conv2d_nhwc_add_limits(add);
  Conv2dNhwcPlan plan = {};
  Error err;
  limits.pixels = 128;
  limits.blocks = BLOCKS;
  if (conv2d_nhwc_plan(&plan, s, false, limits, matmul_mma_multiprocessors(), &err) != 0) fail_msg("%s", err.message);
  conv2d_nhwc_wgmma_run<T, 128, BLOCKS, false>(y, x, w, bias, s, true, &plan, add);
}

template <typename T>
static void run_wgmma(Way way, T *y, const T *x, const T *w, const float *bias, Conv2dShape s, Conv2dNhwcAdd<T> add) {
  if (way == WGMMA_ONE) run_blocks<T, 1>(y, x, w, bias, s, add);
  if (way == WGMMA_TWO) run_blocks<T, 2>(y, x, w, bias, s, add);
#ifndef SIMT_REWRITTEN
  if (way == WGMMA) conv2d_forward_nhwc_wgmma_add(y, x, w, bias, s, true, add);
#endif
}
#endif

template <typename T>
static T *upload_identity(void) {
  const size_t rows = CONV2D_NHWC_IDENTITY;
  T *narrow = (T *)xcalloc(rows * rows, sizeof *narrow);
  for (size_t i = 0; i < rows; i++) conv2d_narrow(&narrow[i * rows + i], 1);
  T *device = (T *)guard_alloc_elements(DEVICE_GPU, rows * rows, sizeof *device);
  device_upload(DEVICE_GPU, device, narrow, rows * rows * sizeof *narrow);
  free(narrow);
  return device;
}

/* `s` on random numbers, with ReLU and bias; channels: of the added image, where it is multiplied. */
template <typename T>
static void expect_sum(Way way, Conv2dShape s, Added added, int channels) {
  const int p = conv2d_out_h(s), q = conv2d_out_w(s), h = 2 * p - 1, w_count = 2 * q;
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s), pixels = (size_t)p * q;
  const size_t n_add = added == PRODUCT ? (size_t)s.n * h * w_count * channels : n_y, n_one = (size_t)s.k * channels;
  float *x = arrays_random(n_x, 0), *w = arrays_random(n_w, 0), *y = arrays_poison(n_y), *bias = arrays_random(s.k, 3);
  float *image = arrays_random(n_add, 0), *one = arrays_random(n_one + 1, 0);
  T *device_x = upload_random<T>(x, n_x, 1), *device_w = upload_random<T>(w, n_w, 2);
  T *device_image = upload_random<T>(image, n_add, 4), *device_one = upload_random<T>(one, n_one + 1, 5);
  T *device_y = (T *)guard_alloc_elements(DEVICE_GPU, n_y, sizeof(T)), *identity = upload_identity<T>();
  float *device_bias = arrays_upload(DEVICE_GPU, bias, s.k);
  Conv2dNhwcAdd<T> add;
  if (added != NOTHING) add.x = device_image;
  if (added == IMAGE) add.identity = identity;
  if (added == PRODUCT) {
    add.w = device_one;
    add.channels = channels;
    add.h = h;
    add.w_count = w_count;
    add.stride = 2;
  }
  if (way == MMA) conv2d_forward_nhwc_mma_add(device_y, device_x, device_w, device_bias, s, true, add);
  run_wgmma(way, device_y, device_x, device_w, device_bias, s, add);
  download(y, device_y, n_y, "y");

  /* the same in double, of the rounded numbers; mma rounds the product to T before it adds it */
  float *expected = arrays_poison(n_y);
  Conv2dNhwcAdd<float> wide;
  wide.x = added == NOTHING ? NULL : image;
  wide.w = added == PRODUCT ? one : NULL;
  wide.channels = channels;
  wide.h = h;
  wide.w_count = w_count;
  wide.stride = 2;
  conv2d_forward_nhwc_add_cpu(expected, x, w, bias, s, true, wide);
  Tolerance t = tolerance_of<T>(n_w / s.k + channels + 1);
  if (sizeof(T) == 4 && way != MMA) t.relative = 1.01 / 2048;                         /* stored as TF32 */
  if (sizeof(T) == 2 && way == MMA && added == PRODUCT) t.absolute += 8 * t.relative; /* of sums up to about 8 */
  Comparison c = compare_arrays(y, expected, (int)(s.n * pixels), (size_t)s.k, t);
  if (!c.ok)
    fail_msg("%s, %zu bytes, %s, adding %d: %s", way_names[way], sizeof(T), conv2d_shape_text(s).text, added,
             c.message);
  download((float *)NULL, device_image, n_add, "the added image");
  T *rest[] = {device_x, device_w, device_one, identity};
  const size_t counts[] = {n_x, n_w, n_one + 1, (size_t)CONV2D_NHWC_IDENTITY * CONV2D_NHWC_IDENTITY};
  for (int i = 0; i < 4; i++) download((float *)NULL, rest[i], counts[i], "an input");
  arrays_download(DEVICE_GPU, NULL, device_bias, s.k, "bias");
  float *all[] = {x, w, y, bias, image, one, expected};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

template <typename T>
static void expect_sums(Way way, int first) {
  const int run = way == MMA ? 1 : 16 / (int)sizeof(T); /* TMA copies 16 bytes */
  for (int added = first; added <= PRODUCT; added++) {
    expect_sum<T>(way, conv2d_shape(2, 8, 5, 7, 8 * run, 3, 3, 1, 1), (Added)added, 2 * run);
    expect_sum<T>(way, conv2d_shape(3, 3 * run, 4, 3, 9 * run, 3, 3, 1, 1), (Added)added, run);
    expect_sum<T>(way, conv2d_shape(1, 8, 9, 13, 8, 1, 1, 1, 0), (Added)added, 16);
  }
}

static void mma_adds(void **state) {
  (void)state;
  test_requires_gpu();
  if (mma_refusal() != NULL) {
    print_message("skipped: %s\n", mma_refusal());
    skip();
  }
  expect_sums<__nv_bfloat16>(MMA, NOTHING);
  expect_sums<__half>(MMA, NOTHING);
  expect_sums<float>(MMA, IMAGE);
}

static void wgmma_adds(void **state) {
  (void)state;
  test_requires_gpu();
  if (conv2d_wgmma_refusal() != NULL) {
    print_message("skipped: %s\n", conv2d_wgmma_refusal());
    skip();
  }
#ifdef SIMT_REWRITTEN
  const Way ways[] = {WGMMA_ONE, WGMMA_TWO};
#else
  const Way ways[] = {WGMMA_ONE, WGMMA_TWO, WGMMA};
#endif
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    expect_sums<__half>(ways[i], NOTHING);
    expect_sums<float>(ways[i], NOTHING);
    expect_sum<__half>(ways[i], conv2d_shape(2, 72, 6, 5, 200, 3, 3, 1, 1), IMAGE, 0); /* several blocks of filters */
    expect_sum<float>(ways[i], conv2d_shape(2, 40, 6, 5, 136, 3, 3, 1, 1), IMAGE, 0);
    expect_sum<__half>(ways[i], conv2d_shape(2, 72, 6, 5, 136, 3, 3, 1, 1), PRODUCT, 136);
    expect_sum<float>(ways[i], conv2d_shape(5, 40, 3, 3, 72, 3, 3, 1, 1), PRODUCT, 68); /* images share a tile */
#ifndef SIMT_REWRITTEN
    expect_sum<__nv_bfloat16>(ways[i], conv2d_shape(9, 64, 56, 56, 64, 3, 3, 1, 1), IMAGE, 0);
    expect_sum<float>(ways[i], conv2d_shape(9, 128, 28, 28, 128, 3, 3, 1, 1), PRODUCT, 64);
    expect_sum<__half>(ways[i], conv2d_shape(33, 512, 7, 7, 512, 3, 3, 1, 1), PRODUCT, 256);
#endif
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(mma_adds), cmocka_unit_test(wgmma_adds)};
  return TEST_MAIN("conv2d_nhwc_add", tests);
}
