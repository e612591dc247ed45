/* Every version against the reference, on ragged shapes with all strides, paddings, dilations and groups; the last one
 * with every configuration, and with its work divided in every way: whole tiles only, parts only, and both. */
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_gemm_register.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_implicit_gemm.cuh"

#include "common/test_arrays.h"
#include "phase3_cnn/01_conv2d_naive/conv2d.cuh"

static int pick(uint64_t *counter, const int *from, int count) {
  PhiloxBlock block = philox4x32(31, 1, (*counter)++);
  return from[block.word[0] % count];
}

/* `count` random shapes, none of them large. */
static void each_shape(int count, void (*check)(Conv2dShape)) {
  const int n[] = {1, 2, 3, 5}, c[] = {1, 2, 3, 6, 8, 13, 16, 24}, h[] = {1, 2, 3, 5, 7, 8, 13}, k[] = {1, 2, 6, 9, 66};
  const int side[] = {1, 2, 3, 4, 5}, stride[] = {1, 1, 2, 3}, padding[] = {0, 1, 2};
  const int dilation[] = {1, 1, 2}, groups[] = {1, 1, 2, 3};
  uint64_t counter = 0;
  for (int done = 0; done < count;) {
    Conv2dShape s = {pick(&counter, n, 4),        pick(&counter, c, 8),       pick(&counter, h, 7),
                     pick(&counter, h, 7),        pick(&counter, k, 5),       pick(&counter, side, 5),
                     pick(&counter, side, 5),     pick(&counter, stride, 4),  pick(&counter, stride, 4),
                     pick(&counter, padding, 3),  pick(&counter, padding, 3), pick(&counter, dilation, 3),
                     pick(&counter, dilation, 3), pick(&counter, groups, 4)};
    if (conv2d_shape_check(s, NULL) != 0) continue;
    if ((double)conv2d_y_count(s) * s.c * s.r * s.s > 400000) continue; /* keeps the emulated run short */
    check(s);
    done++;
  }
}

/* What is run: a launcher, with or without ReLU; or a configuration of the last version, which is not NULL then. */
typedef struct Run {
  const char *name;
  Conv2dForward *launch;
  size_t (*workspace_floats)(Conv2dShape s);
  bool biased, relu;
  int configuration;
} Run;

static void check_run(Run run, Conv2dShape s) {
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s), k = s.k;
  const size_t floats = run.workspace_floats != NULL ? run.workspace_floats(s) : 0;
  float *x = arrays_random(n_x, 1), *w = arrays_random(n_w, 2), *bias = arrays_random(k, 3);
  float *expected = arrays_poison(n_y), *actual = arrays_poison(n_y);
  float *device_x = arrays_upload(DEVICE_GPU, x, n_x), *device_w = arrays_upload(DEVICE_GPU, w, n_w);
  float *device_bias = arrays_upload(DEVICE_GPU, bias, k), *device_y = arrays_upload(DEVICE_GPU, actual, n_y);
  float *workspace = guard_alloc(DEVICE_GPU, floats);
  const float *given = run.biased ? device_bias : NULL;
  if (run.launch != NULL) {
    run.launch(device_y, device_x, device_w, given, s, workspace);
  } else {
    Conv2dEpilogue epilogue = {given, run.relu ? 0.0f : -INFINITY};
    conv2d_gemm_with(run.configuration, device_y, device_x, device_w, s, epilogue, workspace);
  }
  arrays_download(DEVICE_GPU, actual, device_y, n_y, "y");
  arrays_download(DEVICE_GPU, NULL, device_x, n_x, "x");
  arrays_download(DEVICE_GPU, NULL, device_w, n_w, "w");
  arrays_download(DEVICE_GPU, NULL, device_bias, k, "bias");
  arrays_download(DEVICE_GPU, NULL, workspace, floats, "workspace");

  conv2d_forward_cpu(expected, x, w, run.biased ? bias : NULL, s);
  for (size_t i = 0; i < n_y && run.relu; i++) expected[i] = fmaxf(expected[i], 0.0f);
  Comparison c = compare_arrays(actual, expected, s.n * k, n_y / s.n / k, tolerance_dot(n_w / k + 1, 1));
  if (!c.ok) fail_msg("%s, %s: %s", run.name, conv2d_shape_text(s).text, c.message);
  float *all[] = {x, w, bias, expected, actual};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void check_first_versions(Conv2dShape s) {
  const Run halo = {"halo", conv2d_forward_halo, NULL, true, false, 0};
  const Run gemm = {"gemm", conv2d_forward_gemm, NULL, true, false, 0};
  const Run gemm_register = {
      "gemm_register", conv2d_forward_gemm_register, conv2d_gemm_register_workspace_floats, true, false, 0};
  check_run(halo, s);
  check_run(gemm, s);
  check_run(gemm_register, s);
}

