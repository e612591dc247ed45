/* The way of a quantised network through an ONNX file: written, imported by lesson 7, rewritten to integers, it has
 * the bits that it had before; ONNX Runtime reads it, and is as close as rounding allows. */
#include "common/options.h"
#include "common/philox.h"
#include "common/test_arrays.h"
#include "phase5_production/03_resnet18/resnet18.cuh"
#include "phase5_production/06_onnx_export/onnx_export.cuh"
#include "phase5_production/08_engine/engine.h"
#include "phase5_production/09_int8/int8_calibrate.cuh"
#include "phase5_production/09_int8/int8_compare.cuh"
#include "phase5_production/09_int8/int8_engine.cuh"
#include "phase5_production/09_int8/int8_onnx.cuh"
#include "phase5_production/09_int8/int8_rewrite.cuh"
#include "phase5_production/10_onnx_runtime/test_ort.h"

static const Resnet18Shape thin = {32, 16, 10};
enum { BATCH = 4, LOGITS = BATCH * 10 };

typedef struct Networks {
  Model whole;
  Int8Scale *scale;
  float *x, whole_logits[LOGITS], logits[LOGITS]; /* of int8, before there is a file */
  char path[PATH_MAX];
} Networks;

static const char *file_path(char path[PATH_MAX]) { return test_path(path, PATH_MAX, "int8_onnx_test.onnx"); }

/* After each test, also after one that failed. */
static int remove_file(void **state) {
  char path[PATH_MAX];
  (void)state;
  return unlink(file_path(path)) == 0 || errno == ENOENT ? 0 : -1;
}

static Context cpu_context(void) {
  Context context;
  memset(&context, 0, sizeof context);
  context.device = DEVICE_CPU;
  return context;
}

static void infer(const Model *m, const float *x, float *logits) {
  const int node = m->graph->loss_count > 0 ? m->graph->losses[0].node : m->graph->outputs[0];
  memcpy(model_input(m, 0), x, (size_t)BATCH * model_input_width(m, 0) * sizeof *x);
  for (int i = 0; i < m->graph->count; i++)
    if (m->graph->nodes[i].op) model_forward_node(m, i, BATCH);
  memcpy(logits, model_output(m, node), LOGITS * sizeof *logits);
}

static void open_networks(Networks *n, Int8Choice choice) {
  Error err;
  Model narrow;
  OnnxModel onnx;
  if (model_open(&n->whole, int8_prepare(resnet18_layers(thin)), cpu_context(), NULL, BATCH, MODEL_INFER, &err) != 0)
    fail_msg("%s", err.message);
  model_init(&n->whole, 3);
  n->x = arrays_random((size_t)BATCH * model_input_width(&n->whole, 0), 5);
  n->scale = (Int8Scale *)xmalloc((size_t)n->whole.graph->count * sizeof *n->scale);
  Int8Calibration c = int8_calibration(n->whole.graph);
  for (int pass = 0; pass < 2; pass++) {
    infer(&n->whole, n->x, n->whole_logits);
    int8_observe(&c, &n->whole, BATCH, pass);
  }
  int8_scales(n->scale, &c, n->whole.graph, &choice);
  int8_calibration_free(&c);
  if (int8_open_model(&narrow, &n->whole, n->scale, BATCH, false, 0, &err) != 0) fail_msg("%s", err.message);
  infer(&narrow, n->x, n->logits);
  model_close(&narrow);

  const OnnxExportOptions options = {"thin", 0, 0};
  const Int8ModelWeights from = {&n->whole, batch_norm2d_fold_host(&n->whole)};
  const Int8Weights weights = {int8_find_in_model, &from, NULL};
  file_path(n->path);
  if (onnx_export(&onnx, &n->whole, &options, &err) != 0 ||
      int8_onnx_write(&onnx, n->whole.graph, n->scale, weights, &err) != 0 ||
      onnx_model_write(onnx.proto, n->path, &err) != 0)
    fail_msg("%s", err.message);
  onnx_model_close(&onnx);
  free(from.host);
}

static void close_networks(Networks *n) {
  model_close(&n->whole);
  free(n->scale);
  free(n->x);
}

static int count_ops(const Graph *g, const Op *op) {
  int count = 0;
  for (int i = 0; i < g->count; i++) count += g->nodes[i].op == op;
  return count;
}

