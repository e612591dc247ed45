/*
 * Reduction with cooperative groups: tiles, cg::reduce, and a grid-wide barrier, launched with
 * cudaLaunchCooperativeKernel so that the whole grid is resident.
 */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>

namespace cg = cooperative_groups;

#define CUDA_RT_CALL(call)                                                                  \
    {                                                                                       \
        cudaError_t cudaStatus = call;                                                      \
        if (cudaSuccess != cudaStatus) {                                                    \
            fprintf(stderr,                                                                 \
                    "ERROR: CUDA RT call \"%s\" in line %d of file %s failed with %s (%d).\n", \
                    #call, __LINE__, __FILE__, cudaGetErrorString(cudaStatus), cudaStatus); \
            exit(cudaStatus);                                                               \
        }                                                                                   \
    }

__device__ void reduceBlock(double *sdata, const cg::thread_block &cta)
{
    const unsigned int tid = cta.thread_rank();
    cg::thread_block_tile<32> tile32 = cg::tiled_partition<32>(cta);

    sdata[tid] = cg::reduce(tile32, sdata[tid], cg::plus<double>());
    cg::sync(cta);

    double beta = 0.0;
    if (cta.thread_rank() == 0) {
        beta = 0;
        for (int i = 0; i < blockDim.x; i += tile32.size()) {
            beta += sdata[i];
        }
        sdata[0] = beta;
    }
    cg::sync(cta);
}

extern "C" __global__ void reduceSinglePassMultiBlockCG(const float *g_idata, float *g_odata, double *scratch,
                                                        unsigned int n)
{
    cg::thread_block block = cg::this_thread_block();
    cg::grid_group grid = cg::this_grid();

    extern double __shared__ sdata[];

    // Stride over grid and add the values to a shared memory buffer
    sdata[block.thread_rank()] = 0;
    for (int i = grid.thread_rank(); i < n; i += grid.size()) {
        sdata[block.thread_rank()] += g_idata[i];
    }
    cg::sync(block);

    reduceBlock(sdata, block);
    if (block.thread_rank() == 0) {
        scratch[blockIdx.x] = sdata[0];
    }
    cg::sync(grid);

    if (grid.thread_rank() == 0) {
        double sum = scratch[0];
        for (int b = 1; b < gridDim.x; b++) {
            sum += scratch[b];
        }
        *g_odata = (float)sum;
    }
    grid.sync();

    // everybody sees the answer
    if (threadIdx.x == 0 && blockIdx.x > 0) {
        g_odata[blockIdx.x] = g_odata[0] * blockIdx.x;
    }
}

int main()
{
    int dev = 0, supportsCoopLaunch = 0;
    CUDA_RT_CALL(cudaGetDevice(&dev));
    cudaDeviceProp prop = {};
    CUDA_RT_CALL(cudaGetDeviceProperties(&prop, dev));
    CUDA_RT_CALL(cudaDeviceGetAttribute(&supportsCoopLaunch, cudaDevAttrCooperativeLaunch, dev));
    if (!supportsCoopLaunch) {
        printf("\nSelected GPU (%d) does not support Cooperative Kernel Launch, Waiving the run\n", dev);
        return 2;
    }

    unsigned int n = 1 << 17;
    int threads = 128, perSM = 0;
    size_t smem = threads * sizeof(double);
    CUDA_RT_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perSM, reduceSinglePassMultiBlockCG, threads, smem));
    int blocks = prop.multiProcessorCount * perSM;
    printf("%d SMs, %d blocks each can be resident\n", prop.multiProcessorCount, perSM);
    if (blocks > 24) blocks = 24;

    float *h = (float *)malloc(n * sizeof(float)), *d, *d_out;
    double *scratch, want = 0;
    for (unsigned i = 0; i < n; i++) {
        h[i] = (rand() & 0xFF) / 256.0f;
        want += h[i];
    }
    CUDA_RT_CALL(cudaMalloc(&d, n * sizeof(float)));
    CUDA_RT_CALL(cudaMalloc(&d_out, blocks * sizeof(float)));
    CUDA_RT_CALL(cudaMalloc(&scratch, blocks * sizeof(double)));
    CUDA_RT_CALL(cudaMemcpy(d, h, n * sizeof(float), cudaMemcpyHostToDevice));

    dim3 dimBlock(threads, 1, 1);
    dim3 dimGrid(blocks, 1, 1);
    void *kernelArgs[] = {
        (void *)&d, (void *)&d_out, (void *)&scratch, (void *)&n,
    };
    CUDA_RT_CALL(cudaLaunchCooperativeKernel((void *)reduceSinglePassMultiBlockCG, dimGrid, dimBlock, kernelArgs, smem,
                                             NULL));
    CUDA_RT_CALL(cudaDeviceSynchronize());

    float *out = (float *)malloc(blocks * sizeof(float));
    CUDA_RT_CALL(cudaMemcpy(out, d_out, blocks * sizeof(float), cudaMemcpyDeviceToHost));
    bool ok = fabs(out[0] - want) < 1e-5 * want;
    for (int b = 1; b < blocks; b++) ok = ok && fabs(out[b] - b * want) < 1e-5 * b * want;
    printf("GPU sum : %f   CPU sum : %f   %s\n", out[0], want, ok ? "PASSED" : "FAILED");

    // more blocks than fit must be refused
    dim3 tooMany(prop.multiProcessorCount * prop.maxThreadsPerMultiProcessor + 1);
    cudaError_t e = cudaLaunchCooperativeKernel((void *)reduceSinglePassMultiBlockCG, tooMany, dimBlock, kernelArgs, smem, 0);
    printf("too large a grid: %s\n", cudaGetErrorName(e));
    if (e != cudaErrorCooperativeLaunchTooLarge) ok = false;
    cudaGetLastError();

    CUDA_RT_CALL(cudaFree(d));
    CUDA_RT_CALL(cudaFree(d_out));
    CUDA_RT_CALL(cudaFree(scratch));
    free(h);
    free(out);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
