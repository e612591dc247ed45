/* cudnn_refuse_test.cu - cuDNN: descriptors and calls that are wrong get a status of the right category, and a
 * sentence; and nothing is written. On a GPU: nvcc -lcudnn. */
#include "dnn.cuh"

/* ---- the handle, errors ---- */

static void test_handle(void **state) {
  (void)state;
  int major = 0;
  cudaStream_t stream;
  assert_true(cudnnGetVersion() >= 90000);
  DNN(cudnnGetProperty(MAJOR_VERSION, &major));
  assert_int_equal(major, 9);
  assert_string_equal(cudnnGetErrorString(CUDNN_STATUS_SUCCESS), "CUDNN_STATUS_SUCCESS");
  assert_string_equal(cudnnGetErrorString(CUDNN_STATUS_BAD_PARAM), "CUDNN_STATUS_BAD_PARAM");
  assert_string_equal(cudnnGetErrorString(CUDNN_STATUS_NOT_SUPPORTED_SHAPE), "CUDNN_STATUS_NOT_SUPPORTED_SHAPE");
#ifdef SIMT_REWRITTEN /* cuDNN 9 writes to the place without a look at it: a segmentation fault */
  DNN_REFUSES(BAD_PARAM, cudnnCreate(NULL));
  DNN_REFUSES(BAD_PARAM, cudnnGetStream(handle, NULL));
#endif
  DNN(cudnnGetStream(handle, &stream));
  assert_null(stream);
}

#ifdef SIMT_REWRITTEN
/* The sentence is read once, and cut to the room for it. */
static void test_last_error(void **state) {
  (void)state;
  char message[512], few[8];
  cudnnTensorDescriptor_t t;
  DNN(cudnnCreateTensorDescriptor(&t));
  assert_int_equal(cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, -3, 2, 2),
                   CUDNN_STATUS_BAD_PARAM);
  cudnnGetLastErrorString(message, sizeof message);
  assert_string_equal(message, "cudnnSetTensor4dDescriptor: dimension 1 is -3: it must be positive");
  cudnnGetLastErrorString(message, sizeof message);
  assert_string_equal(message, "");
  assert_int_equal(cudnnSetTensor4dDescriptor(NULL, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 2, 2),
                   CUDNN_STATUS_BAD_PARAM);
  cudnnGetLastErrorString(few, sizeof few);
  assert_string_equal(few, "cudnnSe");
  DNN(cudnnDestroyTensorDescriptor(t));
}
#endif

/* ---- descriptors ---- */

static void test_tensors(void **state) {
  (void)state;
  cudnnTensorDescriptor_t t;
  cudnnFilterDescriptor_t f;
  cudnnDataType_t type;
  cudnnTensorFormat_t format;
  int d[8], s[8], rank;
  size_t bytes;
  DNN(cudnnCreateTensorDescriptor(&t));
  DNN(cudnnCreateFilterDescriptor(&f));
  DNN_REFUSES(BAD_PARAM, cudnnSetTensor4dDescriptor(t, (cudnnTensorFormat_t)9, CUDNN_DATA_FLOAT, 1, 1, 1, 1));
  DNN_REFUSES(BAD_PARAM, cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NCHW, (cudnnDataType_t)99, 1, 1, 1, 1));
  DNN_REFUSES(NOT_SUPPORTED, cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 65536, 65536, 1, 1));
  DNN_REFUSES(BAD_PARAM, cudnnSetFilter4dDescriptor(f, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1, -3, 3));
  DNN_REFUSES(BAD_PARAM, cudnnSetFilter4dDescriptor(f, (cudnnDataType_t)99, CUDNN_TENSOR_NCHW, 1, 1, 3, 3));
  DNN_REFUSES(NOT_SUPPORTED, cudnnSetTensorNdDescriptor(t, CUDNN_DATA_FLOAT, 9, d, s));
  DNN(cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 2, 3, 5, 7));
  DNN(cudnnGetTensor4dDescriptor(t, &type, &d[0], &d[1], &d[2], &d[3], &s[0], &s[1], &s[2], &s[3]));
  assert_true(type == CUDNN_DATA_HALF && d[0] == 2 && d[1] == 3 && d[2] == 5 && d[3] == 7);
  assert_true(s[0] == 105 && s[1] == 1 && s[2] == 21 && s[3] == 3);
  DNN(cudnnGetTensorSizeInBytes(t, &bytes));
  assert_int_equal(bytes, 420);
  DNN(cudnnSetTensor4dDescriptorEx(t, CUDNN_DATA_FLOAT, 2, 1, 3, 4, 100, 50, 10, 2));
  DNN(cudnnGetTensorSizeInBytes(t, &bytes));
  assert_int_equal(bytes, 4 * (100 + 20 + 6 + 1));
  DNN(cudnnGetTensorNdDescriptor(t, 4, &type, &rank, d, s));
  assert_true(rank == 4 && d[3] == 4 && s[2] == 10);
  DNN(cudnnSetFilter4dDescriptor(f, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, 4, 3, 2, 1));
  DNN(cudnnGetFilter4dDescriptor(f, &type, &format, &d[0], &d[1], &d[2], &d[3]));
  assert_true(format == CUDNN_TENSOR_NHWC && d[0] == 4 && d[1] == 3 && d[2] == 2 && d[3] == 1);
  DNN(cudnnGetFilterSizeInBytes(f, &bytes));
  assert_int_equal(bytes, 96);
  DNN(cudnnDestroyTensorDescriptor(t));
  DNN(cudnnDestroyFilterDescriptor(f));
}

