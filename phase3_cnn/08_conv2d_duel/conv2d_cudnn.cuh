/* conv2d_cudnn.cuh - cuDNN's ways to compute a convolution, each by its name: what lesson 8 compares ours with.
 *
 * cuDNN 9 has two interfaces to convolutions, and this header uses both.
 *
 *   The graph API calls a kernel, or a chain of kernels, an engine. Engines have numbers, and notes: whether they use
 *   tensor cores, Winograd's algorithm or a Fourier transform. cudnn_conv2d_heuristic() returns the engines that
 *   cuDNN's heuristics propose, best first; cudnn_conv2d_engine() tries the engine of a number, so that a loop over
 *   all numbers is an exhaustive search.
 *
 *   The older API has algorithms with names: IMPLICIT_GEMM, FFT_TILING, WINOGRAD_NONFUSED. cudnn_conv2d_algorithm()
 *   prepares one, and cudnn_conv2d_fused() the same with bias and ReLU in one call.
 *
 *     CudnnConv2d c;
 *     cudnn_conv2d_open(&c, dnn, handle, shape, CONV2D_FORWARD, CUDNN_CONV2D_FLOAT32);
 *     for (int i = 0; i < c.engines; i++) {
 *       CudnnConv2dPlan plan;
 *       if (cudnn_conv2d_engine(&c, i, &plan) != 0) continue;             // this engine cannot
 *       if (plan.workspace <= room) cudnn_conv2d_run(&plan, arrays);      // arrays: x, w, y and the workspace
 *       cudnn_conv2d_plan_close(&plan);
 *     }
 *     cudnn_conv2d_close(&c);
 *
 * With float32 only engines count that compute in float32 throughout: no tensor cores (TF32), no inputs rounded to
 * fewer bits. float32 arrays are NCHW, bfloat16 arrays NHWC (w as K,R,S,C), summed in float32.
 */
#ifndef PHASE3_CNN_CONV2D_CUDNN_CUH
#define PHASE3_CNN_CONV2D_CUDNN_CUH

#include "common/check.h"
#include "common/check_cudnn.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_shape.cuh"

typedef enum Conv2dPass { CONV2D_FORWARD, CONV2D_BACKWARD_INPUT, CONV2D_BACKWARD_WEIGHT } Conv2dPass;

static inline const char *conv2d_pass_name(Conv2dPass pass) {
  return pass == CONV2D_FORWARD ? "forward" : pass == CONV2D_BACKWARD_INPUT ? "backward_input" : "backward_weight";
}

#if CUDNN_COMPILED

typedef enum CudnnConv2dType { CUDNN_CONV2D_FLOAT32, CUDNN_CONV2D_BFLOAT16 } CudnnConv2dType;

enum { CUDNN_CONV2D_NOTES = 16, CUDNN_CONV2D_ALGORITHMS = 8 };

typedef struct CudnnConv2d {
  const Cudnn *dnn;
  cudnnHandle_t handle;
  Conv2dShape shape;
  Conv2dPass pass;
  CudnnConv2dType type;
  cudnnBackendDescriptor_t x, w, y, convolution, operation, graph;
  int engines; /* numbers of engines, of which many cannot compute this shape */
} CudnnConv2d;

/* Which of the three is written follows from the pass. */
typedef struct CudnnConv2dArrays {
  void *x, *w, *y, *workspace;
  float *bias; /* of a fused call */
} CudnnConv2dArrays;

typedef struct CudnnConv2dPlan {
  const CudnnConv2d *of;
  cudnnBackendDescriptor_t engine, config, plan; /* NULL: an algorithm of the older API */
  int algorithm, fused, separate;
  size_t workspace; /* bytes */
  int number;       /* of the engine */
  char name[160];   /* "engine 34, WINOGRAD_4x4" */
} CudnnConv2dPlan;

/* ------------------------------------------------------------------------------------- descriptors of the graph API */

static inline cudnnBackendDescriptor_t cudnn_descriptor(const Cudnn *dnn, cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t descriptor;
  CUDNN_CHECK(dnn, dnn->cudnnBackendCreateDescriptor(type, &descriptor));
  return descriptor;
}

static inline void cudnn_descriptor_close(const Cudnn *dnn, cudnnBackendDescriptor_t *descriptor) {
  if (*descriptor) dnn->cudnnBackendDestroyDescriptor(*descriptor);
  *descriptor = NULL;
}

