/* The transforms against the convolution that they compute, and every version against the reference: ragged sizes, few
 * channels, one image, with guard bands round every array and a workspace full of NaN. */
#include "phase3_cnn/04_conv2d_winograd/conv2d_winograd_cublas.cuh"
#include "phase3_cnn/04_conv2d_winograd/conv2d_winograd_fused.cuh"

#include "common/philox.h"
#include "common/test_arrays.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_cpu.cuh"

/* ---- the transforms, on the CPU ---- */

/* One tile: At ((G g Gt) * (Bt d B)) A is the convolution of d and g. */
template <int MH, int MW>
static void check_transforms(void) {
  float d[MH + 2][MW + 2], g[3][3], v[MH + 2][MW + 2], u[MH + 2][MW + 2], y[MH][MW];
  test_random_fill(&d[0][0], sizeof d / sizeof(float), 1);
  test_random_fill(&g[0][0], 9, 2);
  winograd_input<MH, MW>(v, d);
  winograd_filter<MH, MW>(u, g);
  for (int i = 0; i < (MH + 2) * (MW + 2); i++) v[i / (MW + 2)][i % (MW + 2)] *= u[i / (MW + 2)][i % (MW + 2)];
  winograd_output<MH, MW>(y, v);
  for (int p = 0; p < MH; p++)
    for (int q = 0; q < MW; q++) {
      double sum = 0;
      for (int r = 0; r < 3; r++)
        for (int s = 0; s < 3; s++) sum += (double)g[r][s] * d[p + r][q + s];
      if (!(fabs(y[p][q] - sum) <= 1e-4)) fail_msg("F(%dx%d): y[%d][%d] = %g, not %g", MH, MW, p, q, y[p][q], sum);
    }
}

/* <A dy At, m> = <dy, At m A>, and <Gt du G, g> = <du, G g Gt>: the gradients' transforms are the transposed ones. */
template <int MH, int MW>
static void check_transposed(void) {
  float m[MH + 2][MW + 2], dy[MH][MW], y[MH][MW], dm[MH + 2][MW + 2], g[3][3], u[MH + 2][MW + 2], dg[3][3];
  test_random_fill(&m[0][0], sizeof m / sizeof(float), 3);
  test_random_fill(&dy[0][0], sizeof dy / sizeof(float), 4);
  test_random_fill(&g[0][0], 9, 5);
  winograd_output<MH, MW>(y, m);
  winograd_output_gradient<MH, MW>(dm, dy);
  winograd_filter<MH, MW>(u, g);
  winograd_filter_gradient<MH, MW>(dg, m);
  double left = 0, right = 0, left_g = 0, right_g = 0;
  for (int i = 0; i < MH * MW; i++) left += (double)(&y[0][0])[i] * (&dy[0][0])[i];
  for (int i = 0; i < (MH + 2) * (MW + 2); i++) right += (double)(&dm[0][0])[i] * (&m[0][0])[i];
  for (int i = 0; i < 9; i++) left_g += (double)(&dg[0][0])[i] * (&g[0][0])[i];
  for (int i = 0; i < (MH + 2) * (MW + 2); i++) right_g += (double)(&u[0][0])[i] * (&m[0][0])[i];
  if (!(fabs(left - right) <= 1e-3)) fail_msg("F(%dx%d): <At m A, dy> = %g, <m, A dy At> = %g", MH, MW, left, right);
  if (!(fabs(left_g - right_g) <= 1e-3))
    fail_msg("F(%dx%d): <Gt du G, g> = %g, <du, G g Gt> = %g", MH, MW, left_g, right_g);
}

static void transforms_compute_a_convolution(void **state) {
  (void)state;
  check_transforms<2, 2>();
  check_transforms<2, 4>();
  check_transforms<4, 2>();
  check_transforms<4, 4>();
  check_transposed<2, 2>();
  check_transposed<2, 4>();
  check_transposed<4, 4>();
}

/* ---- every version ---- */

/* What the transforms lose beside a sum of C R S products. F(4x4) multiplies inputs by up to 5 along an axis, and
 * outputs by up to 8. */
static Tolerance tolerance(Conv2dShape s, float lost) {
  Tolerance t = tolerance_dot((size_t)s.c * 9 + 1, 1);
  t.relative *= lost;
  t.absolute *= lost;
  return t;
}

