/* check_cudnn.h - cuDNN 9, loaded when a program runs, and every call checked.
 *
 *     Error err;
 *     const Cudnn *dnn = cudnn_load(&err);     // NULL: there is no cuDNN; the message says what to install
 *     cudnnHandle_t handle = cudnn_handle(dnn);
 *     CUDNN_CHECK(dnn, dnn->cudnnSetConvolutionGroupCount(convolution, 2));
 *
 * The library is large and not part of the CUDA toolkit, so a program neither carries nor needs it: what was compiled
 * with the header cudnn.h looks for libcudnn.so.9 as the loader does, in LD_LIBRARY_PATH, in the system's folders and
 * beside the toolkit. Where the header was missing cudnn_load() returns NULL and CUDNN_COMPILED is 0.
 *
 * On the CPU this is so, too, for a program that only compares its times with cuDNN's. One that depends on
 * //common:cudnn instead of //common:check_cudnn has the emulation's cuDNN there (simt/dnn), and CUDNN_EMULATED is 1.
 */
#ifndef COMMON_CHECK_CUDNN_H
#define COMMON_CHECK_CUDNN_H

#include "common/error.h"

#ifdef SIMT_REWRITTEN
#ifdef CUDNN_EMULATED /* //common:cudnn */
#define CUDNN_COMPILED 1
#endif
#elif defined(__has_include)
#if __has_include(<cudnn.h>)
#define CUDNN_COMPILED 1
#endif
#endif
#ifndef CUDNN_EMULATED
#define CUDNN_EMULATED 0
#endif
#ifndef CUDNN_COMPILED
#define CUDNN_COMPILED 0
#endif

#if CUDNN_COMPILED

#include <cudnn.h>
#if !CUDNN_EMULATED
#include <dlfcn.h>
#endif

