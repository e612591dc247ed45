/*
 * Bitonic sort of power-of-two arrays. One launch per (k, j) step in global memory; the small steps merged into a
 * shared-memory kernel. Key/value pairs, both directions.
 */
#include <stdlib.h>
#include <stdio.h>
#include <time.h>
#include "helper_check.h"

typedef unsigned int uint;
#define SHARED_SIZE_LIMIT 512U

__device__ inline void Comparator(uint &keyA, uint &valA, uint &keyB, uint &valB, uint dir)
{
    uint t;
    if ((keyA > keyB) == dir)
    {
        t = keyA; keyA = keyB; keyB = t;
        t = valA; valA = valB; valB = t;
    }
}

__global__ void bitonicSortShared1(uint *d_DstKey, uint *d_DstVal, uint *d_SrcKey, uint *d_SrcVal)
{
    __shared__ uint s_key[SHARED_SIZE_LIMIT];
    __shared__ uint s_val[SHARED_SIZE_LIMIT];

    // Offset to the beginning of subarray and load data
    d_SrcKey += blockIdx.x * SHARED_SIZE_LIMIT + threadIdx.x;
    d_SrcVal += blockIdx.x * SHARED_SIZE_LIMIT + threadIdx.x;
    d_DstKey += blockIdx.x * SHARED_SIZE_LIMIT + threadIdx.x;
    d_DstVal += blockIdx.x * SHARED_SIZE_LIMIT + threadIdx.x;
    s_key[threadIdx.x +                       0] = d_SrcKey[                      0];
    s_val[threadIdx.x +                       0] = d_SrcVal[                      0];
    s_key[threadIdx.x + (SHARED_SIZE_LIMIT / 2)] = d_SrcKey[(SHARED_SIZE_LIMIT / 2)];
    s_val[threadIdx.x + (SHARED_SIZE_LIMIT / 2)] = d_SrcVal[(SHARED_SIZE_LIMIT / 2)];

    for (uint size = 2; size < SHARED_SIZE_LIMIT; size <<= 1)
    {
        // Bitonic merge
        uint ddd = (threadIdx.x & (size / 2)) != 0;
        for (uint stride = size / 2; stride > 0; stride >>= 1)
        {
            __syncthreads();
            uint pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            Comparator(s_key[pos + 0], s_val[pos + 0], s_key[pos + stride], s_val[pos + stride], ddd);
        }
    }

    // Odd / even arrays of SHARED_SIZE_LIMIT elements sorted in opposite directions
    uint ddd = blockIdx.x & 1;
    {
        for (uint stride = SHARED_SIZE_LIMIT / 2; stride > 0; stride >>= 1)
        {
            __syncthreads();
            uint pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            Comparator(s_key[pos + 0], s_val[pos + 0], s_key[pos + stride], s_val[pos + stride], ddd);
        }
    }
    __syncthreads();
    d_DstKey[                      0] = s_key[threadIdx.x +                       0];
    d_DstVal[                      0] = s_val[threadIdx.x +                       0];
    d_DstKey[(SHARED_SIZE_LIMIT / 2)] = s_key[threadIdx.x + (SHARED_SIZE_LIMIT / 2)];
    d_DstVal[(SHARED_SIZE_LIMIT / 2)] = s_val[threadIdx.x + (SHARED_SIZE_LIMIT / 2)];
}

// Bitonic merge iteration for stride >= SHARED_SIZE_LIMIT
__global__ void bitonicMergeGlobal(uint *d_Key, uint *d_Val, uint arrayLength, uint size, uint stride, uint dir)
{
    uint global_comparatorI = blockIdx.x * blockDim.x + threadIdx.x;
    uint comparatorI = global_comparatorI & (arrayLength / 2 - 1);
    uint ddd = dir ^ ((comparatorI & (size / 2)) != 0);
    uint pos = 2 * global_comparatorI - (global_comparatorI & (stride - 1));
    uint keyA = d_Key[pos + 0], valA = d_Val[pos + 0], keyB = d_Key[pos + stride], valB = d_Val[pos + stride];
    Comparator(keyA, valA, keyB, valB, ddd);
    d_Key[pos + 0] = keyA;
    d_Val[pos + 0] = valA;
    d_Key[pos + stride] = keyB;
    d_Val[pos + stride] = valB;
}

// Combined bitonic merge steps for size > SHARED_SIZE_LIMIT and stride = [1 .. SHARED_SIZE_LIMIT / 2]
__global__ void bitonicMergeShared(uint *d_Key, uint *d_Val, uint arrayLength, uint size, uint dir)
{
    __shared__ uint s_key[SHARED_SIZE_LIMIT], s_val[SHARED_SIZE_LIMIT];
    uint base = blockIdx.x * SHARED_SIZE_LIMIT;
    for (uint i = threadIdx.x; i < SHARED_SIZE_LIMIT; i += blockDim.x) { s_key[i] = d_Key[base + i]; s_val[i] = d_Val[base + i]; }
    uint comparatorI = (blockIdx.x * blockDim.x + threadIdx.x) & ((arrayLength / 2) - 1);
    uint ddd = dir ^ ((comparatorI & (size / 2)) != 0);
    for (uint stride = SHARED_SIZE_LIMIT / 2; stride > 0; stride >>= 1)
    {
        __syncthreads();
        uint pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
        Comparator(s_key[pos + 0], s_val[pos + 0], s_key[pos + stride], s_val[pos + stride], ddd);
    }
    __syncthreads();
    for (uint i = threadIdx.x; i < SHARED_SIZE_LIMIT; i += blockDim.x) { d_Key[base + i] = s_key[i]; d_Val[base + i] = s_val[i]; }
}

