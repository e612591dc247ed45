/* Depthwise convolution and its gradients against the loops of lesson 1, on ragged shapes. */
#include "phase3_cnn/07_conv2d_depthwise/conv2d_depthwise.cuh"

#include "common/test_arrays.h"

static void check(const char *name, const float *got, const float *expected, size_t rows, size_t cols, size_t terms,
                  Conv2dShape s) {
  Comparison c = compare_arrays(got, expected, rows, cols, tolerance_dot(terms, 1));
  if (!c.ok) fail_msg("%s, %s: %s", name, conv2d_shape_text(s).text, c.message);
}

static void check_shape(Conv2dShape s, bool with_bias) {
  Error err;
  if (conv2d_shape_check(s, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(conv2d_depthwise_fits(s, &err), 0);
  const size_t xs = conv2d_x_count(s), ws = conv2d_w_count(s), ys = conv2d_y_count(s),
               scratch = conv2d_depthwise_workspace_floats(s);
  const size_t pixels = ys / s.n / s.k, taps = (size_t)s.r * s.s;
  float *x = arrays_random(xs, 1), *w = arrays_random(ws, 2), *bias = arrays_random(s.k, 3), *dy = arrays_random(ys, 4);
  float *poison = arrays_poison(xs + ws + ys + s.k + scratch), *expected = arrays_poison(xs + ws + ys + s.k),
        *got = arrays_poison(xs + ws + ys + s.k);

  conv2d_forward_cpu(expected, x, w, with_bias ? bias : NULL, s);
  conv2d_depthwise_forward_cpu(got, x, w, with_bias ? bias : NULL, s);
  check("y, depthwise on the CPU", got, expected, (size_t)s.n * s.k, pixels, taps + 1, s);

  float *d_x = arrays_upload(DEVICE_GPU, x, xs), *d_w = arrays_upload(DEVICE_GPU, w, ws);
  float *d_bias = arrays_upload(DEVICE_GPU, bias, s.k), *d_dy = arrays_upload(DEVICE_GPU, dy, ys);
  float *d_y = arrays_upload(DEVICE_GPU, poison, ys), *d_dx = arrays_upload(DEVICE_GPU, poison, xs);
  float *d_dw = arrays_upload(DEVICE_GPU, poison, ws), *d_dbias = arrays_upload(DEVICE_GPU, poison, s.k);
  float *workspace = arrays_upload(DEVICE_GPU, poison, scratch);
  const Conv2dMethod *m = &conv2d_depthwise_method;
  m->forward(d_y, d_x, d_w, with_bias ? d_bias : NULL, s, workspace);
  m->backward_input(d_dx, d_dy, d_w, s, workspace);
  m->backward_weight(d_dw, with_bias ? d_dbias : NULL, d_dy, d_x, s, workspace);

  arrays_download(DEVICE_GPU, got, d_y, ys, "y");
  check("y", got, expected, (size_t)s.n * s.k, pixels, taps + 1, s);
  conv2d_backward_input_cpu(expected, dy, w, s);
  arrays_download(DEVICE_GPU, got, d_dx, xs, "dx");
  check("dx", got, expected, (size_t)s.n * s.c, (size_t)s.h * s.w, taps * s.k / s.c, s);
  conv2d_backward_weight_cpu(expected, expected + ws, dy, x, s);
  arrays_download(DEVICE_GPU, got, d_dw, ws, "dw");
  check("dw", got, expected, s.k, taps, s.n * pixels, s);
  arrays_download(DEVICE_GPU, got, d_dbias, s.k, "dbias");
  if (with_bias) check("dbias", got, expected + ws, 1, s.k, s.n * pixels, s);
  arrays_download(DEVICE_GPU, NULL, d_x, xs, "x");
  arrays_download(DEVICE_GPU, NULL, d_w, ws, "w");
  arrays_download(DEVICE_GPU, NULL, d_bias, s.k, "bias");
  arrays_download(DEVICE_GPU, NULL, d_dy, ys, "dy");
  arrays_download(DEVICE_GPU, NULL, workspace, scratch, "workspace");
  float *const all[] = {x, w, bias, dy, poison, expected, got};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static int pick(uint64_t *counter, const int *from, int count) {
  return from[philox4x32(11, 1, (*counter)++).word[0] % count];
}

static void random_shapes_agree(void **state) {
  (void)state;
  test_requires_gpu();
  const int n[] = {1, 2, 3, 5}, c[] = {1, 2, 3, 7}, h[] = {1, 2, 3, 4, 5, 7, 8, 13, 17, 33},
            multiplier[] = {1, 1, 2, 3};
  const int side[] = {1, 2, 3, 3, 5, 7}, stride[] = {1, 1, 2, 3}, padding[] = {0, 1, 2, 3}, dilation[] = {1, 1, 1, 2};
  uint64_t counter = 0;
  for (int done = 0; done < 80;) {
    Conv2dShape s = conv2d_shape(1, 1, 1, 1, 1, 1, 1, 1, 0);
    s.n = pick(&counter, n, 4);
    s.c = s.groups = pick(&counter, c, 4);
    s.k = s.c * pick(&counter, multiplier, 4);
    s.h = pick(&counter, h, 10);
    s.w = pick(&counter, h, 10);
    s.r = pick(&counter, side, 6);
    s.s = done % 2 ? s.r : pick(&counter, side, 6);
    s.stride_h = pick(&counter, stride, 4);
    s.stride_w = done % 3 ? s.stride_h : pick(&counter, stride, 4);
    s.padding_h = pick(&counter, padding, 4);
    s.padding_w = pick(&counter, padding, 4);
    s.dilation_h = pick(&counter, dilation, 4);
    s.dilation_w = pick(&counter, dilation, 4);
    if (conv2d_shape_check(s, NULL) != 0) continue;
    check_shape(s, done % 4 != 0);
    done++;
  }
}

/* Each template, on planes that are no multiple of a strip; a batch of more images than there are slices; and strides
 * and dilations of which four times as much is no int. */
static void templates_agree(void **state) {
  (void)state;
  test_requires_gpu();
  for (int side = 3; side <= 5; side += 2)
    for (int stride = 1; stride <= 2; stride++) {
      Conv2dShape s = conv2d_shape(2, 3, 14, 11, 3, side, side, stride, side / 2);
      s.groups = 3;
      check_shape(s, true);
      s.n = DEPTHWISE_SLICES + 7;
      s.c = s.k = s.groups = 1;
      s.h = s.w = 6;
      check_shape(s, true);
    }
  Conv2dShape far = conv2d_shape(2, 3, 7, 5, 6, 3, 3, INT_MAX, 1);
  far.groups = 3;
  check_shape(far, true);
  far = conv2d_shape(2, 3, 7, 5, 3, 1, 1, 1, 0);
  far.groups = 3;
  far.dilation_h = far.dilation_w = INT_MAX;
  check_shape(far, true);
}

static void other_groups_are_refused(void **state) {
  (void)state;
  Conv2dShape s = conv2d_shape(2, 6, 8, 8, 6, 3, 3, 1, 1);
  Error err;
  s.groups = 3;
  assert_int_equal(conv2d_depthwise_fits(s, &err), -1);
  assert_non_null(strstr(err.message, "as many groups as channels"));
  assert_non_null(strstr(err.message, "3 groups"));
  assert_non_null(strstr(err.message, "use implicit_gemm"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_shapes_agree),
      cmocka_unit_test(templates_agree),
      cmocka_unit_test(other_groups_are_refused),
  };
  return TEST_MAIN("conv2d_depthwise", tests);
}
