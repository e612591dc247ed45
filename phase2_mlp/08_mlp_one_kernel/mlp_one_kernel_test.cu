/* All versions of an epoch learn what the loops learn; again and again, on graphs that were captured before. */
#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_layers.cuh"
#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_lesson.cuh"

#include "common/lesson/verify.h"
#include "common/test.h"

static const struct {
  const char *name;
  MlpLauncher *train;
} versions[] = {{"layers", mlp_epoch_layers}, {"step_graph", mlp_epoch_step_graph}, {"fused", mlp_epoch_fused},
                {"graph", mlp_epoch_graph},   {"grid_sync", mlp_epoch_grid_sync},   {"barrier", mlp_epoch_barrier},
                {"flags", mlp_epoch_flags}};
enum { VERSIONS = sizeof versions / sizeof *versions };

/* Losses and parameters on ragged shapes, between guard bands, twice with the same bits. */
static void every_version_learns_what_the_loops_learn(void **state) {
  (void)state;
  test_requires_gpu();
  Lesson lesson = mlp_lesson();
  for (int v = 0; v < VERSIONS; v++) {
    LessonVersion version = mlp_version(versions[v].name, versions[v].train, "");
    LessonResult result;
    if (lesson_verify_all(&lesson, &version, 1, &result) != 0) fail_msg("%s", result.message);
  }
}

enum { COUNT = 21, INPUTS = 130, HIDDEN = 11, CLASSES = 10, BATCH = 8, EPOCHS = 3 };

/* An epoch's memory on a device, the same contents on each. */
static MlpEpoch epoch_create(Device device) {
  MlpEpoch e = MlpEpoch();
  uint8_t images[COUNT * INPUTS], labels[COUNT];
  e.inputs = INPUTS;
  e.hidden = HIDDEN;
  e.classes = CLASSES;
  e.batch = BATCH;
  e.count = COUNT;
  e.mean = 0.4f;
  e.stddev = 0.3f;
  e.lr = 0.02f;
  e.momentum = 0.9f;
  for (int i = 0; i < COUNT * INPUTS; i++) images[i] = (uint8_t)(philox4x32(1, 0, i).word[0] >> 24);
  for (int i = 0; i < COUNT; i++) labels[i] = (uint8_t)(philox4x32(1, 1, i).word[0] % CLASSES);
  size_t n = mlp_parameter_count(&e);
  float *parameters = (float *)xmalloc(n * sizeof *parameters);
  test_random_fill(parameters, n, 3);
  for (size_t i = 0; i < n; i++) parameters[i] *= 0.2f;
  e.images = (uint8_t *)device_alloc(device, sizeof images);
  e.labels = (uint8_t *)device_alloc(device, sizeof labels);
  e.order = (uint32_t *)device_alloc(device, COUNT * sizeof(uint32_t));
  e.parameters = (float *)device_alloc(device, n * sizeof(float));
  e.velocity = (float *)device_alloc(device, n * sizeof(float));
  e.losses = (float *)device_alloc(device, COUNT * sizeof(float));
  device_upload(device, (void *)e.images, images, sizeof images);
  device_upload(device, (void *)e.labels, labels, sizeof labels);
  device_upload(device, e.parameters, parameters, n * sizeof(float));
  free(parameters);
  return e;
}

static void epoch_destroy(Device device, const MlpEpoch *e) {
  device_free(device, (void *)e->images);
  device_free(device, (void *)e->labels);
  device_free(device, (void *)e->order);
  device_free(device, e->parameters);
  device_free(device, e->velocity);
  device_free(device, e->losses);
}

/* A new order: 5, 5 + step, 5 + 2 step, ... */
static void epoch_shuffle(Device device, const MlpEpoch *e, int step) {
  uint32_t order[COUNT];
  for (int i = 0; i < COUNT; i++) order[i] = (uint32_t)((5 + i * step) % COUNT);
  device_upload(device, (void *)e->order, order, sizeof order);
  device_synchronize(device);
}

/* Three epochs by one run: graphs launched again, flags begin anew, momentum goes on; the last step has 5 images. */
static void epochs_follow_each_other(void **state) {
  (void)state;
  test_requires_gpu();
  static const int steps[EPOCHS] = {1, 2, 5};
  MlpEpoch expected = epoch_create(DEVICE_CPU);
  size_t n = mlp_parameter_count(&expected);
  for (int i = 0; i < EPOCHS; i++) {
    epoch_shuffle(DEVICE_CPU, &expected, steps[i]);
    mlp_epoch_cpu(&expected);
  }
  float *actual = (float *)xmalloc(n * sizeof *actual);
  for (int v = 0; v < VERSIONS; v++) {
    MlpEpoch e = epoch_create(DEVICE_GPU);
    MlpRun run;
    mlp_open(&run, &e);
    for (int i = 0; i < EPOCHS; i++) {
      epoch_shuffle(DEVICE_GPU, &e, steps[i]);
      versions[v].train(&run);
      device_synchronize(DEVICE_GPU);
    }
    mlp_close(&run);
    const float *const gpu[] = {e.losses, e.parameters, e.velocity};
    const float *const cpu[] = {expected.losses, expected.parameters, expected.velocity};
    const char *const names[] = {"losses", "parameters", "velocity"};
    for (int a = 0; a < 3; a++) {
      size_t count = a == 0 ? (size_t)COUNT : n;
      device_download(DEVICE_GPU, actual, gpu[a], count * sizeof(float));
      Comparison c = compare_arrays(actual, cpu[a], 1, count, tolerance_make(1e-4, 1e-4));
      if (!c.ok) fail_msg("%s, %s: %s", versions[v].name, names[a], c.message);
    }
    epoch_destroy(DEVICE_GPU, &e);
  }
  epoch_destroy(DEVICE_CPU, &expected);
  free(actual);
}

