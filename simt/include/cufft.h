/* cufft.h - cuFFT's plans and transforms. C and C++.
 *
 * Plans of one to three dimensions of any lengths, batched, with strides, in and out of place: R2C, C2R, C2C and their
 * double versions. Nothing is scaled: a transform and its inverse multiply by the number of elements. Sums are taken in
 * double, so float results are at least as exact as a GPU's, and equal them up to rounding.
 *
 * Data layout, as cuFFT's: without inembed or onembed, data is packed, and the strides are ignored. Real data of an
 * in-place transform is padded to the size of its spectrum: 2 (n/2 + 1) numbers in the last dimension.
 *
 * The input of a C2R transform of two or three dimensions, not in place, holds NaN afterwards: cuFFT overwrites it.
 *
 * A transform of n numbers takes time in proportion to n times the sum of its prime factors: a large prime is slow.
 * cuFFT has another algorithm there.
 *
 * The arguments are checked as cuFFT 12 checks them, and more. A size of 0 is refused in every dimension. Embeds
 * below 1 are refused, but for the first one, which is not used; and real data that does not lie at a multiple of a
 * complex number's size, which NVIDIA's manual requires. A function that does not fit the plan's type, such as
 * cufftExecC2C() for a plan of CUFFT_R2C, is refused; cuFFT executes what the plan is for. What a GPU cannot know, a
 * host pointer or data that leaves its allocation, is reported with the reason: the call gives CUFFT_EXEC_FAILED and
 * CUDA's calls then give cudaErrorIllegalAddress. On a GPU only the latter happens, later.
 */
#ifndef CUFFT_H_
#define CUFFT_H_

#include <stddef.h>

#include "cuComplex.h"
#include "cuda_runtime.h"
#include "library_types.h"
#include "simt/not_offered.h"

#define CUFFTAPI

#define CUFFT_VER_MAJOR 12
#define CUFFT_VER_MINOR 0
#define CUFFT_VER_PATCH 0
#define CUFFT_VER_BUILD 61
#define CUFFT_VERSION (CUFFT_VER_MAJOR * 1000 + CUFFT_VER_MINOR * 100 + CUFFT_VER_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cufftResult_t {
  CUFFT_SUCCESS = 0,
  CUFFT_INVALID_PLAN = 1, /* no plan of this handle, or one that was not made yet */
  CUFFT_ALLOC_FAILED = 2,
  CUFFT_INVALID_TYPE = 3,
  CUFFT_INVALID_VALUE = 4, /* an argument is out of range, or NULL */
  CUFFT_INTERNAL_ERROR = 5,
  CUFFT_EXEC_FAILED = 6, /* the transform failed, or a kernel before it */
  CUFFT_SETUP_FAILED = 7,
  CUFFT_INVALID_SIZE = 8,
  CUFFT_UNALIGNED_DATA = 9,
  CUFFT_INVALID_DEVICE = 11,
  CUFFT_NO_WORKSPACE = 13, /* cufftSetAutoAllocation(plan, 0), but no cufftSetWorkArea() */
  CUFFT_NOT_IMPLEMENTED = 14,
  CUFFT_NOT_SUPPORTED = 16,
  CUFFT_MISSING_DEPENDENCY = 17,
  CUFFT_NVRTC_FAILURE = 18,
  CUFFT_NVJITLINK_FAILURE = 19,
  CUFFT_NVSHMEM_FAILURE = 20
} cufftResult;
#define MAX_CUFFT_ERROR 0x15

typedef enum cufftType_t {
  CUFFT_R2C = 0x2a,
  CUFFT_C2R = 0x2c,
  CUFFT_C2C = 0x29,
  CUFFT_D2Z = 0x6a,
  CUFFT_Z2D = 0x6c,
  CUFFT_Z2Z = 0x69
} cufftType;

typedef enum cufftCompatibility_t { CUFFT_COMPATIBILITY_FFTW_PADDING = 1 } cufftCompatibility;
#define CUFFT_COMPATIBILITY_DEFAULT CUFFT_COMPATIBILITY_FFTW_PADDING

#define CUFFT_FORWARD (-1) /* exp(-2 pi i j k / n) */
#define CUFFT_INVERSE 1

typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;

typedef int cufftHandle;
#define CUFFT_PLAN_NULL (-1)

