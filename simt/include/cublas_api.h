/* cublas_api.h - cuBLAS on OpenBLAS: the part of the API that programs use. C and C++.
 *
 * Matrices are column-major, as in Fortran: element (row, column) of A is A[row + column * lda]. A program with
 * row-major matrices computes C = A B as C' = B' A': it swaps A with B and m with n, and transposes nothing.
 *
 * The arguments are checked as cuBLAS checks them. What a GPU cannot know, a host pointer or a matrix that leaves its
 * allocation, is reported with the reason: the call gives CUBLAS_STATUS_EXECUTION_FAILED and CUDA's calls then give
 * cudaErrorIllegalAddress. On a GPU only the latter happens, later.
 *
 * Math modes and algorithms are accepted, and change nothing: sums are taken in float for half, bfloat16, TF32 and
 * float, in double for double, in integers for int8. So results equal NVIDIA's up to rounding, never bit for bit. The
 * names that end in _64, cublasXt and the old API of cublas.h are not offered.
 */
#ifndef CUBLAS_API_H_
#define CUBLAS_API_H_

#include <stddef.h>
#include <stdint.h>

#include "cuComplex.h"
#include "cuda_runtime.h"
#include "library_types.h"
#include "simt/not_offered.h"
#ifdef __cplusplus
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#else
typedef struct __half __half;
#endif

#define CUBLASAPI
#define CUBLASWINAPI

#define CUBLAS_VER_MAJOR 13
#define CUBLAS_VER_MINOR 1
#define CUBLAS_VER_PATCH 0
#define CUBLAS_VER_BUILD 3
#define CUBLAS_VERSION (CUBLAS_VER_MAJOR * 10000 + CUBLAS_VER_MINOR * 100 + CUBLAS_VER_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* Status codes with the text of cublasGetStatusString(). INVALID_VALUE: an argument is out of range. MAPPING_ERROR: a
 * copy failed. EXECUTION_FAILED: the work failed. NOT_SUPPORTED: this combination of types is not supported. */
// clang-format off
#define SIMT_CUBLAS_STATUSES(X) \
  X(CUBLAS_STATUS_SUCCESS, 0, "success") \
  X(CUBLAS_STATUS_NOT_INITIALIZED, 1, "the library was not initialized") \
  X(CUBLAS_STATUS_ALLOC_FAILED, 3, "the resource allocation failed") \
  X(CUBLAS_STATUS_INVALID_VALUE, 7, "an unsupported value or parameter was passed to the function") \
  X(CUBLAS_STATUS_ARCH_MISMATCH, 8, "the function requires an architectural feature absent from the device") \
  X(CUBLAS_STATUS_MAPPING_ERROR, 11, "an access to GPU memory space failed") \
  X(CUBLAS_STATUS_EXECUTION_FAILED, 13, "the function failed to launch on the GPU") \
  X(CUBLAS_STATUS_INTERNAL_ERROR, 14, "an internal operation failed") \
  X(CUBLAS_STATUS_NOT_SUPPORTED, 15, "the requested functionality is not supported") \
  X(CUBLAS_STATUS_LICENSE_ERROR, 16, "the license check failed")
// clang-format on

#define SIMT_CUBLAS_STATUS(name, number, text) name = number,
typedef enum { SIMT_CUBLAS_STATUSES(SIMT_CUBLAS_STATUS) } cublasStatus_t;
#undef SIMT_CUBLAS_STATUS

typedef enum { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1, CUBLAS_FILL_MODE_FULL = 2 } cublasFillMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 } cublasDiagType_t;
typedef enum { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 } cublasSideMode_t;
typedef enum {
  CUBLAS_OP_N = 0, /* as it is */
  CUBLAS_OP_T = 1, /* transposed */
  CUBLAS_OP_C = 2, /* transposed and conjugated */
  CUBLAS_OP_HERMITAN = 2,
  CUBLAS_OP_CONJG = 3
} cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 } cublasAtomicsMode_t;

