// Warp-level primitives: votes, ballots, match, reduce, shuffles of all types and widths, elections; a deduplicating histogram.
#include <stdio.h>
#include <stdlib.h>
#include <assert.h>
#include <string.h>

#define CHECK(cond) do { if (!(cond)) { printf("Check failed: %s, line %d, thread %d\n", #cond, __LINE__, threadIdx.x); atomicAdd(failures, 1); } } while (0)

__global__ void votes(const int *in, int *failures)
{
    const int tid = threadIdx.x, lane = tid & 31;
    const int v = in[tid];
    const int pred = v % 3 == 0;
    const unsigned full = 0xffffffffu;
    unsigned expected = 0;
    int base = tid & ~31;
    for (int i = 0; i < 32; i++) expected |= (unsigned)(in[base + i] % 3 == 0) << i;
    CHECK(__ballot_sync(full, pred) == expected);
    CHECK(__any_sync(full, pred) == (expected != 0));
    CHECK(__all_sync(full, pred) == (expected == full));
    CHECK(__all_sync(full, v >= 0) == 1);

    // groups of equal values
    unsigned same = __match_any_sync(full, v & 7), mine = 0;
    for (int i = 0; i < 32; i++) mine |= (unsigned)((in[base + i] & 7) == (v & 7)) << i;
    CHECK(same == mine);
    int all;
    CHECK(__match_all_sync(full, 42, &all) == full && all);
    CHECK(__match_all_sync(full, (unsigned long long)lane, &all) == 0 && !all);

    // only half of the lanes
    if (lane < 16) {
        const unsigned half = 0x0000ffffu;
        CHECK(__ballot_sync(half, lane & 1) == 0xaaaau);
        CHECK(__reduce_add_sync(half, lane) == 120);
        CHECK(__shfl_xor_sync(half, lane, 8) == (lane ^ 8));
    } else if (lane < 24) {
        const unsigned some = 0x00ff0000u;
        CHECK(__reduce_max_sync(some, (unsigned)lane) == 23);
        CHECK(__reduce_min_sync(some, -lane) == -23);
    }
    __syncwarp();
    CHECK(__reduce_or_sync(full, 1u << lane) == full);
    CHECK(__reduce_and_sync(full, ~(1u << lane)) == 0);
    CHECK(__reduce_xor_sync(full, 1u) == 0);

    // leader election within each group of equal values: the leader adds for all
    const int leader = __ffs(same) - 1;
    const int rank = __popc(same & ((1u << lane) - 1));
    CHECK((rank == 0) == (lane == leader));
    CHECK(__clz(same) == 31 - (31 - __clz(same)));
    CHECK(__fns(same, 0, 1) == leader);
}

__global__ void shuffles(int *failures)
{
    const int lane = threadIdx.x & 31;
    const unsigned full = ~0u;
    for (int width = 2; width <= 32; width *= 2) {
        const int sub = lane / width * width, in = lane % width;
        CHECK(__shfl_sync(full, lane, 1, width) == sub + 1);
        CHECK(__shfl_sync(full, lane, width + 1, width) == sub + 1);       // modulo the width
        CHECK(__shfl_up_sync(full, lane, 1, width) == (in >= 1 ? lane - 1 : lane));
        CHECK(__shfl_down_sync(full, lane, 1, width) == (in + 1 < width ? lane + 1 : lane));
        CHECK(__shfl_xor_sync(full, lane, width / 2, width) == (lane ^ (width / 2)));
    }
    CHECK(__shfl_sync(full, lane * 0.5, 31) == 15.5);
    CHECK(__shfl_sync(full, lane * 0.5f, 3) == 1.5f);
    CHECK(__shfl_up_sync(full, (long long)lane << 40, 4) == (long long)(lane < 4 ? lane : lane - 4) << 40);
    CHECK(__shfl_down_sync(full, 1ull << lane, 2) == 1ull << (lane < 30 ? lane + 2 : lane));
    CHECK(__shfl_xor_sync(full, (unsigned)lane, 31) == 31u - lane);
    CHECK(__shfl_sync(full, (short)-lane, 5) == -5);
    CHECK(__shfl_sync(full, (long)lane, lane + 1) == (lane + 1) % 32);
    // a broadcast of a struct by pieces
    struct Pair { int a; float b; } p = { lane, lane * 2.f };
    p.a = __shfl_sync(full, p.a, 7);
    p.b = __shfl_sync(full, p.b, 7);
    CHECK(p.a == 7 && p.b == 14.f);
    // different trip counts in each half, each with its own mask
    const unsigned mask = lane < 16 ? 0xffffu : 0xffff0000u;
    int x = 1;
    for (int i = 0; i < (lane < 16 ? 3 : 5); i++) x += __shfl_xor_sync(mask, x, 1 << (i & 3));
    CHECK(x == (lane < 16 ? 8 : 32));
}

