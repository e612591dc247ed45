/* dnn_conv2d.cuh - a convolution and its gradients by cuDNN's older interface, the one that every tutorial shows.
 *
 *     x (N,C,H,W)   w (K,C/groups,R,S)   bias (K)   y (N,K,P,Q)
 *
 *     DnnConv2d c;
 *     if (dnn_conv2d_open(&c, &dnn, shape, 1, room, &err) != 0) ...     // shape.n: the largest batch
 *     ... dnn_conv2d_workspace(&c) bytes ...
 *     dnn_conv2d_forward(&c, y, x, w, bias, workspace);
 *     dnn_conv2d_backward_weight(&c, dw, dbias, dy, x, dnn_replace(), workspace);
 *     dnn_conv2d_close(&c);
 *
 * Before the first call five descriptors are made: of x, w and y, of the bias, and of the operation. Then cuDNN is
 * asked which of its algorithms it takes to be fastest for this shape on this GPU (the _v7 calls: a table of
 * heuristics, nothing is run), and dnn_algorithm_pick() takes the first that computes in float32 throughout and gives
 * the same bits each time. A call neither allocates nor waits; another batch size sets N in two descriptors and asks
 * again, and has to do with the workspace that is there (dnn_conv2d_batch()).
 *
 * The math type of the operation is CUDNN_FMA_MATH: float32 multiplied as float32. CUDNN_DEFAULT_MATH would let cuDNN
 * round the inputs to TF32 (10 bits) for tensor cores, without a word. */
#ifndef PHASE5_PRODUCTION_DNN_CONV2D_CUH
#define PHASE5_PRODUCTION_DNN_CONV2D_CUH

#include "phase3_cnn/08_conv2d_duel/conv2d_cudnn.cuh"
#include "phase5_production/01_cudnn_layers/dnn_handle.cuh"

#if CUDNN_COMPILED

enum { DNN_ALGORITHMS = 8, DNN_PASSES = 3 };

typedef struct DnnConv2d {
  Dnn dnn;
  Conv2dShape shape; /* of the descriptors: n is the batch of the last call */
  size_t room;       /* bytes of workspace at most */
  int passes;        /* 1: forward alone; 3: with its gradients */
  cudnnTensorDescriptor_t x, y, bias;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t convolution;
  DnnAlgorithm algorithm[DNN_PASSES]; /* by Conv2dPass */
} DnnConv2d;

static inline void dnn_conv2d_set_batch(const DnnConv2d *c) {
  const Conv2dShape s = c->shape;
  dnn_tensor_set(&c->dnn, c->x, dnn_tensor_nchw(s.n, s.c, s.h, s.w));
  dnn_tensor_set(&c->dnn, c->y, dnn_tensor_nchw(s.n, s.k, conv2d_out_h(s), conv2d_out_w(s)));
}

