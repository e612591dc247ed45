/* Every operation of 16 bits against the float32 operation between roundings, forward and backward, in bf16 and fp16;
 * the conversions; the copies of weights.
 *
 * Tolerance: a sum in another order may fall on the other side of a rounding, which is one unit in the last place: 2^-7
 * of the value in bf16, 2^-10 in fp16. A sum of n products of numbers below 1 has an error of at most n 2^-24 sqrt(n).
 * */
#include "common/nn/model.h"
#include "common/test.h"
#include "phase3_cnn/half_ops.cuh"

enum { SEED = 7, SIZES = 4 };

/* ------------------------------------------------------------------------------------------------------ conversions */

static void conversions_round_to_even_like_the_gpus(void **state) {
  (void)state;
  const float x[] = {1,        1 + 1.0f / 256, 1 + 3.0f / 256, -1.00390625f, 65504,   65519.9f, 65520, 0x1p-24f,
                     0x1p-25f, 0x1.8p-25f,     6.1e-5f,        1e-40f,       3.4e38f, 0,        -0.0f, NAN,
                     INFINITY, -INFINITY};
  const uint16_t bf16[] = {0x3F80, 0x3F80, 0x3F82, 0xBF80, 0x4780, 0x4780, 0x4780, 0x3380, 0x3300,
                           0x3340, 0x3880, 0x0001, 0x7F80, 0,      0x8000, 0x7FFF, 0x7F80, 0xFF80};
  const uint16_t fp16[] = {0x3C00, 0x3C04, 0x3C0C, 0xBC04, 0x7BFF, 0x7BFF, 0x7C00, 1,      0,
                           1,      0x0400, 0,      0x7C00, 0,      0x8000, 0x7FFF, 0x7C00, 0xFC00};
  for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
    const uint16_t b = half_narrow(DTYPE_BF16, x[i]), h = half_narrow(DTYPE_FP16, x[i]);
    if (b != bf16[i] || (h != fp16[i] && i != 10))
      fail_msg("%g: bf16 0x%04X, 0x%04X expected; fp16 0x%04X, 0x%04X expected", x[i], b, bf16[i], h, fp16[i]);
  }
  for (uint32_t bits = 0; bits < 65536; bits++) { /* each number of 16 bits is itself again, and NaN a NaN */
    const float b = half_widen(DTYPE_BF16, (uint16_t)bits), h = half_widen(DTYPE_FP16, (uint16_t)bits);
    assert_true(isnan(b) ? isnan(half_round(DTYPE_BF16, b)) : half_narrow(DTYPE_BF16, b) == bits);
    assert_true(isnan(h) ? isnan(half_round(DTYPE_FP16, h)) : half_narrow(DTYPE_FP16, h) == bits);
    assert_true(isnan(b) || b == __bfloat162float(__ushort_as_bfloat16((unsigned short)bits)));
    assert_true(isnan(h) || h == __half2float(__ushort_as_half((unsigned short)bits)));
  }
  for (uint64_t i = 0; i < 20000; i++) { /* any float: as the conversions of CUDA's headers */
    const uint32_t bits = philox4x32(SEED, 0, i).word[0];
    float f;
    memcpy(&f, &bits, sizeof f);
    if (isnan(f)) continue;
    assert_int_equal(half_narrow(DTYPE_BF16, f), __bfloat16_as_ushort(__float2bfloat16(f)));
    assert_int_equal(half_narrow(DTYPE_FP16, f), __half_as_ushort(__float2half(f)));
  }
}

/* ------------------------------------------------------------------------------------------------------- operations */

/* A network of one operation, whose inputs have 16 bits already. */
typedef struct OpCase {
  const char *name;
  void (*build)(Graph *g, const int *inputs);
  int inputs, batch;
  Shape shape;
} OpCase;

