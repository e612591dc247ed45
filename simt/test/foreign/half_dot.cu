// FP16 scalar product with half2 intrinsics; comparisons, min/max, conversions and the host operators of __half.
#include "cuda_fp16.h"
#include "helper_check.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>

#define NUM_OF_BLOCKS 16
#define NUM_OF_THREADS 128

__forceinline__ __device__ void reduceInShared_intrinsics(half2 *const v)
{
    if (threadIdx.x < 64)
        v[threadIdx.x] = __hadd2(v[threadIdx.x], v[threadIdx.x + 64]);
    __syncthreads();
    for (int i = 32; i > 0; i /= 2) {
        if (threadIdx.x < 32) {
            half2 t = __hadd2(v[threadIdx.x], v[threadIdx.x + i]);
            __syncwarp();
            v[threadIdx.x] = t;
        }
        __syncthreads();
    }
}

__forceinline__ __device__ void reduceInShared_native(half2 *const v)
{
    if (threadIdx.x < 64) v[threadIdx.x] = v[threadIdx.x] + v[threadIdx.x + 64];
    __syncthreads();
    for (int i = 32; i > 0; i /= 2) {
        half2 t;
        if (threadIdx.x < i) t = v[threadIdx.x] + v[threadIdx.x + i];
        __syncthreads();
        if (threadIdx.x < i) v[threadIdx.x] = t;
        __syncthreads();
    }
}

__global__ void scalarProductKernel_intrinsics(half2 const *const a, half2 const *const b, float *const results, size_t const size)
{
    const int stride = gridDim.x * blockDim.x;
    __shared__ half2 shArray[NUM_OF_THREADS];
    shArray[threadIdx.x] = __float2half2_rn(0.f);
    half2 value = __float2half2_rn(0.f);
    for (int i = threadIdx.x + blockDim.x * blockIdx.x; i < size; i += stride) {
        value = __hfma2(a[i], b[i], value);
    }
    shArray[threadIdx.x] = value;
    __syncthreads();
    reduceInShared_intrinsics(shArray);
    if (threadIdx.x == 0) {
        half2 result = shArray[0];
        float f_result = __low2float(result) + __high2float(result);
        results[blockIdx.x] = f_result;
    }
}

__global__ void scalarProductKernel_native(half2 const *const a, half2 const *const b, float *const results, size_t const size)
{
    const int stride = gridDim.x * blockDim.x;
    __shared__ half2 shArray[NUM_OF_THREADS];
    half2 value(0.f, 0.f);
    shArray[threadIdx.x] = value;
    for (int i = threadIdx.x + blockDim.x * blockIdx.x; i < size; i += stride) value = a[i] * b[i] + value;
    shArray[threadIdx.x] = value;
    __syncthreads();
    reduceInShared_native(shArray);
    if (threadIdx.x == 0) {
        half2 result = shArray[0];
        results[blockIdx.x] = (float)result.y + (float)result.x;
    }
}

// a catalogue: each result compared with float arithmetic by the thread itself
__global__ void catalogue(const half *a, const half *b, int n, int *wrong, half *sum, half2 *sum2)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    half x = a[i], y = b[i];
    float fx = __half2float(x), fy = __half2float(y);
    int w = 0;
    w += __half2float(__hadd(x, y)) != __half2float(__float2half_rn(fx + fy));
    w += __half2float(x - y) != __half2float(__float2half(fx - fy));
    w += __half2float(__hmul(x, y)) != __half2float(__float2half(fx * fy));
    w += __hlt(x, y) != (fx < fy);
    w += (x >= y) != (fx >= fy);
    w += __heq(x, x) != true;
    w += __half2float(__hmax(x, y)) != fmaxf(fx, fy);
    w += __half2float(__hmin(x, y)) != fminf(fx, fy);
    w += __half2float(__hneg(x)) != -fx;
    w += __half2float(__habs(x)) != fabsf(fx);
    w += __half2int_rn(x) != __float2int_rn(fx);
    w += __half2int_rz(x) != (int)fx;
    w += __half2float(__int2half_rn(i % 100)) != (float)(i % 100);
    w += __half_as_ushort(__ushort_as_half(__half_as_ushort(x))) != __half_as_ushort(x);
    w += fabsf(__half2float(hexp(x)) - expf(fx)) > 2e-3f * expf(fx);
    w += fabsf(__half2float(hsqrt(__habs(x))) - sqrtf(fabsf(fx))) > 1e-3f * sqrtf(fabsf(fx)) + 1e-4f;
    w += __hisnan(x) || __hisinf(x);
    half2 p = __halves2half2(x, y);
    w += __low2float(__lowhigh2highlow(p)) != fy || __half2float(__high2half(p)) != fy;
    w += __hbgt2(p, __halves2half2(__hsub(x, __float2half(1.f)), __hsub(y, __float2half(1.f)))) != true;
    half2 q = make_half2(y, x);
    q += p;
    w += __half2float(q.x) != __half2float(q.y);
    half s = __shfl_xor_sync(0xffffffff, x, 1);
    w += __half2float(__shfl_xor_sync(0xffffffff, s, 1)) != fx;
    if (w) atomicAdd(wrong, w);
    atomicAdd(sum, __float2half(1.f));
    atomicAdd(sum2, __floats2half2_rn(1.f, 2.f));
}

