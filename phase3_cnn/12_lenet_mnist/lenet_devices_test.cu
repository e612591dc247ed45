/* LeNet-5 on both devices: the GPU follows the CPU's losses step by step, and each device repeats itself bit by bit. */
#include "common/runfiles.h"
#include "common/test.h"
#include "phase2_mlp/image_set.cuh"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"

#ifdef SIMT_REWRITTEN /* the emulated GPU needs 50 ms for a step */
enum { STEPS = 30, BATCH = 64, IMAGES = 8192 };
#else
enum { STEPS = 100, BATCH = 64, IMAGES = 8192 };
#endif

typedef struct Run {
  double losses[STEPS];
  float *parameters; /* after the last step */
  size_t parameter_count;
} Run;

/* A hundred steps on real digits, at a constant learning rate that both devices survive from the first step on. */
static Run train(Device device) {
  Error err;
  char directory[PATH_MAX];
  MnistSet host;
  if (runfiles_find("third_party/data/mnist", directory, sizeof directory, &err) != 0 ||
      mnist_load(directory, "train", &host, &err) != 0)
    fail_msg("%s", err.message);
  static Model lenet;
  lenet_create(&lenet, device, BATCH);
  Model *net = &lenet;
  model_init(net, 1);
  ImageSet set;
  image_set_create(&set, device, &host, IMAGES, 0.1307f, 0.3081f);
  image_set_shuffle(&set, 1, 0);

  Run run;
  for (int step = 0; step < STEPS; step++) {
    Totals none = {0, 0};
    model_reset_totals(net, 0, none);
    image_set_gather(&set, net, step * BATCH, BATCH);
    sgd_train_step(net, BATCH, 0.01f, 0.9f);
    run.losses[step] = model_read_totals(net, 0).loss / BATCH;
  }
  run.parameter_count = net->parameter_count;
  run.parameters = (float *)xmalloc(net->parameter_count * sizeof(float));
  device_download(device, run.parameters, net->parameters, net->parameter_count * sizeof(float));
  image_set_destroy(&set);
  model_close(net);
  mnist_free(&host);
  return run;
}

static void check_repeats(Device device) {
  Run a = train(device), b = train(device);
  assert_memory_equal(a.losses, b.losses, sizeof a.losses);
  assert_memory_equal(a.parameters, b.parameters, a.parameter_count * sizeof(float));
  assert_true(a.losses[STEPS - 1] < a.losses[0] / 2); /* it learns, too */
  free(a.parameters);
  free(b.parameters);
}

static void cpu_repeats_itself(void **state) {
  (void)state;
  check_repeats(DEVICE_CPU);
}

static void gpu_repeats_itself(void **state) {
  (void)state;
  test_requires_gpu();
  check_repeats(DEVICE_GPU);
}

static void gpu_follows_cpu(void **state) {
  (void)state;
  test_requires_gpu();
  Run cpu = train(DEVICE_CPU), gpu = train(DEVICE_GPU);
  double largest = 0;
  for (int step = 0; step < STEPS; step++) {
    double difference = fabs(cpu.losses[step] - gpu.losses[step]);
    if (!(difference <= 1e-4))
      fail_msg("step %d: loss %.6f on the CPU, %.6f on the GPU", step, cpu.losses[step], gpu.losses[step]);
    largest = fmax(largest, difference);
  }
  print_message("largest difference of the losses of %d steps: %.2e\n", STEPS, largest);
  free(cpu.parameters);
  free(gpu.parameters);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cpu_repeats_itself), cmocka_unit_test(gpu_repeats_itself),
                                     cmocka_unit_test(gpu_follows_cpu)};
  return TEST_MAIN("lenet_devices", tests);
}
