/* Multi-layer perceptrons against PyTorch: from the same seed the same weights, the same order of the same images, and
 * over a hundred steps of SGD the same losses, on the CPU and on the GPU. tools/golden/mlp_golden.py made the file. */
#include "common/runfiles.h"
#include "common/test.h"
#include "phase2_mlp/03_mlp/mlp.cuh"
#include "phase2_mlp/05_batches/batches_op.cuh"

enum { IMAGES = 6400, BATCH = 64, STEPS = 100, NETWORKS = 4 };

static DataSet mnist;

typedef struct Golden {
  MlpShape shape;
  uint64_t seed;
  double losses[STEPS];
} Golden;

/* "784-128-10 relu,1,3.27095785,..." */
static void golden_parse(Golden *g, char *line) {
  Error err;
  char *comma = strchr(line, ','), *at;
  if (comma == NULL) fail_msg("\"%.40s\" has no comma", line);
  *comma = '\0';
  for (char *c = line; *c != '\0'; c++)
    if (*c == '-') *c = ',';
  if (mlp_parse(&g->shape, line, &err) != 0) fail_msg("%s", err.message);
  g->seed = strtoull(comma + 1, &at, 10);
  for (int step = 0; step < STEPS; step++) {
    if (*at != ',') fail_msg("%s: %d losses instead of %d", line, step, STEPS);
    g->losses[step] = strtod(at + 1, &at);
  }
  if (*at != '\n') fail_msg("%s: more than %d losses", line, STEPS);
}

static void golden_read(Golden *golden) {
  Error err;
  char path[PATH_MAX], line[4096];
  int count = 0;
  if (runfiles_find("phase2_mlp/03_mlp/testdata/mlp_golden.csv", path, sizeof path, &err) != 0)
    fail_msg("%s", err.message);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    if (line[0] == '#') continue;
    assert_true(count < NETWORKS);
    golden_parse(&golden[count++], line);
  }
  fclose(file);
  assert_int_equal(count, NETWORKS);
}

static void follow(const Golden *g, Device device) {
  static Model mlp;
  char text[MLP_TEXT];
  mlp_text(&g->shape, text);
  mlp_create(&mlp, &g->shape, device, BATCH);
  Model *net = &mlp;
  net->hyper.weight_decay = 3e-4f;
  model_init(net, g->seed);
  const DataNorm norm = {1, {0.1307f}, {0.3081f}};
  DeviceSet set;
  device_set_create(&set, device, &batch_kernels, &mnist, IMAGES, &norm);
  device_set_shuffle(&set, g->seed, 0);
  double largest = 0;
  for (int step = 0; step < STEPS; step++) {
    Totals none = {0, 0};
    model_reset_totals(net, 0, none);
    device_set_gather(&set, net, step * BATCH, BATCH);
    sgd_train_step(net, BATCH, 0.03f, 0.9f);
    double loss = model_read_totals(net, 0).loss / BATCH, difference = fabs(loss - g->losses[step]);
    if (!(difference <= 1e-4))
      fail_msg("%s, step %d: loss %.6f on the %s, %.6f in PyTorch", text, step, loss, device_name(device),
               g->losses[step]);
    largest = fmax(largest, difference);
  }
  print_message("%s, %s: largest difference from PyTorch's losses in %d steps: %.1e\n", text, device_name(device),
                STEPS, largest);
  device_set_destroy(&set);
  model_close(net);
}

static void follow_all(Device device) {
  static Golden golden[NETWORKS];
  golden_read(golden);
  for (int i = 0; i < NETWORKS; i++) follow(&golden[i], device);
}

static void cpu_follows_pytorch(void **state) {
  (void)state;
  follow_all(DEVICE_CPU);
}

static void gpu_follows_pytorch(void **state) {
  (void)state;
  test_requires_gpu();
  follow_all(DEVICE_GPU);
}

int main(void) {
  Error err;
  if (data_load(&data_mnist, "", DATA_TRAIN, &mnist, &err) != 0) die("%s", err.message);
  const struct CMUnitTest tests[] = {cmocka_unit_test(cpu_follows_pytorch), cmocka_unit_test(gpu_follows_pytorch)};
  return TEST_MAIN("mlp_golden", tests);
}
