/* Gradients in NHWC against the reference in NCHW; the plan of the gradient of the weights, followed by the host. */
#include "phase3_cnn/06_conv2d_backward/conv2d_nhwc_backward_mma.cuh"

#include "common/test_arrays.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_cpu.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_nhwc_backward_wgmma.cuh"

/* n random numbers of T on the GPU between guard bands; the same as floats to `wide`. */
template <typename T>
static T *upload_random(float *wide, size_t n, uint64_t seed) {
  T *narrow = (T *)xmalloc(n * sizeof *narrow);
  test_random_fill(wide, n, seed);
  for (size_t i = 0; i < n; i++) {
    conv2d_narrow(&narrow[i], wide[i]);
    wide[i] = conv2d_widen(narrow[i]);
  }
  T *device = (T *)guard_alloc_elements(DEVICE_GPU, n, sizeof *device);
  device_upload(DEVICE_GPU, device, narrow, n * sizeof *device);
  free(narrow);
  return device;
}

template <typename T>
static void download(float *wide, T *device, size_t n, const char *name) {
  Error err;
  T *narrow = (T *)xmalloc(n * sizeof *narrow);
  if (guard_check_elements(DEVICE_GPU, device, n, sizeof *device, name, &err) != 0) fail_msg("%s", err.message);
  device_download(DEVICE_GPU, narrow, device, n * sizeof *device);
  for (size_t i = 0; i < n && wide != NULL; i++) wide[i] = conv2d_widen(narrow[i]);
  free(narrow);
  guard_free(DEVICE_GPU, device);
}

/* (N,pixels,C) -> (N,C,pixels) */
template <typename T>
static T *channels_first(const T *x, int n, int c, size_t pixels) {
  T *to = (T *)xmalloc((size_t)n * c * pixels * sizeof *to);
  for (int i = 0; i < n; i++)
    for (size_t p = 0; p < pixels; p++)
      for (int j = 0; j < c; j++) to[((size_t)i * c + j) * pixels + p] = x[(i * pixels + p) * c + j];
  return to;
}

typedef enum Way { MMA, WGMMA } Way;

template <typename T>
static Tolerance tolerance_of(size_t terms) {
  Tolerance t = tolerance_dot(terms, 1);
  t.relative = 1.01 / (Conv2dIsHalf<T>::value ? 2048 : 256); /* half a unit of the last place */
  return t;
}

template <typename T>
static void compare_gradient(const char *name, const float *actual, const float *expected, size_t rows, size_t cols,
                             size_t terms, Conv2dShape s) {
  Comparison c = compare_arrays(actual, expected, rows, cols, tolerance_of<T>(terms));
  if (!c.ok) fail_msg("%s, %s: %s", name, conv2d_shape_text(s).text, c.message);
}

