/* simt/hopper.h - instructions of compute capability 9.0 (Hopper), which CUDA C has no functions for. A program writes
 * inline PTX for them; that cannot run on a CPU, so these functions stand in for it. A header with one function for
 * each instruction uses them where SIMT_REWRITTEN is defined, as lesson 15 of the course does:
 *
 *     #ifdef SIMT_REWRITTEN
 *     #include "simt/hopper.h"
 *     using simt::mbarrier_wait;
 *     #else
 *     static __device__ void mbarrier_wait(uint32_t barrier, uint32_t parity) { asm volatile(...); }
 *     #endif
 *
 * They need SIMT_CAPABILITY=9.0. An address in shared memory has 32 bits, as in PTX. Which thread must call what, and
 * how often, is as PTX has it; what breaks its rules ends the launch and is explained.
 */
#ifndef SIMT_HOPPER_H
#define SIMT_HOPPER_H

#include "simt/core.h"

#define SIMT_CLUSTER_MOST 16 /* blocks */

#ifdef __cplusplus
extern "C" {
#endif

/* The address in shared memory of what the pointer points to, which must be there. */
uint32_t simt_shared_address(const void *pointer, const char *file, int line);
/* The pointer again; NULL for what is not in the shared memory of the own block, or not aligned to `bytes`. */
void *simt_shared_pointer(uint32_t address, size_t bytes);
/* The address, or the pointer, of the same place in block `rank` of the cluster. */
uint32_t simt_cluster_address(uint32_t address, unsigned rank, const char *file, int line);
void *simt_cluster_pointer(const void *pointer, unsigned rank, const char *file, int line);

/* Gives what the barrier's eight bytes hold now. */
uint64_t simt_mbarrier_init(uint32_t barrier, int arrivals, const char *file, int line);
void simt_mbarrier_init_fence(const char *file, int line);
/* First `bytes` more are announced, then there are so many arrivals. */
void simt_mbarrier_arrive(uint32_t barrier, int arrivals, int bytes, const char *file, int line);
int simt_mbarrier_test(uint32_t barrier, unsigned parity, const char *file, int line);
void simt_mbarrier_wait(uint32_t barrier, unsigned parity, const char *file, int line);

/* Bit r of `blocks`: also, or only, to block r of the cluster; 0: to where the address says. */
void simt_tensor_load(uint32_t to, const void *map, int rank, const int *place, uint32_t barrier, unsigned blocks,
                      const char *file, int line);
void simt_tensor_prefetch(const void *map, int rank, const char *file, int line);
void simt_bulk_load(uint32_t to, const void *from, size_t bytes, uint32_t barrier, const char *file, int line);
void simt_async_proxy_fence(const char *file, int line);
void simt_tensor_store(const void *map, int rank, const int *place, uint32_t from, const char *file, int line);
void simt_bulk_commit(const char *file, int line);
void simt_bulk_wait(unsigned pending, const char *file, int line); /* of the groups of this thread */
/* wait 0: the thread arrives only. */
void simt_named_barrier(int number, int threads, int wait, const void *words, const char *file, int line);

enum { SIMT_WGMMA_ADD = 1, SIMT_WGMMA_A_ALONG_M = 4, SIMT_WGMMA_B_ALONG_N = 8 };
typedef enum SimtFactors {
  SIMT_WGMMA_BFLOAT16,
  SIMT_WGMMA_HALF,
  SIMT_WGMMA_TF32,
  SIMT_WGMMA_E4M3,
  SIMT_WGMMA_INT8,
  SIMT_WGMMA_INT8_UINT8 /* a, b */
} SimtFactors;
/* Starts sum (64,columns) = a (64,K) b (K,columns), + sum with SIMT_WGMMA_ADD; K elements of a factor have 32 bytes.
 * The thread has columns / 2 of the sums: float, or int32_t of integers. a_registers: four, instead of the
 * descriptor a; or NULL. */
void simt_wgmma(void *sum, int columns, SimtFactors factors, uint64_t a, const uint32_t *a_registers, uint64_t b,
                int flags, const char *file, int line);
void simt_wgmma_fence(const char *file, int line);
void simt_wgmma_commit(const char *file, int line);
void simt_wgmma_wait(unsigned pending, const char *file, int line);
void simt_setmaxnreg(int registers, const char *file, int line);

void simt_cluster_arrive(const char *file, int line);
void simt_cluster_wait(const char *file, int line);
unsigned simt_cluster_rank(void); /* of the block; 0 without a cluster */
unsigned simt_cluster_blocks(void);
uint3 simt_cluster_shape(void);
unsigned simt_cluster_rank_of(const void *pointer, const char *file, int line); /* of whose shared memory it is */

#ifdef __cplusplus
}

