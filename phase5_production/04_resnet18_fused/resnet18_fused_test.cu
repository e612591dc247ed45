/* Every rung: its logits against float64, on the CPU and by its kernels; how many kernels it launches, and how many
 * bytes pass between operations. */
#include "common/lesson/verify.h"
#include "common/test.h"
#include "common/test_arrays.h"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_wgmma.cuh"
#include "phase5_production/04_resnet18_fused/fused_measure.cuh"
#include "phase5_production/04_resnet18_fused/fused_reference.cuh"
#include "phase5_production/04_resnet18_fused/stem_pool_lesson.cuh"

/* A thin network and small, odd pictures; the last stage has one pixel. */
enum { WIDTH = 8, SIDE = 19, CLASSES = 10, BATCH = 3 };
static const Resnet18Shape thin = {SIDE, WIDTH, CLASSES};

static float *pictures(void) {
  const size_t n = (size_t)BATCH * 3 * SIDE * SIDE;
  float *x = arrays_random(n, 77);
  for (size_t i = 0; i < n; i++) x[i] *= 2;
  return x;
}

static Model open_trained(Device device) {
  Error err;
  Model trained;
  if (fused_trained_open(&trained, thin, device, 5, &err) != 0) fail_msg("%s", err.message);
  return trained;
}

static Fused open_rung(const char *name, const Model *trained, int batch) {
  Error err;
  Fused f;
  if (fused_rung(name) == NULL) fail_msg("there is no rung %s", name);
  if (fused_open(&f, fused_rung(name), trained, batch, &err) != 0) fail_msg("%s", err.message);
  return f;
}

static void expect_logits(Fused *f, const float *x, const double *expected) {
  const Device device = f->model.context.device;
  float y[BATCH * CLASSES];
  const size_t numbers = (size_t)f->batch * CLASSES;
  device_upload(device, model_input(&f->model, 0), x, (size_t)f->batch * 3 * SIDE * SIDE * sizeof *x);
  for (size_t i = 0; i < numbers; i++) y[i] = NAN;
  device_upload(device, (float *)fused_logits(f), y, numbers * sizeof *y);
  fused_infer(f);
  device_download(device, y, fused_logits(f), numbers * sizeof *y);
  const double error = fused_error(y, expected, numbers), tolerance = fused_tolerance(f->rung->type);
  print_message("%-14s batch %d, %s: %.1e of the largest logit, up to %.0e\n", f->rung->name, f->batch,
                device_name(device), error, tolerance);
  if (!(error <= tolerance))
    fail_msg("%s: the logits differ by %.2e of the largest one; up to %.1e is expected", f->rung->name, error,
             tolerance);
}

static void expect_rungs(Device device, const char *const *names, int count) {
  Model trained = open_trained(device);
  float *x = pictures();
  double *expected = fused_reference(&trained, x, BATCH);
  for (int i = 0; i < count; i++) {
    Fused f = open_rung(names[i], &trained, i % 2 ? BATCH : BATCH - 1);
    expect_logits(&f, x, expected);
    fused_close(&f);
  }
  free(x);
  free(expected);
  model_close(&trained);
}

static int all_names(const char **names) {
  for (int i = 0; i < FUSED_RUNGS; i++) names[i] = fused_rungs[i].name;
  return FUSED_RUNGS;
}

static void rungs_on_the_cpu(void **state) {
  (void)state;
  const char *names[FUSED_RUNGS];
  expect_rungs(DEVICE_CPU, names, all_names(names));
}

/* In the emulator those whose kernels no other one has. */
static void rungs_by_their_kernels(void **state) {
  (void)state;
  test_requires_gpu();
#ifdef SIMT_REWRITTEN
  const char *names[] = {"none", "fold", "tf32_residual", "fp16_norm_relu", "fp16_graph", "bf16_residual"};
  const int count = sizeof names / sizeof *names;
#else
  const char *names[FUSED_RUNGS];
  const int count = all_names(names);
#endif
  expect_rungs(DEVICE_GPU, names, count);
}

