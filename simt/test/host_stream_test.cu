/* host_stream_test.cu - streams, events, host functions, graphs. The same program passes on a GPU. On the emulator it
 * runs three times, eager, lazy and random: whatever is synchronised must come out the same, and what is not must show
 * where it is not eager. */
#include <pthread.h>
#include <unistd.h>

#include "collective.h"

#ifdef SIMT_REWRITTEN
#include "simt/streams.h"
#endif

#define REFUSED(call, code)                     \
  do {                                          \
    assert_int_equal(call, code);               \
    assert_int_equal(cudaGetLastError(), code); \
  } while (0)

__global__ void wait_and_set(int *x, int value, long long ticks) {
  long long start = clock64();
  while (clock64() - start < ticks) {
  }
  *x = value;
}
__global__ void set(int *x, int value) { *x = value; }
__global__ void copy_int(int *to, const int *from) { *to = *from; }
__global__ void step(int *x, int factor) { *x = (*x * factor + 1) % 10007; }
__global__ void add(int *x, int n, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += value;
}

static const long long LONG = 20000000; /* ticks: some milliseconds of a GPU */

static int *device_int(int value) {
  int *x;
  CHECK(cudaMalloc(&x, sizeof(int)));
  CHECK(cudaMemcpy(x, &value, sizeof value, cudaMemcpyHostToDevice));
  return x;
}

static int value_of(const int *x) {
  int value;
  CHECK(cudaMemcpy(&value, x, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

/* ---- order ---- */

static void test_a_stream_keeps_its_order(void **state) {
  (void)state;
  enum { STEPS = 3000 }; /* more than a lazy stream holds */
  cudaStream_t stream;
  int *x = device_int(1), expected = 1;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < STEPS; i++) {
    step<<<1, 1, 0, stream>>>(x, i % 7 + 2);
    expected = (expected * (i % 7 + 2) + 1) % 10007;
  }
  CHECK(cudaStreamSynchronize(stream));
  assert_int_equal(value_of(x), expected);
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(x));
}

/* The consumer's stream is the newer one in the first round, the older one in the second. */
static void test_events_order_streams(void **state) {
  (void)state;
  cudaStream_t streams[2];
  cudaEvent_t event;
  int *x = device_int(0), *y = device_int(0);
  for (int i = 0; i < 2; i++) CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (int round = 0; round < 2; round++) {
    cudaStream_t producer = streams[round], consumer = streams[1 - round];
    CHECK(cudaDeviceSynchronize());
    wait_and_set<<<1, 1, 0, producer>>>(x, 5 + round, LONG);
    CHECK(cudaEventRecord(event, producer));
    CHECK(cudaStreamWaitEvent(consumer, event, 0));
    copy_int<<<1, 1, 0, consumer>>>(y, x);
    set<<<1, 1, 0, producer>>>(x + 0, 5 + round); /* after the event: waited for by nobody */
    CHECK(cudaStreamSynchronize(consumer));
    CHECK(cudaDeviceSynchronize());
    assert_int_equal(value_of(y), 5 + round);
  }
  for (int i = 0; i < 2; i++) CHECK(cudaStreamDestroy(streams[i]));
  CHECK(cudaEventDestroy(event));
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
}

/* An event stands for its latest record at the time of the call that waits. */
static void test_an_event_recorded_again(void **state) {
  (void)state;
  cudaStream_t a, b;
  cudaEvent_t event;
  int *x = device_int(0), *y = device_int(0);
  CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&event));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaEventRecord(event, a));
  wait_and_set<<<1, 1, 0, a>>>(x, 3, LONG);
  CHECK(cudaEventRecord(event, a));
  CHECK(cudaStreamWaitEvent(b, event, 0));
  CHECK(cudaEventRecord(event, b)); /* does not change what b waits for */
  copy_int<<<1, 1, 0, b>>>(y, x);
  CHECK(cudaStreamSynchronize(b));
  assert_int_equal(value_of(y), 3);
  CHECK(cudaStreamDestroy(a));
  CHECK(cudaStreamDestroy(b));
  CHECK(cudaEventDestroy(event));
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
}