static void test_others(void **state) {
  (void)state;
  cudnnConvolutionDescriptor_t c;
  cudnnPoolingDescriptor_t p;
  cudnnActivationDescriptor_t a;
  const cudnnConvolutionMode_t cross = CUDNN_CROSS_CORRELATION;
  const cudnnNanPropagation_t no = CUDNN_NOT_PROPAGATE_NAN;
  DNN(cudnnCreateConvolutionDescriptor(&c));
  DNN(cudnnCreatePoolingDescriptor(&p));
  DNN(cudnnCreateActivationDescriptor(&a));
  DNN_REFUSES(BAD_PARAM, cudnnSetConvolution2dDescriptor(c, -1, 0, 1, 1, 1, 1, cross, CUDNN_DATA_FLOAT));
  DNN_REFUSES(BAD_PARAM, cudnnSetConvolution2dDescriptor(c, 0, 0, 0, 1, 1, 1, cross, CUDNN_DATA_FLOAT));
  DNN_REFUSES(BAD_PARAM, cudnnSetConvolution2dDescriptor(c, 0, 0, 1, 1, 1, 0, cross, CUDNN_DATA_FLOAT));
  DNN_REFUSES(BAD_PARAM,
              cudnnSetConvolution2dDescriptor(c, 0, 0, 1, 1, 1, 1, (cudnnConvolutionMode_t)7, CUDNN_DATA_FLOAT));
  DNN_REFUSES(BAD_PARAM, cudnnSetPooling2dDescriptor(p, CUDNN_POOLING_MAX, no, 2, 2, 0, 0, 0, 2));
  DNN_REFUSES(BAD_PARAM, cudnnSetPooling2dDescriptor(p, CUDNN_POOLING_MAX, no, -2, 2, 0, 0, 2, 2));
  DNN_REFUSES(BAD_PARAM, cudnnSetPooling2dDescriptor(p, (cudnnPoolingMode_t)17, no, 2, 2, 0, 0, 2, 2));
  DNN_REFUSES(BAD_PARAM, cudnnSetActivationDescriptor(a, (cudnnActivationMode_t)40, no, 0));
  DNN(cudnnDestroyConvolutionDescriptor(c));
  DNN(cudnnDestroyPoolingDescriptor(p));
  DNN(cudnnDestroyActivationDescriptor(a));
}

/* ---- calls ---- */

