/* ONNX's operator tests (common/onnx_testdata.h) of this phase: the definitions and the kernels against what numpy
 * computed for the standard. Each line of the log names a test of ONNX that ran, and how many of our versions it
 * checked. Left out are tests of what we do not have (leaky ReLU with slopes other than 0.01, weighted or ignored
 * classes, broadcasting, gemm's factors) and those named `expanded`, which have the same tensors. */
#include <math.h>

#include "common/onnx_testdata.h"
#include "common/test_arrays.h"
#include "phase1_building_blocks/01_vector_add/vector_add.cuh"
#include "phase1_building_blocks/02_transpose/transpose.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_naive.cuh"
#include "phase1_building_blocks/04_matmul_tiled/matmul_tiled.cuh"
#include "phase1_building_blocks/05_matmul_register_tiled/matmul_register_tiled.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_tuned.cuh"
#include "phase1_building_blocks/07_activations/activations.cuh"
#include "phase1_building_blocks/08_softmax/softmax.cuh"
#include "phase1_building_blocks/09_losses/losses.cuh"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy.cuh"
#include "phase1_building_blocks/12_dropout/dropout.cuh"

/* ONNX's tensors are sums of a few terms in float, and functions of numpy. */
static const double rounding = 16 * (double)FLT_EPSILON;

static void begin(void) {
  onnx_testdata_required();
  test_requires_gpu();
}

static void ran(const char *test, int versions) {
  print_message("  %s: %d version%s\n", test, versions, versions > 1 ? "s" : "");
}

static void check(const char *test, const char *version, const float *got, const OnnxTestTensor *expected,
                  double tolerance) {
  size_t cols = expected->rank > 0 ? expected->shape[expected->rank - 1] : 1;
  Comparison c =
      compare_arrays(got, expected->floats, expected->count / cols, cols, tolerance_make(tolerance, tolerance));
  if (!c.ok) fail_msg("%s, %s: %s", test, version, c.message);
}

/* The tensors of one test, and memory for our result. */
typedef struct Data {
  const char *test;
  OnnxTestTensor in[3], out[2];
  float *y; /* as many elements as out[0] has */
} Data;

static Data load(const char *test, int inputs, int outputs) {
  Data data;
  memset(&data, 0, sizeof data);
  data.test = test;
  char name[32];
  for (int i = 0; i < inputs; i++)
    snprintf(name, sizeof name, "input_%d", i), onnx_testdata_load(test, name, &data.in[i]);
  for (int i = 0; i < outputs; i++)
    snprintf(name, sizeof name, "output_%d", i), onnx_testdata_load(test, name, &data.out[i]);
  data.y = arrays_poison(data.out[0].count);
  return data;
}

static void unload(Data *data) {
  for (int i = 0; i < 3; i++) onnx_test_tensor_free(&data->in[i]);
  for (int i = 0; i < 2; i++) onnx_test_tensor_free(&data->out[i]);
  free(data->y);
}

/* ---------------------------------------------------------------------------------------------------------------- */

typedef void Unary(float *y, const float *x, size_t n);

static void unary_on_gpu(Unary *f, float *y, const float *x, size_t n) {
  compare_poison(y, n);
  float *device_x = arrays_upload(DEVICE_GPU, x, n), *device_y = arrays_upload(DEVICE_GPU, y, n);
  f(device_y, device_x, n);
  arrays_download(DEVICE_GPU, y, device_y, n, "y");
  arrays_download(DEVICE_GPU, NULL, device_x, n, "x");
}

