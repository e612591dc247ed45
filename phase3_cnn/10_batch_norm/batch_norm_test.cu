/* Every version of batch norm, forward, backward and in evaluation, against the definition; the definition's gradients
 * against central differences; and ONNX's BatchNormalization. */
#include "common/nn/step_graph.h"
#include "common/onnx_testdata.h"
#include "common/test_arrays.h"
#include "phase3_cnn/10_batch_norm/batch_norm2d_ladder.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_nhwc.cuh"

typedef void Launcher(const BatchNorm2d *b);

static const struct {
  const char *name;
  Device device;
  Launcher *forward, *backward;
} versions[] = {
    {"cpu_fast", DEVICE_CPU, batch_norm2d_forward_cpu_fast, batch_norm2d_backward_cpu_fast},
    {"naive", DEVICE_GPU, batch_norm2d_forward_naive, batch_norm2d_backward_naive},
    {"welford", DEVICE_GPU, batch_norm2d_forward_welford, batch_norm2d_backward_slices},
    {"slices", DEVICE_GPU, batch_norm2d_forward_slices, batch_norm2d_backward_slices},
    {"gpu", DEVICE_GPU, batch_norm2d_forward_gpu, batch_norm2d_backward_gpu},
    {"nhwc", DEVICE_GPU, batch_norm2d_nhwc_forward_gpu, batch_norm2d_nhwc_backward_gpu},
};
enum { NHWC = sizeof versions / sizeof *versions - 1, VERSIONS = NHWC }; /* NHWC has shapes of its own */

static const char *const after_names[] = {"alone", "relu", "add_relu"};

/* The arrays of a batch norm, on the host or on a device between guard bands. */
enum {
  X,
  Z,
  DY,
  GAMMA,
  BETA,
  OLD_MEAN,
  OLD_VAR,
  INPUTS,
  Y = INPUTS,
  DX,
  DZ,
  MEAN,
  INV_STD,
  NEW_MEAN,
  NEW_VAR,
  DGAMMA,
  DBETA,
  PASSED,
  WORK,
  ARRAYS
};
static const char *const array_names[ARRAYS] = {
    "x",  "z",    "dy",      "gamma",        "beta",        "old_mean", "old_var", "y",      "dx",
    "dz", "mean", "inv_std", "running_mean", "running_var", "dgamma",   "dbeta",   "passed", "workspace"};

typedef struct Arrays {
  float *at[ARRAYS];
  size_t count[ARRAYS];
} Arrays;

static Arrays arrays_sizes(BatchNorm2dShape s) {
  Arrays a;
  const size_t all = batch_norm2d_count(s) * s.c, c = (size_t)s.c;
  const size_t slices = batch_norm2d_slices_workspace_floats(s), chip = batch_norm2d_workspace_floats(s);
  const size_t count[ARRAYS] = {all,
                                all,
                                all,
                                c,
                                c,
                                c,
                                c,
                                all,
                                all,
                                all,
                                c,
                                c,
                                c,
                                c,
                                c,
                                c,
                                c * batch_norm2d_words(s),
                                (slices > chip ? slices : chip) + batch_norm2d_nhwc_workspace_floats(s)};
  memcpy(a.count, count, sizeof count);
  return a;
}

static BatchNorm2d arrays_of(const Arrays *a, BatchNorm2dShape s, BatchNorm2dAfter after) {
  BatchNorm2d b;
  memset(&b, 0, sizeof b);
  b.shape = s;
  b.after = after;
  b.x = a->at[X];
  b.z = a->at[Z];
  b.gamma = a->at[GAMMA];
  b.beta = a->at[BETA];
  b.old_mean = a->at[OLD_MEAN];
  b.old_var = a->at[OLD_VAR];
  b.new_mean = a->at[NEW_MEAN];
  b.new_var = a->at[NEW_VAR];
  b.y = a->at[Y];
  b.mean = a->at[MEAN];
  b.inv_std = a->at[INV_STD];
  b.passed = (uint32_t *)a->at[PASSED];
  b.dy = a->at[DY];
  b.dx = a->at[DX];
  b.dz = after == BATCH_NORM_ADD_RELU ? a->at[DZ] : NULL;
  b.dgamma = a->at[DGAMMA];
  b.dbeta = a->at[DBETA];
  b.workspace = a->at[WORK];
  return b;
}

