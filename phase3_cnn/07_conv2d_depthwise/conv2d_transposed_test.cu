/* Transposed convolution: by hand, by central differences, every version on ragged shapes, against ONNX's tensors. */
#include "phase3_cnn/07_conv2d_depthwise/conv2d_transposed.cuh"

#include "common/onnx_testdata.h"
#include "common/test_arrays.h"

/* What a transposed convolution is given; its mirror follows. */
typedef struct Case {
  int n, c, h, w, k;
  Conv2dShape like;
  int output_padding_h, output_padding_w;
} Case;

static Case case_make(int n, int c, int h, int w, int k, int r, int s, int stride, int padding, int output_padding) {
  Case result = {n, c, h, w, k, conv2d_shape(1, 1, 1, 1, 1, r, s, stride, padding), output_padding, output_padding};
  return result;
}

static int case_mirror(const Case *t, Conv2dShape *mirror, Error *err) {
  return conv2d_transposed_mirror(mirror, t->n, t->c, t->h, t->w, t->k, t->like, t->output_padding_h,
                                  t->output_padding_w, err);
}

static Conv2dShape mirror_of(const Case *t) {
  Conv2dShape mirror;
  Error err;
  if (case_mirror(t, &mirror, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(conv2d_out_h(mirror), t->h);
  assert_int_equal(conv2d_out_w(mirror), t->w);
  return mirror;
}

/* ---- the definition ---- */

/* Stride 2, a filter of 3 x 2: each input brings its filter to rows 2 h, 2 h + 1, 2 h + 2 and columns 2 v, 2 v + 1. */
static void two_inputs_by_hand(void **state) {
  (void)state;
  const Case t = case_make(1, 1, 2, 1, 1, 3, 2, 2, 0, 0);
  const float x[] = {1, 10}, w[] = {1, 2, 3, 4, 5, 6}, bias[] = {100};
  const float expected[] = {101, 102, 103, 104, 105 + 10, 106 + 20, 130, 140, 150, 160};
  Conv2dShape m = mirror_of(&t);
  assert_true(m.h == 5 && m.w == 2);
  float y[10];
  conv2d_transposed_forward_cpu(y, x, w, bias, m);
  for (int i = 0; i < 10; i++) assert_true(y[i] == expected[i]);
}

static void output_padding_adds_rows_and_columns(void **state) {
  (void)state;
  Case t = case_make(1, 2, 4, 5, 3, 3, 3, 2, 1, 0);
  Conv2dShape m = mirror_of(&t);
  assert_true(m.h == 7 && m.w == 9);
  t.output_padding_h = t.output_padding_w = 1;
  m = mirror_of(&t);
  assert_true(m.h == 8 && m.w == 10);
}

static double loss(const double *x, const double *w, const double *bias, const double *dy, Conv2dShape m) {
  double y[1024], sum = 0;
  const size_t count = conv2d_x_count(m);
  assert_true(count <= 1024);
  conv2d_transposed_forward_cpu(y, x, w, bias, m);
  for (size_t i = 0; i < count; i++) sum += dy[i] * y[i];
  return sum;
}

static void check_slopes(double *values, const double *gradient, size_t count, const double *x, const double *w,
                         const double *bias, const double *dy, Conv2dShape m) {
  for (size_t i = 0; i < count; i++) {
    const double kept = values[i], step = 1e-3;
    values[i] = kept + step;
    const double more = loss(x, w, bias, dy, m);
    values[i] = kept - step;
    const double slope = (more - loss(x, w, bias, dy, m)) / (2 * step);
    values[i] = kept;
    if (!(fabs(slope - gradient[i]) <= 1e-7 * (1 + fabs(slope))))
      fail_msg("element %zu: the slope is %g, the gradient %g", i, slope, gradient[i]);
  }
}

static void gradients_match_central_differences(void **state) {
  (void)state;
  Case cases[] = {case_make(2, 2, 3, 2, 3, 3, 2, 2, 1, 1), case_make(1, 4, 3, 3, 2, 2, 3, 1, 0, 0)};
  cases[1].like.groups = 2;
  cases[1].like.dilation_h = 2;
  for (int i = 0; i < 2; i++) {
    Conv2dShape m = mirror_of(&cases[i]);
    double v[5][1024], dx[1024], dw[1024], dbias[8]; /* x, w, bias, dy */
    const size_t count[] = {conv2d_y_count(m), conv2d_w_count(m), (size_t)m.c, conv2d_x_count(m)};
    for (int a = 0; a < 4; a++) {
      float *random = arrays_random(count[a], 30 + a);
      for (size_t e = 0; e < count[a]; e++) v[a][e] = random[e];
      free(random);
    }
    conv2d_transposed_backward_input_cpu(dx, v[3], v[1], m);
    conv2d_transposed_backward_weight_cpu(dw, dbias, v[3], v[0], m);
    check_slopes(v[0], dx, count[0], v[0], v[1], v[2], v[3], m);
    check_slopes(v[1], dw, count[1], v[0], v[1], v[2], v[3], m);
    check_slopes(v[2], dbias, count[2], v[0], v[1], v[2], v[3], m);
  }
}

static void impossible_shapes_are_refused(void **state) {
  (void)state;
  Conv2dShape m;
  Error err;
  Case t = case_make(1, 2, 4, 4, 2, 3, 3, 2, 1, 2);
  assert_int_equal(case_mirror(&t, &m, &err), -1);
  assert_non_null(strstr(err.message, "output padding 2 x 2 and stride 2 x 2"));
  t = case_make(1, 2, 1, 1, 2, 3, 3, 1, 2, 0);
  assert_int_equal(case_mirror(&t, &m, &err), -1);
  assert_non_null(strstr(err.message, "the output would be -1 x -1"));
  t = case_make(1, 3, 4, 4, 2, 3, 3, 1, 0, 0);
  t.like.groups = 2;
  assert_int_equal(case_mirror(&t, &m, &err), -1);
  assert_non_null(strstr(err.message, "groups must divide"));
  t = case_make(1, 1, INT_MAX, 4, 1, 3, 3, 2, 0, 0);
  assert_int_equal(case_mirror(&t, &m, &err), -1);
  assert_non_null(strstr(err.message, "use a smaller image or stride"));
  t = case_make(1, 1, 4, 4, 1, 3, 3, 0, 0, 0);
  assert_int_equal(case_mirror(&t, &m, &err), -1);
  assert_non_null(strstr(err.message, "the stride must be at least 1"));
}

/* ---- the versions ---- */

static const struct Version {
  const char *name;
  Conv2dTransposedForward *forward;
} versions[] = {{"scatter", conv2d_transposed_scatter},
                {"gather", conv2d_transposed_gather},
                {"phases", conv2d_transposed_phases},
                {"forward", conv2d_transposed_forward}};

enum { VERSIONS = sizeof versions / sizeof *versions };

static void check(const char *name, const float *got, const float *expected, size_t rows, size_t cols, size_t terms,
                  Conv2dShape m) {
  Comparison c = compare_arrays(got, expected, rows, cols, tolerance_dot(terms, 1));
  if (!c.ok) fail_msg("%s, mirror %s: %s", name, conv2d_shape_text(m).text, c.message);
}

static void check_case(const Case *t, bool with_bias, Device device) {
  Conv2dShape m = mirror_of(t);
  const size_t xs = conv2d_y_count(m), ws = conv2d_w_count(m), ys = conv2d_x_count(m), area = (size_t)m.r * m.s;
  const size_t scratch = conv2d_workspace_floats(device, m), most = xs + ws + ys + m.c + scratch;
  float *x = arrays_random(xs, 1), *w = arrays_random(ws, 2), *bias = arrays_random(m.c, 3), *dy = arrays_random(ys, 4);
  float *poison = arrays_poison(most), *expected = arrays_poison(most), *got = arrays_poison(most);
  float *d_x = arrays_upload(device, x, xs), *d_w = arrays_upload(device, w, ws), *d_dy = arrays_upload(device, dy, ys);
  float *d_bias = arrays_upload(device, bias, m.c), *workspace = arrays_upload(device, poison, scratch);

  conv2d_transposed_forward_cpu(expected, x, w, with_bias ? bias : NULL, m);
  for (int v = 0; v < (device == DEVICE_GPU ? VERSIONS : 1); v++) {
    float *d_y = arrays_upload(device, poison, ys);
    ON_DEVICE(device, versions[v].forward(d_y, d_x, d_w, with_bias ? d_bias : NULL, m),
              conv2d_transposed_forward_cpu_fast(d_y, d_x, d_w, with_bias ? d_bias : NULL, m, workspace));
    arrays_download(device, got, d_y, ys, "y");
    check(versions[v].name, got, expected, (size_t)m.n * m.c, (size_t)m.h * m.w, m.k / m.groups * area + 1, m);
  }
  float *d_dx = arrays_upload(device, poison, xs), *d_dw = arrays_upload(device, poison, ws);
  float *d_dbias = arrays_upload(device, poison, m.c);
  conv2d_transposed_backward_input(device, d_dx, d_dy, d_w, m, workspace);
  conv2d_transposed_backward_weight(device, d_dw, with_bias ? d_dbias : NULL, d_dy, d_x, m, workspace);
  conv2d_transposed_backward_input_cpu(expected, dy, w, m);
  arrays_download(device, got, d_dx, xs, "dx");
  check("dx", got, expected, (size_t)m.n * m.k, xs / m.n / m.k, m.c / m.groups * area, m);
  conv2d_transposed_backward_weight_cpu(expected, expected + ws, dy, x, m);
  arrays_download(device, got, d_dw, ws, "dw");
  check("dw", got, expected, m.k, ws / m.k, xs / m.k, m);
  arrays_download(device, got, d_dbias, m.c, "dbias");
  if (with_bias) check("dbias", got, expected + ws, 1, m.c, ys / m.c, m);
  arrays_download(device, NULL, d_x, xs, "x");
  arrays_download(device, NULL, d_w, ws, "w");
  arrays_download(device, NULL, d_dy, ys, "dy");
  arrays_download(device, NULL, d_bias, m.c, "bias");
  arrays_download(device, NULL, workspace, scratch, "workspace");
  float *const all[] = {x, w, bias, dy, poison, expected, got};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static int pick(uint64_t *counter, const int *from, int count) {
  return from[philox4x32(13, 1, (*counter)++).word[0] % count];
}

static void check_random_cases(Device device) {
  const int n[] = {1, 2, 3}, c[] = {1, 2, 4, 6}, h[] = {1, 2, 3, 5, 8, 11}, k[] = {1, 2, 4, 18};
  const int side[] = {1, 2, 3, 4, 5}, stride[] = {1, 2, 2, 3, 4}, padding[] = {0, 0, 1, 2}, more[] = {0, 0, 1, 2};
  const int dilation[] = {1, 1, 2, 3}, groups[] = {1, 1, 2};
  uint64_t counter = 0;
  for (int done = 0; done < 60;) {
    Case t = case_make(pick(&counter, n, 3), pick(&counter, c, 4), 1, 1, pick(&counter, k, 4), 1, 1, 1, 0, 0);
    t.h = pick(&counter, h, 6);
    t.w = pick(&counter, h, 6);
    t.like.r = pick(&counter, side, 5);
    t.like.s = pick(&counter, side, 5);
    t.like.stride_h = pick(&counter, stride, 5);
    t.like.stride_w = pick(&counter, stride, 5);
    t.like.padding_h = pick(&counter, padding, 4);
    t.like.padding_w = pick(&counter, padding, 4);
    t.like.dilation_h = pick(&counter, dilation, 4);
    t.like.dilation_w = pick(&counter, dilation, 4);
    t.like.groups = pick(&counter, groups, 3);
    t.output_padding_h = pick(&counter, more, 4);
    t.output_padding_w = pick(&counter, more, 4);
    Conv2dShape m;
    if (case_mirror(&t, &m, NULL) != 0) continue;
    check_case(&t, done % 4 != 0, device);
    done++;
  }
  Case many_taps = case_make(2, 70, 3, 2, 10, 3, 3, 2, 1, 1); /* more taps than shared memory holds at once */
  check_case(&many_taps, true, device);
  Case one_input = case_make(2, 3, 1, 1, 4, 3, 3, INT_MAX, 0, 0);
  check_case(&one_input, true, device);
}

static void kernels_agree(void **state) {
  (void)state;
  test_requires_gpu();
  check_random_cases(DEVICE_GPU);
}

static void the_fast_cpu_version_agrees(void **state) {
  (void)state;
  check_random_cases(DEVICE_CPU);
}

/* Every test of ConvTranspose, with the arguments that its model has: strides, padding, dilation, groups,
 * output_padding, or the size of the output. */
static const char *const onnx_tests[] = {
    "convtranspose",
    "convtranspose_1d",
    "convtranspose_autopad_same",
    "convtranspose_dilations",
    "convtranspose_kernel_shape",
    "convtranspose_output_shape",
    "convtranspose_pad",
    "convtranspose_pads",
    "convtranspose_with_kernel",
    "pytorch-converted/ConvTranspose2d",
    "pytorch-converted/ConvTranspose2d_no_bias",
    "pytorch-operator/operator_convtranspose",
};
enum { ONNX_TESTS = sizeof onnx_tests / sizeof *onnx_tests };

/* Number i of an attribute; of one-dimensional images there are no numbers for rows, i < 0. */
static int onnx_number(const OnnxTestNode *node, const char *name, int i, int standard) {
  const OnnxTestAttribute *a = onnx_test_attribute(node, name);
  if (a == NULL || i < 0) return standard;
  if (i >= a->ints) fail_msg("%s has %d numbers", name, a->ints);
  return (int)a->value[i];
}

/* The case of a test whose output has (rows, cols): output_padding is what the formula lacks of them. Where ONNX cuts
 * off a last row or column (auto_pad SAME_UPPER), ours has it. */
static Case onnx_case(const OnnxTestNode *node, const OnnxTestTensor *x, const OnnxTestTensor *w, int rows, int cols) {
  const int lines = x->rank == 3, down = lines ? -1 : 0, across = lines ? 0 : 1, dimensions = lines ? 1 : 2;
  const int groups = onnx_number(node, "group", 0, 1);
  Case t = case_make((int)x->shape[0], (int)x->shape[1], lines ? 1 : (int)x->shape[2], (int)x->shape[lines ? 2 : 3],
                     (int)w->shape[1] * groups, lines ? 1 : (int)w->shape[2], (int)w->shape[lines ? 2 : 3], 1, 0, 0);
  t.like.stride_h = onnx_number(node, "strides", down, 1);
  t.like.stride_w = onnx_number(node, "strides", across, 1);
  t.like.padding_h = onnx_number(node, "pads", down, 0);
  t.like.padding_w = onnx_number(node, "pads", across, 0);
  t.like.dilation_h = onnx_number(node, "dilations", down, 1);
  t.like.dilation_w = onnx_number(node, "dilations", across, 1);
  t.like.groups = groups;
  assert_int_equal(t.like.padding_w, onnx_number(node, "pads", across + dimensions, 0)); /* the same on both sides */
  if (!lines) assert_int_equal(t.like.padding_h, onnx_number(node, "pads", 2, 0));
  const Conv2dShape m = mirror_of(&t);
  if (rows > m.h) t.output_padding_h = rows - m.h;
  if (cols > m.w) t.output_padding_w = cols - m.w;
  return t;
}

static void check_onnx(const char *test) {
  OnnxTestNode node;
  OnnxTestTensor file[2], y;
  memset(file, 0, sizeof file);
  onnx_testdata_load_node(test, &node);
  assert_string_equal(node.op, "ConvTranspose");
  onnx_testdata_load(test, "input_0", &file[0]);
  if (node.input[1].floats == NULL) onnx_testdata_load(test, "input_1", &file[1]);
  if (node.inputs > 2) assert_non_null(node.input[2].floats);
  onnx_testdata_load(test, "output_0", &y);
  const OnnxTestTensor *x = &file[0], *w = node.input[1].floats != NULL ? &node.input[1] : &file[1];
  const float *bias = node.inputs > 2 ? node.input[2].floats : NULL;
  const int lines = x->rank == 3; /* one-dimensional: one row */
  const int rows = lines ? 1 : (int)y.shape[2], cols = (int)y.shape[lines ? 2 : 3];
  const Case t = onnx_case(&node, x, w, rows, cols);
  const Conv2dShape m = mirror_of(&t);
  assert_true(rows <= m.h && cols <= m.w);
  float *got = arrays_poison(conv2d_x_count(m)), *cut = arrays_poison(y.count);
  for (int v = -1; v < VERSIONS; v++) {
    float *d_x = arrays_upload(DEVICE_GPU, x->floats, x->count), *d_w = arrays_upload(DEVICE_GPU, w->floats, w->count);
    float *d_y = arrays_upload(DEVICE_GPU, got, conv2d_x_count(m));
    float *d_bias = bias != NULL ? arrays_upload(DEVICE_GPU, bias, (size_t)t.k) : NULL;
    if (v >= 0) versions[v].forward(d_y, d_x, d_w, d_bias, m);
    arrays_download(DEVICE_GPU, got, d_y, conv2d_x_count(m), "y");
    if (v < 0) conv2d_transposed_forward_cpu(got, x->floats, w->floats, bias, m);
    arrays_download(DEVICE_GPU, NULL, d_x, x->count, "x");
    arrays_download(DEVICE_GPU, NULL, d_w, w->count, "w");
    if (d_bias != NULL) arrays_download(DEVICE_GPU, NULL, d_bias, (size_t)t.k, "bias");
    for (size_t i = 0; i < y.count; i++) cut[i] = got[(i / cols / rows * m.h + i / cols % rows) * m.w + i % cols];
    Comparison c = compare_arrays(cut, y.floats, y.count / cols, cols, tolerance_make(1e-6, 1e-6));
    if (!c.ok) fail_msg("%s, %s: %s", test, v < 0 ? "the definition" : versions[v].name, c.message);
    compare_poison(got, conv2d_x_count(m));
  }
  print_message("  %s: %d versions\n", test, VERSIONS + 1);
  free(got);
  free(cut);
  onnx_test_tensor_free(&file[0]);
  onnx_test_tensor_free(&file[1]);
  onnx_test_tensor_free(&y);
  onnx_test_node_free(&node);
}

static void onnx_agrees(void **state) {
  (void)state;
  onnx_testdata_required();
  test_requires_gpu();
  for (int i = 0; i < ONNX_TESTS; i++) check_onnx(onnx_tests[i]);
}

static void onnx_found(const char *test, void *volumes) {
  for (int i = 0; i < ONNX_TESTS; i++)
    if (strcmp(test, onnx_tests[i]) == 0) return;
  OnnxTestTensor x;
  onnx_testdata_load(test, "input_0", &x);
  if (x.rank != 5) fail_msg("%s: %d dimensions, and this test leaves it out", test, x.rank - 2);
  print_message("  %s: a volume\n", test);
  ++*(int *)volumes;
  onnx_test_tensor_free(&x);
}

static void of_onnx_none_but_volumes_is_left_out(void **state) {
  (void)state;
  onnx_testdata_required();
  int volumes = 0;
  const int count = onnx_testdata_find("ConvTranspose", onnx_found, &volumes);
  assert_int_equal(count - volumes, ONNX_TESTS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_inputs_by_hand),
      cmocka_unit_test(output_padding_adds_rows_and_columns),
      cmocka_unit_test(gradients_match_central_differences),
      cmocka_unit_test(impossible_shapes_are_refused),
      cmocka_unit_test(the_fast_cpu_version_agrees),
      cmocka_unit_test(kernels_agree),
      cmocka_unit_test(onnx_agrees),
      cmocka_unit_test(of_onnx_none_but_volumes_is_left_out),
  };
  return TEST_MAIN("conv2d_transposed", tests);
}
