/* The optimizers: the definitions against PyTorch and by hand, loops and kernels against PyTorch for a hundred steps
 * and against the definitions on ragged arrays; steps that fp16 skips; Muon against the singular value decomposition;
 * what is no setting is refused. */
#include "common/nn/optimizer.h"

#include "common/nn/golden.h"
#include "common/nn/test_net.h"
#include "common/test_arrays.h"

/* ---- a hundred steps of PyTorch's: tools/golden/optimizers_golden.py ---- */

enum { STEPS = 100, PARAMETERS = 7, DECAYED = 4 };

static SafetensorsFile golden_open(void) {
  Error err;
  char path[PATH_MAX];
  SafetensorsFile file;
  if (runfiles_find("common/nn/testdata/optimizers_golden.safetensors", path, sizeof path, &err) != 0 ||
      safetensors_open(path, &file, &err) != 0)
    fail_msg("%s", err.message);
  return file;
}

/* "adam lr=0.01 beta1=0.9 ..." */
static const OptimizerChoice *golden_settings(const SafetensorsFile *file, const char *name, OptimizerSettings *s) {
  const char *text = safetensors_metadata(file, name);
  assert_non_null(text);
  char kind[16];
  double value;
  const struct {
    const char *name;
    double *at;
  } doubles[] = {{"lr", &s->lr},          {"momentum", &s->momentum}, {"weight_decay", &s->weight_decay},
                 {"beta1", &s->beta1},    {"beta2", &s->beta2},       {"dampening", &s->dampening},
                 {"epsilon", &s->epsilon}};
  memset(s, 0, sizeof *s);
  assert_int_equal(sscanf(text, "%15s", kind), 1);
  for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
    char key[32];
    snprintf(key, sizeof key, " %s=", doubles[i].name);
    const char *at = strstr(text, key);
    if (at && sscanf(at + strlen(key), "%lf", &value) == 1) *doubles[i].at = value;
  }
  s->nesterov = strstr(text, " nesterov=1") != NULL;
  s->centered = strstr(text, " centered=1") != NULL;
  const OptimizerChoice *choice = optimizer_named(kind);
  assert_non_null(choice);
  return choice;
}

/* Sizes 0.01, 0.1, 1, 10, 0.01, 0.1, 0. */
static void golden_gradients(float *gradients, int step) {
  static const float scale[] = {0.01f, 0.1f, 1, 10};
  for (int i = 0; i < PARAMETERS; i++) {
    const double u = golden_uniform("gradients", (size_t)step * PARAMETERS + i);
    gradients[i] = i == PARAMETERS - 1 ? 0 : (float)((u + 0.25) * scale[i % 4]);
  }
}

/* In a step w is rounded twice, to eps of its size; the change of w is a chain of about ten roundings, and a momentum
 * of 0.9 carries the errors of ten steps. Both add up over the steps. */
static void expect_path(const char *name, const float *w, const float *path, int step) {
  for (int i = 0; i < PARAMETERS; i++) {
    double largest = 0, change = 0, before = golden_uniform("parameters", (size_t)i);
    for (int s = 0; s <= step; s++) {
      const double now = path[s * PARAMETERS + i];
      largest = fmax(largest, fabs(now));
      change = fmax(change, fabs(now - before));
      before = now;
    }
    const double tolerance = (step + 1) * (double)FLT_EPSILON * (2 * largest + 32 * change);
    const double error = fabs((double)w[i] - path[step * PARAMETERS + i]);
    if (!(error <= tolerance))
      fail_msg("%s, step %d: parameter %d is %.9g, PyTorch's %.9g; the error is %.2g, the tolerance %.2g", name,
               step + 1, i, (double)w[i], (double)path[step * PARAMETERS + i], error, tolerance);
  }
}

