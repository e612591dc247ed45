/* Every method of the duel on ragged shapes against the loops, with guard bands and a workspace full of NaN; the model
 * of their costs. */
#include "phase3_cnn/08_conv2d_duel/conv2d_duel.cuh"

#include "common/compare.h"
#include "common/philox.h"
#include "common/test_arrays.h"

static void expect(const char *name, const char *what, const float *actual, const float *expected, size_t rows,
                   size_t cols, size_t terms, Conv2dShape s) {
  Tolerance tolerance = tolerance_dot(terms, 1);
  if (strcmp(name, "winograd") == 0 || strcmp(name, "fft") == 0)
    tolerance.absolute *= 20; /* transforms multiply by up to 8 and subtract again */
  Comparison c = compare_arrays(actual, expected, rows, cols, tolerance);
  if (!c.ok) fail_msg("%s %s, %s: %s", name, what, conv2d_shape_text(s).text, c.message);
}

static void check_method(const Conv2dMethod *m, Conv2dShape s) {
  const Device gpu = DEVICE_GPU;
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s), area = n_y / s.n / s.k;
  const size_t work = m->workspace_floats ? m->workspace_floats(s) : 0;
  float *x = arrays_random(n_x, 1), *w = arrays_random(n_w, 2), *bias = arrays_random(s.k, 3);
  float *dy = arrays_random(n_y, 4), *nan = arrays_poison(work + 1);
  float *y = arrays_poison(n_y), *dx = arrays_poison(n_x), *dw = arrays_poison(n_w), *dbias = arrays_poison(s.k);
  float *got_y = arrays_poison(n_y), *got_dx = arrays_poison(n_x), *got_dw = arrays_poison(n_w);
  float *got_dbias = arrays_poison(s.k);
  float *gpu_x = arrays_upload(gpu, x, n_x), *gpu_w = arrays_upload(gpu, w, n_w),
        *gpu_b = arrays_upload(gpu, bias, s.k);
  float *gpu_dy = arrays_upload(gpu, dy, n_y), *space = arrays_upload(gpu, nan, work + 1);
  float *gpu_y = arrays_upload(gpu, got_y, n_y), *gpu_dx = arrays_upload(gpu, got_dx, n_x);
  float *gpu_dw = arrays_upload(gpu, got_dw, n_w), *gpu_db = arrays_upload(gpu, got_dbias, s.k);
  m->forward(gpu_y, gpu_x, gpu_w, gpu_b, s, space);
  if (m->backward_input) m->backward_input(gpu_dx, gpu_dy, gpu_w, s, space);
  if (m->backward_weight) m->backward_weight(gpu_dw, gpu_db, gpu_dy, gpu_x, s, space);
  arrays_download(gpu, got_y, gpu_y, n_y, "y");
  arrays_download(gpu, got_dx, gpu_dx, n_x, "dx");
  arrays_download(gpu, got_dw, gpu_dw, n_w, "dw");
  arrays_download(gpu, got_dbias, gpu_db, s.k, "dbias");
  arrays_download(gpu, NULL, gpu_x, n_x, "x");
  arrays_download(gpu, NULL, gpu_w, n_w, "w");
  arrays_download(gpu, NULL, gpu_b, s.k, "bias");
  arrays_download(gpu, NULL, gpu_dy, n_y, "dy");
  arrays_download(gpu, NULL, space, work + 1, "workspace");
  conv2d_forward_cpu(y, x, w, bias, s);
  expect(m->name, "forward", got_y, y, (size_t)s.n * s.k, area, (size_t)s.c * s.r * s.s, s);
  if (m->backward_input) {
    conv2d_backward_input_cpu(dx, dy, w, s);
    expect(m->name, "backward_input", got_dx, dx, (size_t)s.n * s.c, n_x / s.n / s.c, (size_t)s.k * s.r * s.s, s);
  }
  if (m->backward_weight) {
    conv2d_backward_weight_cpu(dw, dbias, dy, x, s);
    expect(m->name, "backward_weight", got_dw, dw, s.k, n_w / s.k, s.n * area, s);
    expect(m->name, "bias", got_dbias, dbias, 1, s.k, s.n * area, s);
  }
  float *const host[] = {x, w, bias, dy, nan, y, dx, dw, dbias, got_y, got_dx, got_dw, got_dbias};
  for (size_t i = 0; i < sizeof host / sizeof *host; i++) free(host[i]);
}

