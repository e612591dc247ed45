/* dnn_conv2d_graph.cuh - convolution + bias + ReLU as one kernel, by the graph API of cuDNN 9.
 *
 *     x, w -> convolution -> (virtual) -> + bias -> (virtual) -> max(0, .) -> y
 *
 * The older interface has a function for each operation, and one more for each chain that somebody asked for:
 * cudnnConvolutionBiasActivationForward(). With the graph API a program describes the chain. A tensor in it has a
 * number, by which its pointer is given later, or is virtual: it has none, and is never stored. For the whole graph
 * cuDNN proposes engines, of which some are compiled at run time; an engine with its settings becomes a plan, which
 * knows its workspace, and a plan is executed with a variant pack: the pointers.
 *
 *     descriptor                          what it says
 *     TENSOR                              sizes, strides, type, number, virtual or not
 *     CONVOLUTION, POINTWISE              what an operation does
 *     OPERATION_CONVOLUTION_FORWARD, ...  which tensors it reads and writes
 *     OPERATIONGRAPH                      the operations
 *     ENGINEHEUR, ENGINECFG, ENGINE       what could compute it
 *     EXECUTION_PLAN, VARIANT_PACK        what does, and on which memory
 *
 * All of them are opaque, and have attributes that are set by name; Finalize() checks them. Engines that round inputs
 * for tensor cores do not count here, as in conv2d_cudnn.cuh of phase 3, whose helpers this header uses. */
#ifndef PHASE5_PRODUCTION_DNN_CONV2D_GRAPH_CUH
#define PHASE5_PRODUCTION_DNN_CONV2D_GRAPH_CUH

#include "phase5_production/01_cudnn_layers/dnn_conv2d.cuh"

#if CUDNN_COMPILED

enum { DNN_GRAPH_STEPS = 3, DNN_GRAPH_PLANS = 8 };

/* Must not move once it is open: its plan knows its address. */
typedef struct DnnConv2dGraph {
  CudnnConv2d of; /* x, w, y, convolution, and the graph of all three operations */
  cudnnBackendDescriptor_t bias, between[2], pointwise[2], step[DNN_GRAPH_STEPS];
  CudnnConv2dPlan plan;
} DnnConv2dGraph;

