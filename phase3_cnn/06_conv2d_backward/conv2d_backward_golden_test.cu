/* Every version of the gradients beside PyTorch. tools/golden/conv2d_gradients_golden.py made the file, from numbers of
 * which all products and sums are exact: so the gradients must be the same, in whatever order they are added up. */
#include "common/runfiles.h"
#include "common/safetensors.h"
#include "common/test_arrays.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_cpu.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_naive_method.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_backward.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_nhwc_backward_mma.cuh"

enum { SHAPES = 6, NUMBERS = 14 };

typedef struct Golden {
  Conv2dShape shape;
  size_t n_x, n_w, n_y;
  float *x, *w, *dy, *dx, *dw, *dbias;
} Golden;

static float *read_tensor(const SafetensorsFile *file, int number, const char *name, int rank, const size_t *shape) {
  Error err;
  char full[32];
  size_t count = 1;
  for (int i = 0; i < rank; i++) count *= shape[i];
  float *values = (float *)xmalloc(count * sizeof *values);
  snprintf(full, sizeof full, "%d.%s", number, name);
  if (safetensors_read_f32(file, full, rank, shape, values, &err) != 0) fail_msg("%s", err.message);
  return values;
}

static void each_shape(void check(const Golden *)) {
  Error err;
  char path[PATH_MAX];
  SafetensorsFile file;
  int numbers[SHAPES][NUMBERS];
  const size_t shapes[] = {SHAPES, NUMBERS};
  if (runfiles_find("phase3_cnn/06_conv2d_backward/testdata/conv2d_gradients_golden.safetensors", path, sizeof path,
                    &err) != 0 ||
      safetensors_open(path, &file, &err) != 0 ||
      safetensors_read(&file, "shapes", "I32", 2, shapes, numbers, &err) != 0)
    fail_msg("%s", err.message);
  for (int i = 0; i < SHAPES; i++) {
    const int *v = numbers[i];
    Conv2dShape s = {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13]};
    if (conv2d_shape_check(s, &err) != 0) fail_msg("%s", err.message);
    const size_t x[] = {(size_t)s.n, (size_t)s.c, (size_t)s.h, (size_t)s.w};
    const size_t w[] = {(size_t)s.k, (size_t)s.c / s.groups, (size_t)s.r, (size_t)s.s};
    const size_t y[] = {(size_t)s.n, (size_t)s.k, (size_t)conv2d_out_h(s), (size_t)conv2d_out_w(s)};
    const size_t bias[] = {(size_t)s.k};
    Golden g = {s,
                conv2d_x_count(s),
                conv2d_w_count(s),
                conv2d_y_count(s),
                read_tensor(&file, i, "x", 4, x),
                read_tensor(&file, i, "w", 4, w),
                read_tensor(&file, i, "dy", 4, y),
                read_tensor(&file, i, "dx", 4, x),
                read_tensor(&file, i, "dw", 4, w),
                read_tensor(&file, i, "dbias", 1, bias)};
    check(&g);
    float *all[] = {g.x, g.w, g.dy, g.dx, g.dw, g.dbias};
    for (size_t j = 0; j < sizeof all / sizeof *all; j++) free(all[j]);
  }
  safetensors_close(&file);
}

static void expect(const char *name, const char *what, const float *actual, const float *expected, size_t rows,
                   size_t cols, Conv2dShape s) {
  const Tolerance none = tolerance_make(0, 0);
  Comparison c = compare_arrays(actual, expected, rows, cols, none);
  if (!c.ok) fail_msg("%s of %s, %s: %s", what, name, conv2d_shape_text(s).text, c.message);
}

static void expect_dx(const char *name, const float *dx, const Golden *g) {
  expect(name, "dx", dx, g->dx, (size_t)g->shape.n * g->shape.c, (size_t)g->shape.h * g->shape.w, g->shape);
}
static void expect_dw(const char *name, const float *dw, const Golden *g) {
  expect(name, "dw", dw, g->dw, g->shape.k, g->n_w / g->shape.k, g->shape);
}
static void expect_dbias(const char *name, const float *dbias, const Golden *g) {
  expect(name, "dbias", dbias, g->dbias, 1, g->shape.k, g->shape);
}

/* ---- the reference, from which all other tests start ---- */