/* Recorded: what changes from step to step lies in the device's memory. */
static void follow(const SafetensorsFile *file, const char *name, Device device, int recorded, float *end) {
  Error err;
  OptimizerSettings settings;
  static float path[STEPS * PARAMETERS];
  float w[PARAMETERS], gradients[PARAMETERS], *slot[OPTIMIZER_MAX_SLOTS] = {NULL};
  const size_t shape[] = {STEPS, PARAMETERS};
  const Optimizer *optimizer = golden_settings(file, name, &settings)->choose(&settings);
  const Hyper hyper = optimizer_hyper(&settings);
  if (safetensors_read_f32(file, name, 2, shape, path, &err) != 0) fail_msg("%s", err.message);
  for (int i = 0; i < PARAMETERS; i++) w[i] = golden_uniform("parameters", (size_t)i);
  float *device_w = arrays_upload(device, w, PARAMETERS), *device_grad = arrays_upload(device, w, PARAMETERS);
  const float zeros[PARAMETERS] = {0};
  for (int s = 0; s < optimizer->slots; s++) slot[s] = arrays_upload(device, zeros, PARAMETERS);
  StepValues *values = (StepValues *)device_alloc(device, sizeof *values);
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  for (int step = 0; step < STEPS; step++) {
    golden_gradients(gradients, step);
    device_upload(device, device_grad, gradients, sizeof gradients);
    const StepValues now = step_values(settings.lr, &hyper, step);
    device_upload(device, values, &now, sizeof now);
    Hyper given = hyper;
    context.step = recorded ? 0 : step; /* then it does not say what the step is */
    if (recorded) given.lr = NAN;
    context.values = recorded ? values : NULL;
    optimizer->step(&context, device_w, slot, device_grad, PARAMETERS, DECAYED, &given);
    device_download(device, w, device_w, sizeof w);
    expect_path(name, w, path, step);
  }
  memcpy(end, w, sizeof w);
  device_free(device, values);
  arrays_download(device, NULL, device_w, PARAMETERS, "w");
  arrays_download(device, NULL, device_grad, PARAMETERS, "grad");
  for (int s = 0; s < optimizer->slots; s++) arrays_download(device, NULL, slot[s], PARAMETERS, "slot");
}

static const char *const runs[] = {
    "sgd_plain", "sgd_momentum",  "sgd_dampening",    "sgd_nesterov",     "adam",       "adam_decay", "adamw",
    "rmsprop",   "rmsprop_decay", "rmsprop_centered", "rmsprop_momentum", "rmsprop_all"};
enum { RUNS = sizeof runs / sizeof *runs };

static void the_loops_step_as_pytorch_does(void **state) {
  (void)state;
  float end[PARAMETERS];
  SafetensorsFile file = golden_open();
  for (int i = 0; i < RUNS; i++) {
    float given[PARAMETERS];
    follow(&file, runs[i], DEVICE_CPU, 0, end);
    follow(&file, runs[i], DEVICE_CPU, 1, given);
    assert_memory_equal(end, given, sizeof end);
  }
  safetensors_close(&file);
}

static void the_kernels_step_as_pytorch_does(void **state) {
  (void)state;
  test_requires_gpu();
  SafetensorsFile file = golden_open();
  for (int i = 0; i < RUNS; i++) {
    float end[PARAMETERS], recorded[PARAMETERS];
    follow(&file, runs[i], DEVICE_GPU, 0, end);
    follow(&file, runs[i], DEVICE_GPU, 1, recorded);
    assert_memory_equal(end, recorded, sizeof end);
  }
  safetensors_close(&file);
}

/* One step of the definition, in double. */
static void define(const OptimizerChoice *choice, const OptimizerSettings *s, double *w, double *const *slot,
                   const double *grad, size_t n, size_t decayed, long step) {
  const char *name = choice->name;
  if (strcmp(name, "sgd") == 0)
    sgd_update_cpu(w, slot[0], grad, n, decayed, s->lr, s->momentum, step == 0 ? 1 : 1 - s->dampening, s->nesterov,
                   s->weight_decay);
  else if (strcmp(name, "rmsprop") == 0)
    rmsprop_update_cpu(w, slot[0], s->centered ? slot[1] : NULL, s->momentum > 0 ? slot[s->centered ? 2 : 1] : NULL,
                       grad, n, decayed, s->lr, s->beta2, s->epsilon, s->momentum, s->weight_decay);
  else
    adam_update_cpu(w, slot[0], slot[1], grad, n, decayed, s->lr, s->beta1, s->beta2, s->epsilon, s->weight_decay,
                    strcmp(name, "adamw") == 0, step + 1);
}

