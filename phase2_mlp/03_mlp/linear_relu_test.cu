/* linear_relu.cuh against the loops of linear.cuh and ReLU between them. */
#include "phase2_mlp/03_mlp/linear_relu.cuh"

#include "common/test_arrays.h"

typedef struct Layer {
  int batch, in, out, relu;
} Layer;

static void gate(float *d, const float *dy, const float *y, Layer l) {
  for (int i = 0; i < l.batch * l.out; i++) d[i] = l.relu && !(y[i] > 0) ? 0 : dy[i];
}

static void check_layer(Layer l, int wants_dx) {
  const int n_x = l.batch * l.in, n_w = l.in * l.out, n_y = l.batch * l.out;
  float *x = arrays_random(n_x, 1), *w = arrays_random(n_w, 2), *bias = arrays_random(l.out, 3);
  float *dy = arrays_random(n_y, 4), *y = arrays_poison(n_y), *d = arrays_poison(n_y);
  float *dx = arrays_poison(n_x), *dw = arrays_poison(n_w), *dbias = arrays_poison(l.out);
  linear_forward_cpu(y, x, w, bias, l.batch, l.in, l.out);
  for (int i = 0; i < n_y; i++)
    if (l.relu && y[i] < 0) y[i] = 0;
  gate(d, dy, y, l);
  linear_backward_input_cpu(dx, d, w, l.batch, l.in, l.out);
  linear_backward_weight_cpu(dw, dbias, d, x, l.batch, l.in, l.out);

  const Device gpu = DEVICE_GPU;
  float *gpu_x = arrays_upload(gpu, x, n_x), *gpu_w = arrays_upload(gpu, w, n_w);
  float *gpu_bias = arrays_upload(gpu, bias, l.out), *gpu_dy = arrays_upload(gpu, dy, n_y);
  float *got_y = arrays_poison(n_y), *got_dx = arrays_poison(n_x), *got_dw = arrays_poison(n_w);
  float *got_dbias = arrays_poison(l.out);
  float *gpu_y = arrays_upload(gpu, got_y, n_y), *gpu_dx = arrays_upload(gpu, got_dx, n_x);
  float *gpu_dw = arrays_upload(gpu, got_dw, n_w), *gpu_dbias = arrays_upload(gpu, got_dbias, l.out);
  linear_relu_forward_gpu(gpu_y, gpu_x, gpu_w, gpu_bias, l.batch, l.in, l.out, l.relu);
  linear_relu_backward_gpu(wants_dx ? gpu_dx : NULL, gpu_dw, gpu_dbias, gpu_dy, gpu_y, gpu_x, gpu_w, l.batch, l.in,
                           l.out, l.relu);
  arrays_download(gpu, got_y, gpu_y, n_y, "y");
  arrays_download(gpu, got_dx, gpu_dx, n_x, "dx");
  arrays_download(gpu, got_dw, gpu_dw, n_w, "dw");
  arrays_download(gpu, got_dbias, gpu_dbias, l.out, "dbias");
  arrays_download(gpu, NULL, gpu_x, n_x, "x");
  arrays_download(gpu, NULL, gpu_w, n_w, "w");
  arrays_download(gpu, NULL, gpu_bias, l.out, "bias");
  arrays_download(gpu, NULL, gpu_dy, n_y, "dy");
  assert_matrix_close(got_y, y, l.batch, l.out, 1e-5, 1e-5);
  if (wants_dx) assert_matrix_close(got_dx, dx, l.batch, l.in, 1e-5, 1e-5);
  assert_matrix_close(got_dw, dw, l.out, l.in, 1e-5, 1e-5);
  assert_close(got_dbias, dbias, l.out, 1e-5, 1e-5);

  float *const host[] = {x, w, bias, dy, y, d, dx, dw, dbias, got_y, got_dx, got_dw, got_dbias};
  for (size_t i = 0; i < sizeof host / sizeof *host; i++) free(host[i]);
}

static void matches_the_loops(void **unused) {
  (void)unused;
  test_requires_gpu();
  const Layer layers[] = {{1, 1, 1, 1},   {3, 31, 33, 1},   {17, 64, 16, 1},  {64, 84, 10, 0},
                          {127, 5, 3, 1}, {65, 129, 15, 1}, {500, 250, 20, 1}};
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) check_layer(layers[i], 1);
  check_layer(layers[1], 0);
}

