/* matmul_tuned.cuh - C (M,N) = A (M,K) B (K,N) as fast as plain CUDA C makes it. Row-major, float32 throughout, sizes
 * at least 1. The reference is matmul_cpu() of matmul.cuh; the versions before it are in matmul_vectorised.cuh, the
 * kernels are in matmul_tuned_kernel.cuh, matmul_sliced.cuh and matmul_skinny.cuh. Here is which of them serves which
 * shape, and the tile sizes: each of them is compiled wherever this is included.
 *
 * TFLOP/s on an H200, N = 4096: 51.5; cublasSgemm 51.2 (tools/peers/sgemm_bench.cu).
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_TUNED_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_TUNED_CUH

#include "phase1_building_blocks/06_matmul_tuned/matmul_skinny.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_sliced.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_tuned_kernel.cuh"

typedef void MatmulLauncher(float *c, const float *a, const float *b, int m, int n, int k);

/* The tile sizes that a sweep tries: BM x BN x BK, TM x TN. */
static const struct MatmulConfiguration {
  const char *name;
  MatmulLauncher *launch;
} matmul_tuned_configurations[] = {
    {"128x256x8, 16x8", matmul_tuned_launch<128, 256, 8, 64, 64, 16, 8, 1>},
    {"256x128x8, 16x8", matmul_tuned_launch<256, 128, 8, 64, 64, 16, 8, 1>},
    {"128x128x8, 16x8", matmul_tuned_launch<128, 128, 8, 64, 64, 16, 8, 2>},
    {"64x128x8, 16x8", matmul_tuned_launch<64, 128, 8, 64, 64, 16, 8, 4>},
    {"64x64x8, 8x8", matmul_tuned_launch<64, 64, 8, 32, 64, 8, 8, 4>},
    {"32x32x8, 8x4", matmul_tuned_launch<32, 32, 8, 32, 32, 8, 4, 16>},
};

/* A large tile needs fewer loads per product; small tiles give every multiprocessor work where C is small. */
static inline void matmul_tuned_tiled(float *c, const float *a, const float *b, int m, int n, int k) {
  long long elements = (long long)m * n;
  if (elements < 400 * 400)
    matmul_tuned_launch<32, 32, 8, 32, 32, 8, 4, 16>(c, a, b, m, n, k);
  else if (elements < 1000 * 1000)
    matmul_tuned_launch<64, 64, 8, 32, 64, 8, 8, 4>(c, a, b, m, n, k);
  else
    matmul_tuned_launch<128, 128, 8, 64, 64, 16, 8, 2>(c, a, b, m, n, k);
}

/* The same; for few rows and a large B the kernels for those. (A block of matmul_skinny goes through all of K, which
 * should not be long if there are few blocks.) */
static inline void matmul_tuned(float *c, const float *a, const float *b, int m, int n, int k) {
  if (m <= MATMUL_SKINNY_ROWS && (n >= 2048 || k <= 4096))
    matmul_skinny(c, a, b, m, n, k);
  else if (m <= MATMUL_SLICED_ROWS && (long long)n * k >= 2048 * 2048)
    matmul_sliced(c, a, b, m, n, k);
  else
    matmul_tuned_tiled(c, a, b, m, n, k);
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_TUNED_CUH */