__global__ void dedup_histogram(const unsigned char *data, int n, int *bins)
{
    for (int base = blockIdx.x * blockDim.x; base < n; base += gridDim.x * blockDim.x) {
        int i = base + threadIdx.x;
        unsigned active = __ballot_sync(0xffffffff, i < n);
        if (i < n) {
            unsigned peers = __match_any_sync(active, data[i]);
            if ((threadIdx.x & 31) == __ffs(peers) - 1) atomicAdd(&bins[data[i]], __popc(peers));
        }
    }
}

__global__ void barriers(const int *in, int *out)
{
    int v = in[threadIdx.x];
    int count = __syncthreads_count(v > 50), all = __syncthreads_and(v >= 0), any = __syncthreads_or(v == 99999);
    if (threadIdx.x == 0) { out[0] = count; out[1] = all; out[2] = any; }
}

int main(int argc, char **argv)
{
    const int n = 256, m = 10007;
    int h[n], *d_in, *d_fail, *d_bins, *d_out, fails = 0, out[3], bins[256], want[256] = {0}, count = 0;
    unsigned char *bytes = (unsigned char *)malloc(m), *d_bytes;
    for (int i = 0; i < n; i++) { h[i] = i < 32 ? 3 * i : rand() % 100; count += h[i] > 50; }
    for (int i = 0; i < m; i++) want[bytes[i] = rand() % 4 ? 65 : rand() % 256]++;
    cudaMalloc(&d_in, sizeof h); cudaMalloc(&d_fail, 4); cudaMalloc(&d_bins, sizeof bins); cudaMalloc(&d_out, sizeof out); cudaMalloc(&d_bytes, m);
    cudaMemcpy(d_in, h, sizeof h, cudaMemcpyHostToDevice);
    cudaMemcpy(d_bytes, bytes, m, cudaMemcpyHostToDevice);
    cudaMemset(d_fail, 0, 4);
    cudaMemset(d_bins, 0, sizeof bins);
    votes<<<1, n>>>(d_in, d_fail);
    shuffles<<<2, 96>>>(d_fail);
    dedup_histogram<<<4, 128>>>(d_bytes, m, d_bins);
    barriers<<<1, n>>>(d_in, d_out);
    cudaError_t e = cudaDeviceSynchronize();
    cudaMemcpy(&fails, d_fail, 4, cudaMemcpyDeviceToHost);
    cudaMemcpy(bins, d_bins, sizeof bins, cudaMemcpyDeviceToHost);
    cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost);
    int ok = e == cudaSuccess && !fails && !memcmp(bins, want, sizeof bins) && out[0] == count && out[1] && !out[2];
    printf("%s, %d failed checks, barrier count %d (%d)\n%s\n", cudaGetErrorString(e), fails, out[0], count, ok ? "warp primitives OK" : "warp primitives FAILED");
    cudaFree(d_in); cudaFree(d_fail); cudaFree(d_bins); cudaFree(d_out); cudaFree(d_bytes);
    free(bytes);
    return !ok;
}
