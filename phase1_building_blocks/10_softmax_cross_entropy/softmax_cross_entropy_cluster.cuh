/* softmax_cross_entropy_cluster.cuh - losses and gradients as in softmax_cross_entropy.cuh, a row in the registers of a
 * cluster.
 *
 *   logits, dlogits (B,C), labels (B), losses (B); dlogits may be the array of the logits
 *
 * A row of 50257 floats takes all the shared memory that a block can have. So a multiprocessor has one block, and it
 * loads, computes or stores: while it computes, it asks the memory for nothing. On a GPU of compute capability 9.0 or
 * more up to 8 blocks form a cluster: they run at the same time and can write to each other's shared memory. Each of the
 * 8 keeps an eighth of the row in registers, 7 float4 per thread, and a multiprocessor has 4 such blocks of different
 * rows: some load while others compute or store. The exponentials stay in registers, too, and are computed once. All
 * that the blocks of a row exchange is a maximum and a sum.
 */
#ifndef PHASE1_BUILDING_BLOCKS_SOFTMAX_CROSS_ENTROPY_CLUSTER_CUH
#define PHASE1_BUILDING_BLOCKS_SOFTMAX_CROSS_ENTROPY_CLUSTER_CUH

#include <cooperative_groups.h>

#include "phase1_building_blocks/08_softmax/softmax.cuh"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy.cuh"

enum { SOFTMAX_CLUSTER = 8, SOFTMAX_CLUSTER_THREADS = 256 };

/* Floats c to c + 3 of the row x; -inf outside the row. */
static __device__ __forceinline__ float4 softmax_row_load(const float *x, int c, int classes) {
  if (c >= 0 && c + 3 < classes) return __ldcs((const float4 *)(x + c));
  return make_float4(c >= 0 && c < classes ? x[c] : -INFINITY, c + 1 >= 0 && c + 1 < classes ? x[c + 1] : -INFINITY,
                     c + 2 >= 0 && c + 2 < classes ? x[c + 2] : -INFINITY,
                     c + 3 >= 0 && c + 3 < classes ? x[c + 3] : -INFINITY);
}

static __device__ __forceinline__ void softmax_row_store(float *dx, float4 v, int c, int classes) {
  if (c >= 0 && c + 3 < classes) {
    __stcs((float4 *)(dx + c), v);
    return;
  }
  if (c >= 0 && c < classes) dx[c] = v.x;
  if (c + 1 >= 0 && c + 1 < classes) dx[c + 1] = v.y;
  if (c + 2 >= 0 && c + 2 < classes) dx[c + 2] = v.z;
  if (c + 3 >= 0 && c + 3 < classes) dx[c + 3] = v.w;
}