static void test_the_default_stream_waits_and_is_waited_for(void **state) {
  (void)state;
  cudaStream_t a, b;
  int *x = device_int(0), *y = device_int(0), *z = device_int(0);
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreate(&b));
  CHECK(cudaDeviceSynchronize());
  wait_and_set<<<1, 1, 0, a>>>(x, 1, LONG);
  copy_int<<<1, 1>>>(y, x);
  wait_and_set<<<1, 1>>>(x, 2, LONG);
  copy_int<<<1, 1, 0, b>>>(z, x);
  CHECK(cudaStreamSynchronize(b));
  assert_int_equal(value_of(y), 1);
  assert_int_equal(value_of(z), 2);
  wait_and_set<<<1, 1, 0, a>>>(x, 3, LONG);
  assert_int_equal(value_of(x), 3); /* a plain cudaMemcpy() is in the default stream */
  wait_and_set<<<1, 1, 0, a>>>(x, 4, LONG);
  CHECK(cudaMemset(y, 0, sizeof(int)));
  CHECK(cudaStreamSynchronize(0));
  assert_int_equal(value_of(x), 4);
  CHECK(cudaStreamDestroy(a));
  CHECK(cudaStreamDestroy(b));
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
  CHECK(cudaFree(z));
}

static void test_work_outlives_its_stream(void **state) {
  (void)state;
  cudaStream_t stream;
  int *x = device_int(0);
  CHECK(cudaStreamCreate(&stream));
  wait_and_set<<<1, 1, 0, stream>>>(x, 9, LONG);
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaStreamCreate(&stream)); /* perhaps the same handle */
  set<<<1, 1, 0, stream>>>(x + 0, 9);
  CHECK(cudaDeviceSynchronize());
  assert_int_equal(value_of(x), 9);
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(x));
}

/* ---- copies ---- */

static void test_asynchronous_copies(void **state) {
  (void)state;
  enum { N = 5000 };
  cudaStream_t stream;
  int *pinned, *device, *pageable = (int *)malloc(N * sizeof(int));
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMallocHost(&pinned, N * sizeof(int)));
  CHECK(cudaMalloc(&device, N * sizeof(int)));
  for (int i = 0; i < N; i++) pinned[i] = i;
  CHECK(cudaMemcpyAsync(device, pinned, N * sizeof(int), cudaMemcpyHostToDevice, stream));
  add<<<(N + 127) / 128, 128, 0, stream>>>(device, N, 10);
  CHECK(cudaMemcpyAsync(pinned, device, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  for (int i = 0; i < N; i++) assert_int_equal(pinned[i], i + 10);
  /* Memory that is not pinned has been read, or written, when the call returns; 20 KB and 40 bytes. */
  for (int n = 10; n <= N; n += N - 10) {
    for (int i = 0; i < n; i++) pageable[i] = i;
    CHECK(cudaMemcpyAsync(device, pageable, n * sizeof(int), cudaMemcpyHostToDevice, stream));
    for (int i = 0; i < n; i++) pageable[i] = -1;
    add<<<(n + 127) / 128, 128, 0, stream>>>(device, n, 1);
    CHECK(cudaMemcpyAsync(pageable, device, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
    for (int i = 0; i < n; i++) assert_int_equal(pageable[i], i + 1);
  }
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(device));
  CHECK(cudaFreeHost(pinned));
  free(pageable);
}

/* ---- queries, events ---- */

static void test_queries_come_to_an_end(void **state) {
  (void)state;
  cudaStream_t stream;
  cudaEvent_t event;
  int *x = device_int(0);
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&event));
  CHECK(cudaEventQuery(event)); /* never recorded */
  CHECK(cudaEventSynchronize(event));
  wait_and_set<<<1, 1, 0, stream>>>(x, 1, LONG);
  CHECK(cudaEventRecord(event, stream));
  while (cudaEventQuery(event) == cudaErrorNotReady) {
  }
  wait_and_set<<<1, 1, 0, stream>>>(x, 2, LONG);
  while (cudaStreamQuery(stream) == cudaErrorNotReady) {
  }
  cudaGetLastError();
  assert_int_equal(value_of(x), 2);
  CHECK(cudaStreamQuery(0));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaEventDestroy(event));
  CHECK(cudaFree(x));
}

