/* golden.h - for tests: a network against PyTorch, by the vectors that tools/golden/network_golden.py makes.
 *
 *     Model m;
 *     sgd_model_open(&m, fashion_cnn_graph(), DEVICE_CPU, GOLDEN_BATCH);
 *     golden_check(&m, "phase3_cnn/13_fashion_mnist/testdata/fashion_golden.safetensors", GOLDEN_STEPS);
 *     golden_pytorch_loads(&m, "fashion");
 *     model_close(&m);
 *
 * Parameters, buffers and images come from a formula that both sides compute (Philox by the tensor's name), so the
 * file is small: logits, loss, digests of the gradients; the losses of ten steps of SGD with momentum; after two and
 * after ten steps digests of the parameters and buffers, and the logits in evaluation mode. A digest is a whole tensor
 * of up to 256 elements; of a larger one its norm, its product with a random vector, in which each element counts, and
 * 256 elements.
 */
#ifndef COMMON_NN_GOLDEN_H
#define COMMON_NN_GOLDEN_H

#include "common/nn/checkpoint.h"
#include "common/philox.h"
#include "common/runfiles.h"
#include "common/safetensors.h"
#include "common/subprocess.h"
#include "common/test.h"

enum { GOLDEN_BATCH = 6, GOLDEN_STEPS = 10, GOLDEN_SEED = 2026, GOLDEN_SAMPLES = 256, GOLDEN_LOGITS = 1000 };

/* Of a large network an emulated GPU computes the first steps. */
#ifdef SIMT_REWRITTEN
enum { GOLDEN_GPU_STEPS = 2 };
#else
enum { GOLDEN_GPU_STEPS = GOLDEN_STEPS };
#endif

/* FNV-1a, 32 bits: a stream of random numbers for each name. */
static inline uint32_t golden_stream(const char *name) {
  uint32_t value = 2166136261u;
  for (; *name; name++) value = (value ^ (unsigned char)*name) * 16777619u;
  return value;
}

/* Element i of the tensor `name`: -1 to 1, exact. */
static inline float golden_uniform(const char *name, size_t i) {
  return 2 * philox_uniform(philox4x32(GOLDEN_SEED, golden_stream(name), i).word[0]) - 1;
}

static inline int golden_ends_with(const char *name, const char *end) {
  const size_t n = strlen(name), m = strlen(end);
  return n >= m && strcmp(name + n - m, end) == 0;
}

static inline void golden_fill(const Param *p, float *values) {
  const double scale = sqrt(6 / ((double)p->count / (double)p->dim[0]));
  const int around_one = golden_ends_with(p->name, "weight") || golden_ends_with(p->name, "var");
  for (size_t i = 0; i < p->count; i++) {
    const double u = golden_uniform(p->name, i);
    values[i] = (float)(p->rank > 1 ? u * scale : around_one ? 1 + 0.25 * u : 0.1 * u);
  }
}

/* Parameters, buffers, images and labels by the formula; no step is done yet. */
static inline void golden_begin(Model *m) {
  const Device device = m->context.device;
  const size_t width = GOLDEN_BATCH * model_input_width(m, 0);
  int node = 0, index = 0, labels[GOLDEN_BATCH];
  const Param *p;
  while ((p = model_next_param(m, &node, &index)) != NULL) {
    if (p->counts) continue;
    float *values = (float *)xmalloc(p->count * sizeof(float));
    golden_fill(p, values);
    device_upload(device, model_param(m, p), values, p->count * sizeof(float));
    free(values);
  }
  float *images = (float *)xmalloc(width * sizeof(float));
  for (size_t i = 0; i < width; i++) images[i] = golden_uniform("input", i);
  for (int i = 0; i < GOLDEN_BATCH; i++) labels[i] = (3 * i + 1) % model_classes(m);
  device_upload(device, model_input(m, 0), images, width * sizeof(float));
  device_upload(device, model_labels(m), labels, sizeof labels);
  free(images);
}

/* The digest of values (n) into out (GOLDEN_SAMPLES + 2); returns its length. */
static inline size_t golden_digest(const char *name, const float *values, size_t n, float *out) {
  char stream[NODE_NAME + 64];
  double squares = 0, product = 0;
  if (n <= GOLDEN_SAMPLES) {
    memcpy(out, values, n * sizeof *out);
    return n;
  }
  snprintf(stream, sizeof stream, "digest %s", name);
  for (size_t i = 0; i < n; i++) {
    squares += (double)values[i] * values[i];
    product += (double)values[i] * golden_uniform(stream, i);
  }
  out[0] = (float)sqrt(squares);
  out[1] = (float)product;
  for (size_t i = 0; i < GOLDEN_SAMPLES; i++) out[2 + i] = values[i * n / GOLDEN_SAMPLES];
  return GOLDEN_SAMPLES + 2;
}