/* ---- a plan in one call; sizes are those of the real data, the last one varies fastest ---- */

cufftResult cufftPlan1d(cufftHandle *plan, int nx, cufftType type, int batch);
cufftResult cufftPlan2d(cufftHandle *plan, int nx, int ny, cufftType type);
cufftResult cufftPlan3d(cufftHandle *plan, int nx, int ny, int nz, cufftType type);
/* Element (i,j) of transform b is at b * dist + (i * embed[1] + j) * stride, in numbers of its own type. */
cufftResult cufftPlanMany(cufftHandle *plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed,
                          int ostride, int odist, cufftType type, int batch);

/* ---- or in two: create, settings, make ---- */

cufftResult cufftCreate(cufftHandle *plan);
cufftResult cufftMakePlan1d(cufftHandle plan, int nx, cufftType type, int batch, size_t *workSize);
cufftResult cufftMakePlan2d(cufftHandle plan, int nx, int ny, cufftType type, size_t *workSize);
cufftResult cufftMakePlan3d(cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t *workSize);
cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed,
                              int ostride, int odist, cufftType type, int batch, size_t *workSize);
cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long int *n, long long int *inembed,
                                long long int istride, long long int idist, long long int *onembed,
                                long long int ostride, long long int odist, cufftType type, long long int batch,
                                size_t *workSize);
cufftResult cufftDestroy(cufftHandle plan);

/* ---- work areas: the emulation uses none, but asks for as much as one copy of the spectra, so that a program that
 * forgets its work area is found ---- */

cufftResult cufftEstimate1d(int nx, cufftType type, int batch, size_t *workSize);
cufftResult cufftEstimate2d(int nx, int ny, cufftType type, size_t *workSize);
cufftResult cufftEstimate3d(int nx, int ny, int nz, cufftType type, size_t *workSize);
cufftResult cufftEstimateMany(int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride,
                              int odist, cufftType type, int batch, size_t *workSize);
cufftResult cufftGetSize1d(cufftHandle plan, int nx, cufftType type, int batch, size_t *workSize);
cufftResult cufftGetSize2d(cufftHandle plan, int nx, int ny, cufftType type, size_t *workSize);
cufftResult cufftGetSize3d(cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t *workSize);
cufftResult cufftGetSizeMany(cufftHandle plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed,
                             int ostride, int odist, cufftType type, int batch, size_t *workSize);
cufftResult cufftGetSizeMany64(cufftHandle plan, int rank, long long int *n, long long int *inembed,
                               long long int istride, long long int idist, long long int *onembed,
                               long long int ostride, long long int odist, cufftType type, long long int batch,
                               size_t *workSize);
cufftResult cufftGetSize(cufftHandle plan, size_t *workSize);
cufftResult cufftSetWorkArea(cufftHandle plan, void *workArea);
cufftResult cufftSetAutoAllocation(cufftHandle plan, int autoAllocate);

/* ---- transforms, in the order of the plan's stream; in place where input and output are the same ---- */

cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream);
cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *idata, cufftComplex *odata, int direction);
cufftResult cufftExecR2C(cufftHandle plan, cufftReal *idata, cufftComplex *odata);
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *idata, cufftReal *odata);
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex *idata, cufftDoubleComplex *odata, int direction);
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal *idata, cufftDoubleComplex *odata);
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex *idata, cufftDoubleReal *odata);

cufftResult cufftGetVersion(int *version);
cufftResult cufftGetProperty(libraryPropertyType type, int *value);

#ifdef __cplusplus
}
#endif

typedef enum cufftProperty_t {
  NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT = 1,
  NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS = 2
} cufftProperty;

#define SIMT_CUFFT_NOT_OFFERED(name, reason) SIMT_NOT_OFFERED_FUNCTION(cufftResult, name, reason)
SIMT_CUFFT_NOT_OFFERED(cufftSetPlanPropertyInt64, "plans of the emulation have no properties");
SIMT_CUFFT_NOT_OFFERED(cufftGetPlanPropertyInt64, "plans of the emulation have no properties");
SIMT_CUFFT_NOT_OFFERED(cufftResetPlanProperty, "plans of the emulation have no properties");
#undef SIMT_CUFFT_NOT_OFFERED

#endif /* CUFFT_H_ */