#define CUDNN_FUNCTIONS(DO)                              \
  DO(cudnnGetVersion)                                    \
  DO(cudnnGetErrorString)                                \
  DO(cudnnGetLastErrorString)                            \
  DO(cudnnCreate)                                        \
  DO(cudnnDestroy)                                       \
  DO(cudnnSetStream)                                     \
  DO(cudnnGetStream)                                     \
  DO(cudnnBackendCreateDescriptor)                       \
  DO(cudnnBackendDestroyDescriptor)                      \
  DO(cudnnBackendSetAttribute)                           \
  DO(cudnnBackendGetAttribute)                           \
  DO(cudnnBackendFinalize)                               \
  DO(cudnnBackendExecute)                                \
  DO(cudnnCreateTensorDescriptor)                        \
  DO(cudnnDestroyTensorDescriptor)                       \
  DO(cudnnSetTensor4dDescriptor)                         \
  DO(cudnnSetTensor4dDescriptorEx)                       \
  DO(cudnnGetTensor4dDescriptor)                         \
  DO(cudnnSetTensorNdDescriptor)                         \
  DO(cudnnGetTensorSizeInBytes)                          \
  DO(cudnnCreateFilterDescriptor)                        \
  DO(cudnnDestroyFilterDescriptor)                       \
  DO(cudnnSetFilter4dDescriptor)                         \
  DO(cudnnCreateConvolutionDescriptor)                   \
  DO(cudnnDestroyConvolutionDescriptor)                  \
  DO(cudnnSetConvolution2dDescriptor)                    \
  DO(cudnnSetConvolutionGroupCount)                      \
  DO(cudnnSetConvolutionMathType)                        \
  DO(cudnnGetConvolution2dForwardOutputDim)              \
  DO(cudnnCreateActivationDescriptor)                    \
  DO(cudnnDestroyActivationDescriptor)                   \
  DO(cudnnSetActivationDescriptor)                       \
  DO(cudnnActivationForward)                             \
  DO(cudnnActivationBackward)                            \
  DO(cudnnCreateOpTensorDescriptor)                      \
  DO(cudnnDestroyOpTensorDescriptor)                     \
  DO(cudnnSetOpTensorDescriptor)                         \
  DO(cudnnOpTensor)                                      \
  DO(cudnnAddTensor)                                     \
  DO(cudnnScaleTensor)                                   \
  DO(cudnnSetTensor)                                     \
  DO(cudnnTransformTensor)                               \
  DO(cudnnCreateReduceTensorDescriptor)                  \
  DO(cudnnDestroyReduceTensorDescriptor)                 \
  DO(cudnnSetReduceTensorDescriptor)                     \
  DO(cudnnGetReductionWorkspaceSize)                     \
  DO(cudnnReduceTensor)                                  \
  DO(cudnnDeriveBNTensorDescriptor)                      \
  DO(cudnnBatchNormalizationForwardTraining)             \
  DO(cudnnBatchNormalizationForwardInference)            \
  DO(cudnnBatchNormalizationBackward)                    \
  DO(cudnnSoftmaxForward)                                \
  DO(cudnnSoftmaxBackward)                               \
  DO(cudnnCreatePoolingDescriptor)                       \
  DO(cudnnDestroyPoolingDescriptor)                      \
  DO(cudnnSetPooling2dDescriptor)                        \
  DO(cudnnGetPooling2dForwardOutputDim)                  \
  DO(cudnnPoolingForward)                                \
  DO(cudnnPoolingBackward)                               \
  DO(cudnnCreateDropoutDescriptor)                       \
  DO(cudnnDestroyDropoutDescriptor)                      \
  DO(cudnnSetDropoutDescriptor)                          \
  DO(cudnnDropoutGetStatesSize)                          \
  DO(cudnnDropoutGetReserveSpaceSize)                    \
  DO(cudnnDropoutForward)                                \
  DO(cudnnDropoutBackward)                               \
  DO(cudnnGetConvolutionForwardAlgorithmMaxCount)        \
  DO(cudnnGetConvolutionForwardAlgorithm_v7)             \
  DO(cudnnFindConvolutionForwardAlgorithm)               \
  DO(cudnnFindConvolutionForwardAlgorithmEx)             \
  DO(cudnnGetConvolutionForwardWorkspaceSize)            \
  DO(cudnnGetConvolutionBackwardDataAlgorithmMaxCount)   \
  DO(cudnnGetConvolutionBackwardDataAlgorithm_v7)        \
  DO(cudnnFindConvolutionBackwardDataAlgorithm)          \
  DO(cudnnFindConvolutionBackwardDataAlgorithmEx)        \
  DO(cudnnGetConvolutionBackwardDataWorkspaceSize)       \
  DO(cudnnGetConvolutionBackwardFilterAlgorithmMaxCount) \
  DO(cudnnGetConvolutionBackwardFilterAlgorithm_v7)      \
  DO(cudnnFindConvolutionBackwardFilterAlgorithm)        \
  DO(cudnnFindConvolutionBackwardFilterAlgorithmEx)      \
  DO(cudnnGetConvolutionBackwardFilterWorkspaceSize)     \
  DO(cudnnConvolutionForward)                            \
  DO(cudnnConvolutionBackwardData)                       \
  DO(cudnnConvolutionBackwardFilter)                     \
  DO(cudnnConvolutionBackwardBias)                       \
  DO(cudnnConvolutionBiasActivationForward)

/* Its functions under their own names. */
#define CUDNN_MEMBER(function) decltype(&::function) function;
typedef struct Cudnn {
  CUDNN_FUNCTIONS(CUDNN_MEMBER)
} Cudnn;
#undef CUDNN_MEMBER

#if CUDNN_EMULATED

static inline const Cudnn *cudnn_load(Error *err) {
#define CUDNN_LINKED(function) function,
  static const Cudnn dnn = {CUDNN_FUNCTIONS(CUDNN_LINKED)};
#undef CUDNN_LINKED
  (void)err;
  return &dnn;
}

#else

