/* check_cublas.h - every cuBLAS call checked.
 *
 *     CUBLAS_CHECK(cublasCreate(&handle));
 */
#ifndef COMMON_CHECK_CUBLAS_H
#define COMMON_CHECK_CUBLAS_H

#include <cublas_v2.h>

#include "common/error.h"

static inline const char *cublas_error_advice(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "call cublasCreate() first; if it was that which failed, look at nvidia-smi";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "the GPU's memory is full: use smaller arrays, or look at nvidia-smi for other programs";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an argument is out of range: cuBLAS counts by columns, so a leading dimension is at least the number of "
             "rows it sees";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "a kernel failed, this one or one launched before: run compute-sanitizer";
    default:
      return "look the status up in the cuBLAS manual";
  }
}

#define CUBLAS_CHECK(call)                                                                                          \
  do {                                                                                                              \
    cublasStatus_t cublas_check_status = (call);                                                                    \
    if (cublas_check_status != CUBLAS_STATUS_SUCCESS)                                                               \
      die("%s:%d: %s failed: %s\n  try: %s", __FILE__, __LINE__, #call, cublasGetStatusString(cublas_check_status), \
          cublas_error_advice(cublas_check_status));                                                                \
  } while (0)

#endif /* COMMON_CHECK_CUBLAS_H */