typedef enum {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
  CUBLAS_FP32_EMULATED_BF16X9_MATH = 4,
  CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH = 8,
  CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
} cublasMath_t;

typedef enum {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_16F_PEDANTIC = 65,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_64F_PEDANTIC = 71,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32I_PEDANTIC = 73,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
  CUBLAS_COMPUTE_32F_EMULATED_16BFX9 = 78,
  CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT = 79
} cublasComputeType_t;

typedef enum {
  CUBLAS_GEMM_DFALT = -1,
  CUBLAS_GEMM_DEFAULT = -1,
  CUBLAS_GEMM_ALGO0 = 0,
  CUBLAS_GEMM_ALGO1,
  CUBLAS_GEMM_ALGO2,
  CUBLAS_GEMM_ALGO3,
  CUBLAS_GEMM_ALGO4,
  CUBLAS_GEMM_ALGO5,
  CUBLAS_GEMM_ALGO6,
  CUBLAS_GEMM_ALGO7,
  CUBLAS_GEMM_ALGO8,
  CUBLAS_GEMM_ALGO9,
  CUBLAS_GEMM_ALGO10,
  CUBLAS_GEMM_ALGO11,
  CUBLAS_GEMM_ALGO12,
  CUBLAS_GEMM_ALGO13,
  CUBLAS_GEMM_ALGO14,
  CUBLAS_GEMM_ALGO15,
  CUBLAS_GEMM_ALGO16,
  CUBLAS_GEMM_ALGO17,
  CUBLAS_GEMM_ALGO18,
  CUBLAS_GEMM_ALGO19,
  CUBLAS_GEMM_ALGO20,
  CUBLAS_GEMM_ALGO21,
  CUBLAS_GEMM_ALGO22,
  CUBLAS_GEMM_ALGO23,
  CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
  CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
  CUBLAS_GEMM_ALGO0_TENSOR_OP = 100,
  CUBLAS_GEMM_ALGO1_TENSOR_OP,
  CUBLAS_GEMM_ALGO2_TENSOR_OP,
  CUBLAS_GEMM_ALGO3_TENSOR_OP,
  CUBLAS_GEMM_ALGO4_TENSOR_OP,
  CUBLAS_GEMM_ALGO5_TENSOR_OP,
  CUBLAS_GEMM_ALGO6_TENSOR_OP,
  CUBLAS_GEMM_ALGO7_TENSOR_OP,
  CUBLAS_GEMM_ALGO8_TENSOR_OP,
  CUBLAS_GEMM_ALGO9_TENSOR_OP,
  CUBLAS_GEMM_ALGO10_TENSOR_OP,
  CUBLAS_GEMM_ALGO11_TENSOR_OP,
  CUBLAS_GEMM_ALGO12_TENSOR_OP,
  CUBLAS_GEMM_ALGO13_TENSOR_OP,
  CUBLAS_GEMM_ALGO14_TENSOR_OP,
  CUBLAS_GEMM_ALGO15_TENSOR_OP,
  CUBLAS_GEMM_AUTOTUNE = 999
} cublasGemmAlgo_t;

typedef cudaDataType cublasDataType_t;
typedef struct cublasContext *cublasHandle_t;
typedef void (*cublasLogCallback)(const char *message);

/* ---- the handle ---- */

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version);
cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value);
size_t cublasGetCudartVersion(void);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes); /* not needed, not used */
/* Where alpha, beta and the results of dot, nrm2, .. lie. In host mode a call with a result waits for it. */
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t *mode);
cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int count);
cublasStatus_t cublasGetSmCountTarget(cublasHandle_t handle, int *count);
cublasStatus_t cublasLoggerConfigure(int on, int to_stdout, int to_stderr, const char *file); /* accepted, no log */
const char *cublasGetStatusName(cublasStatus_t status);
const char *cublasGetStatusString(cublasStatus_t status);