static void check_version(const char *name, Conv2dForward *launch, size_t floats, float lost, Conv2dShape s,
                          bool biased, bool relu) {
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s), k = s.k;
  float *x = arrays_random(n_x, 1), *w = arrays_random(n_w, 2), *bias = arrays_random(k, 3), *y = arrays_poison(n_y);
  float *device_x = arrays_upload(DEVICE_GPU, x, n_x), *device_w = arrays_upload(DEVICE_GPU, w, n_w);
  float *device_bias = arrays_upload(DEVICE_GPU, bias, k), *device_y = arrays_upload(DEVICE_GPU, y, n_y);
  float *workspace = guard_alloc(DEVICE_GPU, floats), *expected = arrays_poison(n_y);
  launch(device_y, device_x, device_w, biased ? device_bias : NULL, s, workspace);
  arrays_download(DEVICE_GPU, y, device_y, n_y, "y");
  arrays_download(DEVICE_GPU, NULL, device_x, n_x, "x");
  arrays_download(DEVICE_GPU, NULL, device_w, n_w, "w");
  arrays_download(DEVICE_GPU, NULL, device_bias, k, "bias");
  arrays_download(DEVICE_GPU, NULL, workspace, floats, "workspace");
  conv2d_forward_cpu(expected, x, w, biased ? bias : NULL, s);
  if (relu)
    for (size_t i = 0; i < n_y; i++) expected[i] = expected[i] < 0 ? 0 : expected[i];
  Comparison c = compare_arrays(y, expected, s.n * k, n_y / s.n / k, tolerance(s, lost));
  if (!c.ok) fail_msg("%s, %s: %s", name, conv2d_shape_text(s).text, c.message);
  free(x);
  free(w);
  free(bias);
  free(y);
  free(expected);
}

static void forward_by_image(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                             float *workspace) {
  winograd_kernels<2, 4, false>(y, x, w, bias, false, winograd_forward_shape<2, 4>(s), workspace, winograd_product, 1);
}

static void check_shape(Conv2dShape s, bool biased) {
  check_version("winograd2", conv2d_forward_winograd2, conv2d_winograd2_floats(s), 4, s, biased, false);
  check_version("winograd4", conv2d_forward_winograd4, conv2d_winograd4_floats(s), 40, s, biased, false);
  check_version("winograd4_cublas", conv2d_forward_winograd4_cublas, conv2d_winograd4_floats(s), 40, s, biased, false);
  check_version("winograd2x4, one image at a time", forward_by_image,
                winograd_kernels_floats<2, 4>(winograd_forward_shape<2, 4>(s), 1), 20, s, biased, false);
  check_version("winograd2_fused", conv2d_forward_winograd2_fused, conv2d_winograd2_fused_floats(s), 4, s, biased,
                false);
  check_version("winograd2x4", conv2d_forward_winograd2x4, conv2d_winograd2x4_floats(s), 20, s, biased, false);
  check_version("winograd", conv2d_forward_winograd, conv2d_winograd_floats(s), 40, s, biased, false);
  check_version("winograd with ReLU", conv2d_bias_relu_forward_winograd, conv2d_winograd_floats(s), 40, s, biased,
                true);
}

static int pick(uint64_t *counter, const int *from, int count) {
  PhiloxBlock block = philox4x32(13, 1, (*counter)++);
  return from[block.word[0] % count];
}

static void every_version_matches_the_reference(void **state) {
  (void)state;
  test_requires_gpu();
  const int n[] = {1, 2, 3}, c[] = {1, 3, 8, 17}, h[] = {1, 2, 3, 4, 5, 7, 8, 13, 16}, k[] = {1, 5, 16, 65},
            padding[] = {0, 1, 1, 2, 3};
  uint64_t counter = 0;
  for (int done = 0; done < 40;) {
    Conv2dShape s = conv2d_shape(pick(&counter, n, 3), pick(&counter, c, 4), pick(&counter, h, 9), pick(&counter, h, 9),
                                 pick(&counter, k, 4), 3, 3, 1, 0);
    s.padding_h = pick(&counter, padding, 5);
    s.padding_w = pick(&counter, padding, 5);
    if (conv2d_shape_check(s, NULL) != 0) continue;
    if ((double)s.n * s.h * s.w > 600) continue; /* keeps the emulated run short */
    check_shape(s, done % 3 != 0);
    done++;
  }
}