static void test_time_between_events(void **state) {
  (void)state;
  cudaEvent_t start, stop, untimed;
  int *x = device_int(0);
  float ms = -1;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventCreate(&untimed, cudaEventDisableTiming));
  REFUSED(cudaEventElapsedTime(&ms, start, stop), cudaErrorInvalidResourceHandle); /* not recorded */
  CHECK(cudaEventRecord(start));
  wait_and_set<<<1, 1>>>(x, 1, LONG);
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventRecord(untimed));
  CHECK(cudaEventSynchronize(untimed));
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  assert_true(ms > 1 && ms < 10000);
  float back = 0;
  CHECK(cudaEventElapsedTime(&back, stop, start));
  assert_float_equal(back, -ms, 1e-3f);
  REFUSED(cudaEventElapsedTime(&ms, start, untimed), cudaErrorInvalidResourceHandle);
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  CHECK(cudaEventDestroy(untimed));
  CHECK(cudaFree(x));
}

static void test_handles(void **state) {
  (void)state;
  cudaStream_t stream;
  cudaEvent_t event;
  unsigned flags = 99;
  int priority, least, greatest;
  unsigned long long first, second;
  REFUSED(cudaStreamCreateWithFlags(&stream, 8), cudaErrorInvalidValue);
  REFUSED(cudaEventCreateWithFlags(&event, 64), cudaErrorInvalidValue);
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 100));
  CHECK(cudaStreamGetPriority(stream, &priority));
  assert_int_equal(priority, greatest);
  CHECK(cudaStreamGetFlags(stream, &flags));
  assert_int_equal(flags, cudaStreamNonBlocking);
  CHECK(cudaStreamGetFlags(0, &flags));
  assert_int_equal(flags, cudaStreamDefault);
  CHECK(cudaStreamGetId(stream, &first));
  CHECK(cudaStreamGetId(cudaStreamLegacy, &second));
  assert_true(first != second);
  CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  CHECK(cudaStreamDestroy(stream));
#ifdef SIMT_REWRITTEN /* a GPU's driver need not notice */
  REFUSED(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  set<<<1, 1, 0, stream>>>((int *)NULL, 1);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  CHECK(cudaEventCreate(&event));
  CHECK(cudaEventDestroy(event));
  REFUSED(cudaEventRecord(event), cudaErrorInvalidResourceHandle);
#endif
}

/* ---- host functions ---- */

typedef struct Note {
  const int *read; /* pinned */
  int seen, calls;
  cudaError_t status;
} Note;

static void take_note(void *data) {
  Note *note = (Note *)data;
  note->seen = *note->read;
  note->calls++;
}

static void take_note_of(cudaStream_t stream, cudaError_t status, void *data) {
  (void)stream;
  take_note(data);
  ((Note *)data)->status = status;
}

static void test_host_functions(void **state) {
  (void)state;
  cudaStream_t stream;
  int *pinned;
  Note first = {}, second = {};
  second.status = cudaErrorUnknown;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMallocHost(&pinned, sizeof(int)));
  *pinned = 0;
  first.read = second.read = pinned;
  wait_and_set<<<1, 1, 0, stream>>>(pinned, 1, LONG);
  CHECK(cudaLaunchHostFunc(stream, take_note, &first));
  set<<<1, 1, 0, stream>>>(pinned, 2);
  CHECK(cudaStreamAddCallback(stream, take_note_of, &second, 0));
  set<<<1, 1, 0, stream>>>(pinned, 3);
  CHECK(cudaStreamSynchronize(stream));
  assert_true(first.seen == 1 && first.calls == 1);
  assert_true(second.seen == 2 && second.calls == 1 && second.status == cudaSuccess);
  assert_int_equal(*pinned, 3);
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaStreamDestroy(stream));
}

/* ---- graphs ---- */

