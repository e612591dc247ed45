// Work of several streams in the order that events ask for: host functions, callbacks, pools, graphs and their copies.
#include "expect.h"

enum { N = 1000, STREAMS = 3 };

// Not commutative, so that the order shows: x becomes 2 x + digit.
__global__ void append(int *x, int digit) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) x[i] = 2 * x[i] + digit;
}
static int appended(int x, int digit) { return 2 * x + digit; }

static void CUDART_CB note_host(void *log) { *(int *)log = *(int *)log * 10 + 1; }
static void CUDART_CB note_callback(cudaStream_t, cudaError_t status, void *log) {
  *(int *)log = *(int *)log * 10 + (status == cudaSuccess ? 2 : 9);
}

static int count_wrong(const int *device, int value) {
  static int host[N];
  int wrong = 0;
  WORKS(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < N; i++) wrong += host[i] != value;
  return wrong;
}

// Each stream waits for the event of the one before it, twice around.
static void in_turn(int *x) {
  cudaStream_t stream[STREAMS];
  cudaEvent_t done[STREAMS];
  int least, greatest, log = 0, value = 1, *pooled;
  WORKS(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  for (int i = 0; i < STREAMS; i++) {
    WORKS(cudaStreamCreateWithPriority(&stream[i], cudaStreamNonBlocking, i ? least : greatest));
    WORKS(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming | cudaEventBlockingSync));
  }
  WORKS(cudaMallocAsync((void **)&pooled, N * sizeof *pooled, stream[0]));
  WORKS(cudaMemsetAsync(pooled, 0, N * sizeof *pooled, stream[0]));
  append<<<N / 128 + 1, 128, 0, stream[0]>>>(pooled, value);
  for (int turn = 0; turn < 2 * STREAMS; turn++) {
    int i = turn % STREAMS;
    if (turn) WORKS(cudaStreamWaitEvent(stream[i], done[(i + STREAMS - 1) % STREAMS], 0));
    append<<<N / 128 + 1, 128, 0, stream[i]>>>(pooled, turn);
    value = appended(value, turn);
    if (turn % 2) WORKS(cudaLaunchHostFunc(stream[i], note_host, &log));
    if (turn % 2 == 0) WORKS(cudaStreamAddCallback(stream[i], note_callback, &log, 0));
    WORKS(cudaEventRecord(done[i], stream[i]));
  }
  cudaStream_t last = stream[STREAMS - 1];
  WORKS(cudaMemcpyAsync(x, pooled, N * sizeof *x, cudaMemcpyDeviceToDevice, last));
  WORKS(cudaFreeAsync(pooled, last));
  WORKS(cudaStreamSynchronize(last));
  WORKS(cudaEventQuery(done[0]));
  WORKS(cudaStreamQuery(stream[0]));
  EXPECT(log == 212121);
  EXPECT(count_wrong(x, value) == 0);
  for (int i = 0; i < STREAMS; i++) {
    WORKS(cudaEventDestroy(done[i]));
    WORKS(cudaStreamDestroy(stream[i]));
  }
}

// Built by hand, cloned, run twice: set, append 5, copy to y, then tell the host.
static void by_graph(int *x, int *y) {
  cudaGraph_t graph, clone;
  cudaGraphExec_t run;
  cudaGraphNode_t set, kernel, copy, tell;
  cudaMemsetParams zeros = {};
  zeros.dst = x, zeros.value = 0x01010101, zeros.elementSize = 4, zeros.width = N, zeros.height = 1;
  int digit = 5, log = 0, size = N * (int)sizeof *x;
  void *arguments[] = {&x, &digit};
  cudaKernelNodeParams launch = {};
  launch.func = (void *)append, launch.gridDim = dim3(N / 64 + 1), launch.blockDim = dim3(64);
  launch.sharedMemBytes = 0, launch.kernelParams = arguments;
  cudaMemcpy3DParms box = {};
  box.srcPtr = make_cudaPitchedPtr(x, size, size, 1), box.dstPtr = make_cudaPitchedPtr(y, size, size, 1);
  box.extent = make_cudaExtent(size, 1, 1), box.kind = cudaMemcpyDeviceToDevice;
  cudaHostNodeParams host = {note_host, &log};
  WORKS(cudaGraphCreate(&graph, 0));
  WORKS(cudaGraphAddMemsetNode(&set, graph, NULL, 0, &zeros));
  WORKS(cudaGraphAddKernelNode(&kernel, graph, &set, 1, &launch));
  WORKS(cudaGraphAddMemcpyNode(&copy, graph, &kernel, 1, &box));
  WORKS(cudaGraphAddHostNode(&tell, graph, &copy, 1, &host));
  WORKS(cudaGraphClone(&clone, graph));
  WORKS(cudaGraphDestroy(graph));
  WORKS(cudaGraphInstantiate(&run, clone, NULL, NULL, 0));
  for (int i = 0; i < 2; i++) WORKS(cudaGraphLaunch(run, 0));
  WORKS(cudaDeviceSynchronize());
  EXPECT(log == 11);
  EXPECT(count_wrong(y, appended(0x01010101, 5)) == 0);
  WORKS(cudaGraphExecDestroy(run));
  WORKS(cudaGraphDestroy(clone));
}

// What one stream and another that it forks are asked to do is recorded, not done, and then runs three times.
static void by_capture(int *x, int *y) {
  cudaStream_t first, second;
  cudaEvent_t fork, join;
  cudaGraph_t graph;
  cudaGraphExec_t run;
  cudaStreamCaptureStatus status;
  WORKS(cudaStreamCreate(&first));
  WORKS(cudaStreamCreate(&second));
  WORKS(cudaEventCreate(&fork));
  WORKS(cudaEventCreate(&join));
  WORKS(cudaMemset(x, 0, N * sizeof *x));
  WORKS(cudaMemset(y, 0, N * sizeof *y));
  WORKS(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  WORKS(cudaStreamIsCapturing(first, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  WORKS(cudaEventRecord(fork, first));
  WORKS(cudaStreamWaitEvent(second, fork, 0));
  append<<<N / 32 + 1, 32, 0, first>>>(x, 1);
  append<<<N / 32 + 1, 32, 0, second>>>(y, 3);
  WORKS(cudaEventRecord(join, second));
  WORKS(cudaStreamWaitEvent(first, join, 0));
  WORKS(cudaStreamEndCapture(first, &graph));
  EXPECT(count_wrong(x, 0) == 0);
  WORKS(cudaGraphInstantiate(&run, graph, NULL, NULL, 0));
  for (int i = 0; i < 3; i++) WORKS(cudaGraphLaunch(run, first));
  WORKS(cudaStreamSynchronize(first));
  EXPECT(count_wrong(x, 7) == 0);
  EXPECT(count_wrong(y, 21) == 0);
  WORKS(cudaGraphExecDestroy(run));
  WORKS(cudaGraphDestroy(graph));
  WORKS(cudaEventDestroy(fork));
  WORKS(cudaEventDestroy(join));
  WORKS(cudaStreamDestroy(first));
  WORKS(cudaStreamDestroy(second));
}

int main() {
  int *x, *y;
  WORKS(cudaMalloc(&x, N * sizeof *x));
  WORKS(cudaMalloc(&y, N * sizeof *y));
  in_turn(x);
  by_graph(x, y);
  by_capture(x, y);
  WORKS(cudaFree(x));
  WORKS(cudaFree(y));
  return mistakes;
}