/* More items than the emulated GPU has multiprocessors: blocks go on to a second one. */
static void blocks_compute_several_items(void **state) {
  (void)state;
  test_requires_gpu();
  Conv2dShape s = conv2d_shape(1, 3, 16, 16, 1, 3, 3, 1, 1);
  s.k = 64 * (conv2d_multiprocessors() + 3) / 2 - 1; /* two blocks of tiles */
  if (s.k > 10000) skip();
  check_version("winograd2_fused", conv2d_forward_winograd2_fused, conv2d_winograd2_fused_floats(s), 4, s, true, false);
}

/* With less shared memory, a step of the fused kernels has fewer channels. */
static void less_shared_memory_serves(void **state) {
  (void)state;
  test_requires_gpu();
  const Conv2dShape shapes[] = {conv2d_shape(2, 17, 7, 9, 5, 3, 3, 1, 1), conv2d_shape(1, 3, 5, 6, 65, 3, 3, 1, 0)};
  const int limits[] = {shared_limit(), 99 << 10, 80 << 10}; /* 99 KiB: what many GPUs have */
  for (int limit = 0; limit < 3; limit++)
    for (int i = 0; i < 2; i++) {
      const Conv2dShape s = shapes[i];
      shared_limit_pretended = limits[limit];
      check_version("winograd2_fused", conv2d_forward_winograd2_fused, conv2d_winograd2_fused_floats(s), 4, s, true,
                    false);
      check_version("winograd2x4", conv2d_forward_winograd2x4, conv2d_winograd2x4_floats(s), 20, s, true, false);
    }
  shared_limit_pretended = 0;
}

/* A sum that is not a number must not become 0: with few filters in one kernel, with more of them in three. */
static void relu_keeps_nan(void **state) {
  (void)state;
  test_requires_gpu();
  enum { FILTERS = 66, PIXELS = 5 * 6 };
  for (int k = 2; k <= FILTERS; k += FILTERS - 2) {
    const Conv2dShape s = conv2d_shape(1, 1, 5, 6, k, 3, 3, 1, 1);
    float x[PIXELS] = {}, w[FILTERS * 9] = {}, bias[FILTERS] = {NAN, -1}, y[FILTERS * PIXELS];
    float *device_x = arrays_upload(DEVICE_GPU, x, PIXELS), *device_w = arrays_upload(DEVICE_GPU, w, k * 9);
    float *device_bias = arrays_upload(DEVICE_GPU, bias, k), *device_y = guard_alloc(DEVICE_GPU, k * PIXELS);
    float *workspace = guard_alloc(DEVICE_GPU, conv2d_winograd_floats(s));
    conv2d_bias_relu_forward_winograd(device_y, device_x, device_w, device_bias, s, workspace);
    arrays_download(DEVICE_GPU, y, device_y, k * PIXELS, "y");
    for (int i = 0; i < k * PIXELS; i++)
      if (i < PIXELS ? !isnan(y[i]) : y[i] != 0)
        fail_msg("y[%d] is %g; expected %s", i, y[i], i < PIXELS ? "NaN" : "0");
    float *all[] = {workspace, device_x, device_w, device_bias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) guard_free(DEVICE_GPU, all[i]);
  }
}

/* What it cannot compute, and who can. */
static void others_are_refused(void **state) {
  (void)state;
  Conv2dShape s = conv2d_shape(2, 4, 9, 8, 6, 3, 3, 1, 1), strided = s, gaps = s, groups = s, wide = s, many = s;
  Error err;
  assert_int_equal(winograd_fits(s, &err), 0);
  strided.stride_w = 2;
  assert_int_equal(winograd_fits(strided, &err), -1);
  assert_string_equal(err.message,
                      "winograd computes 3 x 3 filters with stride 1, dilation 1 and 1 group; this one is (2,4,9,8) "
                      "with (6,4,3,3), stride 1 x 2, padding 1 x 1: use implicit_gemm");
  gaps.dilation_h = 2;
  assert_int_equal(winograd_fits(gaps, &err), -1);
  groups.groups = 2;
  assert_int_equal(winograd_fits(groups, &err), -1);
  wide.s = 5;
  assert_int_equal(winograd_fits(wide, &err), -1);
  many.n = 1 << 26;
  assert_int_equal(winograd_fits(many, &err), -1);
  assert_non_null(strstr(err.message, "too many: use implicit_gemm"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(transforms_compute_a_convolution),
      cmocka_unit_test(every_version_matches_the_reference),
      cmocka_unit_test(blocks_compute_several_items),
      cmocka_unit_test(less_shared_memory_serves),
      cmocka_unit_test(relu_keeps_nan),
      cmocka_unit_test(others_are_refused),
  };
  return TEST_MAIN("conv2d_winograd", tests);
}
