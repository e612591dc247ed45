/* nncuda.cu - version, errors, devices and streams: what nncuda.h has beside the operations. */
#include "phase5_production/05_pytorch/nncuda_call.cuh"

#include <math.h>

__thread NncudaThread nncuda_thread;
int nncuda_checks;

#ifdef SIMT_REWRITTEN
#define NNCUDA_BACKEND "emulated GPU"
#else
#define NNCUDA_TEXT_OF(x) #x
#define NNCUDA_TEXT(x) NNCUDA_TEXT_OF(x)
#define NNCUDA_BACKEND "CUDA " NNCUDA_TEXT(__CUDACC_VER_MAJOR__) "." NNCUDA_TEXT(__CUDACC_VER_MINOR__)
#endif

/* Before any call; a wrong value must not pass for "no". */
__attribute__((constructor)) static void nncuda_read_environment(void) {
  const char *text = getenv("NNCUDA_CHECKS");
  nncuda_checks = text != NULL && text[0] != '\0' && strcmp(text, "0") != 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Versions and errors */

int nncuda_version(void) { return NNCUDA_VERSION; }

const char *nncuda_version_text(void) { return "nncuda 1.0.0, " NNCUDA_BACKEND; }

int nncuda_check_version(int version) {
  if (version / 10000 == NNCUDA_VERSION_MAJOR && version <= NNCUDA_VERSION) return NNCUDA_OK;
  return nncuda_fail(NNCUDA_VERSION_MISMATCH, __func__, "version",
                     "version is %d.%d.%d, and the library that was loaded is %d.%d.%d; expected %s; look for an old "
                     "libnncuda.so.%d on LD_LIBRARY_PATH",
                     version / 10000, version / 100 % 100, version % 100, NNCUDA_VERSION_MAJOR, NNCUDA_VERSION_MINOR,
                     NNCUDA_VERSION_PATCH,
                     version / 10000 == NNCUDA_VERSION_MAJOR ? "a library that is at least as new as its caller"
                                                             : "the same major version",
                     NNCUDA_VERSION_MAJOR);
}

int nncuda_fail(int status, const char *function, const char *argument, const char *format, ...) {
  NncudaThread *t = &nncuda_thread;
  const int used = snprintf(t->message, sizeof t->message, "%s: ", function);
  va_list list;
  va_start(list, format);
  vsnprintf(t->message + used, sizeof t->message - (size_t)used, format, list);
  va_end(list);
  snprintf(t->argument, sizeof t->argument, "%s", argument);
  return status;
}

void nncuda_die(const char *format, ...) {
  char text[sizeof nncuda_thread.message];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  nncuda_thread.failed = nncuda_fail(NNCUDA_UNSUPPORTED, nncuda_thread.function, "", "%s", text);
  longjmp(nncuda_thread.caught, 1);
}

/* The advice of a program, where it is not about one; else what a caller of the library can try. */
static const char *advice_about(cudaError_t error) {
  switch (error) {
    case cudaErrorInvalidResourceHandle:
      return "the stream belongs to another device than the call's, or is destroyed";
    case cudaErrorIllegalAddress:
      return "a pointer is not memory of this device, or an array is shorter than its sizes say: NNCUDA_CHECKS=1 in "
             "the "
             "environment names the call";
    default:
      return cuda_error_advice(error);
  }
}

void nncuda_die_cuda(cudaError_t error, const char *call, const char *file, int line) {
  const char *name = strrchr(file, '/'), *advice = advice_about(error);
  nncuda_thread.failed =
      nncuda_fail(NNCUDA_CUDA, nncuda_thread.function, error == cudaErrorInvalidResourceHandle ? "stream" : "",
                  "%s (%s:%d) failed: %s (%s)%s%s", call, name ? name + 1 : file, line, cudaGetErrorString(error),
                  cudaGetErrorName(error), advice[0] ? "; " : "", advice);
  cudaGetLastError(); /* reported: the program's next call is not to find it again */
  longjmp(nncuda_thread.caught, 1);
}

const char *nncuda_last_error(void) { return nncuda_thread.message; }

const char *nncuda_last_argument(void) { return nncuda_thread.argument; }

const char *nncuda_status_name(int status) {
  static const char *const names[] = {"NNCUDA_OK",        "NNCUDA_BAD_ARGUMENT", "NNCUDA_UNSUPPORTED",
                                      "NNCUDA_NO_DEVICE", "NNCUDA_CUDA",         "NNCUDA_VERSION_MISMATCH"};
  const int count = (int)(sizeof names / sizeof *names);
  return status >= 0 && status < count ? names[status] : "an unknown status";
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* A call */

/* Why `device` cannot be made current. */
static int no_device(const char *function, int device, cudaError_t error) {
  int count = 0;
  if (error == cudaSuccess) error = cudaErrorInvalidDevice;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
  cudaGetLastError();
  if (count == 0)
    return nncuda_fail(NNCUDA_NO_DEVICE, function, "device",
                       "device is %d, and there is no usable GPU (%s); expected %d (NNCUDA_CPU), or look at nvidia-smi",
                       device, cudaGetErrorString(error), NNCUDA_CPU);
  if (device < count && device >= 0)
    return nncuda_fail(NNCUDA_NO_DEVICE, function, "device",
                       "device is %d, which cannot be used: %s; look at nvidia-smi", device, cudaGetErrorString(error));
  return nncuda_fail(NNCUDA_NO_DEVICE, function, "device", "device is %d; expected 0 to %d, or %d (NNCUDA_CPU)", device,
                     count - 1, NNCUDA_CPU);
}

int call_open(Call *call) {
  NncudaThread *t = &nncuda_thread;
  int current = 0;
  if (call->device != NNCUDA_CPU) {
    cudaError_t error = cudaGetDevice(&current);
    if (error == cudaSuccess && current != call->device) {
      error = cudaSetDevice(call->device);
      call->back_to = current;
    }
    if (error != cudaSuccess) {
      call->back_to = -1;
      call->status = no_device(call->function, call->device, error);
      return -1;
    }
    t->stream = call->stream != NULL ? (cudaStream_t)call->stream : cudaStreamLegacy;
  }
  t->function = call->function;
  t->failed = NNCUDA_OK;
  return 0;
}

/* A fault in one of the call's kernels: its pointers are the likely reason. */
static void wait_for_faults(Call *call) {
  enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  const cudaError_t asked = cudaStreamIsCapturing(nncuda_thread.stream, &capture);
  if (asked != cudaSuccess || capture != cudaStreamCaptureStatusNone) {
    cudaGetLastError();
    return;
  }
  const cudaError_t error = cudaStreamSynchronize(nncuda_thread.stream);
  if (error == cudaSuccess) return;
  call->status = nncuda_fail(NNCUDA_CUDA, call->function, "", "a kernel failed: %s (%s); %s", cudaGetErrorString(error),
                             cudaGetErrorName(error), advice_about(error));
}

void call_close(Call *call) {
  NncudaThread *t = &nncuda_thread;
  call->status = t->failed;
  if (nncuda_checks && call->device != NNCUDA_CPU && call->status == NNCUDA_OK) wait_for_faults(call);
  if (call->back_to >= 0) cudaSetDevice(call->back_to);
  t->stream = NULL;
  t->function = NULL;
}

void call_dtype(Call *call, int dtype, int also) {
  static const char *const names[] = {"float32", "float16", "bfloat16", "tf32"};
  if (call->status != NNCUDA_OK || dtype == NNCUDA_FLOAT32 || dtype == also) return;
  if (dtype < 0 || dtype > NNCUDA_TF32)
    call->status = nncuda_fail(NNCUDA_BAD_ARGUMENT, call->function, "dtype",
                               "dtype is %d; expected 0 (float32), 1 (float16), 2 (bfloat16) or 3 (tf32)", dtype);
  else
    call->status = nncuda_fail(NNCUDA_UNSUPPORTED, call->function, "dtype", "dtype is %s; there are kernels for %s%s%s",
                               names[dtype], names[0], also ? " and " : " alone", also ? names[also] : "");
}

void call_look_up(Call *call, const char *name, const void *pointer) {
#ifdef SIMT_REWRITTEN
  (void)call, (void)name, (void)pointer; /* the emulated GPU takes host memory, too */
#else
  if (call->device == NNCUDA_CPU && nncuda_device_count() == 0) return;
  cudaPointerAttributes found;
  if (cudaPointerGetAttributes(&found, pointer) != cudaSuccess) {
    cudaGetLastError();
    return;
  }
  const bool plain = found.type == cudaMemoryTypeUnregistered, device = found.type == cudaMemoryTypeDevice;
  if (call->device == NNCUDA_CPU && device)
    call->status = nncuda_fail(NNCUDA_BAD_ARGUMENT, call->function, name,
                               "%s is memory of GPU %d; expected host memory, since device is %d (NNCUDA_CPU)", name,
                               found.device, NNCUDA_CPU);
  if (call->device != NNCUDA_CPU && plain)
    call->status = nncuda_fail(NNCUDA_BAD_ARGUMENT, call->function, name,
                               "%s is host memory; expected memory of GPU %d", name, call->device);
  if (call->device != NNCUDA_CPU && device && found.device != call->device)
    call->status = nncuda_fail(NNCUDA_BAD_ARGUMENT, call->function, name,
                               "%s is memory of GPU %d; expected memory of GPU %d", name, found.device, call->device);
#endif
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Devices and streams */

int nncuda_set_checks(int on) {
  const int before = __atomic_exchange_n(&nncuda_checks, on != 0, __ATOMIC_RELAXED);
  return before;
}

int nncuda_device_count(void) {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

int nncuda_device_name(int device, char *text, size_t size) {
  Call call = call_begin(__func__, device, NULL);
  if (text == NULL || size == 0)
    return nncuda_fail(NNCUDA_BAD_ARGUMENT, __func__, "text", "text is %p with %zu bytes; expected room for a name",
                       (void *)text, size);
#ifdef SIMT_REWRITTEN
  CALL_RUN(call, snprintf(text, size, NNCUDA_BACKEND), snprintf(text, size, "CPU"));
#else
  cudaDeviceProp properties;
  CALL_RUN(
      call,
      {
        CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
        snprintf(text, size, "%s", properties.name);
      },
      snprintf(text, size, "CPU"));
#endif
  return call.status;
}

int nncuda_stream_create(int device, void **stream) {
  Call call = call_begin(__func__, device, NULL);
  call_array(&call, "stream", stream, sizeof(void *));
  if (call.status == NNCUDA_OK) *stream = NULL;
  CALL_RUN(call, CUDA_CHECK(cudaStreamCreateWithFlags((cudaStream_t *)stream, cudaStreamNonBlocking)), (void)0);
  return call.status;
}

int nncuda_stream_destroy(int device, void *stream) {
  Call call = call_begin(__func__, device, stream);
  CALL_RUN(call, if (stream != NULL) CUDA_CHECK(cudaStreamDestroy((cudaStream_t)stream)), (void)0);
  return call.status;
}

int nncuda_stream_synchronize(int device, void *stream) {
  Call call = call_begin(__func__, device, stream);
  CALL_RUN(call, CUDA_CHECK(cudaStreamSynchronize(nncuda_thread.stream)), (void)0);
  return call.status;
}