static void test_a_captured_stream(void **state) {
  (void)state;
  enum { N = 100 };
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  int *pinned, *device;
  size_t nodes = 0;
  enum cudaStreamCaptureStatus status;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMallocHost(&pinned, N * sizeof(int)));
  CHECK(cudaMalloc(&device, N * sizeof(int)));
  memset(pinned, 0, N * sizeof(int));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaStreamIsCapturing(stream, &status));
  assert_int_equal(status, cudaStreamCaptureStatusActive);
  CHECK(cudaMemcpyAsync(device, pinned, N * sizeof(int), cudaMemcpyHostToDevice, stream));
  for (int value = 1; value <= 3; value++) add<<<1, 128, 0, stream>>>(device, N, value); /* the values stay */
  CHECK(cudaMemcpyAsync(pinned, device, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaStreamIsCapturing(stream, &status));
  assert_int_equal(status, cudaStreamCaptureStatusNone);
  CHECK(cudaStreamSynchronize(stream));
  assert_int_equal(pinned[0], 0); /* only written down */
  CHECK(cudaGraphGetNodes(graph, NULL, &nodes));
  assert_int_equal(nodes, 5);
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  for (int launch = 1; launch <= 4; launch++) {
    CHECK(cudaGraphLaunch(executable, stream));
    if (launch != 2) continue; /* launches need not be waited for */
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < N; i++) assert_int_equal(pinned[i], 12);
  }
  CHECK(cudaGraphExecDestroy(executable)); /* what was launched still runs */
  CHECK(cudaStreamSynchronize(stream));
  for (int i = 0; i < N; i++) assert_int_equal(pinned[i], 24);
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(device));
  CHECK(cudaFreeHost(pinned));
}

static void test_a_capture_of_two_streams(void **state) {
  (void)state;
  cudaStream_t a, b;
  cudaEvent_t fork, join;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  int *x = device_int(0), *y = device_int(0);
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreate(&b));
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  set<<<1, 1, 0, a>>>(x, 5);
  CHECK(cudaEventRecord(fork, a));
  CHECK(cudaStreamWaitEvent(b, fork, 0));
  copy_int<<<1, 1, 0, b>>>(y, x);
  CHECK(cudaEventRecord(join, b));
  CHECK(cudaStreamWaitEvent(a, join, 0));
  step<<<1, 1, 0, a>>>(y, 10);
  CHECK(cudaStreamEndCapture(a, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, b));
  CHECK(cudaStreamSynchronize(b));
  assert_int_equal(value_of(y), 51);
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  /* A branch that is not joined. */
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(fork, a));
  CHECK(cudaStreamWaitEvent(b, fork, 0));
  copy_int<<<1, 1, 0, b>>>(y, x);
  REFUSED(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureUnjoined);
  assert_null(graph);
  CHECK(cudaStreamDestroy(a));
  CHECK(cudaStreamDestroy(b));
  CHECK(cudaEventDestroy(fork));
  CHECK(cudaEventDestroy(join));
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
}

static void test_what_a_capture_forbids(void **state) {
  (void)state;
  cudaStream_t stream;
  cudaGraph_t graph;
  void *pointer;
  CHECK(cudaStreamCreate(&stream));
  REFUSED(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
  REFUSED(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  REFUSED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  REFUSED(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
  REFUSED(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  assert_null(graph);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  REFUSED(cudaMalloc(&pointer, 16), cudaErrorStreamCaptureUnsupported);
  REFUSED(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  CHECK(cudaMalloc(&pointer, 16));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFree(pointer));
  CHECK(cudaStreamDestroy(stream));
}

static void test_a_graph_by_hand(void **state) {
  (void)state;
  cudaGraph_t graph, child;
  cudaGraphNode_t memset_node, kernel_node, copy_node, host_node, child_node;
  cudaGraphExec_t executable;
  enum cudaGraphNodeType type;
  cudaStream_t stream;
  int *x = device_int(0), *pinned, value = 4, n = 1;
  Note note = {};
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMallocHost(&pinned, sizeof(int)));
  note.read = pinned;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphCreate(&child, 0));
  cudaMemsetParams set_params = {};
  set_params.dst = x;
  set_params.value = 100;
  set_params.elementSize = 4;
  set_params.width = set_params.height = 1;
  CHECK(cudaGraphAddMemsetNode(&memset_node, graph, NULL, 0, &set_params));
  void *arguments[] = {&x, &n, &value};
  cudaKernelNodeParams kernel_params = {};
  kernel_params.func = (void *)add;
  kernel_params.gridDim = kernel_params.blockDim = dim3(1);
  kernel_params.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&kernel_node, graph, &memset_node, 1, &kernel_params));
  value = 1000; /* was copied */
  REFUSED(cudaGraphAddKernelNode(NULL, child, NULL, 0, &kernel_params), cudaErrorInvalidValue);
  CHECK(cudaGraphAddKernelNode(&child_node, child, NULL, 0, &kernel_params));
  CHECK(cudaGraphAddChildGraphNode(&child_node, graph, &kernel_node, 1, child));
  CHECK(cudaGraphAddMemcpyNode1D(&copy_node, graph, &child_node, 1, pinned, x, sizeof(int), cudaMemcpyDeviceToHost));
  cudaHostNodeParams host_params = {};
  host_params.fn = take_note;
  host_params.userData = &note;
  CHECK(cudaGraphAddHostNode(&host_node, graph, &copy_node, 1, &host_params));
  CHECK(cudaGraphNodeGetType(kernel_node, &type));
  assert_int_equal(type, cudaGraphNodeTypeKernel);
  CHECK(cudaGraphNodeGetType(host_node, &type));
  assert_int_equal(type, cudaGraphNodeTypeHost);
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  assert_int_equal(note.seen, 1104);
  value = 7;
  CHECK(cudaGraphExecKernelNodeSetParams(executable, kernel_node, &kernel_params));
  CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  assert_int_equal(note.seen, 1107);
  assert_int_equal(note.calls, 2);
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphDestroy(child));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFree(x));
}

