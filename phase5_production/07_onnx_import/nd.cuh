/* nd.cuh - arrays of any rank and type: what the generic operations of an imported model share.
 *
 * An array is (batch, shape), the last index fastest. A kernel has one thread per output element. From the number i of
 * the element it computes the index along each axis, and from the index the place of what it reads:
 *
 *     i = (..(i0 * d1 + i1) * d2 + i2)..      place = offset + i0 s0 + i1 s1 + i2 s2 ...
 *
 * s are strides. A stride of 0 repeats an element: that is broadcasting. A negative one runs backwards. Transposing is
 * an exchange of strides. The size of the first axis is never needed, so it may be the batch. nd_collapse() joins axes
 * that lie behind each other everywhere: a sum of two arrays of the same shape has one axis, whatever the rank.
 *
 * The functions of one element, nd_one(), are the same for both devices: a loop calls them on the CPU, a kernel on the
 * GPU. Numbers are computed as float, double, int64 or uint64; they are converted where they are loaded and stored. So
 * one kernel serves 13 types, and compiles in seconds. Where all are float32 the switch is not compiled in.
 */
#ifndef PHASE5_PRODUCTION_ND_CUH
#define PHASE5_PRODUCTION_ND_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>

#include "common/nn/graph.h"

enum { ND_RANK = 8, ND_BLOCK = 256 };

/* As what an operation computes. */
typedef enum NdCompute { ND_FLOAT, ND_DOUBLE, ND_INT, ND_UINT } NdCompute;

static inline NdCompute nd_compute(DType type) {
  if (type == DTYPE_DOUBLE) return ND_DOUBLE;
  if (type == DTYPE_UINT64) return ND_UINT;
  return type == DTYPE_FLOAT32 || dtype_is_half(type) ? ND_FLOAT : ND_INT;
}

/* --------------------------------------------------------------------------------------------- load, store, convert */

template <typename T>
static __host__ __device__ inline T nd_load(const void *from, DType type, size_t i) {
  switch (type) {
    case DTYPE_FLOAT32:
      return (T)((const float *)from)[i];
    case DTYPE_BF16:
      return (T)__bfloat162float(((const __nv_bfloat16 *)from)[i]);
    case DTYPE_FP16:
      return (T)__half2float(((const __half *)from)[i]);
    case DTYPE_DOUBLE:
      return (T)((const double *)from)[i];
    case DTYPE_BOOL:
      return (T)(((const unsigned char *)from)[i] != 0);
    case DTYPE_INT8:
      return (T)((const int8_t *)from)[i];
    case DTYPE_UINT8:
      return (T)((const uint8_t *)from)[i];
    case DTYPE_INT16:
      return (T)((const int16_t *)from)[i];
    case DTYPE_UINT16:
      return (T)((const uint16_t *)from)[i];
    case DTYPE_INT32:
      return (T)((const int32_t *)from)[i];
    case DTYPE_UINT32:
      return (T)((const uint32_t *)from)[i];
    case DTYPE_INT64:
      return (T)((const int64_t *)from)[i];
    default:
      return (T)((const uint64_t *)from)[i];
  }
}

template <typename T>
static __host__ __device__ inline void nd_store(void *to, DType type, size_t i, T x) {
  switch (type) {
    case DTYPE_FLOAT32:
      ((float *)to)[i] = (float)x;
      break;
    case DTYPE_BF16:
      ((__nv_bfloat16 *)to)[i] = __float2bfloat16((float)x);
      break;
    case DTYPE_FP16:
      ((__half *)to)[i] = __float2half((float)x);
      break;
    case DTYPE_DOUBLE:
      ((double *)to)[i] = (double)x;
      break;
    case DTYPE_BOOL:
      ((unsigned char *)to)[i] = x != 0;
      break;
    case DTYPE_INT8:
      ((int8_t *)to)[i] = (int8_t)x;
      break;
    case DTYPE_UINT8:
      ((uint8_t *)to)[i] = (uint8_t)x;
      break;
    case DTYPE_INT16:
      ((int16_t *)to)[i] = (int16_t)x;
      break;
    case DTYPE_UINT16:
      ((uint16_t *)to)[i] = (uint16_t)x;
      break;
    case DTYPE_INT32:
      ((int32_t *)to)[i] = (int32_t)x;
      break;
    case DTYPE_UINT32:
      ((uint32_t *)to)[i] = (uint32_t)x;
      break;
    case DTYPE_INT64:
      ((int64_t *)to)[i] = (int64_t)x;
      break;
    default:
      ((uint64_t *)to)[i] = (uint64_t)x;
      break;
  }
}

/* F32: it is known that the numbers are float32. */
template <bool F32, typename T>
static __host__ __device__ inline T nd_get(const void *from, DType type, size_t i) {
  return F32 ? (T)((const float *)from)[i] : nd_load<T>(from, type, i);
}
template <bool F32, typename T>
static __host__ __device__ inline void nd_set(void *to, DType type, size_t i, T x) {
  if (F32)
    ((float *)to)[i] = (float)x;
  else
    nd_store<T>(to, type, i, x);
}

/* Moves one number of 1, 2, 4 or 8 bytes. */
static __host__ __device__ inline void nd_move(void *to, size_t i, const void *from, size_t j, int bytes) {
  if (bytes == 4)
    ((uint32_t *)to)[i] = ((const uint32_t *)from)[j];
  else if (bytes == 8)
    ((uint64_t *)to)[i] = ((const uint64_t *)from)[j];
  else if (bytes == 2)
    ((uint16_t *)to)[i] = ((const uint16_t *)from)[j];
  else
    ((uint8_t *)to)[i] = ((const uint8_t *)from)[j];
}