/* The file has float32: half an eps of the value. */
static void the_definitions_are_pytorchs(void **state) {
  (void)state;
  Error err;
  SafetensorsFile file = golden_open();
  for (int run = 0; run < RUNS; run++) {
    OptimizerSettings settings;
    static float path[STEPS * PARAMETERS];
    const size_t shape[] = {STEPS, PARAMETERS};
    double w[PARAMETERS], grad[PARAMETERS], slots[OPTIMIZER_MAX_SLOTS][PARAMETERS] = {{0}};
    const OptimizerChoice *choice = golden_settings(&file, runs[run], &settings);
    const int count = choice->choose(&settings)->slots;
    if (safetensors_read_f32(&file, runs[run], 2, shape, path, &err) != 0) fail_msg("%s", err.message);
    for (int i = 0; i < PARAMETERS; i++) w[i] = golden_uniform("parameters", (size_t)i);
    for (int step = 0; step < STEPS; step++) {
      float gradients[PARAMETERS];
      double *slot[OPTIMIZER_MAX_SLOTS] = {NULL};
      for (int s = 0; s < count; s++) slot[s] = slots[s];
      golden_gradients(gradients, step);
      for (int i = 0; i < PARAMETERS; i++) grad[i] = gradients[i];
      define(choice, &settings, w, slot, grad, PARAMETERS, DECAYED, step);
      for (int i = 0; i < PARAMETERS; i++)
        if (!(fabs(w[i] - path[step * PARAMETERS + i]) <= 0.51 * (double)FLT_EPSILON * fabs(w[i]) + 1e-12))
          fail_msg("%s, step %d: parameter %d is %.12g, PyTorch's %.12g", runs[run], step + 1, i, w[i],
                   (double)path[step * PARAMETERS + i]);
    }
  }
  safetensors_close(&file);
}

/* ---- any length, any boundary of the decayed, arrays that are not aligned ---- */

static void check_lengths(const char *name, unsigned variant, Device device, size_t n, size_t decayed, size_t shift) {
  const OptimizerChoice *choice = optimizer_named(name);
  OptimizerSettings settings = choice->usual;
  settings.lr = 0.1;
  settings.weight_decay = 0.25;
  settings.momentum = variant & 1 ? 0.5 : 0;
  settings.centered = settings.nesterov = variant >> 1 & 1;
  const Optimizer *optimizer = choice->choose(&settings);
  const Hyper hyper = optimizer_hyper(&settings);
  const size_t all = n + shift;
  float *w = arrays_random(all, 1), *grad = arrays_random(all, 2), *slot[OPTIMIZER_MAX_SLOTS], *expected;
  double *wide = (double *)xmalloc((OPTIMIZER_MAX_SLOTS + 2) * n * sizeof *wide),
         *wide_slot[OPTIMIZER_MAX_SLOTS] = {NULL};
  for (size_t i = 0; i < n; i++) wide[i] = w[shift + i], wide[n + i] = grad[shift + i];
  float *device_w = arrays_upload(device, w, all), *device_grad = arrays_upload(device, grad, all);
  float *device_slot[OPTIMIZER_MAX_SLOTS], *shifted[OPTIMIZER_MAX_SLOTS] = {NULL};
  for (int s = 0; s < optimizer->slots; s++) {
    slot[s] = arrays_random(all, 10 + (uint64_t)s);
    const int square = strstr(optimizer->slot[s], "sq") != NULL; /* more than the square of a mean of at most 2 */
    for (size_t i = 0; i < all; i++) slot[s][i] = square ? 8.5f + slot[s][i] : slot[s][i];
    wide_slot[s] = wide + (2 + (size_t)s) * n;
    for (size_t i = 0; i < n; i++) wide_slot[s][i] = slot[s][shift + i];
    device_slot[s] = arrays_upload(device, slot[s], all);
    shifted[s] = device_slot[s] + shift;
  }
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  context.step = 2;
  optimizer->step(&context, device_w + shift, shifted, device_grad + shift, n, decayed, &hyper);
  define(choice, &settings, wide, wide_slot, wide + n, n, decayed, context.step);
  expected = arrays_poison(all);
  memcpy(expected, w, shift * sizeof *w);
  for (size_t i = 0; i < n; i++) expected[shift + i] = (float)wide[i];
  arrays_download(device, w, device_w, all, "w");
  arrays_download(device, NULL, device_grad, all, "grad");
  print_message("%s %u, n %zu, decayed %zu, shift %zu\n", name, variant, n, decayed, shift);
  /* Numbers below 11 in size, ten roundings, a root and a division. */
  const double tolerance = 16 * 11 * (double)FLT_EPSILON;
  assert_close(w, expected, all, 0, tolerance);
  for (int s = 0; s < optimizer->slots; s++) {
    memcpy(expected, slot[s], shift * sizeof *w);
    for (size_t i = 0; i < n; i++) expected[shift + i] = (float)wide_slot[s][i];
    arrays_download(device, slot[s], device_slot[s], all, optimizer->slot[s]);
    assert_close(slot[s], expected, all, 0, tolerance);
    free(slot[s]);
  }
  free(w);
  free(grad);
  free(expected);
  free(wide);
}