template <typename T>
static void expect_gradients(Way way, Conv2dShape s) {
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s), pixels = n_y / s.n / s.k;
  const int channels = s.c / s.groups, taps = s.r * s.s;
  float *x = arrays_random(n_x, 0), *w = arrays_random(n_w, 0), *dy = arrays_random(n_y, 0);
  float *dx = arrays_poison(n_x), *dw = arrays_poison(n_w), *dbias = arrays_poison(s.k), *expected = arrays_poison(n_x);
  T *device_x = upload_random<T>(x, n_x, 1), *device_w = upload_random<T>(w, n_w, 2);
  T *device_dy = upload_random<T>(dy, n_y, 3);
  T *device_dx = (T *)guard_alloc_elements(DEVICE_GPU, n_x, sizeof(T));
  T *device_dw = (T *)guard_alloc_elements(DEVICE_GPU, n_w, sizeof(T));
  float *device_dbias = guard_alloc(DEVICE_GPU, s.k);
  size_t floats = way == MMA ? conv2d_dw_floats(s) : conv2d_dw_wgmma_floats<T>(s);
  float *workspace = guard_alloc(DEVICE_GPU, floats > n_w ? floats : n_w);
  if (way == MMA) {
    conv2d_backward_input_nhwc_mma(device_dx, device_dy, device_w, s, (T *)workspace);
    conv2d_backward_weight_nhwc_mma(device_dw, device_dbias, device_dy, device_x, s, workspace);
  } else {
    conv2d_backward_input_nhwc_wgmma(device_dx, device_dy, device_w, s, (T *)workspace);
    conv2d_backward_weight_nhwc_wgmma(device_dw, device_dbias, device_dy, device_x, s, workspace);
  }
  download(dx, device_dx, n_x, "dx");
  download(dw, device_dw, n_w, "dw");
  arrays_download(DEVICE_GPU, dbias, device_dbias, s.k, "dbias");
  arrays_download(DEVICE_GPU, NULL, workspace, floats > n_w ? floats : n_w, "workspace");
  download((float *)NULL, device_x, n_x, "x");
  download((float *)NULL, device_w, n_w, "w");
  download((float *)NULL, device_dy, n_y, "dy");

  float *x_first = channels_first(x, s.n, s.c, (size_t)s.h * s.w), *w_first = channels_first(w, s.k, channels, taps);
  float *dy_first = channels_first(dy, s.n, s.k, pixels), *dx_first = channels_first(dx, s.n, s.c, (size_t)s.h * s.w);
  float *dw_first = channels_first(dw, s.k, channels, taps);
  float *expected_dw = arrays_poison(n_w), *expected_dbias = arrays_poison(s.k);
  conv2d_backward_input_cpu(expected, dy_first, w_first, s);
  conv2d_backward_weight_cpu(expected_dw, expected_dbias, dy_first, x_first, s);
  compare_gradient<T>("dx", dx_first, expected, (size_t)s.n * s.c, (size_t)s.h * s.w, (size_t)s.k * taps, s);
  compare_gradient<T>("dw", dw_first, expected_dw, s.k, n_w / s.k, s.n * pixels, s);
  compare_gradient<T>("dbias", dbias, expected_dbias, 1, s.k, s.n * pixels, s);
  float *all[] = {x,       w,       dy,       dx,       dw,       dbias,       expected,
                  x_first, w_first, dy_first, dx_first, dw_first, expected_dw, expected_dbias};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static int pick(uint64_t *counter, const int *from, int count) {
  PhiloxBlock block = philox4x32(34, 1, (*counter)++);
  return from[block.word[0] % count];
}

/* Random shapes: any, or such as TMA can copy. */
template <typename T>
static void expect_shapes(Way way, int count) {
  const int n[] = {1, 2, 3, 5}, c[] = {1, 3, 8, 16, 24, 48, 72}, h[] = {1, 2, 3, 5, 7, 8, 13},
            k[] = {1, 2, 6, 8, 9, 72};
  const int c8[] = {8, 16, 24, 64, 72, 136, 128}, k8[] = {8, 16, 24, 64, 72, 136};
  const int side[] = {1, 2, 3, 3, 5}, stride[] = {1, 1, 2, 3}, padding[] = {0, 1, 2};
  const int dilation[] = {1, 1, 2}, groups[] = {1, 1, 2, 3};
  uint64_t counter = 0;
  for (int done = 0; done < count;) {
    Conv2dShape s = {pick(&counter, n, 4),
                     pick(&counter, way == MMA ? c : c8, 7),
                     pick(&counter, h, 7),
                     pick(&counter, h, 7),
                     pick(&counter, way == MMA ? k : k8, 6),
                     pick(&counter, side, 5),
                     pick(&counter, side, 5),
                     pick(&counter, stride, way == MMA ? 4 : 3),
                     pick(&counter, stride, way == MMA ? 4 : 3),
                     pick(&counter, padding, 3),
                     pick(&counter, padding, 3),
                     pick(&counter, dilation, 3),
                     pick(&counter, dilation, 3),
                     pick(&counter, groups, way == MMA ? 4 : 1)};
    if (conv2d_shape_check(s, NULL) != 0) continue;
    if ((double)conv2d_y_count(s) * s.c * s.r * s.s > (way == MMA ? 200000 : 5000000)) continue;
    expect_gradients<T>(way, s);
    done++;
  }
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
  expect_gradients<__nv_bfloat16>(MMA, conv2d_shape(3, 16, 12, 16, 72, 3, 3, 1, 1)); /* several steps and splits */
  expect_gradients<__nv_bfloat16>(MMA, conv2d_shape(1, 3, 40, 40, 8, 1, 1, 1, 0));   /* two parts of the bias */
}

static void wgmma_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  if (conv2d_wgmma_refusal() != NULL) {
    print_message("skipped: %s\n", conv2d_wgmma_refusal());
    skip();
  }
  expect_shapes<__nv_bfloat16>(WGMMA, 60);
  expect_shapes<__half>(WGMMA, 20);
  expect_gradients<__nv_bfloat16>(WGMMA, conv2d_shape(9, 64, 56, 56, 64, 3, 3, 1, 1));
  expect_gradients<__nv_bfloat16>(WGMMA, conv2d_shape(9, 136, 14, 14, 264, 3, 3, 1, 1));
  expect_gradients<__nv_bfloat16>(WGMMA, conv2d_shape(9, 128, 28, 28, 256, 3, 3, 2, 1));
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The plan of dw: 8 channels, 8 filters */