#include "simt/warp.h"

namespace simt {

namespace detail {
/* For the inspector: what the thread did before is told to those who see the barrier; what they told, it knows. */
SIMT_INLINE void tell(uint32_t barrier) {
#ifdef SIMT_INSPECT
  uint64_t *word = (uint64_t *)simt_shared_pointer(barrier, 8);
  if (word) (void)__atomic_fetch_or(word, 0, __ATOMIC_ACQ_REL);
#else
  (void)barrier;
#endif
}
SIMT_INLINE void learn(uint32_t barrier) {
#ifdef SIMT_INSPECT
  const uint64_t *word = (const uint64_t *)simt_shared_pointer(barrier, 8);
  if (word) (void)__atomic_load_n(word, __ATOMIC_ACQUIRE);
#else
  (void)barrier;
#endif
}
}  // namespace detail

SIMT_INLINE uint32_t shared_address(const void *in_shared_memory, SIMT_SITE) {
  return simt_shared_address(in_shared_memory, SIMT_PASS_SITE);
}

/* ---- mbarriers ---- */

SIMT_INLINE void mbarrier_init(uint32_t barrier, int arrivals, SIMT_SITE) {
  uint64_t word = simt_mbarrier_init(barrier, arrivals, SIMT_PASS_SITE);
#ifdef SIMT_INSPECT
  *(uint64_t *)simt_shared_pointer(barrier, 8) = word;
#endif
  (void)word;
}

SIMT_INLINE void mbarrier_init_fence(SIMT_SITE) {
  simt_mbarrier_init_fence(SIMT_PASS_SITE);
  simt_inspect_fence(1);
}

SIMT_INLINE void mbarrier_wait(uint32_t barrier, uint32_t parity, SIMT_SITE) {
  simt_mbarrier_wait(barrier, parity, SIMT_PASS_SITE);
  detail::learn(barrier);
}

/* Whether the phase is complete; for loops that ask again. */
SIMT_INLINE bool mbarrier_try_wait(uint32_t barrier, uint32_t parity, SIMT_SITE) {
  simt_yield();
  bool complete = simt_mbarrier_test(barrier, parity, SIMT_PASS_SITE) != 0;
  if (complete) detail::learn(barrier);
  return complete;
}

SIMT_INLINE void mbarrier_arrive(uint32_t barrier, SIMT_SITE) {
  detail::tell(barrier);
  simt_mbarrier_arrive(barrier, 1, 0, SIMT_PASS_SITE);
}

/* So many bytes more in this phase; no arrival. */
SIMT_INLINE void mbarrier_expect(uint32_t barrier, int bytes, SIMT_SITE) {
  simt_mbarrier_arrive(barrier, 0, bytes, SIMT_PASS_SITE);
}

SIMT_INLINE void mbarrier_arrive_expect(uint32_t barrier, int bytes, SIMT_SITE) {
  detail::tell(barrier);
  simt_mbarrier_arrive(barrier, 1, bytes, SIMT_PASS_SITE);
}

SIMT_INLINE void mbarrier_arrive_cluster(uint32_t barrier, uint32_t rank, SIMT_SITE) {
  if (rank == simt_cluster_rank()) detail::tell(barrier);
  simt_mbarrier_arrive(simt_cluster_address(barrier, rank, SIMT_PASS_SITE), 1, 0, SIMT_PASS_SITE);
}

/* ---- clusters ---- */

/* The pointer to `address` in block `rank`. */
template <class T>
SIMT_INLINE T *cluster_pointer(uint32_t address, uint32_t rank, SIMT_SITE) {
  return (T *)simt_cluster_pointer(simt_shared_pointer(address, 1), rank, SIMT_PASS_SITE);
}
SIMT_INLINE uint32_t cluster_rank() { return simt_cluster_rank(); }
SIMT_INLINE void cluster_arrive(SIMT_SITE) { simt_cluster_arrive(SIMT_PASS_SITE); }
SIMT_INLINE void cluster_wait(SIMT_SITE) { simt_cluster_wait(SIMT_PASS_SITE); }
SIMT_INLINE void cluster_sync(SIMT_SITE) {
  simt_cluster_arrive(SIMT_PASS_SITE);
  simt_cluster_wait(SIMT_PASS_SITE);
}

/* ---- the Tensor Memory Accelerator. `map` is a CUtensorMap. ---- */

SIMT_INLINE void tma_load(uint32_t to, const void *map, int x, int y, uint32_t barrier, SIMT_SITE) {
  const int place[] = {x, y};
  simt_tensor_load(to, map, 2, place, barrier, 0, SIMT_PASS_SITE);
}

SIMT_INLINE void tma_load_multicast(uint32_t to, const void *map, int x, int y, uint32_t barrier, uint16_t blocks,
                                    SIMT_SITE) {
  const int place[] = {x, y};
  simt_tensor_load(to, map, 2, place, barrier, blocks, SIMT_PASS_SITE);
}

SIMT_INLINE void tma_load_3d(uint32_t to, const void *map, int x, int y, int z, uint32_t barrier, SIMT_SITE) {
  const int place[] = {x, y, z};
  simt_tensor_load(to, map, 3, place, barrier, 0, SIMT_PASS_SITE);
}

SIMT_INLINE void tma_load_4d(uint32_t to, const void *map, int x, int y, int z, int w, uint32_t barrier, SIMT_SITE) {
  const int place[] = {x, y, z, w};
  simt_tensor_load(to, map, 4, place, barrier, 0, SIMT_PASS_SITE);
}

SIMT_INLINE void tma_prefetch(const void *map, int x, int y, SIMT_SITE) {
  (void)x, (void)y;
  simt_tensor_prefetch(map, 2, SIMT_PASS_SITE);
}

/* `bytes` that follow each other: cp.async.bulk. */
SIMT_INLINE void bulk_load(uint32_t to, const void *from, size_t bytes, uint32_t barrier, SIMT_SITE) {
  simt_bulk_load(to, from, bytes, barrier, SIMT_PASS_SITE);
}

/* What the thread wrote to shared memory is visible to TMA and to wgmma. */
SIMT_INLINE void fence_async_proxy(SIMT_SITE) { simt_async_proxy_fence(SIMT_PASS_SITE); }
SIMT_INLINE void tma_proxy_fence(SIMT_SITE) { simt_async_proxy_fence(SIMT_PASS_SITE); }

/* Copies the box from shared memory to the tensor; what lies outside of the tensor is not written. */
SIMT_INLINE void tma_store(const void *map, int x, int y, uint32_t from, SIMT_SITE) {
  const int place[] = {x, y};
  simt_tensor_store(map, 2, place, from, SIMT_PASS_SITE);
}
SIMT_INLINE void tma_store_3d(const void *map, int x, int y, int z, uint32_t from, SIMT_SITE) {
  const int place[] = {x, y, z};
  simt_tensor_store(map, 3, place, from, SIMT_PASS_SITE);
}
SIMT_INLINE void tma_store_4d(const void *map, int x, int y, int z, int w, uint32_t from, SIMT_SITE) {
  const int place[] = {x, y, z, w};
  simt_tensor_store(map, 4, place, from, SIMT_PASS_SITE);
}
SIMT_INLINE void tma_store_commit(SIMT_SITE) { simt_bulk_commit(SIMT_PASS_SITE); }
/* Until all groups of the thread but the last PENDING have read shared memory; until they are complete. */
template <int PENDING = 0>
SIMT_INLINE void tma_store_wait_read(SIMT_SITE) {
  simt_bulk_wait(PENDING, SIMT_PASS_SITE);
}
template <int PENDING = 0>
SIMT_INLINE void tma_store_wait(SIMT_SITE) {
  simt_bulk_wait(PENDING, SIMT_PASS_SITE);
}

/* ---- what is older than compute capability 9.0, and in PTX only ---- */

namespace detail {
SIMT_INLINE void named_barrier(int number, int threads, bool wait, SIMT_SITE) {
#ifdef SIMT_INSPECT
  static thread_local uint64_t word[16];
  const uint64_t *words = word;
  if (number >= 0 && number < 16) __atomic_store_n(&word[number], 1, __ATOMIC_RELEASE);
#else
  const uint64_t *words = NULL;
#endif
  simt_named_barrier(number, threads, wait, words, SIMT_PASS_SITE);
#ifdef SIMT_INSPECT
  if (wait) (void)__atomic_load_n(&word[number], __ATOMIC_ACQUIRE);
#endif
}
}  // namespace detail

/* bar.sync: a barrier of `threads` threads of the block, one of 16 by number. bar.arrive: the thread does not wait. */
SIMT_INLINE void named_barrier_sync(int number, int threads, SIMT_SITE) {
  detail::named_barrier(number, threads, true, SIMT_PASS_SITE);
}
SIMT_INLINE void named_barrier_arrive(int number, int threads, SIMT_SITE) {
  detail::named_barrier(number, threads, false, SIMT_PASS_SITE);
}

/* stmatrix.trans: lane l has the address of row l % 8 of matrix l / 8, 16 bytes, and two neighbours of a row of each
 * matrix; the transposes are written. */
template <int MATRICES>
SIMT_INLINE void store_transposed(uint32_t row, const uint32_t (&x)[MATRICES], SIMT_SITE) {
  unsigned lane = simt_thread_rank() % SIMT_WARP_SIZE, group = lane / 4, member = lane % 4;
  for (unsigned i = 0; i < MATRICES; i++)
    for (unsigned half = 0; half < 2; half++) {
      uint32_t to = __shfl_sync(0xffffffffu, row, (int)(8 * i + 2 * member + half), SIMT_WARP_SIZE, SIMT_PASS_SITE);
      uint16_t *at = (uint16_t *)simt_shared_pointer(to + 2 * group, 2);
      if (at == NULL)
        simt_kernel_fault(cudaErrorIllegalAddress, SIMT_PASS_SITE,
                          "stmatrix: 0x%x is not an address in the shared memory of the block", to);
      *at = (uint16_t)(x[i] >> 16 * half);
    }
}
SIMT_INLINE void store_matrices_transposed(uint32_t row, uint32_t x0, uint32_t x1, uint32_t x2, uint32_t x3,
                                           SIMT_SITE) {
  const uint32_t x[] = {x0, x1, x2, x3};
  store_transposed(row, x, SIMT_PASS_SITE);
}
SIMT_INLINE void store_two_matrices_transposed(uint32_t row, uint32_t x0, uint32_t x1, SIMT_SITE) {
  const uint32_t x[] = {x0, x1};
  store_transposed(row, x, SIMT_PASS_SITE);
}

/* ---- wgmma ---- */

enum { K_MAJOR = 0, OTHER_MAJOR = 1 }; /* how a factor lies in shared memory: along K, or along M or N */

namespace detail {
template <int SUMS, class T>
SIMT_INLINE void wgmma(T (&sum)[SUMS], SimtFactors factors, uint64_t a, const uint32_t *a_registers, uint64_t b,
                       bool add, bool a_along_m, bool b_along_n, SIMT_SITE) {
  static_assert(SUMS % 4 == 0 && SUMS >= 4 && SUMS <= 128, "wgmma has 8, 16, 24 .. 256 columns: half as many sums");
  int flags =
      (add ? SIMT_WGMMA_ADD : 0) | (a_along_m ? SIMT_WGMMA_A_ALONG_M : 0) | (b_along_n ? SIMT_WGMMA_B_ALONG_N : 0);
  simt_wgmma(sum, 2 * SUMS, factors, a, a_registers, b, flags, SIMT_PASS_SITE);
}
}  // namespace detail

/* The sums of any of wgmma's widths; the factors run along K unless told otherwise. */
template <int SUMS>
SIMT_INLINE void wgmma(float (&sum)[SUMS], uint64_t a, uint64_t b, bool add, bool half = false, bool a_along_m = false,
                       bool b_along_n = false, SIMT_SITE) {
  detail::wgmma(sum, half ? SIMT_WGMMA_HALF : SIMT_WGMMA_BFLOAT16, a, NULL, b, add, a_along_m, b_along_n,
                SIMT_PASS_SITE);
}

/* The same by types, and with a in registers: four of each thread, which keep their values until the wait. */
#define SIMT_WGMMA_16_BITS(name, factors)                                                                       \
  template <int B_MAJOR, int A_MAJOR = K_MAJOR, int SUMS>                                                       \
  SIMT_INLINE void name(float(&sum)[SUMS], uint64_t a, uint64_t b, int add, SIMT_SITE) {                        \
    detail::wgmma(sum, factors, a, NULL, b, add, A_MAJOR, B_MAJOR, SIMT_PASS_SITE);                             \
  }                                                                                                             \
  template <int B_MAJOR, int SUMS>                                                                              \
  SIMT_INLINE void name##_registers(float(&sum)[SUMS], const uint32_t(&a)[4], uint64_t b, int add, SIMT_SITE) { \
    detail::wgmma(sum, factors, 0, a, b, add, false, B_MAJOR, SIMT_PASS_SITE);                                  \
  }