/* One tensor against its digest in the file: elements to 2e-5 of the largest, norm and product to 2e-5 of the norm. */
static inline void golden_compare(const SafetensorsFile *file, const char *prefix, const Param *p,
                                  const float *values) {
  Error err;
  char name[NODE_NAME + 64];
  float ours[GOLDEN_SAMPLES + 2], expected[GOLDEN_SAMPLES + 2];
  const size_t count = golden_digest(p->name, values, p->count, ours), head = p->count > GOLDEN_SAMPLES ? 2 : 0;
  size_t shape[SHAPE_MAX_RANK] = {count, 0, 0, 0};
  snprintf(name, sizeof name, "%s%s", prefix, p->name);
  if (safetensors_read_f32(file, name, 1, shape, expected, &err) != 0) fail_msg("%s", err.message);
  float largest = 0, error = 0;
  for (size_t i = head; i < count; i++) {
    largest = fmaxf(largest, fabsf(expected[i]));
    error = fmaxf(error, fabsf(ours[i] - expected[i]));
  }
  print_message("%s: largest %.3e, error %.1e\n", name, (double)largest, (double)error);
  assert_true(largest > 1e-6f); /* zeros would prove nothing */
  assert_close(ours + head, expected + head, count - head, 0, 2e-5 * largest);
  if (head) assert_close(ours, expected, head, 0, 2e-5 * expected[0]);
}

/* prefix: "grad.", "trained2." or "trained10." */
static inline void golden_compare_all(Model *m, const SafetensorsFile *file, const char *prefix) {
  const int gradients = strcmp(prefix, "grad.") == 0;
  int node = 0, index = 0;
  const Param *p;
  while ((p = model_next_param(m, &node, &index)) != NULL) {
    if (p->counts || (gradients && !p->trained)) continue;
    float *values = (float *)xmalloc(p->count * sizeof(float));
    device_download(m->context.device, values, gradients ? model_gradient(m, p) : model_param(m, p),
                    p->count * sizeof(float));
    golden_compare(file, prefix, p, values);
    free(values);
  }
}

static inline void golden_compare_logits(Model *m, const SafetensorsFile *file, const char *name) {
  Error err;
  float ours[GOLDEN_LOGITS], expected[GOLDEN_LOGITS], largest = 0;
  const size_t classes = (size_t)model_classes(m), shape[] = {GOLDEN_BATCH, classes}, count = GOLDEN_BATCH * classes;
  assert_true(count <= GOLDEN_LOGITS);
  if (safetensors_read_f32(file, name, 2, shape, expected, &err) != 0) fail_msg("%s", err.message);
  device_download(m->context.device, ours, model_logits(m, 0), count * sizeof(float));
  for (size_t i = 0; i < count; i++) largest = fmaxf(largest, fabsf(expected[i]));
  assert_close(ours, expected, count, 0, 2e-5 * largest);
}

/* Parameters, buffers, and the logits in evaluation mode. */
static inline void golden_compare_state(Model *m, const SafetensorsFile *file, const char *trained,
                                        const char *evaluated) {
  golden_compare_all(m, file, trained);
  model_evaluate_step(m, GOLDEN_BATCH);
  golden_compare_logits(m, file, evaluated);
}

/* The first `steps` of the ten steps. The model is for GOLDEN_BATCH images at least and SGD with momentum.
 *
 * Tolerances: a sum of n products in float32 is off by some sqrt(n) eps of its size: 1e-6 for the longest sums here, of
 * some hundred products in forward and some thousand in backward. Each of three to eight layers adds to that; ten steps
 * carry it on. 2e-5 leaves a factor of some five, and is far below what a wrong term does. */
