/* devices_test.cu - several GPUs: whose memory, whose stream, whose variables. The same program passes on a machine
 * with two GPUs. The emulator runs it with SIMT_DEVICES=2, eager and lazy; on a machine with one GPU there is nothing
 * to test. */
#include <pthread.h>
#include <unistd.h>

#include "collective.h"

enum { N = 1000 };

__device__ int calls;
__constant__ float factor = 1;

__global__ void scale(float *y, const float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) calls++;
  if (i < n) y[i] = factor * x[i];
}

static void require_two(void) {
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  if (count < 2) skip();
}

#define REFUSED(call, code)                     \
  do {                                          \
    assert_int_equal(call, code);               \
    assert_int_equal(cudaGetLastError(), code); \
  } while (0)

static float *on_device(int device, const float *host) {
  float *x;
  CHECK(cudaSetDevice(device));
  CHECK(cudaMalloc(&x, N * sizeof *x));
  if (host) CHECK(cudaMemcpy(x, host, N * sizeof *x, cudaMemcpyHostToDevice));
  return x;
}

static void fill(float *x) {
  for (int i = 0; i < N; i++) x[i] = (float)(next_random() % 1000) - 500;
}

static void test_one_device_is_current(void **) {
  int count, device = -1;
  CHECK(cudaGetDeviceCount(&count));
  assert_true(count >= 1);
  for (int d = 0; d < count; d++) {
    struct cudaDeviceProp p;
    char bus[32];
    CHECK(cudaSetDevice(d));
    CHECK(cudaGetDevice(&device));
    assert_int_equal(device, d);
    CHECK(cudaGetDeviceProperties(&p, d));
    CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, d));
    CHECK(cudaDeviceGetByPCIBusId(&device, bus));
    assert_int_equal(device, d);
  }
  REFUSED(cudaSetDevice(count), cudaErrorInvalidDevice);
  REFUSED(cudaSetDevice(-1), cudaErrorInvalidDevice);
  CHECK(cudaGetDevice(&device));
  assert_int_equal(device, count - 1); /* as it was */
  CHECK(cudaSetDevice(0));
}

static void *device_of_a_new_thread(void *device) {
  cudaGetDevice((int *)device);
  return NULL;
}

static void test_each_host_thread_has_its_own(void **) {
  require_two();
  pthread_t thread;
  int device = -1;
  CHECK(cudaSetDevice(1));
  assert_int_equal(pthread_create(&thread, NULL, device_of_a_new_thread, &device), 0);
  pthread_join(thread, NULL);
  assert_int_equal(device, 0);
  CHECK(cudaSetDevice(0));
}

static void test_memory_belongs_to_a_device(void **) {
  require_two();
  size_t before, after, total;
  struct cudaPointerAttributes attributes;
  float *x[2];
  for (int d = 0; d < 2; d++) {
    CHECK(cudaSetDevice(d));
    CHECK(cudaMemGetInfo(&before, &total));
    CHECK(cudaMalloc(&x[d], 64 << 20));
    CHECK(cudaMemGetInfo(&after, &total));
    assert_true(before >= after + (64 << 20));
    CHECK(cudaSetDevice(1 - d)); /* whoever asks */
    CHECK(cudaPointerGetAttributes(&attributes, x[d]));
    assert_int_equal(attributes.device, d);
    assert_int_equal(attributes.type, cudaMemoryTypeDevice);
  }
  CHECK(cudaSetDevice(0));
  for (int d = 0; d < 2; d++) CHECK(cudaFree(x[d]));
}

static void test_copies_between_devices(void **) {
  require_two();
  float host[N], got[N];
  fill(host);
  float *a = on_device(0, host), *b = on_device(1, NULL), *c = on_device(1, NULL);
  CHECK(cudaMemcpyPeer(b, 1, a, 0, sizeof host));
  CHECK(cudaMemcpy(got, b, sizeof got, cudaMemcpyDeviceToHost));
  assert_memory_equal(got, host, sizeof host);
  CHECK(cudaMemcpy(c, a, sizeof host, cudaMemcpyDefault)); /* unified addressing knows who has what */
  CHECK(cudaMemcpy(got, c, sizeof got, cudaMemcpyDefault));
  assert_memory_equal(got, host, sizeof host);
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMemset(b, 0, sizeof host));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpyPeerAsync(b, 1, a, 0, sizeof host, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(got, b, sizeof got, cudaMemcpyDeviceToHost));
  assert_memory_equal(got, host, sizeof host);
  REFUSED(cudaMemcpyPeer(b, 7, a, 0, sizeof host), cudaErrorInvalidDevice);
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(c));
  CHECK(cudaSetDevice(0));
}