static void activations(void **state) {
  (void)state;
  begin();
  const struct {
    const char *test;
    Unary *cpu, *scalar, *quads;
    double tolerance;
  } cases[] = {
      {"relu", relu_forward_cpu, activation_forward_scalar<ACTIVATION_RELU>, relu_forward_gpu, 0},
      {"leakyrelu_default", leaky_relu_forward_cpu, activation_forward_scalar<ACTIVATION_LEAKY_RELU>,
       leaky_relu_forward_gpu, rounding},
      {"sigmoid", sigmoid_forward_cpu, activation_forward_scalar<ACTIVATION_SIGMOID>, sigmoid_forward_gpu, rounding},
      {"sigmoid_example", sigmoid_forward_cpu, activation_forward_scalar<ACTIVATION_SIGMOID>, sigmoid_forward_gpu,
       rounding},
      {"tanh", tanh_forward_cpu, activation_forward_scalar<ACTIVATION_TANH>, tanh_forward_gpu, rounding},
      {"tanh_example", tanh_forward_cpu, activation_forward_scalar<ACTIVATION_TANH>, tanh_forward_gpu, rounding}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Data data = load(cases[i].test, 1, 1);
    const OnnxTestTensor *x = &data.in[0], *y = &data.out[0];
    cases[i].cpu(data.y, x->floats, x->count);
    check(data.test, "the definition", data.y, y, cases[i].tolerance);
    unary_on_gpu(cases[i].scalar, data.y, x->floats, x->count);
    check(data.test, "one each", data.y, y, cases[i].tolerance);
    unary_on_gpu(cases[i].quads, data.y, x->floats, x->count);
    check(data.test, "four each", data.y, y, cases[i].tolerance);
    ran(data.test, 3);
    unload(&data);
  }
}