/* What matmul_gpu() computes for the same layer, bit for bit. */
static void adds_up_in_the_order_of_matmul(void **unused) {
  (void)unused;
  test_requires_gpu();
  enum { B = 33, I = 100, O = 20 };
  const Device gpu = DEVICE_GPU;
  float *x = arrays_random(B * I, 1), *w = arrays_random(I * O, 2), *bias = arrays_random(O, 3);
  float *gpu_x = arrays_upload(gpu, x, B * I), *gpu_w = arrays_upload(gpu, w, I * O),
        *gpu_b = arrays_upload(gpu, bias, O);
  float got[2][B * O];
  for (int fused = 0; fused < 2; fused++) {
    float *y = guard_alloc(gpu, B * O);
    if (fused)
      linear_relu_forward_gpu(y, gpu_x, gpu_w, gpu_b, B, I, O, 0);
    else
      linear_forward_gpu(y, gpu_x, gpu_w, gpu_b, B, I, O);
    arrays_download(gpu, got[fused], y, B * O, "y");
  }
  assert_memory_equal(got[0], got[1], sizeof got[0]);
  free(x);
  free(w);
  free(bias);
  guard_free(gpu, gpu_x);
  guard_free(gpu, gpu_w);
  guard_free(gpu, gpu_b);
}

/* A divided sum, whole and in parts of unequal length; a layer that is not divided has no workspace. */
static void long_sums_are_divided(void **unused) {
  (void)unused;
  test_requires_gpu();
  const Layer layers[] = {{1, 1024, 3, 0}, {5, 2111, 33, 1}, {33, 1300, 17, 1}};
  const Device gpu = DEVICE_GPU;
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
    const Layer l = layers[i];
    const int n_x = l.batch * l.in, n_w = l.in * l.out, n_y = l.batch * l.out;
    const size_t floats = linear_relu_split_floats(l.batch, l.in, l.out);
    assert_true(linear_relu_splits(l.batch, l.in, l.out) > 1 && floats > 0);
    float *x = arrays_random(n_x, 1), *w = arrays_random(n_w, 2), *bias = arrays_random(l.out, 3);
    float *y = arrays_poison(n_y), *got = arrays_poison(n_y), *parts = arrays_poison((int)floats);
    linear_forward_cpu(y, x, w, bias, l.batch, l.in, l.out);
    for (int j = 0; j < n_y; j++)
      if (l.relu && y[j] < 0) y[j] = 0;
    float *gpu_x = arrays_upload(gpu, x, n_x), *gpu_w = arrays_upload(gpu, w, n_w);
    float *gpu_bias = arrays_upload(gpu, bias, l.out), *gpu_y = arrays_upload(gpu, got, n_y);
    float *gpu_parts = arrays_upload(gpu, parts, floats);
    linear_relu_forward_split_gpu(gpu_y, gpu_x, gpu_w, gpu_bias, l.batch, l.in, l.out, l.relu, gpu_parts);
    arrays_download(gpu, got, gpu_y, n_y, "y");
    arrays_download(gpu, NULL, gpu_parts, floats, "workspace");
    arrays_download(gpu, NULL, gpu_x, n_x, "x");
    arrays_download(gpu, NULL, gpu_w, n_w, "w");
    arrays_download(gpu, NULL, gpu_bias, l.out, "bias");
    assert_matrix_close(got, y, l.batch, l.out, 1e-5, 1e-5);
    float *const host[] = {x, w, bias, y, got, parts};
    for (size_t j = 0; j < sizeof host / sizeof *host; j++) free(host[j]);
  }
  assert_int_equal(linear_relu_split_floats(64, 784, 128), 0);
}

static void large_layers_are_left_to_others(void **unused) {
  (void)unused;
  assert_true(linear_relu_fits(64, 400, 120));
  assert_true(linear_relu_fits(512, 400, 120));
  assert_false(linear_relu_fits(512, 512, 10));
  assert_false(linear_relu_fits(1, 9216, 128));
  assert_false(linear_relu_fits(100000, 2, 10));
  assert_true(linear_relu_backward_fits(64, 3200, 256));
  assert_false(linear_relu_backward_fits(65, 3200, 256));
  assert_false(linear_relu_backward_fits(64, 9216, 128));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matches_the_loops),
      cmocka_unit_test(adds_up_in_the_order_of_matmul),
      cmocka_unit_test(long_sums_are_divided),
      cmocka_unit_test(large_layers_are_left_to_others),
  };
  return TEST_MAIN("linear_relu", tests);
}
