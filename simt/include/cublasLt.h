/* cublasLt.h - cublasLt on OpenBLAS: matrix products whose details are attributes of descriptors. C and C++.
 *
 *     D = epilogue(alpha op(A) op(B) + beta C)        op(A) (m,k), op(B) (k,n), C and D (m,n)
 *
 * cublasLtMatmul() offers, in real numbers:
 *   types      A and B of one type, C and D of one: 32F, 64F, 16F, 16BF, and 16F or 16BF with C and D of 32F, for the
 *              compute types that NVIDIA documents with them; sums are taken in float (64F: in double), TF32 included
 *   layouts    columns first or rows first (CUBLASLT_ORDER_COL, _ROW), any leading dimension, strided batches
 *   epilogues  DEFAULT, BIAS, RELU, RELU_BIAS, GELU, GELU_BIAS, GELU_AUX, GELU_AUX_BIAS; as NVIDIA documents it, all
 *              but DEFAULT need a D by columns. GELU is the approximation with tanh, which NVIDIA's library computes:
 *              0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
 *   scalars    alpha and beta on the host or on the device
 * All else has its name here, so that programs compile, and is refused when the product is computed or an algorithm is
 * asked for: CUBLAS_STATUS_NOT_SUPPORTED, and the reason on stderr. There is one algorithm; it needs no workspace.
 *
 * The enumerators have NVIDIA's values. Of the tile and cluster shapes only the smaller ones are declared; the emulator
 * uses none of them.
 */
#ifndef CUBLASLT_H_
#define CUBLASLT_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cublas_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the handle; a cublasHandle_t may stand for one ---- */

typedef struct cublasLtContext *cublasLtHandle_t;

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle);
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle);
const char *cublasLtGetStatusName(cublasStatus_t status);
const char *cublasLtGetStatusString(cublasStatus_t status);
size_t cublasLtGetVersion(void);
size_t cublasLtGetCudartVersion(void);
cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int *value);
/* Accepted, without effect. */
cublasStatus_t cublasLtHeuristicsCacheGetCapacity(size_t *capacity);
cublasStatus_t cublasLtHeuristicsCacheSetCapacity(size_t capacity);
unsigned cublasLtDisableCpuInstructionsSetMask(unsigned mask); /* gives the mask before */

/* ---- descriptors: made by ..Create, or in memory of the program's by ..Init ---- */

typedef struct {
  uint64_t data[8];
} cublasLtMatrixLayoutOpaque_t;
typedef struct {
  uint64_t data[32];
} cublasLtMatmulDescOpaque_t;
typedef struct {
  uint64_t data[8];
} cublasLtMatmulPreferenceOpaque_t;
typedef struct {
  uint64_t data[8];
} cublasLtMatrixTransformDescOpaque_t;
typedef struct {
  uint64_t data[8];
} cublasLtEmulationDescOpaque_t;
typedef cublasLtMatrixLayoutOpaque_t *cublasLtMatrixLayout_t;
typedef cublasLtMatmulDescOpaque_t *cublasLtMatmulDesc_t;
typedef cublasLtMatmulPreferenceOpaque_t *cublasLtMatmulPreference_t;
typedef cublasLtMatrixTransformDescOpaque_t *cublasLtMatrixTransformDesc_t;
typedef cublasLtEmulationDescOpaque_t *cublasLtEmulationDesc_t;

typedef struct {
  uint64_t data[8];
} cublasLtMatmulAlgo_t;

/* ---- the layout of a matrix ---- */

typedef enum {
  CUBLASLT_ORDER_COL = 0, /* ld: from one column to the next */
  CUBLASLT_ORDER_ROW = 1, /* ld: from one row to the next */
  CUBLASLT_ORDER_COL32 = 2,
  CUBLASLT_ORDER_COL4_4R2_8C = 3,
  CUBLASLT_ORDER_COL32_2R_4R4 = 4
} cublasLtOrder_t;

typedef enum { CUBLASLT_BATCH_MODE_STRIDED = 0, CUBLASLT_BATCH_MODE_POINTER_ARRAY = 1 } cublasLtBatchMode_t;