static void check_all_lengths(Device device) {
  static const size_t lengths[] = {1, 3, 4, 5, 31, 33, 127, 1021, 1028};
  static const struct {
    const char *name;
    unsigned variant;
  } cases[] = {{"sgd", 0},     {"sgd", 1},     {"sgd", 3},     {"adam", 0},   {"adamw", 0},
               {"rmsprop", 0}, {"rmsprop", 1}, {"rmsprop", 2}, {"rmsprop", 3}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
      const size_t n = lengths[i], shift = (i + c) % 3;
      check_lengths(cases[c].name, cases[c].variant, device, n, n > 4 ? n / 2 + 1 : n, shift);
      if (i % 4 == 0) check_lengths(cases[c].name, cases[c].variant, device, n, 0, 0);
    }
}

static void loops_take_any_length(void **state) {
  (void)state;
  check_all_lengths(DEVICE_CPU);
}

static void kernels_take_any_length(void **state) {
  (void)state;
  test_requires_gpu();
  check_all_lengths(DEVICE_GPU);
}

/* A gradient that does not change has the variance 0, and rounding makes of it what it likes: but no NaN. */
static void a_constant_gradient_has_no_negative_variance(void **state) {
  (void)state;
  OptimizerSettings settings = optimizer_named("rmsprop")->usual;
  settings.centered = 1;
  const Hyper hyper = optimizer_hyper(&settings);
  Context context;
  memset(&context, 0, sizeof context);
  enum { N = 64 };
  float w[N] = {0}, square[N] = {0}, mean[N] = {0}, grad[N], *slot[] = {square, mean, NULL};
  int negative = 0;
  for (int i = 0; i < N; i++) grad[i] = 0.1f + 0.37f * (float)i;
  for (int step = 0; step < 3000; step++) {
    optimizer_choose_rmsprop(&settings)->step(&context, w, slot, grad, N, 0, &hyper);
    for (int i = 0; i < N; i++) negative += square[i] - mean[i] * mean[i] < 0;
  }
  assert_true(negative > 0); /* there was something to be afraid of */
  for (int i = 0; i < N; i++) assert_true(isfinite(w[i]));
}

/* ---- Muon ---- */

/* Near 0 the polynomial's slope is 3.4445, five times that is 485: so much of the rounding errors of the products, of
 * some 2 sqrt(k) eps, may a singular value show. lr * scale is 0.05 at most; the errors of the steps add up. */
static double muon_tolerance(int step) { return (step + 1) * 0.05 * 485 * 8 * (double)FLT_EPSILON; }

