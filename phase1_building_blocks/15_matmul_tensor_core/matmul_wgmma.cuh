/* matmul_wgmma.cuh - C (M,N) = A (M,K) B (K,N) as Hopper wants it: bfloat16 factors, float32 sums. Row-major.
 *
 * mma.sync has a warp fetch its operands into registers before it multiplies, and those instructions are what limits
 * it. From compute capability 9.0 on four warps, a warpgroup, multiply 64 x 256 elements in one instruction, wgmma,
 * whose operands the tensor cores read from shared memory themselves; and a copy engine brings tiles there on the
 * order of one thread. What is left to write is who waits for whom:
 *
 *     producer   one thread: waits until a stage of the ring is empty, orders its next pair of tiles
 *     consumers  two warpgroups, each 64 rows of the 128 x 256 tile: wait until a stage is full, multiply, empty it
 *
 * A stage has two barriers in shared memory (mbarrier). `full` counts the bytes that have arrived, `empty` the warps
 * that have read. Each wait names the phase it waits for, 0 or 1: as the ring goes round the phases alternate.
 *
 *   matmul_wgmma_one_stage    one stage: copies and products take turns
 *   matmul_wgmma_ring         a ring: copies run three stages ahead
 *   matmul_wgmma_persistent   a block stays and does tile after tile: copies of the next begin before C is written
 *   matmul_wgmma              two blocks with the same columns of C are a cluster: each fetches half of B's tile and
 *                             sends it to both, so that the L2 cache is asked for a third less; and the cache is told
 *                             eight stages ahead what it will be asked for
 *
 * The copy engine wants rows that are multiples of 16 bytes, M N and K less than 2^31; others are left to
 * matmul_mma().
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_WGMMA_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_WGMMA_CUH

#include "phase1_building_blocks/15_matmul_tensor_core/matmul_mma.cuh"

#ifndef SIMT_REWRITTEN
#include <cuda.h>

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernel */

enum {
  MATMUL_WGMMA_ROWS = 128, /* of C a block, 64 for each consumer */
  MATMUL_WGMMA_COLS = 256,
  MATMUL_WGMMA_DEPTH = 64,    /* columns of A a stage: 128 bytes, the longest row that is swizzled */
  MATMUL_WGMMA_EARLY = 8,     /* stages from asking for a tile, for the L2 cache, to fetching it */
  MATMUL_WGMMA_THREADS = 384, /* producer, consumer, consumer: warpgroups of 128 */
  MATMUL_WGMMA_A_BYTES = MATMUL_WGMMA_ROWS * MATMUL_WGMMA_DEPTH * 2,
  MATMUL_WGMMA_B_BYTES = MATMUL_WGMMA_DEPTH * MATMUL_WGMMA_COLS * 2,
  MATMUL_WGMMA_STAGE_BYTES = MATMUL_WGMMA_A_BYTES + MATMUL_WGMMA_B_BYTES,
  MATMUL_WGMMA_BOX_BYTES = MATMUL_WGMMA_DEPTH * 64 * 2, /* B comes in boxes of 64 columns: 128 bytes */
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) /* compiled for sm_90a: the instructions below exist there alone */
#define MATMUL_WGMMA_COMPILED 1

static __device__ __forceinline__ void matmul_barrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/* Until the phase of this parity is over. */
static __device__ __forceinline__ void matmul_barrier_wait(uint32_t barrier, uint32_t parity) {
#ifdef MATMUL_WATCHDOG
  long long start = clock64();
#endif
  for (uint32_t over = 0; !over;) {
    asm volatile(
        "{\n"
        ".reg .pred over;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n" /* sleeps a while before it says no */
        "selp.u32 %0, 1, 0, over;\n"
        "}\n"
        : "=r"(over)
        : "r"(barrier), "r"(parity)
        : "memory");
#ifdef MATMUL_WATCHDOG /* a wait that never ends becomes an error after a second or two */
    if (clock64() - start > 3000000000) __trap();
#endif
  }
}

