/* European options by the closed formula: host and device versions from one header-like file, L1 norm of the difference,
 * options per second. Float2 in, separate arrays out. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>

#define DIV_UP(a, b) ( ((a) + (b) - 1) / (b) )

static double CND(double d)
{
    const double       A1 = 0.31938153;
    const double       A2 = -0.356563782;
    const double       A3 = 1.781477937;
    const double       A4 = -1.821255978;
    const double       A5 = 1.330274429;
    const double RSQRT2PI = 0.39894228040143267793994605993438;
    double K = 1.0 / (1.0 + 0.2316419 * fabs(d));
    double cnd = RSQRT2PI * exp(- 0.5 * d * d) * (K * (A1 + K * (A2 + K * (A3 + K * (A4 + K * A5)))));
    if (d > 0) cnd = 1.0 - cnd;
    return cnd;
}

static void BlackScholesBodyCPU(float &callResult, float &putResult, float Sf, float Xf, float Tf, float Rf, float Vf)
{
    double S = Sf, X = Xf, T = Tf, R = Rf, V = Vf;
    double sqrtT = sqrt(T);
    double    d1 = (log(S / X) + (R + 0.5 * V * V) * T) / (V * sqrtT);
    double    d2 = d1 - V * sqrtT;
    double CNDD1 = CND(d1);
    double CNDD2 = CND(d2);
    double expRT = exp(- R * T);
    callResult   = (float)(S * CNDD1 - X * expRT * CNDD2);
    putResult    = (float)(X * expRT * (1.0 - CNDD2) - S * (1.0 - CNDD1));
}

__device__ inline float cndGPU(float d)
{
    const float       A1 = 0.31938153f;
    const float       A2 = -0.356563782f;
    const float       A3 = 1.781477937f;
    const float       A4 = -1.821255978f;
    const float       A5 = 1.330274429f;
    const float RSQRT2PI = 0.39894228040143267793994605993438f;
    float K = __fdividef(1.0f, (1.0f + 0.2316419f * fabsf(d)));
    float cnd = RSQRT2PI * __expf(- 0.5f * d * d) * (K * (A1 + K * (A2 + K * (A3 + K * (A4 + K * A5)))));
    if (d > 0) cnd = 1.0f - cnd;
    return cnd;
}

__device__ inline void BlackScholesBodyGPU(float &CallResult, float &PutResult, float S, float X, float T, float R, float V)
{
    float sqrtT, expRT, d1, d2, CNDD1, CNDD2;
    sqrtT = __fdividef(1.0F, rsqrtf(T));
    d1 = __fdividef(__logf(S / X) + (R + 0.5f * V * V) * T, V * sqrtT);
    d2 = d1 - V * sqrtT;
    CNDD1 = cndGPU(d1);
    CNDD2 = cndGPU(d2);
    expRT = __expf(- R * T);
    CallResult = S * CNDD1 - X * expRT * CNDD2;
    PutResult  = X * expRT * (1.0f - CNDD2) - S * (1.0f - CNDD1);
}

__launch_bounds__(128)
__global__ void BlackScholesGPU(float2 * __restrict d_CallResult, float2 * __restrict d_PutResult, float2 * __restrict d_StockPrice,
    float2 * __restrict d_OptionStrike, float2 * __restrict d_OptionYears, float Riskfree, float Volatility, int optN)
{
    const int opt = blockDim.x * blockIdx.x + threadIdx.x;

    // Calculating 2 options per thread to increase ILP (instruction level parallelism)
    if (opt < (optN / 2))
    {
        float callResult1, callResult2;
        float putResult1, putResult2;
        BlackScholesBodyGPU(callResult1, putResult1, d_StockPrice[opt].x, d_OptionStrike[opt].x, d_OptionYears[opt].x, Riskfree, Volatility);
        BlackScholesBodyGPU(callResult2, putResult2, d_StockPrice[opt].y, d_OptionStrike[opt].y, d_OptionYears[opt].y, Riskfree, Volatility);
        d_CallResult[opt] = make_float2(callResult1, callResult2);
        d_PutResult[opt] = make_float2(putResult1, putResult2);
    }
}

float RandFloat(float low, float high)
{
    float t = (float)rand() / (float)RAND_MAX;
    return (1.0f - t) * low + t * high;
}

const int OPT_N = 100000;
const int NUM_ITERATIONS = 4;
const int OPT_SZ = OPT_N * sizeof(float);
const float RISKFREE = 0.02f;
const float VOLATILITY = 0.30f;

int main(int argc, char **argv)
{
    float *h[7], *d[5];   // call, put, price, strike, years; then the two GPU results on the host
    printf("[%s] - Starting...\n", argv[0]);
    for (int i = 0; i < 7; i++) h[i] = (float *)malloc(OPT_SZ);
    for (int i = 0; i < 5; i++)
        if (cudaMalloc((void **)&d[i], OPT_SZ) != cudaSuccess) { printf("out of memory\n"); return 1; }
    srand(5347);
    for (int i = 0; i < OPT_N; i++)
    {
        h[0][i] = 0.0f;
        h[1][i] = -1.0f;
        h[2][i] = RandFloat(5.0f, 30.0f);
        h[3][i] = RandFloat(1.0f, 100.0f);
        h[4][i] = RandFloat(0.25f, 10.0f);
    }
    for (int i = 2; i < 5; i++) cudaMemcpy(d[i], h[i], OPT_SZ, cudaMemcpyHostToDevice);

    cudaDeviceSynchronize();
    cudaEvent_t a, b;
    cudaEventCreate(&a); cudaEventCreate(&b);
    cudaEventRecord(a);
    for (int i = 0; i < NUM_ITERATIONS; i++)
    {
        BlackScholesGPU<<<DIV_UP((OPT_N/2), 128), 128/*480*/>>>(
            (float2 *)d[0],
            (float2 *)d[1],
            (float2 *)d[2],
            (float2 *)d[3],
            (float2 *)d[4],
            RISKFREE,
            VOLATILITY,
            OPT_N
        );
        if (cudaGetLastError() != cudaSuccess) { printf("BlackScholesGPU() execution failed\n"); return 1; }
    }
    cudaEventRecord(b);
    cudaDeviceSynchronize();
    float gpuTime;
    cudaEventElapsedTime(&gpuTime, a, b);
    gpuTime /= NUM_ITERATIONS;
    printf("BlackScholesGPU() time    : %f msec\n", gpuTime);
    printf("Effective memory bandwidth: %f GB/s\n", ((double)(5 * OPT_N * sizeof(float)) * 1E-9) / (gpuTime * 1E-3));
    printf("Gigaoptions per second    : %f     \n\n", ((double)(2 * OPT_N) * 1E-9) / (gpuTime * 1E-3));
    cudaMemcpy(h[5], d[0], OPT_SZ, cudaMemcpyDeviceToHost);
    cudaMemcpy(h[6], d[1], OPT_SZ, cudaMemcpyDeviceToHost);

    double delta, ref, sum_delta = 0, sum_ref = 0, max_delta = 0;
    for (int i = 0; i < OPT_N; i++)
    {
        BlackScholesBodyCPU(h[0][i], h[1][i], h[2][i], h[3][i], h[4][i], RISKFREE, VOLATILITY);
        ref   = h[0][i];
        delta = fabs(h[0][i] - h[5][i]);
        if (delta > max_delta) max_delta = delta;
        sum_delta += delta;
        sum_ref   += fabs(ref);
        delta = fabs(h[1][i] - h[6][i]);
        if (delta > max_delta) max_delta = delta;
    }
    printf("L1 norm: %E\n", sum_delta / sum_ref);
    printf("Max absolute error: %E\n\n", max_delta);
    for (int i = 0; i < 7; i++) free(h[i]);
    for (int i = 0; i < 5; i++) cudaFree(d[i]);
    if (sum_delta / sum_ref > 1e-6 || max_delta > 1e-3) { printf("Test failed!\n"); return EXIT_FAILURE; }
    printf("Test passed\n");
    return EXIT_SUCCESS;
}