typedef enum {
  CUBLASLT_MATRIX_LAYOUT_TYPE = 0,                 /* uint32_t: cudaDataType */
  CUBLASLT_MATRIX_LAYOUT_ORDER = 1,                /* int32_t: cublasLtOrder_t; COL */
  CUBLASLT_MATRIX_LAYOUT_ROWS = 2,                 /* uint64_t */
  CUBLASLT_MATRIX_LAYOUT_COLS = 3,                 /* uint64_t */
  CUBLASLT_MATRIX_LAYOUT_LD = 4,                   /* int64_t: elements */
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,          /* int32_t; 1 */
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6, /* int64_t: elements; 0 */
  CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET = 7,         /* int64_t; only 0 is offered */
  CUBLASLT_MATRIX_LAYOUT_BATCH_MODE = 8            /* uint32_t; only STRIDED is offered */
} cublasLtMatrixLayoutAttribute_t;

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld);
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout);
/* `bytes` is the size of the attribute's type. Get: with 0 bytes it only gives the size in *written; else that may be
 * NULL. */
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void *value,
                                                size_t bytes);
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, void *value, size_t bytes,
                                                size_t *written);
cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size, cudaDataType type,
                                                 uint64_t rows, uint64_t cols, int64_t ld);
static inline cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, cudaDataType type, uint64_t rows,
                                                      uint64_t cols, int64_t ld) {
  return cublasLtMatrixLayoutInit_internal(layout, sizeof *layout, type, rows, cols, ld);
}

/* ---- the operation ---- */

typedef enum {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4, /* a vector as long as D has rows, added to each column */
  CUBLASLT_EPILOGUE_RELU_BIAS = 6,
  CUBLASLT_EPILOGUE_GELU = 32,
  CUBLASLT_EPILOGUE_GELU_BIAS = 36,
  CUBLASLT_EPILOGUE_GELU_AUX = 160, /* what GELU is applied to is written to the auxiliary matrix */
  CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 164,
  /* not offered */
  CUBLASLT_EPILOGUE_RELU_AUX = 130,
  CUBLASLT_EPILOGUE_RELU_AUX_BIAS = 134,
  CUBLASLT_EPILOGUE_DRELU = 136,
  CUBLASLT_EPILOGUE_DRELU_BGRAD = 152,
  CUBLASLT_EPILOGUE_DGELU = 192,
  CUBLASLT_EPILOGUE_DGELU_BGRAD = 208,
  CUBLASLT_EPILOGUE_BGRADA = 256,
  CUBLASLT_EPILOGUE_BGRADB = 512
} cublasLtEpilogue_t;

typedef enum {
  CUBLASLT_POINTER_MODE_HOST = 0,
  CUBLASLT_POINTER_MODE_DEVICE = 1,
  /* not offered: a factor for each row */
  CUBLASLT_POINTER_MODE_DEVICE_VECTOR = 2,
  CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO = 3,
  CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST = 4
} cublasLtPointerMode_t;

typedef enum {
  CUBLASLT_POINTER_MODE_MASK_HOST = 1,
  CUBLASLT_POINTER_MODE_MASK_DEVICE = 2,
  CUBLASLT_POINTER_MODE_MASK_DEVICE_VECTOR = 4,
  CUBLASLT_POINTER_MODE_MASK_ALPHA_DEVICE_VECTOR_BETA_ZERO = 8,
  CUBLASLT_POINTER_MODE_MASK_ALPHA_DEVICE_VECTOR_BETA_HOST = 16
} cublasLtPointerModeMask_t;

typedef enum {
  CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F = 0,
  CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3 = 1,
  CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0 = 2,
  CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F = 3,
  CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F = 4,
  CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F = 5,
  CUBLASLT_MATMUL_MATRIX_SCALE_END
} cublasLtMatmulMatrixScale_t;