/* One arrival, and so many bytes to come. */
static __device__ __forceinline__ void matmul_barrier_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/* At the same place in block `rank` of the cluster. */
static __device__ __forceinline__ void matmul_barrier_arrive(uint32_t barrier, uint32_t rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n"
      "}\n" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

static __device__ __forceinline__ void matmul_cluster_sync(void) {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

/* A box of the matrix at column x, row y to shared memory; `full` counts its bytes. */
static __device__ __forceinline__ void matmul_box_load(uint32_t to, const CUtensorMap *map, int x, int y,
                                                       uint32_t full) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          to),
      "l"(map), "r"(x), "r"(y), "r"(full)
      : "memory");
}

/* Asks for a box early: it goes to the L2 cache, and nobody waits for it. */
static __device__ __forceinline__ void matmul_box_prefetch(const CUtensorMap *map, int x, int y) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(map), "r"(x), "r"(y) : "memory");
}

/* The same as matmul_box_load, to the same place in each block of the cluster whose bit is set, and to its `full`. */
static __device__ __forceinline__ void matmul_box_load_multicast(uint32_t to, const CUtensorMap *map, int x, int y,
                                                                 uint32_t full, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, "
      "%3}], [%4], %5;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(full), "h"(blocks)
      : "memory");
}

/* How the tensor cores find an operand in shared memory. Both tiles consist of swizzled rows of 128 bytes; eight of
 * them are a group of 1024. `group_bytes` is from one group to the next; `box_bytes` from 64 columns of B to the
 * next 64 (A has no more). */
static __device__ __forceinline__ uint64_t matmul_operand(uint32_t address, int group_bytes, int box_bytes) {
  const uint64_t swizzle_128 = 1;
  uint32_t within = address & 0x3FFFF; /* in a cluster the bits above say in which block's shared memory */
  return (uint64_t)(within >> 4) | (uint64_t)(box_bytes >> 4) << 16 | (uint64_t)(group_bytes >> 4) << 32 |
         swizzle_128 << 62;
}

/* sum (64,256) = A (64,16) B (16,256) + `add` sum. A's rows run along K, B's along N: transposed, as the last 1
 * says. */
static __device__ __forceinline__ void matmul_wgmma_256(float (&sum)[128], uint64_t a, uint64_t b, int add) {
#define SUM8(i)                                                                                           \
  "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), "+f"(sum[i + 5]), \
      "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define SUM32(i) SUM8(i), SUM8(i + 8), SUM8(i + 16), SUM8(i + 24)
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.ne.b32 add, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127 "
      "}, %128, %129, add, 1, 1, 0, 1;\n"
      "}\n"
      : SUM32(0), SUM32(32), SUM32(64), SUM32(96)
      : "l"(a), "l"(b), "r"(add));
#undef SUM32
#undef SUM8
}