/* A quantised file and its graph with integers. */
typedef struct Rewritten {
  OnnxModel file;
  OnnxImport import;
  Int8Store store;
  Graph *graph;
} Rewritten;

/* change: what becomes of the file before it is imported; NULL: nothing. */
static void open_rewritten(Rewritten *r, const char *path, Device device, void (*change)(OnnxModel *file)) {
  Error err;
  memset(r, 0, sizeof *r);
  if (onnx_model_read(&r->file, path, &err) != 0) fail_msg("%s", err.message);
  if (change != NULL) change(&r->file);
  if (onnx_import(&r->import, &r->file, NULL, 0, &err) != 0) fail_msg("%s", err.message);
  r->graph = int8_rewrite(r->import.graph, &r->import, device, &r->store, &err);
  if (r->graph == NULL) fail_msg("%s", err.message);
}

/* Neither the graph, which a model may have taken, nor that of the import. */
static void close_rewritten(Rewritten *r) {
  int8_store_free(&r->store);
  onnx_import_close(&r->import);
  onnx_model_close(&r->file);
}

static void infer_rewritten(const Rewritten *r, const float *x, float *logits) {
  Error err;
  Model m;
  if (model_open(&m, r->graph, cpu_context(), NULL, BATCH, MODEL_INFER, &err) != 0 ||
      int8_rewrite_parameters(&r->import, &r->store, &m, &err) != 0)
    fail_msg("%s", err.message);
  infer(&m, x, logits);
  model_close(&m);
}

/* As the file says it: rounded, and computed in float32. */
static void infer_literally(const Rewritten *r, const float *x, float *logits) {
  Error err;
  Model m;
  if (model_open(&m, r->import.graph, cpu_context(), NULL, BATCH, MODEL_INFER, &err) != 0 ||
      onnx_import_parameters(&r->import, &m, &err) != 0)
    fail_msg("%s", err.message);
  infer(&m, x, logits);
  model_close(&m);
}

/* Sums of residual blocks are computed with the convolution before them. */
static void infer_file(const char *path, const float *x, float *logits, int products) {
  Rewritten r;
  open_rewritten(&r, path, DEVICE_CPU, NULL);
  assert_int_equal(count_ops(r.graph, &int8_conv_op), products);
  assert_int_equal(count_ops(r.graph, &int8_add_op), 0);
  assert_int_equal(count_ops(r.graph, &onnx_quantize_linear_op), 0);
  assert_int_equal(count_ops(r.graph, &onnx_dequantize_linear_op), 0);
  infer_rewritten(&r, x, logits);
  graph_destroy(r.import.graph);
  close_rewritten(&r);
}

static void expect_the_same_bits(Int8Choice choice, int products) {
  Networks n;
  float again[LOGITS];
  open_networks(&n, choice);
  infer_file(n.path, n.x, again, products);
  Comparison c = compare_arrays(again, n.logits, BATCH, 10, tolerance_make(0, 0));
  if (!c.ok) fail_msg("%s", c.message);
  const double similar = int8_difference(n.whole_logits, n.logits, LOGITS).cosine;
  if (!(similar > 0.995)) fail_msg("the cosine beside float32 is %.5f", similar);
  close_networks(&n);
}

static void a_file_has_the_bits_of_the_network(void **state) {
  (void)state;
  expect_the_same_bits((Int8Choice){CALIBRATE_MIN_MAX, 0, 0, 0}, 20);
  expect_the_same_bits((Int8Choice){CALIBRATE_PERCENTILE, 0, 0, 1}, 20);
  expect_the_same_bits((Int8Choice){CALIBRATE_ENTROPY, 0, 1, 0}, 21);
}

/* Weights that decay has made tiny, with a bias: as one unit of the sum it would be beyond int32. */
static void a_bias_fits_beside_tiny_weights(void **state) {
  (void)state;
  const float w[2][3] = {{1e-9f, -2e-9f, 0}, {0.5f, 0.25f, -1}}, b[2] = {-1.5f, 0.5f}, scale_x = 0.01f;
  float scale[2], own[2];
  int8_filter_scales(own, w[0], 2, 3);
  memcpy(scale, own, sizeof own);
  int8_filter_scales_for_bias(scale, b, scale_x, 2);
  for (int k = 0; k < 2; k++) {
    const float unit = scale_x * scale[k];
    const int32_t bias = int8_bias(b[k], unit);
    assert_true(bias >= -(1 << 30) - 128 && bias <= (1 << 30) + 128);
    assert_true(fabs((double)bias * unit - b[k]) < 1e-6);
  }
  assert_true(scale[0] > own[0] && scale[1] == own[1]);
  assert_true(int8_scale(1e-40f, false) == 1.0f / INT8_MOST); /* no denormal, which a division makes infinite */
}

