/* pooling_cudnn.cuh - cuDNN's pooling, beside ours in the tables of the lesson.
 *
 *     LessonVersion versions[4] = {...};                        // three of ours, and a place for a fourth
 *     const int count = POOLING_CUDNN_ADD(versions, 3, "cuDNN max", pooling_cudnn_max_forward, 0, "");  // 3 or 4
 *
 * cuDNN's max pooling keeps no argmax: forward writes y alone, and backward reads x, y and dy to find the largest
 * element again. So those two are timed and not compared. It has no ceil_mode. */
#ifndef PHASE3_CNN_POOLING_CUDNN_CUH
#define PHASE3_CNN_POOLING_CUDNN_CUH

#include "common/check_cudnn.h"
#include "phase3_cnn/09_pooling/pooling_lesson.cuh"

#if CUDNN_COMPILED

typedef struct PoolingCudnn {
  const Cudnn *dnn; /* NULL: there is none */
  cudnnHandle_t handle;
} PoolingCudnn;

static inline PoolingCudnn *pooling_cudnn(void) {
  static PoolingCudnn cudnn; /* of the program's only thread */
  static int opened;
  Error err;
  if (!opened && (cudnn.dnn = cudnn_load(&err)) != NULL) cudnn.handle = cudnn_handle(cudnn.dnn);
  opened = 1;
  return &cudnn;
}

/* Forward: y from x. Backward: dx from x, y and dy. */
static inline void pooling_cudnn_run(cudnnPoolingMode_t mode, Pool2dShape s, int p, int q, float *y, const float *x,
                                     float *dx, const float *dy) {
  const PoolingCudnn *c = pooling_cudnn();
  const Cudnn *dnn = c->dnn;
  const float one = 1, zero = 0;
  cudnnTensorDescriptor_t in, out;
  cudnnPoolingDescriptor_t pooling;
  CUDNN_CHECK(dnn, dnn->cudnnCreateTensorDescriptor(&in));
  CUDNN_CHECK(dnn, dnn->cudnnCreateTensorDescriptor(&out));
  CUDNN_CHECK(dnn, dnn->cudnnCreatePoolingDescriptor(&pooling));
  CUDNN_CHECK(dnn, dnn->cudnnSetTensor4dDescriptor(in, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, s.n, s.c, s.h, s.w));
  CUDNN_CHECK(dnn, dnn->cudnnSetTensor4dDescriptor(out, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, s.n, s.c, p, q));
  CUDNN_CHECK(dnn, dnn->cudnnSetPooling2dDescriptor(pooling, mode, CUDNN_PROPAGATE_NAN, s.kernel_h, s.kernel_w, s.pad_h,
                                                    s.pad_w, s.stride_h, s.stride_w));
  const cudnnStatus_t status =
      dx == NULL ? dnn->cudnnPoolingForward(c->handle, pooling, &one, in, x, &zero, out, y)
                 : dnn->cudnnPoolingBackward(c->handle, pooling, &one, out, y, out, dy, in, x, &zero, in, dx);
  if (status != CUDNN_STATUS_SUCCESS) /* its manual does not say which windows it takes */
    fprintf(stderr, "cuDNN does not pool windows of %d x %d, so its time says nothing: %s\n", s.kernel_h, s.kernel_w,
            dnn->cudnnGetErrorString(status));
  CUDNN_CHECK(dnn, dnn->cudnnDestroyPoolingDescriptor(pooling));
  CUDNN_CHECK(dnn, dnn->cudnnDestroyTensorDescriptor(out));
  CUDNN_CHECK(dnn, dnn->cudnnDestroyTensorDescriptor(in));
}

/* For its backward pass, which is not compared, dx stands for x and dy for y: the same bytes, but that of y's from the
 * cache. For an average neither is looked at. */
static inline void pooling_cudnn_max_forward(float *y, uint8_t *argmax, const float *x, Pool2dShape s) {
  (void)argmax;
  pooling_cudnn_run(CUDNN_POOLING_MAX_DETERMINISTIC, s, pool2d_out_h(s), pool2d_out_w(s), y, x, NULL, NULL);
}
static inline void pooling_cudnn_max_backward(float *dx, const float *dy, const uint8_t *argmax, Pool2dShape s) {
  (void)argmax;
  pooling_cudnn_run(CUDNN_POOLING_MAX_DETERMINISTIC, s, pool2d_out_h(s), pool2d_out_w(s), (float *)dy, dx, dx, dy);
}

static inline cudnnPoolingMode_t pooling_cudnn_average(bool include_pad) {
  return include_pad ? CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
}
static inline void pooling_cudnn_avg_forward(float *y, const float *x, Pool2dShape s, bool include_pad) {
  pooling_cudnn_run(pooling_cudnn_average(include_pad), s, pool2d_out_h(s), pool2d_out_w(s), y, x, NULL, NULL);
}
static inline void pooling_cudnn_avg_backward(float *dx, const float *dy, Pool2dShape s, bool include_pad) {
  pooling_cudnn_run(pooling_cudnn_average(include_pad), s, pool2d_out_h(s), pool2d_out_w(s), (float *)dy, dx, dx, dy);
}

/* Windows as large as a plane, which is taken for a square where it can be one. The planes as images of up to 1024
 * channels. */
static inline Pool2dShape pooling_cudnn_plane(int planes, int pixels) {
  const int side = (int)lround(sqrt((double)pixels)), h = side * side == pixels ? side : 1, w = pixels / h;
  const Pool2dWindow window = {h, w, 1, 1, 0, 0};
  int channels = planes < 1024 ? planes : 1024;
  while (planes % channels != 0) channels--;
  return pool2d_shape_of(planes / channels, channels, h, w, window);
}
static inline void pooling_cudnn_global_forward(float *y, const float *x, int planes, int pixels) {
  pooling_cudnn_run(pooling_cudnn_average(true), pooling_cudnn_plane(planes, pixels), 1, 1, y, x, NULL, NULL);
}
static inline void pooling_cudnn_global_backward(float *dx, const float *dy, int planes, int pixels) {
  pooling_cudnn_run(pooling_cudnn_average(true), pooling_cudnn_plane(planes, pixels), 1, 1, (float *)dy, dx, dx, dy);
}

static inline LessonVersion pooling_cudnn_version(const char *name, LessonLauncher launch, int compared,
                                                  const char *limit) {
  LessonVersion version = lesson_version_of(name, launch, pooling_library, limit);
  return compared ? lesson_library_version(version) : lesson_peer_version(version);
}

/* Behind the `count` versions of a table; the new count. */
#define POOLING_CUDNN_ADD(versions, count, name, launch, compared, limit) \
  pooling_cudnn_add(versions, count, name, (LessonLauncher)launch, compared, limit)

static inline int pooling_cudnn_add(LessonVersion *versions, int count, const char *name, LessonLauncher launch,
                                    int compared, const char *limit) {
  if (pooling_cudnn()->dnn == NULL) return count;
  versions[count] = pooling_cudnn_version(name, launch, compared, limit);
  return count + 1;
}

#else

#define POOLING_CUDNN_ADD(versions, count, name, launch, compared, limit) (count)

#endif /* CUDNN_COMPILED */

#endif /* PHASE3_CNN_POOLING_CUDNN_CUH */