/* The registers of `sum` are the tensor cores' from the fence to the wait. */
static __device__ __forceinline__ void matmul_wgmma_fence(void) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
static __device__ __forceinline__ void matmul_wgmma_commit(void) {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/* Until at most `pending` of the committed groups are at work. */
template <int PENDING>
static __device__ __forceinline__ void matmul_wgmma_wait(void) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* The sums of a warpgroup to the 64 x 256 elements of C at (row0, col0). To its warps the tensor cores deal 16 rows
 * each, in 16 x 8 sums as mma.sync has them. */
static __device__ __forceinline__ void matmul_wgmma_write(float *c, const float (&sum)[128], int row0, int col0, int m,
                                                          int n) {
#pragma unroll
  for (int j = 0; j < 128; j += 8)
    matmul_mma_write(c, sum + j, sum + j + 4, row0 + threadIdx.x / 32 % 4 * 16, col0 + 2 * j, m, n);
}

/* Goes round the ring. */
template <int STAGES>
static __device__ __forceinline__ void matmul_wgmma_next(int *stage, uint32_t *phase) {
  if (++*stage < STAGES) return;
  *stage = 0;
  *phase ^= 1;
}
#endif

/* A cluster of CLUSTER blocks takes CLUSTER x 128 rows and 256 columns of C at a time: block `rank` its rank-th
 * rows. */
template <int CLUSTER, int STAGES>
static __global__ void __launch_bounds__(MATMUL_WGMMA_THREADS, 1)
    matmul_wgmma_kernel(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, float *c,
                        int m, int n, int k) {
#ifdef MATMUL_WGMMA_COMPILED
  extern __shared__ unsigned char matmul_wgmma_shared[];
  __shared__ __align__(8) uint64_t full_barrier[STAGES], empty_barrier[STAGES];
  uint32_t ring = ((uint32_t)__cvta_generic_to_shared(matmul_wgmma_shared) + 1023) & ~1023u; /* swizzling's period */
  uint32_t full = (uint32_t)__cvta_generic_to_shared(full_barrier);
  uint32_t empty = (uint32_t)__cvta_generic_to_shared(empty_barrier);
  const int consumer_warps = 8;
  int rank = blockIdx.x % CLUSTER, clusters = gridDim.x / CLUSTER;
  int rows = (m + CLUSTER * MATMUL_WGMMA_ROWS - 1) / (CLUSTER * MATMUL_WGMMA_ROWS);
  int cols = (n + MATMUL_WGMMA_COLS - 1) / MATMUL_WGMMA_COLS;
  int steps = (k + MATMUL_WGMMA_DEPTH - 1) / MATMUL_WGMMA_DEPTH;
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      matmul_barrier_init(full + 8 * i, 1);
      matmul_barrier_init(empty + 8 * i, consumer_warps * CLUSTER);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (CLUSTER > 1) matmul_cluster_sync();

  int stage = 0;
  uint32_t phase = 0;
  if (threadIdx.x < 128) { /* the producer needs few registers, so that the consumers may have more */
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == 0) {
      for (int t = blockIdx.x / CLUSTER; t < rows * cols; t += clusters) {
        int row, col;
        matmul_tile_place(t, rows, cols, &row, &col);
        /* Blocks side by side share a tile of A or of B: one of eight asks for it. */
        bool early_a = CLUSTER > 1 && col % 8 == 0, early_b = CLUSTER > 1 && row % 8 == 0;
        row = (row * CLUSTER + rank) * MATMUL_WGMMA_ROWS;
        col *= MATMUL_WGMMA_COLS;
        for (int step = 0; step < steps; step++) {
          uint32_t a_tile = ring + stage * MATMUL_WGMMA_STAGE_BYTES, b_tile = a_tile + MATMUL_WGMMA_A_BYTES;
          matmul_barrier_wait(empty + 8 * stage, phase ^ 1); /* passes at once in the first round */
          matmul_barrier_expect(full + 8 * stage, MATMUL_WGMMA_STAGE_BYTES);
          matmul_box_load(a_tile, &a_map, step * MATMUL_WGMMA_DEPTH, row, full + 8 * stage);
#pragma unroll
          for (int i = 0; i < 4 / CLUSTER; i++) {
            int box = rank * (4 / CLUSTER) + i;
            if (CLUSTER == 1)
              matmul_box_load(b_tile + box * MATMUL_WGMMA_BOX_BYTES, &b_map, col + 64 * box, step * MATMUL_WGMMA_DEPTH,
                              full + 8 * stage);
            else
              matmul_box_load_multicast(b_tile + box * MATMUL_WGMMA_BOX_BYTES, &b_map, col + 64 * box,
                                        step * MATMUL_WGMMA_DEPTH, full + 8 * stage, (1 << CLUSTER) - 1);
          }
          int later = step + MATMUL_WGMMA_EARLY;
          if (early_a && later < steps) matmul_box_prefetch(&a_map, later * MATMUL_WGMMA_DEPTH, row);
          if (early_b && later < steps)
#pragma unroll
            for (int i = 0; i < 4 / CLUSTER; i++)
              matmul_box_prefetch(&b_map, col + 64 * (rank * (4 / CLUSTER) + i), later * MATMUL_WGMMA_DEPTH);
          matmul_wgmma_next<STAGES>(&stage, &phase);
        }
      }
    }
    __syncwarp();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    int consumer = threadIdx.x / 128 - 1, lane = threadIdx.x % 32;
    float sum[128];
    for (int t = blockIdx.x / CLUSTER; t < rows * cols; t += clusters) {
      int last = 0;
      for (int step = 0; step < steps; step++) {
        uint32_t a_tile = ring + stage * MATMUL_WGMMA_STAGE_BYTES, b_tile = a_tile + MATMUL_WGMMA_A_BYTES;
        a_tile += consumer * 64 * 128;
        matmul_barrier_wait(full + 8 * stage, phase);
        matmul_wgmma_fence();
#pragma unroll
        for (int i = 0; i < MATMUL_WGMMA_DEPTH; i += 16) /* 16 columns of A are 32 bytes, 16 rows of B two groups */
          matmul_wgmma_256(sum, matmul_operand(a_tile + 2 * i, 1024, 0),
                           matmul_operand(b_tile + 128 * i, 1024, MATMUL_WGMMA_BOX_BYTES), step > 0 || i > 0);
        matmul_wgmma_commit();
        if (STAGES == 1)
          matmul_wgmma_wait<0>();
        else
          matmul_wgmma_wait<1>(); /* the step before has been multiplied: its stage is free */
        if (STAGES == 1) last = stage;
        if ((STAGES == 1 || step > 0) && lane < CLUSTER) matmul_barrier_arrive(empty + 8 * last, lane);
        last = stage;
        matmul_wgmma_next<STAGES>(&stage, &phase);
      }
      matmul_wgmma_wait<0>();
      if (STAGES > 1 && lane < CLUSTER) matmul_barrier_arrive(empty + 8 * last, lane);
      int row, col;
      matmul_tile_place(t, rows, cols, &row, &col);
      matmul_wgmma_write(c, sum, (row * CLUSTER + rank) * MATMUL_WGMMA_ROWS + 64 * consumer, col * MATMUL_WGMMA_COLS, m,
                         n);
    }
  }
  if (CLUSTER > 1) matmul_cluster_sync(); /* nobody leaves while others still write into its shared memory */
#endif
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* 1 if the instructions are there: a program may hold code for compute capability 9.0 without those of 9.0a. */
static __global__ void matmul_wgmma_compiled_kernel(int *compiled) {
#ifdef MATMUL_WGMMA_COMPILED
  *compiled = 1;
#else
  *compiled = 0;
#endif
}

/* Why this GPU, or this program, cannot run it; NULL if it can. */
static inline const char *matmul_wgmma_refusal(void) {
  static int known, compiled;
  int device, major, minor, *answer;
  if (cudaGetDevice(&device) != cudaSuccess) {
    cudaGetLastError();
    return "there is no GPU";
  }
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  if (major != 9 || minor != 0) return "wgmma is an instruction of compute capability 9.0 (H100, H200) and no other";
  if (!known) {
    CUDA_CHECK(cudaMalloc((void **)&answer, sizeof *answer));
    matmul_wgmma_compiled_kernel<<<1, 1>>>(answer);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(&compiled, answer, sizeof compiled, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(answer));
    known = 1;
  }
  return compiled
             ? NULL
             : "the program was compiled without wgmma: build it for 90a (nvcc -gencode=arch=compute_90a,code=sm_90a)";
}

/* How the copy engine finds its way in a matrix of bfloat16 (rows,cols): in boxes of 64 columns, swizzled, zeros
 * outside. The driver makes it; its library need not be linked, the runtime knows where it is. */
static inline CUtensorMap matmul_wgmma_map(const __nv_bfloat16 *x, int rows, int cols, int box_rows) {
  typedef CUresult Encode(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                          const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                          CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
  static Encode *encode;
  if (encode == NULL) {
    void *found = NULL;
    cudaDriverEntryPointQueryResult status;
#if CUDART_VERSION >= 12050
    CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status));
#else
    CUDA_CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &status));
