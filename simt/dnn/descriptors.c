/* descriptors.c - tensors, filters, activations, pooling and the small ones. */
#include "dnn.h"

#define CREATE_AND_DESTROY(Name, type)                                        \
  cudnnStatus_t cudnnCreate##Name##Descriptor(type *descriptor) {             \
    if (!descriptor) return bad_here("the place for the descriptor is NULL"); \
    *descriptor = calloc(1, sizeof **descriptor);                             \
    if (*descriptor) return CUDNN_STATUS_SUCCESS;                             \
    return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;                \
  }                                                                           \
  cudnnStatus_t cudnnDestroy##Name##Descriptor(type descriptor) {             \
    free(descriptor);                                                         \
    return CUDNN_STATUS_SUCCESS;                                              \
  }

CREATE_AND_DESTROY(Tensor, cudnnTensorDescriptor_t)
CREATE_AND_DESTROY(Filter, cudnnFilterDescriptor_t)
CREATE_AND_DESTROY(Activation, cudnnActivationDescriptor_t)
CREATE_AND_DESTROY(Pooling, cudnnPoolingDescriptor_t)
CREATE_AND_DESTROY(Convolution, cudnnConvolutionDescriptor_t)

/* Values of an enumeration from 0 on. */
#define IS_ONE_OF(value, last) ((unsigned)(value) <= (unsigned)(last))

/* ---- shapes ---- */

size_t dnn_type_bytes(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_BOOLEAN:
    case CUDNN_DATA_FP8_E4M3:
    case CUDNN_DATA_FP8_E5M2:
      return 1;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64:
      return 8;
    case CUDNN_DATA_INT8x32:
      return 32;
    default:
      return 4;
  }
}

const char *dnn_type_name(cudnnDataType_t type) {
  static const char *const names[] = {"FLOAT",  "DOUBLE",  "HALF",     "INT8",     "INT32",
                                      "INT8x4", "UINT8",   "UINT8x4",  "INT8x32",  "BFLOAT16",
                                      "INT64",  "BOOLEAN", "FP8_E4M3", "FP8_E5M2", "FAST_FLOAT_FOR_FP8"};
  return IS_ONE_OF(type, CUDNN_DATA_FAST_FLOAT_FOR_FP8) ? names[type] : "unknown";
}

const char *dims_text(const Tensor *t, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < t->rank && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%d%s", i ? "," : "(", t->dim[i], i + 1 == t->rank ? ")" : "");
  return text;
}

long long element_count(const Tensor *t) {
  long long count = 1;
  for (int i = 0; i < t->rank; i++) count *= t->dim[i];
  return count;
}

long long span_of(const Tensor *t) {
  long long last = 0;
  for (int i = 0; i < t->rank; i++) last += (long long)(t->dim[i] - 1) * t->stride[i];
  return last + 1;
}

int same_dims(const Tensor *a, const Tensor *b) {
  return a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

int broadcasts(const Tensor *small, const Tensor *large) {
  if (small->rank != large->rank) return 0;
  for (int i = 0; i < small->rank; i++)
    if (small->dim[i] != 1 && small->dim[i] != large->dim[i]) return 0;
  return 1;
}

void pack(Tensor *t) {
  for (int i = t->rank - 1, step = 1; i >= 0; step *= t->dim[i--]) t->stride[i] = step;
}

int is_packed(const Tensor *t) {
  long long step = 1;
  for (int i = t->rank - 1; i >= 0; step *= t->dim[i--])
    if (t->dim[i] > 1 && t->stride[i] != step) return 0;
  return 1;
}

/* Channels last. */
static void pack_nhwc(Tensor *t) {
  int step = t->dim[1];
  t->stride[1] = 1;
  for (int i = t->rank - 1; i > 1; step *= t->dim[i--]) t->stride[i] = step;
  t->stride[0] = step;
}

cudnnStatus_t check_tensor(const char *function, const Tensor *t, int least, int smallest) {
  if (!IS_ONE_OF(t->type, CUDNN_DATA_FAST_FLOAT_FOR_FP8))
    return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function, "dataType is %d, which is no cudnnDataType_t",
                          (int)t->type);
  if (t->rank < least || t->rank > CUDNN_DIM_MAX)
    return refuse_plainly(CUDNN_STATUS_NOT_SUPPORTED, function, "nbDims is %d: it must be %d to %d", t->rank, least,
                          CUDNN_DIM_MAX);
  double bytes = 1;
  for (int i = 0; i < t->rank; i++) {
    if (t->dim[i] < 1)
      return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function, "dimension %d is %d: it must be positive", i, t->dim[i]);
    if (t->stride[i] < smallest)
      return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function, "the stride of dimension %d is %d: it must be positive",
                            i, t->stride[i]);
    bytes *= t->dim[i];
  }
  if (bytes > 2147483647.0 || (smallest && (double)span_of(t) > 2147483647.0))
    return refuse_plainly(CUDNN_STATUS_NOT_SUPPORTED, function, "the tensor has %.0f elements: 2147483647 is the most",
                          bytes);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_format(const char *function, cudnnTensorFormat_t format) {
  if (format == CUDNN_TENSOR_NCHW_VECT_C)
    return refuse_plainly(CUDNN_STATUS_NOT_SUPPORTED, function,
                          "the format NCHW_VECT_C is for int8, which the emulation's cuDNN does not compute in");
  if (!IS_ONE_OF(format, CUDNN_TENSOR_NHWC))
    return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function, "format is %d, which is no cudnnTensorFormat_t",
                          (int)format);
  return CUDNN_STATUS_SUCCESS;
}