static void muon_is_the_polynomial_of_the_singular_values(void **state) {
  (void)state;
  Error err;
  SafetensorsFile file = golden_open();
  static const struct {
    const char *name, *gradients;
    int rows, cols;
  } matrices[] = {{"muon_5x3", "muon_5x3 gradients", 5, 3}, {"muon_4x6", "muon_4x6 gradients", 4, 6}};
  enum { MOST = 24 };
  static float path[2][STEPS * MOST];
  OptimizerSettings s;
  MuonTable table;
  memset(&table, 0, sizeof table);
  float w[2 * MOST], grad[2 * MOST] = {0}, zeros[2 * MOST] = {0};
  double wide[2][MOST], momentum[2][MOST] = {{0}}, slope[MOST];
  for (int m = 0; m < 2; m++) {
    const int count = matrices[m].rows * matrices[m].cols;
    const size_t shape[] = {STEPS, (size_t)count};
    golden_settings(&file, matrices[m].name, &s);
    if (safetensors_read_f32(&file, matrices[m].name, 2, shape, path[m], &err) != 0) fail_msg("%s", err.message);
    for (int i = 0; i < count; i++)
      w[m * MOST + i] = golden_uniform(matrices[m].name, (size_t)i), wide[m][i] = w[m * MOST + i];
    muon_table_add(&table, (size_t)m * MOST, matrices[m].rows, matrices[m].cols, 1);
  }
  int device_count = 0;
  if (cudaGetDeviceCount(&device_count) != cudaSuccess) device_count = 0;
  const int gpu = device_count > 0;
  float *device_w = NULL, *device_momentum = NULL, *device_grad = NULL, *workspace = NULL;
  if (gpu) {
    device_w = arrays_upload(DEVICE_GPU, w, 2 * MOST);
    device_momentum = arrays_upload(DEVICE_GPU, zeros, 2 * MOST);
    device_grad = arrays_upload(DEVICE_GPU, grad, 2 * MOST);
    workspace = guard_alloc(DEVICE_GPU, muon_table_floats(&table));
  }
  for (int step = 0; step < STEPS; step++) {
    for (int m = 0; m < 2; m++) {
      const int count = matrices[m].rows * matrices[m].cols;
      for (int i = 0; i < count; i++)
        slope[i] = grad[m * MOST + i] = golden_uniform(matrices[m].gradients, (size_t)(step * count + i));
      muon_update_cpu(wide[m], momentum[m], slope, matrices[m].rows, matrices[m].cols, s.lr, s.momentum,
                      s.weight_decay);
      for (int i = 0; i < count; i++)
        if (!(fabs(wide[m][i] - path[m][step * count + i]) < 1e-5))
          fail_msg("%s, step %d: element %d is %.9g in double; %.9g is expected", matrices[m].name, step + 1, i,
                   wide[m][i], (double)path[m][step * count + i]);
    }
#ifdef SIMT_REWRITTEN
    if (step >= 12) continue; /* an emulated GPU computes the first steps */
#endif
    if (!gpu) continue;
    device_upload(DEVICE_GPU, device_grad, grad, sizeof grad);
    muon_matrices_gpu(&table, device_w, device_momentum, device_grad, workspace, (float)s.lr, NULL, (float)s.momentum,
                      (float)s.weight_decay);
    device_download(DEVICE_GPU, w, device_w, sizeof w);
    for (int m = 0; m < 2; m++) {
      const int count = matrices[m].rows * matrices[m].cols;
      assert_close(w + m * MOST, path[m] + step * count, (size_t)count, 0, muon_tolerance(step));
    }
  }
  if (gpu) {
    arrays_download(DEVICE_GPU, NULL, device_w, 2 * MOST, "w");
    arrays_download(DEVICE_GPU, NULL, device_momentum, 2 * MOST, "momentum");
    arrays_download(DEVICE_GPU, NULL, workspace, muon_table_floats(&table), "workspace");
    arrays_download(DEVICE_GPU, NULL, device_grad, 2 * MOST, "grad");
  }
  safetensors_close(&file);
}

/* Of more than one tile, in one launch; of a random matrix the singular values end between 0.6 and 1.3. */
static void matrices_of_any_size_are_orthogonalised(void **state) {
  (void)state;
  test_requires_gpu();
  static const int sizes[][2] = {{33, 70}, {2, 2}, {65, 31}, {32, 32}, {3, 127}};
  enum { MATRICES = 5 };
  MuonTable table;
  memset(&table, 0, sizeof table);
  size_t at = 3, n;
  for (int m = 0; m < MATRICES; m++) {
    muon_table_add(&table, at, sizes[m][0], sizes[m][1], m & 1);
    at += (size_t)sizes[m][0] * sizes[m][1] + 5; /* what lies between them belongs to others */
  }
  n = at;
  float *w = arrays_random(n, 1), *momentum = arrays_random(n, 2), *grad = arrays_random(n, 3);
  float *expected = (float *)xmalloc(2 * n * sizeof *w), *expected_momentum = expected + n;
  memcpy(expected, w, n * sizeof *w);
  memcpy(expected_momentum, momentum, n * sizeof *w);
  float *device_w = arrays_upload(DEVICE_GPU, w, n), *device_momentum = arrays_upload(DEVICE_GPU, momentum, n);
  float *device_grad = arrays_upload(DEVICE_GPU, grad, n), *work = guard_alloc(DEVICE_GPU, muon_table_floats(&table));
  muon_matrices_gpu(&table, device_w, device_momentum, device_grad, work, 0.1f, NULL, 0.9f, 0.25f);
  for (int m = 0; m < MATRICES; m++) {
    const MuonMatrix *t = &table.matrix[m];
    muon_update_cpu(expected + t->parameter, expected_momentum + t->parameter, grad + t->parameter, t->rows, t->cols,
                    0.1f, 0.9f, t->decayed ? 0.25f : 0.0f);
  }
  arrays_download(DEVICE_GPU, w, device_w, n, "w");
  arrays_download(DEVICE_GPU, momentum, device_momentum, n, "momentum");
  arrays_download(DEVICE_GPU, NULL, device_grad, n, "grad");
  arrays_download(DEVICE_GPU, NULL, work, muon_table_floats(&table), "workspace");
  assert_close(momentum, expected_momentum, n, 0, 4 * (double)FLT_EPSILON);
  /* lr * scale is 0.23 at most; the products of 127 terms are off by some 20 eps. */
  assert_close(w, expected, n, 0, 0.23 * 485 * 24 * (double)FLT_EPSILON);
  for (int m = 0; m < MATRICES; m++) { /* x x^T has a diagonal between the squares of the singular values */
    const MuonMatrix *t = &table.matrix[m];
    const size_t count = (size_t)t->rows * t->cols;
    double squares = 0;
    float *x = (float *)xmalloc(count * sizeof *x);
    memcpy(x, grad + t->parameter, count * sizeof *x);
    muon_orthogonalize_cpu(x, t->rows, t->cols);
    for (size_t i = 0; i < count; i++) squares += (double)x[i] * x[i];
    const double rms = sqrt(squares / (t->rows < t->cols ? t->rows : t->cols));
    if (!(rms > 0.6 && rms < 1.3)) fail_msg("matrix %d: singular values of root mean square %g", m, rms);
    free(x);
  }
  free(w);
  free(momentum);
  free(grad);
  free(expected);
}