#endif
    if (status != cudaDriverEntryPointSuccess || found == NULL)
      die("matmul_wgmma: this driver has no cuTensorMapEncodeTiled(): it needs one for CUDA 12");
    encode = (Encode *)found;
  }
  CUtensorMap map;
  cuuint64_t size[2] = {(cuuint64_t)cols, (cuuint64_t)rows}, pitch[1] = {(cuuint64_t)cols * sizeof *x};
  cuuint32_t box[2] = {64, (cuuint32_t)box_rows}, step[2] = {1, 1};
  CUresult status = encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, (void *)x, size, pitch, box, step,
                           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                           CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) die("matmul_wgmma: no tensor map of (%d,%d) bfloat16: error %d", rows, cols, (int)status);
  return map;
}

template <int CLUSTER, int STAGES, bool PERSISTENT>
static inline void matmul_wgmma_launch(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  const char *refusal = matmul_wgmma_refusal();
  if (refusal != NULL) die("matmul_wgmma: %s", refusal);
  if (!matmul_rows_fit(a, b, n, k) || (uintptr_t)c % 16 != 0) {
    matmul_mma(c, a, b, m, n, k);
    return;
  }
  CUtensorMap a_map = matmul_wgmma_map(a, m, k, MATMUL_WGMMA_ROWS),
              b_map = matmul_wgmma_map(b, k, n, MATMUL_WGMMA_DEPTH);
  const void *kernel = (const void *)matmul_wgmma_kernel<CLUSTER, STAGES>;
  const int bytes = STAGES * MATMUL_WGMMA_STAGE_BYTES + 1024; /* to begin at a multiple of 1024 */
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  int device, multiprocessors;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  int clusters = (m + CLUSTER * MATMUL_WGMMA_ROWS - 1) / (CLUSTER * MATMUL_WGMMA_ROWS) *
                 ((n + MATMUL_WGMMA_COLS - 1) / MATMUL_WGMMA_COLS);
  if (PERSISTENT) { /* as many rounds as it takes, and no more blocks than they need */
    int most = multiprocessors / CLUSTER, rounds = (clusters + most - 1) / most;
    clusters = (clusters + rounds - 1) / rounds;
  }
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = CLUSTER;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)(clusters * CLUSTER));
  config.blockDim = dim3(MATMUL_WGMMA_THREADS);
  config.dynamicSmemBytes = (size_t)bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  void *arguments[] = {&a_map, &b_map, &c, &m, &n, &k};
  CUDA_CHECK(cudaLaunchKernelExC(&config, kernel, arguments));
}