/* The functions of an opened library; -1 where one is missing. */
static inline int cudnn_functions(Cudnn *dnn, void *library, Error *err) {
#define CUDNN_FIND(function)                                                                           \
  if ((*(void **)&dnn->function = dlsym(library, #function)) == NULL)                                  \
    return error_set(err,                                                                              \
                     "libcudnn.so.9 has no function %s; this program was compiled with the header of " \
                     "cuDNN %d.%d",                                                                    \
                     #function, CUDNN_MAJOR, CUDNN_MINOR);
  CUDNN_FUNCTIONS(CUDNN_FIND)
#undef CUDNN_FIND
  return 0;
}

/* Loads the library; it stays loaded, and a second call finds it there. NULL where there is none. */
static inline const Cudnn *cudnn_load(Error *err) {
  static Cudnn dnn; /* constants, once they are there */
  static const char *const names[] = {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"};
  void *library = NULL;
  char reason[400] = "";
  for (int i = 0; i < 2 && library == NULL; i++) {
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL && i == 0) snprintf(reason, sizeof reason, "%s", dlerror());
  }
  if (library == NULL) {
    error_set(err,
              "cuDNN 9 was not found (%s); install it, or put the folder of libcudnn.so.9 into LD_LIBRARY_PATH: "
              "PyTorch brings one, nvidia/cudnn/lib in its site-packages",
              reason);
    return NULL;
  }
  return cudnn_functions(&dnn, library, err) == 0 ? &dnn : NULL;
}

#endif /* CUDNN_EMULATED */

static inline const char *cudnn_error_advice(cudnnStatus_t status) {
  switch (status / 1000) { /* the category */
    case 1:
      return "look at nvidia-smi: is there a GPU, and is its driver new enough for this cuDNN?";
    case 2:
      return "an argument is out of range: compare it with the descriptors";
    case 3:
      return "no engine can compute this: take another algorithm, layout or data type";
    case 4:
      return "the library failed inside: the GPU's memory may be full";
    case 5:
      return "a kernel failed, this one or one launched before: run compute-sanitizer";
    default:
      return "look the status up in the cuDNN manual";
  }
}

/* The sentence that cuDNN kept about the last refusal, after ": "; "" where it has none. The CPU's always has one. */
static inline const char *cudnn_reason(const Cudnn *dnn, char *text, size_t size) {
  snprintf(text, size, ": ");
  dnn->cudnnGetLastErrorString(text + 2, size - 2);
  return text[2] != '\0' ? text : "";
}

static inline void cudnn_check(const Cudnn *dnn, cudnnStatus_t status, const char *file, int line, const char *call) {
  char reason[512];
  if (status != CUDNN_STATUS_SUCCESS)
    die("%s:%d: %s failed: %s%s\n  try: %s", file, line, call, dnn->cudnnGetErrorString(status),
        cudnn_reason(dnn, reason, sizeof reason), cudnn_error_advice(status));
}
#define CUDNN_CHECK(dnn, call) cudnn_check(dnn, call, __FILE__, __LINE__, #call)

/* A new handle: cudnnDestroy() ends it. Its kernels go to the stream that <<<...>>> launches to when none is named. */
static inline cudnnHandle_t cudnn_handle(const Cudnn *dnn) {
  cudnnHandle_t handle;
  CUDNN_CHECK(dnn, dnn->cudnnCreate(&handle));
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  CUDNN_CHECK(dnn, dnn->cudnnSetStream(handle, cudaStreamPerThread));
#endif
  return handle;
}

#else

typedef struct Cudnn {
  int unused;
} Cudnn;

static inline const Cudnn *cudnn_load(Error *err) {
#ifdef SIMT_REWRITTEN
  error_set(err, "cuDNN has no version for the CPU, where this program emulates the GPU");
#else
  error_set(err, "this program was compiled without cuDNN: cudnn.h was not found; install cuDNN 9 and build again");
#endif
  return NULL;
}

#endif /* CUDNN_COMPILED */

#endif /* COMMON_CHECK_CUDNN_H */
