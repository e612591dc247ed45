// Jacobi iterations for A x = b, captured into a CUDA graph with stream capture; compared with plain launches.
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include "helper_check.h"

#define ROWS 512
#define THREADS 128
const int ITERS_PER_GRAPH = 20;

__global__ void jacobiRow(const float *__restrict__ A, const double *__restrict__ b, const double *x, double *x_new)
{
    const int row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    const int lane = threadIdx.x & 31;
    double s = 0.0;
    for (int j = lane; j < ROWS; j += 32)
        if (j != row) s += (double)A[row * ROWS + j] * x[j];
    for (int o = 16; o > 0; o >>= 1) s += __shfl_down_sync(0xffffffffu, s, o);
    if (lane == 0) x_new[row] = (b[row] - s) / A[row * ROWS + row];
}

__global__ void residual(const double *x, const double *x_new, double *err)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    double d = i < ROWS ? fabs(x[i] - x_new[i]) : 0.0;
    for (int o = 16; o > 0; o >>= 1) d += __shfl_down_sync(0xffffffffu, d, o);
    if ((threadIdx.x & 31) == 0) atomicAdd(err, d);
}

int main(int argc, char **argv)
{
    std::vector<float> A(ROWS * ROWS);
    std::vector<double> b(ROWS), x(ROWS), truth(ROWS);
    for (int i = 0; i < ROWS; i++) truth[i] = sin(i * 0.1);
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int j = 0; j < ROWS; j++) { A[i * ROWS + j] = (float)(rand() % 100) / 100.f; sum += A[i * ROWS + j]; }
        A[i * ROWS + i] = (float)sum * 2.f;   // diagonally dominant
        for (int j = 0; j < ROWS; j++) b[i] += (double)A[i * ROWS + j] * truth[j];
    }
    float *d_A;
    double *d_b, *d_x[2], *d_err, *h_err;
    checkCudaErrors(cudaMallocHost(&h_err, sizeof(double)));
    checkCudaErrors(cudaMalloc(&d_A, sizeof(float) * ROWS * ROWS));
    checkCudaErrors(cudaMalloc(&d_b, sizeof(double) * ROWS));
    checkCudaErrors(cudaMalloc(&d_x[0], sizeof(double) * ROWS));
    checkCudaErrors(cudaMalloc(&d_x[1], sizeof(double) * ROWS));
    checkCudaErrors(cudaMalloc(&d_err, sizeof(double)));
    cudaStream_t stream;
    checkCudaErrors(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    checkCudaErrors(cudaMemcpyAsync(d_A, A.data(), sizeof(float) * ROWS * ROWS, cudaMemcpyHostToDevice, stream));
    checkCudaErrors(cudaMemcpyAsync(d_b, b.data(), sizeof(double) * ROWS, cudaMemcpyHostToDevice, stream));
    checkCudaErrors(cudaMemsetAsync(d_x[0], 0, sizeof(double) * ROWS, stream));
    checkCudaErrors(cudaStreamSynchronize(stream));

    cudaGraph_t graph;
    cudaGraphExec_t graphExec = NULL;
    checkCudaErrors(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int k = 0; k < ITERS_PER_GRAPH; k++)
        jacobiRow<<<ROWS / (THREADS / 32), THREADS, 0, stream>>>(d_A, d_b, d_x[k & 1], d_x[(k + 1) & 1]);
    checkCudaErrors(cudaMemsetAsync(d_err, 0, sizeof(double), stream));
    residual<<<ROWS / THREADS, THREADS, 0, stream>>>(d_x[1], d_x[0], d_err);
    checkCudaErrors(cudaMemcpyAsync(h_err, d_err, sizeof(double), cudaMemcpyDeviceToHost, stream));
    checkCudaErrors(cudaStreamEndCapture(stream, &graph));
    size_t nodes = 0;
    checkCudaErrors(cudaGraphGetNodes(graph, NULL, &nodes));
    printf("captured %zu nodes\n", nodes);
    checkCudaErrors(cudaGraphInstantiate(&graphExec, graph, NULL, NULL, 0));

    int rounds = 0;
    for (; rounds < 20; rounds++) {
        checkCudaErrors(cudaGraphLaunch(graphExec, stream));
        checkCudaErrors(cudaStreamSynchronize(stream));
        if (*h_err < 1e-12) break;
    }
    checkCudaErrors(cudaMemcpy(x.data(), d_x[0], sizeof(double) * ROWS, cudaMemcpyDeviceToHost));
    double worst = 0;
    for (int i = 0; i < ROWS; i++) worst = fmax(worst, fabs(x[i] - truth[i]));
    printf("%d iterations, step %g, error %g\n", (rounds + 1) * ITERS_PER_GRAPH, *h_err, worst);
    bool ok = worst < 1e-6 && nodes == ITERS_PER_GRAPH + 3;

    checkCudaErrors(cudaGraphExecDestroy(graphExec));
    checkCudaErrors(cudaGraphDestroy(graph));
    checkCudaErrors(cudaStreamDestroy(stream));
    cudaFree(d_A); cudaFree(d_b); cudaFree(d_x[0]); cudaFree(d_x[1]); cudaFree(d_err);
    cudaFreeHost(h_err);
    printf("%s\n", ok ? "jacobi converged" : "jacobi FAILED");
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
