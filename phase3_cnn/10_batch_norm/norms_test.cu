/* Layer norm and instance norm: every version against the definition, on ragged shapes, misaligned arrays, large means
 * and NaN; the definitions against central differences, PyTorch and ONNX; the nodes of a network. */
#include "common/nn/test_net.h"
#include "common/onnx_testdata.h"
#include "common/test_arrays.h"
#include "phase3_cnn/10_batch_norm/instance_norm_op.cuh"
#include "phase3_cnn/10_batch_norm/layer_norm_op.cuh"
#include "phase3_cnn/10_batch_norm/testdata/norms_golden.h"

/* Layer norm where channels is 0; rows are n * channels otherwise. */
typedef struct Case {
  int rows, cols, channels;
} Case;

static InstanceNormShape instance_shape(Case s) {
  const InstanceNormShape shape = {s.rows / s.channels, s.channels, s.cols};
  return shape;
}

static int weights(Case s) { return s.channels ? s.channels : s.cols; }

typedef void Forward(float *y, float *saved, const float *x, const float *weight, const float *bias, Case s);
typedef void Backward(float *dx, float *dweight, float *dbias, const float *dy, const float *x, const float *weight,
                      const float *saved, Case s, float *workspace);

/* ---- the versions, by one type ---- */

#define FORWARD(name, layer, instance)                                                                       \
  static void name(float *y, float *saved, const float *x, const float *weight, const float *bias, Case s) { \
    if (s.channels)                                                                                          \
      instance(y, saved, x, weight, bias, instance_shape(s));                                                \
    else                                                                                                     \
      layer(y, saved, x, weight, bias, s.rows, s.cols);                                                      \
  }

FORWARD(forward_cpu, layer_norm_forward_cpu, instance_norm_forward_cpu)
FORWARD(forward_fast, layer_norm_forward_cpu_fast, instance_norm_forward_cpu_fast)
FORWARD(forward_gpu, layer_norm_forward_gpu, instance_norm_forward_gpu)
FORWARD(forward_naive, layer_norm_forward_naive, instance_norm_forward_gpu)
FORWARD(forward_block, layer_norm_forward_block, instance_norm_forward_gpu)
FORWARD(forward_moments, layer_norm_forward_moments, instance_norm_forward_gpu)

static void backward_cpu(float *dx, float *dweight, float *dbias, const float *dy, const float *x, const float *weight,
                         const float *saved, Case s, float *workspace) {
  (void)workspace;
  if (s.channels)
    instance_norm_backward_cpu(dx, dweight, dbias, dy, x, weight, saved, instance_shape(s));
  else
    layer_norm_backward_cpu(dx, dweight, dbias, dy, x, weight, saved, s.rows, s.cols);
}

static void backward_fast(float *dx, float *dweight, float *dbias, const float *dy, const float *x, const float *weight,
                          const float *saved, Case s, float *workspace) {
  if (s.channels)
    instance_norm_backward_cpu_fast(dx, dweight, dbias, dy, x, weight, saved, instance_shape(s), workspace);
  else
    layer_norm_backward_cpu_fast(dx, dweight, dbias, dy, x, weight, saved, s.rows, s.cols);
}

#define BACKWARD(name, layer)                                                                                     \
  static void name(float *dx, float *dweight, float *dbias, const float *dy, const float *x, const float *weight, \
                   const float *saved, Case s, float *workspace) {                                                \
    if (s.channels)                                                                                               \
      instance_norm_backward_gpu(dx, dweight, dbias, dy, x, weight, saved, instance_shape(s), workspace);         \
    else                                                                                                          \
      layer(dx, dweight, dbias, dy, x, weight, saved, s.rows, s.cols, workspace);                                 \
  }

BACKWARD(backward_gpu, layer_norm_backward_gpu)
BACKWARD(backward_naive, layer_norm_backward_naive)
BACKWARD(backward_sliced, layer_norm_backward_sliced)

static const struct Version {
  const char *name;
  Device device;
  Forward *forward;
  Backward *backward;
} versions[] = {{"cpu_fast", DEVICE_CPU, forward_fast, backward_fast},
                {"gpu", DEVICE_GPU, forward_gpu, backward_gpu},
                {"naive", DEVICE_GPU, forward_naive, backward_naive},
                {"block, sliced", DEVICE_GPU, forward_block, backward_sliced},
                {"moments", DEVICE_GPU, forward_moments, NULL}};