/* ---------------------------------------------------------------------------------------------------------- indices */

typedef struct NdAxes {
  int rank;
  unsigned dim[ND_RANK]; /* that of the first is not looked at */
} NdAxes;

typedef struct NdStrides {
  long long offset, step[ND_RANK];
} NdStrides;

/* The remainder of *i by d; *i becomes the quotient. Most arrays have less than 2^32 elements, and a division of 32
 * bits takes a fifth of the time of one of 64. */
static __host__ __device__ inline unsigned nd_split(size_t *i, unsigned d) {
  unsigned remainder;
  if (*i >> 32) {
    remainder = (unsigned)(*i % d);
    *i /= d;
  } else {
    const unsigned short_i = (unsigned)*i, quotient = short_i / d;
    remainder = short_i - quotient * d;
    *i = quotient;
  }
  return remainder;
}

/* Where element i of `axes` is in an array of these strides. */
static __host__ __device__ inline long long nd_place(const NdAxes *axes, const NdStrides *strides, size_t i) {
  long long place = strides->offset;
  // >>> exercise nd_place: add to `place` the index along each axis of `axes` times the step of `strides` for this axis
  // hint: nd_split(&i, d) gives the index along an axis of d elements and leaves in i the number of the rest
  // hint: the last axis runs fastest, so it comes off first; what is left in i is the index along the first axis
  // hint: for (int k = axes->rank - 1; k > 0; k--) place += nd_split(&i, axes->dim[k]) * strides->step[k]; then axis 0
  for (int k = axes->rank - 1; k > 0; k--) place += nd_split(&i, axes->dim[k]) * strides->step[k];
  if (axes->rank > 0) place += (long long)i * strides->step[0];
  // <<< exercise
  return place;
}

/* The same for two arrays. */
static __host__ __device__ inline void nd_places(const NdAxes *axes, const NdStrides *a, const NdStrides *b, size_t i,
                                                 long long *place_a, long long *place_b) {
  long long pa = a->offset, pb = b->offset;
  // >>> hidden nd_place
  for (int k = axes->rank - 1; k > 0; k--) {
    const unsigned at = nd_split(&i, axes->dim[k]);
    pa += at * a->step[k];
    pb += at * b->step[k];
  }
  if (axes->rank > 0) {
    pa += (long long)i * a->step[0];
    pb += (long long)i * b->step[0];
  }
  // <<< hidden
  *place_a = pa;
  *place_b = pb;
}

/* Axis k joins the one before it. */
static inline void nd_join(NdAxes *axes, NdStrides *const *strides, int count, int k) {
  axes->dim[k - 1] *= axes->dim[k];
  for (int a = 0; a < count; a++) strides[a]->step[k - 1] = strides[a]->step[k];
  for (int j = k; j + 1 < axes->rank; j++) {
    axes->dim[j] = axes->dim[j + 1];
    for (int a = 0; a < count; a++) strides[a]->step[j] = strides[a]->step[j + 1];
  }
  axes->rank--;
}

/* Joins neighbouring axes wherever all arrays allow it: one step along the outer is a whole run along the inner. An
 * axis of one element joins anything. The size of the batch is given as 0. */
static inline void nd_collapse(NdAxes *axes, NdStrides *const *strides, int count) {
  for (int k = axes->rank - 1; k > 0; k--) {
    int joins = 1;
    for (int a = 0; a < count && axes->dim[k] != 1 && axes->dim[k - 1] != 1; a++)
      joins &= strides[a]->step[k - 1] == strides[a]->step[k] * (long long)axes->dim[k];
    if (!joins) continue;
    if (axes->dim[k] == 1) /* what its stride is does not matter */
      for (int a = 0; a < count; a++) strides[a]->step[k] = strides[a]->step[k - 1];
    nd_join(axes, strides, count, k);
  }
}

/* ----------------------------------------------------------------------------------------------------- both devices */

/* Element i of an operation; each has one of these for its own arguments. This one lets the templates below be read. */
typedef struct NdNothing {
  int unused;
} NdNothing;
template <bool F32>
static __host__ __device__ inline void nd_one(const NdNothing &, size_t) {}

template <bool F32, typename Args>
static __global__ void nd_kernel(Args args, size_t n) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) nd_one<F32>(args, i);
}

template <bool F32, typename Args>
static inline void nd_launch(const Args &args, size_t n) {
  nd_kernel<F32, Args><<<(unsigned)((n + ND_BLOCK - 1) / ND_BLOCK), ND_BLOCK>>>(args, n);
  CUDA_CHECK_LAUNCH();
}

template <bool F32, typename Args>
static inline void nd_loop(const Args &args, size_t n) {
#pragma omp parallel for schedule(static) if (n > 16384)
  for (size_t i = 0; i < n; i++) nd_one<F32>(args, i);
}

/* nd_one(args, i) for i < n. */
template <bool F32, typename Args>
static inline void nd_run(const Context *context, const Args &args, size_t n) {
  if (n == 0) return;
  ON_DEVICE(context->device, (nd_launch<F32, Args>(args, n)), (nd_loop<F32, Args>(args, n)));
}

/* Elements of a node's output. */
static inline size_t nd_count(const Node *node, const OpArrays *a) {
  return shape_count(node->shape) * (size_t)a->batch;
}

/* The backward() of all of them: it ends the program. In nd_move_op.cu. */
void nd_no_backward(const Context *context, const Node *node, const OpArrays *arrays);

#endif /* PHASE5_PRODUCTION_ND_CUH */