/* Random inputs, poisoned outputs. x has this mean and deviation, another in each channel. */
static Arrays arrays_make(BatchNorm2dShape s, float mean, float deviation) {
  Arrays a = arrays_sizes(s);
  for (int i = 0; i < ARRAYS; i++)
    a.at[i] = i < INPUTS ? arrays_random(a.count[i], 10 + (uint64_t)i) : arrays_poison(a.count[i]);
  for (size_t i = 0; i < a.count[X]; i++) {
    const int c = (int)(i / s.pixels % s.c);
    a.at[X][i] = mean * (1 + c % 3) + deviation * a.at[X][i];
  }
  for (int c = 0; c < s.c; c++) a.at[OLD_VAR][c] = 0.5f + fabsf(a.at[OLD_VAR][c]);
  return a;
}

static void arrays_free(Arrays *a) {
  for (int i = 0; i < ARRAYS; i++) free(a->at[i]);
}

/* Forward of M values: the mean errs by a few units of its size, so y by as many deviations. What a float of x itself
 * cannot hold is the same in both. */
static Tolerance forward_tolerance(size_t m, double mean, double deviation) {
  const double terms = 8 + 4 * sqrt((double)m / BATCH_NORM_THREADS + 16);
  return tolerance_make(16 * FLT_EPSILON, 4 * terms * FLT_EPSILON * (1 + 3 * fabs(mean) / deviation));
}

static void check(int v, const Arrays *got, const Arrays *expected, int array, Tolerance t, BatchNorm2dShape s,
                  BatchNorm2dAfter after) {
  t.nan_equal = 1;
  const size_t rows = got->count[array] == (size_t)s.c ? 1 : (size_t)s.n * s.c;
  Comparison c = compare_arrays(got->at[array], expected->at[array], rows, got->count[array] / rows, t);
  if (!c.ok)
    fail_msg("%s, %s of (%d,%d,%d), %s: %s", versions[v].name, array_names[array], s.n, s.c, s.pixels,
             after_names[after], c.message);
}

static Arrays arrays_to(Device device, const Arrays *a) {
  Arrays on = *a;
  for (int i = 0; i < ARRAYS; i++) on.at[i] = arrays_upload(device, a->at[i], a->count[i]);
  return on;
}

static void arrays_back(Device device, Arrays *host, Arrays *on) {
  for (int i = 0; i < ARRAYS; i++)
    arrays_download(device, i < INPUTS ? NULL : host->at[i], on->at[i], on->count[i], array_names[i]);
}

/* Forward by version v, then backward from what forward has kept; both against the definition, which gets the same mean
 * and deviation for backward: a value next to 0 would otherwise pass the ReLU in one and not in the other. */
