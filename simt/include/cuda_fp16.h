/* cuda_fp16.h - __half and __half2: 1 sign, 5 exponent and 10 mantissa bits; see simt/half.inc. Host code may use all
 * of it. */
#ifndef SIMT_CUDA_FP16_H
#define SIMT_CUDA_FP16_H
#define __CUDA_FP16_H__

#include "vector_types.h"

/* The bits alone. */
typedef struct SIMT_ALIGN(2) {
  unsigned short x;
} __half_raw;
typedef struct SIMT_ALIGN(4) {
  unsigned short x, y;
} __half2_raw;

#ifdef __cplusplus

#include "simt/convert.h"
#ifdef __CUDACC__
#include "simt/atomics.h"
#include "simt/intrinsics.h"
#include "simt/warp.h"
#endif

struct __nv_bfloat16;

#define SIMT_HALF __half
#define SIMT_HALF2 __half2
#define SIMT_RAW __half_raw
#define SIMT_RAW2 __half2_raw
#define SIMT_FORMAT simt::Half
#define SIMT_OTHER_HALF __nv_bfloat16
#define SIMT_NAME(before, after) before##half##after
#define SIMT_NAME_PAIR __half2half2
#ifndef __CUDA_NO_HALF_CONVERSIONS__
#define SIMT_HALF_CONVERSIONS 1
#endif
#ifndef __CUDA_NO_HALF_OPERATORS__
#define SIMT_HALF_OPERATORS 1
#endif
#ifndef __CUDA_NO_HALF2_OPERATORS__
#define SIMT_HALF2_OPERATORS 1
#endif
#include "simt/half.inc"

#ifndef CUDA_NO_HALF
typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;
typedef __half_raw __nv_half_raw;
typedef __half2_raw __nv_half2_raw;
#endif

#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7fff)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half((unsigned short)0x0001)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7bff)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half((unsigned short)0x8000)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0x0000)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3c00)

#else

typedef __half_raw __half;
typedef __half2_raw __half2;

#endif /* __cplusplus */

#endif /* SIMT_CUDA_FP16_H */
