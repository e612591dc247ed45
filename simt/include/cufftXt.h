/* cufftXt.h - of cuFFT's extensions, plans by cudaDataType and cufftXtExec(). C and C++. */
#ifndef CUFFTXT_H_
#define CUFFTXT_H_

#include "cufft.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Float and double, each in one precision; half and bfloat16 give CUFFT_NOT_SUPPORTED. */
cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long int *n, long long int *inembed,
                                long long int istride, long long int idist, cudaDataType inputtype,
                                long long int *onembed, long long int ostride, long long int odist,
                                cudaDataType outputtype, long long int batch, size_t *workSize,
                                cudaDataType executiontype);
cufftResult cufftXtGetSizeMany(cufftHandle plan, int rank, long long int *n, long long int *inembed,
                               long long int istride, long long int idist, cudaDataType inputtype,
                               long long int *onembed, long long int ostride, long long int odist,
                               cudaDataType outputtype, long long int batch, size_t *workSize,
                               cudaDataType executiontype);
/* Any type of plan; direction is for complex ones. */
cufftResult cufftXtExec(cufftHandle plan, void *input, void *output, int direction);

#ifdef __cplusplus
}
#endif

/* The types of what follows, so that the compiler comes to the functions and says that they are not offered. */
typedef enum cufftXtSubFormat_t {
  CUFFT_XT_FORMAT_INPUT = 0,
  CUFFT_XT_FORMAT_OUTPUT = 1,
  CUFFT_XT_FORMAT_INPLACE = 2,
  CUFFT_XT_FORMAT_INPLACE_SHUFFLED = 3,
  CUFFT_XT_FORMAT_1D_INPUT_SHUFFLED = 4,
  CUFFT_XT_FORMAT_DISTRIBUTED_INPUT = 5,
  CUFFT_XT_FORMAT_DISTRIBUTED_OUTPUT = 6,
  CUFFT_FORMAT_UNDEFINED = 7
} cufftXtSubFormat;
typedef enum cufftXtCopyType_t {
  CUFFT_COPY_HOST_TO_DEVICE = 0,
  CUFFT_COPY_DEVICE_TO_HOST = 1,
  CUFFT_COPY_DEVICE_TO_DEVICE = 2,
  CUFFT_COPY_UNDEFINED = 3
} cufftXtCopyType;
typedef enum cufftXtQueryType_t { CUFFT_QUERY_1D_FACTORS = 0, CUFFT_QUERY_UNDEFINED = 1 } cufftXtQueryType;
typedef enum cufftXtWorkAreaPolicy_t {
  CUFFT_WORKAREA_MINIMAL = 0,
  CUFFT_WORKAREA_USER = 1,
  CUFFT_WORKAREA_PERFORMANCE = 2
} cufftXtWorkAreaPolicy;
typedef enum cufftXtCallbackType_t {
  CUFFT_CB_LD_COMPLEX = 0,
  CUFFT_CB_LD_COMPLEX_DOUBLE = 1,
  CUFFT_CB_LD_REAL = 2,
  CUFFT_CB_LD_REAL_DOUBLE = 3,
  CUFFT_CB_ST_COMPLEX = 4,
  CUFFT_CB_ST_COMPLEX_DOUBLE = 5,
  CUFFT_CB_ST_REAL = 6,
  CUFFT_CB_ST_REAL_DOUBLE = 7,
  CUFFT_CB_UNDEFINED = 8
} cufftXtCallbackType;
typedef cufftComplex (*cufftCallbackLoadC)(void *, size_t, void *, void *);
typedef cufftDoubleComplex (*cufftCallbackLoadZ)(void *, size_t, void *, void *);
typedef cufftReal (*cufftCallbackLoadR)(void *, size_t, void *, void *);
typedef cufftDoubleReal (*cufftCallbackLoadD)(void *, size_t, void *, void *);
typedef void (*cufftCallbackStoreC)(void *, size_t, cufftComplex, void *, void *);
typedef void (*cufftCallbackStoreZ)(void *, size_t, cufftDoubleComplex, void *, void *);
typedef void (*cufftCallbackStoreR)(void *, size_t, cufftReal, void *, void *);
typedef void (*cufftCallbackStoreD)(void *, size_t, cufftDoubleReal, void *, void *);
typedef struct cudaXtDesc_t {
  int version, nGPUs, GPUs[64];
  void *data[64];
  size_t size[64];
  void *cudaXtState;
} cudaXtDesc;
typedef struct cudaLibXtDesc_t {
  int version;
  cudaXtDesc *descriptor;
  int library, subFormat;
  void *libDescriptor;
} cudaLibXtDesc;

#define SIMT_CUFFTXT_REASON "the emulation has no cuFFT for several GPUs, no callbacks and no policies"
#define SIMT_CUFFTXT_NOT_OFFERED(name) SIMT_NOT_OFFERED_FUNCTION(cufftResult, name, SIMT_CUFFTXT_REASON)
SIMT_CUFFTXT_NOT_OFFERED(cufftXtSetGPUs);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtMalloc);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtMemcpy);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtFree);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtSetWorkArea);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtSetWorkAreaPolicy);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtQueryPlan);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtExecDescriptor);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtExecDescriptorC2C);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtExecDescriptorR2C);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtExecDescriptorC2R);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtExecDescriptorZ2Z);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtExecDescriptorD2Z);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtExecDescriptorZ2D);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtSetCallback);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtSetJITCallback);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtClearCallback);
SIMT_CUFFTXT_NOT_OFFERED(cufftXtSetCallbackSharedSize);
#undef SIMT_CUFFTXT_NOT_OFFERED

#endif /* CUFFTXT_H_ */