/* In a network the weight is a matrix, and the bias is AdamW's. */
static void muon_leaves_what_is_no_matrix_to_adamw(void **state) {
  (void)state;
  enum { IN = 6, OUT = 4, ALL = IN * OUT + OUT };
  OptimizerSettings settings = optimizer_named("muon")->usual;
  for (int device = DEVICE_CPU; device <= DEVICE_GPU; device++) {
    Error err;
    Model m;
    Context context;
    memset(&context, 0, sizeof context);
    context.device = (Device)device;
    if (device == DEVICE_GPU) test_requires_gpu();
    if (model_open(&m, test_net_graph(shape1(IN), OUT), context, &optimizer_muon, 1, MODEL_TRAIN, &err) != 0)
      fail_msg("%s", err.message);
    float w[ALL], grad[ALL], after[ALL], momentum[ALL] = {0}, square[ALL] = {0}, *slot[] = {momentum, square, NULL};
    test_random_fill(w, ALL, 1);
    test_random_fill(grad, ALL, 2);
    device_upload(m.context.device, m.parameters, w, sizeof w);
    device_upload(m.context.device, m.gradients, grad, sizeof grad);
    m.hyper = optimizer_hyper(&settings);
    model_update(&m);
    device_download(m.context.device, after, m.parameters, sizeof after);
    const size_t weight = model_find_param(&m, "fc.weight")->offset, bias = model_find_param(&m, "fc.bias")->offset;
    memset(&context, 0, sizeof context);
    muon_update_cpu(w + weight, momentum + weight, grad + weight, OUT, IN, m.hyper.lr, m.hyper.momentum,
                    m.hyper.weight_decay);
    for (int s = 0; s < 2; s++) slot[s] += bias;
    adamw_update(&context, w + bias, slot, grad + bias, OUT, OUT, &m.hyper);
    assert_close(after, w, ALL, 0, 1e-3 * 0.5 * 485 * 8 * (double)FLT_EPSILON + (double)FLT_EPSILON * 4);
    assert_int_equal(m.context.step, 1);
    model_close(&m);
  }
}

/* ---- steps that fp16 skips ---- */

enum { SKIP_IN = 5, SKIP_OUT = 3, SKIP_FLOATS = SKIP_OUT * (SKIP_IN + 1), SKIP_STEPS = 9 };

typedef struct SkipResult {
  float w[SKIP_FLOATS], slot[OPTIMIZER_MAX_SLOTS][SKIP_FLOATS], average[SKIP_FLOATS];
} SkipResult;

/* fp16: each step of which `overflows` says so has a gradient that is not finite. float32: these steps are not made.
 * Recorded: what changes from step to step lies in the device's memory. after: of each step. */
