/* Average pooling against its reference, its gradient against the slope, and the nodes of a network. */
#include "phase3_cnn/09_pooling/avg_pool2d.cuh"

#include <omp.h>

#include "common/test_arrays.h"
#include "phase3_cnn/09_pooling/avg_pool2d_op.cuh"
#include "phase3_cnn/09_pooling/max_pool2d_op.cuh"

static Pool2dShape rounded_up(Pool2dShape shape) {
  shape.ceil_mode = 1;
  return shape;
}

/* One pixel of padding round 2 x 3 pixels. With ceil_mode the third column of windows has one column of padding and one
 * that is neither image nor padding, which never counts. */
static void reference_is_right_by_hand(void **state) {
  (void)state;
  const float x[6] = {1, 2, 3, 4, 5, 6}, dy[6] = {1, 0, 0, 12, 0, 0};
  const Pool2dShape shape = rounded_up(pool2d_shape_of(1, 1, 2, 3, {2, 2, 2, 2, 1, 1}));
  const float included[4] = {0.25f, 1.25f, 1, 2.75f}, excluded[4] = {1, 2.5f, 4, 5.5f};
  float y[4], dx[6];
  assert_int_equal(pool2d_y_count(shape), 4);
  avg_pool2d_forward_cpu(y, x, shape, true);
  assert_close(y, included, 4, 0, 0);
  avg_pool2d_forward_cpu(y, x, shape, false);
  assert_close(y, excluded, 4, 0, 0);
  const float dx_included[6] = {0.25f, 0, 0, 0, 3, 3}, dx_excluded[6] = {1, 0, 0, 0, 6, 6};
  avg_pool2d_backward_cpu(dx, dy, shape, true);
  assert_close(dx, dx_included, 6, 0, 0);
  avg_pool2d_backward_cpu(dx, dy, shape, false);
  assert_close(dx, dx_excluded, 6, 0, 0);

  const Pool2dShape cut = rounded_up(pool2d_shape_of(1, 1, 1, 4, {1, 3, 1, 3, 0, 1}));
  const float ones[4] = {1, 1, 1, 1}, cut_included[2] = {2 / 3.0f, 2 / 3.0f};
  assert_int_equal(pool2d_out_w(cut), 2);
  avg_pool2d_forward_cpu(y, ones, cut, true);
  assert_close(y, cut_included, 2, 1e-7f, 0);
  const Pool2dShape beyond = rounded_up(pool2d_shape_of(1, 1, 1, 4, {1, 3, 1, 2, 0, 1}));
  const float beyond_included[3] = {2 / 3.0f, 1, 0.5f}; /* the last has a pixel, and one of padding */
  assert_int_equal(pool2d_out_w(beyond), 3);
  avg_pool2d_forward_cpu(y, ones, beyond, true);
  assert_close(y, beyond_included, 3, 1e-7f, 0);
}

static void impossible_shapes_are_refused(void **state) {
  (void)state;
  Pool2dShape shape = pool2d_shape(2, 3, 9, 9, 3, 1);
  Error err;
  assert_int_equal(avg_pool2d_shape_check(shape, &err), 0);
  shape.dilation_w = 2;
  assert_int_equal(avg_pool2d_shape_check(shape, &err), -1);
  assert_non_null(strstr(err.message, "average pooling with dilation 1 x 2: only windows without gaps"));
  assert_int_equal(avg_pool2d_shape_check(pool2d_shape(2, 3, 9, 9, 10, 1), &err), -1);
  assert_non_null(strstr(err.message, "average pooling of 9 rows and 0 of padding with windows of 10"));
}

static void gradient_matches_central_differences(void **state) {
  (void)state;
  const Pool2dShape shapes[] = {pool2d_shape(2, 2, 6, 8, 2, 2), pool2d_shape_of(1, 2, 7, 5, {3, 3, 2, 2, 1, 1}),
                                rounded_up(pool2d_shape_of(1, 2, 8, 9, {3, 2, 2, 3, 1, 1}))};
  for (int i = 0; i < 6; i++) {
    const Pool2dShape s = shapes[i / 2];
    const int n_x = (int)pool2d_x_count(s), n_y = (int)pool2d_y_count(s);
    double x[256], y[256], dy[256], dx[256];
    for (int j = 0; j < n_x; j++) x[j] = j * 37 % 53 / 7.0;
    for (int j = 0; j < n_y; j++) dy[j] = j % 11 - 4;
    avg_pool2d_backward_cpu(dx, dy, s, i % 2 == 1);
    for (int j = 0; j < n_x; j++) {
      double slope = 0;
      const double middle = x[j];
      for (int side = -1; side <= 1; side += 2) {
        x[j] = middle + side * 0.25;
        avg_pool2d_forward_cpu(y, x, s, i % 2 == 1);
        for (int o = 0; o < n_y; o++) slope += side * y[o] * dy[o] / 0.5;
      }
      x[j] = middle;
      if (!(fabs(slope - dx[j]) < 1e-11)) fail_msg("element %d: the slope is %g, the gradient %g", j, slope, dx[j]);
    }
  }
}

