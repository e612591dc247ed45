/* multi_tensor.cuh - an optimizer's step on all tensors of a network in one launch.
 *
 * The tensors lie anywhere, and most of them are small: of the 161 of a ResNet-50 two thirds hold less than 3000
 * floats. A launch for each would take longer than the work. So the kernel gets a table of all of them as its argument.
 * Each tensor is cut into chunks of 4096 elements, one per block; a block finds its tensor by the first block of each.
 *
 *   tensor_table_kernel          one float per access
 *   tensor_table_float4_kernel   16 bytes per access; the ends of each tensor, which need not be aligned, one by one
 *
 * The argument of a kernel may have 32,764 bytes (4 KB before CUDA 12.1, where several launches share the tensors, as
 * in PyTorch). What one parameter does is the optimizer's rule: see elementwise.cuh.
 */
#ifndef PHASE4_TRAINING_MULTI_TENSOR_CUH
#define PHASE4_TRAINING_MULTI_TENSOR_CUH

#include "common/nn/optimizers/elementwise.cuh"

enum { TENSOR_CHUNK = 4096, TENSOR_BLOCK = 256, TENSOR_LINE = 32 }; /* floats in 128 bytes, a line of the caches */

#ifdef SIMT_REWRITTEN
enum { TENSORS_MOST = 48 }; /* an emulated thread has a copy of its kernel's arguments: it takes long to copy */
#else
enum { TENSORS_MOST = 192 };
#endif

template <int SLOTS>
struct TensorTable {
  int count, decayed;                          /* tensors; the first `decayed` of them have weight decay */
  int length[TENSORS_MOST];                    /* floats */
  int first[TENSORS_MOST + 1];                 /* the first block of each; [count]: how many blocks there are */
  OptimizerArrays<SLOTS> tensor[TENSORS_MOST]; /* where its arrays begin */
};

/* ---------------------------------------------------------------------------------------------------------------- */
/* The tensors of an example */

/* n floats are cut into tensors as those of a convolutional network: a third are large weights of about the same size,
 * the others vectors of 257 floats at most. The weights come first, and are decayed. */
static inline int tensors_weights(int tensors) { return (tensors + 2) / 3; }

/* Where tensor i begins, 0 to `tensors`; tensor_begin(weights) is the end of the weights. */
static inline size_t tensor_begin(size_t n, int tensors, int i) {
  const int weights = tensors_weights(tensors);
  const size_t share = n / (4 * (size_t)tensors), vector = share < 257 ? share : 257;
  const size_t all = n - vector * (size_t)(tensors - weights);
  return i <= weights ? all * (size_t)i / (size_t)weights : all + vector * (size_t)(i - weights);
}

/* How many floats lie between the tensor and the line in which it begins: chunks begin at lines, so that each access of
 * a warp is of whole ones. 0 where its arrays are aligned in different ways. */
template <int SLOTS>
static __host__ __device__ __forceinline__ int tensor_before(const OptimizerArrays<SLOTS> &a) {
  return optimizer_misaligned(a) < 0 ? 0 : (int)((uintptr_t)a.w / sizeof(float) % TENSOR_LINE);
}

