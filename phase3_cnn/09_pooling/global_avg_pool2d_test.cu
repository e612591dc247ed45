/* Global average pooling against its reference, its gradient against the slope, and a network that has it. */
#include "phase3_cnn/09_pooling/global_avg_pool2d.cuh"

#include <omp.h>

#include "common/test_arrays.h"
#include "phase3_cnn/09_pooling/global_avg_pool2d_op.cuh"

static void reference_is_right_by_hand(void **state) {
  (void)state;
  const float x[8] = {1, 2, 3, 6, -1, 0, 0, 5}, dy[2] = {4, -8};
  const float y_expected[2] = {3, 1}, dx_expected[8] = {1, 1, 1, 1, -2, -2, -2, -2};
  float y[2], dx[8];
  global_avg_pool2d_forward_cpu(y, x, 2, 4);
  assert_close(y, y_expected, 2, 0, 0);
  global_avg_pool2d_backward_cpu(dx, dy, 2, 4);
  assert_close(dx, dx_expected, 8, 0, 0);
}

static void gradient_matches_central_differences(void **state) {
  (void)state;
  const int planes = 3, pixels = 35;
  double x[3 * 35], y[3], dy[3] = {1, -2, 0.5}, dx[3 * 35];
  for (int i = 0; i < planes * pixels; i++) x[i] = i * 37 % 53 / 7.0;
  global_avg_pool2d_backward_cpu(dx, dy, planes, pixels);
  for (int i = 0; i < planes * pixels; i++) {
    double slope = 0;
    const double middle = x[i];
    for (int side = -1; side <= 1; side += 2) {
      x[i] = middle + side * 0.25;
      global_avg_pool2d_forward_cpu(y, x, planes, pixels);
      for (int o = 0; o < planes; o++) slope += side * y[o] * dy[o] / 0.5;
    }
    x[i] = middle;
    if (!(fabs(slope - dx[i]) < 1e-12)) fail_msg("element %d: the slope is %g, the gradient %g", i, slope, dx[i]);
  }
}

typedef void Forward(float *y, const float *x, int planes, int pixels);
typedef void Backward(float *dx, const float *dy, int planes, int pixels);

static void check(const char *version, Device device, Forward *forward, Backward *backward, int planes, int pixels) {
  const size_t n = (size_t)planes * pixels;
  float *x = arrays_random(n, 3), *dy = arrays_random(planes, 4), *y = arrays_poison(planes), *dx = arrays_poison(n);
  float *y_expected = arrays_poison(planes), *dx_expected = arrays_poison(n);
  global_avg_pool2d_forward_cpu(y_expected, x, planes, pixels);
  global_avg_pool2d_backward_cpu(dx_expected, dy, planes, pixels);
  float *device_x = arrays_upload(device, x, n), *device_dy = arrays_upload(device, dy, planes);
  float *device_y = arrays_upload(device, y, planes), *device_dx = arrays_upload(device, dx, n);
  forward(device_y, device_x, planes, pixels);
  backward(device_dx, device_dy, planes, pixels);
  arrays_download(device, NULL, device_x, n, "x");
  arrays_download(device, NULL, device_dy, planes, "dy");
  arrays_download(device, y, device_y, planes, "y");
  arrays_download(device, dx, device_dx, n, "dx");
  Tolerance tolerance = tolerance_dot(pixels, 1);
  tolerance.absolute /= pixels; /* of a mean */
  Comparison c = compare_arrays(y, y_expected, 1, planes, tolerance);
  if (!c.ok) fail_msg("%s, y, %d planes of %d pixels: %s", version, planes, pixels, c.message);
  c = compare_arrays(dx, dx_expected, planes, pixels, tolerance_make(0, 0));
  if (!c.ok) fail_msg("%s, dx, %d planes of %d pixels: %s", version, planes, pixels, c.message);
  float *const all[] = {x, dy, y, dx, y_expected, dx_expected};
  for (int i = 0; i < 6; i++) free(all[i]);
}