static inline void cudnn_set(const Cudnn *dnn, cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  CUDNN_CHECK(dnn, dnn->cudnnBackendSetAttribute(to, name, type, count, values));
}

/* How many values there are; at most `room` are written. 0 where the attribute is not there. */
static inline int64_t cudnn_get(const Cudnn *dnn, cudnnBackendDescriptor_t from, cudnnBackendAttributeName_t name,
                                cudnnBackendAttributeType_t type, int64_t room, void *values) {
  int64_t count = 0;
  if (dnn->cudnnBackendGetAttribute(from, name, type, room, &count, values) != CUDNN_STATUS_SUCCESS) return 0;
  return count < room ? count : room;
}

/* dim as N,C,H,W or K,C,R,S; NHWC lies channels last. */
static inline cudnnBackendDescriptor_t cudnn_conv2d_tensor(const Cudnn *dnn, CudnnConv2dType type, int64_t id,
                                                           int64_t n, int64_t c, int64_t h, int64_t w) {
  const int64_t dim[4] = {n, c, h, w}, planes[4] = {c * h * w, h * w, w, 1}, last[4] = {c * h * w, 1, w * c, c};
  const int64_t alignment = 16;
  const cudnnDataType_t data = type == CUDNN_CONV2D_FLOAT32 ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16;
  cudnnBackendDescriptor_t tensor = cudnn_descriptor(dnn, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  cudnn_set(dnn, tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &data);
  cudnn_set(dnn, tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim);
  cudnn_set(dnn, tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, type == CUDNN_CONV2D_FLOAT32 ? planes : last);
  cudnn_set(dnn, tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
  cudnn_set(dnn, tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
  CUDNN_CHECK(dnn, dnn->cudnnBackendFinalize(tensor));
  return tensor;
}

static inline cudnnBackendDescriptor_t cudnn_conv2d_convolution(const Cudnn *dnn, Conv2dShape s) {
  const int64_t axes = 2, stride[2] = {s.stride_h, s.stride_w}, padding[2] = {s.padding_h, s.padding_w};
  const int64_t dilation[2] = {s.dilation_h, s.dilation_w};
  const cudnnDataType_t sum = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  cudnnBackendDescriptor_t c = cudnn_descriptor(dnn, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  cudnn_set(dnn, c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes);
  cudnn_set(dnn, c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sum);
  cudnn_set(dnn, c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  cudnn_set(dnn, c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, padding);
  cudnn_set(dnn, c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, padding);
  cudnn_set(dnn, c, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
  cudnn_set(dnn, c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
  CUDNN_CHECK(dnn, dnn->cudnnBackendFinalize(c));
  return c;
}

/* What an operation of each pass is called, and its attributes: alpha, beta, the convolution, x, w, y. */
typedef struct CudnnConv2dOperation {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, convolution, x, w, y;
} CudnnConv2dOperation;

static inline CudnnConv2dOperation cudnn_conv2d_operation(Conv2dPass pass) {
  static const CudnnConv2dOperation operation[] = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};
  return operation[pass];
}

/* A graph of one operation. */
static inline void cudnn_conv2d_open(CudnnConv2d *c, const Cudnn *dnn, cudnnHandle_t handle, Conv2dShape s,
                                     Conv2dPass pass, CudnnConv2dType type) {
  const CudnnConv2dOperation o = cudnn_conv2d_operation(pass);
  const float one = 1, zero = 0;
  memset(c, 0, sizeof *c);
  c->dnn = dnn;
  c->handle = handle;
  c->shape = s;
  c->pass = pass;
  c->type = type;
  c->x = cudnn_conv2d_tensor(dnn, type, 'x', s.n, s.c, s.h, s.w);
  c->w = cudnn_conv2d_tensor(dnn, type, 'w', s.k, s.c / s.groups, s.r, s.s);
  c->y = cudnn_conv2d_tensor(dnn, type, 'y', s.n, s.k, conv2d_out_h(s), conv2d_out_w(s));
  c->convolution = cudnn_conv2d_convolution(dnn, s);
  c->operation = cudnn_descriptor(dnn, o.type);
  cudnn_set(dnn, c->operation, o.convolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c->convolution);
  cudnn_set(dnn, c->operation, o.x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c->x);
  cudnn_set(dnn, c->operation, o.w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c->w);
  cudnn_set(dnn, c->operation, o.y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c->y);
  cudnn_set(dnn, c->operation, o.alpha, CUDNN_TYPE_FLOAT, 1, &one);
  cudnn_set(dnn, c->operation, o.beta, CUDNN_TYPE_FLOAT, 1, &zero);
  CUDNN_CHECK(dnn, dnn->cudnnBackendFinalize(c->operation));
  c->graph = cudnn_descriptor(dnn, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  cudnn_set(dnn, c->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c->operation);
  cudnn_set(dnn, c->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  CUDNN_CHECK(dnn, dnn->cudnnBackendFinalize(c->graph));
  int64_t engines = 0;
  cudnn_get(dnn, c->graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, 1, &engines);
  c->engines = (int)engines;
}

static inline void cudnn_conv2d_close(CudnnConv2d *c) {
  cudnnBackendDescriptor_t *const all[] = {&c->graph, &c->operation, &c->convolution, &c->y, &c->w, &c->x};
  for (int i = 0; i < 6; i++) cudnn_descriptor_close(c->dnn, all[i]);
}

/* ------------------------------------------------------------------------------------------------ engines and plans */

/* Whether an engine counts: with float32 none that computes in less; its notes are appended to `name`. */
static inline int cudnn_conv2d_counts(const CudnnConv2d *c, cudnnBackendDescriptor_t engine, char *name, size_t size) {
  static const char *const notes[] = {
      "tensor cores", "inputs rounded", "sums rounded",   "FFT", "not deterministic", "WINOGRAD",
      "WINOGRAD_4x4", "WINOGRAD_6x6",   "WINOGRAD_13x13", NULL};
  cudnnBackendNumericalNote_t note[CUDNN_CONV2D_NOTES];
  const int64_t count =
      cudnn_get(c->dnn, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_CONV2D_NOTES, note);
  for (int64_t i = 0; i < count; i++) {
    const size_t used = strlen(name);
    if (c->type == CUDNN_CONV2D_FLOAT32 && note[i] <= CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) return 0;
    if (note[i] < CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP && note[i] != CUDNN_NUMERICAL_NOTE_WINOGRAD)
      snprintf(name + used, size - used, ", %s", notes[note[i]]);
  }
  cudnnBackendBehaviorNote_t behavior[CUDNN_CONV2D_NOTES];
  const int64_t behaviors = cudnn_get(c->dnn, engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                      CUDNN_CONV2D_NOTES, behavior);
  for (int64_t i = 0; i < behaviors; i++) {
    const size_t used = strlen(name);
    if (behavior[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION)
      snprintf(name + used, size - used, ", compiled at run time");
  }
  return 1;
}

static inline void cudnn_conv2d_plan_close(CudnnConv2dPlan *plan) {
  if (plan->of == NULL) return;
  cudnn_descriptor_close(plan->of->dnn, &plan->plan);
  cudnn_descriptor_close(plan->of->dnn, &plan->config);
  cudnn_descriptor_close(plan->of->dnn, &plan->engine);
}

/* From a configuration, which is finalized; -1 where cuDNN refuses. */
static inline int cudnn_conv2d_finish(CudnnConv2dPlan *plan) {
  const Cudnn *dnn = plan->of->dnn;
  int64_t workspace = 0;
  plan->plan = cudnn_descriptor(dnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  cudnn_set(dnn, plan->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &plan->of->handle);
  cudnn_set(dnn, plan->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &plan->config);
  if (dnn->cudnnBackendFinalize(plan->plan) != CUDNN_STATUS_SUCCESS) return -1;
  cudnn_get(dnn, plan->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspace);
  plan->workspace = (size_t)workspace;
  return 0;
}

static inline int cudnn_conv2d_configure(CudnnConv2dPlan *plan) {
  const Cudnn *dnn = plan->of->dnn;
  plan->config = cudnn_descriptor(dnn, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  cudnn_set(dnn, plan->config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &plan->engine);
  return dnn->cudnnBackendFinalize(plan->config) == CUDNN_STATUS_SUCCESS ? cudnn_conv2d_finish(plan) : -1;
}

/* The engine of this number, with its usual settings; -1 where it does not count or cannot. */
static inline int cudnn_conv2d_engine(const CudnnConv2d *c, int number, CudnnConv2dPlan *plan) {
  const Cudnn *dnn = c->dnn;
  const int64_t index = number;
  memset(plan, 0, sizeof *plan);
  plan->of = c;
  plan->number = number;
  snprintf(plan->name, sizeof plan->name, "engine %d", number);
  plan->engine = cudnn_descriptor(dnn, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnn_set(dnn, plan->engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c->graph);
  if (dnn->cudnnBackendSetAttribute(plan->engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index) ==
          CUDNN_STATUS_SUCCESS &&
      dnn->cudnnBackendFinalize(plan->engine) == CUDNN_STATUS_SUCCESS &&
      cudnn_conv2d_counts(c, plan->engine, plan->name, sizeof plan->name) && cudnn_conv2d_configure(plan) == 0)
    return 0;
  cudnn_conv2d_plan_close(plan);
  return -1;
}

/* A plan of a configuration that the heuristics returned, which it takes over. -1 where it does not count. */
static inline int cudnn_conv2d_proposed(const CudnnConv2d *c, cudnnBackendDescriptor_t config, CudnnConv2dPlan *plan) {
  const Cudnn *dnn = c->dnn;
  int64_t number = -1;
  memset(plan, 0, sizeof *plan);
  plan->of = c;
  plan->config = config;
  plan->engine = cudnn_descriptor(dnn, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  if (cudnn_get(dnn, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &plan->engine) == 1) {
    cudnn_get(dnn, plan->engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &number);
    plan->number = (int)number;
    snprintf(plan->name, sizeof plan->name, "engine %d", plan->number);
    if (cudnn_conv2d_counts(c, plan->engine, plan->name, sizeof plan->name) && cudnn_conv2d_finish(plan) == 0) return 0;
  }
  cudnn_conv2d_plan_close(plan);
  return -1;
}

/* Up to `most` plans that a heuristic proposes, best first; how many. modes: A (a trained model), B (the older
 * one), FALLBACK (engines that take every shape). */
static inline int cudnn_conv2d_heuristic(const CudnnConv2d *c, cudnnBackendHeurMode_t mode, CudnnConv2dPlan *plans,
                                         int most) {
  const Cudnn *dnn = c->dnn;
  cudnnBackendDescriptor_t heuristic = cudnn_descriptor(dnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  int count = 0;
  cudnn_set(dnn, heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c->graph);
  cudnn_set(dnn, heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (dnn->cudnnBackendFinalize(heuristic) == CUDNN_STATUS_SUCCESS) {
    enum { PROPOSED = 64 };
    cudnnBackendDescriptor_t config[PROPOSED];
    for (int i = 0; i < PROPOSED; i++) config[i] = cudnn_descriptor(dnn, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    const int64_t proposed =
        cudnn_get(dnn, heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, PROPOSED, config);
    for (int i = 0; i < PROPOSED; i++)
      if (i >= proposed || count == most)
        cudnn_descriptor_close(dnn, &config[i]);
      else if (cudnn_conv2d_proposed(c, config[i], &plans[count]) == 0)
        count++;
  }
  cudnn_descriptor_close(dnn, &heuristic);
  return count;
}

static inline cudnnStatus_t cudnn_conv2d_run_engine(const CudnnConv2dPlan *plan, const CudnnConv2dArrays *a) {
  const Cudnn *dnn = plan->of->dnn;
  const int64_t ids[3] = {'x', 'w', 'y'};
  void *const pointers[3] = {a->x, a->w, a->y};
  cudnnBackendDescriptor_t pack = cudnn_descriptor(dnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  cudnn_set(dnn, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &a->workspace);
  cudnn_set(dnn, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ids);
  cudnn_set(dnn, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, pointers);
  CUDNN_CHECK(dnn, dnn->cudnnBackendFinalize(pack));
  const cudnnStatus_t status = dnn->cudnnBackendExecute(plan->of->handle, plan->plan, pack);
  cudnn_descriptor_close(dnn, &pack);
  return status;
}

/* -------------------------------------------------------------------------------- the older API: algorithms by name */

/* NULL: there is no such algorithm for this pass. */
static inline const char *cudnn_conv2d_algorithm_name(Conv2dPass pass, int algorithm) {
  static const char *const names[3][CUDNN_CONV2D_ALGORITHMS] = {
      {"IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING", "WINOGRAD",
       "WINOGRAD_NONFUSED"},
      {"ALGO_0", "ALGO_1", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED", NULL, NULL},
      {"ALGO_0", "ALGO_1", "FFT", "ALGO_3", "WINOGRAD", "WINOGRAD_NONFUSED", "FFT_TILING", NULL}};
  return algorithm < CUDNN_CONV2D_ALGORITHMS ? names[pass][algorithm] : NULL;
}

typedef struct CudnnConv2dOld {
  cudnnTensorDescriptor_t x, y, bias;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t convolution;
  cudnnActivationDescriptor_t relu;
} CudnnConv2dOld;

static inline CudnnConv2dOld cudnn_conv2d_old_open(const CudnnConv2d *c) {
  const Cudnn *dnn = c->dnn;
  const Conv2dShape s = c->shape;
  const int small = c->type == CUDNN_CONV2D_BFLOAT16;
  const cudnnTensorFormat_t format = small ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
  const cudnnDataType_t type = small ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  CudnnConv2dOld d;
  CUDNN_CHECK(dnn, dnn->cudnnCreateTensorDescriptor(&d.x));
  CUDNN_CHECK(dnn, dnn->cudnnCreateTensorDescriptor(&d.y));
  CUDNN_CHECK(dnn, dnn->cudnnCreateTensorDescriptor(&d.bias));
  CUDNN_CHECK(dnn, dnn->cudnnCreateFilterDescriptor(&d.w));
  CUDNN_CHECK(dnn, dnn->cudnnCreateConvolutionDescriptor(&d.convolution));
  CUDNN_CHECK(dnn, dnn->cudnnCreateActivationDescriptor(&d.relu));
  CUDNN_CHECK(dnn, dnn->cudnnSetTensor4dDescriptor(d.x, format, type, s.n, s.c, s.h, s.w));
  CUDNN_CHECK(dnn, dnn->cudnnSetTensor4dDescriptor(d.y, format, type, s.n, s.k, conv2d_out_h(s), conv2d_out_w(s)));
  CUDNN_CHECK(dnn, dnn->cudnnSetTensor4dDescriptor(d.bias, format, CUDNN_DATA_FLOAT, 1, s.k, 1, 1));
  CUDNN_CHECK(dnn, dnn->cudnnSetFilter4dDescriptor(d.w, type, format, s.k, s.c / s.groups, s.r, s.s));
  CUDNN_CHECK(
      dnn, dnn->cudnnSetConvolution2dDescriptor(d.convolution, s.padding_h, s.padding_w, s.stride_h, s.stride_w,
                                                s.dilation_h, s.dilation_w, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  CUDNN_CHECK(dnn, dnn->cudnnSetConvolutionGroupCount(d.convolution, s.groups));
  CUDNN_CHECK(dnn, dnn->cudnnSetConvolutionMathType(d.convolution, small ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH));
  CUDNN_CHECK(dnn, dnn->cudnnSetActivationDescriptor(d.relu, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
  return d;
}

static inline void cudnn_conv2d_old_close(const Cudnn *dnn, CudnnConv2dOld *d) {
  dnn->cudnnDestroyTensorDescriptor(d->x);
  dnn->cudnnDestroyTensorDescriptor(d->y);
  dnn->cudnnDestroyTensorDescriptor(d->bias);
  dnn->cudnnDestroyFilterDescriptor(d->w);
  dnn->cudnnDestroyConvolutionDescriptor(d->convolution);
  dnn->cudnnDestroyActivationDescriptor(d->relu);
}

/* An algorithm of the older API; -1 where there is none, or it cannot. fused: the forward pass with bias and ReLU in
 * one call; separate: the same in three calls. */
static inline int cudnn_conv2d_algorithm(const CudnnConv2d *c, int algorithm, int fused, int separate,
                                         CudnnConv2dPlan *plan) {
  const Cudnn *dnn = c->dnn;
  const char *name = cudnn_conv2d_algorithm_name(c->pass, algorithm);
  cudnnStatus_t status;
  memset(plan, 0, sizeof *plan);
  if (name == NULL) return -1;
  plan->of = c;
  plan->algorithm = algorithm;
  plan->fused = fused;
  plan->separate = separate;
  plan->number = -1;
  snprintf(plan->name, sizeof plan->name, "%s%s", name, fused ? " + bias + ReLU" : separate ? ", bias, ReLU" : "");
  CudnnConv2dOld d = cudnn_conv2d_old_open(c);
  if (c->pass == CONV2D_FORWARD)
    status = dnn->cudnnGetConvolutionForwardWorkspaceSize(c->handle, d.x, d.w, d.convolution, d.y,
                                                          (cudnnConvolutionFwdAlgo_t)algorithm, &plan->workspace);
  else if (c->pass == CONV2D_BACKWARD_INPUT)
    status = dnn->cudnnGetConvolutionBackwardDataWorkspaceSize(
        c->handle, d.w, d.y, d.convolution, d.x, (cudnnConvolutionBwdDataAlgo_t)algorithm, &plan->workspace);
  else
    status = dnn->cudnnGetConvolutionBackwardFilterWorkspaceSize(
        c->handle, d.x, d.y, d.convolution, d.w, (cudnnConvolutionBwdFilterAlgo_t)algorithm, &plan->workspace);
  cudnn_conv2d_old_close(dnn, &d);
  return status == CUDNN_STATUS_SUCCESS ? 0 : -1;
}

static inline cudnnStatus_t cudnn_conv2d_run_forward(const CudnnConv2dPlan *plan, const CudnnConv2dArrays *a,
                                                     const CudnnConv2dOld *d) {
  const Cudnn *dnn = plan->of->dnn;
  const cudnnHandle_t handle = plan->of->handle;
  const cudnnConvolutionFwdAlgo_t algorithm = (cudnnConvolutionFwdAlgo_t)plan->algorithm;
  const float one = 1, zero = 0;
  if (plan->fused)
    return dnn->cudnnConvolutionBiasActivationForward(handle, &one, d->x, a->x, d->w, a->w, d->convolution, algorithm,
                                                      a->workspace, plan->workspace, &zero, d->y, a->y, d->bias,
                                                      a->bias, d->relu, d->y, a->y);
  cudnnStatus_t status = dnn->cudnnConvolutionForward(handle, &one, d->x, a->x, d->w, a->w, d->convolution, algorithm,
                                                      a->workspace, plan->workspace, &zero, d->y, a->y);
  if (status != CUDNN_STATUS_SUCCESS || !plan->separate) return status;
  status = dnn->cudnnAddTensor(handle, &one, d->bias, a->bias, &one, d->y, a->y);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return dnn->cudnnActivationForward(handle, d->relu, &one, d->y, a->y, &zero, d->y, a->y);
}

static inline cudnnStatus_t cudnn_conv2d_run_algorithm(const CudnnConv2dPlan *plan, const CudnnConv2dArrays *a) {
  const Cudnn *dnn = plan->of->dnn;
  const cudnnHandle_t handle = plan->of->handle;
  const float one = 1, zero = 0;
  CudnnConv2dOld d = cudnn_conv2d_old_open(plan->of);
  cudnnStatus_t status;
  if (plan->of->pass == CONV2D_FORWARD)
    status = cudnn_conv2d_run_forward(plan, a, &d);
  else if (plan->of->pass == CONV2D_BACKWARD_INPUT)
    status = dnn->cudnnConvolutionBackwardData(handle, &one, d.w, a->w, d.y, a->y, d.convolution,
                                               (cudnnConvolutionBwdDataAlgo_t)plan->algorithm, a->workspace,
                                               plan->workspace, &zero, d.x, a->x);
  else
    status = dnn->cudnnConvolutionBackwardFilter(handle, &one, d.x, a->x, d.y, a->y, d.convolution,
                                                 (cudnnConvolutionBwdFilterAlgo_t)plan->algorithm, a->workspace,
                                                 plan->workspace, &zero, d.w, a->w);
  cudnn_conv2d_old_close(dnn, &d);
  return status;
}

/* Launches it; -1 where cuDNN refuses only now. a->workspace: plan->workspace bytes. */
static inline int cudnn_conv2d_run(const CudnnConv2dPlan *plan, const CudnnConv2dArrays *a) {
  const cudnnStatus_t status = plan->plan ? cudnn_conv2d_run_engine(plan, a) : cudnn_conv2d_run_algorithm(plan, a);
  return status == CUDNN_STATUS_SUCCESS ? 0 : -1;
}

#endif /* CUDNN_COMPILED */

#endif /* PHASE3_CNN_CONV2D_CUDNN_CUH */