/* ---- copies between host and device; elements of `bytes` bytes, increments and leading dimensions in elements ---- */

cublasStatus_t cublasSetVector(int n, int bytes, const void *host, int inc_host, void *device, int inc_device);
cublasStatus_t cublasGetVector(int n, int bytes, const void *device, int inc_device, void *host, int inc_host);
cublasStatus_t cublasSetMatrix(int rows, int columns, int bytes, const void *host, int ld_host, void *device,
                               int ld_device);
cublasStatus_t cublasGetMatrix(int rows, int columns, int bytes, const void *device, int ld_device, void *host,
                               int ld_host);
cublasStatus_t cublasSetVectorAsync(int n, int bytes, const void *host, int inc_host, void *device, int inc_device,
                                    cudaStream_t stream);
cublasStatus_t cublasGetVectorAsync(int n, int bytes, const void *device, int inc_device, void *host, int inc_host,
                                    cudaStream_t stream);
cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int bytes, const void *host, int ld_host, void *device,
                                    int ld_device, cudaStream_t stream);
cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int bytes, const void *device, int ld_device, void *host,
                                    int ld_host, cudaStream_t stream);

/* ---- routines for all four types: X is S, D, C or Z ---- */

#define SIMT_CUBLAS_ALL(X, x, T)                                                                                       \
  /* y = alpha x + y; y = x; x <-> y; x = alpha x */                                                                   \
  cublasStatus_t cublas##X##axpy_v2(cublasHandle_t handle, int n, const T *alpha, const T *x, int incx, T *y,          \
                                    int incy);                                                                         \
  cublasStatus_t cublas##X##copy_v2(cublasHandle_t handle, int n, const T *x, int incx, T *y, int incy);               \
  cublasStatus_t cublas##X##swap_v2(cublasHandle_t handle, int n, T *x, int incx, T *y, int incy);                     \
  cublasStatus_t cublas##X##scal_v2(cublasHandle_t handle, int n, const T *alpha, T *x, int incx);                     \
  /* 1-based index of the first element with the largest, the smallest |re| + |im| */                                  \
  cublasStatus_t cublasI##x##amax_v2(cublasHandle_t handle, int n, const T *x, int incx, int *result);                 \
  cublasStatus_t cublasI##x##amin_v2(cublasHandle_t handle, int n, const T *x, int incx, int *result);                 \
  /* y = alpha op(A) x + beta y; A (m,n) */                                                                            \
  cublasStatus_t cublas##X##gemv_v2(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const T *alpha,      \
                                    const T *A, int lda, const T *x, int incx, const T *beta, T *y, int incy);         \
  cublasStatus_t cublas##X##gemvBatched(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const T *alpha,  \
                                        const T *const A[], int lda, const T *const x[], int incx, const T *beta,      \
                                        T *const y[], int incy, int batch);                                            \
  cublasStatus_t cublas##X##gemvStridedBatched(cublasHandle_t handle, cublasOperation_t trans, int m, int n,           \
                                               const T *alpha, const T *A, int lda, long long stride_a, const T *x,    \
                                               int incx, long long stride_x, const T *beta, T *y, int incy,            \
                                               long long stride_y, int batch);                                         \
  /* x = op(A) x, x = op(A)^-1 x; A (n,n) triangular */                                                                \
  cublasStatus_t cublas##X##trmv_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,             \
                                    cublasDiagType_t diag, int n, const T *A, int lda, T *x, int incx);                \
  cublasStatus_t cublas##X##trsv_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,             \
                                    cublasDiagType_t diag, int n, const T *A, int lda, T *x, int incx);                \
  /* C = alpha op(A) op(B) + beta C; op(A) (m,k), op(B) (k,n), C (m,n) */                                              \
  cublasStatus_t cublas##X##gemm_v2(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,  \
                                    int n, int k, const T *alpha, const T *A, int lda, const T *B, int ldb,            \
                                    const T *beta, T *C, int ldc);                                                     \
  cublasStatus_t cublas##X##gemmBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,     \
                                        int m, int n, int k, const T *alpha, const T *const A[], int lda,              \
                                        const T *const B[], int ldb, const T *beta, T *const C[], int ldc, int batch); \
  cublasStatus_t cublas##X##gemmStridedBatched(                                                                        \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k, const T *alpha,  \
      const T *A, int lda, long long stride_a, const T *B, int ldb, long long stride_b, const T *beta, T *C, int ldc,  \
      long long stride_c, int batch);                                                                                  \
  /* C = alpha A B + beta C (left), alpha B A + beta C (right); A symmetric */                                         \
  cublasStatus_t cublas##X##symm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, int m, int n, \
                                    const T *alpha, const T *A, int lda, const T *B, int ldb, const T *beta, T *C,     \
                                    int ldc);                                                                          \
  /* C = alpha op(A) op(A)' + beta C; C (n,n), one triangle of it */                                                   \
  cublasStatus_t cublas##X##syrk_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, int n,      \
                                    int k, const T *alpha, const T *A, int lda, const T *beta, T *C, int ldc);         \
  cublasStatus_t cublas##X##syr2k_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, int n,     \
                                     int k, const T *alpha, const T *A, int lda, const T *B, int ldb, const T *beta,   \
                                     T *C, int ldc);                                                                   \
  /* C = alpha op(A) B (left), alpha B op(A) (right); A triangular. Unlike BLAS not in place, unless B is C */         \
  cublasStatus_t cublas##X##trmm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,               \
                                    cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T *alpha,      \
                                    const T *A, int lda, const T *B, int ldb, T *C, int ldc);                          \
  /* solves op(A) X = alpha B (left), X op(A) = alpha B (right); X takes B's place */                                  \
  cublasStatus_t cublas##X##trsm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,               \
                                    cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T *alpha,      \
                                    const T *A, int lda, T *B, int ldb);                                               \
  cublasStatus_t cublas##X##trsmBatched(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,           \
                                        cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T *alpha,  \
                                        const T *const A[], int lda, T *const B[], int ldb, int batch);                \
  /* C = alpha op(A) + beta op(B); C may be A or B where that one is not transposed */                                 \
  cublasStatus_t cublas##X##geam(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,     \
                                 int n, const T *alpha, const T *A, int lda, const T *beta, const T *B, int ldb, T *C, \
                                 int ldc);                                                                             \
  /* C = diag(x) A (left), A diag(x) (right) */                                                                        \
  cublasStatus_t cublas##X##dgmm(cublasHandle_t handle, cublasSideMode_t side, int m, int n, const T *A, int lda,      \
                                 const T *x, int incx, T *C, int ldc);

