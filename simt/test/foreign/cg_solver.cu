// Conjugate gradients for the 2D Poisson equation: with cuBLAS and one SpMV kernel; and as one cooperative kernel with a
// grid-wide barrier between the steps.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "helper_check.h"

namespace cg = cooperative_groups;

int genLaplace(int *I, int *J, float *val, float *rhs, int n)
{
    int idx = 0;
    for (int i = 0; i < n * n; i++) {
        int ix = i % n, iy = i / n;
        I[i] = idx;
        rhs[i] = sinf(0.1f * ix) + (iy == n / 2);
        if (iy > 0) { val[idx] = -1.0; J[idx++] = i - n; }
        if (ix > 0) { val[idx] = -1.0; J[idx++] = i - 1; }
        val[idx] = 4.0; J[idx++] = i;
        if (ix < n - 1) { val[idx] = -1.0; J[idx++] = i + 1; }
        if (iy < n - 1) { val[idx] = -1.0; J[idx++] = i + n; }
    }
    return I[n * n] = idx;
}

__host__ __device__ float row_times(int i, const int *I, const int *J, const float *val, const float *x)
{
    float s = 0;
    for (int k = I[i]; k < I[i + 1]; k++) s += val[k] * x[J[k]];
    return s;
}

__global__ void spmv(int N, const int *I, const int *J, const float *val, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) y[i] = row_times(i, I, J, val, x);
}

__device__ void gpuDotProduct(float *vecA, float *vecB, double *result, int size, const cg::thread_block &cta, const cg::grid_group &grid)
{
    extern __shared__ double tmp[];
    double temp_sum = 0.0;
    for (int i = grid.thread_rank(); i < size; i += grid.size()) temp_sum += static_cast<double>(vecA[i] * vecB[i]);
    cg::thread_block_tile<32> tile32 = cg::tiled_partition<32>(cta);
    temp_sum = cg::reduce(tile32, temp_sum, cg::plus<double>());
    if (tile32.thread_rank() == 0) tmp[tile32.meta_group_rank()] = temp_sum;
    cg::sync(cta);
    if (tile32.meta_group_rank() == 0) {
        temp_sum = tile32.thread_rank() < tile32.meta_group_size() ? tmp[tile32.thread_rank()] : 0.0;
        temp_sum = cg::reduce(tile32, temp_sum, cg::plus<double>());
        if (tile32.thread_rank() == 0) atomicAdd(result, temp_sum);
    }
    cg::sync(cta);
}

// r holds the right-hand side, x is zero; dot_result[2] alternate, so that one can be cleared while the other is used
extern "C" __global__ void gpuConjugateGradient(int *I, int *J, float *val, float *x, float *Ax, float *p, float *r, double *dot_result, int N, float tol, int *iterations)
{
    cg::thread_block cta = cg::this_thread_block();
    cg::grid_group grid = cg::this_grid();
    float r0 = 0.0f, r1, a;
    gpuDotProduct(r, r, &dot_result[0], N, cta, grid);
    cg::sync(grid);
    r1 = dot_result[0];
    int k = 1;
    for (; r1 > tol * tol && k <= 1000; k++) {
        const float b = k > 1 ? r1 / r0 : 0.0f;
        for (int i = grid.thread_rank(); i < N; i += grid.size()) p[i] = k > 1 ? r[i] + b * p[i] : r[i];
        if (grid.thread_rank() == 0) dot_result[1] = 0.0;
        cg::sync(grid);
        for (int i = grid.thread_rank(); i < N; i += grid.size()) Ax[i] = row_times(i, I, J, val, p);
        gpuDotProduct(p, Ax, &dot_result[1], N, cta, grid);   // each thread reads only the elements it has written itself
        if (grid.thread_rank() == 0) dot_result[0] = 0.0;
        cg::sync(grid);
        a = r1 / (float)dot_result[1];
        for (int i = grid.thread_rank(); i < N; i += grid.size()) { x[i] += a * p[i]; r[i] -= a * Ax[i]; }
        gpuDotProduct(r, r, &dot_result[0], N, cta, grid);
        cg::sync(grid);
        r0 = r1;
        r1 = dot_result[0];
    }
    if (grid.thread_rank() == 0) *iterations = k - 1;
}