static void build_conv(Graph *g, const int *x) { conv2d(g, x[0], 16, 3, 1, 1); }
static void build_conv_narrow(Graph *g, const int *x) { conv2d_no_bias(g, x[0], 6, 5, 1, 0); }
static void build_conv_stride(Graph *g, const int *x) { conv2d_no_bias(g, x[0], 40, 3, 2, 1); }
static void build_conv_wide(Graph *g, const int *x) { conv2d_no_bias(g, x[0], 72, 1, 2, 0); }
static void build_linear(Graph *g, const int *x) { linear(g, x[0], 10); }
static void build_relu(Graph *g, const int *x) { relu(g, x[0]); }
static void build_add(Graph *g, const int *x) { add(g, x[0], x[1]); }
static void build_pool(Graph *g, const int *x) { max_pool2d(g, x[0], 2, 2); }
static void build_pool_overlap(Graph *g, const int *x) {
  const Pool2dWindow window = {3, 3, 2, 2, 1, 1};
  max_pool2d_window(g, x[0], window);
}
static void build_mean(Graph *g, const int *x) { global_avg_pool2d(g, x[0]); }
static void build_norm(Graph *g, const int *x) { batch_norm2d(g, x[0]); }
static void build_norm_relu(Graph *g, const int *x) {
  static const Fusion fusions[] = {FUSE_BATCH_NORM_RELU};
  relu(g, batch_norm2d(g, x[0]));
  graph_fuse(g, fusions, 1);
}
static void build_norm_add_relu(Graph *g, const int *x) {
  static const Fusion fusions[] = {FUSE_ADD_RELU, FUSE_BATCH_NORM_ADD_RELU};
  relu(g, add(g, batch_norm2d(g, x[0]), x[1]));
  graph_fuse(g, fusions, 2);
}
static void build_add_relu(Graph *g, const int *x) {
  static const Fusion fusions[] = {FUSE_ADD_RELU};
  relu(g, add(g, x[0], x[1]));
  graph_fuse(g, fusions, 1);
}
static void build_linear_relu(Graph *g, const int *x) {
  static const Fusion fusions[] = {FUSE_LINEAR_RELU};
  relu(g, linear(g, x[0], 20));
  graph_fuse(g, fusions, 1);
}
static void build_relu_pool(Graph *g, const int *x) {
  static const Fusion fusions[] = {{&activation_ops[ACTIVATION_RELU], &max_pool2d_op, &relu_passed_op,
                                    &relu_max_pool2d_op, relu_max_pool2d_op_fits}};
  max_pool2d(g, relu(g, x[0]), 2, 2);
  graph_fuse(g, fusions, 1);
}

/* What one run gives. */
typedef struct OpRun {
  uint16_t *y, *dx[2];
  float *grad[NODE_MAX_PARAMS], *buffer[NODE_MAX_PARAMS];
} OpRun;

static float draw(uint32_t stream, size_t i) {
  return (float)(philox4x32(SEED, stream, i).word[0] % 2001) / 1000.0f - 1;
}

/* The values of an array of 16 bits; zeros behind the channels. */
static uint16_t *draw_half(Shape s, int batch, DType type, uint32_t stream) {
  const size_t floats = shape_count(s) * (size_t)batch;
  float *x = (float *)xmalloc(floats * sizeof *x);
  uint16_t *half = (uint16_t *)xmalloc(shape_half_count(s) * (size_t)batch * sizeof *half);
  for (size_t i = 0; i < floats; i++) x[i] = draw(stream, i);
  half_from_nchw_cpu(half, x, batch, s.dim[0], shape_pixels(s), type);
  free(x);
  return half;
}

static void *on_device(Device device, const void *host, size_t bytes) {
  void *copy = device_alloc(device, bytes);
  if (host)
    device_upload(device, copy, host, bytes);
  else
    ON_DEVICE(device, CUDA_CHECK(cudaMemset(copy, 0xFF, bytes)), memset(copy, 0xFF, bytes)); /* NaN */
  return copy;
}

/* Downloads an array and frees it on the device. */
static void *from_device(Device device, void *array, size_t bytes) {
  void *host = xmalloc(bytes);
  device_download(device, host, array, bytes);
  device_free(device, array);
  return host;
}

/* The node that computes, among those of the case; all others are inputs or pass. */
static const Node *case_node(const Graph *g) {
  for (int i = 0; i < g->count; i++)
    if (g->nodes[i].full) return &g->nodes[i];
  fail_msg("%s is not lowered", g->nodes[g->count - 1].name);
  return NULL;
}

