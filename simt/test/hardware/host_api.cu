/* host_api.cu - prints how the host's functions answer to mistakes and edge cases, one line each. Run on a GPU and on
 * the emulator, the two outputs are compared: what differs is either mended in simt/runtime or explained in its
 * documentation.
 *
 *     nvcc -arch=native host_api.cu -o gpu && ./gpu > gpu.txt
 *     simtcc host_api.cu -o cpu && ./cpu > cpu.txt; diff gpu.txt cpu.txt
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

static void say(const char *what, cudaError_t error) {
  printf("%-66s %s\n", what, cudaGetErrorName(error));
  cudaGetLastError();
}
#define SAY(call) say(#call, call)

__device__ int variable[4];
__constant__ int constant[4];
static int not_a_symbol[4];

__global__ void nothing(void) {}
__global__ void spin(long long ticks) {
  long long start = clock64();
  while (clock64() - start < ticks) {
  }
}

static void allocation(void) {
  char *d = (char *)1, *h = (char *)1, *malloced = (char *)malloc(4096);
  puts("-- allocation");
  SAY(cudaMalloc(&d, 0));
  printf("%-66s %s\n", "  its pointer", d ? "not null" : "null");
  SAY(cudaMallocHost(&h, 0));
  printf("%-66s %s\n", "  its pointer", h ? "not null" : "null");
  SAY(cudaMallocManaged(&d, 0));
  SAY(cudaMalloc(&d, (size_t)1 << 50));
  SAY(cudaMallocHost(&h, (size_t)1 << 50));
  SAY(cudaMalloc((void **)NULL, 4));
  SAY(cudaFree(NULL));
  SAY(cudaFreeHost(NULL));
  SAY(cudaFree(malloced));
  SAY(cudaFreeHost(malloced));
  cudaMalloc(&d, 4096);
  SAY(cudaFree(d + 8));
  SAY(cudaFreeHost(d));
  SAY(cudaFree(d));
  SAY(cudaFree(d));
  SAY(cudaFreeAsync(d, 0));
  cudaMallocHost(&h, 4096);
  SAY(cudaFree(h));
  SAY(cudaFreeHost(h + 8));
  SAY(cudaFreeHost(h));
  SAY(cudaFreeHost(h));
  SAY(cudaHostRegister(malloced, 4096, cudaHostRegisterDefault));
  SAY(cudaHostRegister(malloced, 4096, cudaHostRegisterDefault));
  SAY(cudaHostUnregister(malloced + 8));
  SAY(cudaHostUnregister(malloced));
  SAY(cudaHostUnregister(malloced));
  void *p;
  SAY(cudaHostGetDevicePointer(&p, malloced, 0));
  SAY(cudaHostAlloc(&h, 16, 64));
  size_t pitch;
  SAY(cudaMallocPitch(&d, &pitch, 100, 7));
  printf("%-66s %zu\n", "  pitch", pitch);
  cudaFree(d);
  cudaPointerAttributes a;
  memset(&a, 0, sizeof a);
  SAY(cudaPointerGetAttributes(&a, malloced));
  printf("%-66s %d %d\n", "  type, device", a.type, a.device);
  SAY(cudaPointerGetAttributes(&a, NULL));
  printf("%-66s %d %d\n", "  type, device", a.type, a.device);
  free(malloced);
}

static void copies(void) {
  enum { N = 4096 };
  char *d, *e, *pinned, *managed, host[N], other[N];
  size_t past = (size_t)1 << 30;
  cudaMalloc(&d, N);
  cudaMalloc(&e, N);
  cudaMallocHost(&pinned, N);
  cudaMallocManaged(&managed, N);
  memset(host, 1, N);
  memset(other, 2, N);
  puts("-- copies");
  SAY(cudaMemcpy(d, host, N, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpy(host, d, N, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(d, host, N, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpy(host, d, N, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpy(host, other, N, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpy(d, e, N, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(d, e, N, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpy(host, other, N, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(host, other, N, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpy(host, other, N, cudaMemcpyHostToHost));
  SAY(cudaMemcpy(pinned, host, N, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(d, pinned, N, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpy(managed, host, N, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(managed, host, N, cudaMemcpyHostToHost));
  SAY(cudaMemcpy(d, host, N, cudaMemcpyDefault));
  SAY(cudaMemcpy(host, other, N, cudaMemcpyDefault));
  SAY(cudaMemcpy(d, host, N, (enum cudaMemcpyKind)7));
  SAY(cudaMemcpy(d, host, 0, (enum cudaMemcpyKind)7));
  SAY(cudaMemcpy(NULL, host, 0, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(NULL, host, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(d, NULL, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(d, e, past, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpyAsync(d, host, N, cudaMemcpyDeviceToHost, 0));
  SAY(cudaMemset(d, 0, past));
  SAY(cudaMemset(host, 0, 4));
  SAY(cudaMemset(NULL, 0, 4));
  SAY(cudaMemset(NULL, 0, 0));
  SAY(cudaMemset(pinned, 0, 4));
  SAY(cudaMemset(managed, 0, 4));
  SAY(cudaMemcpy2D(d, 8, host, 16, 12, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy2D(d, 16, host, 8, 12, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemset2D(d, 8, 0, 12, 4));
  SAY(cudaMemcpy2D(d, 16, host, 16, 0, 4, cudaMemcpyHostToDevice));
  puts("-- symbols");
  SAY(cudaMemcpyToSymbol(variable, host, 16));
  SAY(cudaMemcpyToSymbol(variable, host, 20));
  SAY(cudaMemcpyToSymbol(variable, host, 8, 12));
  SAY(cudaMemcpyToSymbol(constant, host, 20));
  SAY(cudaMemcpyToSymbol(not_a_symbol, host, 16));
  SAY(cudaMemcpyToSymbol(variable, host, 16, 0, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpyFromSymbol(host, variable, 16, 0, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyFromSymbol(host, not_a_symbol, 16));
  SAY(cudaMemcpy(variable, host, 16, cudaMemcpyHostToDevice));
  void *p;
  size_t bytes;
  SAY(cudaGetSymbolAddress(&p, variable));
  SAY(cudaGetSymbolAddress(&p, not_a_symbol));
  SAY(cudaGetSymbolSize(&bytes, variable));
  SAY(cudaGetSymbolSize(&bytes, not_a_symbol));
  cudaFree(d);
  SAY(cudaMemcpy(host, d, N, cudaMemcpyDeviceToHost));
  cudaFree(e);
  cudaFree(managed);
  cudaFreeHost(pinned);
  puts("-- managed");
  cudaMalloc(&d, N);
  cudaMallocManaged(&managed, N);
  SAY(cudaMemPrefetchAsync(managed, N, {cudaMemLocationTypeDevice, 0}, 0, 0));
  SAY(cudaMemPrefetchAsync(managed, N, {cudaMemLocationTypeHost, 0}, 0, 0));
  SAY(cudaMemPrefetchAsync(managed, N, {cudaMemLocationTypeDevice, 99}, 0, 0));
  SAY(cudaMemPrefetchAsync(d, N, {cudaMemLocationTypeDevice, 0}, 0, 0));
  SAY(cudaMemAdvise(managed, N, cudaMemAdviseSetReadMostly, {cudaMemLocationTypeDevice, 0}));
  SAY(cudaMemAdvise(d, N, cudaMemAdviseSetReadMostly, {cudaMemLocationTypeDevice, 0}));
  cudaFree(d);
  cudaFree(managed);
}

static void streams(void) {
  cudaStream_t s, t;
  cudaEvent_t e, f, untimed;
  float ms;
  cudaStreamCreate(&s);
  cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
  cudaEventCreate(&e);
  cudaEventCreate(&f);
  cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming);
  puts("-- streams and events");
  SAY(cudaStreamCreateWithFlags(&s, 8));
  SAY(cudaStreamQuery(s));
  SAY(cudaEventQuery(e));
  SAY(cudaEventSynchronize(e));
  SAY(cudaEventElapsedTime(&ms, e, f));
  SAY(cudaEventRecord(e, s));
  SAY(cudaEventElapsedTime(&ms, e, f));
  SAY(cudaEventRecord(untimed, s));
  cudaDeviceSynchronize();
  SAY(cudaEventElapsedTime(&ms, e, untimed));
  spin<<<1, 1, 0, s>>>(200000000);
  SAY(cudaStreamQuery(s));
  SAY(cudaEventRecord(f, s));
  SAY(cudaEventQuery(f));
  SAY(cudaEventElapsedTime(&ms, e, f));
  SAY(cudaStreamQuery(0));
  SAY(cudaStreamQuery(t));
  SAY(cudaStreamWaitEvent(t, f, 0));
  SAY(cudaStreamQuery(t));
  SAY(cudaEventSynchronize(f));
  SAY(cudaEventElapsedTime(&ms, e, f));
  SAY(cudaEventCreateWithFlags(&f, 64));
  SAY(cudaEventRecord(NULL, 0));
  SAY(cudaEventDestroy(NULL));
  SAY(cudaStreamDestroy(NULL));
  SAY(cudaStreamSynchronize(cudaStreamPerThread));
  SAY(cudaStreamWaitEvent(s, NULL, 0));
  SAY(cudaLaunchHostFunc(s, NULL, NULL));
  unsigned flags;
  int priority, least, greatest;
  SAY(cudaStreamGetFlags(t, &flags));
  SAY(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  printf("%-66s %d %d\n", "  least, greatest", least, greatest);
  cudaStreamCreateWithPriority(&t, cudaStreamNonBlocking, -100);
  SAY(cudaStreamGetPriority(t, &priority));
  printf("%-66s %d\n", "  of -100", priority);
}

static void captures(void) {
  cudaStream_t s, t;
  cudaEvent_t e, f;
  cudaGraph_t g;
  cudaGraphExec_t x;
  void *p;
  int *d;
  size_t count;
  cudaMalloc(&d, 64);
  cudaStreamCreate(&s);
  cudaStreamCreate(&t);
  cudaEventCreate(&e);
  cudaEventCreate(&f);
  puts("-- captures");
  SAY(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal));
  SAY(cudaStreamEndCapture(s, &g));
  SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  SAY(cudaStreamSynchronize(s));
  SAY(cudaStreamEndCapture(s, &g));
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  SAY(cudaMalloc(&p, 16));
  SAY(cudaStreamEndCapture(s, &g));
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  SAY(cudaMemset(d, 0, 4));
  SAY(cudaStreamEndCapture(s, &g));
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  SAY(cudaDeviceSynchronize());
  SAY(cudaStreamEndCapture(s, &g));
  cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed);
  SAY(cudaMalloc(&p, 16));
  nothing<<<1, 1>>>();
  say("launch into the default stream", cudaGetLastError());
  SAY(cudaStreamEndCapture(s, &g));
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  SAY(cudaEventRecord(e, s));
  SAY(cudaEventQuery(e));
  SAY(cudaStreamEndCapture(s, &g));
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  cudaEventRecord(e, s);
  SAY(cudaStreamWaitEvent(t, e, 0));
  SAY(cudaMemsetAsync(d, 0, 64, t));
  SAY(cudaStreamEndCapture(t, &g));
  SAY(cudaStreamEndCapture(s, &g));
  cudaEventRecord(f, t);
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  SAY(cudaStreamWaitEvent(s, f, 0));
  SAY(cudaStreamEndCapture(s, &g));
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  cudaEventRecord(e, s);
  cudaStreamWaitEvent(t, e, 0);
  SAY(cudaMemsetAsync(d, 0, 64, t));
  cudaEventRecord(f, t);
  cudaStreamWaitEvent(s, f, 0);
  nothing<<<1, 1, 0, s>>>();
  SAY(cudaStreamEndCapture(s, &g));
  SAY(cudaGraphGetNodes(g, NULL, &count));
  printf("%-66s %zu\n", "  nodes", count);
  SAY(cudaGraphInstantiate(&x, g, 0));
  SAY(cudaGraphLaunch(x, s));
  SAY(cudaStreamSynchronize(s));
  SAY(cudaGraphLaunch(NULL, s));
  SAY(cudaGraphExecDestroy(x));
  SAY(cudaGraphDestroy(g));
  SAY(cudaEventQuery(e));
}

static void devices(void) {
  cudaDeviceProp p;
  cudaFuncAttributes a;
  int value, blocks;
  size_t bytes;
  puts("-- devices and kernels");
  SAY(cudaSetDevice(-1));
  SAY(cudaSetDevice(1000));
  SAY(cudaGetDeviceProperties(&p, 1000));
  SAY(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)9999, 0));
  SAY(cudaDeviceSetLimit((enum cudaLimit)99, 1));
  SAY(cudaDeviceCanAccessPeer(&value, 0, 0));
  SAY(cudaDeviceCanAccessPeer(&value, 0, 1000));
  SAY(cudaDeviceEnablePeerAccess(0, 0));
  SAY(cudaDeviceDisablePeerAccess(0));
  SAY(cudaFuncGetAttributes(&a, (const void *)NULL));
  SAY(cudaFuncGetAttributes(&a, (const void *)not_a_symbol));
  SAY(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20));
  SAY(cudaFuncSetAttribute(nothing, (enum cudaFuncAttribute)99, 1));
  SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 0, 0));
  SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 2048, 0));
  printf("%-66s %d\n", "  blocks", blocks);
  SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 128, 1 << 20));
  printf("%-66s %d\n", "  blocks", blocks);
  SAY(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, nothing, 2, 128));
  SAY(cudaLaunchKernel((const void *)not_a_symbol, dim3(1), dim3(1), NULL, 0, 0));
  SAY(cudaStreamQuery(0));
  nothing<<<1, 1, 50000>>>();
  say("nothing<<<1, 1, 50000>>>()", cudaGetLastError());
}

static void host_function(void *error) { *(cudaError_t *)error = cudaStreamQuery(0); }

int main(void) {
  cudaError_t inside = cudaSuccess;
  allocation();
  copies();
  streams();
  captures();
  devices();
  cudaLaunchHostFunc(0, host_function, &inside);
  cudaDeviceSynchronize();
  say("cudaStreamQuery() inside of a host function", inside);
  puts("-- reset");
  void *p;
  cudaMalloc(&p, 100);
  SAY(cudaDeviceReset());
  SAY(cudaFree(p));
  SAY(cudaDeviceSynchronize());
}
