/* hopper.cuh - the instructions of compute capability 9.0 that CUDA C has no functions for, one function for each.
 *
 *   mbarrier_*     a barrier in shared memory that counts arrivals of threads and bytes of copies. It has phases: a
 *                  wait names the parity, 0 or 1, of the phase that must be complete
 *   tma_*          the Tensor Memory Accelerator (TMA): one thread issues the copy of a whole box of a matrix; the
 *                  hardware computes the addresses, swizzles the rows, and fills with zeros outside the matrix
 *   cluster_*      a cluster: blocks on neighbouring multiprocessors that reach each other's shared memory
 *   wgmma_*        a product of a warpgroup (four warps) whose operands the tensor cores read from shared memory
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

#if defined(SIMT_REWRITTEN)
#define HOPPER_COMPILED
#include "simt/hopper.h"
using simt::cluster_sync;
using simt::mbarrier_arrive_cluster;
using simt::mbarrier_arrive_expect;
using simt::mbarrier_init;
using simt::mbarrier_init_fence;
using simt::mbarrier_wait;
using simt::setmaxnreg_decrease;
using simt::setmaxnreg_increase;
using simt::shared_address;
using simt::tma_load;
using simt::tma_load_multicast;
using simt::tma_prefetch;
using simt::wgmma_64x256x16;
using simt::wgmma_commit;
using simt::wgmma_fence;
using simt::wgmma_wait;
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HOPPER_COMPILED

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

/* The same to each block of the cluster whose bit is set in `blocks`: to the same place in its shared memory, and
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

/* ---------------------------------------------------------------------------------------------------------------- */
/* wgmma */

/* Starts sum (64,256) = a (64,16) b (16,256) + `add` sum: bfloat16 factors, float32 sums. a's rows run along K; b's
 * rows run along N, so b is read transposed, which the last operand, 1, says. A thread has 128 of the sums. */
static __device__ __forceinline__ void wgmma_64x256x16(float (&sum)[128], uint64_t a, uint64_t b, int add) {
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
