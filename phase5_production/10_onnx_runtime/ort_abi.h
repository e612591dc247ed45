/* ort_abi.h - the part of ONNX Runtime's C interface that this course calls, so that a program needs none of its
 * headers to be compiled.
 *
 * The library exports one function, OrtGetApiBase(). It gives a table of function pointers for the version of the
 * interface that one asks for. Later versions append to the table and change nothing before: entry 9 is Run() for ever.
 * So a position and a type are all that a caller must know of a function. Those below are compared with ONNX Runtime's
 * own header by ort_abi_test, where that header is there (third_party/onnxruntime).
 *
 * Every function that can fail returns an OrtStatus, NULL for success, which the caller releases.
 */
#ifndef PHASE5_PRODUCTION_ORT_ABI_H
#define PHASE5_PRODUCTION_ORT_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { ORT_ABI_VERSION = 17 }; /* that is asked for: ONNX Runtime 1.17 (2024) and later have it */

#ifndef ORT_API_VERSION /* ONNX Runtime's own header */
typedef struct OrtApi OrtApi;
typedef struct OrtEnv OrtEnv;
typedef struct OrtStatus OrtStatus;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtIoBinding OrtIoBinding;
typedef struct OrtSession OrtSession;
typedef struct OrtValue OrtValue;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtModelMetadata OrtModelMetadata;
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtCUDAProviderOptionsV2 OrtCUDAProviderOptionsV2;
typedef struct OrtApiBase {
  const OrtApi *(*GetApi)(uint32_t version); /* NULL: the library does not have this version */
  const char *(*GetVersionString)(void);
} OrtApiBase;
typedef enum OrtLoggingLevel { ORT_LOGGING_LEVEL_ERROR = 3, ORT_LOGGING_LEVEL_FATAL = 4 } OrtLoggingLevel;
typedef enum GraphOptimizationLevel {
  ORT_DISABLE_ALL = 0,
  ORT_ENABLE_BASIC = 1,
  ORT_ENABLE_EXTENDED = 2,
  ORT_ENABLE_ALL = 99
} GraphOptimizationLevel;
typedef enum OrtAllocatorType { OrtInvalidAllocator = -1, OrtDeviceAllocator = 0 } OrtAllocatorType;
typedef enum OrtMemType { OrtMemTypeCPUInput = -2, OrtMemTypeDefault = 0 } OrtMemType;
typedef enum OrtErrorCode { ORT_OK, ORT_FAIL, ORT_INVALID_ARGUMENT, ORT_NO_SUCHFILE } OrtErrorCode;
typedef enum ONNXTensorElementDataType { /* the numbers of onnx.proto's TensorProto.DataType */
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16
} ONNXTensorElementDataType;
#endif

