/* mlp_one_kernel_mail.cuh - the numbers that the blocks of mlp_one_kernel.cuh send each other: how one is sent and
 * received, and where it lies in global memory. */
#ifndef PHASE2_MLP_MLP_ONE_KERNEL_MAIL_CUH
#define PHASE2_MLP_MLP_ONE_KERNEL_MAIL_CUH

#include <stdint.h>
#include <cuda/atomic>

/* Between kernels, or on both sides of a barrier, it is a float. Without a barrier it is a float and the number of its
 * step, in 8 bytes that are written and read at once: a reader that sees the right step has the right float. */
typedef unsigned long long MlpWord;
typedef cuda::atomic_ref<MlpWord, cuda::thread_scope_device> MlpWordRef;

static __device__ __forceinline__ void mlp_send(float *to, float value, uint32_t step) {
  (void)step;
  *to = value;
}

static __device__ __forceinline__ void mlp_send(MlpWord *to, float value, uint32_t step) {
  MlpWordRef(*to).store((MlpWord)step << 32 | __float_as_uint(value), cuda::memory_order_relaxed);
}

/* value[i] = *from[i], where from[i] is not NULL. From the L2 cache: L1 may hold the value of an earlier step. */
template <int N>
static __device__ __forceinline__ void mlp_receive(float *value, float *const *from, uint32_t step) {
  (void)step;
#pragma unroll
  for (int i = 0; i < N; i++)
    if (from[i] != NULL) value[i] = __ldcg(from[i]);
}

/* All loads are issued before the first is tested: their latencies overlap. */
template <int N>
static __device__ __forceinline__ void mlp_receive(float *value, MlpWord *const *from, uint32_t step) {
  MlpWord word[N] = {};
  bool all;
  do {
    all = true;
#pragma unroll
    for (int i = 0; i < N; i++)
      if (from[i] != NULL) word[i] = MlpWordRef(*from[i]).load(cuda::memory_order_relaxed);
#pragma unroll
    for (int i = 0; i < N; i++)
      if (from[i] != NULL && (uint32_t)(word[i] >> 32) != step) all = false;
  } while (!all);
#pragma unroll
  for (int i = 0; i < N; i++)
    if (from[i] != NULL) value[i] = __uint_as_float((uint32_t)word[i]);
}

/* Where the numbers lie. R slices of the inputs, H hidden units, C classes. */
template <typename Word>
struct MlpMail {
  Word *shares;  /* (B,R,H)  the slices' shares of the hidden units' sums, the first one with the bias */
  Word *units;   /* (B,H,2)  a hidden unit, and the gradient with respect to its sum ("delta") */
  Word *dlogits; /* (B,C) */
  Word *w2, *b2; /* (C,H), (C): this step's */
};

#endif /* PHASE2_MLP_MLP_ONE_KERNEL_MAIL_CUH */
