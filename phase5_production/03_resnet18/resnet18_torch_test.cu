/* ResNet-18 against torchvision itself, which makes weights, logits, gradients and pictures while this test runs
 * (tools/golden/resnet18_golden.py). Skipped where python3-torchvision is not installed. */
#include "common/subprocess.h"
#include "common/test.h"
#include "phase5_production/03_resnet18/resnet18.cuh"
#include "phase5_production/03_resnet18/resnet18_predict.cuh"
#include "phase5_production/03_resnet18/resnet18_weights.h"

enum { BATCH = 2, SIDE = 224, SMALL = 64, CLASSES = 1000, LOGITS = BATCH * CLASSES };

static int installed;
static SafetensorsFile golden;

static const char *in_tmp(const char *name) {
  static char buffers[4][PATH_MAX];
  static int next;
  char *buffer = buffers[next++ % 4];
  return test_path(buffer, PATH_MAX, name);
}

/* Runs the script, with the test's folder last; 0 where torchvision is not installed. */
static int script(const char *mode, const char *file) {
  Error err;
  char path[PATH_MAX];
  if (runfiles_find("tools/golden/resnet18_golden.py", path, sizeof path, &err) != 0) fail_msg("%s", err.message);
  const char *argv[] = {"/usr/bin/python3",          "-B", path, mode, file ? file : test_tmpdir(),
                        file ? test_tmpdir() : NULL, NULL};
  Subprocess run = subprocess_run(argv, 240);
  const int status = run.status;
  if (status != 0 && status != 77 && status != 127) fail_msg("%s: exit status %d: %s", mode, status, run.err);
  subprocess_free(&run);
  return status == 0;
}

static void requires_torchvision(void) {
  if (installed) return;
  print_message("skipped: python3-torchvision is not installed\n");
  skip();
}

/* The tensor whose name begins with `prefix` and goes on with `rest`. */
static void read_tensor(const SafetensorsFile *file, const char *prefix, const char *rest, float *values) {
  Error err;
  char name[STATE_DICT_NAME];
  snprintf(name, sizeof name, "%s%s", prefix, rest);
  const SafetensorsTensor *t = safetensors_find(file, name);
  assert_non_null(t);
  if (safetensors_read_f32(file, name, t->rank, t->shape, values, &err) != 0) fail_msg("%s", err.message);
}

static void open_file(const char *name, SafetensorsFile *file) {
  Error err;
  if (safetensors_open(in_tmp(name), file, &err) != 0) fail_msg("%s", err.message);
}

/* The pictures of golden.safetensors; labels of resnet18_golden.py. */
static void feed(Model *m, const char *prefix) {
  const int labels[BATCH] = {281, 7};
  read_tensor(&golden, prefix, "input", model_input(m, 0));
  memcpy(model_labels(m), labels, sizeof labels);
}