static void sums_beyond_int32_stay_float32(void **state) {
  (void)state;
  Node node;
  memset(&node, 0, sizeof node);
  node.op = &linear_op;
  node.shape = shape1(10);
  node.param[0].count = 10 * (size_t)INT8_MOST_PRODUCTS;
  assert_true(int8_product_fits(&node));
  node.param[0].count += 10;
  assert_false(int8_product_fits(&node));
}

/* Points the input of a node whose name begins so at a new tensor of one number. */
static void set_input(OnnxModel *m, const char *op, const char *reads, size_t input, int type, const void *value) {
  Onnx__GraphProto *g = m->proto->graph;
  for (size_t i = 0; i < g->n_node; i++) {
    Onnx__NodeProto *node = g->node[i];
    if (strcmp(node->op_type, op) != 0 || strcmp(node->input[0], reads) != 0) continue;
    const char *name = onnx_text(m, "%s.%zu.changed", reads, input);
    onnx_add_tensor(m, name, type, 0, NULL, value);
    if (input < node->n_input)
      node->input[input] = onnx_copy_text(m, name);
    else
      onnx_add_node_input(m, node, name);
    return;
  }
  fail_msg("the file has no %s that reads %s", op, reads);
}

/* As other tools write: a zero that is not 0 behind one array, one scale for all weights of a layer, and of another
 * layer a zero as well. */
static void change_quantisations(OnnxModel *m) {
  const uint8_t activation_zero = 3;
  const int8_t weight_zero = -5;
  const float scale = 0.01f;
  set_input(m, "DequantizeLinear", "layer1.0.relu1.int8", 2, ONNX_UINT8, &activation_zero);
  set_input(m, "DequantizeLinear", "layer1.1.conv1.weight.int8", 1, ONNX_FLOAT, &scale);
  set_input(m, "DequantizeLinear", "layer1.1.conv2.weight.int8", 1, ONNX_FLOAT, &scale);
  set_input(m, "DequantizeLinear", "layer1.1.conv2.weight.int8", 2, ONNX_INT8, &weight_zero);
}

static const Param *weights_of(const Rewritten *r, const char *name) {
  const int node = graph_find(r->import.graph, name);
  if (node < 0) fail_msg("the graph has no %s", name);
  return &r->import.graph->nodes[node].param[0];
}

/* What these kernels do not compute stays as lesson 7 computes it. */
static void other_quantisations_stay(void **state) {
  (void)state;
  Networks n;
  Rewritten r;
  Int8Given given = {NULL, 0};
  float y[LOGITS], literal[LOGITS];
  open_networks(&n, (Int8Choice){CALIBRATE_MIN_MAX, 0, 1, 0});
  open_rewritten(&r, n.path, DEVICE_CPU, change_quantisations);
  const Param *w = weights_of(&r, "layer1.1.conv1");
  assert_false(int8_import_refuses(&r.import, w->name));
  assert_non_null(int8_find_in_import(&r.import, w->name, w->count, &given));
  assert_true(given.count == 1 && given.scale[0] == 0.01f);
  assert_true(int8_import_refuses(&r.import, weights_of(&r, "layer1.1.conv2")->name));
  assert_true(int8_import_refuses(&r.import, "no such weights"));
  assert_int_equal(count_ops(r.graph, &onnx_dequantize_linear_op), 1);
  assert_int_equal(count_ops(r.graph, &int8_conv_op), 21 - 3); /* what writes and reads that array, and those weights */
  infer_rewritten(&r, n.x, y);
  infer_literally(&r, n.x, literal);
  const Int8Difference d = int8_difference(literal, y, LOGITS);
  if (!(d.cosine > 0.9999)) fail_msg("the cosine beside the file's own meaning is %.7f", d.cosine);
  close_rewritten(&r);
  close_networks(&n);
}

