/* nncuda_call_test.cu - what every function does beside computing: arguments that are wrong, each with its sentence;
 * versions; threads. */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "phase5_production/05_pytorch/test_nncuda.h"

enum { F32 = NNCUDA_FLOAT32, N = 12 };

static float numbers[64], *const x = numbers;
static float *const odd = (float *)((char *)numbers + 2);

/* Fails with `status`, in exactly these words, which name the argument. */
static void expect(int got, int status, const char *argument, const char *message) {
  if (got != status || strcmp(nncuda_last_argument(), argument) != 0 || strcmp(nncuda_last_error(), message) != 0)
    fail_msg("%s, argument \"%s\": %s", nncuda_status_name(got), nncuda_last_argument(), nncuda_last_error());
}

static void arguments(void **state) {
  (void)state;
  expect(nncuda_softmax_forward(-1, NULL, F32, NULL, x, 3, 4), NNCUDA_BAD_ARGUMENT, "y",
         "nncuda_softmax_forward: y is NULL; expected an array");
  expect(nncuda_softmax_forward(-1, NULL, F32, x, x, -3, 4), NNCUDA_BAD_ARGUMENT, "rows",
         "nncuda_softmax_forward: rows is -3; expected 1 to 2147483647");
  expect(nncuda_softmax_forward(-1, NULL, F32, x, x, 3, (int64_t)1 << 32), NNCUDA_BAD_ARGUMENT, "cols",
         "nncuda_softmax_forward: cols is 4294967296; expected 1 to 2147483647");
  expect(nncuda_softmax_forward(-1, NULL, 7, x, x, 3, 4), NNCUDA_BAD_ARGUMENT, "dtype",
         "nncuda_softmax_forward: dtype is 7; expected 0 (float32), 1 (float16), 2 (bfloat16) or 3 (tf32)");
  expect(nncuda_softmax_forward(-1, NULL, NNCUDA_FLOAT16, x, x, 3, 4), NNCUDA_UNSUPPORTED, "dtype",
         "nncuda_softmax_forward: dtype is float16; there are kernels for float32 alone");
  expect(nncuda_attention_forward(-1, NULL, NNCUDA_FLOAT16, x, x, x, x, x, 1, 1, 1, 1, 0), NNCUDA_UNSUPPORTED, "dtype",
         "nncuda_attention_forward: dtype is float16; there are kernels for float32 and bfloat16");
  expect(nncuda_attention_forward(-1, NULL, F32, x, x, x, x, x, 1 << 12, 1 << 12, 1 << 12, 1, 0), NNCUDA_BAD_ARGUMENT,
         "batch * heads * length",
         "nncuda_attention_forward: batch * heads * length is 68719476736; expected at most 2147483647; call it for "
         "parts of the batch");
  expect(nncuda_activation_forward(-1, NULL, F32, 4, x, x, N), NNCUDA_BAD_ARGUMENT, "activation",
         "nncuda_activation_forward: activation is 4; expected 0 to 3");
  expect(nncuda_dropout(-1, NULL, F32, x, x, N, NAN, 1, 1), NNCUDA_BAD_ARGUMENT, "p",
         "nncuda_dropout: p is nan; expected 0 to 1");
  expect(nncuda_layer_norm_forward(-1, NULL, F32, x, x, x, x, x, 1e-3, 2, 2), NNCUDA_UNSUPPORTED, "epsilon",
         "nncuda_layer_norm_forward: epsilon is 0.001; expected 1e-05, which is a constant of the kernels");
  expect(
      nncuda_linear_backward(-1, NULL, F32, x, x, x, x, x, x, x, 4, 2, 3, 1, x, 8), NNCUDA_BAD_ARGUMENT,
      "workspace_bytes",
      "nncuda_linear_backward: workspace_bytes is 8; expected 48 or more: ask the _workspace() function for the same "
      "device and sizes");
  expect(nncuda_batch_norm_forward(-1, NULL, F32, x, x, x, x, x, x, x, x, x, x, 0, 0.1, 1e-5, 1, 3, 1, NULL, 0),
         NNCUDA_BAD_ARGUMENT, "n",
         "nncuda_batch_norm_forward: batch norm in training got the shape (1,3,1,1), which is 1 value per channel; "
         "expected at least 2, because the variance of one value is 0; use a batch of 2 or more images");
}