enum { CHANNELS = 8 };

/* Pixel (row, col) of plane (a, b) of x (N,H,W,8), or zeros. */
static void copy_pixel(double *to, const double *x, Conv2dShape s, int plane, int image, int row, int col) {
  row = row * s.stride_h + plane / s.stride_w;
  col = col * s.stride_w + plane % s.stride_w;
  bool inside = image < s.n && row >= 0 && row < s.h && col >= 0 && col < s.w;
  for (int c = 0; c < CHANNELS; c++) to[c] = inside ? x[(((size_t)image * s.h + row) * s.w + col) * CHANNELS + c] : 0;
}

/* dw += the products of one job for one tile. */
static void add_job(double *dw, const double *dy, const double *x, const Conv2dDwPlan *plan, const Conv2dDwJob *job,
                    Conv2dShape s) {
  for (int t = 0; t < job->taps; t++) {
    int shift = job->shift + t * job->step, filter = job->filter + t * job->filter_step;
    if (shift < 0 || shift + plan->depth > plan->x_rows || plan->depth > plan->dy_rows)
      fail_msg("%s: a tap reads pixels %d to %d of %d", conv2d_shape_text(s).text, shift, shift + plan->depth - 1,
               plan->x_rows);
    for (int j = 0; j < plan->depth; j++)
      for (int k = 0; k < CHANNELS; k++)
        for (int c = 0; c < CHANNELS; c++)
          dw[(k * s.r * s.s + filter) * CHANNELS + c] += dy[j * CHANNELS + k] * x[(j + shift) * CHANNELS + c];
  }
}

static void follow(double *dw, const double *dy, const double *x, const Conv2dDwPlan *plan, Conv2dShape s) {
  int p = conv2d_out_h(s), q = conv2d_out_w(s), row_pixels = plan->tile_images * plan->pitch;
  double *x_box = (double *)xmalloc((size_t)plan->x_rows * CHANNELS * sizeof *x_box);
  double *dy_box = (double *)xmalloc((size_t)plan->dy_rows * CHANNELS * sizeof *dy_box);
  Conv2dShape output = s;
  output.h = p, output.w = q, output.stride_h = output.stride_w = 1;
  memset(dw, 0, conv2d_w_count(s) * sizeof *dw);
  for (int tile = 0; tile < plan->tiles_images * plan->tiles_rows; tile++) {
    int row0 = tile % plan->tiles_rows * plan->tile_rows, image0 = tile / plan->tiles_rows * plan->tile_images;
    memset(dy_box, 0, (size_t)plan->dy_rows * CHANNELS * sizeof *dy_box);
    for (int j = 0; j < plan->image_rows * row_pixels; j++)
      copy_pixel(dy_box + j * CHANNELS, dy, output, 0, image0 + j / plan->pitch / plan->image_rows,
                 row0 + j / plan->pitch % plan->image_rows, j % plan->pitch);
    for (int i = 0; i < plan->sets; i++) {
      const Conv2dDwSet *set = &plan->set[i];
      memset(x_box, 0, (size_t)plan->x_rows * CHANNELS * sizeof *x_box);
      for (int j = 0; j < plan->box_rows * row_pixels; j++)
        copy_pixel(x_box + j * CHANNELS, x, s, set->plane, image0 + j / plan->pitch / plan->box_rows,
                   row0 + j / plan->pitch % plan->box_rows + set->row, j % plan->pitch + set->col);
      for (int job = 0; job < set->jobs; job++) add_job(dw, dy_box, x_box, plan, &set->job[job], s);
    }
  }
  free(x_box);
  free(dy_box);
}

static double *random_doubles(size_t n, uint64_t seed) {
  float *x = arrays_random(n, seed);
  double *to = (double *)xmalloc(n * sizeof *to);
  for (size_t i = 0; i < n; i++) to[i] = x[i];
  free(x);
  return to;
}