static void test_no_graph_is_launched_while_capturing(void **state) {
  (void)state;
  cudaStream_t stream;
  cudaGraph_t graph, outer = NULL;
  cudaGraphExec_t inner_executable;
  int *x = device_int(0);
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add<<<1, 1, 0, stream>>>(x, 1, 5);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&inner_executable, graph, 0));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  assert_int_equal(cudaGraphLaunch(inner_executable, stream), cudaErrorStreamCaptureUnsupported); /* as on an H200 */
  cudaGetLastError();
  cudaStreamEndCapture(stream, &outer);
  cudaGetLastError();
  CHECK(cudaGraphExecDestroy(inner_executable));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(x));
}

/* A training step is captured again with another argument; the executable graph takes it over. */
static void test_updating_a_graph(void **state) {
  (void)state;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable = NULL;
  cudaGraphExecUpdateResultInfo info;
  int *x = device_int(0), expected = 0;
  CHECK(cudaStreamCreate(&stream));
  for (int round = 1; round <= 3; round++) {
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    step<<<1, 1, 0, stream>>>(x, round);
    step<<<1, 1, 0, stream>>>(x, round + 1);
    CHECK(cudaStreamEndCapture(stream, &graph));
    if (!executable)
      CHECK(cudaGraphInstantiate(&executable, graph, 0));
    else
      CHECK(cudaGraphExecUpdate(executable, graph, &info));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaGraphLaunch(executable, stream));
    expected = (expected * round + 1) * (round + 1) + 1;
  }
  CHECK(cudaStreamSynchronize(stream));
  assert_int_equal(value_of(x), expected);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  step<<<1, 1, 0, stream>>>(x, 1);
  CHECK(cudaStreamEndCapture(stream, &graph));
  REFUSED(cudaGraphExecUpdate(executable, graph, &info), cudaErrorGraphExecUpdateFailure);
  assert_int_equal(info.result, cudaGraphExecUpdateErrorTopologyChanged);
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(x));
}

/* ---- host threads ---- */

static void *drive(void *result) {
  enum { N = 300, ROUNDS = 60 };
  cudaStream_t stream;
  cudaEvent_t event;
  int *device, *host, good = 1;
  cudaStreamCreate(&stream);
  cudaEventCreate(&event);
  for (int round = 0; round < ROUNDS; round++) {
    good &= cudaMalloc(&device, N * sizeof(int)) == cudaSuccess;
    good &= cudaMallocHost(&host, N * sizeof(int)) == cudaSuccess;
    for (int i = 0; i < N; i++) host[i] = i;
    cudaMemcpyAsync(device, host, N * sizeof(int), cudaMemcpyHostToDevice, stream);
    add<<<3, 100, 0, stream>>>(device, N, round);
    cudaMemcpyAsync(host, device, N * sizeof(int), cudaMemcpyDeviceToHost, stream);
    cudaEventRecord(event, stream);
    good &= (round % 2 ? cudaEventSynchronize(event) : cudaStreamSynchronize(stream)) == cudaSuccess;
    for (int i = 0; i < N; i++) good &= host[i] == i + round;
    good &= cudaFree(device) == cudaSuccess && cudaFreeHost(host) == cudaSuccess;
  }
  cudaStreamDestroy(stream);
  cudaEventDestroy(event);
  *(int *)result = good;
  return NULL;
}

