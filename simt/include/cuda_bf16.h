/* cuda_bf16.h - __nv_bfloat16 and its pair: the upper half of a float; see simt/half.inc. Host code may use all of
 * it. */
#ifndef SIMT_CUDA_BF16_H
#define SIMT_CUDA_BF16_H
#define __CUDA_BF16_H__

#include "vector_types.h"

/* The bits alone. */
typedef struct SIMT_ALIGN(2) {
  unsigned short x;
} __nv_bfloat16_raw;
typedef struct SIMT_ALIGN(4) {
  unsigned short x, y;
} __nv_bfloat162_raw;

#ifdef __cplusplus

#include "cuda_fp16.h"
#include "simt/convert.h"
#ifdef __CUDACC__
#include "simt/atomics.h"
#include "simt/intrinsics.h"
#include "simt/warp.h"
#endif

struct __half;

#define SIMT_HALF __nv_bfloat16
#define SIMT_HALF2 __nv_bfloat162
#define SIMT_RAW __nv_bfloat16_raw
#define SIMT_RAW2 __nv_bfloat162_raw
#define SIMT_FORMAT simt::Bfloat16
#define SIMT_OTHER_HALF __half
#define SIMT_NAME(before, after) before##bfloat16##after
#define SIMT_NAME_PAIR __bfloat162bfloat162
#ifndef __CUDA_NO_BFLOAT16_CONVERSIONS__
#define SIMT_HALF_CONVERSIONS 1
#endif
#ifndef __CUDA_NO_BFLOAT16_OPERATORS__
#define SIMT_HALF_OPERATORS 1
#endif
#ifndef __CUDA_NO_BFLOAT162_OPERATORS__
#define SIMT_HALF2_OPERATORS 1
#endif
#include "simt/half.inc"

inline __half::__half(__nv_bfloat16 other) : __x(simt::Half::from_float(__bfloat162float(other))) {}
inline __nv_bfloat16::__nv_bfloat16(__half other) : __x(simt::Bfloat16::from_float(__half2float(other))) {}

#ifndef CUDA_NO_BFLOAT16
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
#endif

#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16((unsigned short)0x7fff)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16((unsigned short)0x0001)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16((unsigned short)0x7f7f)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x8000)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x0000)
#define CUDART_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3f80)

#else

typedef __nv_bfloat16_raw __nv_bfloat16;
typedef __nv_bfloat162_raw __nv_bfloat162;

#endif /* __cplusplus */

#endif /* SIMT_CUDA_BF16_H */