extern "C" uint bitonicSort(uint *d_DstKey, uint *d_DstVal, uint *d_SrcKey, uint *d_SrcVal, uint arrayLength, uint dir)
{
    uint blockCount = arrayLength / SHARED_SIZE_LIMIT;
    uint threadCount = SHARED_SIZE_LIMIT / 2;
    bitonicSortShared1<<<blockCount, threadCount>>>(d_DstKey, d_DstVal, d_SrcKey, d_SrcVal);
    getLastCudaError("bitonicSortShared1<<<>>> failed!\n");
    for (uint size = 2 * SHARED_SIZE_LIMIT; size <= arrayLength; size <<= 1)
        for (unsigned stride = size / 2; stride > 0; stride >>= 1)
            if (stride >= SHARED_SIZE_LIMIT)
            {
                bitonicMergeGlobal<<<arrayLength / 512, 256>>>(d_DstKey, d_DstVal, arrayLength, size, stride, dir);
            }
            else
            {
                bitonicMergeShared<<<blockCount, threadCount>>>(d_DstKey, d_DstVal, arrayLength, size, dir);
                break;
            }
    return threadCount;
}

int main(int argc, char **argv)
{
    const uint N = 1 << 15, numValues = 65536;
    uint *h_InputKey = (uint *)malloc(N * sizeof(uint)), *h_InputVal = (uint *)malloc(N * sizeof(uint));
    uint *h_OutputKeyGPU = (uint *)malloc(N * sizeof(uint)), *h_OutputValGPU = (uint *)malloc(N * sizeof(uint));
    srand(2001);
    for (uint i = 0; i < N; i++) { h_InputKey[i] = rand() % numValues; h_InputVal[i] = i; }
    uint *d_InputKey, *d_InputVal, *d_OutputKey, *d_OutputVal;
    checkCudaErrors(cudaMalloc((void **)&d_InputKey, N * sizeof(uint)));
    checkCudaErrors(cudaMalloc((void **)&d_InputVal, N * sizeof(uint)));
    checkCudaErrors(cudaMalloc((void **)&d_OutputKey, N * sizeof(uint)));
    checkCudaErrors(cudaMalloc((void **)&d_OutputVal, N * sizeof(uint)));
    checkCudaErrors(cudaMemcpy(d_InputKey, h_InputKey, N * sizeof(uint), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemcpy(d_InputVal, h_InputVal, N * sizeof(uint), cudaMemcpyHostToDevice));

    int flag = 1;
    for (uint length = 1024; length <= N; length *= 4)
    {
        for (uint dir = 0; dir <= 1; dir++)
        {
            checkCudaErrors(cudaDeviceSynchronize());
            clock_t t = clock();
            bitonicSort(d_OutputKey, d_OutputVal, d_InputKey, d_InputVal, length, dir);
            checkCudaErrors(cudaDeviceSynchronize());
            checkCudaErrors(cudaMemcpy(h_OutputKeyGPU, d_OutputKey, length * sizeof(uint), cudaMemcpyDeviceToHost));
            checkCudaErrors(cudaMemcpy(h_OutputValGPU, d_OutputVal, length * sizeof(uint), cudaMemcpyDeviceToHost));
            int sorted = 1, pairs = 1;
            unsigned char *seen = (unsigned char *)calloc(length, 1);
            for (uint i = 0; i < length; i++)
            {
                if (i && (dir ? h_OutputKeyGPU[i - 1] > h_OutputKeyGPU[i] : h_OutputKeyGPU[i - 1] < h_OutputKeyGPU[i])) sorted = 0;
                uint v = h_OutputValGPU[i];
                if (v >= length || seen[v] || h_InputKey[v] != h_OutputKeyGPU[i]) pairs = 0; else seen[v] = 1;
            }
            free(seen);
            printf("length %6u dir %u: %s, %s (%.2f ms)\n", length, dir, sorted ? "sorted" : "NOT SORTED",
                   pairs ? "values follow their keys" : "VALUES LOST", (clock() - t) * 1e3 / CLOCKS_PER_SEC);
            flag = flag && sorted && pairs;
        }
    }
    cudaFree(d_InputKey); cudaFree(d_InputVal); cudaFree(d_OutputKey); cudaFree(d_OutputVal);
    free(h_InputKey); free(h_InputVal); free(h_OutputKeyGPU); free(h_OutputValGPU);
    printf(flag ? "Success\n" : "Failure\n");
    exit(flag ? EXIT_SUCCESS : EXIT_FAILURE);
}