static void skip_steps(const Optimizer *optimizer, DType type, Device device, int recorded, const char *overflows,
                       SkipResult *after) {
  Error err;
  Model m;
  Context context;
  OptimizerSettings settings = optimizer_named("adam")->usual;
  Graph *g = test_net_graph(shape1(SKIP_IN), SKIP_OUT);
  memset(&context, 0, sizeof context);
  context.device = device;
  g->type = type; /* no operation has 16 bits here, but the gradients have their scale */
  if (model_open(&m, g, context, optimizer, 1, MODEL_TRAIN, &err) != 0) fail_msg("%s", err.message);
  settings.momentum = 0.9;
  settings.dampening = 0.25;
  settings.weight_decay = 0.125;
  m.hyper = optimizer_hyper(&settings);
  m.hyper.ema = 0.75;
  model_average_open(&m);
  model_init(&m, 1);
  StepValues *values = (StepValues *)device_alloc(device, sizeof *values);
  memset(after, 0, SKIP_STEPS * sizeof *after);
  for (int step = 0; step < SKIP_STEPS; step++) {
    float gradients[SKIP_FLOATS];
    const int overflow = overflows[step] == 'x';
    const double lr = 0.125 / (1 + step);
    test_random_fill(gradients, SKIP_FLOATS, (uint64_t)step);
    for (int i = 0; i < SKIP_FLOATS && m.loss_scale; i++) gradients[i] *= model_get_loss_scale(&m); /* a power of 2 */
    if (overflow) gradients[step % SKIP_FLOATS] = step % 2 ? -INFINITY : NAN;
    const StepValues now = model_step_values(&m, lr, m.context.step);
    device_upload(device, values, &now, sizeof now);
    device_upload(device, m.gradients, gradients, sizeof gradients);
    m.hyper.lr = recorded ? NAN : (float)lr;
    m.context.values = recorded ? values : NULL;
    model_unscale(&m);
    if (!overflow || m.loss_scale) model_update(&m);
    assert_true(m.context.values == (recorded ? values : NULL));
    device_download(device, after[step].w, m.parameters, sizeof after->w);
    device_download(device, after[step].average, m.average, sizeof after->average);
    for (int s = 0; s < optimizer->slots; s++) device_download(device, after[step].slot[s], m.slot[s], sizeof after->w);
  }
  device_free(device, values);
  model_close(&m);
}

/* What is skipped leaves no trace: the weights, the slots and the average are those of a float32 run that has no such
 * steps. A GPU computes Adam's corrections and the average's share itself, by the same products. */
static void check_skipping(Device device, int recorded) {
  static const char *const patterns[] = {"........x", ".x.xx...x", "xx.x....."};
  const Optimizer *optimizers[] = {&optimizer_sgd_momentum, &optimizer_adam, &optimizer_adamw,
                                   &optimizer_rmsprop[RMSPROP_CENTERED | RMSPROP_MOMENTUM]};
  for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++)
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
      SkipResult full[SKIP_STEPS], half[SKIP_STEPS];
      skip_steps(optimizers[o], DTYPE_FLOAT32, device, 0, patterns[p], full);
      skip_steps(optimizers[o], DTYPE_FP16, device, recorded, patterns[p], half);
      int taken = 0;
      for (int step = 0; step < SKIP_STEPS; step++) {
        taken += patterns[p][step] != 'x';
        /* before the first step the average is the weights; after it, their sum with a difference, which is rounded */
        const float *average = taken ? full[step].average : full[step].w;
        const int exact = taken == 0 || patterns[p][0] != 'x';
        if (memcmp(full[step].w, half[step].w, sizeof half->w) != 0 ||
            memcmp(full[step].slot, half[step].slot, sizeof half->slot) != 0)
          fail_msg("%s, %s: step %d of fp16 has other weights than float32", optimizers[o]->name, patterns[p],
                   step + 1);
        for (int i = 0; i < SKIP_FLOATS; i++)
          if (!(fabsf(half[step].average[i] - average[i]) <= (exact ? 0 : 2 * FLT_EPSILON)))
            fail_msg("%s, %s: after step %d the average of weight %d is %.9g, expected %.9g", optimizers[o]->name,
                     patterns[p], step + 1, i, half[step].average[i], average[i]);
      }
    }
}

static void skipped_steps_leave_no_trace_cpu(void **state) {
  (void)state;
  check_skipping(DEVICE_CPU, 0);
  check_skipping(DEVICE_CPU, 1);
}