enum { VERSIONS = sizeof versions / sizeof *versions };

/* ---- one shape ---- */

/* x (rows,cols) = offset + random numbers; arrays begin `shift` floats after an aligned address. */
typedef struct Problem {
  Case shape;
  size_t n, k; /* elements, weights */
  float offset;
  float *x, *dy, *weight, *bias, *saved; /* saved: the definition's */
  float *y, *dx, *dweight, *dbias;       /* expected */
} Problem;

static Problem problem_make(Case s, float offset, bool affine) {
  Problem p;
  p.shape = s;
  p.n = (size_t)s.rows * s.cols;
  p.k = (size_t)weights(s);
  p.offset = offset;
  p.x = arrays_random(p.n, 1 + p.n);
  for (size_t i = 0; i < p.n; i++) p.x[i] += offset;
  p.dy = arrays_random(p.n, 2);
  p.weight = affine ? arrays_random(p.k, 3) : NULL;
  p.bias = affine ? arrays_random(p.k, 4) : NULL;
  p.saved = arrays_poison(2 * (size_t)s.rows);
  p.y = arrays_poison(p.n);
  p.dx = arrays_poison(p.n);
  p.dweight = arrays_poison(p.k);
  p.dbias = arrays_poison(p.k);
  forward_cpu(p.y, p.saved, p.x, p.weight, p.bias, s);
  backward_cpu(p.dx, p.dweight, p.dbias, p.dy, p.x, p.weight, p.saved, s, NULL);
  return p;
}

