/* dnn.cuh - for the tests of cuDNN: tensors of any type and layout, on the host as doubles and on the device. Gaps
 * between their elements hold -77, and must stay as they are. */
#ifndef SIMT_TEST_DNN_CUH
#define SIMT_TEST_DNN_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cudnn.h>
#include <math.h>

#include "map.cuh"

#define DNN(call)                                                                            \
  do {                                                                                       \
    const cudnnStatus_t status = (call);                                                     \
    if (status != CUDNN_STATUS_SUCCESS) {                                                    \
      char reason[512] = "";                                                                 \
      cudnnGetLastErrorString(reason, sizeof reason);                                        \
      fail_msg("line %d: %s: %s: %s", __LINE__, #call, cudnnGetErrorString(status), reason); \
    }                                                                                        \
  } while (0)
/* A refusal: of the category, with a sentence (cuDNN itself has none for some). A GPU goes on after another answer, so
 * that one run shows all of them; main() returns how many there were. */
[[maybe_unused]] static int other_answers;
#ifdef SIMT_REWRITTEN
#define HAS_REASONS 1
#define OTHER_ANSWER fail_msg
#else
#define HAS_REASONS 0
#define OTHER_ANSWER other_answers++, print_error
#endif
#define DNN_REFUSES(category, call)                                                                                  \
  do {                                                                                                               \
    const cudnnStatus_t status = (call);                                                                             \
    char reason[512] = "";                                                                                           \
    cudnnGetLastErrorString(reason, sizeof reason);                                                                  \
    if (CUDNN_STATUS_CATEGORY(status) != (category))                                                                 \
      OTHER_ANSWER("line %d: %s gives %s (%s), not the category %d\n", __LINE__, #call, cudnnGetErrorString(status), \
                   reason, (int)(category));                                                                         \
    if (HAS_REASONS && reason[0] == 0) fail_msg("line %d: %s gives no reason", __LINE__, #call);                     \
  } while (0)
#define BAD_PARAM CUDNN_STATUS_BAD_PARAM
#define NOT_SUPPORTED CUDNN_STATUS_NOT_SUPPORTED

static cudnnHandle_t handle;
static const float ONE = 1, ZERO = 0;

typedef enum Layout { NCHW, NHWC, GAPS } Layout; /* GAPS: as NCHW, with room after rows and planes */

static const float GAP = -77;

static double next_random() { /* -1 ... 1 */
  static unsigned state = 7;
  state = state * 1664525u + 1013904223u;
  return (state >> 8) / 8388608.0 - 1;
}

static double rounded(cudnnDataType_t type, double value) {
  if (type == CUDNN_DATA_HALF) return __half2float(__float2half((float)value));
  if (type == CUDNN_DATA_BFLOAT16) return __bfloat162float(__float2bfloat16((float)value));
  return (float)value;
}

/* Half the distance between 1 and the next number. */
static double roundoff(cudnnDataType_t type) {
  return type == CUDNN_DATA_HALF ? 0x1p-11 : type == CUDNN_DATA_BFLOAT16 ? 0x1p-8 : 0x1p-24;
}

struct Array {
  cudnnDataType_t type;
  int dim[4], stride[4];
  std::vector<double> v; /* n,c,h,w without gaps */
  void *d;
  size_t room; /* elements, with gaps */
  cudnnTensorDescriptor_t desc;
  cudnnFilterDescriptor_t filter;

  size_t count() const { return (size_t)dim[0] * dim[1] * dim[2] * dim[3]; }
  double &at(int n, int c, int h, int w) { return v[(((size_t)n * dim[1] + c) * dim[2] + h) * dim[3] + w]; }
  size_t place(size_t i) const { /* of element i of v */
    size_t p = 0;
    for (int a = 3; a >= 0; i /= dim[a--]) p += i % dim[a] * stride[a];
    return p;
  }
};

static void put(std::vector<unsigned char> &bytes, cudnnDataType_t type, size_t i, double value) {
  if (type == CUDNN_DATA_HALF) {
    const __half h = __float2half((float)value);
    memcpy(&bytes[2 * i], &h, 2);
  } else if (type == CUDNN_DATA_BFLOAT16) {
    const __nv_bfloat16 h = __float2bfloat16((float)value);
    memcpy(&bytes[2 * i], &h, 2);
  } else {
    const float f = (float)value;
    memcpy(&bytes[4 * i], &f, 4);
  }
}

static double get(const std::vector<unsigned char> &bytes, cudnnDataType_t type, size_t i) {
  if (type == CUDNN_DATA_FLOAT) {
    float f;
    memcpy(&f, &bytes[4 * i], 4);
    return f;
  }
  __half h;
  __nv_bfloat16 b;
  memcpy(&h, &bytes[2 * i], 2);
  memcpy(&b, &bytes[2 * i], 2);
  return type == CUDNN_DATA_HALF ? __half2float(h) : __bfloat162float(b);
}

static size_t type_size(cudnnDataType_t type) { return type == CUDNN_DATA_FLOAT ? 4 : 2; }

/* The values of v go to the device. */
static void send(Array &a) {
  std::vector<unsigned char> bytes(a.room * type_size(a.type));
  for (size_t i = 0; i < a.room; i++) put(bytes, a.type, i, GAP);
  for (size_t i = 0; i < a.count(); i++) put(bytes, a.type, a.place(i), a.v[i]);
  CHECK(cudaMemcpy(a.d, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
}

/* What the device has; the gaps are checked. */
static std::vector<double> receive(const Array &a) {
  std::vector<unsigned char> bytes(a.room * type_size(a.type));
  std::vector<bool> inside(a.room);
  std::vector<double> values(a.count());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(bytes.data(), a.d, bytes.size(), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < a.count(); i++) {
    values[i] = get(bytes, a.type, a.place(i));
    inside[a.place(i)] = true;
  }
  for (size_t i = 0; i < a.room; i++)
    if (!inside[i] && get(bytes, a.type, i) != GAP)
      fail_msg("element %zu, between those of the tensor, was written", i);
  return values;
}

/* Random values, on the device too. */
static Array array_of(int n, int c, int h, int w, Layout layout = NCHW, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
  Array a;
  const int last[4] = {h * w * c, 1, w * c, c}, row = layout == GAPS ? w + 3 : w,
            plane = row * h + (layout == GAPS ? 5 : 0), planes[4] = {plane * c, plane, row, 1}, dim[4] = {n, c, h, w};
  a.type = type;
  memcpy(a.dim, dim, sizeof dim);
  memcpy(a.stride, layout == NHWC ? last : planes, sizeof last);
  a.room = (size_t)a.stride[0] * n;
  a.v.resize(a.count());
  for (double &v : a.v) v = rounded(type, next_random());
  CHECK(cudaMalloc(&a.d, a.room * type_size(type)));
  send(a);
  DNN(cudnnCreateTensorDescriptor(&a.desc));
  DNN(cudnnSetTensor4dDescriptorEx(a.desc, type, n, c, h, w, a.stride[0], a.stride[1], a.stride[2], a.stride[3]));
  a.filter = NULL;
  if (layout != GAPS) {
    DNN(cudnnCreateFilterDescriptor(&a.filter));
    DNN(cudnnSetFilter4dDescriptor(a.filter, type, layout == NHWC ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, n, c, h, w));
  }
  return a;
}

static void done(Array &a) {
  CHECK(cudaFree(a.d));
  DNN(cudnnDestroyTensorDescriptor(a.desc));
  if (a.filter) DNN(cudnnDestroyFilterDescriptor(a.filter));
}

/* |got - expected| <= tolerance for each; then `expected` is what a later call finds. */
static void compare(const char *what, Array &a, const std::vector<double> &expected, double tolerance) {
  const std::vector<double> got = receive(a);
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < got.size(); i++) {
    const double error = fabs(got[i] - expected[i]);
    if (!(error <= worst) && !isnan(worst)) worst = error, where = i;
  }
  if (!(worst <= tolerance))
    fail_msg("%s: element %zu of %zu is %g, expected %g: error %g, tolerance %g", what, where, got.size(), got[where],
             expected[where], worst, tolerance);
}

static int open_handle(void **state) {
  (void)state;
  return cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS ? 0 : -1;
}
static int close_handle(void **state) {
  (void)state;
  return cudnnDestroy(handle) == CUDNN_STATUS_SUCCESS ? 0 : -1;
}

#endif /* SIMT_TEST_DNN_CUH */