/* The graph alone: int8_network_test computes one. */
static void a_gpu_has_the_first_layers_in_one_operation(void **state) {
  (void)state;
  Networks n;
  Rewritten r;
  open_networks(&n, (Int8Choice){CALIBRATE_MIN_MAX, 0, 1, 0});
  open_rewritten(&r, n.path, DEVICE_GPU, NULL);
  assert_int_equal(count_ops(r.graph, &int8_stem_op), 1);
  assert_int_equal(count_ops(r.graph, &int8_conv_op), 20); /* one of them is the linear layer */
  assert_int_equal(count_ops(r.graph, &int8_pool_op), 1);
  assert_int_equal(count_ops(r.graph, &int8_add_op), 0);
  assert_int_equal(count_ops(r.graph, &int8_quantize_op), 0);
  graph_destroy(r.graph);
  graph_destroy(r.import.graph);
  close_rewritten(&r);
  close_networks(&n);
}

/* By its first convolution, in float32, which another kernel computes: as ONNX Runtime, below. */
static void expect_engine(Device device, double least, double least_whole) {
  Networks n;
  Error err;
  Engine e;
  float y[LOGITS];
  Int8Store store = {};
  const EngineExtension int8 = int8_engine(&store);
  open_networks(&n, (Int8Choice){CALIBRATE_MIN_MAX, 0, 0, 0});
  EngineOptions options = engine_options();
  options.device = device;
  if (device == DEVICE_GPU) options.precision = ENGINE_FP16; /* of what is not quantised */
  options.max_batch = BATCH;
  options.extension = &int8;
  if (engine_open(&e, n.path, &options, &err) != 0) fail_msg("%s", err.message);
  if (engine_run(&e, n.x, BATCH, thin.side, thin.side, y, &err) != 0) fail_msg("%s", err.message);
  const Int8Difference d = int8_difference(n.logits, y, LOGITS);
  const double whole = int8_difference(n.whole_logits, y, LOGITS).cosine;
  if (!(d.cosine > least && whole > least_whole))
    fail_msg("%s: the cosine of the engine is %.7f, beside float32 %.7f", device_name(device), d.cosine, whole);
  engine_close(&e);
  int8_store_free(&store);
  close_networks(&n);
}

static void the_engine_agrees(void **state) {
  (void)state;
  expect_engine(DEVICE_CPU, 0.99999, 0.995);
}

/* There the first layers multiply fp16 and round neither pictures nor the outputs of the convolution: so the answer
 * differs from that of the CPU by about as much as both differ from float32. */
static void the_engine_agrees_on_a_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  expect_engine(DEVICE_GPU, 0.997, 0.997);
}

/* It adds, multiplies and rounds as we do: what remains is the order of the first convolution's sums, in float32.
 * There a tie may fall on the other side, which is one step of one number. */
static void onnx_runtime_agrees(void **state) {
  (void)state;
  Ort ort;
  OrtNet net;
  Error err;
  Networks n;
  float y[LOGITS];
  ort_required(&ort);
  open_networks(&n, (Int8Choice){CALIBRATE_MIN_MAX, 0, 0, 0});
  OrtNetOptions options = ort_net_options();
  if (ort_session(&net, &ort, n.path, &options, &err) != 0) fail_msg("%s", err.message);
  const OrtArray x = ort_floats(n.x, 4, BATCH, 3, thin.side, thin.side);
  OrtArray out = ort_floats(y, 2, BATCH, 10);
  if (ort_run(&net, &x, &out, &err) != 0) fail_msg("%s", err.message);
  const Int8Difference d = int8_difference(n.logits, y, LOGITS);
  print_message("beside ONNX Runtime: cosine %.7f, largest difference %g, SQNR %.1f dB\n", d.cosine, d.largest, d.sqnr);
  if (!(d.cosine > 0.99999)) fail_msg("the cosine beside ONNX Runtime is %.7f", d.cosine);
  ort_session_close(&net);
  ort_close(&ort);
  close_networks(&n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(a_file_has_the_bits_of_the_network, remove_file),
      cmocka_unit_test(a_bias_fits_beside_tiny_weights),
      cmocka_unit_test(sums_beyond_int32_stay_float32),
      cmocka_unit_test_teardown(other_quantisations_stay, remove_file),
      cmocka_unit_test_teardown(a_gpu_has_the_first_layers_in_one_operation, remove_file),
      cmocka_unit_test_teardown(the_engine_agrees, remove_file),
      cmocka_unit_test_teardown(the_engine_agrees_on_a_gpu, remove_file),
      cmocka_unit_test_teardown(onnx_runtime_agrees, remove_file),
  };
  return TEST_MAIN("int8_onnx", tests);
}