static void problem_free(Problem *p) {
  float *const all[] = {p->x, p->dy, p->weight, p->bias, p->saved, p->y, p->dx, p->dweight, p->dbias};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static float *upload_shifted(Device device, const float *host, size_t n, size_t shift) {
  if (host == NULL) return NULL;
  float *padded = arrays_random(n + shift, 9);
  memcpy(padded + shift, host, n * sizeof *host);
  float *buffer = arrays_upload(device, padded, n + shift);
  free(padded);
  return buffer;
}

static float *upload_poison(Device device, size_t n) {
  float *poison = arrays_poison(n), *buffer = arrays_upload(device, poison, n);
  free(poison);
  return buffer;
}

static void expect(const Problem *p, const char *version, const char *what, const float *got, const float *expected,
                   size_t rows, size_t cols, double relative, double absolute) {
  Tolerance tolerance = tolerance_make(relative, absolute);
  tolerance.nan_equal = 1;
  Comparison c = compare_arrays(got, expected, rows, cols, tolerance);
  if (!c.ok)
    fail_msg("%s: %s of (%d,%d), %d channels, offset %g: %s", version, what, p->shape.rows, p->shape.cols,
             p->shape.channels, (double)p->offset, c.message);
}

/* A mean of n numbers of size 1 errs by this much; see tolerance_dot(). */
static double mean_error(double n) { return FLT_EPSILON * fmin(n + 1, 4 * sqrt(n + 1)); }

/* An error of the mean is an error of x: it is divided by the deviation. Rows of a few numbers may have a deviation
 * down to sqrt(epsilon); that of the others is about 1. */
static double inverse_deviation(Case s) { return s.cols < 8 ? 316 : 4; }

static void check_forward(const Problem *p, const struct Version *v, size_t shift) {
  const Case s = p->shape;
  const Device device = v->device;
  const size_t rows = (size_t)s.rows, cols = (size_t)s.cols;
  float *x = upload_shifted(device, p->x, p->n, shift), *weight = upload_shifted(device, p->weight, p->k, shift);
  float *bias = upload_shifted(device, p->bias, p->k, shift), *got = arrays_poison(p->n + shift + 2 * rows);
  float *saved = upload_poison(device, 2 * rows), *y = upload_poison(device, p->n + shift);
  v->forward(y + shift, saved, x + shift, weight ? weight + shift : NULL, bias ? bias + shift : NULL, s);
  const double size = fabs((double)p->offset) + 1;
  const double error = inverse_deviation(s) * size * mean_error(s.cols) + 16 * (double)FLT_EPSILON;
  arrays_download(device, got, y, p->n + shift, "y");
  expect(p, v->name, "y", got + shift, p->y, rows, cols, error, 4 * error);
  arrays_download(device, got, saved, 2 * rows, "saved");
  for (size_t r = 0; r < 2 * rows; r++) /* the mean of a row with infinity is infinity or NaN */
    if (!isfinite(p->saved[r]) && !isfinite(got[r])) got[r] = p->saved[r];
  expect(p, v->name, "saved", got, p->saved, 2, rows, error, error);
  arrays_download(device, NULL, x, p->n + shift, "x");
  if (weight) arrays_download(device, NULL, weight, p->k + shift, "weight");
  if (bias) arrays_download(device, NULL, bias, p->k + shift, "bias");
  free(got);
}

/* Which gradients are asked for: bits 0 to 2 are dx, dweight and dbias. */
static void check_backward(const Problem *p, const struct Version *v, size_t shift, int asked) {
  const Case s = p->shape;
  const Device device = v->device;
  const size_t rows = (size_t)s.rows, cols = (size_t)s.cols;
  const size_t scratch =
      s.channels ? instance_norm_workspace_floats(instance_shape(s)) : layer_norm_workspace_floats(s.rows, s.cols);
  float *x = upload_shifted(device, p->x, p->n, shift), *dy = upload_shifted(device, p->dy, p->n, shift);
  float *weight = upload_shifted(device, p->weight, p->k, shift), *got = arrays_poison(p->n + shift + 2 * rows);
  float *dx = upload_poison(device, p->n + shift), *dweight = upload_poison(device, p->k);
  float *dbias = upload_poison(device, p->k), *workspace = upload_poison(device, scratch);
  float *saved = arrays_upload(device, p->saved, 2 * rows);
  v->backward(asked & 1 ? dx + shift : NULL, asked & 2 ? dweight : NULL, asked & 4 ? dbias : NULL, dy + shift,
              x + shift, weight ? weight + shift : NULL, saved, s, workspace);
  /* dx = inv_std (g - mean - t mean), where t is about 3 at most */
  const double t_error = inverse_deviation(s) * (fabs((double)p->offset) + 1) * (double)FLT_EPSILON;
  arrays_download(device, got, dx, p->n + shift, "dx");
  if (asked & 1)
    expect(p, v->name, "dx", got + shift, p->dx, rows, cols, 1e-5,
           16 * inverse_deviation(s) * (mean_error(s.cols) + t_error));
  const double terms = (double)p->n / (double)p->k;
  arrays_download(device, got, dweight, p->k, "dweight");
  if (asked & 2)
    expect(p, v->name, "dweight", got, p->dweight, 1, p->k, 1e-6, 4 * terms * (mean_error(terms) + t_error));
  arrays_download(device, got, dbias, p->k, "dbias");
  if (asked & 4) expect(p, v->name, "dbias", got, p->dbias, 1, p->k, 1e-6, 4 * terms * mean_error(terms));
  arrays_download(device, NULL, x, p->n + shift, "x");
  arrays_download(device, NULL, dy, p->n + shift, "dy");
  arrays_download(device, NULL, saved, 2 * rows, "saved");
  arrays_download(device, NULL, workspace, scratch, "the workspace");
  if (weight) arrays_download(device, NULL, weight, p->k + shift, "weight");
  free(got);
}

static void check(const Problem *p, const struct Version *v, size_t shift) {
  check_forward(p, v, shift);
  if (v->backward) check_backward(p, v, shift, 7);
}

static void check_all(Case s, float offset, bool affine, size_t shift, Device device) {
  Problem p = problem_make(s, offset, affine);
  for (int v = 0; v < VERSIONS; v++) {
    if (versions[v].device != device) continue;
    if (s.channels && v > 1) continue; /* of instance norm there is one version per device */
    check(&p, &versions[v], shift);
  }
  problem_free(&p);
}

/* A single element, around a warp and what it keeps, primes, around what a block keeps, and longer; more rows than a
 * block takes; rows that are aligned and others. */
static const Case shapes[] = {
    {1, 1, 0},    {3, 1, 0},    {5, 2, 0},    {33, 3, 0},    {7, 31, 0},    {2, 127, 0},   {35, 128, 0},
    {3, 131, 0},  {2, 256, 0},  {4, 257, 0},  {131, 260, 0}, {2, 1024, 0},  {3, 1025, 0},  {2, 1031, 0},
    {9, 1028, 0}, {1, 4096, 0}, {2, 4099, 0}, {2, 4100, 0},  {1, 16384, 0}, {1, 16391, 0}, {1, 2, 1},
    {6, 3, 3},    {33, 31, 3},  {35, 49, 7},  {2, 256, 1},   {66, 257, 2},  {12, 784, 4},  {3, 1025, 3},
    {4, 1028, 2}, {2, 4097, 2}, {2, 4100, 1}, {1, 16384, 1}, {2, 16388, 2},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void check_shapes(Device device) {
  for (int i = 0; i < SHAPES; i++) {
    check_all(shapes[i], 0, i % 4 != 1, 0, device);
    if (i % 3 == 0) check_all(shapes[i], 0, true, 1 + (size_t)i % 3, device);
  }
  const Case large[] = {{5, 33, 0}, {3, 1028, 0}, {1, 16388, 0}, {4, 100, 2}}; /* E[x^2] - E[x]^2 would be lost */
  for (int i = 0; i < 4; i++) check_all(large[i], i % 2 ? 1000 : -3000, true, 0, device);
  const Case parts[] = {{35, 33, 0}, {5, 260, 0}, {3, 4100, 0}, {6, 49, 3}}; /* not all gradients */
  for (int i = 0; i < 4; i++) {
    Problem p = problem_make(parts[i], 0, true);
    for (int v = 0; v < (parts[i].channels ? 2 : VERSIONS); v++)
      for (int asked = 1; asked < 7 && versions[v].device == device && versions[v].backward; asked++)
        check_backward(&p, &versions[v], 0, asked);
    problem_free(&p);
  }
}

static void the_fast_cpu_versions_agree(void **state) {
  (void)state;
  check_shapes(DEVICE_CPU);
}

static void kernels_agree(void **state) {
  (void)state;
  test_requires_gpu();
  check_shapes(DEVICE_GPU);
}

/* NaN and infinity make their row NaN, and no other; the gradients of the columns are NaN. */
static void check_nan(Device device) {
  const Case cases[] = {{5, 33, 0}, {6, 300, 0}, {3, 5000, 0}, {6, 40, 3}};
  for (int i = 0; i < 4; i++) {
    Problem p = problem_make(cases[i], 0, true);
    const int cols = cases[i].cols;
    p.x[cols + cols / 2] = NAN;
    p.x[2 * cols + cols - 1] = INFINITY;
    forward_cpu(p.y, p.saved, p.x, p.weight, p.bias, cases[i]);
    backward_cpu(p.dx, p.dweight, p.dbias, p.dy, p.x, p.weight, p.saved, cases[i], NULL);
    for (int j = 0; j < cols; j++) assert_true(isnan(p.y[cols + j]) && isnan(p.y[2 * cols + j]) && !isnan(p.y[j]));
    for (int v = 0; v < (cases[i].channels ? 2 : VERSIONS); v++)
      if (versions[v].device == device) check(&p, &versions[v], 0);
    problem_free(&p);
  }
}

static void nan_stays_in_its_row_cpu(void **state) {
  (void)state;
  check_nan(DEVICE_CPU);
}

static void nan_stays_in_its_row_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_nan(DEVICE_GPU);
}

/* ---- the definition ---- */

static void a_row_by_hand(void **state) {
  (void)state;
  const double x[] = {1, 3, 5, 5, 5, 5}, weight[] = {2, 2, 2}, bias[] = {0, 1, 0};
  double y[6], saved[4];
  layer_norm_forward_cpu(y, saved, x, weight, bias, 2, 3); /* variance 8 / 3, and 0 */
  const double t = 2 / sqrt(8.0 / 3 + 1e-5), expected[] = {-2 * t, 1, 2 * t, 0, 1, 0};
  for (int i = 0; i < 6; i++)
    if (!(fabs(y[i] - expected[i]) < 1e-8)) fail_msg("element %d is %.9g; expected %.9g", i, y[i], expected[i]);
  assert_true(saved[0] == 3 && saved[1] == 5);
}

enum { GRADIENT_MOST = 64 };

static void forward_double(double *y, const double *x, const double *weight, const double *bias, Case s) {
  double saved[GRADIENT_MOST];
  if (s.channels)
    instance_norm_forward_cpu(y, saved, x, weight, bias, instance_shape(s));
  else
    layer_norm_forward_cpu(y, saved, x, weight, bias, s.rows, s.cols);
}

/* The gradients of the sum of c[i] y[i] are what backward computes from c. */
static void check_slopes(Case s, bool affine) {
  const int n = s.rows * s.cols, k = weights(s);
  double v[4][GRADIENT_MOST], slope[3][GRADIENT_MOST], y[GRADIENT_MOST], saved[GRADIENT_MOST]; /* v: x, w, b, c */
  float random[4 * GRADIENT_MOST];
  assert_true(n <= GRADIENT_MOST && k <= GRADIENT_MOST);
  test_random_fill(random, 4 * GRADIENT_MOST, 5);
  for (int i = 0; i < 4 * GRADIENT_MOST; i++) v[i / GRADIENT_MOST][i % GRADIENT_MOST] = random[i];
  const double *weight = affine ? v[1] : NULL, *bias = affine ? v[2] : NULL;
  if (s.channels) {
    instance_norm_forward_cpu(y, saved, v[0], weight, bias, instance_shape(s));
    instance_norm_backward_cpu(slope[0], slope[1], slope[2], v[3], v[0], weight, saved, instance_shape(s));
  } else {
    layer_norm_forward_cpu(y, saved, v[0], weight, bias, s.rows, s.cols);
    layer_norm_backward_cpu(slope[0], slope[1], slope[2], v[3], v[0], weight, saved, s.rows, s.cols);
  }
  for (int a = 0; a < (affine ? 3 : 1); a++)
    for (int i = 0; i < (a == 0 ? n : k); i++) {
      const double kept = v[a][i], h = 1e-5;
      double side[2];
      for (int e = 0; e < 2; e++) {
        v[a][i] = e ? kept - h : kept + h;
        forward_double(y, v[0], weight, bias, s);
        side[e] = 0;
        for (int j = 0; j < n; j++) side[e] += v[3][j] * y[j];
      }
      v[a][i] = kept;
      const double found = (side[0] - side[1]) / (2 * h);
      if (!(fabs(found - slope[a][i]) < 1e-6 * (1 + fabs(found))))
        fail_msg("(%d,%d), %d channels, array %d, element %d: gradient %.9g, slope %.9g", s.rows, s.cols, s.channels, a,
                 i, slope[a][i], found);
    }
}

static void gradients_are_differences(void **state) {
  (void)state;
  const Case cases[] = {{4, 7, 0}, {1, 33, 0}, {6, 9, 3}, {4, 5, 1}, {9, 2, 0}};
  for (int i = 0; i < 5; i++) check_slopes(cases[i], true), check_slopes(cases[i], false);
}

/* ---- PyTorch and ONNX ---- */

static void check_golden(const char *what, Case s, const float *weight, const float *bias, const float *const golden[4],
                         Device device) {
  Problem p = problem_make(s, 0, weight != NULL);
  memcpy(p.x, golden_x, p.n * sizeof *p.x);
  memcpy(p.dy, golden_dy, p.n * sizeof *p.x);
  if (weight) memcpy(p.weight, weight, p.k * sizeof *weight), memcpy(p.bias, bias, p.k * sizeof *bias);
  backward_cpu(p.dx, p.dweight, p.dbias, p.dy, p.x, p.weight, p.saved, s, NULL);
  forward_cpu(p.y, p.saved, p.x, p.weight, p.bias, s);
  backward_cpu(p.dx, p.dweight, p.dbias, p.dy, p.x, p.weight, p.saved, s, NULL);
  const float *const ours[] = {p.y, p.dx, p.dweight, p.dbias};
  for (int a = 0; a < (weight ? 4 : 2); a++)
    expect(&p, what, "PyTorch's", ours[a], golden[a], 1, a < 2 ? p.n : p.k, 4 * FLT_EPSILON, 8 * FLT_EPSILON);
  for (int v = 0; v < 2; v++)
    if (versions[v].device == device) check(&p, &versions[v], 0);
  problem_free(&p);
}

static void the_definitions_are_those_of_pytorch(void **state) {
  (void)state;
  const Case layer = {GOLDEN_N * GOLDEN_C * GOLDEN_H, GOLDEN_W, 0};
  const Case instance = {GOLDEN_N * GOLDEN_C, GOLDEN_H * GOLDEN_W, GOLDEN_C};
  const float *const layers[] = {golden_layer_y, golden_layer_dx, golden_layer_dweight, golden_layer_dbias};
  const float *const instances[] = {golden_instance_y, golden_instance_dx, golden_instance_dweight,
                                    golden_instance_dbias};
  const float *const plains[] = {golden_plain_y, golden_plain_dx, NULL, NULL};
  check_golden("layer norm", layer, golden_layer_weight, golden_layer_bias, layers, DEVICE_CPU);
  check_golden("instance norm", instance, golden_instance_weight, golden_instance_bias, instances, DEVICE_CPU);
  check_golden("instance norm without weight", instance, NULL, NULL, plains, DEVICE_CPU);
}

/* y, and of layer norm mean and 1 / deviation, against what numpy computed for the standard. Tests with another epsilon
 * are left out. */
static void check_onnx(const char *test, Device device) {
  OnnxTestNode node;
  OnnxTestTensor in[3], out[3];
  onnx_testdata_load_node(test, &node);
  const int layer = strcmp(node.op, "LayerNormalization") == 0;
  const char *const input[] = {"input_0", "input_1", "input_2"}, *const output[] = {"output_0", "output_1", "output_2"};
  for (int i = 0; i < 3; i++) onnx_testdata_load(test, input[i], &in[i]);
  for (int i = 0; i < (layer ? 3 : 1); i++) onnx_testdata_load(test, output[i], &out[i]);
  const OnnxTestAttribute *attribute = onnx_test_attribute(&node, "axis");
  int axis = layer ? attribute ? (int)attribute->value[0] : -1 : 2, rows = 1;
  if (axis < 0) axis += in[0].rank;
  for (int i = 0; i < axis; i++) rows *= (int)in[0].shape[i];
  Case s = {rows, (int)(in[0].count / (size_t)rows), layer ? 0 : (int)in[0].shape[1]};
  assert_int_equal(in[1].count, weights(s));
  Problem p = problem_make(s, 0, true);
  memcpy(p.x, in[0].floats, p.n * sizeof *p.x);
  memcpy(p.weight, in[1].floats, p.k * sizeof *p.x);
  memcpy(p.bias, in[2].floats, p.k * sizeof *p.x);
  forward_cpu(p.y, p.saved, p.x, p.weight, p.bias, s);
  backward_cpu(p.dx, p.dweight, p.dbias, p.dy, p.x, p.weight, p.saved, s, NULL);
  expect(&p, test, "y", p.y, out[0].floats, 1, p.n, 1e-5, 1e-5);
  for (int i = 1; i < (layer ? 3 : 1); i++)
    expect(&p, test, "saved", p.saved + (i - 1) * rows, out[i].floats, 1, (size_t)rows, 1e-5, 1e-6);
  for (int v = 0; v < (layer ? VERSIONS : 2); v++)
    if (versions[v].device == device) check(&p, &versions[v], 0);
  problem_free(&p);
  onnx_test_node_free(&node);
  for (int i = 0; i < 3; i++) onnx_test_tensor_free(&in[i]);
  for (int i = 0; i < (layer ? 3 : 1); i++) onnx_test_tensor_free(&out[i]);
}

static void every_version_passes_onnx(void **state) {
  (void)state;
  onnx_testdata_required();
  test_requires_gpu();
  static const char *const tests[] = {"instancenorm_example",
                                      "layer_normalization_2d_axis0",
                                      "layer_normalization_2d_axis1",
                                      "layer_normalization_2d_axis_negative_1",
                                      "layer_normalization_2d_axis_negative_2",
                                      "layer_normalization_4d_axis0",
                                      "layer_normalization_4d_axis1",
                                      "layer_normalization_4d_axis2",
                                      "layer_normalization_4d_axis3",
                                      "layer_normalization_4d_axis_negative_1",
                                      "layer_normalization_4d_axis_negative_2",
                                      "layer_normalization_4d_axis_negative_3",
                                      "layer_normalization_4d_axis_negative_4",
                                      "layer_normalization_default_axis"};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    check_onnx(tests[i], DEVICE_CPU);
    check_onnx(tests[i], DEVICE_GPU);
    print_message("  %s\n", tests[i]);
  }
}

