// y = A x for row-major A: one thread per row, one warp per row (shuffle), one block per row (float4).
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cuda_runtime.h>
#include "cublas_v2.h"
#include "helper_check.h"

#define FULL_MASK 0xffffffff

__global__ void gemv_thread(const float* A, const float* x, float* y, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float acc = 0.f;
    for (int c = 0; c < cols; c++) acc += A[(size_t)r * cols + c] * x[c];
    y[r] = acc;
}

static __device__ __forceinline__ float warp_reduce_sum(float val) {
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) val += __shfl_xor_sync(FULL_MASK, val, mask, 32);
    return val;
}

// blockDim = (32, rows per block)
__global__ void gemv_warp(const float* A, const float* x, float* y, int rows, int cols) {
    const int r = blockIdx.x * blockDim.y + threadIdx.y;
    if (r >= rows) return;            // the whole warp leaves
    float acc = 0.f;
    for (int c = threadIdx.x; c < cols; c += warpSize) acc += A[(size_t)r * cols + c] * x[c];
    acc = warp_reduce_sum(acc);
    if (threadIdx.x == 0) y[r] = acc;
}

template <int NUM_THREADS>
__global__ void gemv_block_f4(const float* A, const float* x, float* y, int cols) {
    constexpr int NUM_WARPS = NUM_THREADS / 32;
    __shared__ float partial[NUM_WARPS];
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
    const float4* row = (const float4*)(A + (size_t)blockIdx.x * cols);
    const float4* x4 = (const float4*)x;
    float acc = 0.f;
    for (int c = tid; c < cols / 4; c += NUM_THREADS) {
        float4 a = row[c], b = x4[c];
        acc += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    acc = warp_reduce_sum(acc);
    if (lane == 0) partial[warp] = acc;
    __syncthreads();
    if (warp == 0) {
        acc = lane < NUM_WARPS ? partial[lane] : 0.f;
        acc = warp_reduce_sum(acc);
        if (lane == 0) y[blockIdx.x] = acc;
    }
}

int main() {
    const int rows = 515, cols = 1028;
    float *h_A = (float*)malloc(sizeof(float) * rows * cols), *h_x = (float*)malloc(sizeof(float) * cols);
    float *h_y = (float*)malloc(sizeof(float) * rows), *ref = (float*)malloc(sizeof(float) * rows);
    for (int i = 0; i < rows * cols; i++) h_A[i] = (float)(rand() % 2001 - 1000) / 1000.f;
    for (int i = 0; i < cols; i++) h_x[i] = (float)(rand() % 2001 - 1000) / 1000.f;
    for (int r = 0; r < rows; r++) {
        double s = 0;
        for (int c = 0; c < cols; c++) s += (double)h_A[r * cols + c] * h_x[c];
        ref[r] = (float)s;
    }
    float *A, *x, *y;
    checkCudaErrors(cudaMalloc(&A, sizeof(float) * rows * cols));
    checkCudaErrors(cudaMalloc(&x, sizeof(float) * cols));
    checkCudaErrors(cudaMalloc(&y, sizeof(float) * rows));
    checkCudaErrors(cudaMemcpy(A, h_A, sizeof(float) * rows * cols, cudaMemcpyDefault));
    checkCudaErrors(cudaMemcpy(x, h_x, sizeof(float) * cols, cudaMemcpyDefault));
    cublasHandle_t handle;
    checkCudaErrors(cublasCreate(&handle));

    int fails = 0;
    for (int v = 0; v < 4; v++) {
        checkCudaErrors(cudaMemset(y, 0xff, sizeof(float) * rows));
        const char* name = "";
        if (v == 0) { name = "thread per row"; gemv_thread<<<(rows + 127) / 128, 128>>>(A, x, y, rows, cols); }
        if (v == 1) { name = "warp per row"; gemv_warp<<<(rows + 3) / 4, dim3(32, 4)>>>(A, x, y, rows, cols); }
        if (v == 2) { name = "block per row"; gemv_block_f4<128><<<rows, 128>>>(A, x, y, cols); }
        if (v == 3) {
            name = "cublasSgemv";
            const float one = 1.f, zero = 0.f;
            checkCudaErrors(cublasSgemv(handle, CUBLAS_OP_T, cols, rows, &one, A, cols, x, 1, &zero, y, 1));
        }
        getLastCudaError(name);
        checkCudaErrors(cudaMemcpy(h_y, y, sizeof(float) * rows, cudaMemcpyDefault));
        float max_err = 0.f;
        for (int r = 0; r < rows; r++) {
            float e = fabsf(h_y[r] - ref[r]);
            if (!(e <= max_err)) max_err = e;
        }
        printf("%-16s max error %g %s\n", name, max_err, max_err < 1e-3f ? "" : "<-- too much");
        fails += !(max_err < 1e-3f);
    }
    checkCudaErrors(cublasDestroy(handle));
    cudaFree(A); cudaFree(x); cudaFree(y);
    free(h_A); free(h_x); free(h_y); free(ref);
    printf(fails ? "gemv: FAIL\n" : "gemv: PASS\n");
    return fails;
}
