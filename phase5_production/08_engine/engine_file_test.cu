/* Engines of files: what a file of ONNX computes is what the engine computes, in every precision and size; plans are
 * saved, opened, built again for another device or version, and refused where they are damaged. */
#include "common/onnx/build.h"
#include "common/onnx/metadata.h"
#include "common/test.h"
#include "common/test_arrays.h"
#include "phase5_production/07_onnx_import/onnx_run.cuh"
#include "phase5_production/08_engine/engine_extension.cuh"
#include "phase5_production/08_engine/engine_open.cuh"
#include "phase5_production/08_engine/engine_picture.cuh"
#include "phase5_production/08_engine/engine_plan.h"
#include "phase5_production/08_engine/engine_svg.h"

enum { BATCH = 3, HIGH = 20, WIDE = 24, CHANNELS = 16 };

static char folder[] = "/tmp/engine_file_XXXXXX";

static const char *path_of(const char *name) {
  static char path[4][128];
  static int next;
  next = (next + 1) % 4;
  snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
  return path[next];
}

/* A tensor of random numbers around `middle`. */
static void add_weights(OnnxModel *m, const char *name, int rank, const int64_t *dim, float middle, float range) {
  size_t count = 1;
  static unsigned seed = 1;
  for (int i = 0; i < rank; i++) count *= (size_t)dim[i];
  float *values = arrays_random(count, seed++);
  for (size_t i = 0; i < count; i++) values[i] = middle + range * values[i];
  onnx_add_tensor(m, name, ONNX_FLOAT, rank, dim, values);
  free(values);
}

static Onnx__NodeProto *add_node(OnnxModel *m, const char *op, const char *name, const char *a, const char *b,
                                 const char *c) {
  Onnx__NodeProto *node = onnx_add_node(m, op, name);
  const char *const inputs[] = {a, b, c};
  for (int i = 0; i < 3; i++)
    if (inputs[i]) onnx_add_node_input(m, node, inputs[i]);
  onnx_add_node_output(m, node, name);
  return node;
}

static void add_conv(OnnxModel *m, const char *name, const char *x, int64_t k, int64_t c, int64_t side, int64_t group) {
  char weight[64];
  const int64_t dim[] = {k, c / group, side, side}, pads[] = {side / 2, side / 2, side / 2, side / 2};
  snprintf(weight, sizeof weight, "%s.weight", name);
  add_weights(m, weight, 4, dim, 0, 0.4F);
  Onnx__NodeProto *node = add_node(m, "Conv", name, x, weight, NULL);
  onnx_set_ints(m, node, "pads", 4, pads);
  onnx_set_int(m, node, "group", group);
}

static void add_norm(OnnxModel *m, const char *name, const char *x, int64_t channels) {
  static const char *const parts[] = {"weight", "bias", "running_mean", "running_var"};
  static const float middle[] = {0.8F, 0, 0, 1}, range[] = {0.2F, 0.2F, 0.2F, 0.4F};
  Onnx__NodeProto *node = add_node(m, "BatchNormalization", name, x, NULL, NULL);
  for (int i = 0; i < 4; i++) {
    char full[64];
    snprintf(full, sizeof full, "%s.%s", name, parts[i]);
    add_weights(m, full, 1, &channels, middle[i], range[i]);
    onnx_add_node_input(m, node, full);
  }
}

/* Pictures of any size: convolution, batch norm, Clip; depthwise; a residual sum; Concat; a constant that is computed;
 * the mean of each channel, Gemm. `fixed`: the size is a number; 2: the batch is, too. */