SIMT_CUBLAS_ALL(S, s, float)
SIMT_CUBLAS_ALL(D, d, double)
SIMT_CUBLAS_ALL(C, c, cuComplex)
SIMT_CUBLAS_ALL(Z, z, cuDoubleComplex)
#undef SIMT_CUBLAS_ALL

/* ---- real types only ---- */

#define SIMT_CUBLAS_REAL(X, T)                                                                                       \
  cublasStatus_t cublas##X##dot_v2(cublasHandle_t handle, int n, const T *x, int incx, const T *y, int incy,         \
                                   T *result);                                                                       \
  /* the rotation x = c x + s y, y = c y - s x, and the one that makes b zero */                                     \
  cublasStatus_t cublas##X##rot_v2(cublasHandle_t handle, int n, T *x, int incx, T *y, int incy, const T *c,         \
                                   const T *s);                                                                      \
  cublasStatus_t cublas##X##rotg_v2(cublasHandle_t handle, T *a, T *b, T *c, T *s);                                  \
  /* A = alpha x y' + A; A = alpha x x' + A, one triangle; y = alpha A x + beta y, A symmetric */                    \
  cublasStatus_t cublas##X##ger_v2(cublasHandle_t handle, int m, int n, const T *alpha, const T *x, int incx,        \
                                   const T *y, int incy, T *A, int lda);                                             \
  cublasStatus_t cublas##X##syr_v2(cublasHandle_t handle, cublasFillMode_t uplo, int n, const T *alpha, const T *x,  \
                                   int incx, T *A, int lda);                                                         \
  cublasStatus_t cublas##X##symv_v2(cublasHandle_t handle, cublasFillMode_t uplo, int n, const T *alpha, const T *A, \
                                    int lda, const T *x, int incx, const T *beta, T *y, int incy);