static void the_first_versions_match_reference(void **state) {
  (void)state;
  test_requires_gpu();
  each_shape(60, check_first_versions);
}

static void halo_refuses_what_shared_memory_cannot_hold(void **state) {
  (void)state;
  test_requires_gpu();
  Error err;
  assert_int_equal(conv2d_halo_fits(conv2d_shape(1, 3, 224, 224, 64, 7, 7, 2, 3), &err), 0);
  assert_int_equal(conv2d_halo_fits(conv2d_shape(1, 3, 400, 400, 64, 300, 300, 1, 0), &err), -1);
  assert_non_null(strstr(err.message, "(1,3,400,400) with (64,3,300,300)"));
  assert_non_null(strstr(err.message, "use implicit_gemm"));
}

static void check_implicit_gemm(Conv2dShape s) {
  const Run plain = {
      "implicit_gemm", conv2d_forward_implicit_gemm, conv2d_implicit_gemm_workspace_floats, true, false, 0};
  check_run(plain, s);
}

static void implicit_gemm_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  each_shape(100, check_implicit_gemm);
  check_implicit_gemm(conv2d_shape(3, 6, 14, 14, 16, 5, 5, 1, 0));
}

static void check_bias_relu(Conv2dShape s) {
  const Run fused = {
      "bias and relu", conv2d_bias_relu_forward_implicit_gemm, conv2d_implicit_gemm_workspace_floats, true, true, 0};
  const Run relu = {"relu without bias",
                    conv2d_bias_relu_forward_implicit_gemm,
                    conv2d_implicit_gemm_workspace_floats,
                    false,
                    true,
                    0};
  const Run none = {"no bias", conv2d_forward_implicit_gemm, conv2d_implicit_gemm_workspace_floats, false, false, 0};
  check_run(fused, s);
  check_run(relu, s);
  check_run(none, s);
}

static void bias_and_relu_match_reference(void **state) {
  (void)state;
  test_requires_gpu();
  each_shape(30, check_bias_relu);
}

/* A sum that is not a number must not become 0. */
static void relu_keeps_nan(void **state) {
  (void)state;
  test_requires_gpu();
  const Conv2dShape s = conv2d_shape(1, 8, 4, 4, 2, 1, 1, 1, 0);
  float x[128], w[16], bias[2] = {NAN, -1}, y[32];
  for (int i = 0; i < 128; i++) x[i] = 0;
  for (int i = 0; i < 16; i++) w[i] = 1;
  float *device_x = arrays_upload(DEVICE_GPU, x, 128), *device_w = arrays_upload(DEVICE_GPU, w, 16);
  float *device_bias = arrays_upload(DEVICE_GPU, bias, 2), *device_y = guard_alloc(DEVICE_GPU, 32);
  float *workspace = guard_alloc(DEVICE_GPU, conv2d_implicit_gemm_workspace_floats(s));
  conv2d_bias_relu_forward_implicit_gemm(device_y, device_x, device_w, device_bias, s, workspace);
  arrays_download(DEVICE_GPU, y, device_y, 32, "y");
  for (int i = 0; i < 32; i++)
    if (i < 16 ? !isnan(y[i]) : y[i] != 0) fail_msg("y[%d] is %g; expected %s", i, y[i], i < 16 ? "NaN" : "0");
  guard_free(DEVICE_GPU, workspace);
  guard_free(DEVICE_GPU, device_x);
  guard_free(DEVICE_GPU, device_w);
  guard_free(DEVICE_GPU, device_bias);
}