static inline void dnn_conv2d_set_operation(const DnnConv2d *c) {
  const Cudnn *api = c->dnn.api;
  const Conv2dShape s = c->shape;
  const DnnConvolution d = dnn_convolution(s);
  CUDNN_CHECK(
      api, api->cudnnSetFilter4dDescriptor(c->w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, s.k, s.c / s.groups, s.r, s.s));
  dnn_tensor_set(&c->dnn, c->bias, dnn_tensor_nchw(1, s.k, 1, 1));
  CUDNN_CHECK(api, api->cudnnSetConvolution2dDescriptor(
                       c->convolution, d.padding[0], d.padding[1], d.stride[0], d.stride[1], d.dilation[0],
                       d.dilation[1], d.turned ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  CUDNN_CHECK(api, api->cudnnSetConvolutionGroupCount(c->convolution, s.groups));
  CUDNN_CHECK(api, api->cudnnSetConvolutionMathType(c->convolution, CUDNN_FMA_MATH));
}

/* The three tables of algorithms have three types, of the same members. */
#define DNN_ALGORITHMS_OF(found, count, perf)                                                                      \
  for (int i = 0; i < (count); i++) {                                                                              \
    (found)[i].number = (int)(perf)[i].algo;                                                                       \
    (found)[i].works = (perf)[i].status == CUDNN_STATUS_SUCCESS;                                                   \
    (found)[i].deterministic = (perf)[i].determinism == CUDNN_DETERMINISTIC;                                       \
    (found)[i].rounds =                                                                                            \
        (perf)[i].mathType == CUDNN_TENSOR_OP_MATH || (perf)[i].mathType == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION; \
    (found)[i].memory = (unsigned long)(perf)[i].memory;                                                           \
  }

/* What cuDNN has for a pass, the fastest first by its heuristics; how many. */
static inline int dnn_conv2d_algorithms(const DnnConv2d *c, Conv2dPass pass, DnnAlgorithm *found) {
  const Cudnn *api = c->dnn.api;
  const cudnnHandle_t handle = c->dnn.handle;
  int count = 0;
  if (pass == CONV2D_FORWARD) {
    cudnnConvolutionFwdAlgoPerf_t perf[DNN_ALGORITHMS];
    CUDNN_CHECK(api, api->cudnnGetConvolutionForwardAlgorithm_v7(handle, c->x, c->w, c->convolution, c->y,
                                                                 DNN_ALGORITHMS, &count, perf));
    DNN_ALGORITHMS_OF(found, count, perf);
  } else if (pass == CONV2D_BACKWARD_INPUT) {
    cudnnConvolutionBwdDataAlgoPerf_t perf[DNN_ALGORITHMS];
    CUDNN_CHECK(api, api->cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, c->w, c->y, c->convolution, c->x,
                                                                      DNN_ALGORITHMS, &count, perf));
    DNN_ALGORITHMS_OF(found, count, perf);
  } else {
    cudnnConvolutionBwdFilterAlgoPerf_t perf[DNN_ALGORITHMS];
    CUDNN_CHECK(api, api->cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, c->x, c->y, c->convolution, c->w,
                                                                        DNN_ALGORITHMS, &count, perf));
    DNN_ALGORITHMS_OF(found, count, perf);
  }
  return count;
}

/* For the batch of the descriptors. atomics: where no deterministic algorithm fits into the room, one with atomic
 * additions will do. -1: none will. */
static inline int dnn_conv2d_choose(DnnConv2d *c, int atomics, Error *err) {
  for (int pass = 0; pass < c->passes; pass++) {
    DnnAlgorithm found[DNN_ALGORITHMS];
    const int count = dnn_conv2d_algorithms(c, (Conv2dPass)pass, found);
    int best = dnn_algorithm_pick(found, count, c->room);
    if (best < 0 && atomics) {
      for (int i = 0; i < count; i++) found[i].deterministic = 1;
      best = dnn_algorithm_pick(found, count, c->room);
    }
    if (best < 0)
      return error_set(err,
                       "cuDNN has no algorithm for the %s pass of a convolution of %s that is deterministic, computes "
                       "in float32 and needs at most %.0f MiB of workspace; it proposed %d others",
                       conv2d_pass_name((Conv2dPass)pass), conv2d_shape_text(c->shape).text, (double)c->room / 1048576,
                       count);
    c->algorithm[pass] = found[best];
  }
  return 0;
}

/* Bytes for any of its passes. */
static inline size_t dnn_conv2d_workspace(const DnnConv2d *c) {
  size_t most = 0;
  for (int pass = 0; pass < c->passes; pass++)
    if (c->algorithm[pass].memory > most) most = c->algorithm[pass].memory;
  return most;
}

static inline void dnn_conv2d_close(DnnConv2d *c) {
  const Cudnn *api = c->dnn.api;
  if (api == NULL) return;
  dnn_tensor_close(&c->dnn, c->x);
  dnn_tensor_close(&c->dnn, c->y);
  dnn_tensor_close(&c->dnn, c->bias);
  CUDNN_CHECK(api, api->cudnnDestroyFilterDescriptor(c->w));
  CUDNN_CHECK(api, api->cudnnDestroyConvolutionDescriptor(c->convolution));
  memset(c, 0, sizeof *c);
}

