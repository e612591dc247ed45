/* copies.c - vectors and matrices to the device and back, by the CUDA runtime, which checks pointers and direction. */
#include "routine.h"

static cublasStatus_t copied(cudaError_t error) {
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

static cublasStatus_t copy_matrix(int rows, int columns, int bytes, const void *from, int ld_from, void *to, int ld_to,
                                  enum cudaMemcpyKind kind, int async, cudaStream_t stream) {
  if (rows < 0 || columns < 0 || bytes <= 0 || ld_from <= 0 || ld_to <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (rows == 0 || columns == 0) return CUBLAS_STATUS_SUCCESS;
  if (ld_from < rows || ld_to < rows) return CUBLAS_STATUS_INVALID_VALUE;
  size_t size = (size_t)bytes;
  size_t pitch_to = (size_t)ld_to * size, pitch_from = (size_t)ld_from * size, width = (size_t)rows * size;
  if (async) return copied(cudaMemcpy2DAsync(to, pitch_to, from, pitch_from, width, (size_t)columns, kind, stream));
  return copied(cudaMemcpy2D(to, pitch_to, from, pitch_from, width, (size_t)columns, kind));
}

/* A vector with increments is a matrix with one row. */
static cublasStatus_t copy_vector(int n, int bytes, const void *from, int inc_from, void *to, int inc_to,
                                  enum cudaMemcpyKind kind, int async, cudaStream_t stream) {
  if (n < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (inc_from == 1 && inc_to == 1)
    return copy_matrix(n, 1, bytes, from, n ? n : 1, to, n ? n : 1, kind, async, stream);
  return copy_matrix(1, n, bytes, from, inc_from, to, inc_to, kind, async, stream);
}

cublasStatus_t cublasSetVector(int n, int bytes, const void *host, int inc_host, void *device, int inc_device) {
  return copy_vector(n, bytes, host, inc_host, device, inc_device, cudaMemcpyHostToDevice, 0, NULL);
}

cublasStatus_t cublasGetVector(int n, int bytes, const void *device, int inc_device, void *host, int inc_host) {
  return copy_vector(n, bytes, device, inc_device, host, inc_host, cudaMemcpyDeviceToHost, 0, NULL);
}

cublasStatus_t cublasSetMatrix(int rows, int columns, int bytes, const void *host, int ld_host, void *device,
                               int ld_device) {
  return copy_matrix(rows, columns, bytes, host, ld_host, device, ld_device, cudaMemcpyHostToDevice, 0, NULL);
}

cublasStatus_t cublasGetMatrix(int rows, int columns, int bytes, const void *device, int ld_device, void *host,
                               int ld_host) {
  return copy_matrix(rows, columns, bytes, device, ld_device, host, ld_host, cudaMemcpyDeviceToHost, 0, NULL);
}

cublasStatus_t cublasSetVectorAsync(int n, int bytes, const void *host, int inc_host, void *device, int inc_device,
                                    cudaStream_t stream) {
  return copy_vector(n, bytes, host, inc_host, device, inc_device, cudaMemcpyHostToDevice, 1, stream);
}

cublasStatus_t cublasGetVectorAsync(int n, int bytes, const void *device, int inc_device, void *host, int inc_host,
                                    cudaStream_t stream) {
  return copy_vector(n, bytes, device, inc_device, host, inc_host, cudaMemcpyDeviceToHost, 1, stream);
}

cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int bytes, const void *host, int ld_host, void *device,
                                    int ld_device, cudaStream_t stream) {
  return copy_matrix(rows, columns, bytes, host, ld_host, device, ld_device, cudaMemcpyHostToDevice, 1, stream);
}

cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int bytes, const void *device, int ld_device, void *host,
                                    int ld_host, cudaStream_t stream) {
  return copy_matrix(rows, columns, bytes, device, ld_device, host, ld_host, cudaMemcpyDeviceToHost, 1, stream);
}