/* The type of each attribute, and what it is unless it is set. */
typedef enum {
  CUBLASLT_MATMUL_DESC_COMPUTE_TYPE = 0,               /* int32_t: cublasComputeType_t */
  CUBLASLT_MATMUL_DESC_SCALE_TYPE = 1,                 /* int32_t: cudaDataType, of alpha and beta */
  CUBLASLT_MATMUL_DESC_POINTER_MODE = 2,               /* int32_t: cublasLtPointerMode_t; HOST */
  CUBLASLT_MATMUL_DESC_TRANSA = 3,                     /* int32_t: cublasOperation_t; N */
  CUBLASLT_MATMUL_DESC_TRANSB = 4,                     /* int32_t: cublasOperation_t; N */
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,                   /* uint32_t: cublasLtEpilogue_t; DEFAULT */
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,               /* const void *; NULL */
  CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE = 10,         /* int64_t: elements; 0 */
  CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26,            /* int32_t: cudaDataType; -1, that of D: no other is offered */
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11,      /* void *; NULL */
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12,           /* int64_t: a multiple of 8, at least the rows of D; 0 */
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE = 13, /* int64_t: elements, a multiple of 8; 0 */
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE = 22,    /* int32_t: cudaDataType; -1, that of D: no other is offered */
  /* accepted, without effect */
  CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE = 14, /* int64_t; 0 */
  CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET = 15,           /* int32_t; 0 */
  CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25,                /* int8_t; 0 */
  /* not offered, other than they are: a product refuses them */
  CUBLASLT_MATMUL_DESC_TRANSC = 5,           /* int32_t: cublasOperation_t; N */
  CUBLASLT_MATMUL_DESC_FILL_MODE = 6,        /* int32_t: cublasFillMode_t; FULL */
  CUBLASLT_MATMUL_DESC_A_SCALE_POINTER = 17, /* const void *; NULL; and the next three */
  CUBLASLT_MATMUL_DESC_B_SCALE_POINTER = 18,
  CUBLASLT_MATMUL_DESC_C_SCALE_POINTER = 19,
  CUBLASLT_MATMUL_DESC_D_SCALE_POINTER = 20,
  CUBLASLT_MATMUL_DESC_AMAX_D_POINTER = 21,             /* void *; NULL */
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER = 23, /* const void *; NULL */
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER = 24,  /* void *; NULL */
  CUBLASLT_MATMUL_DESC_A_SCALE_MODE = 31,               /* int32_t: cublasLtMatmulMatrixScale_t; 0; and the next four */
  CUBLASLT_MATMUL_DESC_B_SCALE_MODE = 32,
  CUBLASLT_MATMUL_DESC_C_SCALE_MODE = 33,
  CUBLASLT_MATMUL_DESC_D_SCALE_MODE = 34,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE = 35,
  CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER = 36, /* void *; NULL */
  CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE = 37,    /* int32_t; 0 */
  CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR = 38 /* cublasLtEmulationDesc_t; NULL */
} cublasLtMatmulDescAttributes_t;

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *operation, cublasComputeType_t compute,
                                        cudaDataType_t scale);
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation);
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes);
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                                              void *value, size_t bytes, size_t *written);
cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t operation, size_t size, cublasComputeType_t compute,
                                               cudaDataType_t scale);
static inline cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t operation, cublasComputeType_t compute,
                                                    cudaDataType_t scale) {
  return cublasLtMatmulDescInit_internal(operation, sizeof *operation, compute, scale);
}

/* ---- the product ---- */

/* In place where C is D: then their layouts are the same. With beta 0 C is not read. algo may be NULL. */
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void *alpha, const void *A,
                              cublasLtMatrixLayout_t layout_a, const void *B, cublasLtMatrixLayout_t layout_b,
                              const void *beta, const void *C, cublasLtMatrixLayout_t layout_c, void *D,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream);

/* ---- what to look for among algorithms ---- */

typedef enum {
  CUBLASLT_SEARCH_BEST_FIT = 0,
  CUBLASLT_SEARCH_LIMITED_BY_ALGO_ID = 1,
  CUBLASLT_SEARCH_RESERVED_02 = 2,
  CUBLASLT_SEARCH_RESERVED_03 = 3,
  CUBLASLT_SEARCH_RESERVED_04 = 4,
  CUBLASLT_SEARCH_RESERVED_05 = 5,
  CUBLASLT_SEARCH_RESERVED_06 = 6,
  CUBLASLT_SEARCH_RESERVED_07 = 7,
  CUBLASLT_SEARCH_RESERVED_08 = 8,
  CUBLASLT_SEARCH_RESERVED_09 = 9
} cublasLtMatmulSearch_t;

