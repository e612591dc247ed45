/*
    Parallel reduction, seven ways. Each kernel improves on the one before:
    0 interleaved addressing with a divergent branch     1 strided index, bank conflicts
    2 sequential addressing                              3 first add during load
    4 unroll the last warp                               5 completely unrolled, template
    6 multiple elements per thread
*/
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <device_launch_parameters.h>

#define gpuErrchk(ans) do { gpuAssert((ans), __FILE__, __LINE__); } while (0)
inline void gpuAssert(cudaError_t code, const char *file, int line)
{
    if (code != cudaSuccess) {
        fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
        exit(code);
    }
}

__global__ void reduce0(int *g_idata, int *g_odata, unsigned int n)
{
    extern __shared__ int sdata[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    sdata[tid] = (i < n) ? g_idata[i] : 0;
    __syncthreads();
    for (unsigned int s = 1; s < blockDim.x; s *= 2) {
        if (tid % (2 * s) == 0) {
            sdata[tid] += sdata[tid + s];
        }
        __syncthreads();
    }
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

__global__ void reduce1(int *g_idata, int *g_odata, unsigned int n)
{
    extern __shared__ int sdata[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    sdata[tid] = (i < n) ? g_idata[i] : 0;
    __syncthreads();
    for (unsigned int s = 1; s < blockDim.x; s *= 2) {
        int index = 2 * s * tid;
        if (index < blockDim.x) sdata[index] += sdata[index + s];
        __syncthreads();
    }
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

__global__ void reduce2(int *g_idata, int *g_odata, unsigned int n)
{
    extern __shared__ int sdata[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    sdata[tid] = (i < n) ? g_idata[i] : 0;
    __syncthreads();
    for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

__global__ void reduce3(int *g_idata, int *g_odata, unsigned int n)
{
    extern __shared__ int sdata[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * (blockDim.x * 2) + threadIdx.x;
    int mySum = (i < n) ? g_idata[i] : 0;
    if (i + blockDim.x < n) mySum += g_idata[i + blockDim.x];
    sdata[tid] = mySum;
    __syncthreads();
    for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] = mySum = mySum + sdata[tid + s];
        __syncthreads();
    }
    if (tid == 0) g_odata[blockIdx.x] = mySum;
}

__device__ void warpReduce(volatile int *sdata, unsigned int tid)
{
    int v = sdata[tid];
    v += sdata[tid + 32]; __syncwarp(); sdata[tid] = v; __syncwarp();
    v += sdata[tid + 16]; __syncwarp(); sdata[tid] = v; __syncwarp();
    v += sdata[tid + 8];  __syncwarp(); sdata[tid] = v; __syncwarp();
    v += sdata[tid + 4];  __syncwarp(); sdata[tid] = v; __syncwarp();
    v += sdata[tid + 2];  __syncwarp(); sdata[tid] = v; __syncwarp();
    v += sdata[tid + 1];  __syncwarp(); sdata[tid] = v;
}

__global__ void reduce4(int *g_idata, int *g_odata, unsigned int n)
{
    extern __shared__ int sdata[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * (blockDim.x * 2) + threadIdx.x;
    int mySum = (i < n) ? g_idata[i] : 0;
    if (i + blockDim.x < n) mySum += g_idata[i + blockDim.x];
    sdata[tid] = mySum;
    __syncthreads();
    for (unsigned int s = blockDim.x / 2; s > 32; s >>= 1) {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    if (tid < 32) warpReduce(sdata, tid);
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

template <unsigned int blockSize>
__device__ void blockReduceUnrolled(int *sdata, unsigned int tid)
{
    if (blockSize >= 1024) { if (tid < 512) { sdata[tid] += sdata[tid + 512]; } __syncthreads(); }
    if (blockSize >= 512) { if (tid < 256) { sdata[tid] += sdata[tid + 256]; } __syncthreads(); }
    if (blockSize >= 256) { if (tid < 128) { sdata[tid] += sdata[tid + 128]; } __syncthreads(); }
    if (blockSize >= 128) { if (tid < 64) { sdata[tid] += sdata[tid + 64]; } __syncthreads(); }
    if (tid < 32) warpReduce(sdata, tid);
}

template <unsigned int blockSize>
__global__ void reduce5(int *g_idata, int *g_odata, unsigned int n)
{
    extern __shared__ int sdata[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * (blockSize * 2) + threadIdx.x;
    int mySum = (i < n) ? g_idata[i] : 0;
    if (i + blockSize < n) mySum += g_idata[i + blockSize];
    sdata[tid] = mySum;
    __syncthreads();
    blockReduceUnrolled<blockSize>(sdata, tid);
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

template <unsigned int blockSize>
__global__ void reduce6(int *g_idata, int *g_odata, unsigned int n)
{
    extern __shared__ int sdata[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * (blockSize * 2) + tid;
    unsigned int gridSize = blockSize * 2 * gridDim.x;
    sdata[tid] = 0;
    while (i < n) {
        sdata[tid] += g_idata[i];
        if (i + blockSize < n) sdata[tid] += g_idata[i + blockSize];
        i += gridSize;
    }
    __syncthreads();
    blockReduceUnrolled<blockSize>(sdata, tid);
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

void launch(int which, int threads, int blocks, int *d_in, int *d_out, unsigned int n)
{
    dim3 dimBlock(threads, 1, 1);
    dim3 dimGrid(blocks, 1, 1);
    int smemSize = threads * sizeof(int);
    switch (which) {
    case 0: reduce0<<< dimGrid, dimBlock, smemSize >>>(d_in, d_out, n); break;
    case 1: reduce1<<< dimGrid, dimBlock, smemSize >>>(d_in, d_out, n); break;
    case 2: reduce2<<< dimGrid, dimBlock, smemSize >>>(d_in, d_out, n); break;
    case 3: reduce3<<< dimGrid, dimBlock, smemSize >>>(d_in, d_out, n); break;
    case 4: reduce4<<< dimGrid, dimBlock, smemSize >>>(d_in, d_out, n); break;
    case 5:
    case 6:
        switch (threads) {
        case 1024:
            if (which == 5) reduce5<1024><<< dimGrid, dimBlock, smemSize >>>(d_in, d_out, n);
            else reduce6<1024><<< dimGrid, dimBlock, smemSize >>>(d_in, d_out, n);
            break;
        case 256:
            if (which == 5) reduce5<256><<< dimGrid, dimBlock, smemSize >>>(d_in, d_out, n);
            else reduce6<256><<< dimGrid, dimBlock, smemSize >>>(d_in, d_out, n);
            break;
        case 64:
            if (which == 5) reduce5<64><<< dimGrid, dimBlock, smemSize >>>(d_in, d_out, n);
            else reduce6<64><<< dimGrid, dimBlock, smemSize >>>(d_in, d_out, n);
            break;
        }
    }
    gpuErrchk(cudaPeekAtLastError());
}

int main(int argc, char **argv)
{
    unsigned int n = argc > 1 ? atoi(argv[1]) : 200003;
    int *h_in = (int *)malloc(n * sizeof(int));
    long long expect = 0;
    for (unsigned int i = 0; i < n; i++) {
        h_in[i] = (int)(rand() & 0xFF) - 100;
        expect += h_in[i];
    }
    int *d_in, *d_out;
    gpuErrchk(cudaMalloc((void **)&d_in, n * sizeof(int)));
    gpuErrchk(cudaMalloc((void **)&d_out, (n / 32 + 1) * sizeof(int)));
    gpuErrchk(cudaMemcpy(d_in, h_in, n * sizeof(int), cudaMemcpyHostToDevice));
    int *h_out = (int *)malloc((n / 32 + 1) * sizeof(int));

    int failures = 0;
    int sizes[] = {64, 256, 1024};
    for (int threads : sizes) {
        for (int which = 0; which <= 6; which++) {
            int perBlock = which >= 3 ? threads * 2 : threads;
            int blocks = (n + perBlock - 1) / perBlock;
            if (which == 6 && blocks > 24) blocks = 24;
            cudaEvent_t e0, e1;
            cudaEventCreate(&e0);
            cudaEventCreate(&e1);
            cudaEventRecord(e0, 0);
            launch(which, threads, blocks, d_in, d_out, n);
            cudaEventRecord(e1, 0);
            cudaEventSynchronize(e1);
            float ms;
            cudaEventElapsedTime(&ms, e0, e1);
            gpuErrchk(cudaMemcpy(h_out, d_out, blocks * sizeof(int), cudaMemcpyDeviceToHost));
            long long sum = 0;
            for (int b = 0; b < blocks; b++) sum += h_out[b];
            printf("reduce%d  block %4d  grid %4d  %8.4f ms  %8.3f GB/s  sum %lld  %s\n", which, threads, blocks, ms,
                   n * sizeof(int) / (ms * 1e6), sum, sum == expect ? "OK" : "MISMATCH");
            failures += sum != expect;
            cudaEventDestroy(e0);
            cudaEventDestroy(e1);
        }
    }
    cudaFree(d_in);
    cudaFree(d_out);
    free(h_in);
    free(h_out);
    printf("%s\n", failures ? "Test FAILED" : "Test PASSED");
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