/* A step's gradients by the loops, against central differences of the mean loss in double: with momentum 0 and lr 1 a
 * step moves each parameter by its gradient. */
static double mean_loss(const MlpEpoch *e, const double *p) {
  const double *w1 = p, *b1 = w1 + HIDDEN * INPUTS, *w2 = b1 + HIDDEN, *b2 = w2 + CLASSES * HIDDEN;
  double loss = 0;
  for (int b = 0; b < BATCH; b++) {
    double h[HIDDEN], logits[CLASSES], total = 0;
    for (int u = 0; u < HIDDEN; u++) {
      h[u] = b1[u];
      for (int i = 0; i < INPUTS; i++)
        h[u] += w1[u * INPUTS + i] * batch_normalize(e->images[e->order[b] * INPUTS + i], e->mean, e->stddev);
      if (h[u] < 0) h[u] = 0;
    }
    for (int c = 0; c < CLASSES; c++) {
      logits[c] = b2[c];
      for (int u = 0; u < HIDDEN; u++) logits[c] += w2[c * HIDDEN + u] * h[u];
      total += exp(logits[c]);
    }
    loss += log(total) - logits[e->labels[e->order[b]]];
  }
  return loss / BATCH;
}

static void the_loops_follow_the_gradient(void **state) {
  (void)state;
  MlpEpoch e = epoch_create(DEVICE_CPU);
  epoch_shuffle(DEVICE_CPU, &e, 1);
  e.count = BATCH;
  e.lr = 1;
  e.momentum = 0;
  size_t n = mlp_parameter_count(&e);
  double *p = (double *)xmalloc(n * sizeof *p);
  float *gradient = (float *)xmalloc(2 * n * sizeof *gradient), *expected = gradient + n;
  for (size_t i = 0; i < n; i++) p[i] = e.parameters[i];
  for (size_t i = 0; i < n; i++) {
    double h = 1e-6, kept = p[i];
    p[i] = kept + h;
    double above = mean_loss(&e, p);
    p[i] = kept - h;
    expected[i] = (float)((above - mean_loss(&e, p)) / (2 * h));
    p[i] = kept;
  }
  mlp_epoch_cpu(&e);
  for (size_t i = 0; i < n; i++) gradient[i] = (float)(p[i] - e.parameters[i]);
  assert_close(gradient, expected, n, 1e-4, 1e-6);
  epoch_destroy(DEVICE_CPU, &e);
  free(p);
  free(gradient);
}

/* What a step of kernels is: the ladder's claims. */
static void launches_are_as_claimed(void **state) {
  (void)state;
  test_requires_gpu();
  MlpEpoch e = epoch_create(DEVICE_GPU);
  epoch_shuffle(DEVICE_GPU, &e, 1);
  MlpRun run;
  mlp_open(&run, &e);
  mlp_epoch_fused(&run);
  assert_int_equal(run.nodes, 3);
  device_synchronize(DEVICE_GPU);
  mlp_close(&run);
  mlp_open(&run, &e);
  mlp_epoch_graph(&run);
  assert_int_equal(run.nodes, 3 * 3); /* of 8, 8 and 5 images */
  device_synchronize(DEVICE_GPU);
  mlp_close(&run);
  mlp_open(&run, &e);
  mlp_epoch_step_graph(&run);
  assert_true(run.nodes > 8);
  assert_true(run.graph != NULL && run.tail != NULL);
  device_synchronize(DEVICE_GPU);
  mlp_close(&run);
  epoch_destroy(DEVICE_GPU, &e);
}

static void what_is_too_large_is_refused(void **state) {
  (void)state;
  Error err;
  MlpEpoch most = MlpEpoch();
  most.inputs = 896;
  most.hidden = 128;
  most.classes = 16;
  most.batch = 64;
  assert_int_equal(mlp_check(&most, &err), 0);
  for (int i = 0; i < 4; i++) {
    MlpEpoch e = most;
    int *const sizes[] = {&e.inputs, &e.hidden, &e.classes, &e.batch};
    ++*sizes[i];
    assert_int_equal(mlp_check(&e, &err), -1);
    assert_non_null(strstr(err.message, "these kernels take networks up to 896-128-16 and batches of up"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_too_large_is_refused),
      cmocka_unit_test(the_loops_follow_the_gradient),
      cmocka_unit_test(every_version_learns_what_the_loops_learn),
      cmocka_unit_test(epochs_follow_each_other),
      cmocka_unit_test(launches_are_as_claimed),
  };
  return TEST_MAIN("mlp_one_kernel", tests);
}