static int pick(uint64_t *counter, int most) { return 1 + (int)(philox4x32(5, 1, (*counter)++).word[0] % most); }

/* Shapes for the special methods, and shapes of any kind; each method must have computed some. */
static void every_method_matches_the_loops(void **unused) {
  (void)unused;
  test_requires_gpu();
  uint64_t counter = 0;
  int computed[CONV2D_DUEL_METHODS] = {0};
  for (int done = 0; done < 60;) {
    const int kind = done % 3, filter = kind == 2 ? 5 : kind == 1 ? 3 : pick(&counter, 4);
    Conv2dShape s =
        conv2d_shape(pick(&counter, 3), pick(&counter, 6), pick(&counter, 12), pick(&counter, 12), pick(&counter, 9),
                     filter, filter, kind ? 1 : pick(&counter, 2), pick(&counter, 3) - 1);
    if (kind == 0) {
      s.groups = pick(&counter, 3);
      s.dilation_w = pick(&counter, 2);
      s.stride_h = pick(&counter, 3);
    }
    if (done % 7 == 0) s.k = s.groups = s.c;
    if (conv2d_shape_check(s, NULL) != 0) continue;
    done++;
    for (int i = 0; i < CONV2D_DUEL_METHODS; i++) {
      Error err;
      if (conv2d_duel_method(i)->fits && conv2d_duel_method(i)->fits(s, &err) != 0) continue;
      check_method(conv2d_duel_method(i), s);
      computed[i]++;
    }
  }
  for (int i = 0; i < CONV2D_DUEL_METHODS; i++)
    if (computed[i] < 5) fail_msg("%s computed %d shapes", conv2d_duel_method(i)->name, computed[i]);
}

/* More images than blocks; rows of several pieces, narrow and wide; dx by the forward kernel; all of the padding. */
static void small_matches_the_loops(void **unused) {
  (void)unused;
  test_requires_gpu();
  const Conv2dShape shapes[] = {conv2d_shape(601, 1, 5, 4, 2, 3, 3, 1, 0), conv2d_shape(2, 1, 28, 28, 6, 5, 5, 1, 2),
                                conv2d_shape(2, 2, 5, 21, 3, 3, 3, 1, 2),  conv2d_shape(1, 3, 3, 31, 2, 5, 5, 1, 4),
                                conv2d_shape(3, 1, 1, 1, 1, 5, 5, 1, 4),   conv2d_shape(2, 6, 14, 14, 16, 5, 5, 1, 0)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    Error err;
    if (conv2d_small_op.method->fits(shapes[i], &err) != 0) fail_msg("%s", err.message);
    check_method(conv2d_small_op.method, shapes[i]);
  }
}

/* Outputs that do not begin at a multiple of 16 bytes: the same bits. */
static void small_takes_any_address(void **unused) {
  (void)unused;
  test_requires_gpu();
  const Conv2dShape s = conv2d_shape(2, 4, 6, 6, 4, 3, 3, 1, 1); /* y and dx are of one size */
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s);
  float *x = arrays_random(n_x, 1), *w = arrays_random(n_w, 2), *got[4];
  float *gpu_x = arrays_upload(DEVICE_GPU, x, n_x), *gpu_w = arrays_upload(DEVICE_GPU, w, n_w);
  for (int i = 0; i < 4; i++) {
    got[i] = arrays_poison(n_x + 1);
    float *y = arrays_upload(DEVICE_GPU, got[i], n_x + 1);
    if (i / 2 == 0)
      conv2d_small_op.method->forward(y + i % 2, gpu_x, gpu_w, NULL, s, NULL);
    else
      conv2d_small_op.method->backward_input(y + i % 2, gpu_x, gpu_w, s, NULL);
    arrays_download(DEVICE_GPU, got[i], y, n_x + 1, "y");
  }
  assert_memory_equal(got[0], got[1] + 1, n_x * sizeof(float));
  assert_memory_equal(got[2], got[3] + 1, n_x * sizeof(float));
  for (int i = 0; i < 4; i++) free(got[i]);
  arrays_download(DEVICE_GPU, NULL, gpu_x, n_x, "x");
  arrays_download(DEVICE_GPU, NULL, gpu_w, n_w, "w");
  free(x);
  free(w);
}