/* ---------------------------------------------------------------------------------------------------------------- */

static int kernels_of(const char *name, const Model *trained) {
  Fused f = open_rung(name, trained, 1);
  const int kernels = fused_kernels(&f);
  fused_close(&f);
  return kernels;
}

/* 68 operations: 20 convolutions, 20 batch norms, 17 ReLUs, 8 sums, two poolings and a linear layer. In 16 bits,
 * pictures and logits are cast. A shortcut's convolution is a launch of its own where mma.sync computes it. */
static void each_rung_launches_fewer_kernels(void **state) {
  (void)state;
  test_requires_gpu();
  Model trained = open_trained(DEVICE_GPU);
  static const struct {
    const char *name;
    int kernels;
  } rungs[] = {{"fp16_none", 68 + 2},
               {"fp16_add_relu", 62},         /* 8 ReLUs less */
               {"fp16_norm_relu", 45},        /* 9 ReLUs and 8 sums less */
               {"fp16_fold", 20 + 8 + 3 + 2}, /* convolutions, sums, and the rest */
               {"fp16_stem", 31},             /* pooling and a cast less */
               {"fp16_head", 29},             /* a mean and a cast less */
               {"fp16_graph", 18 + 3},        /* stem, 16 convolutions, head; shortcuts */
               {"tf32_graph", 18 + 3}};
  for (size_t i = 0; i < sizeof rungs / sizeof *rungs; i++) {
    const int kernels = kernels_of(rungs[i].name, &trained);
    /* of these small pictures wgmma takes some shortcuts and leaves others, as its plans fit */
    const int shortcuts = fused_rung(rungs[i].name)->fused & FUSED_RESIDUAL ? 3 : 0;
    if (kernels > rungs[i].kernels || kernels < rungs[i].kernels - shortcuts)
      fail_msg("%s: %d kernels, expected %d", rungs[i].name, kernels, rungs[i].kernels);
  }
  model_close(&trained);
}