static void test_many_host_threads(void **state) {
  (void)state;
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  int good[THREADS] = {0};
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, drive, &good[i]), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) assert_true(good[i]);
}

/* ---- lazy: what is not waited for has not happened ---- */

#ifdef SIMT_REWRITTEN
static int is_lazy(void) {
  const char *mode = getenv("SIMT_STREAMS");
  return mode && strcmp(mode, "lazy") == 0;
}

static void test_a_missing_synchronisation_shows(void **state) {
  (void)state;
  cudaStream_t a, b, unordered;
  cudaEvent_t event;
  int *x = device_int(1), *y = device_int(0), *pinned;
  float ms;
  if (!is_lazy()) skip();
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreate(&b));
  CHECK(cudaStreamCreateWithFlags(&unordered, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&event));
  CHECK(cudaMallocHost(&pinned, sizeof(int)));
  *pinned = -1;
  /* The host reads too early. */
  set<<<1, 1, 0, a>>>(x, 2);
  CHECK(cudaMemcpyAsync(pinned, x, sizeof(int), cudaMemcpyDeviceToHost, a));
  CHECK(cudaStreamSynchronize(b)); /* the wrong one */
  assert_int_equal(*pinned, -1);
  CHECK(cudaStreamSynchronize(a));
  assert_int_equal(*pinned, 2);
  /* The host overwrites what is still to be copied. */
  *pinned = 10;
  CHECK(cudaMemcpyAsync(x, pinned, sizeof(int), cudaMemcpyHostToDevice, a));
  *pinned = 11;
  CHECK(cudaStreamSynchronize(a));
  assert_int_equal(value_of(x), 11);
  /* A copy from ordinary memory takes the bytes along; it does not wait for what is before it. */
  int value = 3;
  set<<<1, 1, 0, a>>>(pinned, 12);
  CHECK(cudaMemcpyAsync(x, &value, sizeof value, cudaMemcpyHostToDevice, a));
  value = 4;
  assert_int_equal(*pinned, 11);
  CHECK(cudaStreamSynchronize(a));
  assert_int_equal(*pinned, 12);
  assert_int_equal(value_of(x), 3);
  /* A stream holds some work, not any amount. */
  for (int i = 0; i < 2000; i++) set<<<1, 1, 0, a>>>(pinned, 1000 + i);
  assert_true(*pinned > 1000 && *pinned < 2900);
  CHECK(cudaStreamSynchronize(a));
  /* A stream that should have waited for another overtakes it, whichever of the two is older. */
  for (int round = 0; round < 2; round++) {
    set<<<1, 1>>>(x, 0);
    CHECK(cudaDeviceSynchronize());
    set<<<1, 1, 0, round ? a : b>>>(x, 7);
    copy_int<<<1, 1, 0, round ? b : a>>>(y, x);
    CHECK(cudaDeviceSynchronize());
    assert_int_equal(value_of(y), 0);
  }
  /* A non-blocking stream does not wait for the default stream, nor is it waited for. */
  set<<<1, 1, 0, unordered>>>(x, 8);
  assert_int_equal(value_of(x), 7);
  CHECK(cudaStreamSynchronize(unordered));
  assert_int_equal(value_of(x), 8);
  /* Queries first say no. */
  set<<<1, 1, 0, a>>>(x, 9);
  CHECK(cudaEventRecord(event, a));
  REFUSED(cudaEventElapsedTime(&ms, event, event), cudaErrorNotReady);
  REFUSED(cudaEventQuery(event), cudaErrorNotReady);
  CHECK(cudaEventQuery(event));
  set<<<1, 1>>>(x, 9);
  REFUSED(cudaStreamQuery(0), cudaErrorNotReady);
  CHECK(cudaStreamQuery(0));
  CHECK(cudaStreamDestroy(a));
  CHECK(cudaStreamDestroy(b));
  CHECK(cudaStreamDestroy(unordered));
  CHECK(cudaEventDestroy(event));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
}