/* Cluster b takes row b. Its blocks share the quads of the row (see SOFTMAX_LINE) in runs of whole lines. */
template <int QUADS>
static __global__ void __launch_bounds__(SOFTMAX_CLUSTER_THREADS, 1024 / SOFTMAX_CLUSTER_THREADS)
    softmax_cross_entropy_cluster_kernel(float *losses, float *dlogits, const float *logits, const int *labels,
                                         float scale, int classes) {
#if defined(SIMT_REWRITTEN) || !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  const int T = SOFTMAX_CLUSTER_THREADS, warps = T / 32;
  __shared__ MaxSum part[warps], parts_of_row[SOFTMAX_CLUSTER];
  cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  const int t = threadIdx.x, rank = (int)(blockIdx.x % SOFTMAX_CLUSTER), b = (int)(blockIdx.x / SOFTMAX_CLUSTER);
  const float *x = logits + (size_t)b * classes;
  float *dx = dlogits + (size_t)b * classes, max = -INFINITY, sum = 0;
  const int shift = (int)((uintptr_t)x / sizeof(float) % SOFTMAX_LINE), quads = (shift + classes + 3) / 4;
  const int lines = (quads + SOFTMAX_LINE / 4 * SOFTMAX_CLUSTER - 1) / (SOFTMAX_LINE / 4 * SOFTMAX_CLUSTER);
  const int first = rank * lines * (SOFTMAX_LINE / 4), here = min(lines * (SOFTMAX_LINE / 4), quads - first);
  float4 v[QUADS];
#pragma unroll
  for (int i = 0; i < QUADS; i++) {
    const int q = t + i * T;
    v[i] = q < here ? softmax_row_load(x, 4 * (first + q) - shift, classes)
                    : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
  }
  const int label = labels[b];
  const float at_label = softmax_cross_entropy_at(x, label, classes); /* before dx is written: dx may be x */
  cluster.barrier_arrive(); /* waits below: then all blocks run, and their shared memory can be written */
#pragma unroll
  for (int i = 0; i < QUADS; i++) max = fmaxf(max, softmax_quad_max(v[i]));
  const float from = max == -INFINITY ? 0 : max; /* no NaN where a thread has no score above -inf */
#pragma unroll
  for (int i = 0; i < QUADS; i++) {
    v[i] = softmax_quad_exp(v[i], from);
    sum += softmax_quad_sum(v[i]);
  }
  const MaxSum warp = max_sum_lanes(max_sum_make(max, sum), 32);
  if (t % 32 == 0) part[t / 32] = warp;
  __syncthreads();
  const MaxSum block = max_sum_lanes(part[t % warps], warps);
  cluster.barrier_wait();
  if (t < SOFTMAX_CLUSTER) cluster.map_shared_rank(parts_of_row, t)[rank] = block; /* to block t */
  cluster.sync();
  const MaxSum row = max_sum_lanes(parts_of_row[t % SOFTMAX_CLUSTER], SOFTMAX_CLUSTER);
  if (t == 0 && rank == 0) losses[b] = softmax_cross_entropy_loss(row, at_label);

  const float factor = expf(from - row.max) * (scale / row.sum);
#pragma unroll
  for (int i = 0; i < QUADS; i++) {
    const int q = t + i * T, c = 4 * (first + q) - shift, j = label - c;
    if (q >= here) continue;
    float4 g = softmax_quad_scale(v[i], factor);
    if (j >= 0 && j < 4) {
      g.x -= j == 0 ? scale : 0;
      g.y -= j == 1 ? scale : 0;
      g.z -= j == 2 ? scale : 0;
      g.w -= j == 3 ? scale : 0;
    }
    softmax_row_store(dx, g, c, classes);
  }
#endif
}

static inline bool softmax_clusters(void) {
  int device, major;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  return major >= 9;
}

template <int QUADS>
static inline void softmax_cross_entropy_cluster_launch(float *losses, float *dlogits, const float *logits,
                                                        const int *labels, float scale, int batch, int classes) {
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = SOFTMAX_CLUSTER;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  config.gridDim = dim3((unsigned)batch * SOFTMAX_CLUSTER);
  config.blockDim = dim3(SOFTMAX_CLUSTER_THREADS);
  config.attrs = &cluster;
  config.numAttrs = 1;
  CUDA_CHECK(cudaLaunchKernelEx(&config, softmax_cross_entropy_cluster_kernel<QUADS>, losses, dlogits, logits, labels,
                                scale, classes));
}

/* Short rows, rows that do not fit, and other GPUs: as `fused`. */
static inline void softmax_cross_entropy_cluster(float *losses, float *dlogits, const float *logits, const int *labels,
                                                 float scale, int batch, int classes) {
  const int each = SOFTMAX_CLUSTER * SOFTMAX_CLUSTER_THREADS * 4; /* floats in a float4 of every thread */
  const int most = classes + 2 * SOFTMAX_LINE * SOFTMAX_CLUSTER;  /* with what the first and last lines may add */
  if (!rows_alike(logits, dlogits) || classes <= SOFTMAX_SHORT_ROW || most > 7 * each ||
      batch > INT_MAX / SOFTMAX_CLUSTER || !softmax_clusters())
    softmax_cross_entropy_fused(losses, dlogits, logits, labels, scale, batch, classes);
  else if (most <= 2 * each)
    softmax_cross_entropy_cluster_launch<2>(losses, dlogits, logits, labels, scale, batch, classes);
  else if (most <= 4 * each)
    softmax_cross_entropy_cluster_launch<4>(losses, dlogits, logits, labels, scale, batch, classes);
  else
    softmax_cross_entropy_cluster_launch<7>(losses, dlogits, logits, labels, scale, batch, classes);
}

#endif /* PHASE1_BUILDING_BLOCKS_SOFTMAX_CROSS_ENTROPY_CLUSTER_CUH */