/* With 64 channels wgmma takes every convolution, and no shortcut is a launch of its own. */
static void wgmma_takes_every_shortcut(void **state) {
  (void)state;
  test_requires_gpu();
  if (conv2d_wgmma_refusal() != NULL) {
    print_message("skipped: %s\n", conv2d_wgmma_refusal());
    skip();
  }
  const Resnet18Shape wide = {64, 64, CLASSES};
  Error err;
  Model trained;
  if (fused_trained_open(&trained, wide, DEVICE_GPU, 5, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(kernels_of("fp16_graph", &trained), 18);
  assert_int_equal(kernels_of("bf16_graph", &trained), 18);
  assert_int_equal(kernels_of("tf32_graph", &trained), 18);
  model_close(&trained);
}

/* A graph is one node of the host's work, and has the bits of its kernels one by one. */
static void a_graph_computes_the_same(void **state) {
  (void)state;
  test_requires_gpu();
  Model trained = open_trained(DEVICE_GPU);
  float *x = pictures(), y[2][BATCH * CLASSES];
  const char *const names[] = {"fp16_residual", "fp16_graph"};
  for (int i = 0; i < 2; i++) {
    Fused f = open_rung(names[i], &trained, BATCH);
    assert_int_equal(f.graph.exec != NULL, i);
    device_upload(DEVICE_GPU, model_input(&f.model, 0), x, (size_t)BATCH * 3 * SIDE * SIDE * sizeof *x);
    fused_infer(&f);
    device_download(DEVICE_GPU, y[i], fused_logits(&f), sizeof y[i]);
    fused_close(&f);
  }
  assert_memory_equal(y[0], y[1], sizeof y[0]);
  free(x);
  model_close(&trained);
}

/* What is computed together need not be stored. */
static void bytes_become_fewer(void **state) {
  (void)state;
  const Resnet18Shape wide = {224, 64, 1000};
  Error err;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = DEVICE_CPU;
  static const char *const names[] = {"fp16_none", "fp16_add_relu", "fp16_norm_relu", "fp16_fold",
                                      "fp16_stem", "fp16_head",     "fp16_residual"};
  double before = INFINITY;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    Graph *plain = resnet18_layers(wide);
    Fused f;
    memset(&f, 0, sizeof f);
    f.batch = 64;
    if (model_prepare(&f.model, fused_graph(plain, fused_rung(names[i])), context, NULL, 64, MODEL_INFER, &err) != 0)
      fail_msg("%s", err.message);
    const double bytes = fused_bytes(&f);
    print_message("%s, batch 64: %.0f MB\n", names[i], bytes * 1e-6);
    /* the head reads the weights as float32, which is as much as it saves */
    if (!(bytes < before * (strcmp(names[i], "fp16_head") == 0 ? 1.01 : 1)))
      fail_msg("%s: %.0f bytes, and %.0f before", names[i], bytes, before);
    before = bytes;
    graph_destroy(plain);
    model_close(&f.model);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* The three shortcuts of 1 x 1 are part of the convolutions that add them, with their weights; others have an
 * identity. */
static void shortcuts_join_the_convolutions(void **state) {
  (void)state;
  Graph *plain = resnet18_layers(thin), *g = fused_graph(plain, fused_rung("fp16_residual"));
  int products = 0, images = 0, convolutions = 0;
  for (int i = 0; i < g->count; i++) {
    const Node *node = &g->nodes[i];
    convolutions += node->op == &conv2d_relu_half_op || node->op == &conv2d_infer_half_op;
    if (node->op != &residual_end_half_op) continue;
    assert_int_equal(node->params, 3);
    assert_int_equal(node->inputs, 2);
    const int product = residual_end_of(node, 1).added.k > 0;
    products += product;
    images += !product;
    assert_non_null(strstr(node->param[1].name, product ? "downsample.0.weight" : ".identity"));
  }
  assert_int_equal(products, 3);
  assert_int_equal(images, 5);
  assert_int_equal(convolutions, 8);
  graph_destroy(plain);
  graph_destroy(g);
}

static void a_missing_parameter_is_named(void **state) {
  (void)state;
  Error err;
  Model trained = open_trained(DEVICE_CPU), other;
  Context context = trained.context;
  const Resnet18Shape wider = {SIDE, 2 * WIDTH, CLASSES};
  Graph *plain = resnet18_layers(wider);
  assert_int_equal(model_open(&other, fused_graph(plain, fused_rung("none")), context, NULL, 1, MODEL_INFER, &err), 0);
  assert_int_equal(fused_parameters(&other, &trained, &err), -1);
  assert_non_null(strstr(err.message, "conv1.weight"));
  graph_destroy(plain);
  model_close(&other);
  model_close(&trained);
}

/* Several tiles along each axis, several pictures, more filters than a block has. */
static void the_stem_is_right_on_ragged_shapes(void **state) {
  (void)state;
  test_requires_gpu();
  static LessonResult result; /* large */
  const Lesson lesson = stem_pool_lesson();
  const LessonVersion version = stem_pool_version("stem", stem_pool_forward_bf16, "");
  if (lesson_verify_all(&lesson, &version, 1, &result) != 0) fail_msg("%s", result.message);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rungs_on_the_cpu),
                                     cmocka_unit_test(rungs_by_their_kernels),
                                     cmocka_unit_test(each_rung_launches_fewer_kernels),
                                     cmocka_unit_test(wgmma_takes_every_shortcut),
                                     cmocka_unit_test(a_graph_computes_the_same),
                                     cmocka_unit_test(bytes_become_fewer),
                                     cmocka_unit_test(the_stem_is_right_on_ragged_shapes),
                                     cmocka_unit_test(shortcuts_join_the_convolutions),
                                     cmocka_unit_test(a_missing_parameter_is_named)};
  return TEST_MAIN("resnet18_fused", tests);
}