/* F(position in the table, what it returns, name, arguments) */
#define ORT_FUNCTIONS(F)                                                                                            \
  F(1, OrtErrorCode, GetErrorCode, (const OrtStatus *))                                                             \
  F(2, const char *, GetErrorMessage, (const OrtStatus *))                                                          \
  F(3, OrtStatus *, CreateEnv, (OrtLoggingLevel, const char *name, OrtEnv **))                                      \
  F(7, OrtStatus *, CreateSession, (const OrtEnv *, const char *path, const OrtSessionOptions *, OrtSession **))    \
  F(8, OrtStatus *, CreateSessionFromArray,                                                                         \
    (const OrtEnv *, const void *model, size_t bytes, const OrtSessionOptions *, OrtSession **))                    \
  F(9, OrtStatus *, Run,                                                                                            \
    (OrtSession *, const OrtRunOptions *, const char *const *input_names, const OrtValue *const *inputs,            \
     size_t input_count, const char *const *output_names, size_t output_count, OrtValue **outputs))                 \
  F(10, OrtStatus *, CreateSessionOptions, (OrtSessionOptions **))                                                  \
  F(14, OrtStatus *, EnableProfiling, (OrtSessionOptions *, const char *prefix))                                    \
  F(22, OrtStatus *, SetSessionLogSeverityLevel, (OrtSessionOptions *, int level))                                  \
  F(23, OrtStatus *, SetSessionGraphOptimizationLevel, (OrtSessionOptions *, GraphOptimizationLevel))               \
  F(24, OrtStatus *, SetIntraOpNumThreads, (OrtSessionOptions *, int threads))                                      \
  F(25, OrtStatus *, SetInterOpNumThreads, (OrtSessionOptions *, int threads))                                      \
  F(30, OrtStatus *, SessionGetInputCount, (const OrtSession *, size_t *))                                          \
  F(31, OrtStatus *, SessionGetOutputCount, (const OrtSession *, size_t *))                                         \
  F(33, OrtStatus *, SessionGetInputTypeInfo, (const OrtSession *, size_t, OrtTypeInfo **))                         \
  F(34, OrtStatus *, SessionGetOutputTypeInfo, (const OrtSession *, size_t, OrtTypeInfo **))                        \
  F(36, OrtStatus *, SessionGetInputName, (const OrtSession *, size_t, OrtAllocator *, char **))                    \
  F(37, OrtStatus *, SessionGetOutputName, (const OrtSession *, size_t, OrtAllocator *, char **))                   \
  F(49, OrtStatus *, CreateTensorWithDataAsOrtValue,                                                                \
    (const OrtMemoryInfo *, void *data, size_t bytes, const int64_t *shape, size_t rank, ONNXTensorElementDataType, \
     OrtValue **))                                                                                                  \
  F(51, OrtStatus *, GetTensorMutableData, (OrtValue *, void **))                                                   \
  F(55, OrtStatus *, CastTypeInfoToTensorInfo, (const OrtTypeInfo *, const OrtTensorTypeAndShapeInfo **))           \
  F(60, OrtStatus *, GetTensorElementType, (const OrtTensorTypeAndShapeInfo *, ONNXTensorElementDataType *))        \
  F(61, OrtStatus *, GetDimensionsCount, (const OrtTensorTypeAndShapeInfo *, size_t *))                             \
  F(62, OrtStatus *, GetDimensions, (const OrtTensorTypeAndShapeInfo *, int64_t *, size_t))                         \
  F(63, OrtStatus *, GetSymbolicDimensions, (const OrtTensorTypeAndShapeInfo *, const char **, size_t))             \
  F(65, OrtStatus *, GetTensorTypeAndShape, (const OrtValue *, OrtTensorTypeAndShapeInfo **))                       \
  F(68, OrtStatus *, CreateMemoryInfo, (const char *name, OrtAllocatorType, int id, OrtMemType, OrtMemoryInfo **))  \
  F(76, OrtStatus *, AllocatorFree, (OrtAllocator *, void *))                                                       \
  F(78, OrtStatus *, GetAllocatorWithDefaultOptions, (OrtAllocator **))                                             \
  F(92, void, ReleaseEnv, (OrtEnv *))                                                                               \
  F(93, void, ReleaseStatus, (OrtStatus *))                                                                         \
  F(94, void, ReleaseMemoryInfo, (OrtMemoryInfo *))                                                                 \
  F(95, void, ReleaseSession, (OrtSession *))                                                                       \
  F(96, void, ReleaseValue, (OrtValue *))                                                                           \
  F(98, void, ReleaseTypeInfo, (OrtTypeInfo *))                                                                     \
  F(99, void, ReleaseTensorTypeAndShapeInfo, (OrtTensorTypeAndShapeInfo *))                                         \
  F(100, void, ReleaseSessionOptions, (OrtSessionOptions *))                                                        \
  F(110, OrtStatus *, SessionEndProfiling, (OrtSession *, OrtAllocator *, char **path))                             \
  F(111, OrtStatus *, SessionGetModelMetadata, (const OrtSession *, OrtModelMetadata **))                           \
  F(116, OrtStatus *, ModelMetadataLookupCustomMetadataMap,                                                         \
    (const OrtModelMetadata *, OrtAllocator *, const char *key, char **value))                                      \
  F(118, void, ReleaseModelMetadata, (OrtModelMetadata *))                                                          \
  F(133, OrtStatus *, RunWithBinding, (OrtSession *, const OrtRunOptions *, const OrtIoBinding *))                  \
  F(134, OrtStatus *, CreateIoBinding, (OrtSession *, OrtIoBinding **))                                             \
  F(135, void, ReleaseIoBinding, (OrtIoBinding *))                                                                  \
  F(136, OrtStatus *, BindInput, (OrtIoBinding *, const char *name, const OrtValue *))                              \
  F(137, OrtStatus *, BindOutput, (OrtIoBinding *, const char *name, const OrtValue *))                             \
  F(204, OrtStatus *, SessionOptionsAppendExecutionProvider_CUDA_V2,                                                \
    (OrtSessionOptions *, const OrtCUDAProviderOptionsV2 *))                                                        \
  F(205, OrtStatus *, CreateCUDAProviderOptions, (OrtCUDAProviderOptionsV2 **))                                     \
  F(206, OrtStatus *, UpdateCUDAProviderOptions,                                                                    \
    (OrtCUDAProviderOptionsV2 *, const char *const *keys, const char *const *values, size_t count))                 \
  F(208, void, ReleaseCUDAProviderOptions, (OrtCUDAProviderOptionsV2 *))                                            \
  F(263, OrtStatus *, UpdateCUDAProviderOptionsWithValue, (OrtCUDAProviderOptionsV2 *, const char *key, void *value))

typedef struct OrtFunctions {
#define ORT_POINTER(position, result, name, arguments) result(*name) arguments;
  ORT_FUNCTIONS(ORT_POINTER)
#undef ORT_POINTER
} OrtFunctions;

/* Takes what is needed out of the library's table. */
static inline OrtFunctions ort_functions(const OrtApi *api) {
  void (*const *table)(void) = (void (*const *)(void))api;
  OrtFunctions f;
#define ORT_TAKE(position, result, name, arguments) f.name = (result(*) arguments)table[position];
  ORT_FUNCTIONS(ORT_TAKE)
#undef ORT_TAKE
  return f;
}

#endif /* PHASE5_PRODUCTION_ORT_ABI_H */
