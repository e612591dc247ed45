#include <stdio.h>
#include <stdlib.h>
#include <cuda.h>
/* Two slow sorts for the exercise sheet: odd-even transposition inside one block (shared memory, early exit by
   __syncthreads_or) and rank sort with one thread per element; plus a warp-wide sort in registers. */
#define N 512
#define M 3000

__global__ void oddEven(int* d)
{
    __shared__ int s[N];
    s[threadIdx.x] = d[threadIdx.x];
    if (threadIdx.x + blockDim.x < N) s[threadIdx.x + blockDim.x] = d[threadIdx.x + blockDim.x];
    __syncthreads();
    for (int round = 0; round <= N; round++)
    {
        int changed = 0;
        for (int phase = 0; phase < 2; phase++)
        {
            int i = 2 * threadIdx.x + phase;
            if (i + 1 < N && s[i] > s[i + 1])
            {
                int t = s[i]; s[i] = s[i + 1]; s[i + 1] = t;
                changed = 1;
            }
            __syncthreads();
        }
        if (!__syncthreads_or(changed)) break;
    }
    d[threadIdx.x] = s[threadIdx.x];
    d[threadIdx.x + blockDim.x] = s[threadIdx.x + blockDim.x];
}

__global__ void rankSort(const float* a, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = a[i];
        int rank = 0;
        for (int j = 0; j < n; j++) rank += a[j] < v || (a[j] == v && j < i);
        out[rank] = v;
    }
}

__global__ void warpSort(short* data)
{
    short v = data[blockIdx.x * 32 + threadIdx.x];
    int lane = threadIdx.x;
    for (int k = 2; k <= 32; k <<= 1)
        for (int j = k >> 1; j > 0; j >>= 1) {
            short other = __shfl_xor_sync(0xffffffff, v, j);
            bool up = (lane & k) == 0, lower = (lane & j) == 0;
            v = (up == lower) ? (v < other ? v : other) : (v < other ? other : v);
        }
    data[blockIdx.x * 32 + lane] = v;
}

int main(int argc, char* argv[])
{
    int h[N], *d, i;
    float *fa, *fo, *hf = (float*)malloc(M * sizeof(float)), *ho = (float*)malloc(M * sizeof(float));
    short hs[256], *ds;
    long sum = 0, sum2 = 0;
    double fsum = 0, fsum2 = 0;
    for (i = 0; i < N; i++) { h[i] = rand() % 1000 - 500; sum += (long)h[i] * h[i]; }
    for (i = 0; i < M; i++) { hf[i] = (float)(rand() % 500); fsum += hf[i]; }
    for (i = 0; i < 256; i++) hs[i] = (short)(rand() % 60000 - 30000);
    cudaMalloc((void**)&d, sizeof(h));
    cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice);
    oddEven<<<1, N / 2>>>(d);
    cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost);
    cudaMalloc((void**)&fa, M * sizeof(float));
    cudaMalloc((void**)&fo, M * sizeof(float));
    cudaMemcpy(fa, hf, M * sizeof(float), cudaMemcpyHostToDevice);
    rankSort<<<M / 100, 100>>>(fa, fo, M);
    cudaMemcpy(ho, fo, M * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMalloc((void**)&ds, sizeof(hs));
    cudaMemcpy(ds, hs, sizeof(hs), cudaMemcpyHostToDevice);
    warpSort<<<8, 32>>>(ds);
    cudaMemcpy(hs, ds, sizeof(hs), cudaMemcpyDeviceToHost);
    int ok = cudaGetLastError() == cudaSuccess;
    for (i = 0; i < N; i++) { sum2 += (long)h[i] * h[i]; if (i && h[i] < h[i - 1]) ok = 0; }
    for (i = 0; i < M; i++) { fsum2 += ho[i]; if (i && ho[i] < ho[i - 1]) ok = 0; }
    for (i = 0; i < 256; i++) if (i % 32 && hs[i] < hs[i - 1]) ok = 0;
    if (sum != sum2 || fsum != fsum2) ok = 0;
    printf("%d ... %d | %g ... %g\n", h[0], h[N - 1], ho[0], ho[M - 1]);
    printf("%s\n", ok ? "The arrays are sorted" : "ERROR: not sorted");
    cudaFree(d); cudaFree(fa); cudaFree(fo); cudaFree(ds);
    free(hf); free(ho);
    return ok ? 0 : 1;
}