/* Forward and backward of the node on a device. */
static OpRun case_run(const OpCase *c, const Node *node, Device device, DType type) {
  Context context;
  OpArrays a;
  OpRun run;
  memset(&context, 0, sizeof context);
  memset(&a, 0, sizeof a);
  memset(&run, 0, sizeof run);
  context.device = device;
  context.training = 1;
  a.batch = c->batch;
  const size_t y_bytes = shape_half_count(node->shape) * (size_t)c->batch * sizeof(uint16_t);
  const size_t x_bytes = shape_half_count(c->shape) * (size_t)c->batch * sizeof(uint16_t);
  for (int k = 0; k < c->inputs; k++) {
    uint16_t *x = draw_half(c->shape, c->batch, type, 10 + (uint32_t)k);
    a.x[k] = (float *)on_device(device, x, x_bytes);
    a.dx[k] = (float *)on_device(device, NULL, x_bytes);
    free(x);
  }
  for (int k = 0; k < node->params; k++) {
    const Param *p = &node->param[k];
    if (p->count == 0) continue;
    float *w = (float *)xmalloc(p->count * sizeof *w);
    for (size_t i = 0; i < p->count; i++) w[i] = draw(20 + (uint32_t)k, i) + (p->rank == 1 && k % 2 == 0 ? 0.5f : 0);
    if (!p->trained)
      for (size_t i = 0; i < p->count; i++) w[i] = fabsf(w[i]) + 0.25f; /* a variance is positive */
    a.param[k] = (float *)on_device(device, w, p->count * sizeof *w);
    if (p->trained) a.grad[k] = (float *)on_device(device, NULL, p->count * sizeof *w);
    free(w);
    if (p->half_channels == 0 || device == DEVICE_CPU) continue;
    const size_t numbers = half_weight_count((int)p->dim[0], p->half_channels, p->half_pixels);
    const HalfWeight weight = {a.param[k], (int)p->dim[0], p->half_channels, p->half_pixels, p->rank == 2, 0, 0};
    HalfWeight *table = (HalfWeight *)on_device(device, &weight, sizeof weight);
    a.half[k] = (uint16_t *)on_device(device, NULL, numbers * sizeof(uint16_t));
    HALF_CALL(type, half_weights_launch, (uint16_t *)a.half[k], table, 1, numbers / HALF_RUN);
    device_free(device, table);
  }
  const size_t saved = node->op->saved_bytes ? node->op->saved_bytes(node, c->batch) : 0;
  const size_t work = node->op->workspace_floats ? node->op->workspace_floats(&context, node, c->batch) : 0;
  a.y = (float *)on_device(device, NULL, y_bytes);
  a.saved = on_device(device, NULL, saved + 16);
  a.workspace = (float *)on_device(device, NULL, work * sizeof(float) + 16);
  node->op->forward(&context, node, &a);
  uint16_t *dy = draw_half(node->shape, c->batch, type, 30);
  a.dy = (float *)on_device(device, dy, y_bytes);
  node->op->backward(&context, node, &a);
  device_synchronize(device);
  run.y = (uint16_t *)from_device(device, a.y, y_bytes);
  for (int k = 0; k < c->inputs; k++) {
    run.dx[k] = (uint16_t *)from_device(device, a.dx[k], x_bytes);
    device_free(device, (void *)a.x[k]);
  }
  for (int k = 0; k < node->params; k++) {
    const size_t bytes = node->param[k].count * sizeof(float);
    if (bytes == 0) continue;
    if (node->param[k].trained) {
      run.grad[k] = (float *)from_device(device, a.grad[k], bytes);
      device_free(device, a.param[k]);
    } else {
      run.buffer[k] = (float *)from_device(device, a.param[k], bytes);
    }
    device_free(device, (void *)a.half[k]);
  }
  device_free(device, a.saved);
  device_free(device, a.workspace);
  device_free(device, (void *)a.dy);
  free(dy);
  return run;
}

static void case_free(OpRun *run) {
  free(run->y);
  for (int k = 0; k < 2; k++) free(run->dx[k]);
  for (int k = 0; k < NODE_MAX_PARAMS; k++) {
    free(run->grad[k]);
    free(run->buffer[k]);
  }
}

/* The padding must be zero, and the rest within one unit and the error of sums. */
static void compare_half(const char *name, const char *what, const uint16_t *x, const uint16_t *expected, Shape s,
                         int batch, DType type, double absolute) {
  const int all = half_channels(s.dim[0]);
  const double relative = type == DTYPE_BF16 ? 0x1p-7 : 0x1p-10;
  for (size_t i = 0; i < shape_half_count(s) * (size_t)batch; i++) {
    const double a = half_widen(type, x[i]), b = half_widen(type, expected[i]);
    if ((int)(i % (size_t)all) >= s.dim[0] && (x[i] & 0x7FFF) != 0)
      fail_msg("%s %s, %s: number %zu is %g, behind the %d channels; 0 is expected", name, dtype_name(type), what, i, a,
               s.dim[0]);
    if (!(fabs(a - b) <= relative * fabs(b) + absolute))
      fail_msg("%s %s, %s: number %zu is %g, %g is expected", name, dtype_name(type), what, i, a, b);
  }
}