static void open_with(Model *m, const char *name, StateDictLoaded *loaded) {
  Error err;
  Resnet18Weights weights;
  sgd_model_open(m, resnet18_fused(resnet18_imagenet), DEVICE_CPU, BATCH);
  if (resnet18_weights_open(in_tmp(name), &weights, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(weights.width, RESNET18_WIDTH);
  assert_int_equal(weights.classes, CLASSES);
  if (resnet18_weights_load(&weights, m, &err) != 0) fail_msg("%s", err.message);
  resnet18_weights_close(&weights);
  *loaded = weights.loaded;
}

static void compare_logits(const Model *m, const float *expected) {
  float error = 0;
  for (int i = 0; i < LOGITS; i++) error = fmaxf(error, fabsf(model_logits(m, 0)[i] - expected[i]));
  print_message("logits: error %.1e, 1e-4 is allowed\n", (double)error);
  assert_close(model_logits(m, 0), expected, LOGITS, 0, 1e-4);
}

static void logits_are_equal_to_1e4(void **state) {
  (void)state;
  requires_torchvision();
  Error err;
  Model m, fast;
  StateDictLoaded loaded;
  static float expected[LOGITS];
  open_with(&m, "zip.pth", &loaded);
  assert_string_equal(loaded.prefix, "");
  assert_int_equal(loaded.tensors, 122);
  assert_true(loaded.counters);
  read_tensor(&golden, "", "evaluated", expected);
  feed(&m, "");
  model_evaluate_step(&m, BATCH);
  compare_logits(&m, expected);
  if (residual_infer(&fast, &m, BATCH, &err) != 0) fail_msg("%s", err.message);
  feed(&fast, "");
  model_evaluate_step(&fast, BATCH);
  compare_logits(&fast, expected); /* batch norm folded into the convolutions */
  model_close(&fast);
  model_close(&m);
}

/* Gradients of one step, each against PyTorch's in float64; the file also says how far PyTorch in float32 is from it.
 */
typedef void CompareGradients(const Param *p, const float *ours, const float *expected, double torch_error);

static void check_gradients(int side, const char *prefix, CompareGradients *compare) {
  Error err;
  Model m;
  Resnet18Weights weights;
  static float expected[LOGITS];
  const Resnet18Shape shape = {side, RESNET18_WIDTH, CLASSES};
  float *gradient = (float *)malloc(RESNET18_PARAMETERS * sizeof(float));
  assert_non_null(gradient);
  sgd_model_open(&m, resnet18_fused(shape), DEVICE_CPU, BATCH);
  if (resnet18_weights_open(in_tmp("zip.pth"), &weights, &err) != 0) fail_msg("%s", err.message);
  if (resnet18_weights_load(&weights, &m, &err) != 0) fail_msg("%s", err.message);
  resnet18_weights_close(&weights);
  feed(&m, prefix);
  sgd_train_step(&m, BATCH, 0, 0);
  read_tensor(&golden, prefix, "logits", expected);
  compare_logits(&m, expected);
  int node = 0, index = 0, tensors = 0;
  const Param *p;
  while ((p = model_next_param(&m, &node, &index)) != NULL) {
    char name[STATE_DICT_NAME];
    float torch_error;
    if (!p->trained) continue;
    snprintf(name, sizeof name, "grad.%s", p->name);
    read_tensor(&golden, prefix, name, gradient);
    snprintf(name, sizeof name, "error.%s", p->name);
    read_tensor(&golden, prefix, name, &torch_error);
    compare(p, model_gradient(&m, p), gradient, torch_error);
    tensors++;
  }
  assert_int_equal(tensors, 62);
  free(gradient);
  model_close(&m);
}

/* Ours adds in another order than PyTorch, and may be six times as far off; where PyTorch is lucky, some roundings of
 * the largest element. */
static void compare_elements(const Param *p, const float *ours, const float *expected, double torch_error) {
  float largest = 0, error = 0;
  for (size_t i = 0; i < p->count; i++) {
    largest = fmaxf(largest, fabsf(expected[i]));
    error = fmaxf(error, fabsf(ours[i] - expected[i]));
  }
  const double tolerance = 6 * torch_error + 4e-6 * (double)largest;
  print_message("%s: largest %.1e, error %.1e, tolerance %.1e\n", p->name, (double)largest, (double)error, tolerance);
  assert_true(largest > 1e-4f); /* zeros would prove nothing */
  assert_close(ours, expected, p->count, 0, tolerance);
}

/* Pictures that keep the inputs of every ReLU away from 0. */
static void gradients_are_as_right_as_those_of_torchvision(void **state) {
  (void)state;
  requires_torchvision();
  check_gradients(SMALL, "small.", compare_elements);
}

/* Of the 2.3 million inputs of a ReLU some are so near to 0 that rounding decides whether a gradient passes. One of the
 * 50,176 in the last layer is 1 / sqrt(50,176) = 0.4 % of the norm: a few are allowed. A wrong term is 100 %. */
static void compare_norms(const Param *p, const float *ours, const float *expected, double torch_error) {
  double norm = 0, error = 0;
  for (size_t i = 0; i < p->count; i++) {
    norm += (double)expected[i] * (double)expected[i];
    error += ((double)ours[i] - (double)expected[i]) * ((double)ours[i] - (double)expected[i]);
  }
  (void)torch_error;
  if (!(norm > 0 && sqrt(error / norm) < 0.02))
    fail_msg("%s: the gradient differs by %g of its norm", p->name, sqrt(error / norm));
}

static void gradients_of_large_pictures_agree_in_norm(void **state) {
  (void)state;
  requires_torchvision();
  check_gradients(SIDE, "", compare_norms);
}

static void expect_same_weights(const Model *a, const Model *b, double relative) {
  assert_close(a->parameters, b->parameters, a->parameter_count, relative, 1e-7);
  assert_close(a->buffers, b->buffers, a->buffer_count, relative, 1e-7);
}

/* The pickles of old versions, of DataParallel, and of half precision, whose numbers have 11 bits. */
static void every_kind_of_pth_is_read(void **state) {
  (void)state;
  requires_torchvision();
  Model zip, other;
  StateDictLoaded loaded;
  open_with(&zip, "zip.pth", &loaded);
  open_with(&other, "old.pth", &loaded);
  assert_string_equal(loaded.prefix, "module.");
  expect_same_weights(&zip, &other, 0);
  model_close(&other);
  open_with(&other, "half.pth", &loaded);
  assert_string_equal(loaded.dtype, "F16");
  expect_same_weights(&zip, &other, 0x1p-11);
  model_close(&other);
  model_close(&zip);
}

static void a_module_is_refused(void **state) {
  (void)state;
  requires_torchvision();
  Error err;
  Resnet18Weights weights;
  assert_int_equal(resnet18_weights_open(in_tmp("whole.pth"), &weights, &err), -1);
  assert_non_null(strstr(err.message, "torchvision.models.resnet.BasicBlock"));
  assert_non_null(strstr(err.message, "state_dict()"));
}

static void torchvision_loads_what_is_saved(void **state) {
  (void)state;
  requires_torchvision();
  Error err;
  Model m;
  SafetensorsFile file;
  static float logits[LOGITS];
  const Resnet18Shape shape = {SMALL, RESNET18_WIDTH, CLASSES};
  sgd_model_open(&m, resnet18_fused(shape), DEVICE_CPU, BATCH);
  model_init(&m, 11);
  feed(&m, "small.");
  sgd_train_step(&m, BATCH, 0.01f, 0.9f); /* other running statistics, and a batch is counted */
  if (state_dict_save(&m, in_tmp("ours.safetensors"), &err) != 0) fail_msg("%s", err.message);
  assert_true(script("load", in_tmp("ours.safetensors")));
  open_file("logits.safetensors", &file);
  read_tensor(&file, "", "logits", logits);
  model_evaluate_step(&m, BATCH);
  float largest = 0;
  for (int i = 0; i < LOGITS; i++) largest = fmaxf(largest, fabsf(logits[i]));
  assert_true(largest > 0.1f);
  assert_close(model_logits(&m, 0), logits, LOGITS, 0, 1e-4 * fmax(1, (double)largest));
  safetensors_close(&file);
  model_close(&m);
}

/* Of a PNG file the same numbers, up to the rounding of two divisions; of a JPEG file, which two libraries decode, to
 * within a grey level. */
static void pictures_are_prepared_as_torchvision_does(void **state) {
  (void)state;
  requires_torchvision();
  enum { NUMBERS = 3 * SIDE * SIDE };
  static float x[NUMBERS], expected[NUMBERS];
  const char *names[] = {"wide.png", "tall.png", "small.png", "photo.jpg"};
  Error err;
  Image image;
  for (int i = 0; i < 4; i++) {
    char tensor[8];
    snprintf(tensor, sizeof tensor, "x%d", i);
    read_tensor(&golden, "", tensor, expected);
    if (image_read_rgb(in_tmp(names[i]), &image, &err) != 0) fail_msg("%s", err.message);
    resnet18_prepare(DEVICE_CPU, x, &image, preprocess_imagenet);
    image_free(&image);
    float error = 0;
    for (int k = 0; k < NUMBERS; k++) error = fmaxf(error, fabsf(x[k] - expected[k]));
    print_message("%s: error %.1e, a grey level is %.1e\n", names[i], (double)error, 1 / 255.0 / 0.225);
    assert_close(x, expected, NUMBERS, 0, i < 3 ? 1e-6 : 1.01 / 255.0 / 0.224);
  }
}

int main(void) {
  installed = script("make", NULL);
  if (installed) open_file("golden.safetensors", &golden);
  const struct CMUnitTest tests[] = {cmocka_unit_test(logits_are_equal_to_1e4),
                                     cmocka_unit_test(gradients_are_as_right_as_those_of_torchvision),
                                     cmocka_unit_test(gradients_of_large_pictures_agree_in_norm),
                                     cmocka_unit_test(every_kind_of_pth_is_read),
                                     cmocka_unit_test(a_module_is_refused),
                                     cmocka_unit_test(torchvision_loads_what_is_saved),
                                     cmocka_unit_test(pictures_are_prepared_as_torchvision_does)};
  return TEST_MAIN("resnet18_torch", tests);
}
