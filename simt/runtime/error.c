/* error.c - error codes: their texts, the last one of each host thread, and the sticky one of the device. */
#include "runtime.h"

#include "api.h"

typedef struct Description {
  int code;
  const char *name, *text;
} Description;

#define ROW(name, number, text) {number, #name, text},
static const Description descriptions[] = {SIMT_ERRORS(ROW)}; /* by number */
#undef ROW

static int by_code(const void *code, const void *description) {
  return *(const int *)code - ((const Description *)description)->code;
}

static const Description *describe(cudaError_t error) {
  static const Description unknown = {-1, "unrecognized error code", "unrecognized error code"};
  int code = (int)error;
  const Description *found =
      bsearch(&code, descriptions, sizeof descriptions / sizeof descriptions[0], sizeof descriptions[0], by_code);
  return found ? found : &unknown;
}

const char *cudaGetErrorName(cudaError_t error) { return describe(error)->name; }
const char *cudaGetErrorString(cudaError_t error) { return describe(error)->text; }

/* A GPU is lost to its process once a kernel has faulted: every call that has to do with the device answers with that
 * error. cudaGetLastError() asks no device: it tells what a call of this thread has returned, once. So right behind a
 * launch, which returns before its kernel runs, it knows nothing yet. */
static atomic_int sticky;
static __thread cudaError_t last;

/* CUDA_VISIBLE_DEVICES hides the emulated GPU, too: empty, or -1. */
static void look_for_device(void) {
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  if (visible && (!*visible || strcmp(visible, "-1") == 0)) atomic_store(&sticky, cudaErrorNoDevice);
}

cudaError_t simt_error_pending(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT; /* at the first call, as a driver does */
  pthread_once(&once, look_for_device);
  return (cudaError_t)atomic_load(&sticky);
}

cudaError_t simt_error(cudaError_t code) {
  cudaError_t pending = simt_error_pending();
  if (pending != cudaSuccess) code = pending;
  if (code != cudaSuccess) last = code;
  return code;
}

cudaError_t simt_error_sticky(cudaError_t code) {
  int none = cudaSuccess;
  atomic_compare_exchange_strong(&sticky, &none, (int)code);
  return simt_error_pending();
}

void simt_error_reset(void) {
  atomic_store(&sticky, cudaSuccess);
  last = cudaSuccess;
}

cudaError_t cudaPeekAtLastError(void) { return last; }

cudaError_t cudaGetLastError(void) {
  cudaError_t error = last;
  last = cudaSuccess;
  return error;
}