/* ---- tensors ---- */

static cudnnStatus_t set_tensor(const char *function, cudnnTensorDescriptor_t desc, const Tensor *t) {
  if (!desc) return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function, "the descriptor is NULL");
  TRY(check_tensor(function, t, 3, 1));
  desc->t = *t;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t desc, cudnnDataType_t type, int rank, const int dim[],
                                         const int stride[]) {
  Tensor t = {.type = type, .rank = rank};
  if (!dim || !stride) return bad_here("dimA or strideA is NULL");
  if (rank > 0 && rank <= CUDNN_DIM_MAX) {
    memcpy(t.dim, dim, (size_t)rank * sizeof *dim);
    memcpy(t.stride, stride, (size_t)rank * sizeof *stride);
  }
  return set_tensor(__func__, desc, &t);
}

static cudnnStatus_t set_tensor_format(const char *function, cudnnTensorDescriptor_t desc, cudnnTensorFormat_t format,
                                       cudnnDataType_t type, int rank, const int *dim) {
  Tensor t = {.type = type, .rank = rank};
  TRY(check_format(function, format));
  if (rank < 3 || rank > CUDNN_DIM_MAX) return set_tensor(function, desc, &t);
  memcpy(t.dim, dim, (size_t)rank * sizeof *dim);
  TRY(check_tensor(function, &t, 3, 0)); /* before products of wrong dimensions */
  if (format == CUDNN_TENSOR_NHWC) {
    pack_nhwc(&t);
  } else {
    pack(&t);
  }
  return set_tensor(function, desc, &t);
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t desc, cudnnTensorFormat_t format,
                                           cudnnDataType_t type, int rank, const int dim[]) {
  if (!dim) return bad_here("dimA is NULL");
  return set_tensor_format(__func__, desc, format, type, rank, dim);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t desc, cudnnTensorFormat_t format, cudnnDataType_t type,
                                         int n, int c, int h, int w) {
  return set_tensor_format(__func__, desc, format, type, 4, (const int[]){n, c, h, w});
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t desc, cudnnDataType_t type, int n, int c, int h,
                                           int w, int n_stride, int c_stride, int h_stride, int w_stride) {
  Tensor t = {.type = type, .rank = 4, .dim = {n, c, h, w}, .stride = {n_stride, c_stride, h_stride, w_stride}};
  return set_tensor(__func__, desc, &t);
}

