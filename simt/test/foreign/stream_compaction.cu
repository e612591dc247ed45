// Filtering an array: global atomics, shared atomics, warp-aggregated atomics (intrinsics and coalesced groups), ballot + scan.
#include <stdio.h>
#include <stdlib.h>
#include <cooperative_groups.h>
#include <vector>
#include <algorithm>
using namespace cooperative_groups;

#define WARP_SZ 32
#define THREADS 256
#define E(x) { cudaError_t e = (x); if (e) { fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorName(e)); return -2; } }

__device__ inline int lane_id(void) { return threadIdx.x % WARP_SZ; }

// warp-aggregated atomic increment, as the developer blog's first version wrote it (all threads of the warp that get here)
__device__ int atomicAggInc(int *ctr) {
  unsigned int active = __activemask();
  int leader = __ffs(active) - 1;
  int change = __popc(active);
  unsigned int rank = __popc(active & ((1u << lane_id()) - 1));
  int warp_res;
  if (rank == 0) warp_res = atomicAdd(ctr, change);
  warp_res = __shfl_sync(active, warp_res, leader);
  return warp_res + rank;
}

__device__ int atomicAggIncCG(int *ptr) {
  coalesced_group g = coalesced_threads();
  int prev;
  // elect the first active thread to perform atomic add
  if (g.thread_rank() == 0) prev = atomicAdd(ptr, g.size());
  // broadcast previous value within the warp and add each active thread's rank to it
  prev = g.thread_rank() + g.shfl(prev, 0);
  return prev;
}

__global__ void filter(int *dst, int *nres, const int *src, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n && src[i] > 0) dst[atomicAdd(nres, 1)] = src[i];
}

__global__ void filter_shared_k(int *dst, int *nres, const int *src, int n) {
  __shared__ int l_n;
  int i = blockIdx.x * (2 * THREADS) + threadIdx.x;
  for (int iter = 0; iter < 2; iter++) {
    // zero the counter
    if (threadIdx.x == 0) l_n = 0;
    __syncthreads();
    // get the value, evaluate the predicate, and increment the counter if needed
    int d, pos;
    if (i < n) {
      d = src[i];
      if (d > 0) pos = atomicAdd(&l_n, 1);
    }
    __syncthreads();
    // leader increments the global counter
    if (threadIdx.x == 0) l_n = atomicAdd(nres, l_n);
    __syncthreads();
    // threads with true predicates write their elements
    if (i < n && d > 0) {
      pos += l_n; // increment local pos by global counter
      dst[pos] = d;
    }
    __syncthreads();
    i += THREADS;
  }
}

__global__ void filter_agg(int *dst, int *nres, const int *src, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  if (src[i] > 0) dst[atomicAggInc(nres)] = src[i];
}

__global__ void filter_agg_cg(int *dst, int *nres, const int *src, int n) {
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x)
    if (src[i] > 0) dst[atomicAggIncCG(nres)] = src[i];
}

// order within a block is kept: ballot, popcount, block scan of warp counts
__global__ void filter_ballot(int *dst, int *nres, const int *src, int n) {
  __shared__ int warp_base[THREADS / WARP_SZ];
  int i = threadIdx.x + blockIdx.x * blockDim.x, warp = threadIdx.x / WARP_SZ;
  bool keep = i < n && src[i] > 0;
  unsigned votes = __ballot_sync(0xFFFFFFFFU, keep);
  if (lane_id() == 0) warp_base[warp] = __popc(votes);
  __syncthreads();
  if (threadIdx.x == 0) {
    int total = 0;
    for (int w = 0; w < THREADS / WARP_SZ; w++) { int c = warp_base[w]; warp_base[w] = total; total += c; }
    int base = atomicAdd(nres, total);
    for (int w = 0; w < THREADS / WARP_SZ; w++) warp_base[w] += base;
  }
  __syncthreads();
  if (keep) dst[warp_base[warp] + __popc(votes & ((1u << lane_id()) - 1u))] = src[i];
}

int main() {
  const int n = 150000;
  std::vector<int> h(n), want, got(n);
  for (int i = 0; i < n; i++) {
    h[i] = rand() % 100 < 40 ? rand() : -rand();
    if (h[i] > 0) want.push_back(h[i]);
  }
  std::sort(want.begin(), want.end());
  int *src, *dst, *nres, count;
  E(cudaMalloc(&src, n * sizeof(int)));
  E(cudaMalloc(&dst, n * sizeof(int)));
  E(cudaMalloc(&nres, sizeof(int)));
  E(cudaMemcpy(src, h.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  typedef void (*Filter)(int *, int *, const int *, int);
  struct { const char *name; Filter f; int grid; } tests[] = {
      {"global atomics", filter, (n + THREADS - 1) / THREADS},
      {"shared atomics", filter_shared_k, (n + 2 * THREADS - 1) / (2 * THREADS)},
      {"warp-aggregated", filter_agg, (n + THREADS - 1) / THREADS},
      {"coalesced groups", filter_agg_cg, 40},
      {"ballot", filter_ballot, (n + THREADS - 1) / THREADS}};
  int bad = 0;
  for (auto &t : tests) {
    E(cudaMemset(nres, 0, sizeof(int)));
    t.f<<<t.grid, THREADS>>>(dst, nres, src, n);
    E(cudaGetLastError());
    E(cudaMemcpy(&count, nres, sizeof(int), cudaMemcpyDeviceToHost));
    if (count < 0 || count > n) count = 0;
    E(cudaMemcpy(got.data(), dst, count * sizeof(int), cudaMemcpyDeviceToHost));
    std::sort(got.begin(), got.begin() + count);
    bool ok = count == (int)want.size() && std::equal(want.begin(), want.end(), got.begin());
    printf("%-18s %6d kept  %s\n", t.name, count, ok ? "ok" : "WRONG");
    bad += !ok;
  }
  cudaFree(src); cudaFree(dst); cudaFree(nres);
  return bad;
}
