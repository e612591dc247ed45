// Streams in full: priorities, non-blocking flags, events across streams, callbacks, host functions, queries, pool allocation.
#include <cstdio>
#include <cstdlib>
#include <atomic>
#include <vector>
#include <thread>
#include <cuda_runtime.h>

#define RUN(x) if ((rc = (x)) != cudaSuccess) { fprintf(stderr, "%s:%d %s -> %s\n", __FILE__, __LINE__, #x, cudaGetErrorName(rc)); goto bail; }

struct Workload {
    int id;
    int *h_data, *d_data;
    cudaStream_t stream;
    std::atomic<int> callbacks;
    bool success;
};

__global__ void incKernel(int *data, int N, int by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) data[i] += by;
}

__global__ void spin(long long cycles, int *flag)
{
    long long t0 = clock64();
    while (clock64() - t0 < cycles) ;
    if (flag) *flag = 1;
}

static const int N = 20000;

void CUDART_CB myStreamCallback(cudaStream_t event, cudaError_t status, void *data)
{
    Workload *w = (Workload *)data;
    w->callbacks++;
    w->success = status == cudaSuccess;
    for (int i = 0; i < N; i++) w->success = w->success && w->h_data[i] == i + w->id;
}

void CUDART_CB hostFunction(void *data) { ((Workload *)data)->callbacks += 10; }

int main()
{
    cudaError_t rc = cudaSuccess;
    const int workloads = 6;
    Workload w[workloads] = {};
    cudaEvent_t done[workloads], gate;
    cudaStream_t low, high;
    int least, greatest, bad = 0, prio = 99;
    unsigned flags = 99;
    int *d_flag = NULL, h_flag = 0, *d_pool = NULL;
    std::vector<int> got(N);

    RUN(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    RUN(cudaStreamCreateWithPriority(&low, cudaStreamNonBlocking, least));
    RUN(cudaStreamCreateWithPriority(&high, cudaStreamDefault, greatest));
    RUN(cudaStreamGetPriority(high, &prio));
    RUN(cudaStreamGetFlags(low, &flags));
    bad += prio != greatest || flags != cudaStreamNonBlocking;
    RUN(cudaEventCreateWithFlags(&gate, cudaEventDisableTiming));

    // each workload in its own stream, a callback checks the result
    for (int i = 0; i < workloads; i++) {
        w[i].id = i;
        RUN(cudaStreamCreate(&w[i].stream));
        RUN(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming | cudaEventBlockingSync));
        RUN(cudaHostAlloc(&w[i].h_data, N * sizeof(int), cudaHostAllocPortable));
        RUN(cudaMalloc(&w[i].d_data, N * sizeof(int)));
        for (int k = 0; k < N; k++) w[i].h_data[k] = k;
    }
    for (int i = 0; i < workloads; i++) {
        RUN(cudaMemcpyAsync(w[i].d_data, w[i].h_data, N * sizeof(int), cudaMemcpyHostToDevice, w[i].stream));
        incKernel<<<(N + 511) / 512, 512, 0, w[i].stream>>>(w[i].d_data, N, w[i].id);
        RUN(cudaMemcpyAsync(w[i].h_data, w[i].d_data, N * sizeof(int), cudaMemcpyDeviceToHost, w[i].stream));
        RUN(cudaStreamAddCallback(w[i].stream, myStreamCallback, &w[i], 0));
        RUN(cudaLaunchHostFunc(w[i].stream, hostFunction, w + i));
        RUN(cudaEventRecord(done[i], w[i].stream));
    }
    for (int i = 0; i < workloads; i++) {
        RUN(cudaEventSynchronize(done[i]));
        RUN(cudaEventQuery(done[i]));
        RUN(cudaStreamQuery(w[i].stream));
        if (w[i].callbacks != 11 || !w[i].success) { bad++; printf("workload %d: %d callbacks, %s\n", i, (int)w[i].callbacks, w[i].success ? "right" : "wrong"); }
    }
    printf("%d workloads done\n", workloads);

    // a chain over all streams: every one waits for the event of the one before
    RUN(cudaMemset(w[0].d_data, 0, N * sizeof(int)));
    RUN(cudaDeviceSynchronize());
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < workloads; i++) {
            RUN(cudaStreamWaitEvent(w[i].stream, done[(i + workloads - 1) % workloads], 0));
            incKernel<<<(N + 255) / 256, 256, 0, w[i].stream>>>(w[0].d_data, N, 1 << i);
            RUN(cudaEventRecord(done[i], w[i].stream));
        }
    RUN(cudaStreamSynchronize(w[workloads - 1].stream));
    RUN(cudaMemcpy(got.data(), w[0].d_data, N * sizeof(int), cudaMemcpyDeviceToHost));
    for (int k = 0; k < N; k++) bad += got[k] != 3 * ((1 << workloads) - 1);
    printf("chain: %d per element\n", got[0]);

    // a non-blocking stream must be waited for explicitly
    RUN(cudaMalloc(&d_flag, sizeof(int)));
    RUN(cudaMemsetAsync(d_flag, 0, sizeof(int), low));
    spin<<<1, 1, 0, low>>>(10000, d_flag);
    RUN(cudaEventRecord(gate, low));
    RUN(cudaStreamWaitEvent(high, gate));
    RUN(cudaMemcpyAsync(&h_flag, d_flag, sizeof(int), cudaMemcpyDeviceToHost, high));
    while ((rc = cudaStreamQuery(high)) == cudaErrorNotReady) std::this_thread::yield();
    RUN(rc);
    bad += h_flag != 1;

    // stream-ordered allocation
    RUN(cudaMallocAsync((void **)&d_pool, N * sizeof(int), high));
    RUN(cudaMemsetAsync(d_pool, 0, N * sizeof(int), high));
    incKernel<<<(N + 127) / 128, 128, 0, high>>>(d_pool, N, 42);
    RUN(cudaMemcpyAsync(got.data(), d_pool, N * sizeof(int), cudaMemcpyDeviceToHost, high));
    RUN(cudaFreeAsync(d_pool, high));
    RUN(cudaStreamSynchronize(high));
    for (int k = 0; k < N; k++) bad += got[k] != 42;
    printf("pool: %d\n", got[N - 1]);

    for (int i = 0; i < workloads; i++) {
        RUN(cudaEventDestroy(done[i]));
        RUN(cudaStreamDestroy(w[i].stream));
        RUN(cudaFreeHost(w[i].h_data));
        RUN(cudaFree(w[i].d_data));
    }
    RUN(cudaFree(d_flag));
    RUN(cudaEventDestroy(gate));
    RUN(cudaStreamDestroy(low));
    RUN(cudaStreamDestroy(high));
bail:
    puts(rc == cudaSuccess && !bad ? "All streams in order" : "streams FAILED");
    return rc != cudaSuccess || bad;
}