/* ---- against the reference ---- */

typedef void Forward(float *y, const float *x, Pool2dShape s, bool include_pad);
typedef void Backward(float *dx, const float *dy, Pool2dShape s, bool include_pad);

static void check_array(const char *name, const float *actual, const float *expected, size_t planes, size_t size,
                        Pool2dShape s) {
  Comparison c = compare_arrays(actual, expected, planes, size, tolerance_dot((size_t)s.kernel_h * s.kernel_w, 1));
  if (!c.ok)
    fail_msg("%s, (%d,%d,%d,%d), windows of %d x %d, stride %d x %d, padding %d x %d, ceil_mode %d: %s", name, s.n, s.c,
             s.h, s.w, s.kernel_h, s.kernel_w, s.stride_h, s.stride_w, s.pad_h, s.pad_w, s.ceil_mode, c.message);
}

static void check(Device device, Forward *forward, Backward *backward, Pool2dShape s, bool include_pad) {
  const size_t n_x = pool2d_x_count(s), n_y = pool2d_y_count(s), planes = (size_t)s.n * s.c;
  float *x = arrays_random(n_x, 3), *dy = arrays_random(n_y, 4), *y = arrays_poison(n_y), *dx = arrays_poison(n_x);
  float *y_expected = arrays_poison(n_y), *dx_expected = arrays_poison(n_x);
  avg_pool2d_forward_cpu(y_expected, x, s, include_pad);
  avg_pool2d_backward_cpu(dx_expected, dy, s, include_pad);
  float *device_x = arrays_upload(device, x, n_x), *device_dy = arrays_upload(device, dy, n_y);
  float *device_y = arrays_upload(device, y, n_y), *device_dx = arrays_upload(device, dx, n_x);
  forward(device_y, device_x, s, include_pad);
  backward(device_dx, device_dy, s, include_pad);
  arrays_download(device, NULL, device_x, n_x, "x");
  arrays_download(device, NULL, device_dy, n_y, "dy");
  arrays_download(device, y, device_y, n_y, "y");
  arrays_download(device, dx, device_dx, n_x, "dx");
  check_array(include_pad ? "y, padding counts" : "y", y, y_expected, planes, n_y / planes, s);
  check_array(include_pad ? "dx, padding counts" : "dx", dx, dx_expected, planes, n_x / planes, s);
  float *const all[] = {x, dy, y, dx, y_expected, dx_expected};
  for (int i = 0; i < 6; i++) free(all[i]);
}

/* Those that networks use, on widths that are float4s, pairs and neither; then every parameter. */
static void check_shapes(Device device, Forward *forward, Backward *backward) {
  for (int h = 3; h <= 9; h += 2)
    for (int w = 3; w <= 17; w++)
      for (int mode = 0; mode < 8; mode++) {
        const int kernel = 2 + mode % 2, pad = mode % 2;
        const Pool2dShape shape = pool2d_shape_of(2, 3, h, w, {kernel, kernel, 2, 2, pad, pad});
        check(device, forward, backward, mode / 2 % 2 ? rounded_up(shape) : shape, mode / 4);
      }
  const Pool2dShape others[] = {
      pool2d_shape(1, 1, 1, 1, 1, 1),
      pool2d_shape(3, 5, 28, 28, 2, 2),
      pool2d_shape(1, 3, 31, 33, 3, 1),
      pool2d_shape(1, 2, 20, 37, 20, 9),
      pool2d_shape(2, 1, 5, 131, 2, 3),
      pool2d_shape_of(2, 3, 9, 11, {2, 5, 1, 3, 1, 2}),
      pool2d_shape_of(1, 3, 7, 6, {7, 6, 1, 1, 3, 3}),
      rounded_up(pool2d_shape_of(2, 2, 13, 10, {3, 2, 2, 3, 1, 1})),
      pool2d_shape_of(1, 1, 4, 3, {2, 2, INT_MAX, INT_MAX, 1, 1}),
  };
  for (size_t i = 0; i < 2 * sizeof others / sizeof *others; i++)
    check(device, forward, backward, others[i / 2], i % 2 == 1);
}

static void fast_matches_reference(void **state) {
  (void)state;
  const int threads_before = omp_get_max_threads();
  for (int threads = 1; threads <= 3; threads += 2) {
    omp_set_num_threads(threads);
    check_shapes(DEVICE_CPU, avg_pool2d_forward_cpu_fast, avg_pool2d_backward_cpu_fast);
  }
  omp_set_num_threads(threads_before);
}

static void gpu_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  check_shapes(DEVICE_GPU, avg_pool2d_forward_naive, avg_pool2d_backward_naive);
  check_shapes(DEVICE_GPU, avg_pool2d_forward_gpu, avg_pool2d_backward_gpu);
}

