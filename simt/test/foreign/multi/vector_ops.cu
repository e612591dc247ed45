#include "vector_ops.h"
#include "common.cuh"
#include "reduce.cuh"

__device__ int calls;   // every source file may have one of this name if it is static; this one is shared with stats.cu

template <typename T>
static __global__ void axpy(T *__restrict__ y, T a, const T *__restrict__ x, int n)
{
    if (threadIdx.x == 0 && blockIdx.x == 0) atomicAdd(&calls, 1);
    GRID_STRIDE(i, n) y[i] += SCALE * a * x[i];
}

int dvec_create(dvec_t *v, const float *host, int n)
{
    v->n = n;
    SAFE(cudaMalloc(&v->data, n * sizeof *v->data));
    SAFE(cudaMemcpy(v->data, host, n * sizeof *host, cudaMemcpyHostToDevice));
    return 0;
}

int dvec_axpy(dvec_t *y, float a, const dvec_t *x)
{
    axpy<<<BLOCKS(y->n), THREADS>>>(y->data, a, x->data, y->n);
    SAFE(cudaGetLastError());
    return 0;
}

int dvec_dot(const dvec_t *x, const dvec_t *y, double *out)
{
    double *d;
    SAFE(cudaMalloc((void **)&d, sizeof *d));
    SAFE(cudaMemset(d, 0, sizeof *d));
    detail::dot<THREADS><<<BLOCKS(x->n), THREADS>>>(x->data, y->data, x->n, d);
    SAFE(cudaMemcpy(out, d, sizeof *d, cudaMemcpyDeviceToHost));
    SAFE(cudaFree(d));
    return 0;
}

int dvec_get(const dvec_t *v, float *host)
{
    SAFE(cudaMemcpy(host, v->data, v->n * sizeof *host, cudaMemcpyDeviceToHost));
    return 0;
}

void dvec_destroy(dvec_t *v)
{
    cudaFree(v->data);
    v->data = NULL;
}

extern "C" int library_calls(void)
{
    int c = -1;
    cudaMemcpyFromSymbol(&c, calls, sizeof c);
    return c;
}