static void plans_give_the_gradient(void **state) {
  (void)state;
  const Conv2dShape shapes[] = {
      {1, 8, 8, 16, 8, 1, 1, 1, 1, 0, 0, 1, 1, 1},  {2, 8, 8, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1},
      {7, 8, 7, 7, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1},   {2, 8, 14, 14, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1},
      {1, 8, 9, 56, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1},  {2, 8, 33, 31, 8, 5, 3, 1, 1, 2, 1, 1, 1, 1},
      {2, 8, 15, 17, 8, 3, 3, 2, 2, 1, 1, 1, 1, 1}, {3, 8, 14, 14, 8, 1, 1, 2, 2, 0, 0, 1, 1, 1},
      {3, 8, 20, 20, 8, 3, 3, 1, 1, 2, 2, 2, 2, 1}, {2, 8, 15, 15, 8, 7, 7, 2, 2, 3, 3, 1, 1, 1},
      {1, 8, 12, 12, 8, 2, 4, 1, 2, 1, 0, 1, 1, 1}, {3, 8, 10, 10, 8, 3, 3, 1, 1, 3, 3, 1, 1, 1},
      {5, 8, 6, 9, 8, 3, 2, 2, 1, 2, 1, 1, 2, 1},   {5, 8, 6, 9, 8, 3, 3, 2, 2, 2, 1, 2, 2, 1},
      {4, 8, 1, 5, 8, 1, 5, 1, 1, 0, 2, 1, 1, 1},   {9, 8, 3, 2, 8, 3, 3, 2, 2, 1, 1, 1, 1, 1},
  };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    Conv2dShape s = shapes[i];
    Conv2dDwPlan plan = {};
    const Conv2dDwClusters h200 = {{132, 66, 32, 16}};
    Error err;
    if (conv2d_dw_plan(&plan, s, h200, &err) != 0) fail_msg("%s", err.message);
    size_t pixels = conv2d_y_count(s) / s.n / s.k, count = conv2d_w_count(s);
    double *x = random_doubles(conv2d_x_count(s), 1), *dy = random_doubles(conv2d_y_count(s), 2);
    double *dw = random_doubles(count, 3), *expected = random_doubles(count, 4);
    follow(dw, dy, x, &plan, s);
    double *x_first = channels_first(x, s.n, CHANNELS, (size_t)s.h * s.w);
    double *dy_first = channels_first(dy, s.n, CHANNELS, pixels), *dw_first = channels_first(dw, s.k, 8, s.r * s.s);
    conv2d_backward_weight_cpu<double>(expected, NULL, dy_first, x_first, s);
    for (size_t j = 0; j < count; j++)
      if (!(fabs(dw_first[j] - expected[j]) <= 1e-9 * (1 + fabs(expected[j]))))
        fail_msg("%s: dw[%zu] is %g, expected %g", conv2d_shape_text(s).text, j, dw_first[j], expected[j]);
    double *all[] = {x, dy, dw, expected, x_first, dy_first, dw_first};
    for (size_t j = 0; j < sizeof all / sizeof *all; j++) free(all[j]);
  }
}

static void expect_refusal(Conv2dShape s, const char *why) {
  Conv2dDwPlan plan = {};
  const Conv2dDwClusters h200 = {{132, 66, 32, 16}};
  Error err;
  if (conv2d_dw_plan(&plan, s, h200, &err) == 0) fail_msg("%s was not refused", conv2d_shape_text(s).text);
  if (strstr(err.message, why) == NULL || strstr(err.message, "use nhwc_mma") == NULL)
    fail_msg("\"%s\" does not say \"%s\" and what to use", err.message, why);
}

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  Conv2dShape s = conv2d_shape(2, 16, 8, 8, 16, 3, 3, 1, 1);
  s.groups = 2;
  expect_refusal(s, "one group");
  expect_refusal(conv2d_shape(2, 3, 8, 8, 16, 3, 3, 1, 1), "multiples of 8");
  expect_refusal(conv2d_shape(2, 8, 8, 8, 16, 3, 3, 3, 1), "stride of 1 or 2");
  expect_refusal(conv2d_shape(2, 8, 8, 1, 16, 3, 3, 2, 1), "as large as the stride");
  expect_refusal(conv2d_shape(1, 8, 9, 400, 8, 3, 3, 1, 1), "fits into shared memory");
  s = conv2d_shape(1, 8, 1, 70010, 8, 1, 2, 2, 0);
  s.stride_h = 1;
  s.dilation_w = 70001;
  expect_refusal(s, "span up to 32767 pixels");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plans_give_the_gradient),
      cmocka_unit_test(what_does_not_fit_is_refused),
      cmocka_unit_test(mma_matches_reference),
      cmocka_unit_test(wgmma_matches_reference),
  };
  return TEST_MAIN("conv2d_nhwc_backward", tests);
}
