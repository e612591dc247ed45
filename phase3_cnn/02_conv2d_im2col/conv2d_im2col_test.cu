/* The matrix, its transpose and all three operations against the references, on ragged shapes, with guard bands round
 * every array, a workspace full of NaN, and any number of images at a time. */
#include "phase3_cnn/02_conv2d_im2col/conv2d_im2col.cuh"
#include "phase3_cnn/02_conv2d_im2col/conv2d_im2col_cublas.cuh"

#include "common/philox.h"
#include "common/test_arrays.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_cpu.cuh"

static int pick(uint64_t *counter, const int *from, int count) {
  PhiloxBlock block = philox4x32(11, 1, (*counter)++);
  return from[block.word[0] % count];
}

/* Calls `check` with `count` shapes that are possible and small. */
static void each_shape(int count, void check(Conv2dShape)) {
  const int n[] = {1, 2, 3, 5}, c[] = {1, 2, 3, 6}, h[] = {1, 2, 3, 5, 7, 8, 13}, k[] = {1, 2, 4, 6, 9};
  const int side[] = {1, 2, 3, 4, 5}, stride[] = {1, 1, 2, 3}, padding[] = {0, 1, 2};
  const int dilation[] = {1, 1, 2}, groups[] = {1, 1, 2, 3};
  uint64_t counter = 0;
  for (int done = 0; done < count;) {
    Conv2dShape s = {pick(&counter, n, 4),        pick(&counter, c, 4),       pick(&counter, h, 7),
                     pick(&counter, h, 7),        pick(&counter, k, 5),       pick(&counter, side, 5),
                     pick(&counter, side, 5),     pick(&counter, stride, 4),  pick(&counter, stride, 4),
                     pick(&counter, padding, 3),  pick(&counter, padding, 3), pick(&counter, dilation, 3),
                     pick(&counter, dilation, 3), pick(&counter, groups, 4)};
    if (conv2d_shape_check(s, NULL) != 0) continue;
    if ((double)conv2d_y_count(s) * s.c * s.r * s.s > 300000) continue; /* keeps the emulated run short */
    check(s);
    done++;
  }
}

static void expect(const char *name, const float *actual, const float *expected, size_t rows, size_t cols,
                   Tolerance tolerance, Conv2dShape s) {
  Comparison c = compare_arrays(actual, expected, rows, cols, tolerance);
  if (!c.ok) fail_msg("%s, %s: %s", name, conv2d_shape_text(s).text, c.message);
}

/* ---- the matrix and its transpose ---- */

typedef void MatrixLauncher(float *matrix, const float *x, Conv2dShape s, int images);

/* Of `count` images from image `first` on. */
static void check_matrix(const char *name, MatrixLauncher *launch, Conv2dShape s, int first, int count) {
  size_t n_x = conv2d_x_count(s), rows = (size_t)s.c * s.r * s.s, columns = conv2d_im2col_columns(s, count);
  float *x = arrays_random(n_x, 1), *expected = arrays_poison(rows * columns), *actual = arrays_poison(rows * columns);
  conv2d_im2col_cpu(expected, x, s, first, count);
  float *device_x = arrays_upload(DEVICE_GPU, x, n_x), *device = arrays_upload(DEVICE_GPU, actual, rows * columns);
  launch(device, device_x + n_x / s.n * first, s, count);
  arrays_download(DEVICE_GPU, actual, device, rows * columns, "matrix");
  arrays_download(DEVICE_GPU, NULL, device_x, n_x, "x");
  expect(name, actual, expected, rows, columns, tolerance_make(0, 0), s);
  free(x);
  free(expected);
  free(actual);
}

static void check_both_matrices(Conv2dShape s) {
  check_matrix("im2col_naive", conv2d_im2col_naive, s, 0, s.n);
  check_matrix("im2col_column", conv2d_im2col_column, s, 0, s.n);
  check_matrix("im2col", conv2d_im2col, s, 0, s.n);
  check_matrix("im2col", conv2d_im2col, s, s.n / 2, s.n - s.n / 2);
}

static void the_matrix_matches_the_loops(void **state) {
  (void)state;
  test_requires_gpu();
  each_shape(150, check_both_matrices);
  const Conv2dShape large = conv2d_shape(2, 2, 19, 17, 1, 5, 3, 1, 2); /* more columns than a block has threads */
  check_both_matrices(large);
}

static void check_col2im(Conv2dShape s) {
  size_t n_x = conv2d_x_count(s), count = s.c * s.r * s.s * (size_t)conv2d_im2col_columns(s, s.n);
  float *matrix = arrays_random(count, 1), *expected = arrays_poison(n_x), *actual = arrays_poison(n_x);
  conv2d_col2im_cpu(expected, matrix, s, 0, s.n);
  float *device = arrays_upload(DEVICE_GPU, matrix, count), *dx = arrays_upload(DEVICE_GPU, actual, n_x);
  conv2d_col2im(dx, device, s, s.n);
  arrays_download(DEVICE_GPU, actual, dx, n_x, "dx");
  arrays_download(DEVICE_GPU, NULL, device, count, "matrix");
  expect("col2im", actual, expected, s.n * s.c * s.h, s.w, tolerance_dot((size_t)s.r * s.s, 1), s);
  free(matrix);
  free(expected);
  free(actual);
}