/* Planes that a warp takes alone, by eights, and a block; with and without float4; the last warp has fewer planes. */
static void check_shapes(const char *version, Device device, Forward *forward, Backward *backward) {
  const int planes[] = {1, 3, 8, 9, 31, 67}, pixels[] = {1, 2, 3, 4, 31, 33, 49, 64, 127, 196};
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 10; j++) check(version, device, forward, backward, planes[i], pixels[j]);
  const int large[][2] = {{3, 1024}, {2, 1025}, {3, 1028}, {1, 4096}, {2, 5003}, {1, 12544}, {300, 4}};
  for (int i = 0; i < 7; i++) check(version, device, forward, backward, large[i][0], large[i][1]);
}

static void fast_matches_reference(void **state) {
  (void)state;
  const int threads_before = omp_get_max_threads();
  for (int threads = 1; threads <= 3; threads++) {
    omp_set_num_threads(threads);
    check_shapes("cpu_fast", DEVICE_CPU, global_avg_pool2d_forward_cpu_fast, global_avg_pool2d_backward_cpu_fast);
  }
  omp_set_num_threads(threads_before);
}

static void gpu_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  check_shapes("naive", DEVICE_GPU, global_avg_pool2d_forward_naive, global_avg_pool2d_backward_naive);
  check_shapes("warp", DEVICE_GPU, global_avg_pool2d_forward_warp, global_avg_pool2d_backward_naive);
  check_shapes("gpu", DEVICE_GPU, global_avg_pool2d_forward_gpu, global_avg_pool2d_backward_gpu);
}

/* The node of a network: its shape, and both functions on a device. */
static void check_node(Device device) {
  enum { BATCH = 3, CHANNELS = 5, PIXELS = 6 * 7 };
  Graph *g = graph_create();
  const int node = global_avg_pool2d(g, graph_input(g, "x", shape3(CHANNELS, 6, 7)));
  assert_int_equal(node, 1);
  assert_true(shape_equal(graph_shape(g, node), shape1(CHANNELS)));
  assert_string_equal(g->nodes[node].op->name, "GlobalAveragePool");
  const int again = global_avg_pool2d(g, node); /* of (C), which are no images */
  assert_int_equal(again, GRAPH_ERROR);
  assert_non_null(strstr(g->error.message, "(C,H,W) is expected"));

  const size_t planes = BATCH * CHANNELS, n = planes * PIXELS;
  float *x = arrays_random(n, 3), *dy = arrays_random(planes, 4), *y = arrays_poison(planes), *dx = arrays_poison(n);
  float *expected = arrays_poison(n);
  float *device_x = arrays_upload(device, x, n), *device_dy = arrays_upload(device, dy, planes);
  float *device_y = arrays_upload(device, y, planes), *device_dx = arrays_upload(device, dx, n);
  Context context;
  OpArrays arrays;
  memset(&context, 0, sizeof context);
  memset(&arrays, 0, sizeof arrays);
  context.device = device;
  arrays.batch = BATCH;
  arrays.x[0] = device_x;
  arrays.y = device_y;
  arrays.dy = device_dy;
  g->nodes[node].op->forward(&context, &g->nodes[node], &arrays);
  g->nodes[node].op->backward(&context, &g->nodes[node], &arrays); /* nobody needs dx */
  arrays.dx[0] = device_dx;
  g->nodes[node].op->backward(&context, &g->nodes[node], &arrays);
  arrays_download(device, y, device_y, planes, "y");
  arrays_download(device, dx, device_dx, n, "dx");
  global_avg_pool2d_forward_cpu(expected, x, planes, PIXELS);
  assert_close(y, expected, planes, 0, 1e-6f);
  global_avg_pool2d_backward_cpu(expected, dy, planes, PIXELS);
  assert_close(dx, expected, n, 0, 0);
  arrays_download(device, NULL, device_x, n, "x");
  arrays_download(device, NULL, device_dy, planes, "dy");
  float *const all[] = {x, dy, y, dx, expected};
  for (int i = 0; i < 5; i++) free(all[i]);
  graph_destroy(g);
}

static void node_computes_cpu(void **state) {
  (void)state;
  check_node(DEVICE_CPU);
}

static void node_computes_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_node(DEVICE_GPU);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reference_is_right_by_hand), cmocka_unit_test(gradient_matches_central_differences),
      cmocka_unit_test(fast_matches_reference),     cmocka_unit_test(gpu_matches_reference),
      cmocka_unit_test(node_computes_cpu),          cmocka_unit_test(node_computes_gpu),
  };
  return TEST_MAIN("global_avg_pool2d", tests);
}