typedef enum {
  CUBLASLT_REDUCTION_SCHEME_NONE = 0,
  CUBLASLT_REDUCTION_SCHEME_INPLACE = 1,
  CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2,
  CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE = 4,
  CUBLASLT_REDUCTION_SCHEME_MASK = 7
} cublasLtReductionScheme_t;

/* Kept, and without effect: the one algorithm fits them all. */
typedef enum {
  CUBLASLT_MATMUL_PREF_SEARCH_MODE = 0,           /* uint32_t: cublasLtMatmulSearch_t; BEST_FIT */
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,   /* uint64_t; 0 */
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3, /* uint32_t; all */
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5, /* uint32_t; 256; and the next three */
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
  CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT = 9, /* float; 0 */
  CUBLASLT_MATMUL_PREF_IMPL_MASK = 12       /* uint64_t: CUBLASLT_NUMERICAL_IMPL_FLAGS_..; all */
} cublasLtMatmulPreferenceAttributes_t;

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference);
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference);
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t bytes);
cublasStatus_t cublasLtMatmulPreferenceGetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, void *value,
                                                    size_t bytes, size_t *written);
cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t size);
static inline cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t preference) {
  return cublasLtMatmulPreferenceInit_internal(preference, sizeof *preference);
}

typedef uint64_t cublasLtNumericalImplFlags_t;
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA ((cublasLtNumericalImplFlags_t)1)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA ((cublasLtNumericalImplFlags_t)2)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_IMMA ((cublasLtNumericalImplFlags_t)4)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_DMMA ((cublasLtNumericalImplFlags_t)8)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK ((cublasLtNumericalImplFlags_t)0xfe)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_OP_TYPE_MASK ((cublasLtNumericalImplFlags_t)0xff)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F ((cublasLtNumericalImplFlags_t)1 << 8)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F ((cublasLtNumericalImplFlags_t)2 << 8)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_64F ((cublasLtNumericalImplFlags_t)4 << 8)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32I ((cublasLtNumericalImplFlags_t)8 << 8)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_TYPE_MASK ((cublasLtNumericalImplFlags_t)0xff << 8)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F ((cublasLtNumericalImplFlags_t)1 << 16)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF ((cublasLtNumericalImplFlags_t)2 << 16)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32 ((cublasLtNumericalImplFlags_t)4 << 16)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F ((cublasLtNumericalImplFlags_t)8 << 16)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_64F ((cublasLtNumericalImplFlags_t)0x10 << 16)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8I ((cublasLtNumericalImplFlags_t)0x20 << 16)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E4M3 ((cublasLtNumericalImplFlags_t)0x40 << 16)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E5M2 ((cublasLtNumericalImplFlags_t)0x80 << 16)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_OP_INPUT_TYPE_MASK ((cublasLtNumericalImplFlags_t)0xff << 16)
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_GAUSSIAN ((cublasLtNumericalImplFlags_t)1 << 32)

/* ---- algorithms: one, whose number is 0 ---- */

typedef struct {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state; /* of this result: SUCCESS, or the others say nothing */
  float wavesCount;
  int reserved[4];
} cublasLtMatmulHeuristicResult_t;