static void skipped_steps_leave_no_trace_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_skipping(DEVICE_GPU, 0);
  check_skipping(DEVICE_GPU, 1);
}

/* base^t beside the C library's. */
static void powers_are_those_of_the_library(void **state) {
  (void)state;
  const double bases[] = {0, 0.5, 0.9, 0.999, AVERAGE_MOST};
  for (size_t b = 0; b < sizeof bases / sizeof *bases; b++)
    for (long t = 0; t < 3000000; t = 2 * t + 1 + t / 3) {
      const double expected = pow(bases[b], (double)t), got = step_power(bases[b], t);
      if (!(fabs(got - expected) <= 4e-16 * ((double)t + 1) * expected))
        fail_msg("%g^%ld: %.17g, expected %.17g", bases[b], t, got, expected);
    }
}

/* ---- the table ---- */

static void slots_follow_from_the_settings(void **state) {
  (void)state;
  OptimizerSettings s = optimizer_named("rmsprop")->usual;
  const OptimizerChoice *rmsprop = optimizer_named("rmsprop"), *descent = optimizer_named("sgd");
  assert_int_equal(rmsprop->choose(&s)->slots, 1);
  s.momentum = 0.5;
  assert_string_equal(rmsprop->choose(&s)->slot[1], "momentum_buffer");
  s.centered = 1;
  assert_int_equal(rmsprop->choose(&s)->slots, 3);
  s.momentum = 0;
  assert_string_equal(rmsprop->choose(&s)->slot[1], "grad_avg");
  s = descent->usual;
  assert_int_equal(descent->choose(&s)->slots, 1);
  s.momentum = 0;
  assert_int_equal(descent->choose(&s)->slots, 0);
  assert_null(optimizer_named("adagrad"));
  for (int i = 0; i < OPTIMIZERS; i++) {
    Error err;
    const OptimizerChoice *choice = optimizer_at(i);
    assert_string_equal(choice->choose(&choice->usual)->name, choice->name);
    assert_true(choice->choose(&choice->usual)->reads & OPTIMIZER_READS_VALUES);
    assert_int_equal(optimizer_check(choice, &choice->usual, choice->reads, &err), 0);
  }
  assert_null(optimizer_at(OPTIMIZERS));
}

static void nonsense_is_refused(void **state) {
  (void)state;
  Error err;
  const OptimizerChoice *descent = optimizer_named("sgd"), *adam = optimizer_named("adam");
  OptimizerSettings s = descent->usual;
  assert_int_equal(optimizer_check(adam, &adam->usual, OPTIMIZER_MOMENTUM, &err), -1);
  assert_string_equal(err.message,
                      "--momentum: --optimizer=adam does not use it; its own settings are --beta1, --beta2, --epsilon");
  s.nesterov = 1;
  assert_int_equal(optimizer_check(descent, &s, OPTIMIZER_NESTEROV, &err), 0);
  s.dampening = 0.5;
  assert_int_equal(optimizer_check(descent, &s, OPTIMIZER_NESTEROV, &err), -1);
  assert_non_null(strstr(err.message, "--nesterov needs a --momentum above 0 and no --dampening"));
  s.nesterov = 0;
  s.momentum = 0;
  assert_int_equal(optimizer_check(descent, &s, 0, &err), -1);
  assert_non_null(strstr(err.message, "--dampening=0.5 is of the momentum, which is 0"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_definitions_are_pytorchs),
      cmocka_unit_test(the_loops_step_as_pytorch_does),
      cmocka_unit_test(the_kernels_step_as_pytorch_does),
      cmocka_unit_test(loops_take_any_length),
      cmocka_unit_test(kernels_take_any_length),
      cmocka_unit_test(a_constant_gradient_has_no_negative_variance),
      cmocka_unit_test(skipped_steps_leave_no_trace_cpu),
      cmocka_unit_test(skipped_steps_leave_no_trace_gpu),
      cmocka_unit_test(powers_are_those_of_the_library),
      cmocka_unit_test(muon_is_the_polynomial_of_the_singular_values),
      cmocka_unit_test(matrices_of_any_size_are_orthogonalised),
      cmocka_unit_test(muon_leaves_what_is_no_matrix_to_adamw),
      cmocka_unit_test(slots_follow_from_the_settings),
      cmocka_unit_test(nonsense_is_refused),
  };
  return TEST_MAIN("optimizer", tests);
}