/* trains: the gradients will be asked for. room: bytes of workspace at most. The handle stays the caller's. */
static inline int dnn_conv2d_open(DnnConv2d *c, const Dnn *dnn, Conv2dShape shape, int trains, size_t room,
                                  Error *err) {
  const Cudnn *api = dnn->api;
  memset(c, 0, sizeof *c);
  c->dnn = *dnn;
  c->shape = shape;
  c->room = room;
  c->passes = trains ? DNN_PASSES : 1;
  c->x = dnn_tensor(dnn);
  c->y = dnn_tensor(dnn);
  c->bias = dnn_tensor(dnn);
  CUDNN_CHECK(api, api->cudnnCreateFilterDescriptor(&c->w));
  CUDNN_CHECK(api, api->cudnnCreateConvolutionDescriptor(&c->convolution));
  dnn_conv2d_set_batch(c);
  dnn_conv2d_set_operation(c);
  if (dnn_conv2d_choose(c, 0, err) != 0) {
    dnn_conv2d_close(c);
    return -1;
  }
  c->room = dnn_conv2d_workspace(c); /* what smaller batches have to do with */
  return 0;
}

/* Of the calls that follow: at most that of the first shape. The workspace is as large as that one needed. A smaller
 * batch may want more for its deterministic algorithms; it then gets one with atomic additions, which needs none. */
static inline void dnn_conv2d_batch(DnnConv2d *c, int batch) {
  Error err;
  if (c->shape.n == batch) return;
  c->shape.n = batch;
  dnn_conv2d_set_batch(c);
  if (dnn_conv2d_choose(c, 1, &err) != 0) die("%s", err.message);
}

/* ------------------------------------------------------------------------------------------------------------ calls */

static inline void dnn_conv2d_forward(const DnnConv2d *c, float *y, const float *x, const float *w, const float *bias,
                                      void *workspace) {
  const Cudnn *api = c->dnn.api;
  const DnnAlgorithm *a = &c->algorithm[CONV2D_FORWARD];
  const float one = 1, zero = 0;
  CUDNN_CHECK(api,
              api->cudnnConvolutionForward(c->dnn.handle, &one, c->x, x, c->w, w, c->convolution,
                                           (cudnnConvolutionFwdAlgo_t)a->number, workspace, a->memory, &zero, c->y, y));
  if (bias) CUDNN_CHECK(api, api->cudnnAddTensor(c->dnn.handle, &one, c->bias, bias, &one, c->y, y));
}

static inline void dnn_conv2d_backward_input(const DnnConv2d *c, float *dx, const float *dy, const float *w,
                                             DnnScale scale, void *workspace) {
  const Cudnn *api = c->dnn.api;
  const DnnAlgorithm *a = &c->algorithm[CONV2D_BACKWARD_INPUT];
  CUDNN_CHECK(api, api->cudnnConvolutionBackwardData(c->dnn.handle, &scale.alpha, c->w, w, c->y, dy, c->convolution,
                                                     (cudnnConvolutionBwdDataAlgo_t)a->number, workspace, a->memory,
                                                     &scale.beta, c->x, dx));
}

/* dbias may be NULL. */
static inline void dnn_conv2d_backward_weight(const DnnConv2d *c, float *dw, float *dbias, const float *dy,
                                              const float *x, DnnScale scale, void *workspace) {
  const Cudnn *api = c->dnn.api;
  const DnnAlgorithm *a = &c->algorithm[CONV2D_BACKWARD_WEIGHT];
  CUDNN_CHECK(api, api->cudnnConvolutionBackwardFilter(c->dnn.handle, &scale.alpha, c->x, x, c->y, dy, c->convolution,
                                                       (cudnnConvolutionBwdFilterAlgo_t)a->number, workspace, a->memory,
                                                       &scale.beta, c->w, dw));
  if (dbias)
    CUDNN_CHECK(api,
                api->cudnnConvolutionBackwardBias(c->dnn.handle, &scale.alpha, c->y, dy, &scale.beta, c->bias, dbias));
}

#endif /* CUDNN_COMPILED */

#endif /* PHASE5_PRODUCTION_DNN_CONV2D_CUH */
