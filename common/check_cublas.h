/* check_cublas.h - every cuBLAS call checked, and a handle in the right stream.
 *
 *     cublasHandle_t handle = cublas_handle();
 *     CUBLAS_CHECK(cublasSgemm(handle, ...));
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

/* A new handle: cublasDestroy() ends it. Its products go to the stream that <<<...>>> launches to when none is named.
 * For cuBLAS itself that is the legacy default stream, whatever nvcc's --default-stream says: it would not be captured
 * in a graph with our kernels, and is an error while one is captured (common/lesson/time.h). */
static inline cublasHandle_t cublas_handle(void) {
  cublasHandle_t handle;
  CUBLAS_CHECK(cublasCreate(&handle));
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  CUBLAS_CHECK(cublasSetStream(handle, cudaStreamPerThread));
#endif
  return handle;
}

#endif /* COMMON_CHECK_CUBLAS_H */