static void every_configuration_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  Conv2dShape general = {2, 32, 13, 9, 150, 3, 2, 2, 1, 1, 2, 1, 2, 2};
  Conv2dShape whole = conv2d_shape(3, 8, 40, 36, 40, 1, 1, 1, 0); /* more tiles than blocks, few steps */
  Conv2dShape parts = conv2d_shape(1, 96, 5, 5, 40, 3, 3, 1, 1);  /* one column of tiles, many steps */
  Conv2dShape both = conv2d_shape(5, 24, 24, 24, 130, 3, 3, 1, 1);
  Conv2dShape table = conv2d_shape(2, 3, 21, 19, 70, 7, 7, 2, 3);
  for (int i = 0; i < CONV2D_GEMM_CONFIGURATIONS; i++) {
    const Run run = {conv2d_gemm_configurations[i].name, NULL, conv2d_implicit_gemm_workspace_floats, true, true, i};
    const Conv2dShape shapes[] = {general, whole, parts, both, table};
    for (size_t j = 0; j < sizeof shapes / sizeof *shapes; j++) check_run(run, shapes[j]);
  }
}

static void it_repeats_to_the_bit(void **state) {
  (void)state;
  test_requires_gpu();
  const Conv2dShape s = conv2d_shape(1, 96, 7, 7, 40, 3, 3, 1, 1); /* parts of tiles are added up */
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s);
  float *x = arrays_random(n_x, 1), *w = arrays_random(n_w, 2), *first = arrays_poison(n_y),
        *again = arrays_poison(n_y);
  float *device_x = arrays_upload(DEVICE_GPU, x, n_x), *device_w = arrays_upload(DEVICE_GPU, w, n_w);
  for (int run = 0; run < 4; run++) {
    float *device_y = guard_alloc(DEVICE_GPU, n_y);
    float *workspace = guard_alloc(DEVICE_GPU, conv2d_implicit_gemm_workspace_floats(s));
    conv2d_forward_implicit_gemm(device_y, device_x, device_w, NULL, s, workspace);
    arrays_download(DEVICE_GPU, run == 0 ? first : again, device_y, n_y, "y");
    guard_free(DEVICE_GPU, workspace);
    if (run == 0) continue;
    Comparison c = compare_runs(first, again, n_y);
    if (!c.ok) fail_msg("run %d: %s", run, c.message);
  }
  guard_free(DEVICE_GPU, device_x);
  guard_free(DEVICE_GPU, device_w);
  float *all[] = {x, w, first, again};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* A network plans its workspace for the largest batch and then comes with smaller ones. */
static void workspace_grows_with_the_batch(void **state) {
  (void)state;
  test_requires_gpu();
  Conv2dShape small = conv2d_shape(1, 6, 14, 14, 16, 5, 5, 1, 0), large = small;
  for (small.n = 1; small.n < 200; small.n++) {
    large.n = small.n + 1;
    assert_true(conv2d_implicit_gemm_workspace_floats(small) <= conv2d_implicit_gemm_workspace_floats(large));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_versions_match_reference),
      cmocka_unit_test(halo_refuses_what_shared_memory_cannot_hold),
      cmocka_unit_test(implicit_gemm_matches_reference),
      cmocka_unit_test(bias_and_relu_match_reference),
      cmocka_unit_test(relu_keeps_nan),
      cmocka_unit_test(every_configuration_matches_reference),
      cmocka_unit_test(it_repeats_to_the_bit),
      cmocka_unit_test(workspace_grows_with_the_batch),
  };
  return TEST_MAIN("conv2d_implicit_gemm", tests);
}