static void col2im_matches_the_loops(void **state) {
  (void)state;
  test_requires_gpu();
  each_shape(150, check_col2im);
}

/* <im2col(x), m> = <x, col2im(m)>: one is the transpose of the other. On the CPU, so that this tests the twins. */
static void check_transpose(Conv2dShape s) {
  size_t n_x = conv2d_x_count(s), count = s.c * s.r * s.s * (size_t)conv2d_im2col_columns(s, s.n);
  float *x = arrays_random(n_x, 1), *m = arrays_random(count, 2), *matrix = arrays_poison(count);
  float *dx = arrays_poison(n_x);
  conv2d_im2col_cpu(matrix, x, s, 0, s.n);
  conv2d_col2im_cpu(dx, m, s, 0, s.n);
  double left = 0, right = 0, scale = 1;
  for (size_t i = 0; i < count; i++) left += (double)matrix[i] * m[i];
  for (size_t i = 0; i < n_x; i++) right += (double)x[i] * dx[i];
  for (size_t i = 0; i < count; i++) scale += fabs((double)matrix[i] * m[i]);
  if (!(fabs(left - right) <= 1e-6 * scale))
    fail_msg("%s: <im2col(x), m> = %g, <x, col2im(m)> = %g", conv2d_shape_text(s).text, left, right);
  free(x);
  free(m);
  free(matrix);
  free(dx);
}

static void col2im_is_the_transpose_of_im2col(void **state) {
  (void)state;
  each_shape(100, check_transpose);
}

/* ---- the three operations ---- */

/* Of `images` images at a time, in which every array has guard bands. */
static void check_operations(const char *name, Conv2dIm2colMatmul *matmul, Conv2dShape s, int images, bool biased) {
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s), k = s.k;
  const size_t pixels = n_y / s.n / k, taps = n_w / k, floats = conv2d_im2col_floats(s, images);
  float *x = arrays_random(n_x, 1), *w = arrays_random(n_w, 2), *bias = arrays_random(k, 3),
        *dy = arrays_random(n_y, 4);
  float *y = arrays_poison(n_y), *dx = arrays_poison(n_x), *dw = arrays_poison(n_w), *dbias = arrays_poison(k);
  float *device_x = arrays_upload(DEVICE_GPU, x, n_x), *device_w = arrays_upload(DEVICE_GPU, w, n_w);
  float *device_bias = arrays_upload(DEVICE_GPU, bias, k), *device_dy = arrays_upload(DEVICE_GPU, dy, n_y);
  float *device_y = arrays_upload(DEVICE_GPU, y, n_y), *device_dx = arrays_upload(DEVICE_GPU, dx, n_x);
  float *device_dw = arrays_upload(DEVICE_GPU, dw, n_w), *device_dbias = arrays_upload(DEVICE_GPU, dbias, k);
  float *workspace = guard_alloc(DEVICE_GPU, floats);

  conv2d_im2col_forward_with(matmul, device_y, device_x, device_w, biased ? device_bias : NULL, s, images, workspace);
  conv2d_im2col_backward_weight_with(matmul, device_dw, biased ? device_dbias : NULL, device_dy, device_x, s, images,
                                     workspace);
  conv2d_im2col_backward_input_with(matmul, device_dx, device_dy, device_w, s, images, workspace);
  arrays_download(DEVICE_GPU, y, device_y, n_y, "y");
  arrays_download(DEVICE_GPU, dx, device_dx, n_x, "dx");
  arrays_download(DEVICE_GPU, dw, device_dw, n_w, "dw");
  arrays_download(DEVICE_GPU, dbias, device_dbias, k, "dbias");
  arrays_download(DEVICE_GPU, NULL, device_x, n_x, "x");
  arrays_download(DEVICE_GPU, NULL, device_w, n_w, "w");
  arrays_download(DEVICE_GPU, NULL, device_bias, k, "bias");
  arrays_download(DEVICE_GPU, NULL, device_dy, n_y, "dy");
  arrays_download(DEVICE_GPU, NULL, workspace, floats, "workspace");

  float *y_expected = arrays_poison(n_y), *dx_expected = arrays_poison(n_x), *dw_expected = arrays_poison(n_w);
  float *dbias_expected = arrays_poison(k);
  conv2d_forward_cpu(y_expected, x, w, biased ? bias : NULL, s);
  conv2d_backward_input_cpu(dx_expected, dy, w, s);
  conv2d_backward_weight_cpu(dw_expected, dbias_expected, dy, x, s);
  expect(name, y, y_expected, s.n * k, pixels, tolerance_dot(taps + 1, 1), s);
  expect(name, dx, dx_expected, s.n * s.c, s.h * s.w, tolerance_dot(k / s.groups * s.r * s.s, 1), s);
  expect(name, dw, dw_expected, k, taps, tolerance_dot(s.n * pixels, 1), s);
  if (biased) expect(name, dbias, dbias_expected, 1, k, tolerance_dot(s.n * pixels, 1), s);
  float *all[] = {x, w, bias, dy, y, dx, dw, dbias, y_expected, dx_expected, dw_expected, dbias_expected};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void check_ours(Conv2dShape s) {
  check_operations("im2col, one image at a time", conv2d_im2col_matmul, s, 1, false);
  check_operations("im2col", conv2d_im2col_matmul, s, (s.n + 1) / 2, true);
  check_operations("im2col, all images", conv2d_im2col_matmul, s, s.n, true);
}