/* A __device__ variable counts on each device for itself, a __constant__ one has two values. */
static void test_variables_have_a_value_for_each_device(void **) {
  require_two();
  float host[N], got[N];
  const int launches[2] = {3, 5}, zero = 0;
  fill(host);
  float *x[2], *y[2];
  for (int d = 0; d < 2; d++) {
    const float own = d == 0 ? 2.0f : -3.0f;
    x[d] = on_device(d, host);
    y[d] = on_device(d, NULL);
    CHECK(cudaMemcpyToSymbol(factor, &own, sizeof own));
    CHECK(cudaMemcpyToSymbol(calls, &zero, sizeof zero));
  }
  for (int i = 0; i < 5; i++) /* in turns */
    for (int d = 0; d < 2; d++) {
      if (i >= launches[d]) continue;
      CHECK(cudaSetDevice(d));
      scale<<<(N + 255) / 256, 256>>>(y[d], x[d], N);
      CHECK(cudaGetLastError());
    }
  for (int d = 1; d >= 0; d--) {
    int counted = -1;
    CHECK(cudaSetDevice(d));
    CHECK(cudaMemcpyFromSymbol(&counted, calls, sizeof counted));
    assert_int_equal(counted, launches[d]);
    CHECK(cudaMemcpy(got, y[d], sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++) assert_true(got[i] == (d == 0 ? 2.0f : -3.0f) * host[i]);
    CHECK(cudaFree(x[d]));
    CHECK(cudaFree(y[d]));
  }
}

static void test_peers(void **) {
  require_two();
  int can = -1;
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 0));
  assert_int_equal(can, 0);
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
  if (!can) skip();
  float host[N], got[N];
  fill(host);
  const float one = 1;
  float *x = on_device(1, host), *y = on_device(0, NULL); /* device 0 is current */
  CHECK(cudaMemcpyToSymbol(factor, &one, sizeof one));
  CHECK(cudaDeviceEnablePeerAccess(1, 0));
  REFUSED(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  REFUSED(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
  scale<<<(N + 255) / 256, 256>>>(y, x, N);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(got, y, sizeof got, cudaMemcpyDeviceToHost));
  assert_memory_equal(got, host, sizeof host);
  CHECK(cudaDeviceDisablePeerAccess(1));
  REFUSED(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
}

static void test_streams_and_events_belong_to_a_device(void **) {
  require_two();
  float host[N], got[N];
  fill(host);
  cudaStream_t stream[2];
  cudaEvent_t event[2];
  float *x[2];
  for (int d = 0; d < 2; d++) {
    x[d] = on_device(d, d == 0 ? host : NULL);
    CHECK(cudaStreamCreateWithFlags(&stream[d], cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event[d], cudaEventDisableTiming));
  }
  /* Device 1 is current. */
  scale<<<1, 1, 0, stream[0]>>>(x[1], x[1], 0);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  REFUSED(cudaEventRecord(event[0], stream[1]), cudaErrorInvalidResourceHandle);
  REFUSED(cudaEventRecord(event[1], stream[0]), cudaErrorInvalidResourceHandle);
  /* A copy may be queued anywhere, and a stream waits for any event. */
  CHECK(cudaMemcpyPeerAsync(x[1], 1, x[0], 0, sizeof host, stream[0]));
  CHECK(cudaSetDevice(0));
  CHECK(cudaEventRecord(event[0], stream[0]));
  CHECK(cudaSetDevice(1));
  CHECK(cudaStreamWaitEvent(stream[1], event[0], 0));
  CHECK(cudaMemcpyAsync(got, x[1], sizeof got, cudaMemcpyDeviceToHost, stream[1]));
  CHECK(cudaStreamSynchronize(stream[1]));
  assert_memory_equal(got, host, sizeof host);
  for (int d = 0; d < 2; d++) {
    CHECK(cudaStreamDestroy(stream[d]));
    CHECK(cudaEventDestroy(event[d]));
    CHECK(cudaFree(x[d]));
  }
  CHECK(cudaSetDevice(0));
}

#ifdef SIMT_REWRITTEN
/* The diagnosis of a program that is this one, started anew with `word`. */
static void expect_diagnosis(const char *word, const char *expected) {
  char command[64], text[4096];
  snprintf(command, sizeof command, "/proc/%ld/exe %s 2>&1", (long)getpid(), word);
  FILE *child = popen(command, "r");
  assert_non_null(child);
  text[fread(text, 1, sizeof text - 1, child)] = '\0';
  pclose(child);
  if (!strstr(text, expected)) fail_msg("no \"%s\" in: %s", expected, text);
}

static void test_the_wrong_device_is_named(void **) {
  require_two();
  expect_diagnosis("launch",
                   "=== simt: wrong device: argument 2 of kernel scale lies on device 0, and the kernel runs "
                   "on device 1");
  expect_diagnosis("stream",
                   "=== simt: wrong device: kernel scale is launched into a stream of device 0 while device 1 "
                   "is current");
  expect_diagnosis("copy", "=== simt: wrong device: cudaMemcpyPeer");
}

static int go_wrong(const char *how) {
  cudaStream_t stream;
  float *x, *y;
  cudaMalloc(&x, N * sizeof *x);
  cudaStreamCreate(&stream);
  cudaSetDevice(1);
  cudaMalloc(&y, N * sizeof *y);
  if (strcmp(how, "launch") == 0) scale<<<1, 32>>>(y, x, 32);
  if (strcmp(how, "stream") == 0) scale<<<1, 32, 0, stream>>>(y, y, 32);
  if (strcmp(how, "copy") == 0) cudaMemcpyPeer(y, 0, x, 1, 32);
  return cudaDeviceSynchronize() != cudaSuccess;
}
#endif

int main(int argc, char **argv) {
#ifdef SIMT_REWRITTEN
  if (!getenv("SIMT_DEVICES")) { /* the runtime reads it before main() */
    setenv("SIMT_DEVICES", "2", 1);
    execv("/proc/self/exe", argv);
  }
  if (argc > 1) return go_wrong(argv[1]);
#endif
  (void)argc;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_device_is_current),
      cmocka_unit_test(test_each_host_thread_has_its_own),
      cmocka_unit_test(test_memory_belongs_to_a_device),
      cmocka_unit_test(test_copies_between_devices),
      cmocka_unit_test(test_variables_have_a_value_for_each_device),
      cmocka_unit_test(test_peers),
      cmocka_unit_test(test_streams_and_events_belong_to_a_device),
#ifdef SIMT_REWRITTEN
      cmocka_unit_test(test_the_wrong_device_is_named),
#endif
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
#ifdef SIMT_REWRITTEN
  if (!failed && !getenv("SIMT_STREAMS")) {
    setenv("SIMT_STREAMS", "lazy", 1);
    execv("/proc/self/exe", argv);
  }
#endif
  (void)argv;
  return failed;
}