static void shapes(void **state) {
  (void)state;
  nncuda_conv2d_shape conv = {1, 4, 3, 3, 4, 5, 5, 1, 1, 0, 0, 1, 1, 1};
  nncuda_pool2d_shape pool = {1, 1, 4, 4, 2, 2, 2, 2, 2, 0, 1, 1, 0};
  int64_t p, q;
  expect(
      nncuda_conv2d_output(&conv, &p, &q), NNCUDA_BAD_ARGUMENT, "shape",
      "nncuda_conv2d_output: shape: convolution of (1,4,3,3) with (4,4,5,5), stride 1 x 1, padding 0 x 0: the filter "
      "spans 5 x 5, and the padded image is 3 x 3; use a smaller filter, less dilation or more padding");
  conv.r = conv.s = 3;
  conv.groups = 3;
  expect(
      nncuda_conv2d_forward(-1, NULL, F32, x, x, x, NULL, NULL, 0, &conv, NULL, 0), NNCUDA_BAD_ARGUMENT, "shape",
      "nncuda_conv2d_forward: shape: convolution of (1,4,3,3) with (4,1,3,3), stride 1 x 1, padding 0 x 0, 3 groups: "
      "groups must divide the 4 channels and the 4 filters");
  conv.c = (int64_t)1 << 40;
  expect(nncuda_conv2d_output(&conv, &p, &q), NNCUDA_BAD_ARGUMENT, "shape.c",
         "nncuda_conv2d_output: shape.c is 1099511627776; expected 1 to 536870911");
  assert_int_equal(nncuda_conv2d_workspace(-1, &conv), 0);
  expect(nncuda_pool2d_output(NULL, &p, &q), NNCUDA_BAD_ARGUMENT, "shape",
         "nncuda_pool2d_output: shape is NULL; expected an array");
  expect(nncuda_pool2d_output(&pool, &p, &q), NNCUDA_BAD_ARGUMENT, "shape",
         "nncuda_pool2d_output: shape: pooling with windows of 2 rows and padding 2: the padding is more than half of "
         "the window, so that some window could lie in it; use at most 1");
}

static void tensors(void **state) {
  (void)state;
  float *w[] = {x, x, odd};
  const float *grad[] = {x, NULL, x};
  int64_t length[] = {1, 1, 1};
  expect(nncuda_sgd_step(-1, NULL, 3, w, grad, NULL, length, 0.1, 0, 0, 0, 0, 0), NNCUDA_BAD_ARGUMENT, "grad[1]",
         "nncuda_sgd_step: grad[1] is NULL; expected an array");
  grad[1] = x;
  length[1] = -1;
  expect(nncuda_sgd_step(-1, NULL, 3, w, grad, NULL, length, 0.1, 0, 0, 0, 0, 0), NNCUDA_BAD_ARGUMENT, "length[1]",
         "nncuda_sgd_step: length[1] is -1; expected 0 to 2147479551");
  length[1] = 0;
  assert_int_equal(nncuda_sgd_step(-1, NULL, 3, w, grad, NULL, length, 0.1, 0, 0, 0, 0, 0), NNCUDA_BAD_ARGUMENT);
  assert_string_equal(nncuda_last_argument(), "w[2]");
  expect(nncuda_adam_step(-1, NULL, 1, w, grad, w, w, length, 0.1, 0.9, 1, 1e-8, 0, 0, 1), NNCUDA_BAD_ARGUMENT, "beta2",
         "nncuda_adam_step: beta2 is 1; expected 0 to 1");
}