void generateInput(half2 *a, size_t size)
{
    for (size_t i = 0; i < size; ++i) {
        half2 temp;
        temp.x = static_cast<float>(rand() % 4);
        temp.y = static_cast<float>(rand() % 2);
        a[i] = temp;
    }
}

int main(int argc, char *argv[])
{
    srand(1);
    const int blocks = NUM_OF_BLOCKS, threads = NUM_OF_THREADS;
    size_t size = blocks * threads * 4;
    half2 *vec[2], *devVec[2];
    float *results, *devResults;
    int devID = findCudaDevice(argc, (const char **)argv);
    cudaDeviceProp devProp;
    checkCudaErrors(cudaGetDeviceProperties(&devProp, devID));
    if (devProp.major < 5 || (devProp.major == 5 && devProp.minor < 3)) {
        printf("ERROR: fp16ScalarProduct requires GPU devices with compute SM 5.3 or higher.\n");
        return EXIT_WAIVED;
    }
    for (int i = 0; i < 2; ++i) {
        checkCudaErrors(cudaMallocHost((void **)&vec[i], size * sizeof *vec[i]));
        checkCudaErrors(cudaMalloc((void **)&devVec[i], size * sizeof *devVec[i]));
        generateInput(vec[i], size);
        checkCudaErrors(cudaMemcpy(devVec[i], vec[i], size * sizeof *vec[i], cudaMemcpyHostToDevice));
    }
    checkCudaErrors(cudaMallocHost((void **)&results, blocks * sizeof *results));
    checkCudaErrors(cudaMalloc((void **)&devResults, blocks * sizeof *devResults));
    double want = 0;
    for (size_t i = 0; i < size; i++) want += __half2float(vec[0][i].x) * __half2float(vec[1][i].x) + (float)vec[0][i].y * (float)vec[1][i].y;

    float got[2] = {0, 0};
    scalarProductKernel_native<<<blocks, threads>>>(devVec[0], devVec[1], devResults, size);
    checkCudaErrors(cudaMemcpy(results, devResults, blocks * sizeof *results, cudaMemcpyDeviceToHost));
    for (int i = 0; i < blocks; ++i) got[0] += results[i];
    printf("Result native operators\t: %f \n", got[0]);
    scalarProductKernel_intrinsics<<<blocks, threads>>>(devVec[0], devVec[1], devResults, size);
    checkCudaErrors(cudaMemcpy(results, devResults, blocks * sizeof *results, cudaMemcpyDeviceToHost));
    for (int i = 0; i < blocks; ++i) got[1] += results[i];
    printf("Result intrinsics\t: %f \n", got[1]);

    const int n = 1024;
    half h[2][n], zero = __float2half(0.f), *d[2], *d_sum, sum;
    half2 *d_sum2, sum2;
    int *d_wrong, wrong = 0;
    for (int i = 0; i < n; i++) { h[0][i] = (rand() % 2000 - 1000) / 200.f; h[1][i] = __float2half((rand() % 2000 - 1000) / 150.f); }
    for (int k = 0; k < 2; k++) { checkCudaErrors(cudaMalloc(&d[k], sizeof h[k])); checkCudaErrors(cudaMemcpy(d[k], h[k], sizeof h[k], cudaMemcpyHostToDevice)); }
    checkCudaErrors(cudaMalloc(&d_wrong, 4)); checkCudaErrors(cudaMalloc(&d_sum, 2)); checkCudaErrors(cudaMalloc(&d_sum2, 4));
    checkCudaErrors(cudaMemset(d_wrong, 0, 4)); checkCudaErrors(cudaMemcpy(d_sum, &zero, 2, cudaMemcpyHostToDevice)); checkCudaErrors(cudaMemset(d_sum2, 0, 4));
    catalogue<<<n / 128, 128>>>(d[0], d[1], n, d_wrong, d_sum, d_sum2);
    getLastCudaError("catalogue");
    checkCudaErrors(cudaMemcpy(&wrong, d_wrong, 4, cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaMemcpy(&sum, d_sum, 2, cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaMemcpy(&sum2, d_sum2, 4, cudaMemcpyDeviceToHost));
    printf("catalogue: %d wrong, sums %.0f %.0f %.0f\n", wrong, (float)sum, (float)sum2.x, __half2float(sum2.y));
    for (int i = 0; i < 2; ++i) { checkCudaErrors(cudaFree(devVec[i])); checkCudaErrors(cudaFreeHost(vec[i])); checkCudaErrors(cudaFree(d[i])); }
    checkCudaErrors(cudaFree(devResults)); checkCudaErrors(cudaFreeHost(results));
    checkCudaErrors(cudaFree(d_wrong)); checkCudaErrors(cudaFree(d_sum)); checkCudaErrors(cudaFree(d_sum2));
    bool ok = got[0] == want && got[1] == want && !wrong && (float)sum == n && (float)sum2.x == n && (float)sum2.y == 2 * n;
    printf("&&&& fp16ScalarProduct %s\n", ok ? "PASSED" : "FAILED");
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