static void sums(void **state) {
  (void)state;
  begin();
  typedef void Add(float *c, const float *a, const float *b, size_t n);
  Add *const versions[] = {vector_add, vector_add_stride, vector_add_float4};
  Data data = load("add", 2, 1);
  size_t n = data.out[0].count;
  vector_add_cpu(data.y, data.in[0].floats, data.in[1].floats, n);
  check(data.test, "the definition", data.y, &data.out[0], 0);
  for (int v = 0; v < 3; v++) {
    compare_poison(data.y, n);
    float *a = arrays_upload(DEVICE_GPU, data.in[0].floats, n), *b = arrays_upload(DEVICE_GPU, data.in[1].floats, n);
    float *c = arrays_upload(DEVICE_GPU, data.y, n);
    versions[v](c, a, b, n);
    arrays_download(DEVICE_GPU, data.y, c, n, "c");
    arrays_download(DEVICE_GPU, NULL, a, n, "a");
    arrays_download(DEVICE_GPU, NULL, b, n, "b");
    check(data.test, "a kernel", data.y, &data.out[0], 0);
  }
  ran(data.test, 4);
  unload(&data);
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* x (outer,length,inner) with length = x's size `axis`, as rows (outer * inner,length). To be freed. */
static float *rows_of(const OnnxTestTensor *x, int axis, int *rows, int *cols) {
  size_t length = x->shape[axis], inner = 1;
  for (int i = axis + 1; i < x->rank; i++) inner *= x->shape[i];
  float *out = (float *)xmalloc(x->count * sizeof *out);
  for (size_t i = 0; i < x->count; i++)
    out[(i / length / inner * inner + i % inner) * length + i / inner % length] = x->floats[i];
  *cols = (int)length, *rows = (int)(x->count / length);
  return out;
}

static void softmax(void **state) {
  (void)state;
  begin();
  typedef void Rows(float *y, const float *x, int rows, int cols);
  Rows *const kernels[] = {softmax_forward_naive,  softmax_forward_shared, softmax_forward_shuffle,
                           softmax_forward_online, softmax_forward_staged, softmax_forward_gpu};
  const struct {
    const char *test;
    int axis;
  } cases[] = {{"softmax_axis_0", 0},       {"softmax_axis_1", 1},        {"softmax_axis_2", 2},
               {"softmax_default_axis", 2}, {"softmax_negative_axis", 2}, {"softmax_large_number", 1},
               {"softmax_example", 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Data data = load(cases[i].test, 1, 1);
    int rows, cols;
    float *x = rows_of(&data.in[0], cases[i].axis, &rows, &cols),
          *expected = rows_of(&data.out[0], cases[i].axis, &rows, &cols);
    OnnxTestTensor y = {2, ONNX_FLOAT, {(size_t)rows, (size_t)cols}, data.out[0].count, expected};
    softmax_forward_cpu(data.y, x, rows, cols);
    check(data.test, "the definition", data.y, &y, rounding);
    for (int v = 0; v < 6; v++) {
      compare_poison(data.y, y.count);
      float *device_x = arrays_upload(DEVICE_GPU, x, y.count), *device_y = arrays_upload(DEVICE_GPU, data.y, y.count);
      kernels[v](device_y, device_x, rows, cols);
      arrays_download(DEVICE_GPU, data.y, device_y, y.count, "y");
      arrays_download(DEVICE_GPU, NULL, device_x, y.count, "x");
      check(data.test, "a kernel", data.y, &y, rounding);
    }
    ran(data.test, 7);
    free(x);
    free(expected);
    unload(&data);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* Logits (N,C,...) and labels (N,...); the loss of each label, or their mean or sum. */
static void check_losses(const Data *data, const char *version, const float *losses, size_t rows) {
  float total = 0;
  for (size_t i = 0; i < rows; i++) total += losses[i];
  if (strncmp(data->test, "sce_mean", 8) == 0) total /= (float)rows;
  check(data->test, version, data->out[0].rank == 0 ? &total : losses, &data->out[0], rounding);
}

static void softmax_cross_entropy(void **state) {
  (void)state;
  begin();
  typedef void Fused(float *losses, float *dlogits, const float *logits, const int *labels, float scale, int batch,
                     int classes);
  Fused *const kernels[] = {softmax_cross_entropy_separate, softmax_cross_entropy_online, softmax_cross_entropy_shared,
                            softmax_cross_entropy_quads, softmax_cross_entropy_fused};
  const char *const tests[] = {"sce_mean",
                               "sce_mean_3d",
                               "sce_none",
                               "sce_sum",
                               "sce_NCd1d2d3d4d5_none_no_weight",
                               "sce_mean_log_prob",
                               "sce_mean_3d_log_prob",
                               "sce_none_log_prob",
                               "sce_sum_log_prob",
                               "sce_NCd1d2d3d4d5_none_no_weight_log_prob"};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    bool has_logarithms = strstr(tests[i], "log_prob") != NULL;
    Data data = load(tests[i], 2, has_logarithms ? 2 : 1);
    int rows, cols;
    float *logits = rows_of(&data.in[0], 1, &rows, &cols);
    size_t n = data.in[0].count;
    int *labels = (int *)xmalloc((size_t)rows * sizeof *labels);
    assert_int_equal(data.in[1].count, rows);
    for (int row = 0; row < rows; row++) labels[row] = (int)data.in[1].floats[row];
    float *losses = arrays_poison((size_t)rows), *p = arrays_poison(n);
    softmax_cross_entropy_forward_cpu(losses, p, logits, labels, rows, cols);
    check_losses(&data, "the definition", losses, (size_t)rows);
    float *device_logits = arrays_upload(DEVICE_GPU, logits, n);
    int *device_labels = (int *)arrays_upload_bytes(DEVICE_GPU, labels, (size_t)rows * sizeof *labels);
    for (int v = 0; v < 5; v++) {
      compare_poison(losses, (size_t)rows);
      float *device_losses = arrays_upload(DEVICE_GPU, losses, (size_t)rows);
      float *device_dlogits = arrays_upload(DEVICE_GPU, p, n);
      kernels[v](device_losses, device_dlogits, device_logits, device_labels, 1, rows, cols);
      arrays_download(DEVICE_GPU, losses, device_losses, (size_t)rows, "losses");
      arrays_download(DEVICE_GPU, NULL, device_dlogits, n, "dlogits");
      check_losses(&data, "a kernel", losses, (size_t)rows);
    }
    if (has_logarithms) {
      float *logarithms = rows_of(&data.out[1], 1, &rows, &cols), *expected = arrays_poison(n);
      for (size_t j = 0; j < n; j++) expected[j] = expf(logarithms[j]);
      assert_matrix_close(p, expected, (size_t)rows, (size_t)cols, rounding, rounding); /* of the definition */
      float *device_losses = guard_alloc(DEVICE_GPU, (size_t)rows);
      compare_poison(p, n);
      float *device_p = arrays_upload(DEVICE_GPU, p, n);
      softmax_cross_entropy_forward_gpu(device_losses, device_p, device_logits, device_labels, rows, cols);
      arrays_download(DEVICE_GPU, p, device_p, n, "probabilities");
      arrays_download(DEVICE_GPU, NULL, device_losses, (size_t)rows, "losses");
      assert_matrix_close(p, expected, (size_t)rows, (size_t)cols, rounding, rounding);
      free(logarithms);
      free(expected);
    }
    arrays_download(DEVICE_GPU, NULL, device_logits, n, "logits");
    device_free(DEVICE_GPU, device_labels);
    ran(data.test, 6);
    free(logits);
    free(labels);
    free(losses);
    free(p);
    unload(&data);
  }
}

/* ONNX's input is the logarithm of the probability; ours is the probability. */
static void cross_entropy(void **state) {
  (void)state;
  begin();
  Data data = load("nllloss_NCd1d2_reduction_mean", 2, 1);
  int rows, cols;
  float *p = rows_of(&data.in[0], 1, &rows, &cols), total;
  size_t n = data.in[0].count;
  int *labels = (int *)xmalloc((size_t)rows * sizeof *labels);
  for (size_t i = 0; i < n; i++) p[i] = expf(p[i]);
  for (int row = 0; row < rows; row++) labels[row] = (int)data.in[1].floats[row];
  cross_entropy_cpu(&total, (float *)NULL, p, labels, rows, cols);
  check(data.test, "the definition", &total, &data.out[0], rounding);
  float *device_p = arrays_upload(DEVICE_GPU, p, n), *dp = guard_alloc(DEVICE_GPU, n);
  int *device_labels = (int *)arrays_upload_bytes(DEVICE_GPU, labels, (size_t)rows * sizeof *labels);
  for (int fused = 0; fused < 2; fused++) {
    float *device_total = guard_alloc(DEVICE_GPU, 1);
    (fused ? cross_entropy_fused : cross_entropy_separate)(device_total, dp, device_p, device_labels, rows, cols);
    compare_poison(&total, 1);
    arrays_download(DEVICE_GPU, &total, device_total, 1, "total");
    check(data.test, fused ? "fused" : "separate", &total, &data.out[0], rounding);
  }
  arrays_download(DEVICE_GPU, NULL, device_p, n, "p");
  arrays_download(DEVICE_GPU, NULL, dp, n, "dp");
  device_free(DEVICE_GPU, device_labels);
  ran(data.test, 3);
  free(p);
  free(labels);
  unload(&data);
}

/* ---------------------------------------------------------------------------------------------------------------- */

static void matmul_simple_gpu(float *c, const float *a, const float *b, int m, int n, int k) {
  matmul_gpu(c, a, b, m, n, k, false, false, false);
}

/* Products over the last two dimensions, for each index of the others. */
static void matmul(void **state) {
  (void)state;
  begin();
  const struct {
    const char *name;
    MatmulLauncher *launch;
  } kernels[] = {{"matmul_naive", matmul_naive},
                 {"matmul_tiled", matmul_tiled},
                 {"matmul_register_2d", matmul_register_2d},
                 {"matmul_vectorised", matmul_vectorised},
                 {"matmul_tuned", matmul_tuned},
                 {"matmul_gpu", matmul_simple_gpu}};
  const char *const tests[] = {"matmul_2d", "matmul_3d", "matmul_4d"};
  for (size_t i = 0; i < 3; i++) {
    Data data = load(tests[i], 2, 1);
    const OnnxTestTensor *a = &data.in[0], *b = &data.in[1], *c = &data.out[0];
    int m = (int)a->shape[a->rank - 2], k = (int)a->shape[a->rank - 1], n = (int)b->shape[b->rank - 1];
    size_t batch = a->count / (size_t)(m * k);
    for (size_t j = 0; j < batch; j++)
      matmul_cpu(data.y + j * (size_t)(m * n), a->floats + j * (size_t)(m * k), b->floats + j * (size_t)(k * n), m, n,
                 k, false, false, false);
    check(data.test, "the definition", data.y, c, rounding);
    float *device_a = arrays_upload(DEVICE_GPU, a->floats, a->count),
          *device_b = arrays_upload(DEVICE_GPU, b->floats, b->count);
    for (size_t v = 0; v < sizeof kernels / sizeof *kernels; v++) {
      compare_poison(data.y, c->count);
      float *device_c = arrays_upload(DEVICE_GPU, data.y, c->count);
      for (size_t j = 0; j < batch; j++)
        kernels[v].launch(device_c + j * (size_t)(m * n), device_a + j * (size_t)(m * k),
                          device_b + j * (size_t)(k * n), m, n, k);
      arrays_download(DEVICE_GPU, data.y, device_c, c->count, "c");
      check(data.test, kernels[v].name, data.y, c, rounding);
    }
    arrays_download(DEVICE_GPU, NULL, device_a, a->count, "a");
    arrays_download(DEVICE_GPU, NULL, device_b, b->count, "b");
    ran(data.test, 1 + (int)(sizeof kernels / sizeof *kernels));
    unload(&data);
  }
}

/* y = op(a) op(b) + c, where c is nothing, a row for all, or a matrix, to which the product is added. */
static void gemm(void **state) {
  (void)state;
  begin();
  const struct {
    const char *test;
    int inputs;
    bool transpose_a, transpose_b;
  } cases[] = {{"gemm_default_no_bias", 2, false, false},     {"gemm_default_zero_bias", 3, false, false},
               {"gemm_default_vector_bias", 3, false, false}, {"gemm_default_matrix_bias", 3, false, false},
               {"gemm_transposeA", 3, true, false},           {"gemm_transposeB", 3, false, true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Data data = load(cases[i].test, cases[i].inputs, 1);
    const OnnxTestTensor *a = &data.in[0], *b = &data.in[1], *c = &data.in[2], *y = &data.out[0];
    bool transpose_a = cases[i].transpose_a, transpose_b = cases[i].transpose_b;
    int m = (int)y->shape[0], n = (int)y->shape[1], k = (int)a->shape[transpose_a ? 0 : 1];
    bool matrix = c->count == y->count;
    for (size_t j = 0; j < y->count; j++) data.y[j] = c->count == 0 ? 0 : c->floats[matrix ? j : j % (size_t)n];
    float *start = (float *)xmalloc(y->count * sizeof *start);
    memcpy(start, data.y, y->count * sizeof *start);
    matmul_cpu(data.y, a->floats, b->floats, m, n, k, transpose_a, transpose_b, true);
    check(data.test, "the definition", data.y, y, rounding);
    memcpy(data.y, start, y->count * sizeof *start);
    matmul_cpu_fast(data.y, a->floats, b->floats, m, n, k, transpose_a, transpose_b, true);
    check(data.test, "OpenBLAS", data.y, y, rounding);
    if (!matrix)
      compare_poison(data.y, y->count); /* the row is a bias */
    else
      memcpy(data.y, start, y->count * sizeof *start);
    float *device_a = arrays_upload(DEVICE_GPU, a->floats, a->count),
          *device_b = arrays_upload(DEVICE_GPU, b->floats, b->count);
    float *device_y = arrays_upload(DEVICE_GPU, data.y, y->count), *bias = NULL;
    if (!matrix && c->count > 0) bias = arrays_upload(DEVICE_GPU, start, (size_t)n);
    matmul_bias_gpu(device_y, device_a, device_b, bias, m, n, k, transpose_a, transpose_b, matrix);
    arrays_download(DEVICE_GPU, data.y, device_y, y->count, "y");
    arrays_download(DEVICE_GPU, NULL, device_a, a->count, "a");
    arrays_download(DEVICE_GPU, NULL, device_b, b->count, "b");
    if (bias != NULL) arrays_download(DEVICE_GPU, NULL, bias, (size_t)n, "bias");
    check(data.test, "matmul_bias_gpu", data.y, y, rounding);
    ran(data.test, 3);
    free(start);
    unload(&data);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */

typedef void Transpose(float *out, const float *in, int rows, int cols);

/* Three dimensions are permuted by transposing matrices: each of a batch, or two dimensions taken as one. All
 * permutations but the first, which moves nothing. */
static void transpose(void **state) {
  (void)state;
  begin();
  typedef struct Step {
    int batch, rows, cols;
  } Step;
  const struct {
    const char *test;
    int steps;
    Step step[2];
  } cases[] = {{"transpose_all_permutations_1", 1, {{2, 3, 4}}},
               {"transpose_all_permutations_2", 2, {{1, 2, 12}, {3, 4, 2}}},
               {"transpose_all_permutations_3", 1, {{1, 2, 12}}},
               {"transpose_all_permutations_4", 1, {{1, 6, 4}}},
               {"transpose_all_permutations_5", 2, {{2, 3, 4}, {1, 2, 12}}},
               {"transpose_default", 2, {{2, 3, 4}, {1, 2, 12}}}};
  Transpose *const versions[] = {transpose_cpu,   transpose_naive_rows, transpose_naive_columns,
                                 transpose_tiled, transpose_padded,     transpose_vectorised};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Data data = load(cases[i].test, 1, 1);
    size_t n = data.in[0].count;
    assert_int_equal(n, 2 * 3 * 4);
    for (int v = 0; v < 6; v++) {
      float in[24];
      memcpy(in, data.in[0].floats, sizeof in);
      for (int s = 0; s < cases[i].steps; s++) {
        Step step = cases[i].step[s];
        int slab = step.rows * step.cols;
        compare_poison(data.y, n);
        if (v == 0) {
          for (int b = 0; b < step.batch; b++) versions[v](data.y + b * slab, in + b * slab, step.rows, step.cols);
        } else {
          float *device_in = arrays_upload(DEVICE_GPU, in, n), *out = arrays_upload(DEVICE_GPU, data.y, n);
          for (int b = 0; b < step.batch; b++) versions[v](out + b * slab, device_in + b * slab, step.rows, step.cols);
          arrays_download(DEVICE_GPU, data.y, out, n, "out");
          arrays_download(DEVICE_GPU, NULL, device_in, n, "in");
        }
        memcpy(in, data.y, sizeof in);
      }
      check(data.test, v == 0 ? "the definition" : "a kernel", data.y, &data.out[0], 0);
    }
    ran(data.test, 6);
    unload(&data);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* In inference nothing is dropped: p is 0, whatever it was in training. */
static void dropout_in_use(void **state) {
  (void)state;
  begin();
  const char *const tests[] = {
      "dropout_default",       "dropout_default_mask", "dropout_default_mask_ratio", "dropout_default_old",
      "dropout_default_ratio", "dropout_random_old",   "training_dropout_zero_ratio"};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    Data data = load(tests[i], 1, 1);
    const OnnxTestTensor *x = &data.in[0];
    dropout_cpu(data.y, x->floats, x->count, 0, 1, 1);
    check(data.test, "the definition", data.y, &data.out[0], 0);
    for (int one = 0; one < 2; one++) {
      compare_poison(data.y, x->count);
      float *device_x = arrays_upload(DEVICE_GPU, x->floats, x->count),
            *y = arrays_upload(DEVICE_GPU, data.y, x->count);
      (one ? dropout_one_each : dropout_gpu)(y, device_x, x->count, 0, 1, 1);
      arrays_download(DEVICE_GPU, data.y, y, x->count, "y");
      arrays_download(DEVICE_GPU, NULL, device_x, x->count, "x");
      check(data.test, "a kernel", data.y, &data.out[0], 0);
    }
    ran(data.test, 3);
    unload(&data);
  }
}

/* In training, with ONNX's mask, the elements that are kept are scaled. */
static void dropout_in_training(void **state) {
  (void)state;
  begin();
  const char *const tests[] = {"training_dropout_mask", "training_dropout_default_mask",
                               "training_dropout_zero_ratio_mask"};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    Data data = load(tests[i], 2, 2);
    size_t n = data.in[0].count, kept = 0;
    uint8_t *mask = (uint8_t *)xmalloc(n);
    assert_int_equal(data.out[1].count, n);
    for (size_t j = 0; j < n; j++) kept += mask[j] = data.out[1].floats[j] != 0;
    float p = data.in[1].floats[0];
    assert_true(p == 0 ? kept == n : kept > 0 && kept < n);
    uint8_t *device_mask = (uint8_t *)arrays_upload_bytes(DEVICE_GPU, mask, n);
    float *x = arrays_upload(DEVICE_GPU, data.in[0].floats, n), *y = arrays_upload(DEVICE_GPU, data.y, n);
    dropout_backward_mask(y, device_mask, x, n, p);
    arrays_download(DEVICE_GPU, data.y, y, n, "y");
    arrays_download(DEVICE_GPU, NULL, x, n, "x");
    device_free(DEVICE_GPU, device_mask);
    check(data.test, "dropout_backward_mask", data.y, &data.out[0], rounding);
    ran(data.test, 1);
    free(mask);
    unload(&data);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(activations),    cmocka_unit_test(sums),
      cmocka_unit_test(softmax),        cmocka_unit_test(softmax_cross_entropy),
      cmocka_unit_test(cross_entropy),  cmocka_unit_test(matmul),
      cmocka_unit_test(gemm),           cmocka_unit_test(transpose),
      cmocka_unit_test(dropout_in_use), cmocka_unit_test(dropout_in_training),
  };
  return TEST_MAIN("onnx", tests);
}