static void devices_and_versions(void **state) {
  (void)state;
  char name[8];
  assert_int_equal(nncuda_softmax_forward(99, NULL, F32, x, x, 3, 4), NNCUDA_NO_DEVICE);
  assert_string_equal(nncuda_last_argument(), "device");
  assert_non_null(strstr(nncuda_last_error(), "nncuda_softmax_forward: device is 99; expected 0 to "));
  assert_int_equal(nncuda_softmax_forward(-2, NULL, F32, x, x, 3, 4), NNCUDA_NO_DEVICE);
  assert_int_equal(nncuda_device_name(0, name, sizeof name), NNCUDA_OK);
  assert_true(strlen(name) < sizeof name);
  assert_true(nncuda_device_count() >= 1);
  assert_int_equal(nncuda_version(), NNCUDA_VERSION);
  assert_int_equal(nncuda_check_version(NNCUDA_VERSION), NNCUDA_OK);
  expect(nncuda_check_version(NNCUDA_VERSION + 100), NNCUDA_VERSION_MISMATCH, "version",
         "nncuda_check_version: version is 1.1.0, and the library that was loaded is 1.0.0; expected a library that is "
         "at least as new as its caller; look for an old libnncuda.so.1 on LD_LIBRARY_PATH");
  assert_int_equal(nncuda_check_version(20000), NNCUDA_VERSION_MISMATCH);
  assert_string_equal(nncuda_status_name(NNCUDA_CUDA), "NNCUDA_CUDA");
  assert_string_equal(nncuda_status_name(77), "an unknown status");
}

static void checks_can_be_switched(void **state) {
  (void)state;
  assert_int_equal(nncuda_set_checks(1), 0);
  Twice a = twice_random(N, 1), y = twice_poison(N);
  BOTH(nncuda_activation_forward(device, NULL, F32, NNCUDA_RELU, y.at[on], a.at[on], N));
#ifndef SIMT_REWRITTEN /* the emulated GPU takes both */
  assert_int_equal(nncuda_activation_forward(0, NULL, F32, NNCUDA_RELU, y.at[1], a.at[0], N), NNCUDA_BAD_ARGUMENT);
  assert_string_equal(nncuda_last_error(), "nncuda_activation_forward: x is host memory; expected memory of GPU 0");
#endif
  twice_same(&a, "x");
  twice_same(&y, "y");
  assert_int_equal(nncuda_set_checks(0), 1);
}

