/* nncuda_call.cuh - what every function of nncuda.h does before and after its kernels. Include it first: it changes
 * what the launchers of the other lessons do when something fails.
 *
 *     int nncuda_softmax_forward(int device, void *stream, int dtype, void *y, const void *x, int64_t rows, ...) {
 *       Call call = call_begin(__func__, device, stream);
 *       CALL_DTYPE(call, dtype);
 *       CALL_SIZE(call, rows, 1, INT_MAX);
 *       CALL_ARRAY(call, y);
 *       CALL_RUN(call, softmax_forward_gpu(...), softmax_forward_cpu(...));
 *       return call.status;
 *     }
 *
 * Of several wrong arguments the first is reported.
 *
 * Failures. A program of this course ends with a sentence: die(), CUDA_CHECK(). A library must not end the program that
 * loaded it. So here both leave their sentence for nncuda_last_error() and jump back into the function of nncuda.h,
 * which returns the status. Launchers hold no memory and no locks: nothing is lost by the jump.
 *
 * Streams. The launchers name no stream: kernel<<<grid, block>>>(...). What a launch without a stream means is decided
 * below them, in nncuda_stream.cu, by `nncuda_thread.stream` of the calling thread.
 */
#ifndef PHASE5_PRODUCTION_NNCUDA_CALL_CUH
#define PHASE5_PRODUCTION_NNCUDA_CALL_CUH

#include <limits.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/check.h"
#include "common/error.h"

/* gcc warns of variables that a jump may bring back to older values. After one nothing is read but `call`, which other
 * files have the address of: it is in memory. */
#pragma GCC diagnostic ignored "-Wclobbered"

#define NNCUDA_BUILDING
#include "phase5_production/05_pytorch/nncuda.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* State of a thread: no other thread sees it */

typedef struct NncudaThread {
  cudaStream_t stream;  /* where launches without a stream go; NULL outside a call */
  const char *function; /* of nncuda.h, that is running */
  int failed;           /* an nncuda_status */
  jmp_buf caught;
  char message[1024], argument[32];
} NncudaThread;

extern __thread NncudaThread nncuda_thread;

/* Leaves the sentence "FUNCTION: ..." and gives the status. argument: its name, or "". */
__attribute__((format(printf, 4, 5))) int nncuda_fail(int status, const char *function, const char *argument,
                                                      const char *format, ...);

/* In place of die() and of a CUDA call that failed: to nncuda_last_error(), and back to CALL_RUN(). */
__attribute__((format(printf, 1, 2), noreturn)) void nncuda_die(const char *format, ...);
__attribute__((noreturn)) void nncuda_die_cuda(cudaError_t error, const char *call, const char *file, int line);

#define die nncuda_die