SIMT_CUBLAS_REAL(S, float)
SIMT_CUBLAS_REAL(D, double)
#undef SIMT_CUBLAS_REAL

/* ---- complex types only ---- */

#define SIMT_CUBLAS_COMPLEX(X, T)                                                                              \
  cublasStatus_t cublas##X##dotu_v2(cublasHandle_t handle, int n, const T *x, int incx, const T *y, int incy,  \
                                    T *result);                                                                \
  cublasStatus_t cublas##X##dotc_v2(cublasHandle_t handle, int n, const T *x, int incx, const T *y, int incy,  \
                                    T *result);                                                                \
  cublasStatus_t cublas##X##geru_v2(cublasHandle_t handle, int m, int n, const T *alpha, const T *x, int incx, \
                                    const T *y, int incy, T *A, int lda);                                      \
  cublasStatus_t cublas##X##gerc_v2(cublasHandle_t handle, int m, int n, const T *alpha, const T *x, int incx, \
                                    const T *y, int incy, T *A, int lda);

SIMT_CUBLAS_COMPLEX(C, cuComplex)
SIMT_CUBLAS_COMPLEX(Z, cuDoubleComplex)
#undef SIMT_CUBLAS_COMPLEX

/* Euclidean norm; sum of |re| + |im| */
cublasStatus_t cublasSnrm2_v2(cublasHandle_t handle, int n, const float *x, int incx, float *result);
cublasStatus_t cublasDnrm2_v2(cublasHandle_t handle, int n, const double *x, int incx, double *result);
cublasStatus_t cublasScnrm2_v2(cublasHandle_t handle, int n, const cuComplex *x, int incx, float *result);
cublasStatus_t cublasDznrm2_v2(cublasHandle_t handle, int n, const cuDoubleComplex *x, int incx, double *result);
cublasStatus_t cublasSasum_v2(cublasHandle_t handle, int n, const float *x, int incx, float *result);
cublasStatus_t cublasDasum_v2(cublasHandle_t handle, int n, const double *x, int incx, double *result);
cublasStatus_t cublasScasum_v2(cublasHandle_t handle, int n, const cuComplex *x, int incx, float *result);
cublasStatus_t cublasDzasum_v2(cublasHandle_t handle, int n, const cuDoubleComplex *x, int incx, double *result);
cublasStatus_t cublasCsscal_v2(cublasHandle_t handle, int n, const float *alpha, cuComplex *x, int incx);
cublasStatus_t cublasZdscal_v2(cublasHandle_t handle, int n, const double *alpha, cuDoubleComplex *x, int incx);

/* ---- half, and mixed types ---- */

cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                           int k, const __half *alpha, const __half *A, int lda, const __half *B, int ldb,
                           const __half *beta, __half *C, int ldc);
cublasStatus_t cublasHgemmBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                                  int n, int k, const __half *alpha, const __half *const A[], int lda,
                                  const __half *const B[], int ldb, const __half *beta, __half *const C[], int ldc,
                                  int batch);
cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                         int m, int n, int k, const __half *alpha, const __half *A, int lda,
                                         long long stride_a, const __half *B, int ldb, long long stride_b,
                                         const __half *beta, __half *C, int ldc, long long stride_c, int batch);