static void check_reference(const Golden *g) {
  float *dx = arrays_poison(g->n_x), *dw = arrays_poison(g->n_w), *dbias = arrays_poison(g->shape.k);
  conv2d_backward_input_cpu(dx, g->dy, g->w, g->shape);
  conv2d_backward_weight_cpu(dw, dbias, g->dy, g->x, g->shape);
  expect_dx("the reference", dx, g);
  expect_dw("the reference", dw, g);
  expect_dbias("the reference", dbias, g);
  free(dx);
  free(dw);
  free(dbias);
}

static void the_reference_is_pytorch(void **state) {
  (void)state;
  each_shape(check_reference);
}

/* ---- float32, NCHW ---- */

static size_t no_floats(Conv2dShape) { return 0; }

static const struct {
  const char *name;
  Conv2dBackwardInput *launch;
  size_t (*floats)(Conv2dShape s);
} inputs[] = {
    {"naive", conv2d_naive_backward_input, no_floats},
    {"gather", conv2d_backward_input_gather, no_floats},
    {"gemm", conv2d_backward_input_gemm, conv2d_input_gemm_floats},
    {"the method", conv2d_method_backward_input, conv2d_gemm_method_floats},
};

static const struct {
  const char *name;
  Conv2dBackwardWeight *launch;
  size_t (*floats)(Conv2dShape s);
} weights[] = {
    {"naive", conv2d_naive_backward_weight, no_floats},
    {"blocks", conv2d_backward_weight_blocks, conv2d_bias_floats},
    {"split", conv2d_backward_weight_split, conv2d_weight_split_floats},
    {"atomic", conv2d_backward_weight_atomic, conv2d_bias_floats},
    {"gemm", conv2d_backward_weight_gemm, conv2d_backward_gemm_weight_floats},
    {"gemm_atomic", conv2d_backward_weight_gemm_atomic, conv2d_backward_gemm_weight_floats},
    {"the method", conv2d_method_backward_weight, conv2d_gemm_method_floats},
};

static void check_float(const Golden *g) {
  const Conv2dShape s = g->shape;
  float *x = arrays_upload(DEVICE_GPU, g->x, g->n_x), *w = arrays_upload(DEVICE_GPU, g->w, g->n_w);
  float *dy = arrays_upload(DEVICE_GPU, g->dy, g->n_y);
  float *dx_host = arrays_poison(g->n_x), *dw_host = arrays_poison(g->n_w), *dbias_host = arrays_poison(s.k);
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
    float *dx = guard_alloc(DEVICE_GPU, g->n_x), *workspace = guard_alloc(DEVICE_GPU, inputs[i].floats(s));
    inputs[i].launch(dx, dy, w, s, workspace);
    arrays_download(DEVICE_GPU, dx_host, dx, g->n_x, "dx");
    arrays_download(DEVICE_GPU, NULL, workspace, inputs[i].floats(s), "workspace");
    expect_dx(inputs[i].name, dx_host, g);
  }
  for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
    float *dw = guard_alloc(DEVICE_GPU, g->n_w), *dbias = guard_alloc(DEVICE_GPU, s.k);
    float *workspace = guard_alloc(DEVICE_GPU, weights[i].floats(s));
    weights[i].launch(dw, dbias, dy, x, s, workspace);
    arrays_download(DEVICE_GPU, dw_host, dw, g->n_w, "dw");
    arrays_download(DEVICE_GPU, dbias_host, dbias, s.k, "dbias");
    arrays_download(DEVICE_GPU, NULL, workspace, weights[i].floats(s), "workspace");
    expect_dw(weights[i].name, dw_host, g);
    expect_dbias(weights[i].name, dbias_host, g);
  }
  arrays_download(DEVICE_GPU, NULL, x, g->n_x, "x");
  arrays_download(DEVICE_GPU, NULL, w, g->n_w, "w");
  arrays_download(DEVICE_GPU, NULL, dy, g->n_y, "dy");
  free(dx_host);
  free(dw_host);
  free(dbias_host);
}

static void float_is_pytorch(void **state) {
  (void)state;
  test_requires_gpu();
  each_shape(check_float);
}

/* ---- bfloat16 and half, NHWC: PyTorch's numbers, rounded once ---- */

