// Single-pass reduction: the last block to finish adds up what the others have left in global memory.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include "helper_check.h"

__device__ unsigned int retirementCount = 0;

template <class T>
struct SharedMemory
{
    __device__ inline operator T *()
    {
        extern __shared__ int __smem[];
        return (T *)__smem;
    }
    __device__ inline operator const T *() const
    {
        extern __shared__ int __smem[];
        return (T *)__smem;
    }
};

template <class T>
__device__ T blockSum(T v, T *sdata)
{
    unsigned tid = threadIdx.x;
    sdata[tid] = v;
    __syncthreads();
    for (unsigned s = blockDim.x / 2; s > 0; s >>= 1)
    {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    return sdata[0];
}

template <class T>
__global__ void reduceSinglePass(const T *g_idata, volatile T *g_odata, unsigned int n)
{
    T *sdata = SharedMemory<T>();
    __shared__ bool amLast;
    unsigned tid = threadIdx.x;

    T sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + tid; i < n; i += blockDim.x * gridDim.x) sum += g_idata[i];
    sum = blockSum(sum, sdata);

    if (tid == 0)
    {
        g_odata[blockIdx.x] = sum;
        // the result must be visible before the ticket is drawn
        __threadfence();
        unsigned int ticket = atomicInc(&retirementCount, gridDim.x);
        amLast = (ticket == gridDim.x - 1);
    }
    __syncthreads();

    if (amLast)
    {
        T total = 0;
        for (unsigned i = tid; i < gridDim.x; i += blockDim.x) total += g_odata[i];
        __syncthreads();
        total = blockSum(total, sdata);
        if (tid == 0)
        {
            g_odata[0] = total;
            retirementCount = 0;   // ready for the next launch
        }
    }
}

template <class T>
int test(const char *type, unsigned n, int threads, int blocks)
{
    T *h = new T[n];
    double want = 0;
    for (unsigned i = 0; i < n; i++)
    {
        h[i] = (T)(rand() % 17) / (T)2;
        want += (double)h[i];
    }
    T *d_in, *d_out;
    checkCudaErrors(cudaMalloc(&d_in, n * sizeof(T)));
    checkCudaErrors(cudaMalloc(&d_out, blocks * sizeof(T)));
    checkCudaErrors(cudaMemcpy(d_in, h, n * sizeof(T), cudaMemcpyHostToDevice));
    T got[3];
    for (int rep = 0; rep < 3; rep++)
    {
        reduceSinglePass<T><<<blocks, threads, threads * sizeof(T)>>>(d_in, d_out, n);
        getLastCudaError("reduceSinglePass");
        checkCudaErrors(cudaMemcpy(&got[rep], d_out, sizeof(T), cudaMemcpyDeviceToHost));
    }
    unsigned left;
    checkCudaErrors(cudaMemcpyFromSymbol(&left, retirementCount, sizeof(unsigned)));
    bool ok = left == 0;
    for (int rep = 0; rep < 3; rep++) ok = ok && fabs((double)got[rep] - want) <= 1e-5 * fabs(want) + 1e-9;
    printf("%-7s n=%-8u %4d x %-4d  GPU result = %.4f  CPU result = %.4f  %s\n", type, n, blocks, threads,
           (double)got[0], want, ok ? "ok" : "FAILED");
    checkCudaErrors(cudaFree(d_in));
    checkCudaErrors(cudaFree(d_out));
    delete[] h;
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    int dev = findCudaDevice(argc, (const char **)argv);
    (void)dev;
    int bad = 0;
    bad += test<float>("float", 1 << 18, 128, 64);
    bad += test<double>("double", 99991, 256, 37);
    bad += test<int>("int", 12345, 64, 5);
    bad += test<float>("float", 100, 32, 1);
    printf("%s\n", bad ? "Test failed!" : "Test passed");
    return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