#undef CUDA_CHECK
#define CUDA_CHECK(call)                                                                                         \
  do {                                                                                                           \
    const cudaError_t nncuda_status_of_call = (call);                                                            \
    if (nncuda_status_of_call != cudaSuccess) nncuda_die_cuda(nncuda_status_of_call, #call, __FILE__, __LINE__); \
  } while (0)

#undef CUDA_CHECK_LAUNCH
#define CUDA_CHECK_LAUNCH()                                                              \
  do {                                                                                   \
    const cudaError_t nncuda_status_of_launch = cudaGetLastError();                      \
    if (nncuda_status_of_launch != cudaSuccess)                                          \
      nncuda_die_cuda(nncuda_status_of_launch, "the kernel launch", __FILE__, __LINE__); \
  } while (0)

/* ---------------------------------------------------------------------------------------------------------------- */
/* One call */

typedef struct Call {
  const char *function;
  void *stream;
  int device, status;
  int back_to; /* the device that was current before; -1: it was the same */
} Call;

static inline Call call_begin(const char *function, int device, void *stream) {
  const Call call = {function, stream, device, NNCUDA_OK, -1};
  return call;
}

/* Makes the device current and its stream the one of all launches; -1: it cannot. */
int call_open(Call *call);
void call_close(Call *call);

/* Only with nncuda_set_checks(1). */
extern int nncuda_checks;
void call_look_up(Call *call, const char *name, const void *pointer);

static inline void call_size(Call *call, const char *name, int64_t value, int64_t least, int64_t most) {
  if (call->status != NNCUDA_OK) return;
  if (value < least || value > most)
    call->status = nncuda_fail(NNCUDA_BAD_ARGUMENT, call->function, name, "%s is %lld; expected %lld to %lld", name,
                               (long long)value, (long long)least, (long long)most);
}

/* A size of a shape: what the caller gives, and where it goes once it is known to be an int. */
typedef struct CallSize {
  const char *name;
  int64_t value, least;
  int *to;
} CallSize;

static inline void call_sizes(Call *call, const CallSize *sizes, size_t count, int most) {
  for (size_t i = 0; i < count; i++) {
    call_size(call, sizes[i].name, sizes[i].value, sizes[i].least, most);
    *sizes[i].to = (int)sizes[i].value;
  }
}

/* `align`: bytes of an element. */
static inline void call_array(Call *call, const char *name, const void *pointer, size_t align) {
  if (call->status != NNCUDA_OK) return;
  if (pointer == NULL)
    call->status = nncuda_fail(NNCUDA_BAD_ARGUMENT, call->function, name, "%s is NULL; expected an array", name);
  else if ((uintptr_t)pointer % align != 0)
    call->status = nncuda_fail(NNCUDA_BAD_ARGUMENT, call->function, name,
                               "%s is %p; expected a multiple of %zu, the bytes of an element", name, pointer, align);
  else if (nncuda_checks)
    call_look_up(call, name, pointer);
}

static inline void call_flag(Call *call, const char *name, int value) { call_size(call, name, value, 0, 1); }

/* A product of sizes that are right by themselves. */
static inline void call_count(Call *call, const char *name, double count, double most) {
  if (call->status == NNCUDA_OK && count > most)
    call->status = nncuda_fail(NNCUDA_BAD_ARGUMENT, call->function, name,
                               "%s is %.0f; expected at most %.0f; call it for parts of the batch", name, count, most);
}

static inline void call_constant(Call *call, const char *name, double value, double expected) {
  if (call->status == NNCUDA_OK && !(value > 0.9999 * expected && value < 1.0001 * expected))
    call->status = nncuda_fail(NNCUDA_UNSUPPORTED, call->function, name,
                               "%s is %g; expected %g, which is a constant of the kernels", name, value, expected);
}

/* Also false for NaN. */
static inline void call_real(Call *call, const char *name, double value, double least, double most) {
  if (call->status == NNCUDA_OK && !(value >= least && value <= most))
    call->status =
        nncuda_fail(NNCUDA_BAD_ARGUMENT, call->function, name, "%s is %g; expected %g to %g", name, value, least, most);
}

/* `also`: NNCUDA_FLOAT32, or another one that there are kernels for, too. */
void call_dtype(Call *call, int dtype, int also);

static inline void call_workspace(Call *call, const void *workspace, size_t bytes, size_t needed) {
  const size_t align = call->device == NNCUDA_CPU ? 64 : 256;
  if (call->status != NNCUDA_OK || needed == 0) return;
  if (bytes < needed)
    call->status = nncuda_fail(NNCUDA_BAD_ARGUMENT, call->function, "workspace_bytes",
                               "workspace_bytes is %zu; expected %zu or more: ask the _workspace() function for the "
                               "same device and sizes",
                               bytes, needed);
  else if (workspace == NULL || (uintptr_t)workspace % align != 0)
    call->status = nncuda_fail(NNCUDA_BAD_ARGUMENT, call->function, "workspace",
                               "workspace is %p; expected memory that begins at a multiple of %zu", workspace, align);
  else if (nncuda_checks)
    call_look_up(call, "workspace", workspace);
}

#define CALL_SIZE(call, n, least, most) call_size(&(call), #n, n, least, most)
#define CALL_FLAG(call, flag) call_flag(&(call), #flag, flag)
#define CALL_ARRAY(call, array) call_array(&(call), #array, array, sizeof(float))
#define CALL_REAL(call, x, least, most) call_real(&(call), #x, x, least, most)
#define CALL_DTYPE(call, dtype) call_dtype(&(call), dtype, NNCUDA_FLOAT32)
/* An array that may be NULL. */
#define CALL_OPTIONAL(call, array)                \
  do {                                            \
    if ((array) != NULL) CALL_ARRAY(call, array); \
  } while (0)

/* One that may be NULL where it has no elements. */
#define CALL_ELEMENTS(call, array, n)                         \
  do {                                                        \
    if ((array) != NULL || (n) != 0) CALL_ARRAY(call, array); \
  } while (0)

/* One of the two statements, if all arguments were right. */
#define CALL_RUN(call, gpu_call, cpu_call)                            \
  do {                                                                \
    if ((call).status != NNCUDA_OK || call_open(&(call)) != 0) break; \
    if (_setjmp(nncuda_thread.caught) == 0) {                         \
      if ((call).device == NNCUDA_CPU) {                              \
        cpu_call;                                                     \
      } else {                                                        \
        gpu_call;                                                     \
      }                                                               \
    }                                                                 \
    call_close(&(call));                                              \
  } while (0)

#endif /* PHASE5_PRODUCTION_NNCUDA_CALL_CUH */