static void write_model(const char *path, int fixed) {
  Error err;
  OnnxModel m;
  const OnnxDim x[] = {{2, fixed == 2 ? NULL : "N"}, {3, NULL}, {HIGH, fixed ? NULL : "H"}, {WIDE, fixed ? NULL : "W"}};
  const OnnxDim y[] = {{2, fixed == 2 ? NULL : "N"}, {7, NULL}};
  const int64_t gemm[] = {7, 2 * CHANNELS}, seven[] = {7}, channels[] = {1, CHANNELS, 1, 1}, none = 0;
  const float zero = 0, six = 6;
  onnx_model_create(&m, "example");
  onnx_add_input(&m, "picture", ONNX_FLOAT, 4, x);
  onnx_add_output(&m, "logits", ONNX_FLOAT, 2, y);
  onnx_add_tensor(&m, "zero", ONNX_FLOAT, 0, &none, &zero);
  onnx_add_tensor(&m, "six", ONNX_FLOAT, 0, &none, &six);
  add_conv(&m, "conv1", "picture", CHANNELS, 3, 3, 1);
  add_norm(&m, "norm1", "conv1", CHANNELS);
  add_node(&m, "Clip", "clip1", "norm1", "zero", "six");
  add_conv(&m, "conv2", "clip1", CHANNELS, CHANNELS, 3, CHANNELS);
  add_norm(&m, "norm2", "conv2", CHANNELS);
  add_node(&m, "Clip", "clip2", "norm2", "zero", "six");
  add_conv(&m, "conv3", "clip2", CHANNELS, CHANNELS, 1, 1);
  add_node(&m, "Add", "sum", "conv3", "clip1", NULL);
  add_node(&m, "Relu", "relu", "sum", NULL, NULL);
  add_weights(&m, "shift", 4, channels, 0.5F, 0.5F);
  add_node(&m, "Exp", "shift.exp", "shift", NULL, NULL); /* of no input */
  add_node(&m, "Mul", "scaled", "relu", "shift.exp", NULL);
  add_node(&m, "Sigmoid", "unused", "scaled", NULL, NULL);
  onnx_set_int(&m, add_node(&m, "Concat", "both", "scaled", "clip1", NULL), "axis", 1);
  add_node(&m, "GlobalAveragePool", "mean", "both", NULL, NULL);
  onnx_set_int(&m, add_node(&m, "Flatten", "flat", "mean", NULL, NULL), "axis", 1);
  add_weights(&m, "fc.weight", 2, gemm, 0, 0.3F);
  add_weights(&m, "fc.bias", 1, seven, 0, 0.3F);
  onnx_set_int(&m, add_node(&m, "Gemm", "logits", "flat", "fc.weight", "fc.bias"), "transB", 1);
  const OnnxPreprocessing recipe = {3, HIGH, WIDE, 0, {0.4F, 0.5F, 0.6F}, {0.2F, 0.2F, 0.2F}};
  onnx_set_preprocessing(&m, &recipe);
  if (onnx_model_write(m.proto, path, &err) != 0) fail_msg("%s", err.message);
  onnx_model_close(&m);
}

/* What lesson 7 computes on the CPU, node by node. */
static void plain(const char *path, const float *x, int batch, int height, int width, float *y) {
  Error err;
  OnnxModel m;
  OnnxRun run;
  const OnnxImportInput input = {"picture", 4, {ONNX_IMPORT_AS_FILE, 3, height, width}, NULL};
  if (onnx_model_read(&m, path, &err) != 0) fail_msg("%s", err.message);
  if (onnx_run_open(&run, &m, &input, 1, DEVICE_CPU, batch, &err) != 0) fail_msg("%s", err.message);
  onnx_run_set(&run, 0, x, batch);
  model_forward(&run.net, batch);
  onnx_run_get(&run, 0, y, batch);
  onnx_run_close(&run);
  onnx_model_close(&m);
}

static EngineOptions options_for(Device device, EnginePrecision precision) {
  EngineOptions o = engine_options();
  o.device = device;
  o.precision = precision;
  o.max_batch = BATCH;
  o.max_height = HIGH;
  o.max_width = WIDE;
  return o;
}

static Engine opened(const char *path, const EngineOptions *o) {
  Error err;
  Engine e;
  if (engine_open(&e, path, o, &err) != 0) fail_msg("%s: %s", path, err.message);
  return e;
}

static const double tolerances[] = {2e-5, 4e-3, 6e-3, 5e-2}; /* of the largest answer: rounding of each array */