/* A tensor of y's shape that is never stored. */
static inline cudnnBackendDescriptor_t dnn_graph_virtual(const Cudnn *api, int64_t id, Conv2dShape s) {
  const int64_t p = conv2d_out_h(s), q = conv2d_out_w(s), alignment = 16;
  const int64_t dim[4] = {s.n, s.k, p, q}, stride[4] = {s.k * p * q, p * q, q, 1};
  const cudnnDataType_t type = CUDNN_DATA_FLOAT;
  const bool is_virtual = true;
  cudnnBackendDescriptor_t tensor = cudnn_descriptor(api, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  cudnn_set(api, tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  cudnn_set(api, tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim);
  cudnn_set(api, tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
  cudnn_set(api, tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
  cudnn_set(api, tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
  cudnn_set(api, tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  CUDNN_CHECK(api, api->cudnnBackendFinalize(tensor));
  return tensor;
}

static inline cudnnBackendDescriptor_t dnn_graph_convolution(const DnnConv2dGraph *c) {
  const Cudnn *api = c->of.dnn;
  const CudnnConv2dOperation o = cudnn_conv2d_operation(CONV2D_FORWARD);
  const float one = 1, zero = 0;
  cudnnBackendDescriptor_t step = cudnn_descriptor(api, o.type);
  cudnn_set(api, step, o.convolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c->of.convolution);
  cudnn_set(api, step, o.x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c->of.x);
  cudnn_set(api, step, o.w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c->of.w);
  cudnn_set(api, step, o.y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c->between[0]);
  cudnn_set(api, step, o.alpha, CUDNN_TYPE_FLOAT, 1, &one);
  cudnn_set(api, step, o.beta, CUDNN_TYPE_FLOAT, 1, &zero);
  CUDNN_CHECK(api, api->cudnnBackendFinalize(step));
  return step;
}

/* What is done to each element. */
static inline cudnnBackendDescriptor_t dnn_graph_pointwise(const Cudnn *api, cudnnPointwiseMode_t mode) {
  const cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnBackendDescriptor_t pointwise = cudnn_descriptor(api, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  cudnn_set(api, pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  cudnn_set(api, pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
  CUDNN_CHECK(api, api->cudnnBackendFinalize(pointwise));
  return pointwise;
}

/* to = mode(from, with); `with` may be NULL. */
static inline cudnnBackendDescriptor_t dnn_graph_step(const Cudnn *api, cudnnBackendDescriptor_t pointwise,
                                                      cudnnBackendDescriptor_t from, cudnnBackendDescriptor_t with,
                                                      cudnnBackendDescriptor_t to) {
  cudnnBackendDescriptor_t step = cudnn_descriptor(api, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  cudnn_set(api, step, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &pointwise);
  cudnn_set(api, step, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &from);
  if (with) cudnn_set(api, step, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &with);
  cudnn_set(api, step, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to);
  CUDNN_CHECK(api, api->cudnnBackendFinalize(step));
  return step;
}

static inline void dnn_graph_describe(DnnConv2dGraph *c, const Dnn *dnn, Conv2dShape s) {
  const Cudnn *api = dnn->api;
  c->of.dnn = api;
  c->of.handle = dnn->handle;
  c->of.shape = s;
  c->of.x = cudnn_conv2d_tensor(api, CUDNN_CONV2D_FLOAT32, 'x', s.n, s.c, s.h, s.w);
  c->of.w = cudnn_conv2d_tensor(api, CUDNN_CONV2D_FLOAT32, 'w', s.k, s.c / s.groups, s.r, s.s);
  c->of.y = cudnn_conv2d_tensor(api, CUDNN_CONV2D_FLOAT32, 'y', s.n, s.k, conv2d_out_h(s), conv2d_out_w(s));
  c->bias = cudnn_conv2d_tensor(api, CUDNN_CONV2D_FLOAT32, 'b', 1, s.k, 1, 1);
  c->of.convolution = cudnn_conv2d_convolution(api, s);
  c->pointwise[0] = dnn_graph_pointwise(api, CUDNN_POINTWISE_ADD);
  c->pointwise[1] = dnn_graph_pointwise(api, CUDNN_POINTWISE_RELU_FWD);
  for (int i = 0; i < 2; i++) c->between[i] = dnn_graph_virtual(api, '0' + i, s);
  c->step[0] = dnn_graph_convolution(c);
  c->step[1] = dnn_graph_step(api, c->pointwise[0], c->between[0], c->bias, c->between[1]);
  c->step[2] = dnn_graph_step(api, c->pointwise[1], c->between[1], NULL, c->of.y);
  c->of.graph = cudnn_descriptor(api, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  cudnn_set(api, c->of.graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, DNN_GRAPH_STEPS, c->step);
  cudnn_set(api, c->of.graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &dnn->handle);
}

static inline void dnn_conv2d_graph_close(DnnConv2dGraph *c) {
  const Cudnn *api = c->of.dnn;
  if (api == NULL) return;
  cudnn_conv2d_plan_close(&c->plan);
  for (int i = 0; i < DNN_GRAPH_STEPS; i++) cudnn_descriptor_close(api, &c->step[i]);
  for (int i = 0; i < 2; i++) {
    cudnn_descriptor_close(api, &c->pointwise[i]);
    cudnn_descriptor_close(api, &c->between[i]);
  }
  cudnn_descriptor_close(api, &c->bias);
  cudnn_conv2d_close(&c->of);
  memset(c, 0, sizeof *c);
}

/* The first plan of the heuristics that fits into `room` bytes; -1: none. */
static inline int dnn_graph_choose(DnnConv2dGraph *c, size_t room) {
  static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
  for (int m = 0; m < 2 && c->plan.of == NULL; m++) {
    CudnnConv2dPlan plans[DNN_GRAPH_PLANS];
    const int count = cudnn_conv2d_heuristic(&c->of, modes[m], plans, DNN_GRAPH_PLANS);
    for (int i = 0; i < count; i++)
      if (c->plan.of == NULL && plans[i].workspace <= room)
        c->plan = plans[i];
      else
        cudnn_conv2d_plan_close(&plans[i]);
  }
  return c->plan.of ? 0 : -1;
}

/* y = max(0, conv(x, w) + bias), for exactly shape.n images. */
static inline int dnn_conv2d_graph_open(DnnConv2dGraph *c, const Dnn *dnn, Conv2dShape s, size_t room, Error *err) {
  memset(c, 0, sizeof *c);
  dnn_graph_describe(c, dnn, s);
  const cudnnStatus_t status = dnn->api->cudnnBackendFinalize(c->of.graph);
  if (status == CUDNN_STATUS_SUCCESS && dnn_graph_choose(c, room) == 0) return 0;
  error_set(err, "cuDNN has no engine for convolution + bias + ReLU of %s in float32 with %.0f MiB of workspace%s%s",
            conv2d_shape_text(s).text, (double)room / 1048576, status == CUDNN_STATUS_SUCCESS ? "" : ": ",
            status == CUDNN_STATUS_SUCCESS ? "" : dnn->api->cudnnGetErrorString(status));
  dnn_conv2d_graph_close(c);
  return -1;
}

/* workspace: c->plan.workspace bytes. */
static inline void dnn_conv2d_graph_forward(const DnnConv2dGraph *c, float *y, const float *x, const float *w,
                                            const float *bias, void *workspace) {
  const Cudnn *api = c->of.dnn;
  const int64_t ids[4] = {'x', 'w', 'b', 'y'};
  const void *const pointers[4] = {x, w, bias, y};
  cudnnBackendDescriptor_t pack = cudnn_descriptor(api, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  cudnn_set(api, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  cudnn_set(api, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 4, ids);
  cudnn_set(api, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 4, pointers);
  CUDNN_CHECK(api, api->cudnnBackendFinalize(pack));
  CUDNN_CHECK(api, api->cudnnBackendExecute(c->of.handle, c->plan.plan, pack));
  cudnn_descriptor_close(api, &pack);
}

#endif /* CUDNN_COMPILED */

#endif /* PHASE5_PRODUCTION_DNN_CONV2D_GRAPH_CUH */
