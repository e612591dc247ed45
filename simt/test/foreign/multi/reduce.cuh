#ifndef REDUCE_CUH
#define REDUCE_CUH
/* A header with a kernel, launched from several files. */
namespace detail {

template <int N>
__global__ void dot(const float *x, const float *y, int n, double *out)
{
    extern __shared__ double unused[];
    __shared__ double s[N];
    double sum = 0;
    GRID_STRIDE(i, n) sum += (double)x[i] * y[i];
    s[threadIdx.x] = sum;
    __syncthreads();
#pragma unroll
    for (int w = N / 2; w > 0; w /= 2) {
        if (threadIdx.x < w) s[threadIdx.x] += s[threadIdx.x + w];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(out, s[0]);
}

template <int N>
inline double self_dot(const float *d_x, int n)
{
    double *d, h = -1;
    cudaMallocManaged(&d, sizeof *d);
    *d = 0;
    dot<N>
        <<<BLOCKS(n),
           N>>>
        (d_x, d_x,
         n, d);
    cudaDeviceSynchronize();
    h = *d;
    cudaFree(d);
    return h;
}

}  // namespace detail
#endif