static void expect_answers(Engine *e, const char *path, int batch, int height, int width, EnginePrecision precision) {
  Error err;
  float expected[BATCH * 7], y[BATCH * 7];
  float *x = arrays_random((size_t)batch * 3 * height * width, 9);
  plain(path, x, batch, height, width, expected);
  for (int run = 0; run < 3; run++) {
    double most = 0, worst = 0;
    for (int i = 0; i < BATCH * 7; i++) y[i] = NAN;
    if (engine_run(e, x, batch, height, width, y, &err) != 0) fail_msg("%s", err.message);
    for (int i = 0; i < batch * 7; i++) {
      most = fmax(most, fabs((double)expected[i]));
      worst = isnan(y[i]) ? INFINITY : fmax(worst, fabs((double)y[i] - (double)expected[i]));
    }
    if (!(worst <= tolerances[precision] * most))
      fail_msg("%s, batch %d, %d x %d, run %d: %.2e of the largest answer; up to %.1e is expected",
               engine_precision_name(precision), batch, height, width, run, worst / most, tolerances[precision]);
  }
  free(x);
}

static void every_precision_and_size(void **state) {
  (void)state;
  const char *path = path_of("any.onnx");
  write_model(path, 0);
  for (int device = 0; device < 2; device++)
    for (int p = 0; p < (device ? 4 : 1); p++) {
      const EngineOptions o = options_for((Device)device, (EnginePrecision)p);
      Engine e = opened(path, &o);
      assert_string_equal(engine_input(&e, 0).name, "picture");
      assert_string_equal(engine_output(&e, 0).name, "logits");
      assert_int_equal(engine_input(&e, 0).dim[2], -1);
      expect_answers(&e, path, BATCH, HIGH, WIDE, o.precision);
      const EngineMemory before = engine_memory(&e);
      expect_answers(&e, path, 1, 13, 17, o.precision);
      expect_answers(&e, path, 2, HIGH, WIDE, o.precision); /* the first size again, in the memory that was borrowed */
      if (device) assert_int_equal(engine_memory(&e).arena, before.arena);
      engine_close(&e);
    }
}

/* The first size is a number: batches of that size, by the same kernels. */
static void a_batch_may_be_fixed(void **state) {
  (void)state;
  Error err;
  float x[3 * HIGH * WIDE], y[7];
  const char *path = path_of("fixed.onnx");
  write_model(path, 2);
  for (int device = 0; device < 2; device++)
    for (int p = 0; p < (device ? 3 : 1); p++) {
      EngineOptions o = options_for((Device)device, (EnginePrecision)p);
      Engine e = opened(path, &o);
      assert_int_equal(engine_input(&e, 0).dim[0], 2);
      assert_int_equal(engine_get_options(&e).max_batch, 2);
      assert_int_equal(engine_run(&e, x, 1, HIGH, WIDE, y, &err), -1);
      assert_non_null(strstr(err.message, "takes batches of 2"));
      float *two = arrays_random((size_t)2 * 3 * HIGH * WIDE, 9), answers[14], expected[14];
      plain(path, two, 2, HIGH, WIDE, expected);
      if (engine_run(&e, two, 2, HIGH, WIDE, answers, &err) != 0) fail_msg("%s", err.message);
      for (int i = 0; i < 14; i++)
        if (!(fabsf(answers[i] - expected[i]) <= 0.05F)) fail_msg("%d: %g, %g is expected", i, answers[i], expected[i]);
      free(two);
      engine_close(&e);
    }
}

/* An extension gets the simplified graph and what it was imported with, once for each size; its graph is what runs. */
typedef struct Counted {
  int graphs, fills;
} Counted;

static Graph *takes_a_copy(void *state, const Graph *g, const OnnxImport *import, Device device, Error *err) {
  (void)err;
  ((Counted *)state)->graphs++;
  assert_non_null(import);
  assert_non_null(onnx_import_constant(import, "fc.weight"));
  assert_int_equal(device, DEVICE_GPU);
  assert_int_equal(graph_find(g, "norm1"), GRAPH_ERROR); /* batch norm is folded */
  return graph_copy(g);
}