/* The types that NVIDIA documents. alpha and beta: half for COMPUTE_16F, int for 32I, double for 64F, else float;
 * complex where the matrices are. */
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void *alpha, const void *A, cudaDataType type_a, int lda, const void *B,
                            cudaDataType type_b, int ldb, const void *beta, void *C, cudaDataType type_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                                   int n, int k, const void *alpha, const void *const A[], cudaDataType type_a, int lda,
                                   const void *const B[], cudaDataType type_b, int ldb, const void *beta,
                                   void *const C[], cudaDataType type_c, int ldc, int batch,
                                   cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                          int m, int n, int k, const void *alpha, const void *A, cudaDataType type_a,
                                          int lda, long long stride_a, const void *B, cudaDataType type_b, int ldb,
                                          long long stride_b, const void *beta, void *C, cudaDataType type_c, int ldc,
                                          long long stride_c, int batch, cublasComputeType_t compute,
                                          cublasGemmAlgo_t algorithm);
cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                             int k, const float *alpha, const void *A, cudaDataType type_a, int lda, const void *B,
                             cudaDataType type_b, int ldb, const float *beta, void *C, cudaDataType type_c, int ldc);

/* x and y of one type, 16F, 16BF, 32F or 64F; alpha's and the result's may be wider. */
cublasStatus_t cublasAxpyEx(cublasHandle_t handle, int n, const void *alpha, cudaDataType type_alpha, const void *x,
                            cudaDataType type_x, int incx, void *y, cudaDataType type_y, int incy,
                            cudaDataType execution);
cublasStatus_t cublasScalEx(cublasHandle_t handle, int n, const void *alpha, cudaDataType type_alpha, void *x,
                            cudaDataType type_x, int incx, cudaDataType execution);
cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void *x, cudaDataType type_x, int incx, const void *y,
                           cudaDataType type_y, int incy, void *result, cudaDataType type_result,
                           cudaDataType execution);
cublasStatus_t cublasNrm2Ex(cublasHandle_t handle, int n, const void *x, cudaDataType type_x, int incx, void *result,
                            cudaDataType type_result, cudaDataType execution);

#ifdef __cplusplus
}

/* Before CUDA 11 the last but one argument was a type: CUDA_R_32F, say. */
static inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                          int m, int n, int k, const void *alpha, const void *A, cudaDataType type_a,
                                          int lda, const void *B, cudaDataType type_b, int ldb, const void *beta,
                                          void *C, cudaDataType type_c, int ldc, cudaDataType compute,
                                          cublasGemmAlgo_t algorithm) {
  return cublasGemmEx(handle, transa, transb, m, n, k, alpha, A, type_a, lda, B, type_b, ldb, beta, C, type_c, ldc,
                      (cublasComputeType_t)compute, algorithm);
}

static inline cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                                 cublasOperation_t transb, int m, int n, int k, const void *alpha,
                                                 const void *const A[], cudaDataType type_a, int lda,
                                                 const void *const B[], cudaDataType type_b, int ldb, const void *beta,
                                                 void *const C[], cudaDataType type_c, int ldc, int batch,
                                                 cudaDataType compute, cublasGemmAlgo_t algorithm) {
  return cublasGemmBatchedEx(handle, transa, transb, m, n, k, alpha, A, type_a, lda, B, type_b, ldb, beta, C, type_c,
                             ldc, batch, (cublasComputeType_t)compute, algorithm);
}

static inline cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                                        cublasOperation_t transb, int m, int n, int k,
                                                        const void *alpha, const void *A, cudaDataType type_a, int lda,
                                                        long long stride_a, const void *B, cudaDataType type_b, int ldb,
                                                        long long stride_b, const void *beta, void *C,
                                                        cudaDataType type_c, int ldc, long long stride_c, int batch,
                                                        cudaDataType compute, cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, type_a, lda, stride_a, B, type_b, ldb,
                                    stride_b, beta, C, type_c, ldc, stride_c, batch, (cublasComputeType_t)compute,
                                    algorithm);
}
#endif

#endif /* CUBLAS_API_H_ */