static inline void golden_check(Model *m, const char *runfile, int steps) {
  Error err;
  char path[PATH_MAX];
  SafetensorsFile file;
  float losses[GOLDEN_STEPS], expected[GOLDEN_STEPS];
  const size_t shape[] = {GOLDEN_STEPS};
  if (runfiles_find(runfile, path, sizeof path, &err) != 0 || safetensors_open(path, &file, &err) != 0 ||
      safetensors_read_f32(&file, "losses", 1, shape, expected, &err) != 0)
    fail_msg("%s", err.message);
  golden_begin(m);
  m->hyper.lr = (float)atof(safetensors_metadata(&file, "lr"));
  m->hyper.momentum = 0.9f;
  for (int step = 0; step < steps; step++) {
    const Totals none = {0, 0};
    model_reset_totals(m, 0, none);
    model_train_step(m, GOLDEN_BATCH);
    losses[step] = (float)(model_read_totals(m, 0).loss / GOLDEN_BATCH);
    if (step == 0) golden_compare_all(m, &file, "grad.");
    if (step == 0) golden_compare_logits(m, &file, "logits");
    if (step == 1) golden_compare_state(m, &file, "trained2.", "evaluated2");
    if (step == GOLDEN_STEPS - 1) golden_compare_state(m, &file, "trained10.", "evaluated10");
  }
  assert_close(losses, expected, steps, 2e-5, 2e-5);
  assert_true(expected[GOLDEN_STEPS - 1] < 0.6f * expected[0]);
  safetensors_close(&file);
}

/* PyTorch loads our checkpoint with load_state_dict(strict=True), which refuses a name too many or too few, and
 * evaluates the same images; we load what its state_dict() has. Skipped without PyTorch. */
static inline void golden_pytorch_loads(Model *m, const char *network) {
  Error err;
  TrainState saved, read;
  char ours[PATH_MAX], theirs[PATH_MAX], script[PATH_MAX];
  float logits[GOLDEN_LOGITS], largest = 0;
  const size_t count = GOLDEN_BATCH * (size_t)model_classes(m), buffers = m->buffer_count * sizeof(float);
  memset(&saved, 0, sizeof saved);
  saved.epochs = saved.batch_size = saved.train_images = saved.test_images = 1;
  saved.stddev[0] = 1;
  assert_true(count <= GOLDEN_LOGITS);
  if (runfiles_find("tools/golden/network_state_dict.py", script, sizeof script, &err) != 0)
    fail_msg("%s", err.message);
  golden_begin(m);
  model_evaluate_step(m, GOLDEN_BATCH);
  device_download(m->context.device, logits, model_logits(m, 0), count * sizeof(float));
  for (size_t i = 0; i < count; i++) largest = fmaxf(largest, fabsf(logits[i]));
  test_path(ours, sizeof ours, "ours.safetensors");
  test_path(theirs, sizeof theirs, "theirs.safetensors");
  if (checkpoint_save(ours, CHECKPOINT_MODEL, m, &saved, &err) != 0) fail_msg("%s", err.message);
  const char *argv[] = {"/usr/bin/python3", script, network, ours, theirs, NULL};
  Subprocess run = subprocess_run(argv, 120);
  if (run.status == 77 || run.status == 127) {
    subprocess_free(&run);
    print_message("skipped: python3-torch is not installed\n");
    skip();
  }
  if (run.status != 0) fail_msg("exit status %d: %s", run.status, run.err);
  char *at = run.out;
  for (size_t i = 0; i < count; i++) {
    const float expected = strtof(at, &at);
    if (!(fabsf(logits[i] - expected) <= 2e-5f * largest))
      fail_msg("logit %zu is %g; PyTorch's is %g", i, (double)logits[i], (double)expected);
  }
  subprocess_free(&run);
  float *before = (float *)xmalloc(m->parameter_count * sizeof(float) + buffers),
        *after = (float *)xmalloc(buffers + 1);
  device_download(m->context.device, before, m->parameters, m->parameter_count * sizeof(float));
  device_download(m->context.device, before + m->parameter_count, m->buffers, buffers);
  model_init(m, 1);
  if (checkpoint_load(theirs, CHECKPOINT_MODEL, m, &read, &err) != 0) fail_msg("%s", err.message);
  float *loaded = (float *)xmalloc(m->parameter_count * sizeof(float));
  device_download(m->context.device, loaded, m->parameters, m->parameter_count * sizeof(float));
  device_download(m->context.device, after, m->buffers, buffers);
  assert_memory_equal(loaded, before, m->parameter_count * sizeof(float));
  assert_memory_equal(after, before + m->parameter_count, buffers);
  free(loaded);
  free(before);
  free(after);
}

#endif /* COMMON_NN_GOLDEN_H */
