// Estimating pi with cuRAND's device API: XORWOW and Philox states, block reduction, float and vector draws.
#include <iostream>
#include <iomanip>
#include <cmath>
#include <cuda_runtime.h>
#include <curand_kernel.h>
using namespace std;

#define CUDA_CALL(x) do { if((x)!=cudaSuccess) { \
    printf("Error at %s:%d\n",__FILE__,__LINE__);\
    return EXIT_FAILURE;}} while(0)

__global__ void setup_kernel(curandState *state, unsigned long long seed)
{
    int id = threadIdx.x + blockIdx.x * blockDim.x;
    /* Each thread gets same seed, a different sequence number, no offset */
    curand_init(seed, id, 0, &state[id]);
}

__global__ void setup_philox(curandStatePhilox4_32_10_t *state, unsigned long long seed)
{
    int id = threadIdx.x + blockIdx.x * blockDim.x;
    curand_init(seed, id, 0, &state[id]);
}

template <typename State>
__global__ void count_hits(State *state, int n, unsigned long long *result)
{
    __shared__ unsigned int cache[256];
    int id = threadIdx.x + blockIdx.x * blockDim.x;
    State localState = state[id];   // copy state to local memory for efficiency
    unsigned int count = 0;
    for (int i = 0; i < n; i++) {
        float x = curand_uniform(&localState);
        float y = curand_uniform(&localState);
        if (x * x + y * y <= 1.0f) count++;
    }
    state[id] = localState;
    cache[threadIdx.x] = count;
    __syncthreads();
    for (int i = blockDim.x / 2; i > 0; i >>= 1) {
        if (threadIdx.x < i) cache[threadIdx.x] += cache[threadIdx.x + i];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(result, (unsigned long long)cache[0]);
}

__global__ void moments(curandStatePhilox4_32_10_t *state, int n, double *sums)
{
    int id = threadIdx.x + blockIdx.x * blockDim.x;
    curandStatePhilox4_32_10_t s = state[id];
    double m1 = 0, m2 = 0, u = 0;
    for (int i = 0; i < n; i++) {
        float4 g = curand_normal4(&s);
        m1 += (double)g.x + g.y + g.z + g.w;
        m2 += (double)g.x * g.x + g.y * g.y + g.z * g.z + g.w * g.w;
        float4 v = curand_uniform4(&s);
        u += (double)v.x + v.y + v.z + v.w;
        double2 d = curand_uniform2_double(&s);
        u += 2 * (d.x + d.y);
    }
    state[id] = s;
    atomicAdd(&sums[0], m1);
    atomicAdd(&sums[1], m2);
    atomicAdd(&sums[2], u);
}

int main()
{
    const int BLOCKS = 16, THREADS = 256, total = BLOCKS * THREADS, per = 200;
    curandState *devStates;
    curandStatePhilox4_32_10_t *devPHILOXStates;
    unsigned long long *devResults, hits;
    double *sums, h[3];
    CUDA_CALL(cudaMalloc((void **)&devResults, sizeof(*devResults)));
    CUDA_CALL(cudaMalloc((void **)&devStates, total * sizeof(curandState)));
    CUDA_CALL(cudaMalloc((void **)&devPHILOXStates, total * sizeof(curandStatePhilox4_32_10_t)));
    CUDA_CALL(cudaMalloc((void **)&sums, sizeof h));
    CUDA_CALL(cudaMemset(sums, 0, sizeof h));
    bool ok = true;

    setup_kernel<<<BLOCKS, THREADS>>>(devStates, 1234ULL);
    setup_philox<<<BLOCKS, THREADS>>>(devPHILOXStates, 20240229ULL);
    for (int generator = 0; generator < 2; generator++) {
        CUDA_CALL(cudaMemset(devResults, 0, sizeof(*devResults)));
        if (generator == 0) count_hits<<<BLOCKS, THREADS>>>(devStates, per, devResults);
        else count_hits<<<BLOCKS, THREADS>>>(devPHILOXStates, per, devResults);
        CUDA_CALL(cudaGetLastError());
        CUDA_CALL(cudaMemcpy(&hits, devResults, sizeof hits, cudaMemcpyDeviceToHost));
        double pi = 4.0 * hits / ((double)total * per), sigma = sqrt(3.1415926 * (4 - 3.1415926) / ((double)total * per));
        cout << (generator ? "Philox" : "XORWOW") << ": pi ~ " << setprecision(7) << pi << ", "
             << fixed << setprecision(2) << fabs(pi - M_PI) / sigma << " sigma away" << defaultfloat << endl;
        ok = ok && fabs(pi - M_PI) < 5 * sigma;
    }

    moments<<<BLOCKS, THREADS>>>(devPHILOXStates, 50, sums);
    CUDA_CALL(cudaMemcpy(h, sums, sizeof h, cudaMemcpyDeviceToHost));
    double n = (double)total * 50 * 4;
    cout << "normal: mean " << h[0] / n << ", variance " << h[1] / n << "; uniform: mean " << h[2] / (n * 2) << endl;
    ok = ok && fabs(h[0] / n) < 5 / sqrt(n) && fabs(h[1] / n - 1) < 10 / sqrt(n) && fabs(h[2] / (2 * n) - 0.5) < 5 / sqrt(n);

    CUDA_CALL(cudaFree(devStates));
    CUDA_CALL(cudaFree(devPHILOXStates));
    CUDA_CALL(cudaFree(devResults));
    CUDA_CALL(cudaFree(sums));
    cout << (ok ? "PASSED" : "FAILED") << endl;
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