/* Gives one algorithm, or what cublasLtMatmul() would give instead of the product. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t layout_a, cublasLtMatrixLayout_t layout_b,
                                              cublasLtMatrixLayout_t layout_c, cublasLtMatrixLayout_t layout_d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int *returned);
cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t scale,
                                        cudaDataType_t type_a, cudaDataType_t type_b, cudaDataType_t type_c,
                                        cudaDataType_t type_d, int requested, int ids[], int *returned);
cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t scale,
                                      cudaDataType_t type_a, cudaDataType_t type_b, cudaDataType_t type_c,
                                      cudaDataType_t type_d, int id, cublasLtMatmulAlgo_t *algo);
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                       cublasLtMatrixLayout_t layout_a, cublasLtMatrixLayout_t layout_b,
                                       cublasLtMatrixLayout_t layout_c, cublasLtMatrixLayout_t layout_d,
                                       const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result);

typedef enum {
  CUBLASLT_ALGO_CAP_SPLITK_SUPPORT = 0,              /* int32_t; 0 */
  CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK = 1,       /* uint32_t; none */
  CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT = 2,       /* uint32_t; 0 */
  CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT = 3,       /* int32_t; 1 */
  CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT = 4, /* int32_t; 1 */
  CUBLASLT_ALGO_CAP_UPLO_SUPPORT = 5,                /* int32_t; 0 */
  CUBLASLT_ALGO_CAP_TILE_IDS = 6,                    /* uint32_t[]; empty */
  CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX = 7,           /* int32_t; 0 */
  CUBLASLT_ALGO_CAP_CUSTOM_MEMORY_ORDER = 10,        /* int32_t; 0 */
  CUBLASLT_ALGO_CAP_POINTER_MODE_MASK = 11,          /* uint32_t; host and device */
  CUBLASLT_ALGO_CAP_EPILOGUE_MASK = 12,              /* uint32_t; those offered */
  CUBLASLT_ALGO_CAP_STAGES_IDS = 13,                 /* uint32_t[]; empty */
  CUBLASLT_ALGO_CAP_LD_NEGATIVE = 14,                /* int32_t; 0 */
  CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS = 15,       /* uint64_t; FMA */
  CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES = 16,      /* uint32_t; 1; and the next three */
  CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES = 17,
  CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES = 18,
  CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES = 19,
  CUBLASLT_ALGO_CAP_POINTER_ARRAY_BATCH_SUPPORT = 21,     /* int32_t; 0 */
  CUBLASLT_ALGO_CAP_FLOATING_POINT_EMULATION_SUPPORT = 22 /* int32_t; 0 */
} cublasLtMatmulAlgoCapAttributes_t;

/* Kept in the algorithm, and without effect. */
typedef enum {
  CUBLASLT_ALGO_CONFIG_ID = 0,               /* int32_t; only to be read */
  CUBLASLT_ALGO_CONFIG_TILE_ID = 1,          /* uint32_t: cublasLtMatmulTile_t */
  CUBLASLT_ALGO_CONFIG_SPLITK_NUM = 2,       /* int32_t; 1 */
  CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME = 3, /* uint32_t: cublasLtReductionScheme_t */
  CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING = 4,    /* uint32_t */
  CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION = 5,    /* uint32_t */
  CUBLASLT_ALGO_CONFIG_STAGES_ID = 6,        /* uint32_t: cublasLtMatmulStages_t */
  CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID = 7,   /* uint16_t: cublasLtMatmulInnerShape_t */
  CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID = 8  /* uint16_t: cublasLtClusterShape_t */
} cublasLtMatmulAlgoConfigAttributes_t;

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                 cublasLtMatmulAlgoCapAttributes_t attribute, void *value, size_t bytes,
                                                 size_t *written);
cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, const void *value,
                                                    size_t bytes);
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void *value,
                                                    size_t bytes, size_t *written);