static int is_random(void) {
  const char *mode = getenv("SIMT_STREAMS");
  return mode && strncmp(mode, "random:", 7) == 0;
}

/* Two streams without an order between them run in both orders; with an event in one. */
static void test_lots_are_drawn(void **state) {
  (void)state;
  enum { ROUNDS = 200 };
  cudaStream_t a, b;
  cudaEvent_t event;
  int *x = device_int(0), *y = device_int(0), late = 0;
  if (!is_random()) skip();
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreate(&b));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (int round = 0; round < ROUNDS; round++) {
    int ordered = round % 2;
    set<<<1, 1>>>(x, 0);
    set<<<1, 1, 0, a>>>(x, 7);
    if (ordered) CHECK(cudaEventRecord(event, a));
    if (ordered) CHECK(cudaStreamWaitEvent(b, event, 0));
    copy_int<<<1, 1, 0, b>>>(y, x);
    if (round % 4 < 2)
      CHECK(cudaDeviceSynchronize());
    else
      CHECK(cudaStreamSynchronize(b));
    int value = value_of(y);
    if (ordered) assert_int_equal(value, 7);
    late += value == 0;
  }
  assert_true(late > ROUNDS / 16 && late < ROUNDS / 2 - ROUNDS / 16);
  /* A stream gets far ahead of one that should hold it back: what it overwrites has not been read. */
  for (int round = 0; round < ROUNDS && late >= 0; round++) {
    for (int i = 0; i < 8; i++) {
      set<<<1, 1, 0, a>>>(x, i);
      CHECK(cudaEventRecord(event, a));
      CHECK(cudaStreamWaitEvent(b, event, 0));
      if (i == 0) copy_int<<<1, 1, 0, b>>>(y, x);
    }
    CHECK(cudaDeviceSynchronize());
    if (value_of(y) == 7) late = -1;
  }
  assert_int_equal(late, -1);
  CHECK(cudaStreamDestroy(a));
  CHECK(cudaStreamDestroy(b));
  CHECK(cudaEventDestroy(event));
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
}

/* What may run side by side is one step; the same in every mode. */
static void test_steps(void **state) {
  (void)state;
  cudaStream_t a, b, blocking;
  cudaEvent_t event, other, never;
  int *x = device_int(0), *y = device_int(0), *pinned;
  static char large[1 << 17];
  char *to;
  CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  CHECK(cudaStreamCreate(&blocking));
  CHECK(cudaEventCreate(&event));
  CHECK(cudaEventCreate(&other));
  CHECK(cudaEventCreate(&never));
  CHECK(cudaMallocHost(&pinned, sizeof(int)));
  CHECK(cudaMalloc(&to, sizeof large));
  simt_steps_begin();
  assert_true(simt_steps() == 0 && simt_event_step(never) == -1 && simt_event_step(NULL) == -1);
  for (int i = 0; i < 3; i++) set<<<1, 1, 0, a>>>(x, i); /* three in a row, */
  CHECK(cudaEventRecord(event, a));
  CHECK(cudaMemcpyAsync(y, pinned, sizeof(int), cudaMemcpyHostToDevice, b)); /* one beside them, */
  CHECK(cudaEventRecord(other, b));
  assert_true(simt_event_step(event) == 3 && simt_event_step(other) == 1 && simt_steps() == 3);
  CHECK(cudaStreamWaitEvent(b, event, 0)); /* and one after all */
  copy_int<<<1, 1, 0, b>>>(y, x);
  CHECK(cudaEventRecord(other, b));
  assert_true(simt_event_step(other) == 4);
  set<<<1, 1, 0, blocking>>>(x, 1); /* the default stream waits for it, and not for the others */
  set<<<1, 1, 0, blocking>>>(x, 1);
  set<<<1, 1>>>(x, 1);
  CHECK(cudaEventRecord(event, 0));
  assert_true(simt_event_step(event) == 3);
  CHECK(cudaEventSynchronize(other)); /* now the host waits: all that follows is later */
  set<<<1, 1, 0, a>>>(x, 1);
  assert_true(simt_steps() == 5);
  CHECK(cudaMemcpyAsync(to, large, sizeof large, cudaMemcpyHostToDevice, b)); /* pageable and large: */
  CHECK(cudaMemcpyAsync(y, pinned, sizeof(int), cudaMemcpyHostToDevice, a));  /* the host has waited */
  CHECK(cudaEventRecord(event, a));
  assert_true(simt_event_step(event) == 6);
  CHECK(cudaStreamSynchronize(a));
  set<<<1, 1, 0, blocking>>>(x, 1);
  assert_true(simt_steps() == 7);
  CHECK(cudaDeviceSynchronize());
  set<<<1, 1, 0, b>>>(x, 1);
  assert_true(simt_steps() == 8);
  CHECK(cudaDeviceSynchronize());
  simt_steps_begin();
  assert_true(simt_steps() == 0);
  CHECK(cudaStreamDestroy(a));
  CHECK(cudaStreamDestroy(b));
  CHECK(cudaStreamDestroy(blocking));
  CHECK(cudaEventDestroy(event));
  CHECK(cudaEventDestroy(other));
  CHECK(cudaEventDestroy(never));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
  CHECK(cudaFree(to));
}