/* ---- nodes of a network ---- */

/* first: instance norm; second: with weight; last: layer norm over the columns; all: over a sample; fc; cross-entropy.
 * Its gradients, which only a right dx of each node gives, are PyTorch's. */
static void check_network(Device device) {
  static const struct {
    const char *name;
    const float *value, *gradient;
  } params[] = {{"second.weight", golden_net_second_weight, golden_net_second_dweight},
                {"second.bias", golden_net_second_bias, golden_net_second_dbias},
                {"last.weight", golden_net_last_weight, golden_net_last_dweight},
                {"last.bias", golden_net_last_bias, golden_net_last_dbias},
                {"all.weight", golden_net_all_weight, golden_net_all_dweight},
                {"all.bias", golden_net_all_bias, golden_net_all_dbias},
                {"fc.weight", golden_net_fc_weight, golden_net_fc_dweight},
                {"fc.bias", golden_net_fc_bias, golden_net_fc_dbias}};
  const int labels[GOLDEN_N] = {1, 0};
  float got[2 * GOLDEN_C * GOLDEN_H * GOLDEN_W];
  Error err;
  Model m;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  Graph *g = graph_create();
  int x = graph_input(g, "x", shape3(GOLDEN_C, GOLDEN_H, GOLDEN_W));
  x = instance_norm2d(graph_name(g, "first"), x);
  x = instance_norm2d_affine(graph_name(g, "second"), x);
  x = layer_norm_last(graph_name(g, "last"), x, 1);
  x = layer_norm(graph_name(g, "all"), x);
  graph_loss(g, &test_loss, test_net_layer(graph_name(g, "fc"), x, 2), 1);
  if (model_open(&m, g, context, &test_sgd, GOLDEN_N, MODEL_TRAIN, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(model_find_param(&m, "last.weight")->rank, 1);
  assert_int_equal(model_find_param(&m, "all.weight")->rank, 3);
  for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
    const Param *p = model_find_param(&m, params[i].name);
    device_upload(device, model_param(&m, p), params[i].value, p->count * sizeof(float));
  }
  device_upload(device, model_input(&m, 0), golden_x, sizeof golden_x);
  device_upload(device, model_labels(&m), labels, sizeof labels);
  model_forward(&m, GOLDEN_N);
  model_score(&m, GOLDEN_N);
  model_backward(&m, GOLDEN_N);
  for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
    const Param *p = model_find_param(&m, params[i].name);
    device_download(device, got, model_gradient(&m, p), p->count * sizeof(float));
    Comparison c = compare_arrays(got, params[i].gradient, 1, p->count, tolerance_make(1e-5, 1e-5));
    if (!c.ok) fail_msg("the gradient of %s: %s", params[i].name, c.message);
  }
  model_close(&m);
}