static int counts_fill(void *state, Model *m, Error *err) {
  (void)m, (void)err;
  ((Counted *)state)->fills++;
  return 0;
}

static void an_extension_is_a_pass(void **state) {
  (void)state;
  Counted counted = {0, 0};
  const EngineExtension extension = {"nothing", &counted, takes_a_copy, counts_fill};
  EngineOptions o = options_for(DEVICE_GPU, ENGINE_FP32);
  o.extension = &extension;
  Engine e = opened(path_of("any.onnx"), &o);
  expect_answers(&e, path_of("any.onnx"), 1, HIGH, WIDE, ENGINE_FP32);
  expect_answers(&e, path_of("any.onnx"), 1, 9, 9, ENGINE_FP32);
  assert_int_equal(counted.graphs, 2);
  assert_int_equal(counted.fills, 2);
  engine_close(&e);
}

/* Depthwise with its Clip, Clip, Concat and the end of the block: of 16 bits, so that two casts are left. */
static void imported_operations_have_kernels_of_16_bits(void **state) {
  (void)state;
  const char *path = path_of("any.onnx");
  const EngineOptions o = options_for(DEVICE_GPU, ENGINE_FP16);
  Engine e = opened(path, &o);
  const Graph *g = engine_model(&e)->graph;
  int halves = 0;
  for (int i = 0; i < g->count; i++) {
    const Node *node = &g->nodes[i];
    if (strncmp(node->name, "conv", 4) == 0 || strcmp(node->name, "clip1") == 0)
      assert_int_equal(node->type, DTYPE_FP16);
    halves += fused_node_runs(node) && node->type == DTYPE_FP16;
  }
  assert_true(halves >= 4);
  engine_close(&e);
}

/* ------------------------------------------------------------------------------------------------------------ plans */

/* The bytes of a file; *size. To be freed. */
static unsigned char *read_file(const char *path, size_t *size) {
  Error err;
  unsigned char *bytes;
  if (onnx_file_read(path, &bytes, size, &err) != 0) fail_msg("%s", err.message);
  return bytes;
}