static void check_version(int v, BatchNorm2dShape s, BatchNorm2dAfter after, float mean, float deviation) {
  const Device device = versions[v].device;
  const size_t m = batch_norm2d_count(s);
  Arrays expected = arrays_make(s, mean, deviation), got = arrays_make(s, mean, deviation);
  BatchNorm2d e = arrays_of(&expected, s, after);
  batch_norm2d_forward_cpu(&e);
  Arrays on = arrays_to(device, &got);
  BatchNorm2d b = arrays_of(&on, s, after);
  versions[v].forward(&b);
  versions[v].backward(&b);
  arrays_back(device, &got, &on);
  const Tolerance t = forward_tolerance(m, mean, deviation);
  check(v, &got, &expected, Y, t, s, after);
  check(v, &got, &expected, MEAN, tolerance_make(t.relative, t.absolute * deviation), s, after);
  check(v, &got, &expected, INV_STD, tolerance_make(t.absolute, 0), s, after);
  check(v, &got, &expected, NEW_MEAN, tolerance_make(t.relative, t.absolute * deviation), s, after);
  check(v, &got, &expected, NEW_VAR, tolerance_make(t.absolute, t.absolute), s, after);

  memcpy(expected.at[MEAN], got.at[MEAN], s.c * sizeof(float));
  memcpy(expected.at[INV_STD], got.at[INV_STD], s.c * sizeof(float));
  for (size_t i = 0; i < got.count[Y] && after == BATCH_NORM_ADD_RELU; i++) { /* the bits are those of its own y */
    const size_t c = i / s.pixels % s.c, k = i / s.pixels / s.c * s.pixels + i % s.pixels;
    const size_t bit = v == NHWC ? i : c * batch_norm2d_words(s) * 32 + k, own = c * batch_norm2d_words(s) * 32 + k;
    const uint32_t passed = ((const uint32_t *)got.at[PASSED])[bit / 32] >> bit % 32 & 1;
    if (passed != (uint32_t) !(got.at[Y][i] <= 0))
      fail_msg("%s, (%d,%d,%d): bit %zu of channel %zu is not y > 0", versions[v].name, s.n, s.c, s.pixels, k, c);
    uint32_t *word = (uint32_t *)expected.at[PASSED] + own / 32; /* in the definition's order */
    *word = (*word & ~(1u << own % 32)) | passed << own % 32;
  }
  batch_norm2d_backward_cpu(&e);
  const Tolerance sums = tolerance_dot(m / 64 + 8, 8);
  check(v, &got, &expected, DGAMMA, sums, s, after);
  check(v, &got, &expected, DBETA, sums, s, after);
  check(v, &got, &expected, DX, tolerance_make(32 * FLT_EPSILON, 32 * FLT_EPSILON / deviation), s, after);
  if (after == BATCH_NORM_ADD_RELU) check(v, &got, &expected, DZ, tolerance_make(0, 0), s, after);
  arrays_free(&expected);
  arrays_free(&got);
}

/* Of a test without a GPU only the CPU's version. */
static int version_runs(int v) {
#ifdef SIMT_REWRITTEN
  (void)v;
  return 1;
#else
  int devices = 0;
  return versions[v].device == DEVICE_CPU || (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0);
#endif
}

static void check_all(BatchNorm2dShape s, float mean, float deviation) {
  for (int v = 0; v < VERSIONS; v++)
    for (int after = BATCH_NORM_ALONE; after <= BATCH_NORM_ADD_RELU && version_runs(v); after++)
      check_version(v, s, (BatchNorm2dAfter)after, mean, deviation);
}

/* Two values; around a warp; one image and many; planes that are a multiple of 4 and others; a last slice that is short
 * or empty; more slices than one. */
