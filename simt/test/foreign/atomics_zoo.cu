/* atomicIntrinsics and company: every operation on every type, against serial results; CAS-made double multiply and float max;
   a spin lock per bucket; tickets; system- and block-scope variants. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <float.h>
#include <stdint.h>
#include <cuda_runtime.h>
#define min(a,b) ((a) < (b) ? (a) : (b))
#define max(a,b) ((a) > (b) ? (a) : (b))

#define NBUCKETS 13

__global__ void testKernel(int *g_odata)
{
    // access thread id
    const unsigned int tid = blockDim.x * blockIdx.x + threadIdx.x;

    // Arithmetic atomic instructions
    atomicAdd(&g_odata[0], 10);
    atomicSub(&g_odata[1], 10);
    atomicExch(&g_odata[2], tid);
    atomicMax(&g_odata[3], tid);
    atomicMin(&g_odata[4], tid);
    atomicInc((unsigned int *)&g_odata[5], 17);
    atomicDec((unsigned int *)&g_odata[6], 137);
    atomicCAS(&g_odata[7], tid - 1, tid);
    // Bitwise atomic instructions
    atomicAnd(&g_odata[8], 2 * tid + 7);
    atomicOr(&g_odata[9], 1 << tid % 32);
    atomicXor(&g_odata[10], tid);
}

__device__ double atomicMul(double *address, double val)
{
    unsigned long long int *address_as_ull = (unsigned long long int *)address;
    unsigned long long int old = *(volatile unsigned long long *)address_as_ull, assumed;
    do {
        assumed = old;
        old = atomicCAS(address_as_ull, assumed, __double_as_longlong(val * __longlong_as_double(assumed)));
        // Note: uses integer comparison to avoid hang in case of NaN (since NaN != NaN)
    } while (assumed != old);
    return __longlong_as_double(old);
}

__device__ __forceinline__ float atomicMaxFloat(float *addr, float value)
{
    float old;
    old = (value >= 0) ? __int_as_float(atomicMax((int *)addr, __float_as_int(value)))
                       : __uint_as_float(atomicMin((unsigned int *)addr, __float_as_uint(value)));
    return old;
}

typedef struct { unsigned long long u64_sum, u64_min, u64_max, u64_and, u64_or, u64_xor; long long i64_min, i64_max; double d_sum, d_prod; float f_sum, f_max; unsigned u_sum, u_min, u_max, exchanged; } Totals;

__global__ void zoo(Totals *t, const long long *v, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long u = (unsigned long long)v[i];
    atomicAdd(&t->u64_sum, u);
    atomicMin(&t->u64_min, u);
    atomicMax(&t->u64_max, u);
    atomicAnd(&t->u64_and, u | 0xff);
    atomicOr(&t->u64_or, u & 0xf0f0);
    atomicXor(&t->u64_xor, u);
    atomicMin(&t->i64_min, v[i]);
    atomicMax(&t->i64_max, v[i]);
    atomicAdd(&t->d_sum, (double)(v[i] % 1000) / 8);
    atomicMul(&t->d_prod, i % 2 ? 2.0 : 0.5);
    atomicAdd(&t->f_sum, (float)(v[i] % 16));
    atomicMaxFloat(&t->f_max, (float)(v[i] % 1000) / 4 - 300.f);
    atomicAdd_system(&t->u_sum, (unsigned)i);
    atomicMin(&t->u_min, (unsigned)u);
    atomicMax(&t->u_max, (unsigned)u);
    if (atomicExch(&t->exchanged, (unsigned)i + 1) == (unsigned)i + 1) t->u_sum = 0;   // nobody else stores this number
}

// a lock per bucket, taken by one lane at a time
__global__ void locked(int *locks, volatile double *sum, volatile int *count, const long long *v, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int b = (int)(((v[i] % NBUCKETS) + NBUCKETS) % NBUCKETS);
    bool done = false;
    while (!done) {
        if (atomicCAS(&locks[b], 0, 1) == 0) {
            __threadfence();
            sum[b] += 0.25 * (v[i] % 100);
            count[b] = count[b] + 1;
            __threadfence();
            atomicExch(&locks[b], 0);
            done = true;
        }
    }
}

__global__ void tickets(unsigned *next, unsigned *order, int n)
{
    __shared__ unsigned base, local;
    if (threadIdx.x == 0) local = 0;
    __syncthreads();
    unsigned mine = atomicAdd_block(&local, 1u);
    __syncthreads();
    if (threadIdx.x == 0) base = atomicAdd(next, local);
    __syncthreads();
    order[base + mine] = blockIdx.x * blockDim.x + threadIdx.x;
}

static int computeGold(const int *g, int len)
{
    int bad = 0, val = 0, i, found;
    bad += g[0] != 10 * len;
    bad += g[1] != -10 * len;
    bad += g[2] < 0 || g[2] >= len;
    bad += g[3] != len - 1;
    bad += g[4] != 0;
    for (i = 0; i < len; ++i) val = (val >= 17) ? 0 : val + 1;
    bad += g[5] != val;
    for (val = 0, i = 0; i < len; ++i) val = ((val == 0) || (val > 137)) ? 137 : val - 1;
    bad += g[6] != val;
    found = g[7] >= 0 && g[7] < len;
    bad += !found;
    for (val = 0xff, i = 0; i < len; ++i) val &= (2 * i + 7);
    bad += g[8] != val;
    bad += g[9] != -1;
    for (val = 0xff, i = 0; i < len; ++i) val ^= i;
    bad += g[10] != val;
    return bad;
}

int main(void)
{
    const unsigned int numThreads = 256, numBlocks = 32, n = numThreads * numBlocks;
    int h[11] = {0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0xff}, *d, bad = 0;
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(&d, sizeof h);
    cudaMemcpyAsync(d, h, sizeof h, cudaMemcpyHostToDevice, stream);
    testKernel<<<numBlocks, numThreads, 0, stream>>>(d);
    cudaMemcpyAsync(h, d, sizeof h, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    bad += computeGold(h, n);
    printf("atomicIntrinsics: %d wrong\n", bad);

    long long *v = (long long *)malloc(n * sizeof *v), *d_v;
    Totals t, w, *d_t;
    memset(&t, 0, sizeof t);
    t.u64_min = ~0ull; t.u64_and = ~0ull; t.i64_min = INT64_MAX; t.i64_max = INT64_MIN; t.d_prod = 1; t.f_max = -FLT_MAX; t.u_min = ~0u;
    w = t;
    for (unsigned i = 0; i < n; i++) {
        long long x = v[i] = ((long long)rand() << 31 | rand()) - (1ll << 61);
        unsigned long long u = (unsigned long long)x;
        w.u64_sum += u; w.u64_min = min(w.u64_min, u); w.u64_max = max(w.u64_max, u); w.u64_and &= u | 0xff; w.u64_or |= u & 0xf0f0; w.u64_xor ^= u;
        w.i64_min = min(w.i64_min, x); w.i64_max = max(w.i64_max, x); w.d_sum += (double)(x % 1000) / 8; w.f_sum += (float)(x % 16);
        w.f_max = max(w.f_max, (float)(x % 1000) / 4 - 300.f); w.u_sum += i; w.u_min = min(w.u_min, (unsigned)u); w.u_max = max(w.u_max, (unsigned)u);
    }
    cudaMalloc(&d_v, n * sizeof *v);
    cudaMalloc(&d_t, sizeof t);
    cudaMemcpy(d_v, v, n * sizeof *v, cudaMemcpyHostToDevice);
    cudaMemcpy(d_t, &t, sizeof t, cudaMemcpyHostToDevice);
    zoo<<<numBlocks, numThreads>>>(d_t, d_v, n);
    cudaMemcpy(&t, d_t, sizeof t, cudaMemcpyDeviceToHost);
    #define SAME(f) if (t.f != w.f) { printf("%s differs\n", #f); bad++; }
    SAME(u64_sum) SAME(u64_min) SAME(u64_max) SAME(u64_and) SAME(u64_or) SAME(u64_xor) SAME(i64_min) SAME(i64_max)
    SAME(d_sum) SAME(d_prod) SAME(f_sum) SAME(f_max) SAME(u_sum) SAME(u_min) SAME(u_max)
    if (t.exchanged < 1 || t.exchanged > n) { puts("exchange"); bad++; }

    int *locks, *count, hc[NBUCKETS], wc[NBUCKETS] = {0};
    double *sum, hs[NBUCKETS], ws[NBUCKETS] = {0};
    cudaMalloc(&locks, NBUCKETS * sizeof(int)); cudaMalloc(&count, NBUCKETS * sizeof(int)); cudaMalloc(&sum, NBUCKETS * sizeof(double));
    cudaMemset(locks, 0, NBUCKETS * sizeof(int)); cudaMemset(count, 0, NBUCKETS * sizeof(int)); cudaMemset(sum, 0, NBUCKETS * sizeof(double));
    locked<<<n / 8 / 64, 64>>>(locks, sum, count, d_v, n / 8);
    cudaMemcpy(hc, count, sizeof hc, cudaMemcpyDeviceToHost);
    cudaMemcpy(hs, sum, sizeof hs, cudaMemcpyDeviceToHost);
    for (unsigned i = 0; i < n / 8; i++) { int b = (int)(((v[i] % NBUCKETS) + NBUCKETS) % NBUCKETS); wc[b]++; ws[b] += 0.25 * (v[i] % 100); }
    for (int b = 0; b < NBUCKETS; b++) if (hc[b] != wc[b] || hs[b] != ws[b]) { printf("bucket %d: %d %f, expected %d %f\n", b, hc[b], hs[b], wc[b], ws[b]); bad++; }

    unsigned *next, *order, *ho = (unsigned *)malloc(n * 4), *seen = (unsigned *)calloc(n, 4);
    cudaMalloc(&next, 4); cudaMalloc(&order, n * 4); cudaMemset(next, 0, 4);
    tickets<<<numBlocks, numThreads>>>(next, order, n);
    cudaMemcpy(ho, order, n * 4, cudaMemcpyDeviceToHost);
    for (unsigned i = 0; i < n; i++) if (ho[i] >= n || seen[ho[i]]++) bad++;
    cudaError_t e = cudaGetLastError();
    printf("%s; %s\n", cudaGetErrorString(e), bad ? "FAILED" : "all atomics agree");
    cudaFree(d); cudaFree(d_v); cudaFree(d_t); cudaFree(locks); cudaFree(count); cudaFree(sum); cudaFree(next); cudaFree(order);
    cudaStreamDestroy(stream);
    free(v); free(ho); free(seen);
    return bad || e ? 1 : 0;
}