/* The program runs itself: `forget` ends without waiting. */
static void test_forgotten_work_is_told(void **state) {
  (void)state;
  char text[2000];
  if (!is_lazy()) skip();
  FILE *child = popen("exec /proc/$PPID/exe forget 2>&1", "r");
  text[fread(text, 1, sizeof text - 1, child)] = '\0';
  assert_int_equal(pclose(child), 0);
  assert_non_null(strstr(text, "=== simt: missing synchronisation: 2 operations were still queued"));
  assert_non_null(strstr(text, "set, "));
  assert_non_null(strstr(text, "host_stream_test.cu:"));
}

static int forget(void) {
  int *x;
  if (cudaMalloc(&x, sizeof(int)) != cudaSuccess) return 1;
  set<<<1, 1>>>(x, 1);
  set<<<1, 1>>>(x, 2);
  return 0;
}
#endif

int main(int argc, char **argv) {
#ifdef SIMT_REWRITTEN
  if (argc > 1 && strcmp(argv[1], "forget") == 0) return forget();
#endif
  (void)argc;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_stream_keeps_its_order),
      cmocka_unit_test(test_events_order_streams),
      cmocka_unit_test(test_an_event_recorded_again),
      cmocka_unit_test(test_the_default_stream_waits_and_is_waited_for),
      cmocka_unit_test(test_work_outlives_its_stream),
      cmocka_unit_test(test_asynchronous_copies),
      cmocka_unit_test(test_queries_come_to_an_end),
      cmocka_unit_test(test_time_between_events),
      cmocka_unit_test(test_handles),
      cmocka_unit_test(test_host_functions),
      cmocka_unit_test(test_a_captured_stream),
      cmocka_unit_test(test_a_capture_of_two_streams),
      cmocka_unit_test(test_what_a_capture_forbids),
      cmocka_unit_test(test_a_graph_by_hand),
      cmocka_unit_test(test_no_graph_is_launched_while_capturing),
      cmocka_unit_test(test_updating_a_graph),
      cmocka_unit_test(test_many_host_threads),
#ifdef SIMT_REWRITTEN
      cmocka_unit_test(test_a_missing_synchronisation_shows),
      cmocka_unit_test(test_lots_are_drawn),
      cmocka_unit_test(test_forgotten_work_is_told),
      cmocka_unit_test(test_steps), /* last: from here on steps are counted */
#endif
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
#ifdef SIMT_REWRITTEN
  if (!failed && !getenv("SIMT_STREAMS")) {
    setenv("SIMT_STREAMS", "lazy", 1);
    execv("/proc/self/exe", argv);
  }
  if (!failed && is_lazy()) {
    setenv("SIMT_STREAMS", "random:1", 1);
    execv("/proc/self/exe", argv);
  }
#endif
  (void)argv;
  return failed;
}
