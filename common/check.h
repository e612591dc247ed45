/* check.h - every CUDA call and every launch checked, with a message that teaches.
 *
 *     CUDA_CHECK(cudaMalloc(&x, bytes));
 *     relu_forward_kernel<<<grid, block>>>(x, y, n);
 *     CUDA_CHECK_LAUNCH();
 *
 * A launch returns before the kernel runs, so a fault inside it surfaces at a later call. Run the program with
 * CUDA_LAUNCH_BLOCKING=1 and the line that is reported is the line that launched it.
 */
#ifndef COMMON_CHECK_H
#define COMMON_CHECK_H

#include <cuda_runtime_api.h>

#include "common/error.h"

/* What to try for the errors that students really meet; "" when the name says it all. */
static inline const char *cuda_error_advice(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return "the GPU's memory is full: use a smaller batch, or look at nvidia-smi for other programs";
    case cudaErrorInvalidValue:
      return "an argument is out of range: look for a NULL or host pointer, a wrong byte count, a wrong copy direction";
    case cudaErrorInvalidConfiguration:
      return "the launch asks for what the GPU does not have: at most 1024 threads per block, grid sizes above zero, "
             "48 KiB of shared memory unless cudaFuncSetAttribute raised it";
    case cudaErrorIllegalAddress:
      return "a kernel, this one or one launched before, left its arrays or was given a host pointer: check the bounds "
             "test and the index arithmetic, run compute-sanitizer for the kernel's line";
    case cudaErrorMisalignedAddress:
      return "a vector load (float4) needs an address that is a multiple of its size: check the pointer's offset and "
             "the row length";
    case cudaErrorLaunchFailure:
      return "a kernel stopped on a fault: run compute-sanitizer for its line";
    case cudaErrorLaunchOutOfResources:
      return "the block needs more registers or shared memory than an SM has: use fewer threads, or __launch_bounds__";
    case cudaErrorLaunchTimeout:
      return "the driver stops long kernels on a GPU that drives a display: an endless loop, or too much work in one "
             "launch";
    case cudaErrorNoDevice:
      return "no NVIDIA GPU was found: check nvidia-smi and CUDA_VISIBLE_DEVICES, or use --device=cpu";
    case cudaErrorInsufficientDriver:
      return "there is no NVIDIA driver here, or one older than the CUDA toolkit that built this program: check "
             "nvidia-smi, or use --device=cpu";
    case cudaErrorDevicesUnavailable:
      return "another program holds the GPU for itself: look at nvidia-smi";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
      return "the program holds no code for this GPU: build on the machine that has it, or with "
             "--//tools/build:archs=90, say, for compute capability 9.0";
    case cudaErrorAssert:
      return "an assert() in a kernel failed: its message stands above";
    default:
      return "";
  }
}

/* What CUDA_CHECK() ends the program for, so that a function called at exit can tell. Weak: all files share it. */
__attribute__((weak)) cudaError_t cuda_failure;

__attribute__((noreturn)) static inline void cuda_fail(cudaError_t status, const char *call, const char *file, int line,
                                                       const char *advice) {
  cuda_failure = status;
  die("%s:%d: %s failed: %s (%s)%s%s", file, line, call, cudaGetErrorString(status), cudaGetErrorName(status),
      advice[0] ? "\n  try: " : "", advice);
}

/* CUDA 13 calls a block of too many threads an invalid value; CUDA 12 called it an invalid configuration. */
__attribute__((noreturn)) static inline void cuda_fail_launch(cudaError_t status, const char *file, int line) {
  const char *advice = cuda_error_advice(status == cudaErrorInvalidValue ? cudaErrorInvalidConfiguration : status);
  cuda_fail(status, "the kernel launch above", file, line, advice);
}

#define CUDA_CHECK(call)                                                                             \
  do {                                                                                               \
    cudaError_t cuda_check_status = (call);                                                          \
    if (cuda_check_status != cudaSuccess)                                                            \
      cuda_fail(cuda_check_status, #call, __FILE__, __LINE__, cuda_error_advice(cuda_check_status)); \
  } while (0)

/* After `kernel<<<...>>>(...)`: a bad configuration is reported here, a fault inside the kernel at a later call. */
#define CUDA_CHECK_LAUNCH()                                                                        \
  do {                                                                                             \
    cudaError_t cuda_check_status = cudaGetLastError();                                            \
    if (cuda_check_status != cudaSuccess) cuda_fail_launch(cuda_check_status, __FILE__, __LINE__); \
  } while (0)

#endif /* COMMON_CHECK_H */
