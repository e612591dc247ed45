// Monte Carlo pricing of European and Asian calls: normals from the cuRAND host API, checked against Black-Scholes.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <string>
#include <vector>
#include <curand.h>
#include <cuda_runtime.h>
#include "helper_check.h"

typedef double real;

struct OptionData {
    real S, X, T, r, v;
    __host__ __device__ real drift(real dt) const { return (r - real(0.5) * v * v) * dt; }
    __host__ __device__ real vol(real dt) const { return v * sqrt(dt); }
    __host__ __device__ real discount() const { return exp(-r * T); }
};

static __constant__ OptionData d_option;

__global__ void european(const float *__restrict__ z, real *payoff, int paths)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= paths) return;
    real s = d_option.S * exp(d_option.drift(d_option.T) + d_option.vol(d_option.T) * z[i]);
    payoff[i] = fmax(s - d_option.X, 0.0) * d_option.discount();
}

// z is steps x paths, so that neighbouring threads read neighbouring numbers
__global__ void asian(const float *z, real *payoff, int paths, int steps)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < paths; i += gridDim.x * blockDim.x) {
        const real dt = d_option.T / steps, a = d_option.drift(dt), b = d_option.vol(dt);
        real s = d_option.S, sum = 0;
        for (int k = 0; k < steps; k++) {
            s *= exp(a + b * z[(size_t)k * paths + i]);
            sum += s;
        }
        payoff[i] = fmax(sum / steps - d_option.X, 0.0) * d_option.discount();
    }
}

__global__ void meanAndError(const real *x, int n, real *out)
{
    __shared__ real s1[256], s2[256];
    real a = 0, b = 0;
    for (int i = threadIdx.x; i < n; i += 256) { a += x[i]; b += x[i] * x[i]; }
    s1[threadIdx.x] = a;
    s2[threadIdx.x] = b;
    for (int w = 128; w > 0; w /= 2) {
        __syncthreads();
        if (threadIdx.x < w) {
            s1[threadIdx.x] += s1[threadIdx.x + w];
            s2[threadIdx.x] += s2[threadIdx.x + w];
        }
    }
    if (!threadIdx.x) {
        out[0] = s1[0] / n;
        out[1] = sqrt((s2[0] / n - out[0] * out[0]) / n);
    }
}

static real cnd(real d) { return 0.5 * erfc(-d * M_SQRT1_2); }

static real blackScholesCall(const OptionData &o)
{
    real sqrtT = sqrt(o.T), d1 = (log(o.S / o.X) + (o.r + 0.5 * o.v * o.v) * o.T) / (o.v * sqrtT), d2 = d1 - o.v * sqrtT;
    return o.S * cnd(d1) - o.X * exp(-o.r * o.T) * cnd(d2);
}

int main(int argc, char **argv)
{
    const int paths = 50000, steps = 16;
    const OptionData option = {100.0, 105.0, 1.0, 0.05, 0.2};
    checkCudaErrors(cudaMemcpyToSymbol(d_option, &option, sizeof(OptionData)));
    float *z;
    real *payoff, *d_stat, stat[2];
    checkCudaErrors(cudaMalloc(&z, sizeof(float) * paths * steps));
    checkCudaErrors(cudaMalloc(&payoff, sizeof(real) * paths));
    checkCudaErrors(cudaMalloc(&d_stat, sizeof stat));

    struct { curandRngType_t type; const char *name; } kinds[] = {
        {CURAND_RNG_PSEUDO_DEFAULT, "default"}, {CURAND_RNG_PSEUDO_PHILOX4_32_10, "philox"}};
    int bad = 0;
    for (auto &kind : kinds) {
        curandGenerator_t gen;
        checkCudaErrors(curandCreateGenerator(&gen, kind.type));
        checkCudaErrors(curandSetPseudoRandomGeneratorSeed(gen, 1234ULL));
        checkCudaErrors(curandGenerateNormal(gen, z, (size_t)paths * steps, 0.0f, 1.0f));
        european<<<(paths + 255) / 256, 256>>>(z, payoff, paths);
        getLastCudaError("european");
        meanAndError<<<1, 256>>>(payoff, paths, d_stat);
        checkCudaErrors(cudaMemcpy(stat, d_stat, sizeof stat, cudaMemcpyDeviceToHost));
        real bs = blackScholesCall(option);
        printf("%-8s European call %.4f +- %.4f, Black-Scholes %.4f\n", kind.name, stat[0], stat[1], bs);
        bad += !(fabs(stat[0] - bs) < 4 * stat[1]);

        asian<<<32, 128>>>(z, payoff, paths, steps);
        getLastCudaError("asian");
        meanAndError<<<1, 256>>>(payoff, paths, d_stat);
        real asianStat[2];
        checkCudaErrors(cudaMemcpy(asianStat, d_stat, sizeof stat, cudaMemcpyDeviceToHost));
        printf("%-8s Asian call    %.4f +- %.4f\n", kind.name, asianStat[0], asianStat[1]);
        bad += !(asianStat[0] < stat[0] && asianStat[0] > 0.3 * stat[0]);   // averaging lowers the volatility

        // the same numbers on the host
        std::vector<float> hz((size_t)paths * steps);
        checkCudaErrors(cudaMemcpy(hz.data(), z, sizeof(float) * hz.size(), cudaMemcpyDeviceToHost));
        double sum = 0;
        for (int i = 0; i < paths; i++) {
            real s = option.S, avg = 0;
            for (int k = 0; k < steps; k++) {
                s *= exp(option.drift(option.T / steps) + option.vol(option.T / steps) * hz[(size_t)k * paths + i]);
                avg += s;
            }
            sum += fmax(avg / steps - option.X, 0.0) * option.discount();
        }
        printf("         the same on the host %.4f\n", sum / paths);
        bad += !(fabs(sum / paths - asianStat[0]) < 1e-6);
        checkCudaErrors(curandDestroyGenerator(gen));
    }
    cudaFree(z); cudaFree(payoff); cudaFree(d_stat);
    printf("%s\n", bad ? "Test FAILED" : "Test PASSED");
    return bad;
}