static void test_convolutions(void **state) {
  (void)state;
  Array x = array_of(2, 4, 9, 7), w = array_of(6, 4, 3, 3), y = array_of(2, 6, 9, 7), small = array_of(2, 6, 9, 6);
  Array half = array_of(2, 4, 9, 7, NCHW, CUDNN_DATA_HALF), three = array_of(6, 3, 3, 3), bias = array_of(1, 5, 1, 1);
  cudnnConvolutionDescriptor_t c;
  const cudnnConvolutionFwdAlgo_t implicit = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  size_t bytes;
  int n, k, p, q;
  void *workspace;
  DNN(cudnnCreateConvolutionDescriptor(&c));
  DNN(cudnnSetConvolution2dDescriptor(c, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
#define FORWARD(X, W, C, Y, algorithm, space, size)                                                           \
  cudnnConvolutionForward(handle, &ONE, (X).desc, (X).d, (W).filter, (W).d, C, algorithm, space, size, &ZERO, \
                          (Y).desc, (Y).d)
  DNN_REFUSES(BAD_PARAM, FORWARD(x, w, c, small, implicit, NULL, 0));
  DNN_REFUSES(BAD_PARAM, FORWARD(x, three, c, y, implicit, NULL, 0));    /* 3 channels instead of 4 */
  DNN_REFUSES(NOT_SUPPORTED, FORWARD(half, w, c, y, implicit, NULL, 0)); /* of two types */
  DNN_REFUSES(BAD_PARAM, FORWARD(x, w, (cudnnConvolutionDescriptor_t)NULL, y, implicit, NULL, 0));
  DNN_REFUSES(BAD_PARAM, cudnnConvolutionForward(handle, NULL, x.desc, x.d, w.filter, w.d, c, implicit, NULL, 0, &ZERO,
                                                 y.desc, y.d));
  DNN_REFUSES(BAD_PARAM, cudnnConvolutionForward(handle, &ONE, x.desc, NULL, w.filter, w.d, c, implicit, NULL, 0, &ZERO,
                                                 y.desc, y.d));
  DNN_REFUSES(BAD_PARAM, cudnnGetConvolution2dForwardOutputDim(c, x.desc, three.filter, &n, &k, &p, &q));
  DNN_REFUSES(BAD_PARAM, cudnnConvolutionBackwardBias(handle, &ONE, y.desc, y.d, &ZERO, bias.desc, bias.d));
  /* GEMM keeps a matrix, on a GPU another algorithm may: no workspace, and one that is too small */
  const cudnnConvolutionFwdAlgo_t keeping[] = {
      CUDNN_CONVOLUTION_FWD_ALGO_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, CUDNN_CONVOLUTION_FWD_ALGO_FFT,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM};
  cudnnConvolutionFwdAlgo_t keeps = keeping[0];
  bytes = 0;
  for (int i = 0; i < 4 && bytes == 0; i++) {
    keeps = keeping[i];
    if (cudnnGetConvolutionForwardWorkspaceSize(handle, x.desc, w.filter, c, y.desc, keeps, &bytes) !=
        CUDNN_STATUS_SUCCESS)
      bytes = 0;
  }
  assert_true(bytes > 0);
  CHECK(cudaMalloc(&workspace, bytes));
  DNN_REFUSES(BAD_PARAM, FORWARD(x, w, c, y, keeps, NULL, bytes));
  DNN_REFUSES(BAD_PARAM, FORWARD(x, w, c, y, keeps, workspace, bytes - 1));
  compare("nothing was written", y, y.v, 0);
  DNN(FORWARD(x, w, c, y, keeps, workspace, bytes));
  CHECK(cudaFree(workspace));
  DNN_REFUSES(NOT_SUPPORTED, cudnnGetConvolutionForwardWorkspaceSize(handle, x.desc, w.filter, c, y.desc,
                                                                     CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, &bytes));
  DNN(cudnnSetConvolution2dDescriptor(c, 1, 1, 2, 2, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  Array strided = array_of(2, 6, 5, 4);
  DNN_REFUSES(NOT_SUPPORTED, cudnnGetConvolutionForwardWorkspaceSize(handle, x.desc, w.filter, c, strided.desc,
                                                                     CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, &bytes));
  DNN(cudnnDestroyConvolutionDescriptor(c));
  for (Array *a : {&x, &w, &y, &small, &half, &three, &bias, &strided}) done(*a);
}

static void test_operations(void **state) {
  (void)state;
  Array x = array_of(2, 4, 6, 6), y = array_of(2, 4, 3, 3), wide = array_of(2, 4, 6, 5), row = array_of(1, 4, 2, 1);
  Array scale = array_of(1, 4, 1, 1), z = array_of(2, 4, 6, 6);
  cudnnPoolingDescriptor_t p;
  cudnnActivationDescriptor_t a;
  cudnnTensorDescriptor_t never_set;
  DNN(cudnnCreateTensorDescriptor(&never_set));
  DNN(cudnnCreatePoolingDescriptor(&p));
  DNN(cudnnCreateActivationDescriptor(&a));
  DNN(cudnnSetPooling2dDescriptor(p, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
  DNN(cudnnSetActivationDescriptor(a, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
  Array channels = array_of(2, 3, 3, 3);
  DNN_REFUSES(BAD_PARAM, cudnnPoolingForward(handle, p, &ONE, x.desc, x.d, &ZERO, channels.desc, channels.d));
  DNN_REFUSES(BAD_PARAM, cudnnActivationForward(handle, a, &ONE, x.desc, x.d, &ZERO, wide.desc, wide.d));
  DNN_REFUSES(BAD_PARAM, cudnnAddTensor(handle, &ONE, row.desc, row.d, &ONE, x.desc, x.d)); /* 2 of 6 rows */
  DNN_REFUSES(BAD_PARAM, cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &ONE, x.desc,
                                             x.d, &ZERO, wide.desc, wide.d));
  DNN_REFUSES(BAD_PARAM, cudnnDeriveBNTensorDescriptor(scale.desc, never_set, CUDNN_BATCHNORM_SPATIAL));
#define NORM(parameters, epsilon, saved, inverse)                                                                \
  cudnnBatchNormalizationForwardTraining(handle, CUDNN_BATCHNORM_SPATIAL, &ONE, &ZERO, x.desc, x.d, z.desc, z.d, \
                                         (parameters).desc, scale.d, scale.d, 1, NULL, NULL, epsilon, saved, inverse)
  DNN_REFUSES(BAD_PARAM, NORM(scale, -1e-3, NULL, NULL));
  DNN_REFUSES(BAD_PARAM, NORM(row, 1e-3, NULL, NULL)); /* not (1,4,1,1) */
  DNN_REFUSES(BAD_PARAM, NORM(scale, 1e-3, scale.d, NULL));
#ifdef SIMT_REWRITTEN /* sentences of the emulation's, where cuDNN may crash */
  DNN_REFUSES(BAD_PARAM, cudnnAddTensor(handle, &ONE, never_set, row.d, &ONE, x.desc, x.d));
  DNN_REFUSES(CUDNN_STATUS_NOT_INITIALIZED / 1000 * 1000, cudnnAddTensor(NULL, &ONE, x.desc, x.d, &ONE, x.desc, x.d));
  DNN(cudnnSetTensor4dDescriptor(never_set, CUDNN_TENSOR_NCHW, CUDNN_DATA_DOUBLE, 2, 4, 6, 6));
  DNN_REFUSES(NOT_SUPPORTED, cudnnAddTensor(handle, &ONE, never_set, x.d, &ONE, never_set, x.d));
  DNN(cudnnSetActivationDescriptor(a, CUDNN_ACTIVATION_IDENTITY, CUDNN_NOT_PROPAGATE_NAN, 0));
  DNN_REFUSES(BAD_PARAM, cudnnActivationForward(handle, a, &ONE, x.desc, x.d, &ZERO, z.desc, z.d));
#endif
  compare("nothing was written", z, z.v, 0);
  compare("nor here", x, x.v, 0);
  DNN(cudnnDestroyTensorDescriptor(never_set));
  DNN(cudnnDestroyPoolingDescriptor(p));
  DNN(cudnnDestroyActivationDescriptor(a));
  for (Array *array : {&x, &y, &wide, &row, &scale, &z, &channels}) done(*array);
}

#ifdef SIMT_REWRITTEN
/* What a GPU finds late, or never. It ends the device, so it is the last. */
static void test_pointers(void **state) {
  (void)state;
  Array x = array_of(1, 2, 3, 4), big = array_of(1, 2, 3, 5);
  float host[24] = {0};
  assert_int_equal(cudnnScaleTensor(handle, x.desc, host, &ONE), CUDNN_STATUS_EXECUTION_FAILED);
  assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  CHECK(cudaDeviceReset());
  DNN(cudnnDestroy(handle));
  DNN(cudnnCreate(&handle));
  float *room;
  CHECK(cudaMalloc((void **)&room, 24 * sizeof *room));
  assert_int_equal(cudnnScaleTensor(handle, big.desc, room, &ONE), CUDNN_STATUS_EXECUTION_FAILED);
  CHECK(cudaDeviceReset());
}
#endif

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_handle),       cmocka_unit_test(test_tensors),    cmocka_unit_test(test_others),
      cmocka_unit_test(test_convolutions), cmocka_unit_test(test_operations),
#ifdef SIMT_REWRITTEN
      cmocka_unit_test(test_last_error),   cmocka_unit_test(test_pointers),
#endif
  };
  const int failed = cmocka_run_group_tests(tests, open_handle, close_handle);
  return failed + other_answers;
}