#define SIMT_WGMMA_K_MAJOR(name, factors, T)                                                                \
  template <int SUMS>                                                                                       \
  SIMT_INLINE void name(T(&sum)[SUMS], uint64_t a, uint64_t b, int add, SIMT_SITE) {                        \
    detail::wgmma(sum, factors, a, NULL, b, add, false, false, SIMT_PASS_SITE);                             \
  }                                                                                                         \
  template <int SUMS>                                                                                       \
  SIMT_INLINE void name##_registers(T(&sum)[SUMS], const uint32_t(&a)[4], uint64_t b, int add, SIMT_SITE) { \
    detail::wgmma(sum, factors, 0, a, b, add, false, false, SIMT_PASS_SITE);                                \
  }
SIMT_WGMMA_16_BITS(wgmma_bfloat16, SIMT_WGMMA_BFLOAT16)
SIMT_WGMMA_16_BITS(wgmma_half, SIMT_WGMMA_HALF)
SIMT_WGMMA_K_MAJOR(wgmma_tf32, SIMT_WGMMA_TF32, float)
SIMT_WGMMA_K_MAJOR(wgmma_fp8, SIMT_WGMMA_E4M3, float)
/* 8, 16, 24, 32, then multiples of 16 columns. */
SIMT_WGMMA_K_MAJOR(wgmma_int8, SIMT_WGMMA_INT8, int)
SIMT_WGMMA_K_MAJOR(wgmma_int8_uint8, SIMT_WGMMA_INT8_UINT8, int)
#undef SIMT_WGMMA_16_BITS
#undef SIMT_WGMMA_K_MAJOR