/* (rows,channels,pixels) as T (rows,pixels,channels), on the GPU */
template <typename T>
static T *upload_channels_last(const float *from, size_t rows, size_t channels, size_t pixels) {
  const size_t n = rows * channels * pixels;
  T *host = (T *)xmalloc(n * sizeof *host), *device = (T *)guard_alloc_elements(DEVICE_GPU, n, sizeof *host);
  for (size_t i = 0; i < n; i++)
    conv2d_narrow(&host[(i / pixels / channels * pixels + i % pixels) * channels + i / pixels % channels], from[i]);
  device_upload(DEVICE_GPU, device, host, n * sizeof *host);
  free(host);
  return device;
}

/* Back again, as floats, freeing `device`; and `expected` rounded to T, to `rounded`. */
template <typename T>
static void download_channels_first(float *to, float *rounded, const float *expected, T *device, size_t rows,
                                    size_t channels, size_t pixels, const char *name) {
  Error err;
  const size_t n = rows * channels * pixels;
  T *host = (T *)xmalloc(n * sizeof *host), narrow;
  if (guard_check_elements(DEVICE_GPU, device, n, sizeof *host, name, &err) != 0) fail_msg("%s", err.message);
  device_download(DEVICE_GPU, host, device, n * sizeof *host);
  for (size_t i = 0; i < n; i++) {
    to[i] = conv2d_widen(host[(i / pixels / channels * pixels + i % pixels) * channels + i / pixels % channels]);
    conv2d_narrow(&narrow, expected[i]);
    rounded[i] = conv2d_widen(narrow);
  }
  free(host);
  guard_free(DEVICE_GPU, device);
}

template <typename T>
static void check_nhwc(const Golden *g) {
  const Conv2dShape s = g->shape;
  const size_t plane = (size_t)s.h * s.w, outputs = g->n_y / s.n / s.k, taps = (size_t)s.r * s.s;
  const size_t channels = s.c / s.groups, floats = conv2d_dw_floats(s) + g->n_w;
  T *x = upload_channels_last<T>(g->x, s.n, s.c, plane), *w = upload_channels_last<T>(g->w, s.k, channels, taps);
  T *dy = upload_channels_last<T>(g->dy, s.n, s.k, outputs);
  T *dx = (T *)guard_alloc_elements(DEVICE_GPU, g->n_x, sizeof *dx);
  T *dw = (T *)guard_alloc_elements(DEVICE_GPU, g->n_w, sizeof *dw);
  float *dbias = guard_alloc(DEVICE_GPU, s.k), *workspace = guard_alloc(DEVICE_GPU, floats);
  conv2d_backward_input_nhwc_mma(dx, dy, w, s, (T *)workspace);
  conv2d_backward_weight_nhwc_mma(dw, dbias, dy, x, s, workspace);

  Golden rounded = *g;
  float *dx_host = arrays_poison(g->n_x), *dw_host = arrays_poison(g->n_w), *dbias_host = arrays_poison(s.k);
  rounded.dx = arrays_poison(g->n_x);
  rounded.dw = arrays_poison(g->n_w);
  download_channels_first(dx_host, rounded.dx, g->dx, dx, s.n, s.c, plane, "dx");
  download_channels_first(dw_host, rounded.dw, g->dw, dw, s.k, channels, taps, "dw");
  arrays_download(DEVICE_GPU, dbias_host, dbias, s.k, "dbias");
  arrays_download(DEVICE_GPU, NULL, workspace, floats, "workspace");
  expect_dx("nhwc_mma", dx_host, &rounded);
  expect_dw("nhwc_mma", dw_host, &rounded);
  expect_dbias("nhwc_mma", dbias_host, g);
  guard_free(DEVICE_GPU, x);
  guard_free(DEVICE_GPU, w);
  guard_free(DEVICE_GPU, dy);
  float *all[] = {dx_host, dw_host, dbias_host, rounded.dx, rounded.dw};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void nhwc_is_pytorch_rounded(void **state) {
  (void)state;
  test_requires_gpu();
  if (mma_refusal() != NULL) {
    print_message("skipped: %s\n", mma_refusal());
    skip();
  }
  each_shape(check_nhwc<__nv_bfloat16>);
  each_shape(check_nhwc<__half>);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_reference_is_pytorch),
      cmocka_unit_test(float_is_pytorch),
      cmocka_unit_test(nhwc_is_pytorch_rounded),
  };
  return TEST_MAIN("conv2d_backward_golden", tests);
}
