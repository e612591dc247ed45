// All-pairs shortest paths, blocked Floyd-Warshall in three phases, with path reconstruction by the naive kernel.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <algorithm>

#define B 16
#define INF 1000000000
#define cudaSafe(e) cudaSafe_((e), __LINE__)
static inline void cudaSafe_(cudaError_t e, int l) { if (e != cudaSuccess) { fprintf(stderr, "line %d %s\n", l, cudaGetErrorString(e)); exit(1); } }

__global__ void naive_step(int *d, int *next, int n, int k)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j >= n || i == k || j == k) return;
    int through = d[i * n + k] + d[k * n + j];
    if (through < d[i * n + j]) {
        d[i * n + j] = through;
        next[i * n + j] = next[i * n + k];
    }
}

__device__ void step(int C[B][B], int (*A)[B], int (*Bm)[B], int y, int x)
{
    for (int k = 0; k < B; k++) {
        int t = A[y][k] + Bm[k][x];
        __syncthreads();
        if (C[y][x] > t) C[y][x] = t;
        __syncthreads();
    }
}

__global__ void phase1(int *d, int n, int r)
{
    __shared__ int s[B][B];
    int y = threadIdx.y, x = threadIdx.x, at = (r * B + y) * n + r * B + x;
    s[y][x] = d[at];
    __syncthreads();
    step(s, s, s, y, x);
    d[at] = s[y][x];
}

__global__ void phase2(int *d, int n, int r)
{
    if (blockIdx.x == r) return;
    __shared__ int pivot[B][B], s[B][B];
    int y = threadIdx.y, x = threadIdx.x;
    int at = blockIdx.y == 0 ? (r * B + y) * n + blockIdx.x * B + x : (blockIdx.x * B + y) * n + r * B + x;
    pivot[y][x] = d[(r * B + y) * n + r * B + x];
    s[y][x] = d[at];
    __syncthreads();
    if (blockIdx.y == 0) step(s, pivot, s, y, x); else step(s, s, pivot, y, x);
    d[at] = s[y][x];
}

__global__ void phase3(int *d, int n, int r)
{
    if (blockIdx.x == r || blockIdx.y == r) return;
    __shared__ int row[B][B], col[B][B];
    const int y = threadIdx.y, x = threadIdx.x, i = blockIdx.y * B + y, j = blockIdx.x * B + x;
    row[y][x] = d[(r * B + y) * n + j];
    col[y][x] = d[i * n + r * B + x];
    __syncthreads();
    int best = d[i * n + j];
#pragma unroll
    for (int k = 0; k < B; ++k) best = min(best, col[y][k] + row[k][x]);
    d[i * n + j] = best;
}

int main()
{
    const int n = 144;
    std::vector<int> w(n * n, INF), ref, got(n * n), next(n * n, -1);
    srand(3);
    for (int i = 0; i < n; i++) {
        w[i * n + i] = 0;
        for (int e = 0; e < 4; e++) { int j = rand() % n; if (i != j) w[i * n + j] = 1 + rand() % 50; }
        for (int j = 0; j < n; j++) if (w[i * n + j] < INF) next[i * n + j] = j;
    }
    ref = w;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) ref[i * n + j] = std::min(ref[i * n + j], ref[i * n + k] + ref[k * n + j]);

    int *d, *d_next, bad = 0;
    cudaSafe(cudaMalloc(&d, n * n * sizeof(int)));
    cudaSafe(cudaMalloc(&d_next, n * n * sizeof(int)));
    cudaSafe(cudaMemcpy(d, w.data(), n * n * sizeof(int), cudaMemcpyHostToDevice));
    cudaSafe(cudaMemcpy(d_next, next.data(), n * n * sizeof(int), cudaMemcpyHostToDevice));
    for (int k = 0; k < n; k++) naive_step<<<dim3((n + 127) / 128, n), 128>>>(d, d_next, n, k);
    cudaSafe(cudaGetLastError());
    cudaSafe(cudaMemcpy(got.data(), d, n * n * sizeof(int), cudaMemcpyDeviceToHost));
    cudaSafe(cudaMemcpy(next.data(), d_next, n * n * sizeof(int), cudaMemcpyDeviceToHost));
    bad += got != ref;
    // walk along the paths
    int walked = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (i != j && ref[i * n + j] < INF) {
                int at = i, len = 0, hops = 0;
                while (at != j && at >= 0 && hops++ < n) { int to = next[at * n + j]; if (to < 0) break; len += w[at * n + to]; at = to; }
                bad += at != j || len != ref[i * n + j];
                walked++;
            }
    printf("naive: %s, %d paths walked\n", bad ? "wrong" : "right", walked);

    cudaSafe(cudaMemcpy(d, w.data(), n * n * sizeof(int), cudaMemcpyHostToDevice));
    const dim3 threads(B, B);
    for (int r = 0; r < n / B; r++) {
        phase1<<<1, threads>>>(d, n, r);
        phase2<<<dim3(n / B, 2), threads>>>(d, n, r);
        phase3<<<dim3(n / B, n / B), threads>>>(d, n, r);
    }
    cudaSafe(cudaGetLastError());
    cudaSafe(cudaMemcpy(got.data(), d, n * n * sizeof(int), cudaMemcpyDeviceToHost));
    printf("blocked: %s\n", got == ref ? "right" : "wrong");
    bad += got != ref;
    cudaSafe(cudaFree(d));
    cudaSafe(cudaFree(d_next));
    printf(bad ? "Floyd-Warshall FAILED\n" : "Floyd-Warshall OK\n");
    return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
