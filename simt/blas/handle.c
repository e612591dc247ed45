/* handle.c - the handle, its settings, and the names of the status codes. */
#include "routine.h"

#ifdef __SANITIZE_THREAD__
void openblas_set_num_threads(int threads) __attribute__((weak));
#endif

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
#ifdef __SANITIZE_THREAD__
  if (openblas_set_num_threads) openblas_set_num_threads(1); /* ThreadSanitizer does not see how its threads wait */
#endif
  *handle = NULL;
  if (simt_error_pending() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = calloc(1, sizeof **handle);
  return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

/* As NVIDIA's: waits for the device. */
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  cudaDeviceSynchronize();
  free(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) {
  (void)handle;
  if (!version) return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value) {
  static const int version[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
  if (!value || (unsigned)type > PATCH_LEVEL) return CUBLAS_STATUS_INVALID_VALUE;
  *value = version[type];
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasGetCudartVersion(void) { return CUDART_VERSION; }

#define SETTING(Name, T, field)                                     \
  cublasStatus_t cublasSet##Name(cublasHandle_t handle, T value) {  \
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;              \
    handle->field = value;                                          \
    return CUBLAS_STATUS_SUCCESS;                                   \
  }                                                                 \
  cublasStatus_t cublasGet##Name(cublasHandle_t handle, T *value) { \
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;              \
    if (!value) return CUBLAS_STATUS_INVALID_VALUE;                 \
    *value = handle->field;                                         \
    return CUBLAS_STATUS_SUCCESS;                                   \
  }

SETTING(Stream_v2, cudaStream_t, stream)
SETTING(MathMode, cublasMath_t, math_mode)
SETTING(AtomicsMode, cublasAtomicsMode_t, atomics_mode)
SETTING(SmCountTarget, int, sm_count_target)

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if ((unsigned)mode > CUBLAS_POINTER_MODE_DEVICE) return CUBLAS_STATUS_INVALID_VALUE;
  handle->pointer_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode) {
  if (!mode) return CUBLAS_STATUS_INVALID_VALUE;
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  *mode = handle->pointer_mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes) {
  (void)workspace;
  (void)bytes;
  return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasLoggerConfigure(int on, int to_stdout, int to_stderr, const char *file) {
  (void)on;
  (void)to_stdout;
  (void)to_stderr;
  (void)file;
  return CUBLAS_STATUS_SUCCESS;
}

#define ROW(status, number, text) {status, #status, text},
static const struct {
  cublasStatus_t status;
  const char *name, *text;
} statuses[] = {SIMT_CUBLAS_STATUSES(ROW)};
#undef ROW

const char *cublasGetStatusName(cublasStatus_t status) {
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
    if (statuses[i].status == status) return statuses[i].name;
  }
  return "unrecognized status";
}

const char *cublasGetStatusString(cublasStatus_t status) {
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
    if (statuses[i].status == status) return statuses[i].text;
  }
  return "unrecognized status";
}
