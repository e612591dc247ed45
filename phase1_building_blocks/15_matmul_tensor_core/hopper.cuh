/* hopper.cuh - the instructions of compute capability 9.0 that CUDA C has no functions for, one function for each.
 *
 *   mbarrier_*     a barrier in shared memory that counts arrivals of threads and bytes of copies. It has phases: a
 *                  wait names the parity, 0 or 1, of the phase that must be complete
 *   tma_*          the Tensor Memory Accelerator (TMA): one thread issues the copy of a whole box of a matrix; the
 *                  hardware computes the addresses, swizzles the rows, and fills with zeros outside the matrix
 *   cluster_*      a cluster: blocks on neighbouring multiprocessors that reach each other's shared memory
 *   named_*        named_barrier_*, a barrier of some warps of the block
 *   wgmma_*        a product of a warpgroup (four warps), whose operands the tensor cores read from shared memory, one
 *                  also from registers: hopper_wgmma.cuh
 *   setmaxnreg_*   a warpgroup gives up registers, or takes those that another one has given up
 *
 * An address in shared memory is 32 bits: shared_address(). wgmma and setmaxnreg exist in code for sm_90a alone, which
 * is where HOPPER_COMPILED is defined. The PTX ISA documents each instruction under the name in its asm statement. The
 * emulated GPU, which cannot run PTX, has functions of the same names; it needs SIMT_CAPABILITY=9.0.
 */
#ifndef PHASE1_BUILDING_BLOCKS_HOPPER_CUH
#define PHASE1_BUILDING_BLOCKS_HOPPER_CUH

#include <cuda.h>
#include <stdint.h>

/* Which way the rows of a factor of wgmma run in shared memory: along K, or along M of a, N of b. */
enum { WGMMA_K_MAJOR = 0, WGMMA_M_MAJOR = 1, WGMMA_N_MAJOR = 1 };

#if defined(SIMT_REWRITTEN)
#define HOPPER_COMPILED
#include "simt/hopper.h"
using simt::cluster_sync;
using simt::mbarrier_arrive;
using simt::mbarrier_arrive_cluster;
using simt::mbarrier_arrive_expect;
using simt::mbarrier_init;
using simt::mbarrier_init_fence;
using simt::mbarrier_wait;
using simt::named_barrier_arrive;
using simt::named_barrier_sync;
using simt::setmaxnreg_decrease;
using simt::setmaxnreg_increase;
using simt::shared_address;
using simt::tma_load;
using simt::tma_load_3d;
using simt::tma_load_4d;
using simt::tma_load_multicast;
using simt::tma_prefetch;
using simt::tma_proxy_fence;
using simt::tma_store;
using simt::tma_store_3d;
using simt::tma_store_4d;
using simt::tma_store_commit;
using simt::tma_store_wait;
using simt::tma_store_wait_read;
using simt::wgmma_64x256x16;
using simt::wgmma_bfloat16;
using simt::wgmma_bfloat16_registers;
using simt::wgmma_commit;
using simt::wgmma_fence;
using simt::wgmma_fp8;
using simt::wgmma_fp8_registers;
using simt::wgmma_half;
using simt::wgmma_half_registers;
using simt::wgmma_tf32;
using simt::wgmma_tf32_registers;
using simt::wgmma_wait;
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HOPPER_COMPILED
#include "phase1_building_blocks/15_matmul_tensor_core/hopper_wgmma.cuh"

static __device__ __forceinline__ uint32_t shared_address(const void *in_shared_memory) {
  return (uint32_t)__cvta_generic_to_shared(in_shared_memory);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* mbarrier */

/* A phase is complete after so many arrivals, and when all bytes that were announced have arrived. */
static __device__ __forceinline__ void mbarrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/* Makes the initialised barriers visible to TMA and to the other blocks of the cluster. */
static __device__ __forceinline__ void mbarrier_init_fence(void) {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Waits until the phase of this parity is complete. In the first phase, waiting for parity 1 returns at once. */
static __device__ __forceinline__ void mbarrier_wait(uint32_t barrier, uint32_t parity) {
#ifdef MATMUL_WATCHDOG
  long long start = clock64();
#endif
  for (uint32_t complete = 0; !complete;) {
    asm volatile(
        "{\n"
        ".reg .pred complete;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2;\n" /* may sleep before it returns false */
        "selp.u32 %0, 1, 0, complete;\n"
        "}\n"
        : "=r"(complete)
        : "r"(barrier), "r"(parity)
        : "memory");
#ifdef MATMUL_WATCHDOG /* a wait that never ends becomes an error after a second or two */
    if (clock64() - start > 3000000000) __trap();
#endif
  }
}

/* One arrival, which announces that copies will bring so many bytes in this phase. */
static __device__ __forceinline__ void mbarrier_arrive_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/* One arrival. */
static __device__ __forceinline__ void mbarrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* One arrival at the barrier at the same place in the shared memory of block `rank` of the cluster. With the scope of
 * the cluster (arrive.release.cluster) the compiler would put a fence of the whole GPU before it, which takes some 900
 * clocks. What this thread read through wgmma needs none: it is complete after wgmma_wait(). */
static __device__ __forceinline__ void mbarrier_arrive_cluster(uint32_t barrier, uint32_t rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}\n" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

/* As __syncthreads(), for all blocks of the cluster. */
static __device__ __forceinline__ void cluster_sync(void) {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* TMA. A tensor map, made on the host, describes the matrix, the size of a box and the swizzle. */

/* Copies the box at column x, row y of the matrix to `to` in shared memory; its bytes count at `barrier`. */
static __device__ __forceinline__ void tma_load(uint32_t to, const CUtensorMap *map, int x, int y, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          to),
      "l"(map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

/* The same of a tensor of three or four dimensions. */
static __device__ __forceinline__ void tma_load_3d(uint32_t to, const CUtensorMap *map, int x, int y, int z,
                                                   uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
      "[%5];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}
static __device__ __forceinline__ void tma_load_4d(uint32_t to, const CUtensorMap *map, int x, int y, int z, int w,
                                                   uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
      : "memory");
}

/* As tma_load(), to each block of the cluster whose bit is set in `blocks`: to the same place in its shared memory, and
 * counted at its barrier. The L2 cache is read once. */
static __device__ __forceinline__ void tma_load_multicast(uint32_t to, const CUtensorMap *map, int x, int y,
                                                          uint32_t barrier, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, "
      "%3}], [%4], %5;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(blocks)
      : "memory");
}

/* Copies the box from memory to the L2 cache only. Nothing waits for it. */
static __device__ __forceinline__ void tma_prefetch(const CUtensorMap *map, int x, int y) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(map), "r"(x), "r"(y) : "memory");
}

/* What this thread wrote to shared memory is visible to tma_store() and to wgmma. A barrier of the threads that wrote
 * comes next. */
static __device__ __forceinline__ void tma_proxy_fence(void) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Copies the box at `from` in shared memory to column x, row y of the matrix; what lies outside is not written. */
static __device__ __forceinline__ void tma_store(const CUtensorMap *map, int x, int y, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x), "r"(y),
               "r"(from)
               : "memory");
}
static __device__ __forceinline__ void tma_store_3d(const CUtensorMap *map, int x, int y, int z, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map), "r"(x),
               "r"(y), "r"(z), "r"(from)
               : "memory");
}
static __device__ __forceinline__ void tma_store_4d(const CUtensorMap *map, int x, int y, int z, int w, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(map), "r"(x),
               "r"(y), "r"(z), "r"(w), "r"(from)
               : "memory");
}