static void write_file(const char *path, const unsigned char *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

static void a_plan_is_what_was_saved(void **state) {
  (void)state;
  Error err;
  const char *path = path_of("any.onnx"), *plan = path_of("any.nnplan");
  const EngineOptions o = options_for(DEVICE_GPU, ENGINE_BF16);
  Engine e = opened(path, &o);
  if (engine_save(&e, plan, &err) != 0) fail_msg("%s", err.message);
  EngineOptions usual = engine_options();
  usual.device = DEVICE_GPU;
  Engine again = opened(plan, &usual);
  const EngineOptions kept = engine_get_options(&again);
  assert_int_equal(kept.precision, ENGINE_BF16);
  assert_int_equal(kept.max_batch, BATCH);
  assert_int_equal(kept.max_height, HIGH);
  assert_int_equal(kept.max_width, WIDE);
  assert_string_equal(engine_choices(&again), engine_choices(&e));
  expect_answers(&again, path, 2, HIGH, WIDE, ENGINE_BF16);
  engine_close(&e);
  engine_close(&again);
}

/* What the log says while `bytes` are opened as a plan, on this device. */
static void expect_said(const unsigned char *bytes, size_t size, Device device, const char *words) {
  char *text = NULL;
  size_t length = 0;
  const char *plan = path_of("other.nnplan");
  write_file(plan, bytes, size);
  EngineOptions o = options_for(device, ENGINE_FP32);
  o.log = open_memstream(&text, &length);
  Engine e = opened(plan, &o);
  fclose(o.log);
  assert_non_null(strstr(text, words));
  expect_answers(&e, path_of("any.onnx"), 1, HIGH, WIDE, ENGINE_FP32);
  engine_close(&e);
  free(text);
}

static void another_device_or_version_is_built_again(void **state) {
  (void)state;
  Error err;
  size_t size;
  const char *plan = path_of("cpu.nnplan");
  const EngineOptions o = options_for(DEVICE_CPU, ENGINE_FP32);
  Engine e = opened(path_of("any.onnx"), &o);
  if (engine_save(&e, plan, &err) != 0) fail_msg("%s", err.message);
  engine_close(&e);
  unsigned char *bytes = read_file(plan, &size);
  expect_said(bytes, size, DEVICE_GPU, "was made on CPU");
  engine_plan_put(bytes + 8, 77, 4);
  expect_said(bytes, size, DEVICE_CPU, "has the format 77");
  free(bytes);
}

/* One sentence, and nothing is lost: the plan that was there stays. */
static void damaged_files_are_refused(void **state) {
  (void)state;
  Error err;
  Engine e;
  size_t size;
  const EngineOptions o = options_for(DEVICE_CPU, ENGINE_FP32);
  unsigned char *bytes = read_file(path_of("cpu.nnplan"), &size);
  const char *bad = path_of("bad.nnplan");
  for (size_t n = 0; n < size; n += 1 + size / 23) {
    write_file(bad, bytes, n);
    assert_int_equal(engine_open(&e, bad, &o, &err), -1);
    assert_true(err.message[0] != '\0');
  }
  bytes[size / 2] ^= 0xFF; /* in the model: another weight, or not a model of ONNX */
  write_file(bad, bytes, size);
  if (engine_open(&e, bad, &o, &err) == 0) engine_close(&e);
  assert_int_equal(engine_open(&e, path_of("none.onnx"), &o, &err), -1);
  free(bytes);
}

static void refuses_sizes_that_were_not_declared(void **state) {
  (void)state;
  Error err;
  float y[7];
  const char *path = path_of("fixed.onnx");
  write_model(path, 1);
  EngineOptions o = options_for(DEVICE_CPU, ENGINE_FP32);
  o.max_height = o.max_width = 0;
  Engine e = opened(path, &o);
  float *x = arrays_random((size_t)3 * 64 * 64, 4);
  assert_int_equal(engine_run(&e, x, 1, HIGH - 1, WIDE, y, &err), -1);
  assert_non_null(strstr(err.message, "takes pictures of 20 x 24"));
  assert_int_equal(engine_run(&e, x, 1, HIGH, WIDE, y, &err), 0);
  engine_close(&e);
  o = options_for(DEVICE_CPU, ENGINE_FP32);
  e = opened(path_of("any.onnx"), &o);
  assert_int_equal(engine_run(&e, x, 1, HIGH + 1, WIDE, y, &err), -1);
  assert_non_null(strstr(err.message, "at most 20 x 24"));
  engine_close(&e);
  free(x);
}

/* y = relu(x), (N,4); with_constant: and an output of 5 x 3 numbers, whatever the batch is. */
static void write_relu(const char *path, int with_constant) {
  Error err;
  OnnxModel m;
  const OnnxDim x[] = {{1, "N"}, {4, NULL}}, k[] = {{5, NULL}, {3, NULL}};
  const int64_t dim[] = {5, 3};
  onnx_model_create(&m, "relu");
  onnx_add_input(&m, "x", ONNX_FLOAT, 2, x);
  onnx_add_output(&m, "y", ONNX_FLOAT, 2, x);
  add_node(&m, "Relu", "y", "x", NULL, NULL);
  if (with_constant) {
    onnx_add_output(&m, "k", ONNX_FLOAT, 2, k);
    add_weights(&m, "table", 2, dim, 0, 1);
    add_node(&m, "Identity", "k", "table", NULL, NULL);
  }
  if (onnx_model_write(m.proto, path, &err) != 0) fail_msg("%s", err.message);
  onnx_model_close(&m);
}

/* A caller has room for batch x floats of each output. */
static void refuses_outputs_without_the_batch(void **state) {
  (void)state;
  Error err;
  Engine e;
  const char *path = path_of("fixed.onnx");
  write_relu(path, 1);
  for (int device = 0; device < 2; device++) {
    EngineOptions o = options_for((Device)device, ENGINE_FP32);
    o.max_height = o.max_width = 0;
    assert_int_equal(engine_open(&e, path, &o, &err), -1);
    assert_non_null(strstr(err.message, "first size of"));
    assert_non_null(strstr(err.message, "is 5"));
  }
}

/* On a CPU both recipes are the same where there is neither a convolution nor a linear layer. */
static void nothing_is_measured_where_there_is_no_choice(void **state) {
  (void)state;
  char *text = NULL;
  size_t length = 0;
  const char *path = path_of("fixed.onnx");
  write_relu(path, 0);
  EngineOptions o = options_for(DEVICE_CPU, ENGINE_FP32);
  o.max_height = o.max_width = 0;
  o.log = open_memstream(&text, &length);
  Engine e = opened(path, &o);
  fclose(o.log);
  assert_non_null(strstr(text, "fp32, by rules"));
  engine_close(&e);
  free(text);
}

/* OpenMP's number of threads is the caller's; memory is planned for the engine's own. */
static void threads_are_its_own(void **state) {
  (void)state;
  const char *path = path_of("any.onnx");
  const int before = threads_most();
  EngineOptions o = options_for(DEVICE_CPU, ENGINE_FP32);
  o.threads = before + 1;
  Engine e = opened(path, &o);
  assert_int_equal(engine_get_options(&e).threads, before + 1);
  expect_answers(&e, path, 2, HIGH, WIDE, ENGINE_FP32);
  assert_int_equal(threads_most(), before);
  engine_close(&e);
  o.threads = 0;
  e = opened(path, &o);
  assert_int_equal(engine_get_options(&e).threads, before);
  engine_close(&e);
}

/* Every node of both networks is in the picture, and texts of the file cannot end it. */
static void the_picture_has_both_networks(void **state) {
  (void)state;
  Error err;
  size_t size;
  const EngineOptions o = options_for(DEVICE_CPU, ENGINE_FP32);
  Engine e = opened(path_of("any.onnx"), &o);
  Graph *before = engine_imported(&e, &err);
  const char *path = path_of("picture.svg");
  snprintf(before->nodes[1].name, sizeof before->nodes[1].name, "a<b>&\"");
  EngineDrawing left = engine_drawing(before, NULL, BATCH);
  EngineDrawing right = engine_drawing(engine_model(&e)->graph, NULL, BATCH);
  if (engine_svg_write(path, &left, &right, &err) != 0) fail_msg("%s", err.message);
  unsigned char *bytes = read_file(path, &size);
  char *text = (char *)xmalloc(size + 1);
  memcpy(text, bytes, size);
  text[size] = '\0';
  assert_non_null(strstr(text, "as it was imported"));
  assert_non_null(strstr(text, "norm2  BatchNormalization"));
  assert_non_null(strstr(text, "conv3  Conv"));
  assert_non_null(strstr(text, "a&lt;b&gt;&amp;"));
  assert_null(strstr(text, "a<b>"));
  free(text);
  free(bytes);
  graph_destroy(before);
  engine_close(&e);
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state) {
  static const char *const names[] = {"any.onnx",   "any.nnplan", "other.nnplan", "cpu.nnplan",
                                      "bad.nnplan", "fixed.onnx", "picture.svg"};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(path_of(names[i]));
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_precision_and_size),
      cmocka_unit_test(a_batch_may_be_fixed),
      cmocka_unit_test(an_extension_is_a_pass),
      cmocka_unit_test(imported_operations_have_kernels_of_16_bits),
      cmocka_unit_test(a_plan_is_what_was_saved),
      cmocka_unit_test(another_device_or_version_is_built_again),
      cmocka_unit_test(damaged_files_are_refused),
      cmocka_unit_test(refuses_sizes_that_were_not_declared),
      cmocka_unit_test(refuses_outputs_without_the_batch),
      cmocka_unit_test(nothing_is_measured_where_there_is_no_choice),
      cmocka_unit_test(threads_are_its_own),
      cmocka_unit_test(the_picture_has_both_networks),
  };
  return cmocka_run_group_tests_name("engine_file", tests, make_folder, remove_folder);
}