/* bfloat16, b's rows along N. */
SIMT_INLINE void wgmma_64x256x16(float (&sum)[128], uint64_t a, uint64_t b, int add, SIMT_SITE) {
  wgmma_bfloat16<OTHER_MAJOR>(sum, a, b, add, SIMT_PASS_SITE);
}

SIMT_INLINE void wgmma_fence(SIMT_SITE) { simt_wgmma_fence(SIMT_PASS_SITE); }
SIMT_INLINE void wgmma_commit(SIMT_SITE) { simt_wgmma_commit(SIMT_PASS_SITE); }
template <int PENDING>
SIMT_INLINE void wgmma_wait(SIMT_SITE) {
  static_assert(PENDING >= 0 && PENDING <= 7, "wgmma.wait_group takes 0 .. 7");
  simt_wgmma_wait(PENDING, SIMT_PASS_SITE);
}

/* ---- registers: no number of them is too small here ---- */

template <int REGISTERS>
SIMT_INLINE void setmaxnreg_decrease(SIMT_SITE) {
  static_assert(REGISTERS % 8 == 0 && REGISTERS >= 24 && REGISTERS <= 256, "a multiple of 8 from 24 to 256");
  simt_setmaxnreg(REGISTERS, SIMT_PASS_SITE);
}
template <int REGISTERS>
SIMT_INLINE void setmaxnreg_increase(SIMT_SITE) {
  setmaxnreg_decrease<REGISTERS>(SIMT_PASS_SITE);
}

}  // namespace simt

#endif /* __cplusplus */

#endif /* SIMT_HOPPER_H */