/* ---- nodes ---- */

/* forward() and backward() of a node on a device, between guard bands. */
static void run_node(Device device, const Node *node, int batch, float *y, float *dx, const float *x, const float *dy,
                     size_t n_x, size_t n_y) {
  float *device_x = arrays_upload(device, x, n_x), *device_dy = arrays_upload(device, dy, n_y);
  float *device_y = arrays_upload(device, y, n_y), *device_dx = arrays_upload(device, dx, n_x);
  Context context;
  OpArrays arrays;
  memset(&context, 0, sizeof context);
  memset(&arrays, 0, sizeof arrays);
  context.device = device;
  arrays.batch = batch;
  arrays.x[0] = device_x;
  arrays.y = device_y;
  arrays.dy = device_dy;
  if (node->op->saved_bytes != NULL) arrays.saved = device_alloc(device, node->op->saved_bytes(node, batch));
  node->op->forward(&context, node, &arrays);
  node->op->backward(&context, node, &arrays); /* nobody needs dx */
  arrays.dx[0] = device_dx;
  node->op->backward(&context, node, &arrays);
  if (arrays.saved != NULL) device_free(device, arrays.saved);
  arrays_download(device, y, device_y, n_y, "y");
  arrays_download(device, dx, device_dx, n_x, "dx");
  arrays_download(device, NULL, device_x, n_x, "x");
  arrays_download(device, NULL, device_dy, n_y, "dy");
}

static void check_nodes(Device device) {
  enum { BATCH = 3, CHANNELS = 2 };
  const Pool2dWindow window = {3, 2, 2, 1, 1, 0};
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape3(CHANNELS, 9, 12));
  const int nodes[] = {max_pool2d_window(g, x, window), avg_pool2d_window(g, x, window, 0),
                       avg_pool2d_window(g, x, window, 1), max_pool2d(g, x, 3, 2), avg_pool2d(g, x, 3, 2)};
  static const char *const names[] = {"MaxPool", "AveragePool", "AveragePool", "MaxPool", "AveragePool"};
  const Pool2dShape padded = pool2d_shape_of(BATCH, CHANNELS, 9, 12, window);
  const Pool2dShape square = pool2d_shape(BATCH, CHANNELS, 9, 12, 3, 2);
  for (int i = 0; i < 5; i++) {
    const Pool2dShape s = i < 3 ? padded : square;
    const int is_max = i % 3 == 0;
    const size_t n_x = pool2d_x_count(s), n_y = pool2d_y_count(s);
    const Node *node = &g->nodes[nodes[i]];
    assert_string_equal(node->op->name, names[i]);
    assert_true(shape_equal(node->shape, i < 3 ? shape3(CHANNELS, 5, 11) : shape3(CHANNELS, 4, 5)));
    float *in = arrays_random(n_x, 3), *dy = arrays_random(n_y, 4), *y = arrays_poison(n_y), *dx = arrays_poison(n_x);
    float *y_expected = arrays_poison(n_y), *dx_expected = arrays_poison(n_x);
    uint8_t *argmax = (uint8_t *)xmalloc(n_y);
    run_node(device, node, BATCH, y, dx, in, dy, n_x, n_y);
    if (is_max) {
      max_pool2d_forward_cpu(y_expected, argmax, in, s);
      max_pool2d_backward_cpu(dx_expected, dy, argmax, s);
    } else {
      avg_pool2d_forward_cpu(y_expected, in, s, i == 2);
      avg_pool2d_backward_cpu(dx_expected, dy, s, i == 2);
    }
    check_array(node->name, y, y_expected, BATCH * CHANNELS, n_y / (BATCH * CHANNELS), s);
    check_array(node->name, dx, dx_expected, BATCH * CHANNELS, n_x / (BATCH * CHANNELS), s);
    float *const all[] = {in, dy, y, dx, y_expected, dx_expected};
    for (int j = 0; j < 6; j++) free(all[j]);
    free(argmax);
  }
  const int bad = avg_pool2d(g, x, 10, 1);
  assert_int_equal(bad, GRAPH_ERROR);
  assert_non_null(strstr(g->error.message, "average pooling of x (2,9,12): average pooling of 9 rows"));
  graph_destroy(g);
}

static void nodes_compute_cpu(void **state) {
  (void)state;
  check_nodes(DEVICE_CPU);
}

static void nodes_compute_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_nodes(DEVICE_GPU);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reference_is_right_by_hand),
      cmocka_unit_test(impossible_shapes_are_refused),
      cmocka_unit_test(gradient_matches_central_differences),
      cmocka_unit_test(fast_matches_reference),
      cmocka_unit_test(gpu_matches_reference),
      cmocka_unit_test(nodes_compute_cpu),
      cmocka_unit_test(nodes_compute_gpu),
  };
  return TEST_MAIN("avg_pool2d", tests);
}
