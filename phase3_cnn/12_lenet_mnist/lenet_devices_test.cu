/* LeNet-5 on both devices: the GPU follows the CPU's losses step by step, and each device repeats itself bit by bit. */
#include <pthread.h>

#include "common/test.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
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
  DataSet host;
  if (data_load(&data_mnist, "", DATA_TRAIN, &host, &err) != 0) fail_msg("%s", err.message);
  static Model lenet;
  lenet_create(&lenet, device, BATCH);
  Model *net = &lenet;
  model_init(net, 1);
  const DataNorm norm = {1, {0.1307f}, {0.3081f}};
  DeviceSet set;
  device_set_create(&set, device, &batch_kernels, &host, IMAGES, &norm);
  device_set_shuffle(&set, 1, 0);

  Run run;
  for (int step = 0; step < STEPS; step++) {
    Totals none = {0, 0};
    model_reset_totals(net, 0, none);
    device_set_gather(&set, net, step * BATCH, BATCH);
    sgd_train_step(net, BATCH, 0.01f, 0.9f);
    run.losses[step] = model_read_totals(net, 0).loss / BATCH;
  }
  run.parameter_count = net->parameter_count;
  run.parameters = (float *)xmalloc(net->parameter_count * sizeof(float));
  device_download(device, run.parameters, net->parameters, net->parameter_count * sizeof(float));
  device_set_destroy(&set);
  model_close(net);
  data_free(&host);
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

/* ---- side by side ---- */

enum { SIDE_STEPS = 3, SIDE_BATCH = 9, SIDE_IMAGES = SIDE_STEPS * SIDE_BATCH };

typedef struct Side {
  pthread_t thread;
  int gpu;
  float *parameters;
  size_t count;
} Side;

static uint8_t side_images[SIDE_IMAGES * 28 * 28];
static int side_labels[SIDE_IMAGES];

/* Random images; all kernels of a LeNet, and those of the batches. */
static void *side_run(void *argument) {
  Side *side = (Side *)argument;
  Error err;
  Model net;
  DeviceSet set;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = DEVICE_GPU;
  context.gpu = side->gpu;
  const DataSet host = {shape3(1, 28, 28), SIDE_IMAGES, 10, side_images, side_labels};
  const DataNorm norm = {1, {0.5f}, {0.3f}};
  if (model_open(&net, lenet_graph(), context, &sgd, SIDE_BATCH, MODEL_TRAIN, &err) != 0) die("%s", err.message);
  model_init(&net, 1);
  device_set_create(&set, DEVICE_GPU, &batch_kernels, &host, SIDE_IMAGES, &norm);
  device_set_shuffle(&set, 1, 0);
  for (int step = 0; step < SIDE_STEPS; step++) {
    device_set_gather(&set, &net, step * SIDE_BATCH, SIDE_BATCH);
    sgd_train_step(&net, SIDE_BATCH, 0.01f, 0.9f);
  }
  side->count = net.parameter_count;
  side->parameters = (float *)xmalloc(side->count * sizeof(float));
  device_download(DEVICE_GPU, side->parameters, net.parameters, side->count * sizeof(float));
  device_set_destroy(&set);
  model_close(&net);
  return NULL;
}

/* Two networks in two host threads, on two GPUs where there are two, learn what one alone learns: no launcher keeps
 * anything of theirs. */
static void two_networks_do_not_meet(void **state) {
  (void)state;
  test_requires_gpu();
  static Side alone, side[2];
  int devices = 0;
  CUDA_CHECK(cudaGetDeviceCount(&devices));
#ifdef SIMT_REWRITTEN
  assert_int_equal(devices, 2);
#endif
  for (int i = 0; i < SIDE_IMAGES * 28 * 28; i++) side_images[i] = (uint8_t)philox4x32(1, 9, (uint64_t)i).word[0];
  for (int i = 0; i < SIDE_IMAGES; i++) side_labels[i] = i * 7 % 10;
  side_run(&alone);
  for (int i = 0; i < 2; i++) {
    side[i].gpu = i < devices ? i : 0;
    assert_int_equal(pthread_create(&side[i].thread, NULL, side_run, &side[i]), 0);
  }
  for (int i = 0; i < 2; i++) {
    assert_int_equal(pthread_join(side[i].thread, NULL), 0);
    assert_memory_equal(side[i].parameters, alone.parameters, alone.count * sizeof(float));
    free(side[i].parameters);
  }
  free(alone.parameters);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cpu_repeats_itself), cmocka_unit_test(gpu_repeats_itself),
                                     cmocka_unit_test(gpu_follows_cpu), cmocka_unit_test(two_networks_do_not_meet)};
  return TEST_MAIN("lenet_devices", tests);
}
