// Device-side assert: the next call must return cudaErrorAssert, and it stays. Device printf in order within a thread.
#include <stdio.h>
#include <assert.h>
#include <cuda_runtime.h>

__global__ void hello(int verbose)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (verbose && i % 10 == 0) printf("[%d, %d]:\t\tHello from thread %d, %s %5.2f %#x %llu\n", blockIdx.x, threadIdx.x, i, "pi is", 3.14159f, i, 1ull << 40);
    assert(i >= 0);
}

__global__ void testKernel(int N, int *out)
{
    int gtid = blockIdx.x * blockDim.x + threadIdx.x;
    assert(gtid < N);
    out[gtid] = gtid;
}

int main(int argc, char **argv)
{
    int *d;
    cudaMalloc(&d, 64 * sizeof(int));
    hello<<<2, 32>>>(1);
    cudaError_t error = cudaDeviceSynchronize();
    printf("hello: %s\n", cudaGetErrorString(error));
    if (error != cudaSuccess) return 1;

    testKernel<<<2, 32>>>(64, d);
    error = cudaDeviceSynchronize();
    printf("all within bounds: %s\n", cudaGetErrorName(error));
    if (error != cudaSuccess) return 1;

    printf("Launch kernel to generate assertion failures\n");
    testKernel<<<2, 32>>>(60, d);
    printf("\n-- Begin assert output\n\n");
    fflush(stdout);
    error = cudaDeviceSynchronize();
    printf("\n-- End assert output\n\n");
    if (error == cudaErrorAssert) printf("Device assert failed as expected, CUDA error message is: %s\n\n", cudaGetErrorString(error));
    else { printf("expected cudaErrorAssert, got %s\n", cudaGetErrorName(error)); return 1; }

    // sticky: the context is lost, every later call says so
    void *p;
    error = cudaMalloc(&p, 4);
    printf("afterwards: %s\n", cudaGetErrorName(error));
    cudaError_t last = cudaGetLastError(), again = cudaDeviceSynchronize();
    printf("last error %s, next call %s\n", cudaGetErrorName(last), cudaGetErrorName(again));
    bool ok = error == cudaErrorAssert && again == cudaErrorAssert && cudaMemset(d, 0, 4) == cudaErrorAssert;
    puts(ok ? "Test passed" : "Test failed");
    return ok ? 0 : 1;
}
