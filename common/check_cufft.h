/* check_cufft.h - every cuFFT call checked.
 *
 *     CUFFT_CHECK(cufftPlan2d(&plan, height, width, CUFFT_R2C));
 */
#ifndef COMMON_CHECK_CUFFT_H
#define COMMON_CHECK_CUFFT_H

#include <cufft.h>

#include "common/error.h"

/* cuFFT has no function for this. */
static inline const char *cufft_error_text(cufftResult status) {
  switch (status) {
    case CUFFT_SUCCESS:
      return "success";
    case CUFFT_INVALID_PLAN:
      return "there is no such plan; make it with cufftPlanMany() or the like, and use it before cufftDestroy()";
    case CUFFT_ALLOC_FAILED:
      return "the GPU's memory is full; use smaller batches, or look at nvidia-smi for other programs";
    case CUFFT_INVALID_TYPE:
      return "the plan is for other types; cufftExecR2C() needs a plan of CUFFT_R2C";
    case CUFFT_INVALID_VALUE:
      return "an argument is out of range";
    case CUFFT_EXEC_FAILED:
      return "a kernel failed, this one or one launched before; run compute-sanitizer";
    case CUFFT_SETUP_FAILED:
      return "CUDA did not start; look at nvidia-smi";
    case CUFFT_INVALID_SIZE:
      return "a size or the batch is not supported; they must be at least 1";
    default:
      return "look the status up in the cuFFT manual";
  }
}

#define CUFFT_CHECK(call)                                                                        \
  do {                                                                                           \
    cufftResult cufft_check_status = (call);                                                     \
    if (cufft_check_status != CUFFT_SUCCESS)                                                     \
      die("%s:%d: %s failed: status %d, %s", __FILE__, __LINE__, #call, (int)cufft_check_status, \
          cufft_error_text(cufft_check_status));                                                 \
  } while (0)

#endif /* COMMON_CHECK_CUFFT_H */
