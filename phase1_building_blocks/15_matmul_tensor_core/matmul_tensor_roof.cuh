/* matmul_tensor_roof.cuh - how fast the tensor cores of this GPU multiply bfloat16 when they never wait for data: the
 * roof of lesson 15.
 *
 * One block per multiprocessor multiplies the same tiles over and over. Their elements are random, because simple
 * numbers draw less power, so that the clock would be higher. On Hopper two warpgroups multiply from shared memory
 * (wgmma), on other GPUs eight warps from registers (mma.sync). */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_TENSOR_ROOF_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_TENSOR_ROOF_CUH

#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wgmma.cuh"

enum { MATMUL_ROOF_THREADS = 256, MATMUL_ROOF_STEPS = 1024 };

/* Two bfloat16 from -2 to 2: any sign and fraction, magnitudes from 2^-7 on. */
static __device__ __forceinline__ uint32_t matmul_roof_pair(uint32_t i) {
  uint32_t bits = (i + 1) * 2654435761u;
  bits ^= bits >> 15;
  bits *= 2246822519u;
  bits ^= bits >> 13;
  return (bits & 0x83FF83FF) | 0x3C003C00;
}

/* Each warp computes 4 x 8 products of 16 x 8 x 16, MATMUL_ROOF_STEPS times. */
static __global__ void __launch_bounds__(MATMUL_ROOF_THREADS) matmul_roof_mma_kernel(float *out) {
  float sum[4][8][4] = {}, total = 0;
  uint32_t left[4][4], right[8][2];
#pragma unroll
  for (int r = 0; r < 4; r++)
    for (int i = 0; i < 4; i++) left[r][i] = matmul_roof_pair(threadIdx.x * 16 + 4 * r + i);
#pragma unroll
  for (int s = 0; s < 8; s++)
    for (int i = 0; i < 2; i++) right[s][i] = matmul_roof_pair(threadIdx.x * 16 + 2 * s + i + 65536);
#pragma unroll 1
  for (int step = 0; step < MATMUL_ROOF_STEPS; step++)
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
      for (int s = 0; s < 8; s++) mma_16x8x16(sum[r][s], left[r], right[s][0], right[s][1]);
#pragma unroll
  for (int r = 0; r < 4; r++)
#pragma unroll
    for (int s = 0; s < 8; s++) total += sum[r][s][0] + sum[r][s][1] + sum[r][s][2] + sum[r][s][3];
  out[blockIdx.x * MATMUL_ROOF_THREADS + threadIdx.x] = total;
}

#ifndef SIMT_REWRITTEN
/* Each warpgroup computes products of 64 x 256 x 64, MATMUL_ROOF_STEPS times. */
static __global__ void __launch_bounds__(MATMUL_ROOF_THREADS, 1) matmul_roof_wgmma_kernel(float *out) {
#ifdef HOPPER_COMPILED
  extern __shared__ unsigned char matmul_roof_shared[];
  uint32_t tile = ((uint32_t)__cvta_generic_to_shared(matmul_roof_shared) + 1023) & ~1023u;
  for (int i = threadIdx.x; i < MATMUL_WGMMA_STAGE_BYTES / 4; i += MATMUL_ROOF_THREADS)
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(tile + 4 * i), "r"(matmul_roof_pair(i)) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); /* makes the stores visible to the tensor cores */
  __syncthreads();
  uint32_t a_tile = tile + threadIdx.x / 128 * 64 * 128, b_tile = tile + MATMUL_WGMMA_A_BYTES;
  float sum[128] = {}, total = 0;
#pragma unroll 1
  for (int step = 0; step < MATMUL_ROOF_STEPS; step++) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < MATMUL_WGMMA_DEPTH; i += 16)
      wgmma_64x256x16(sum, wgmma_descriptor(a_tile + 2 * i, 1024, 0),
                      wgmma_descriptor(b_tile + 128 * i, 1024, MATMUL_WGMMA_BOX_BYTES), 1);
    wgmma_commit();
    wgmma_wait<1>();
  }
  wgmma_wait<0>();
#pragma unroll
  for (int i = 0; i < 128; i++) total += sum[i];
  out[blockIdx.x * MATMUL_ROOF_THREADS + threadIdx.x] = total;
#endif
}
#endif

/* Launches the kernel for this GPU, and returns how many floating-point operations it does. */
static inline double matmul_tensor_roof(void) {
  static float *out;
  static int blocks;
  if (out == NULL) {
    int device;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, device));
    CUDA_CHECK(cudaMalloc((void **)&out, (size_t)blocks * MATMUL_ROOF_THREADS * sizeof *out));
  }
#ifndef SIMT_REWRITTEN
  if (matmul_wgmma_refusal() == NULL) {
    const int bytes = MATMUL_WGMMA_STAGE_BYTES + 1024;
    CUDA_CHECK(cudaFuncSetAttribute((const void *)matmul_roof_wgmma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    bytes));
    matmul_roof_wgmma_kernel<<<(unsigned)blocks, MATMUL_ROOF_THREADS, bytes>>>(out);
    CUDA_CHECK_LAUNCH();
    return 2.0 * blocks * MATMUL_ROOF_STEPS * MATMUL_WGMMA_ROWS * MATMUL_WGMMA_COLS * MATMUL_WGMMA_DEPTH;
  }
#endif
  matmul_roof_mma_kernel<<<(unsigned)blocks, MATMUL_ROOF_THREADS>>>(out);
  CUDA_CHECK_LAUNCH();
  return 2.0 * blocks * MATMUL_ROOF_STEPS * (MATMUL_ROOF_THREADS / 32) * (4 * 16) * (8 * 8) * 16;
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_TENSOR_ROOF_CUH */