static inline void matmul_wgmma_one_stage(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n,
                                          int k) {
  matmul_wgmma_launch<1, 1, false>(c, a, b, m, n, k);
}

static inline void matmul_wgmma_ring(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  matmul_wgmma_launch<1, 4, false>(c, a, b, m, n, k);
}

static inline void matmul_wgmma_persistent(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n,
                                           int k) {
  matmul_wgmma_launch<1, 4, true>(c, a, b, m, n, k);
}

static inline void matmul_wgmma(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  matmul_wgmma_launch<2, 4, true>(c, a, b, m, n, k);
}
#else

static inline const char *matmul_wgmma_refusal(void) {
  return "wgmma and the copy engine are Hopper's: the emulated GPU has compute capability 8.0";
}
#define MATMUL_WGMMA_REFUSED(name)                                                                         \
  static inline void name(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) { \
    (void)c, (void)a, (void)b, (void)m, (void)n, (void)k;                                                  \
    die("%s: %s", #name, matmul_wgmma_refusal());                                                          \
  }
MATMUL_WGMMA_REFUSED(matmul_wgmma_one_stage)
MATMUL_WGMMA_REFUSED(matmul_wgmma_ring)
MATMUL_WGMMA_REFUSED(matmul_wgmma_persistent)
MATMUL_WGMMA_REFUSED(matmul_wgmma)
#endif

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_WGMMA_CUH */
