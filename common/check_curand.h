/* check_curand.h - every cuRAND call checked.
 *
 *     CURAND_CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
 */
#ifndef COMMON_CHECK_CURAND_H
#define COMMON_CHECK_CURAND_H

#include <curand.h>

#include "common/error.h"

/* cuRAND has no function for this. */
static inline const char *curand_error_text(curandStatus_t status) {
  switch (status) {
    case CURAND_STATUS_SUCCESS:
      return "success";
    case CURAND_STATUS_NOT_INITIALIZED:
      return "there is no generator; call curandCreateGenerator() first";
    case CURAND_STATUS_ALLOCATION_FAILED:
      return "the GPU's memory is full; use smaller arrays, or look at nvidia-smi for other programs";
    case CURAND_STATUS_TYPE_ERROR:
      return "this kind of generator cannot do that; Philox and XORWOW are pseudo-random, Sobol is not";
    case CURAND_STATUS_OUT_OF_RANGE:
      return "an argument is out of range";
    case CURAND_STATUS_LENGTH_NOT_MULTIPLE:
      return "normal numbers come in pairs; ask for an even count";
    case CURAND_STATUS_LAUNCH_FAILURE:
    case CURAND_STATUS_PREEXISTING_FAILURE:
      return "a kernel failed, this one or one launched before; run compute-sanitizer";
    case CURAND_STATUS_INITIALIZATION_FAILED:
      return "CUDA did not start; look at nvidia-smi";
    default:
      return "look the status up in the cuRAND manual";
  }
}

#define CURAND_CHECK(call)                                                                        \
  do {                                                                                            \
    curandStatus_t curand_check_status = (call);                                                  \
    if (curand_check_status != CURAND_STATUS_SUCCESS)                                             \
      die("%s:%d: %s failed: status %d, %s", __FILE__, __LINE__, #call, (int)curand_check_status, \
          curand_error_text(curand_check_status));                                                \
  } while (0)

#endif /* COMMON_CHECK_CURAND_H */