// clang-format off
typedef enum {
  CUBLASLT_MATMUL_TILE_UNDEFINED = 0, CUBLASLT_MATMUL_TILE_8x8, CUBLASLT_MATMUL_TILE_8x16,
  CUBLASLT_MATMUL_TILE_16x8, CUBLASLT_MATMUL_TILE_8x32, CUBLASLT_MATMUL_TILE_16x16, CUBLASLT_MATMUL_TILE_32x8,
  CUBLASLT_MATMUL_TILE_8x64, CUBLASLT_MATMUL_TILE_16x32, CUBLASLT_MATMUL_TILE_32x16, CUBLASLT_MATMUL_TILE_64x8,
  CUBLASLT_MATMUL_TILE_32x32, CUBLASLT_MATMUL_TILE_32x64, CUBLASLT_MATMUL_TILE_64x32, CUBLASLT_MATMUL_TILE_32x128,
  CUBLASLT_MATMUL_TILE_64x64, CUBLASLT_MATMUL_TILE_128x32, CUBLASLT_MATMUL_TILE_64x128, CUBLASLT_MATMUL_TILE_128x64,
  CUBLASLT_MATMUL_TILE_64x256, CUBLASLT_MATMUL_TILE_128x128, CUBLASLT_MATMUL_TILE_256x64,
  CUBLASLT_MATMUL_TILE_64x512, CUBLASLT_MATMUL_TILE_128x256, CUBLASLT_MATMUL_TILE_256x128,
  CUBLASLT_MATMUL_TILE_512x64, CUBLASLT_MATMUL_TILE_64x96, CUBLASLT_MATMUL_TILE_96x64, CUBLASLT_MATMUL_TILE_96x128,
  CUBLASLT_MATMUL_TILE_128x160, CUBLASLT_MATMUL_TILE_160x128, CUBLASLT_MATMUL_TILE_192x128,
  CUBLASLT_MATMUL_TILE_128x192, CUBLASLT_MATMUL_TILE_128x96, CUBLASLT_MATMUL_TILE_32x256,
  CUBLASLT_MATMUL_TILE_256x32, CUBLASLT_MATMUL_TILE_END = 635
} cublasLtMatmulTile_t;

typedef enum {
  CUBLASLT_MATMUL_STAGES_UNDEFINED = 0, CUBLASLT_MATMUL_STAGES_16x1, CUBLASLT_MATMUL_STAGES_16x2,
  CUBLASLT_MATMUL_STAGES_16x3, CUBLASLT_MATMUL_STAGES_16x4, CUBLASLT_MATMUL_STAGES_16x5,
  CUBLASLT_MATMUL_STAGES_16x6, CUBLASLT_MATMUL_STAGES_32x1, CUBLASLT_MATMUL_STAGES_32x2,
  CUBLASLT_MATMUL_STAGES_32x3, CUBLASLT_MATMUL_STAGES_32x4, CUBLASLT_MATMUL_STAGES_32x5,
  CUBLASLT_MATMUL_STAGES_32x6, CUBLASLT_MATMUL_STAGES_64x1, CUBLASLT_MATMUL_STAGES_64x2,
  CUBLASLT_MATMUL_STAGES_64x3, CUBLASLT_MATMUL_STAGES_64x4, CUBLASLT_MATMUL_STAGES_64x5,
  CUBLASLT_MATMUL_STAGES_64x6, CUBLASLT_MATMUL_STAGES_128x1, CUBLASLT_MATMUL_STAGES_128x2,
  CUBLASLT_MATMUL_STAGES_128x3, CUBLASLT_MATMUL_STAGES_128x4, CUBLASLT_MATMUL_STAGES_128x5,
  CUBLASLT_MATMUL_STAGES_128x6, CUBLASLT_MATMUL_STAGES_32x10, CUBLASLT_MATMUL_STAGES_8x4,
  CUBLASLT_MATMUL_STAGES_16x10, CUBLASLT_MATMUL_STAGES_8x5, CUBLASLT_MATMUL_STAGES_8x3 = 31,
  CUBLASLT_MATMUL_STAGES_8xAUTO, CUBLASLT_MATMUL_STAGES_16xAUTO, CUBLASLT_MATMUL_STAGES_32xAUTO,
  CUBLASLT_MATMUL_STAGES_64xAUTO, CUBLASLT_MATMUL_STAGES_128xAUTO, CUBLASLT_MATMUL_STAGES_256xAUTO,
  CUBLASLT_MATMUL_STAGES_768xAUTO, CUBLASLT_MATMUL_STAGES_END = 39
} cublasLtMatmulStages_t;