static void im2col_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  each_shape(80, check_ours);
  const Conv2dShape lenet = conv2d_shape(3, 6, 14, 14, 16, 5, 5, 1, 0);
  check_ours(lenet);
}

static void check_cublas(Conv2dShape s) {
  check_operations("im2col with cuBLAS", conv2d_im2col_matmul_cublas, s, (s.n + 1) / 2, true);
}

static void im2col_cublas_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  each_shape(60, check_cublas);
}

/* More filters, taps and columns than one tile of the products has. */
static void products_of_many_tiles_match_reference(void **state) {
  (void)state;
  test_requires_gpu();
  const Conv2dShape s = conv2d_shape(3, 70, 14, 15, 68, 2, 1, 1, 1);
  check_operations("im2col", conv2d_im2col_matmul, s, 2, true);
}

/* ---- the rest of the contract ---- */

/* The tiles that the choice takes only for products that are too large to be emulated. */
static void narrow_and_large_tiles_match_reference(void **state) {
  (void)state;
  test_requires_gpu();
  const Conv2dShape s = conv2d_shape(2, 70, 9, 14, 68, 2, 1, 1, 1);
  check_operations("64 x 128", matmul_tuned_launch_in<64, 128, 8, 64, 64, 16, 8, 4>, s, 2, true);
  check_operations("128 x 64", matmul_tuned_launch_in<128, 64, 8, 64, 64, 16, 8, 4>, s, 2, true);
  check_operations("128 x 128", matmul_tuned_launch_in<128, 128, 8, 64, 64, 16, 8, 2>, s, 2, true);
}

/* A network plans its workspace for the largest batch and then comes with smaller ones. */
static void workspace_grows_with_the_batch(void **state) {
  (void)state;
  test_requires_gpu();
  const Conv2dShape shapes[] = {conv2d_shape(1, 64, 56, 56, 64, 3, 3, 1, 1), conv2d_shape(1, 1, 28, 28, 6, 5, 5, 1, 2),
                                conv2d_shape(1, 1, 32, 32, 4096, 1, 1, 1, 0)}; /* a product larger than the matrix */
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    Conv2dShape small = shapes[i], large = shapes[i];
    for (small.n = 1; small.n < 600; small.n++) {
      large.n = small.n + 1;
      assert_true(conv2d_im2col_workspace_floats(small) <= conv2d_im2col_workspace_floats(large));
      assert_true(conv2d_im2col_images(large) >= 1 && conv2d_im2col_images(large) <= large.n);
    }
    /* 800 images would need hundreds of MiB; what is taken is bounded by the chunk */
    size_t image = (size_t)large.c * large.r * large.s * conv2d_out_h(large) * conv2d_out_w(large);
    const Conv2dIm2colRoom room = conv2d_im2col_room(large, conv2d_im2col_images(large));
    assert_true(room.product <= CONV2D_IM2COL_FLOATS + image);
    assert_true(room.weights - room.product <=
                CONV2D_IM2COL_PRODUCT + 4 * (size_t)large.k); /* whole fours of columns */
  }
}

static void what_the_memory_cannot_hold_is_refused(void **state) {
  (void)state;
  test_requires_gpu();
  Conv2dShape s = conv2d_shape(4, 64, 1024, 1024, 8, 3, 3, 1, 1);
  Error err;
  assert_int_equal(conv2d_im2col_fits(conv2d_shape(4, 6, 14, 14, 16, 5, 5, 1, 0), &err), 0);
  s.r = s.s = 333; /* a matrix of 29 TB */
  s.padding_h = s.padding_w = 166;
  assert_int_equal(conv2d_shape_check(s, &err), 0);
  assert_int_equal(conv2d_im2col_fits(s, &err), -1);
  assert_non_null(strstr(err.message, "(4,64,1024,1024) with (8,64,333,333)"));
  assert_non_null(strstr(err.message, "the matrix of 1 image is 7096896 x 1048576"));
  assert_non_null(strstr(err.message, "use implicit_gemm"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_matrix_matches_the_loops),
      cmocka_unit_test(col2im_matches_the_loops),
      cmocka_unit_test(col2im_is_the_transpose_of_im2col),
      cmocka_unit_test(im2col_matches_reference),
      cmocka_unit_test(im2col_cublas_matches_reference),
      cmocka_unit_test(products_of_many_tiles_match_reference),
      cmocka_unit_test(narrow_and_large_tiles_match_reference),
      cmocka_unit_test(workspace_grows_with_the_batch),
      cmocka_unit_test(what_the_memory_cannot_hold_is_refused),
  };
  return TEST_MAIN("conv2d_im2col", tests);
}