/* A call makes its device current, and the caller's again; a stream belongs to one device. */
static void two_devices(void **state) {
  (void)state;
  void *other = NULL, *own = NULL;
  int current = -1;
  if (nncuda_device_count() < 2) skip();
  CUDA_CHECK(cudaSetDevice(0));
  assert_int_equal(nncuda_stream_create(1, &other), NNCUDA_OK);
  assert_int_equal(nncuda_stream_create(0, &own), NNCUDA_OK);
  CUDA_CHECK(cudaGetDevice(&current));
  assert_int_equal(current, 0);
  float *y = (float *)device_alloc(DEVICE_GPU, N * sizeof *y), *from = (float *)device_alloc(DEVICE_GPU, N * sizeof *y);
  assert_int_equal(nncuda_softmax_forward(0, other, F32, y, from, 3, 4), NNCUDA_CUDA);
  assert_string_equal(nncuda_last_argument(), "stream");
  assert_non_null(strstr(nncuda_last_error(), "the stream belongs to another device than the call's"));
  assert_int_equal(nncuda_softmax_forward(0, own, F32, y, from, 3, 4), NNCUDA_OK);
  assert_int_equal(nncuda_stream_synchronize(0, own), NNCUDA_OK);
  assert_int_equal(nncuda_stream_destroy(1, other), NNCUDA_OK);
  assert_int_equal(nncuda_stream_destroy(0, own), NNCUDA_OK);
  device_free(DEVICE_GPU, y);
  device_free(DEVICE_GPU, from);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Two threads, each with its own stream, at the same time; one of them also makes mistakes */

enum { ROWS = 7, COLS = 2003, TURNS = 20 };

typedef struct Worker {
  uint64_t seed;
  int fails, wrong;
  Twice logits, dlogits, loss, y;
  Scratch scratch;
  const void *labels;
  void *stream;
  pthread_barrier_t *together;
} Worker;

static void *work(void *pointer) {
  Worker *w = (Worker *)pointer;
  pthread_barrier_wait(w->together);
  for (int turn = 0; turn < TURNS; turn++) {
    w->wrong += nncuda_softmax_forward(0, w->stream, F32, w->y.at[1], w->logits.at[1], ROWS, COLS) != NNCUDA_OK;
    w->wrong += nncuda_cross_entropy(0, w->stream, F32, w->loss.at[1], w->dlogits.at[1], NULL, w->logits.at[1],
                                     w->labels, NNCUDA_INT32, ROWS, COLS, NNCUDA_MEAN, -100, 0, w->scratch.at[1],
                                     w->scratch.bytes[1]) != NNCUDA_OK;
    if (w->fails) w->wrong += nncuda_softmax_forward(0, w->stream, F32, NULL, w->logits.at[1], 1, 1) == NNCUDA_OK;
  }
  w->wrong += nncuda_stream_synchronize(0, w->stream) != NNCUDA_OK;
  w->wrong += (nncuda_last_error()[0] != '\0') != w->fails; /* of this thread alone */
  return NULL;
}

static void two_threads(void **state) {
  (void)state;
  int32_t labels[ROWS];
  for (int i = 0; i < ROWS; i++) labels[i] = i * 283 % COLS;
  void *gpu_labels = arrays_upload_bytes(DEVICE_GPU, labels, sizeof labels);
  Worker w[2];
  pthread_t thread[2];
  pthread_barrier_t together;
  pthread_barrier_init(&together, NULL, 2);
  for (int i = 0; i < 2; i++) {
    w[i] = (Worker){
        (uint64_t)i + 1,
        i,
        0,
        twice_random(ROWS * COLS, (uint64_t)i + 1),
        twice_poison(ROWS * COLS),
        twice_poison(1),
        twice_poison(ROWS * COLS),
        scratch_open(nncuda_cross_entropy_workspace(-1, ROWS, COLS), nncuda_cross_entropy_workspace(0, ROWS, COLS)),
        gpu_labels,
        NULL,
        &together};
    assert_int_equal(nncuda_stream_create(0, &w[i].stream), NNCUDA_OK);
    CUDA_CHECK(cudaDeviceSynchronize()); /* the inputs are there */
  }
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thread[i], NULL, work, &w[i]), 0);
  for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(w[i].wrong, 0);
    assert_int_equal(nncuda_stream_destroy(0, w[i].stream), NNCUDA_OK);
    assert_int_equal(nncuda_softmax_forward(-1, NULL, F32, w[i].y.at[0], w[i].logits.at[0], ROWS, COLS), NNCUDA_OK);
    assert_int_equal(
        nncuda_cross_entropy(-1, NULL, F32, w[i].loss.at[0], w[i].dlogits.at[0], NULL, w[i].logits.at[0], labels,
                             NNCUDA_INT32, ROWS, COLS, NNCUDA_MEAN, -100, 0, w[i].scratch.at[0], w[i].scratch.bytes[0]),
        NNCUDA_OK);
    twice_compare(&w[i].y, ROWS, COLS, 1e-5, 1e-7, "y");
    twice_compare(&w[i].dlogits, ROWS, COLS, 1e-5, 1e-7, "dlogits");
    twice_compare(&w[i].loss, 1, 1, 1e-5, 1e-6, "loss");
    twice_same(&w[i].logits, "logits");
    scratch_close(&w[i].scratch);
  }
  pthread_barrier_destroy(&together);
  device_free(DEVICE_GPU, gpu_labels);
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* What is prepared once, and fails, is tried again by the next call: nothing is left half done. In its own process,
 * with 60 MiB of address space left, where OpenBLAS wants 128 for each thread. */
static void memory_that_is_missing(void **state) {
  (void)state;
  int status = -1;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    float a[4] = {1, 2, 3, 4}, c[4];
    long pages = 0;
    int wrong = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld", &pages) != 1) _exit(100);
    fclose(file);
    const rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (60 << 20);
    const struct rlimit limit = {bytes, bytes};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(101);
    alarm(20);
    for (int i = 0; i < 2; i++)
      wrong += nncuda_matmul(NNCUDA_CPU, NULL, F32, c, a, a, 2, 2, 2, 0, 0, 0) != NNCUDA_UNSUPPORTED ||
               strstr(nncuda_last_error(), "MiB of address space") == NULL;
    _exit(wrong);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_that_is_missing), /* before any product */
      cmocka_unit_test(arguments),
      cmocka_unit_test(shapes),
      cmocka_unit_test(tensors),
      cmocka_unit_test(devices_and_versions),
      cmocka_unit_test(checks_can_be_switched),
      cmocka_unit_test(two_devices),
      cmocka_unit_test(two_threads),
  };
  return TEST_MAIN("nncuda_call", tests);
}