static void ragged_shapes_agree(void **state) {
  (void)state;
  const BatchNorm2dShape shapes[] = {{2, 1, 1},  {1, 3, 2},   {3, 5, 1},  {1, 1, 33},   {5, 2, 31},  {2, 7, 4},
                                     {4, 3, 49}, {1, 2, 127}, {3, 1, 36}, {7, 33, 196}, {130, 3, 4}, {2, 2, 509}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check_all(shapes[i], 0, 1);
}

static void several_blocks_share_a_channel(void **state) {
  (void)state;
  const BatchNorm2dShape shapes[] = {{5, 2, 4099}, {3, 3, 6000}, {2, 1, 16500}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check_all(shapes[i], 0, 1);
}

/* Arrays (rows,C): images of one pixel. */
static void rows_of_channels_agree(void **state) {
  (void)state;
  test_requires_gpu();
  const BatchNorm2dShape shapes[] = {{2, 1, 1}, {3, 4, 1}, {33, 7, 1}, {127, 36, 1}, {1100, 33, 1}, {700, 8, 1}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int after = BATCH_NORM_ALONE; after <= BATCH_NORM_ADD_RELU; after++)
      check_version(NHWC, shapes[i], (BatchNorm2dAfter)after, i % 2 ? 0 : 1000, 1);
}

/* A GPU with little shared memory: several channels per group, one after the other; and less room than a slice has. */
static void channels_take_turns(void **state) {
  (void)state;
  test_requires_gpu();
  const BatchNorm2dShape fours = {5, 9, 1200}, ones = {7, 2, 911};
  shared_limit_pretended = 2048 + 4096;
  check_version(VERSIONS - 1, fours, BATCH_NORM_RELU, 0, 1);
  shared_limit_pretended = 2048 + 256;
  check_version(VERSIONS - 1, ones, BATCH_NORM_ADD_RELU, 0, 1);
  shared_limit_pretended = 0;
}

/* The mean is 3000 times the deviation: a difference of sums of squares would have no digit left. */
static void a_large_mean_costs_no_digits(void **state) {
  (void)state;
  const BatchNorm2dShape shapes[] = {{4, 3, 49}, {3, 2, 6000}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check_all(shapes[i], 3000, 1);
}

/* One NaN or infinity: its whole channel is NaN, and no other. */
static void nan_stays_in_its_channel(void **state) {
  (void)state;
  const BatchNorm2dShape s = {3, 3, 3000};
  const float bad[] = {NAN, INFINITY};
  for (int v = 0; v < VERSIONS; v++)
    for (int i = 0; i < 2 && version_runs(v); i++)
      for (int after = BATCH_NORM_ALONE; after <= BATCH_NORM_ADD_RELU; after++) {
        Arrays host = arrays_make(s, 0, 1);
        host.at[X][s.pixels * 4 + 77] = bad[i]; /* image 1, channel 1 */
        Arrays on = arrays_to(versions[v].device, &host);
        BatchNorm2d b = arrays_of(&on, s, (BatchNorm2dAfter)after);
        versions[v].forward(&b);
        arrays_back(versions[v].device, &host, &on);
        for (size_t k = 0; k < host.count[Y]; k++)
          if (isnan(host.at[Y][k]) != (k / s.pixels % 3 == 1))
            fail_msg("%s, %s: y[%zu] is %g", versions[v].name, after_names[after], k, host.at[Y][k]);
        arrays_free(&host);
      }
}

static void evaluation_agrees(void **state) {
  (void)state;
  const BatchNorm2dShape shapes[] = {{1, 1, 1}, {1, 3, 2}, {5, 2, 31}, {9, 33, 196}, {2, 3, 509}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int after = BATCH_NORM_ALONE; after <= BATCH_NORM_ADD_RELU; after++)
      for (int v = 0; v < VERSIONS; v += VERSIONS - 1) {
        if (!version_runs(v)) continue;
        const BatchNorm2dShape s = shapes[i];
        Arrays expected = arrays_make(s, 0, 1), got = arrays_make(s, 0, 1);
        BatchNorm2d e = arrays_of(&expected, s, (BatchNorm2dAfter)after);
        batch_norm2d_evaluate_cpu(&e);
        Arrays on = arrays_to(versions[v].device, &got);
        BatchNorm2d b = arrays_of(&on, s, (BatchNorm2dAfter)after);
        ON_DEVICE(versions[v].device, batch_norm2d_evaluate_gpu(&b), batch_norm2d_evaluate_cpu_fast(&b));
        arrays_back(versions[v].device, &got, &on);
        check(v, &got, &expected, Y, tolerance_make(16 * FLT_EPSILON, 32 * FLT_EPSILON), s, (BatchNorm2dAfter)after);
        arrays_free(&expected);
        arrays_free(&got);
      }
}

/* Twice the same bits, and on the CPU with one thread or several; the running statistics in place, or not at all; and
 * only what is asked for is written. */
static void what_is_not_wanted_stays(void **state) {
  (void)state;
  const BatchNorm2dShape s = {5, 3, 4100};
  for (int v = 0; v < VERSIONS; v++) {
    if (!version_runs(v)) continue;
    Arrays first = arrays_make(s, 0, 1), second = arrays_make(s, 0, 1);
    Arrays *both[] = {&first, &second};
    for (int i = 0; i < 2; i++) {
      Arrays on = arrays_to(versions[v].device, both[i]);
      BatchNorm2d b = arrays_of(&on, s, BATCH_NORM_ADD_RELU);
      if (i) b.new_mean = b.new_var = NULL;
      versions[v].forward(&b);
      if (i) b.dgamma = b.dbeta = b.dx = NULL;
      versions[v].backward(&b);
      arrays_back(versions[v].device, both[i], &on);
    }
    const int same[] = {Y, DZ, MEAN, INV_STD, PASSED}, stay[] = {DX, NEW_MEAN, NEW_VAR, DGAMMA, DBETA};
    for (int i = 0; i < 5; i++) {
      assert_memory_equal(first.at[same[i]], second.at[same[i]], first.count[same[i]] * sizeof(float));
      for (size_t k = 0; k < second.count[stay[i]]; k++)
        if (!compare_is_poison(&second.at[stay[i]][k])) fail_msg("%s wrote %s", versions[v].name, array_names[stay[i]]);
    }
    arrays_free(&first);
    arrays_free(&second);
  }
}

/* A cooperative launch can be recorded, and replayed on a workspace that holds what others have left there. */
static void a_graph_computes_the_same_bits(void **state) {
  (void)state;
  test_requires_gpu();
  const BatchNorm2dShape s = {3, 3, 6000};
  Arrays expected = arrays_make(s, 0, 1), got = arrays_make(s, 0, 1);
  Arrays *both[] = {&expected, &got};
  for (int in_graph = 0; in_graph < 2; in_graph++) {
    StepGraph graph;
    memset(&graph, 0, sizeof graph);
    Arrays on = arrays_to(DEVICE_GPU, both[in_graph]);
    BatchNorm2d b = arrays_of(&on, s, BATCH_NORM_RELU);
    for (int step = 0; step < 2; step++) {
      device_upload(DEVICE_GPU, b.workspace, got.at[WORK], got.count[WORK] * sizeof(float)); /* poison */
      if (in_graph) step_graph_begin(&graph);
      batch_norm2d_forward_gpu(&b);
      batch_norm2d_backward_gpu(&b);
      if (in_graph) step_graph_launch(&graph);
      device_synchronize(DEVICE_GPU);
    }
    assert_int_equal(graph.instantiated, in_graph); /* the second step updates the first one's graph */
    step_graph_close(&graph);
    arrays_back(DEVICE_GPU, both[in_graph], &on);
  }
  const int outputs[] = {Y, DX, MEAN, INV_STD, NEW_MEAN, NEW_VAR, DGAMMA, DBETA};
  for (int i = 0; i < 8; i++)
    assert_memory_equal(got.at[outputs[i]], expected.at[outputs[i]], got.count[outputs[i]] * sizeof(float));
  arrays_free(&expected);
  arrays_free(&got);
}

/* loss = sum of y dy. The definition's gradients against differences of its forward; x lies away from the ReLU's edge.
 * */
static double loss_at(const BatchNorm2d *b) {
  double loss = 0;
  batch_norm2d_forward_cpu(b);
  for (size_t i = 0; i < batch_norm2d_count(b->shape) * b->shape.c; i++) loss += (double)b->y[i] * b->dy[i];
  return loss;
}

static void gradients_are_differences(void **state) {
  (void)state;
  const BatchNorm2dShape s = {3, 2, 5};
  for (int after = BATCH_NORM_ALONE; after <= BATCH_NORM_ADD_RELU; after++) {
    Arrays a = arrays_make(s, 0, 1);
    BatchNorm2d b = arrays_of(&a, s, (BatchNorm2dAfter)after);
    const int by[] = {X, GAMMA, BETA, Z}, to[] = {DX, DGAMMA, DBETA, DZ};
    loss_at(&b);
    batch_norm2d_backward_cpu(&b);
    for (int k = 0; k < (after == BATCH_NORM_ADD_RELU ? 4 : 3); k++)
      for (size_t i = 0; i < a.count[by[k]]; i++) {
        const float own = a.at[by[k]][i], step = 1.0f / 256;
        a.at[by[k]][i] = own + step;
        const double above = loss_at(&b);
        a.at[by[k]][i] = own - step;
        const double below = loss_at(&b);
        a.at[by[k]][i] = own;
        const double slope = (above - below) / (2 * (double)step);
        /* Where the ReLU bends within the step, the difference is another: at most half of the values do. */
        if (fabs(slope - (double)a.at[to[k]][i]) > 2e-3 * (1 + fabs(slope)) && after == BATCH_NORM_ALONE)
          fail_msg("%s of %s: %g, by differences %g", array_names[to[k]], after_names[after], a.at[to[k]][i], slope);
        if (fabs(slope - (double)a.at[to[k]][i]) > 0.05 * (1 + fabs(slope)))
          fail_msg("%s of %s: %g, by differences %g", array_names[to[k]], after_names[after], a.at[to[k]][i], slope);
      }
    arrays_free(&a);
  }
}

static void one_value_per_channel_is_refused(void **state) {
  (void)state;
  Error err;
  const BatchNorm2dShape one = {1, 7, 1}, two = {2, 7, 1}, none = {0, 7, 1};
  assert_int_equal(batch_norm2d_shape_check(two, &err), 0);
  assert_int_equal(batch_norm2d_shape_check(one, &err), -1);
  assert_non_null(strstr(err.message, "(1,7,1,1), which is 1 value per channel; expected at least 2"));
  assert_int_equal(batch_norm2d_shape_check(none, &err), -1);
}

/* ONNX's tests. Its running variance takes the biased one, so of those in training only y is compared. An epsilon of
 * 0.01 instead of ours: in evaluation, the difference is added to the variance; the one in training is left out. */
static void onnx_agrees(void **state) {
  (void)state;
  onnx_testdata_required();
  static const char *const tests[] = {"batchnorm_example", "batchnorm_epsilon", "batchnorm_example_training_mode"};
  for (int t = 0; t < 3; t++) {
    const int training = strstr(tests[t], "training") != NULL;
    OnnxTestTensor in[5], y;
    for (int i = 0; i < 5; i++) {
      char name[16];
      snprintf(name, sizeof name, "input_%d", i);
      onnx_testdata_load(tests[t], name, &in[i]);
    }
    onnx_testdata_load(tests[t], "output_0", &y);
    const BatchNorm2dShape s = {(int)in[0].shape[0], (int)in[0].shape[1],
                                (int)(in[0].count / in[0].shape[0] / in[0].shape[1])};
    for (int v = 0; v < VERSIONS; v++) {
      if (!version_runs(v)) continue;
      Arrays host = arrays_make(s, 0, 1);
      const int of[] = {X, GAMMA, BETA, OLD_MEAN, OLD_VAR};
      for (int i = 0; i < 5; i++) memcpy(host.at[of[i]], in[i].floats, in[i].count * sizeof(float));
      for (int c = 0; c < s.c && t == 1; c++) host.at[OLD_VAR][c] += 0.01f - BATCH_NORM_EPSILON;
      Arrays on = arrays_to(versions[v].device, &host);
      BatchNorm2d b = arrays_of(&on, s, BATCH_NORM_ALONE);
      if (training)
        versions[v].forward(&b);
      else
        ON_DEVICE(versions[v].device, batch_norm2d_evaluate_gpu(&b), batch_norm2d_evaluate_cpu_fast(&b));
      arrays_back(versions[v].device, &host, &on);
      Comparison c = compare_arrays(host.at[Y], y.floats, (size_t)s.n * s.c, s.pixels, tolerance_make(1e-5, 1e-5));
      if (!c.ok) fail_msg("%s, %s: %s", tests[t], versions[v].name, c.message);
      arrays_free(&host);
    }
    for (int i = 0; i < 5; i++) onnx_test_tensor_free(&in[i]);
    onnx_test_tensor_free(&y);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ragged_shapes_agree),
      cmocka_unit_test(several_blocks_share_a_channel),
      cmocka_unit_test(rows_of_channels_agree),
      cmocka_unit_test(channels_take_turns),
      cmocka_unit_test(a_large_mean_costs_no_digits),
      cmocka_unit_test(nan_stays_in_its_channel),
      cmocka_unit_test(evaluation_agrees),
      cmocka_unit_test(what_is_not_wanted_stays),
      cmocka_unit_test(a_graph_computes_the_same_bits),
      cmocka_unit_test(gradients_are_differences),
      cmocka_unit_test(one_value_per_channel_is_refused),
      cmocka_unit_test(onnx_agrees),
  };
  return TEST_MAIN("batch_norm", tests);
}
