// Errors on purpose: wrong launches, wrong copies, last-error semantics, names and strings. Every line tells what came.
#include <cstdio>
#include <cstring>
#include <cstdlib>

static int mistakes = 0;

static void expect(const char *what, cudaError_t got, cudaError_t want, cudaError_t or_want = cudaSuccess, bool two = false)
{
    bool ok = got == want || (two && got == or_want);
    printf("%-44s -> %-34s %s\n", what, cudaGetErrorName(got), ok ? "" : "<== UNEXPECTED");
    mistakes += !ok;
}

__global__ void noop() {}
__global__ void fill(int *p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] = i; }
__global__ void huge_dynamic(int *p) { extern __shared__ int s[]; s[threadIdx.x] = threadIdx.x; __syncthreads(); p[threadIdx.x] = s[threadIdx.x]; }

int main(int, char **)
{
    int n = 1000, *d = nullptr, *h = (int *)malloc(n * sizeof(int));
    expect("cudaMalloc", cudaMalloc(&d, n * sizeof(int)), cudaSuccess);

    // impossible launches: CUDA 12 and before say InvalidConfiguration, CUDA 13 InvalidValue
    noop<<<1, 1280>>>();
    expect("1280 threads in a block", cudaGetLastError(), cudaErrorInvalidConfiguration, cudaErrorInvalidValue, true);
    expect("and it is gone", cudaGetLastError(), cudaSuccess);
    noop<<<0, 32>>>();
    expect("no blocks", cudaPeekAtLastError(), cudaErrorInvalidConfiguration, cudaErrorInvalidValue, true);
    expect("peeking leaves it", cudaGetLastError(), cudaErrorInvalidConfiguration, cudaErrorInvalidValue, true);
    noop<<<1, dim3(1, 1, 128)>>>();
    expect("block.z of 128", cudaGetLastError(), cudaErrorInvalidConfiguration, cudaErrorInvalidValue, true);
    noop<<<dim3(1, 70000), 1>>>();
    expect("grid.y of 70000", cudaGetLastError(), cudaErrorInvalidConfiguration, cudaErrorInvalidValue, true);
    huge_dynamic<<<1, 32, 64 * 1024>>>(d);
    expect("64 KB of shared memory, not opted in", cudaGetLastError(), cudaErrorInvalidValue);
    expect("asking for 300 KB", cudaFuncSetAttribute(huge_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 300 * 1024), cudaErrorInvalidValue);
    cudaGetLastError();
    expect("asking for 64 KB", cudaFuncSetAttribute(huge_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024), cudaSuccess);
    huge_dynamic<<<1, 32, 64 * 1024>>>(d);
    expect("now it runs", cudaGetLastError(), cudaSuccess);
    expect("to the end", cudaDeviceSynchronize(), cudaSuccess);

    // copies
    fill<<<(n + 255) / 256, 256>>>(d, n);
    expect("wrong direction: device as host", cudaMemcpy(h, d, n * sizeof(int), cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    expect("wrong direction: host as device", cudaMemcpy(h, h + 500, 400, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
    expect("no such direction", cudaMemcpy(h, d, 4, (cudaMemcpyKind)7), cudaErrorInvalidMemcpyDirection);
    expect("copying past the end", cudaMemcpy(d, h, n * sizeof(int) + 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    expect("to NULL", cudaMemcpy(NULL, h, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    expect("the last of them is remembered", cudaGetLastError(), cudaErrorInvalidValue);
    memset(h, 0, n * sizeof(int));
    expect("the right way", cudaMemcpy(h, d, n * sizeof(int), cudaMemcpyDeviceToHost), cudaSuccess);
    for (int i = 0; i < n; i++) mistakes += h[i] != i;
    expect("cudaMemset past the end", cudaMemset(d, 0, n * sizeof(int) + 1), cudaErrorInvalidValue);

    // memory
    void *p = nullptr;
    expect("more memory than there is", cudaMalloc(&p, (size_t)1 << 50), cudaErrorMemoryAllocation);
    expect("freeing NULL", cudaFree(NULL), cudaSuccess);
    expect("freeing host memory", cudaFree(h), cudaErrorInvalidValue);
    expect("freeing the middle", cudaFree(d + 1), cudaErrorInvalidValue);
    expect("device 99", cudaSetDevice(99), cudaErrorInvalidDevice);
    cudaEvent_t a, b;
    cudaEventCreate(&a);
    cudaEventCreate(&b);
    float ms;
    expect("time between unrecorded events", cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle);
    cudaEventDestroy(a);
    cudaEventDestroy(b);
    cudaGetLastError();
    expect("all of this was no accident", cudaGetLastError(), cudaSuccess);

    struct { cudaError_t e; const char *name, *text; } names[] = {
        {cudaSuccess, "cudaSuccess", "no error"},
        {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
        {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
        {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
        {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
        {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
        {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
        {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
        {(cudaError_t)123456, "unrecognized error code", "unrecognized error code"},
    };
    for (auto &x : names)
        if (strcmp(cudaGetErrorName(x.e), x.name) || strcmp(cudaGetErrorString(x.e), x.text)) {
            printf("%d is \"%s\": \"%s\"\n", (int)x.e, cudaGetErrorName(x.e), cudaGetErrorString(x.e));
            mistakes++;
        }
    expect("cudaFree", cudaFree(d), cudaSuccess);
    expect("once more", cudaFree(d), cudaErrorInvalidValue);
    free(h);
    cudaDeviceReset();
    printf("%d unexpected\n", mistakes);
    return mistakes != 0;
}