static void a_network_has_the_gradients_of_pytorch_cpu(void **state) {
  (void)state;
  check_network(DEVICE_CPU);
}

static void a_network_has_the_gradients_of_pytorch_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_network(DEVICE_GPU);
}

static void builders_refuse(void **state) {
  (void)state;
  Graph *g = graph_create();
  assert_int_equal(layer_norm_last(g, graph_input(g, "x", shape1(5)), 2), GRAPH_ERROR);
  assert_non_null(strstr(g->error.message, "layer_norm over the last 2 dimensions of x, whose shape is (5); 1 to 1"));
  graph_destroy(g);
  g = graph_create();
  assert_int_equal(instance_norm2d(g, graph_input(g, "x", shape3(4, 1, 1))), GRAPH_ERROR);
  assert_non_null(strstr(g->error.message, "of one pixel only the bias would remain"));
  graph_destroy(g);
  g = graph_create();
  assert_int_equal(instance_norm2d(g, graph_input(g, "x", shape1(4))), GRAPH_ERROR);
  assert_non_null(strstr(g->error.message, "(C,H,W) is expected"));
  graph_destroy(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_row_by_hand),
      cmocka_unit_test(gradients_are_differences),
      cmocka_unit_test(the_definitions_are_those_of_pytorch),
      cmocka_unit_test(the_fast_cpu_versions_agree),
      cmocka_unit_test(nan_stays_in_its_row_cpu),
      cmocka_unit_test(builders_refuse),
      cmocka_unit_test(a_network_has_the_gradients_of_pytorch_cpu),
      cmocka_unit_test(kernels_agree),
      cmocka_unit_test(nan_stays_in_its_row_gpu),
      cmocka_unit_test(every_version_passes_onnx),
      cmocka_unit_test(a_network_has_the_gradients_of_pytorch_gpu),
  };
  return TEST_MAIN("norms", tests);
}