int main(int argc, char **argv)
{
    const int n = 48, N = n * n;
    const float tol = 1e-4f;
    int *I = (int *)malloc((N + 1) * sizeof(int)), *J = (int *)malloc(5 * N * sizeof(int)), *d_I, *d_J, bad = 0;
    float *val = (float *)malloc(5 * N * sizeof(float)), *rhs = (float *)malloc(N * sizeof(float)), *x = (float *)malloc(N * sizeof(float));
    const int nz = genLaplace(I, J, val, rhs, n);
    float *d_val, *d_x, *d_r, *d_p, *d_Ax;
    checkCudaErrors(cudaMalloc((void **)&d_I, (N + 1) * sizeof(int)));
    checkCudaErrors(cudaMalloc((void **)&d_J, nz * sizeof(int)));
    checkCudaErrors(cudaMalloc((void **)&d_val, nz * sizeof(float)));
    for (float **p : {&d_x, &d_r, &d_p, &d_Ax}) checkCudaErrors(cudaMalloc((void **)p, N * sizeof(float)));
    cudaMemcpy(d_I, I, (N + 1) * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(d_J, J, nz * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(d_val, val, nz * sizeof(float), cudaMemcpyHostToDevice);
    cublasHandle_t cublasHandle = 0;
    if (cublasCreate(&cublasHandle) != CUBLAS_STATUS_SUCCESS) return 1;

    auto verify = [&](const char *name, int iterations) {
        checkCudaErrors(cudaMemcpy(x, d_x, N * sizeof(float), cudaMemcpyDeviceToHost));
        float err = 0;
        for (int i = 0; i < N; i++) err = fmaxf(err, fabsf(row_times(i, I, J, val, x) - rhs[i]));
        printf("%s: %d iterations, error amount = %g\n", name, iterations, err);
        bad += !(err < 1e-3f) || iterations >= 1000 || iterations < 10;
    };

    checkCudaErrors(cudaMemset(d_x, 0, N * sizeof(float)));
    checkCudaErrors(cudaMemcpy(d_r, rhs, N * sizeof(float), cudaMemcpyHostToDevice));
    float r0 = 0, r1, dot, a, na, b, one = 1;
    cublasSdot(cublasHandle, N, d_r, 1, d_r, 1, &r1);
    int k = 1;
    for (; r1 > tol * tol && k <= 1000; k++) {
        if (k > 1) {
            b = r1 / r0;
            cublasSscal(cublasHandle, N, &b, d_p, 1);
            cublasSaxpy(cublasHandle, N, &one, d_r, 1, d_p, 1);
        } else {
            cublasScopy(cublasHandle, N, d_r, 1, d_p, 1);
        }
        spmv<<<(N + 255) / 256, 256>>>(N, d_I, d_J, d_val, d_p, d_Ax);
        cublasSdot(cublasHandle, N, d_p, 1, d_Ax, 1, &dot);
        a = r1 / dot;
        cublasSaxpy(cublasHandle, N, &a, d_p, 1, d_x, 1);
        na = -a;
        cublasSaxpy(cublasHandle, N, &na, d_Ax, 1, d_r, 1);
        r0 = r1;
        cublasSdot(cublasHandle, N, d_r, 1, d_r, 1, &r1);
    }
    verify("cuBLAS", k - 1);

    double *dot_result;
    int *iterations, numBlocksPerSm = 0, numThreads = 128, Narg = N;
    float tolarg = tol;
    checkCudaErrors(cudaMallocManaged((void **)&dot_result, 2 * sizeof(double)));
    checkCudaErrors(cudaMallocManaged((void **)&iterations, sizeof(int)));
    dot_result[0] = dot_result[1] = 0.0;
    checkCudaErrors(cudaMemset(d_x, 0, N * sizeof(float)));
    checkCudaErrors(cudaMemcpy(d_r, rhs, N * sizeof(float), cudaMemcpyHostToDevice));
    cudaDeviceProp deviceProp;
    checkCudaErrors(cudaGetDeviceProperties(&deviceProp, 0));
    int sMemSize = sizeof(double) * (numThreads / 32);
    checkCudaErrors(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&numBlocksPerSm, gpuConjugateGradient, numThreads, sMemSize));
    int most = deviceProp.multiProcessorCount * numBlocksPerSm;
    dim3 dimGrid(most < 8 ? most : 8, 1, 1), dimBlock(numThreads, 1, 1);
    void *kernelArgs[] = {(void *)&d_I, (void *)&d_J, (void *)&d_val, (void *)&d_x, (void *)&d_Ax, (void *)&d_p,
                          (void *)&d_r, (void *)&dot_result, (void *)&Narg, (void *)&tolarg, (void *)&iterations};
    checkCudaErrors(cudaLaunchCooperativeKernel((void *)gpuConjugateGradient, dimGrid, dimBlock, kernelArgs, sMemSize, NULL));
    checkCudaErrors(cudaDeviceSynchronize());
    verify("one cooperative kernel", *iterations);
    cublasDestroy(cublasHandle);
    for (void *p : {(void *)d_I, (void *)d_J, (void *)d_val, (void *)d_x, (void *)d_r, (void *)d_p, (void *)d_Ax, (void *)dot_result, (void *)iterations}) cudaFree(p);
    free(I); free(J); free(val); free(rhs); free(x);
    printf("conjugateGradient: %s\n", bad ? "FAILED" : "PASSED");
    return bad;
}