/* This thread's stores since the last commit become a group. */
static __device__ __forceinline__ void tma_store_commit(void) {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Waits until at most the PENDING latest groups of this thread still read shared memory ... */
template <int PENDING = 0>
static __device__ __forceinline__ void tma_store_wait_read(void) {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

/* ... or have not written all. */
template <int PENDING = 0>
static __device__ __forceinline__ void tma_store_wait(void) {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Barriers by number, 1 to 15, for some of a block's warps: __syncthreads() is barrier 0. */

/* Waits until `threads` threads, a multiple of 32, have come or arrived; this thread is one of them. */
static __device__ __forceinline__ void named_barrier_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/* Arrives, and does not wait. */
static __device__ __forceinline__ void named_barrier_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* wgmma */

/* Starts sum (64,256) = a (64,16) b (16,256) + `add` sum: bfloat16 factors, float32 sums. a's rows run along K; b's
 * rows run along N. A thread has 128 of the sums. */
static __device__ __forceinline__ void wgmma_64x256x16(float (&sum)[128], uint64_t a, uint64_t b, int add) {
  wgmma_bfloat16<WGMMA_N_MAJOR>(sum, a, b, add);
}

/* Before the first product: what this thread did to the registers of `sum` and to shared memory is visible to it. The
 * tensor cores own the registers of `sum` from here to the wait. */
static __device__ __forceinline__ void wgmma_fence(void) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

/* The products since the last commit become a group. */
static __device__ __forceinline__ void wgmma_commit(void) {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most the PENDING latest groups are not complete. */
template <int PENDING>
static __device__ __forceinline__ void wgmma_wait(void) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* setmaxnreg: the registers per thread of this warpgroup, a multiple of 8 from 24 to 256, fewer or more than it had. */

template <int REGISTERS>
static __device__ __forceinline__ void setmaxnreg_decrease(void) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

/* Waits until other warpgroups of the block have given up enough. */
template <int REGISTERS>
static __device__ __forceinline__ void setmaxnreg_increase(void) {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

#endif /* SIMT_REWRITTEN, __CUDA_ARCH_FEAT_SM90_ALL */

/* ---------------------------------------------------------------------------------------------------------------- */
/* Descriptors for wgmma */

#ifdef HOPPER_COMPILED

/* The matrix descriptor of an operand in shared memory with the 128-byte swizzle: rows of 128 bytes, in which the
 * 16-byte chunk c of row r is stored at position c ^ r % 8. Eight rows are a group of 1024 bytes. `group_bytes` is the
 * distance from one group to the next, `column_bytes` from 64 columns of the operand to the next 64. Its fields, from
 * bit 0, 16, 32 and 62 on:
 *
 *     address / 16 (14 bits)    column_bytes / 16 (14 bits)    group_bytes / 16 (14 bits)    swizzle: 1 is 128 bytes */
static __device__ __forceinline__ uint64_t wgmma_descriptor(uint32_t address, int group_bytes, int column_bytes) {
  const uint64_t swizzle_128 = 1;
  uint32_t within = address & 0x3FFFF; /* in a cluster the bits above tell the block whose shared memory it is */
  uint64_t descriptor = 0;
  // >>> exercise wgmma_descriptor: put the four fields together
  // hint: each field is a number of 16-byte chunks, shifted to its first bit: x >> 4 is x / 16
  // hint: (uint64_t)(group_bytes >> 4) << 32: first to 64 bits, then the shift; | joins the fields
  // hint: the address is `within`, at bit 0; then column_bytes at bit 16, group_bytes at 32, swizzle_128 << 62
  descriptor = (uint64_t)(within >> 4) | (uint64_t)(column_bytes >> 4) << 16 | (uint64_t)(group_bytes >> 4) << 32 |
               swizzle_128 << 62;
  // <<< exercise
  return descriptor;
}

#endif

#endif /* PHASE1_BUILDING_BLOCKS_HOPPER_CUH */