static void compare_floats(const char *name, const char *what, const float *x, const float *expected, size_t count,
                           double absolute) {
  for (size_t i = 0; i < count; i++)
    if (!(fabs((double)x[i] - expected[i]) <= 1e-4 * fabs(expected[i]) + absolute))
      fail_msg("%s, %s: number %zu is %g, %g is expected", name, what, i, x[i], expected[i]);
}

static void check_case(const OpCase *c, DType type) {
  Graph *g = graph_create();
  int inputs[2];
  cnn_can_be_lowered(g);
  for (int k = 0; k < c->inputs; k++) {
    inputs[k] = graph_input(g, k ? "z" : "x", c->shape);
    g->nodes[inputs[k]].type = type;
  }
  c->build(g, inputs);
  if (g->failed) fail_msg("%s: %s", c->name, g->error.message);
  graph_lower(g, type);
  const Node *node = case_node(g);
  OpRun gpu = case_run(c, node, DEVICE_GPU, type), cpu = case_run(c, node, DEVICE_CPU, type);
  OpRun again = case_run(c, node, DEVICE_GPU, type);
  /* Sums have up to `terms` products of numbers below 2. */
  const double terms = 4.0 * c->batch * (double)shape_count(c->shape), sums = terms * sqrt(terms) * 0x1p-24;
  compare_half(c->name, "y", gpu.y, cpu.y, node->shape, c->batch, type, 1e-4);
  assert_memory_equal(gpu.y, again.y, shape_half_count(node->shape) * (size_t)c->batch * sizeof(uint16_t));
  for (int k = 0; k < c->inputs; k++)
    compare_half(c->name, k ? "dz" : "dx", gpu.dx[k], cpu.dx[k], c->shape, c->batch, type, 1e-4);
  for (int k = 0; k < node->params; k++) {
    const Param *p = &node->param[k];
    if (gpu.grad[k]) compare_floats(c->name, p->name, gpu.grad[k], cpu.grad[k], p->count, sums);
    if (gpu.grad[k]) assert_memory_equal(gpu.grad[k], again.grad[k], p->count * sizeof(float));
    if (gpu.buffer[k]) compare_floats(c->name, p->name, gpu.buffer[k], cpu.buffer[k], p->count, 1e-5);
  }
  case_free(&gpu);
  case_free(&cpu);
  case_free(&again);
  graph_destroy(g);
}

static void kernels_of_16_bits_agree_with_float32_between_roundings(void **state) {
  (void)state;
  const OpCase cases[] = {
      {"conv", build_conv, 1, 2, shape3(16, 9, 7)},
      {"conv of 6 filters", build_conv_narrow, 1, 1, shape3(3, 11, 9)},
      {"conv of stride 2", build_conv_stride, 1, 2, shape3(24, 7, 6)},
      {"conv of 72 filters", build_conv_wide, 1, 3, shape3(20, 5, 5)},
      {"linear", build_linear, 1, 5, shape1(70)},
      {"linear of pictures", build_linear, 1, 3, shape3(12, 3, 2)},
      {"linear with ReLU", build_linear_relu, 1, 70, shape1(24)},
      {"ReLU", build_relu, 1, 3, shape3(5, 4, 3)},
      {"add", build_add, 2, 2, shape3(9, 3, 5)},
      {"add with ReLU", build_add_relu, 2, 2, shape3(9, 3, 5)},
      {"max pool", build_pool, 1, 2, shape3(10, 7, 6)},
      {"max pool, overlapping", build_pool_overlap, 1, 2, shape3(6, 7, 8)},
      {"ReLU and max pool", build_relu_pool, 1, 2, shape3(16, 6, 6)},
      {"global average", build_mean, 1, 3, shape3(20, 5, 7)},
      {"batch norm", build_norm, 1, 3, shape3(20, 6, 5)},
      {"batch norm with ReLU", build_norm_relu, 1, 2, shape3(72, 4, 5)},
      {"batch norm, sum, ReLU", build_norm_add_relu, 2, 5, shape3(16, 9, 8)},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int type = DTYPE_BF16; type <= DTYPE_FP16; type++) check_case(&cases[i], (DType)type);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(conversions_round_to_even_like_the_gpus),
                                     cmocka_unit_test(kernels_of_16_bits_agree_with_float32_between_roundings)};
  return TEST_MAIN("half_ops", tests);
}