template <int SLOTS>
static inline void tensor_table_fill(TensorTable<SLOTS> *t, OptimizerArrays<SLOTS> a, size_t n, int tensors) {
  t->count = tensors;
  t->decayed = tensors_weights(tensors);
  t->first[0] = 0;
  for (int i = 0; i < tensors; i++) {
    const size_t begin = tensor_begin(n, tensors, i), length = tensor_begin(n, tensors, i + 1) - begin;
    t->tensor[i] = optimizer_arrays_from(a, (ptrdiff_t)begin);
    t->length[i] = (int)length;
    const size_t floats = length == 0 ? 0 : length + (size_t)tensor_before(t->tensor[i]);
    t->first[i + 1] = t->first[i] + (int)((floats + TENSOR_CHUNK - 1) / TENSOR_CHUNK);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

/* The tensor to which a block belongs. first (count + 1): the first block of each tensor, not falling; that of a tensor
 * without elements is the next one's. */
static __device__ __forceinline__ int tensor_of_block(const int *first, int count, int block) {
  int low = 0, high = count;
  // >>> exercise tensor_of_block: low becomes the last tensor whose first block is not after `block`
  // hint: halve the range: keep first[low] <= block < first[high], and stop when high is low + 1
  // hint: look at the middle, (low + high) / 2: if its first block is not after `block`, it becomes low, else high
  // hint: while (high - low > 1) { int middle = (low + high) / 2; if (first[middle] <= block) low = middle; else ...
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (first[middle] <= block)
      low = middle;
    else
      high = middle;
  }
  // <<< exercise
  return low;
}

template <typename Rule, int SLOTS>
static __global__ void tensor_table_kernel(const __grid_constant__ TensorTable<SLOTS> t, Rule rule, StepValues step) {
  const int i = tensor_of_block(t.first, t.count, (int)blockIdx.x), length = t.length[i];
  const float decay = i < t.decayed ? rule.weight_decay : 0;
  const int begin = ((int)blockIdx.x - t.first[i]) * TENSOR_CHUNK;
  const int end = begin + TENSOR_CHUNK < length ? begin + TENSOR_CHUNK : length;
  for (int e = begin + (int)threadIdx.x; e < end; e += TENSOR_BLOCK)
    optimizer_single(rule, step, t.tensor[i], (size_t)e, decay);
}

/* Element e of the tensor is at place e + before, counted from the beginning of a line: four places from a multiple of
 * 4 on are one aligned access, where all of them belong to the tensor. */
template <typename Rule, int SLOTS>
static __global__ void tensor_table_float4_kernel(const __grid_constant__ TensorTable<SLOTS> t, Rule rule,
                                                  StepValues step) {
  const int i = tensor_of_block(t.first, t.count, (int)blockIdx.x), aligned = optimizer_misaligned(t.tensor[i]) >= 0;
  const int before = tensor_before(t.tensor[i]), after = before + t.length[i];
  const OptimizerArrays<SLOTS> a = optimizer_arrays_from(t.tensor[i], -(ptrdiff_t)before);
  const size_t decayed = i < t.decayed ? SIZE_MAX : 0;
  const float decay = i < t.decayed ? rule.weight_decay : 0;
  const int begin = ((int)blockIdx.x - t.first[i]) * TENSOR_CHUNK;
  const int end = begin + TENSOR_CHUNK < after ? begin + TENSOR_CHUNK : after;
  for (int place = begin + 4 * (int)threadIdx.x; place < end; place += 4 * TENSOR_BLOCK) {
    // >>> exercise tensor_edges: elements place to place + 3: at once where the tensor has all four, else those it has
    // hint: the tensor's places are before to after - 1; where aligned is 0 the arrays do not fit together
    // hint: optimizer_quad(rule, step, a, place / 4, decayed) for a whole four, else optimizer_single() for each place
    // hint: if (aligned && place >= before && place + 4 <= after) ... else for (int p = place; p < place + 4; p++) ...
    if (aligned && place >= before && place + 4 <= after) {
      optimizer_quad(rule, step, a, (size_t)place / 4, decayed);
    } else {
      for (int p = place; p < place + 4; p++)
        if (p >= before && p < after) optimizer_single(rule, step, a, (size_t)p, decay);
    }
    // <<< exercise
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers: a (n) cut into tensors */

template <typename Rule, int SLOTS>
static inline void tensor_table_step(OptimizerArrays<SLOTS> a, int tensors, size_t n, Rule rule, StepValues step) {
  TensorTable<SLOTS> t;
  tensor_table_fill(&t, a, n, tensors);
  tensor_table_kernel<<<(unsigned)t.first[tensors], TENSOR_BLOCK>>>(t, rule, step);
  CUDA_CHECK_LAUNCH();
}

template <typename Rule, int SLOTS>
static inline void tensor_table_float4_step(OptimizerArrays<SLOTS> a, int tensors, size_t n, Rule rule,
                                            StepValues step) {
  TensorTable<SLOTS> t;
  tensor_table_fill(&t, a, n, tensors);
  tensor_table_float4_kernel<<<(unsigned)t.first[tensors], TENSOR_BLOCK>>>(t, rule, step);
  CUDA_CHECK_LAUNCH();
}

/* The tensors lie one behind the other, in the order of the weight decay: then there is but one. */
template <typename Rule, int SLOTS>
static inline void tensors_flat_step(OptimizerArrays<SLOTS> a, int tensors, size_t n, Rule rule, StepValues step) {
  optimizer_flat_gpu(a, n, tensor_begin(n, tensors, tensors_weights(tensors)), rule, step, NULL);
}

#endif /* PHASE4_TRAINING_MULTI_TENSOR_CUH */