cudnnStatus_t cudnnGetTensor4dDescriptor(const cudnnTensorDescriptor_t desc, cudnnDataType_t *type, int *n, int *c,
                                         int *h, int *w, int *n_stride, int *c_stride, int *h_stride, int *w_stride) {
  if (!desc) return bad_here("the descriptor is NULL");
  if (desc->t.rank != 4) return not_supported_here("the tensor has %d dimensions, and not 4", desc->t.rank);
  PUT(type, desc->t.type);
  int *const dims[] = {n, c, h, w}, *const strides[] = {n_stride, c_stride, h_stride, w_stride};
  for (int i = 0; i < 4; i++) {
    PUT(dims[i], desc->t.dim[i]);
    PUT(strides[i], desc->t.stride[i]);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t desc, int asked, cudnnDataType_t *type,
                                         int *rank, int dim[], int stride[]) {
  if (!desc) return bad_here("the descriptor is NULL");
  if (asked < 0 || asked > CUDNN_DIM_MAX) return bad_here("nbDimsRequested is %d: at most %d", asked, CUDNN_DIM_MAX);
  PUT(type, desc->t.type);
  PUT(rank, desc->t.rank);
  for (int i = 0; i < asked && i < desc->t.rank; i++) {
    if (dim) dim[i] = desc->t.dim[i];
    if (stride) stride[i] = desc->t.stride[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t desc, size_t *size) {
  if (!desc || !size) return bad_here("the descriptor or the place for the size is NULL");
  *size = desc->t.rank ? (size_t)span_of(&desc->t) * dnn_type_bytes(desc->t.type) : 0;
  return CUDNN_STATUS_SUCCESS;
}

/* ---- filters ---- */

static cudnnStatus_t set_filter(const char *function, cudnnFilterDescriptor_t desc, cudnnDataType_t type,
                                cudnnTensorFormat_t format, int rank, const int *dim) {
  Tensor t = {.type = type, .rank = rank};
  if (!desc || !dim) return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function, "the descriptor or its array is NULL");
  TRY(check_format(function, format));
  if (rank >= 3 && rank <= CUDNN_DIM_MAX) memcpy(t.dim, dim, (size_t)rank * sizeof *dim);
  TRY(check_tensor(function, &t, 3, 0));
  if (format == CUDNN_TENSOR_NHWC) {
    pack_nhwc(&t);
  } else {
    pack(&t);
  }
  desc->t = t;
  desc->format = format;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type, cudnnTensorFormat_t format,
                                         int rank, const int dim[]) {
  return set_filter(__func__, desc, type, format, rank, dim);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type, cudnnTensorFormat_t format,
                                         int k, int c, int h, int w) {
  return set_filter(__func__, desc, type, format, 4, (const int[]){k, c, h, w});
}

cudnnStatus_t cudnnGetFilter4dDescriptor(const cudnnFilterDescriptor_t desc, cudnnDataType_t *type,
                                         cudnnTensorFormat_t *format, int *k, int *c, int *h, int *w) {
  if (!desc) return bad_here("the descriptor is NULL");
  if (desc->t.rank != 4) return not_supported_here("the filter has %d dimensions, and not 4", desc->t.rank);
  PUT(type, desc->t.type);
  PUT(format, desc->format);
  int *const dims[] = {k, c, h, w};
  for (int i = 0; i < 4; i++) PUT(dims[i], desc->t.dim[i]);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t desc, int asked, cudnnDataType_t *type,
                                         cudnnTensorFormat_t *format, int *rank, int dim[]) {
  if (!desc) return bad_here("the descriptor is NULL");
  if (asked < 0 || asked > CUDNN_DIM_MAX) return bad_here("nbDimsRequested is %d: at most %d", asked, CUDNN_DIM_MAX);
  PUT(type, desc->t.type);
  PUT(format, desc->format);
  PUT(rank, desc->t.rank);
  for (int i = 0; dim && i < asked && i < desc->t.rank; i++) dim[i] = desc->t.dim[i];
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterSizeInBytes(const cudnnFilterDescriptor_t desc, size_t *size) {
  if (!desc || !size) return bad_here("the descriptor or the place for the size is NULL");
  *size = desc->t.rank ? (size_t)element_count(&desc->t) * dnn_type_bytes(desc->t.type) : 0;
  return CUDNN_STATUS_SUCCESS;
}

/* ---- activations ---- */

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t desc, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan, double coef) {
  if (!desc) return bad_here("the descriptor is NULL");
  if (!IS_ONE_OF(mode, CUDNN_ACTIVATION_SWISH)) return bad_here("mode is %d, which is no activation", (int)mode);
  if (!IS_ONE_OF(nan, CUDNN_PROPAGATE_NAN)) return bad_here("reluNanOpt is %d: it must be 0 or 1", (int)nan);
  *desc = (struct cudnnActivationStruct){.set = 1, .mode = mode, .nan = nan, .coef = coef, .swish_beta = 1};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetActivationDescriptor(const cudnnActivationDescriptor_t desc, cudnnActivationMode_t *mode,
                                           cudnnNanPropagation_t *nan, double *coef) {
  if (!desc) return bad_here("the descriptor is NULL");
  PUT(mode, desc->mode);
  PUT(nan, desc->nan);
  PUT(coef, desc->coef);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t desc, double beta) {
  if (!desc) return bad_here("the descriptor is NULL");
  desc->swish_beta = beta;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t desc, double *beta) {
  if (!desc || !beta) return bad_here("the descriptor or the place for beta is NULL");
  *beta = desc->swish_beta;
  return CUDNN_STATUS_SUCCESS;
}

/* ---- pooling ---- */

static cudnnStatus_t set_pooling(const char *function, cudnnPoolingDescriptor_t desc, cudnnPoolingMode_t mode,
                                 cudnnNanPropagation_t nan, const int *window, const int *padding, const int *stride) {
  if (!desc) return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function, "the descriptor is NULL");
  if (!IS_ONE_OF(mode, CUDNN_POOLING_MAX_DETERMINISTIC) || !IS_ONE_OF(nan, CUDNN_PROPAGATE_NAN))
    return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function,
                          "mode is %d, maxpoolingNanOpt %d: one is none of its values", (int)mode, (int)nan);
  for (int i = 0; i < 2; i++) {
    if (window[i] < 1 || stride[i] < 1)
      return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function,
                            "the window is %d x %d, the stride %d x %d: positive only", window[0], window[1], stride[0],
                            stride[1]);
    if (padding[i] < 0 || padding[i] >= window[i])
      return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function,
                            "the padding is %d x %d: it must be 0 or more, and less than the window of %d x %d",
                            padding[0], padding[1], window[0], window[1]);
  }
  *desc = (struct cudnnPoolingStruct){.set = 1,
                                      .mode = mode,
                                      .nan = nan,
                                      .window = {window[0], window[1]},
                                      .padding = {padding[0], padding[1]},
                                      .stride = {stride[0], stride[1]}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t desc, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int window_h, int window_w, int padding_h,
                                          int padding_w, int stride_h, int stride_w) {
  return set_pooling(__func__, desc, mode, nan, (const int[]){window_h, window_w}, (const int[]){padding_h, padding_w},
                     (const int[]){stride_h, stride_w});
}

cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t desc, const cudnnPoolingMode_t mode,
                                          const cudnnNanPropagation_t nan, int rank, const int window[],
                                          const int padding[], const int stride[]) {
  if (!window || !padding || !stride) return bad_here("windowDimA, paddingA or strideA is NULL");
  if (rank != 2) return not_supported_here("nbDims is %d; the emulation's cuDNN pools in 2 dimensions", rank);
  return set_pooling(__func__, desc, mode, nan, window, padding, stride);
}

cudnnStatus_t cudnnGetPoolingNdDescriptor(const cudnnPoolingDescriptor_t desc, int asked, cudnnPoolingMode_t *mode,
                                          cudnnNanPropagation_t *nan, int *rank, int window[], int padding[],
                                          int stride[]) {
  if (!desc) return bad_here("the descriptor is NULL");
  if (asked < 0) return bad_here("nbDimsRequested is %d", asked);
  PUT(mode, desc->mode);
  PUT(nan, desc->nan);
  PUT(rank, 2);
  for (int i = 0; i < asked && i < 2; i++) {
    if (window) window[i] = desc->window[i];
    if (padding) padding[i] = desc->padding[i];
    if (stride) stride[i] = desc->stride[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetPooling2dDescriptor(const cudnnPoolingDescriptor_t desc, cudnnPoolingMode_t *mode,
                                          cudnnNanPropagation_t *nan, int *window_h, int *window_w, int *padding_h,
                                          int *padding_w, int *stride_h, int *stride_w) {
  if (!desc) return bad_here("the descriptor is NULL");
  PUT(mode, desc->mode);
  PUT(nan, desc->nan);
  PUT(window_h, desc->window[0]);
  PUT(window_w, desc->window[1]);
  PUT(padding_h, desc->padding[0]);
  PUT(padding_w, desc->padding[1]);
  PUT(stride_h, desc->stride[0]);
  PUT(stride_w, desc->stride[1]);
  return CUDNN_STATUS_SUCCESS;
}
