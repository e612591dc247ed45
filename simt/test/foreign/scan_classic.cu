#include "cuda_runtime.h"
#include "device_launch_parameters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Homework 3: prefix sums. (a) Hillis-Steele, double buffered; (b) Blelloch, work efficient, padded against bank
   conflicts; (c) arbitrary length: scan of blocks, scan of block sums, uniform add; recursion on the host. */

#define BLOCK 256
#define LOG_NUM_BANKS 5
#define CONFLICT_FREE_OFFSET(n) ((n) >> LOG_NUM_BANKS)

#define CHECK(x) if ((status = (x)) != cudaSuccess) { fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(status)); goto Error; }

__global__ void hillisSteele(int *out, const int *in, int n)
{
    extern __shared__ int temp[];
    int tid = threadIdx.x;
    int pout = 0, pin = 1;
    temp[tid] = (tid > 0 && tid < n) ? in[tid - 1] : 0;   // exclusive: shifted by one
    __syncthreads();
    for (int offset = 1; offset < n; offset <<= 1)
    {
        pout = 1 - pout;
        pin = 1 - pout;
        if (tid >= offset)
            temp[pout * blockDim.x + tid] = temp[pin * blockDim.x + tid] + temp[pin * blockDim.x + tid - offset];
        else
            temp[pout * blockDim.x + tid] = temp[pin * blockDim.x + tid];
        __syncthreads();
    }
    if (tid < n) out[tid] = temp[pout * blockDim.x + tid];
}

__global__ void blelloch(int *g_odata, const int *g_idata, int *sums, int n)
{
    __shared__ int temp[2 * BLOCK + ((2 * BLOCK) >> LOG_NUM_BANKS)];
    int thid = threadIdx.x;
    int base = blockIdx.x * 2 * BLOCK;
    int offset = 1;

    int ai = thid, bi = thid + BLOCK;
    int bankOffsetA = CONFLICT_FREE_OFFSET(ai), bankOffsetB = CONFLICT_FREE_OFFSET(bi);
    temp[ai + bankOffsetA] = base + ai < n ? g_idata[base + ai] : 0;
    temp[bi + bankOffsetB] = base + bi < n ? g_idata[base + bi] : 0;

    for (int d = BLOCK; d > 0; d >>= 1)   // build sum in place up the tree
    {
        __syncthreads();
        if (thid < d)
        {
            int i = offset * (2 * thid + 1) - 1;
            int j = offset * (2 * thid + 2) - 1;
            i += CONFLICT_FREE_OFFSET(i);
            j += CONFLICT_FREE_OFFSET(j);
            temp[j] += temp[i];
        }
        offset *= 2;
    }
    if (thid == 0)
    {
        int last = 2 * BLOCK - 1 + CONFLICT_FREE_OFFSET(2 * BLOCK - 1);
        if (sums) sums[blockIdx.x] = temp[last];
        temp[last] = 0;
    }
    for (int d = 1; d < 2 * BLOCK; d *= 2)   // traverse down tree & build scan
    {
        offset >>= 1;
        __syncthreads();
        if (thid < d)
        {
            int i = offset * (2 * thid + 1) - 1;
            int j = offset * (2 * thid + 2) - 1;
            i += CONFLICT_FREE_OFFSET(i);
            j += CONFLICT_FREE_OFFSET(j);
            int t = temp[i];
            temp[i] = temp[j];
            temp[j] += t;
        }
    }
    __syncthreads();
    if (base + ai < n) g_odata[base + ai] = temp[ai + bankOffsetA];
    if (base + bi < n) g_odata[base + bi] = temp[bi + bankOffsetB];
}

__global__ void uniformAdd(int *data, const int *sums, int n)
{
    __shared__ int uni;
    if (threadIdx.x == 0) uni = sums[blockIdx.x];
    __syncthreads();
    for (int k = 0; k < 2; k++)
    {
        int i = blockIdx.x * 2 * BLOCK + k * BLOCK + threadIdx.x;
        if (i < n) data[i] += uni;
    }
}

cudaError_t scanRecursive(int *d_out, const int *d_in, int n)
{
    cudaError_t status = cudaSuccess;
    int blocks = (n + 2 * BLOCK - 1) / (2 * BLOCK);
    int *d_sums = 0, *d_scanned = 0;
    if (blocks == 1)
    {
        blelloch<<<1, BLOCK>>>(d_out, d_in, NULL, n);
        return cudaGetLastError();
    }
    CHECK(cudaMalloc((void**)&d_sums, blocks * sizeof(int)));
    CHECK(cudaMalloc((void**)&d_scanned, blocks * sizeof(int)));
    blelloch<<<blocks, BLOCK>>>(d_out, d_in, d_sums, n);
    CHECK(cudaGetLastError());
    CHECK(scanRecursive(d_scanned, d_sums, blocks));
    uniformAdd<<<blocks, BLOCK>>>(d_out, d_scanned, n);
    CHECK(cudaGetLastError());
Error:
    cudaFree(d_sums);
    cudaFree(d_scanned);
    return status;
}

int main()
{
    const int N = 300000;
    int *h_in = (int*)malloc(N * sizeof(int)), *h_out = (int*)malloc(N * sizeof(int));
    int *d_in = 0, *d_out = 0, bad = 0;
    cudaError_t status;
    int sizes[] = { 1, 7, 512, 513, 1024, 100001, N };
    for (int i = 0; i < N; i++) h_in[i] = rand() % 10;

    CHECK(cudaMalloc((void**)&d_in, N * sizeof(int)));
    CHECK(cudaMalloc((void**)&d_out, N * sizeof(int)));
    CHECK(cudaMemcpy(d_in, h_in, N * sizeof(int), cudaMemcpyHostToDevice));

    hillisSteele<<<1, 1000, 2 * 1000 * sizeof(int)>>>(d_out, d_in, 1000);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(h_out, d_out, 1000 * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0, sum = 0; i < 1000; sum += h_in[i++]) bad += h_out[i] != sum;
    printf("Hillis-Steele, 1000 elements: %d wrong\n", bad);

    for (int k = 0; k < (int)(sizeof sizes / sizeof *sizes); k++)
    {
        int n = sizes[k], wrong = 0;
        CHECK(cudaMemset(d_out, 0xff, N * sizeof(int)));
        CHECK(scanRecursive(d_out, d_in, n));
        CHECK(cudaMemcpy(h_out, d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
        for (int i = 0, sum = 0; i < n; sum += h_in[i++]) wrong += h_out[i] != sum;
        printf("Blelloch, %6d elements: %d wrong\n", n, wrong);
        bad += wrong;
    }
Error:
    cudaFree(d_in);
    cudaFree(d_out);
    free(h_in);
    free(h_out);
    if (status == cudaSuccess && !bad) puts("all scans correct");
    // cudaDeviceReset must be called before exiting for profilers to show complete traces.
    if (cudaDeviceReset() != cudaSuccess) { fprintf(stderr, "cudaDeviceReset failed!"); return 1; }
    return status != cudaSuccess || bad;
}