typedef enum {
  CUBLASLT_CLUSTER_SHAPE_AUTO = 0, CUBLASLT_CLUSTER_SHAPE_1x1x1 = 2, CUBLASLT_CLUSTER_SHAPE_2x1x1,
  CUBLASLT_CLUSTER_SHAPE_4x1x1, CUBLASLT_CLUSTER_SHAPE_1x2x1, CUBLASLT_CLUSTER_SHAPE_2x2x1,
  CUBLASLT_CLUSTER_SHAPE_4x2x1, CUBLASLT_CLUSTER_SHAPE_1x4x1, CUBLASLT_CLUSTER_SHAPE_2x4x1,
  CUBLASLT_CLUSTER_SHAPE_4x4x1, CUBLASLT_CLUSTER_SHAPE_8x1x1, CUBLASLT_CLUSTER_SHAPE_1x8x1,
  CUBLASLT_CLUSTER_SHAPE_8x2x1, CUBLASLT_CLUSTER_SHAPE_2x8x1, CUBLASLT_CLUSTER_SHAPE_16x1x1,
  CUBLASLT_CLUSTER_SHAPE_1x16x1, CUBLASLT_CLUSTER_SHAPE_END = 52
} cublasLtClusterShape_t;

typedef enum {
  CUBLASLT_MATMUL_INNER_SHAPE_UNDEFINED = 0, CUBLASLT_MATMUL_INNER_SHAPE_MMA884,
  CUBLASLT_MATMUL_INNER_SHAPE_MMA1684, CUBLASLT_MATMUL_INNER_SHAPE_MMA1688, CUBLASLT_MATMUL_INNER_SHAPE_MMA16816,
  CUBLASLT_MATMUL_INNER_SHAPE_END = 5
} cublasLtMatmulInnerShape_t;
// clang-format on

/* ---- the log: settings are accepted, nothing is logged ---- */

typedef void (*cublasLtLoggerCallback_t)(int level, const char *function, const char *message);
cublasStatus_t cublasLtLoggerSetCallback(cublasLtLoggerCallback_t callback);
cublasStatus_t cublasLtLoggerSetFile(FILE *file);
cublasStatus_t cublasLtLoggerOpenFile(const char *path);
cublasStatus_t cublasLtLoggerSetLevel(int level); /* 0 to 5 */
cublasStatus_t cublasLtLoggerSetMask(int mask);
cublasStatus_t cublasLtLoggerForceDisable(void);

#ifdef __cplusplus
}
#endif

/* ---- not offered: a call is an error of the compiler ---- */

#define SIMT_CUBLASLT_NOT_OFFERED(name) \
  SIMT_NOT_OFFERED_FUNCTION(cublasStatus_t, cublasLt##name, "the emulation offers only a part of cublasLt (cublasLt.h)")
typedef enum {
  CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE,
  CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE,
  CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA,
  CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB
} cublasLtMatrixTransformDescAttributes_t;
SIMT_CUBLASLT_NOT_OFFERED(MatrixTransform);
SIMT_CUBLASLT_NOT_OFFERED(MatrixTransformDescCreate);
SIMT_CUBLASLT_NOT_OFFERED(MatrixTransformDescInit);
SIMT_CUBLASLT_NOT_OFFERED(MatrixTransformDescDestroy);
SIMT_CUBLASLT_NOT_OFFERED(MatrixTransformDescSetAttribute);
SIMT_CUBLASLT_NOT_OFFERED(MatrixTransformDescGetAttribute);

typedef enum {
  CUBLASLT_EMULATION_DESC_STRATEGY = 0,
  CUBLASLT_EMULATION_DESC_SPECIAL_VALUES_SUPPORT = 1,
  CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_CONTROL = 2,
  CUBLASLT_EMULATION_DESC_FIXEDPOINT_MAX_MANTISSA_BIT_COUNT = 3,
  CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_OFFSET = 4,
  CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_COUNT_POINTER = 5
} cublasLtEmulationDescAttributes_t;
SIMT_CUBLASLT_NOT_OFFERED(EmulationDescCreate);
SIMT_CUBLASLT_NOT_OFFERED(EmulationDescInit);
SIMT_CUBLASLT_NOT_OFFERED(EmulationDescDestroy);
SIMT_CUBLASLT_NOT_OFFERED(EmulationDescSetAttribute);
SIMT_CUBLASLT_NOT_OFFERED(EmulationDescGetAttribute);
#undef SIMT_CUBLASLT_NOT_OFFERED

#endif /* CUBLASLT_H_ */