/* Every layer, scaled down, by every method that takes it. */
static void every_layer_is_computed(void **unused) {
  (void)unused;
  Conv2dDuelLayer layers[CONV2D_DUEL_LAYERS];
  const int count = conv2d_duel_layers(layers);
  for (int i = 0; i < count; i++) {
    Error err;
    if (conv2d_shape_check(layers[i].shape, &err) != 0) fail_msg("%s", err.message);
    if (conv2d_shape_check(conv2d_duel_scaled(layers[i].shape), &err) != 0) fail_msg("%s", err.message);
    int fit = 0;
    for (int m = 0; m < CONV2D_DUEL_METHODS; m++)
      fit += conv2d_duel_method(m)->fits == NULL || conv2d_duel_method(m)->fits(layers[i].shape, &err) == 0;
    assert_true(fit >= 2);
    for (int j = 0; j < i; j++)
      if (strcmp(layers[i].network, layers[j].network) == 0) assert_string_not_equal(layers[i].name, layers[j].name);
  }
}

static void the_model_is_a_roofline(void **unused) {
  (void)unused;
  const Conv2dMachine machine = {100e9, 10e9, 1e-6};
  const Conv2dCost products = {1e9, 1e6, 0.5, 1}, bytes = {1e6, 1e9, 0.5, 1}, launches = {0, 0, 1, 3};
  assert_true(fabs(conv2d_cost_seconds(products, machine) - (0.02 + 1e-6)) < 1e-12);
  assert_true(fabs(conv2d_cost_seconds(bytes, machine) - (0.1 + 1e-6)) < 1e-12);
  assert_true(fabs(conv2d_cost_seconds(launches, machine) - 3e-6) < 1e-15);
}

static const char *chosen(Conv2dShape s) {
  return conv2d_duel_method(conv2d_duel_choose(s, conv2d_duel_machine))->name;
}

/* Every filter that fft takes, up to 33 x 33: its tiles must be larger. */
static void the_model_has_tiles_for_large_filters(void **unused) {
  (void)unused;
  Conv2dMethod fft = {};
  fft.name = "fft";
  double before = 1;
  for (int r = 1; r <= 33; r += 8) { /* the same outputs: no fewer products for a larger filter */
    const Conv2dCost cost = conv2d_cost(&fft, conv2d_shape(4, 8, 64, 64, 8, r, r, 1, r / 2));
    assert_true(cost.flops >= before && isfinite(cost.flops) && isfinite(cost.bytes) && cost.bytes > 0);
    before = cost.flops;
  }
}

static void the_model_chooses_by_the_shape(void **unused) {
  (void)unused;
  Conv2dShape depthwise = conv2d_shape(64, 128, 56, 56, 128, 3, 3, 1, 1);
  depthwise.groups = 128;
  assert_string_equal(chosen(depthwise), "depthwise");
  assert_string_equal(chosen(conv2d_shape(64, 6, 14, 14, 16, 5, 5, 1, 0)), "small");
  assert_string_not_equal(chosen(conv2d_shape(64, 256, 14, 14, 256, 3, 3, 1, 1)), "naive");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_method_matches_the_loops), cmocka_unit_test(small_matches_the_loops),
      cmocka_unit_test(small_takes_any_address),        cmocka_unit_test(every_layer_is_computed),
      cmocka_unit_test(the_model_is_a_roofline),        cmocka_unit_test(the_model_has_tiles_for_large_filters),
      cmocka_unit_test(the_model_chooses_by_the_shape),
  };
  return TEST_MAIN("conv2d_duel", tests);
}
