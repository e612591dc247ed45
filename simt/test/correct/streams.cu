// Streams and events with just the waiting that is needed: right also where work is done as late as allowed.
#include "check.h"

#define N 256

__global__ void set(int *x, int value) { x[blockIdx.x * blockDim.x + threadIdx.x] = value; }
__global__ void add(int *x, int value) { x[blockIdx.x * blockDim.x + threadIdx.x] += value; }
__global__ void combine(const int *x, const int *y, int *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  z[i] = x[i] + 2 * y[i];
}

static int all_are(const int *x, int value) {
  for (int i = 0; i < N; i++)
    if (x[i] != value) return 0;
  return 1;
}

static void note(void *flag) { *(int *)flag = 1; }

int main(void) {
  int *dx = raw_on_device<int>(N), *dy = raw_on_device<int>(N), *dz = raw_on_device<int>(N), *pinned, *second_pinned;
  cudaStream_t first, second, free_running;
  cudaEvent_t event, start, stop;
  TRY(cudaMallocHost((void **)&pinned, N * sizeof(int)));
  TRY(cudaMallocHost((void **)&second_pinned, N * sizeof(int)));
  TRY(cudaStreamCreate(&first));
  TRY(cudaStreamCreate(&second));
  TRY(cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking));
  TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  TRY(cudaEventCreate(&start));
  TRY(cudaEventCreate(&stop));

  // One stream is an order of its own.
  set<<<2, 128, 0, first>>>(dx, 1);
  add<<<2, 128, 0, first>>>(dx, 2);
  TRY(cudaMemcpyAsync(pinned, dx, N * sizeof(int), cudaMemcpyDeviceToHost, first));
  TRY(cudaStreamSynchronize(first));
  check("one stream", all_are(pinned, 3));

  // Another stream waits for an event.
  set<<<2, 128, 0, first>>>(dx, 5);
  TRY(cudaEventRecord(event, first));
  set<<<2, 128, 0, second>>>(dy, 7);
  TRY(cudaStreamWaitEvent(second, event, 0));
  combine<<<2, 128, 0, second>>>(dx, dy, dz);
  TRY(cudaMemcpyAsync(pinned, dz, N * sizeof(int), cudaMemcpyDeviceToHost, second));
  TRY(cudaStreamSynchronize(second));
  check("a stream waits for another one's event", all_are(pinned, 19));

  // The host waits for an event.
  set<<<2, 128, 0, free_running>>>(dx, 11);
  TRY(cudaMemcpyAsync(pinned, dx, N * sizeof(int), cudaMemcpyDeviceToHost, free_running));
  TRY(cudaEventRecord(event, free_running));
  TRY(cudaEventSynchronize(event));
  check("the host waits for an event", all_are(pinned, 11));

  // The host asks until it is done.
  set<<<2, 128, 0, first>>>(dx, 13);
  TRY(cudaMemcpyAsync(pinned, dx, N * sizeof(int), cudaMemcpyDeviceToHost, first));
  while (cudaStreamQuery(first) == cudaErrorNotReady) continue;
  check("the host asks the stream until it is done", all_are(pinned, 13));
  set<<<2, 128, 0, first>>>(dx, 14);
  TRY(cudaMemcpyAsync(pinned, dx, N * sizeof(int), cudaMemcpyDeviceToHost, first));
  TRY(cudaEventRecord(event, first));
  while (cudaEventQuery(event) == cudaErrorNotReady) continue;
  check("the host asks the event until it has happened", all_are(pinned, 14));

  // The default stream waits for the others, and they for it.
  set<<<2, 128, 0, first>>>(dx, 17);
  set<<<2, 128, 0, second>>>(dy, 1);
  combine<<<2, 128>>>(dx, dy, dz);
  add<<<2, 128, 0, first>>>(dz, 1);
  TRY(cudaStreamSynchronize(first));
  TRY(cudaMemcpy(pinned, dz, N * sizeof(int), cudaMemcpyDeviceToHost));
  check("the default stream waits for the others, and they for it", all_are(pinned, 20));

  // cudaMemcpy() waits by itself.
  set<<<2, 128>>>(dx, 23);
  TRY(cudaMemcpy(pinned, dx, N * sizeof(int), cudaMemcpyDeviceToHost));
  check("cudaMemcpy waits", all_are(pinned, 23));

  // Two buffers in turn: the host fills one while the other is on its way.
  int *buffer[2] = {pinned, second_pinned}, total = 0;
  cudaEvent_t copied[2];
  for (int i = 0; i < 2; i++) TRY(cudaEventCreateWithFlags(&copied[i], cudaEventDisableTiming));
  TRY(cudaMemset(dz, 0, N * sizeof(int)));
  TRY(cudaDeviceSynchronize());
  for (int batch = 0; batch < 6; batch++) {
    int *own = buffer[batch % 2];
    if (batch >= 2) TRY(cudaEventSynchronize(copied[batch % 2]));
    for (int i = 0; i < N; i++) own[i] = batch;
    TRY(cudaMemcpyAsync(dx, own, N * sizeof(int), cudaMemcpyHostToDevice, first));
    TRY(cudaEventRecord(copied[batch % 2], first));
    combine<<<2, 128, 0, first>>>(dz, dx, dz);
    total += 2 * batch;
  }
  TRY(cudaStreamSynchronize(first));
  TRY(cudaMemcpy(pinned, dz, N * sizeof(int), cudaMemcpyDeviceToHost));
  check("two buffers in turn", all_are(pinned, total));

  // Time between two events, asked for when both have happened.
  float milliseconds = -1;
  TRY(cudaEventRecord(start));
  set<<<2, 128>>>(dx, 1);
  TRY(cudaEventRecord(stop));
  TRY(cudaEventSynchronize(stop));
  TRY(cudaEventElapsedTime(&milliseconds, start, stop));
  check("the time between two events", milliseconds >= 0);

  // A host function in its stream's order.
  int called = 0;
  set<<<2, 128, 0, first>>>(dx, 1);
  TRY(cudaLaunchHostFunc(first, note, &called));
  TRY(cudaStreamSynchronize(first));
  check("a host function in a stream", called == 1);

  // Managed memory: the host waits, then reads; writes, then launches.
  int *managed;
  TRY(cudaMallocManaged((void **)&managed, N * sizeof(int)));
  for (int i = 0; i < N; i++) managed[i] = 1;
  add<<<2, 128>>>(managed, 1);
  TRY(cudaDeviceSynchronize());
  for (int i = 0; i < N; i++) managed[i] *= 10;
  add<<<2, 128>>>(managed, 2);
  TRY(cudaDeviceSynchronize());
  check("managed memory in turn", all_are(managed, 22));

  // Two streams at work on two halves at the same time.
  set<<<1, 128, 0, first>>>(dx, 31);
  set<<<1, 128, 0, second>>>(dx + 128, 31);
  TRY(cudaDeviceSynchronize());
  TRY(cudaMemcpy(pinned, dx, N * sizeof(int), cudaMemcpyDeviceToHost));
  check("two streams on two halves", all_are(pinned, 31));

  // Two streams read the same input at the same time.
  combine<<<2, 128, 0, first>>>(dx, dx, dy);
  combine<<<2, 128, 0, second>>>(dx, dx, dz);
  TRY(cudaStreamSynchronize(first));
  TRY(cudaStreamSynchronize(second));
  TRY(cudaMemcpy(pinned, dy, N * sizeof(int), cudaMemcpyDeviceToHost));
  check("two streams read one input", all_are(pinned, 93));

  // Allocation and release in the stream's order.
  int *scratch;
  TRY(cudaMallocAsync((void **)&scratch, N * sizeof(int), first));
  set<<<2, 128, 0, first>>>(scratch, 3);
  combine<<<2, 128, 0, first>>>(scratch, scratch, dy);
  TRY(cudaFreeAsync(scratch, first));
  TRY(cudaMemcpyAsync(pinned, dy, N * sizeof(int), cudaMemcpyDeviceToHost, first));
  TRY(cudaStreamSynchronize(first));
  check("memory of a stream", all_are(pinned, 9));

  for (int i = 0; i < 2; i++) TRY(cudaEventDestroy(copied[i]));
  TRY(cudaEventDestroy(event));
  TRY(cudaEventDestroy(start));
  TRY(cudaEventDestroy(stop));
  TRY(cudaStreamDestroy(first));
  TRY(cudaStreamDestroy(second));
  TRY(cudaStreamDestroy(free_running));
  TRY(cudaFreeHost(pinned));
  TRY(cudaFreeHost(second_pinned));
  void *all[] = {dx, dy, dz, managed};
  for (void *one : all) TRY(cudaFree(one));
  return finish();
}
