/* half_infer_op.cu - the functions of half_infer_op.cuh. On a CPU there are none: the engine computes float32 there. */
#include "phase5_production/08_engine/half_infer_op.cuh"

#include "phase5_production/08_engine/concat_half.cuh"
#include "phase5_production/08_engine/depthwise_half.cuh"

static inline void half_infer_backward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  (void)a;
  die("%s has no backward pass; open the model for MODEL_INFER", node->name);
}

template <typename T>
static inline void depthwise_half_gpu(const Node *node, const OpArrays *a) {
  const DepthwiseNode *own = (const DepthwiseNode *)node->attributes.bytes;
  const DepthwiseHalf d = {conv2d_op_shape(node, a->batch), own->clips ? own->least : -INFINITY,
                           own->clips ? own->most : INFINITY};
  depthwise_half<T>((uint16_t *)a->y, (const uint16_t *)a->x[0], a->param[0], a->param[1], d);
}

static void depthwise_half_forward(const Context *context, const Node *node, const OpArrays *a) {
  ON_DEVICE(context->device, HALF_CALL(node->type, depthwise_half_gpu, node, a),
            die("%s: depthwise convolution of 16 bits is for a GPU", node->name));
}

/* One thread per run of eight numbers. A NaN stays a NaN. */
template <typename T>
static __global__ void clip_half_kernel(T *y, const T *x, size_t runs, float least, float most) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float v[HALF_RUN];
  if (i >= runs) return;
  half_load(v, x + i * HALF_RUN);
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) v[e] = v[e] < least ? least : v[e] > most ? most : v[e];
  half_store(y + i * HALF_RUN, v);
}

template <typename T>
static inline void clip_half_gpu(const Node *node, const OpArrays *a) {
  const float *bounds = (const float *)node->attributes.bytes;
  const size_t runs = (size_t)a->batch * shape_half_count(node->shape) / HALF_RUN;
  if (runs == 0) return;
  clip_half_kernel<T><<<half_blocks(runs), HALF_BLOCK>>>((T *)a->y, (const T *)a->x[0], runs, bounds[0], bounds[1]);
  CUDA_CHECK_LAUNCH();
}

static void clip_half_forward(const Context *context, const Node *node, const OpArrays *a) {
  ON_DEVICE(context->device, HALF_CALL(node->type, clip_half_gpu, node, a),
            die("%s: Clip of 16 bits is for a GPU", node->name));
}

template <typename T>
static inline void concat_half_gpu(const Node *node, const OpArrays *a) {
  concat_half<T>((uint16_t *)a->y, (const uint16_t *)a->x[0], (const uint16_t *)a->x[1],
                 (size_t)a->batch * (size_t)shape_pixels(node->shape), concat_half_channels(node, 0),
                 concat_half_channels(node, 1));
}

static void concat_half_forward(const Context *context, const Node *node, const OpArrays *a) {
  ON_DEVICE(context->device, HALF_CALL(node->type, concat_half_gpu, node, a),
            die("%s: Concat of 16 bits is for a GPU", node->name));
}

const Op depthwise_half_op = {"Conv", 0, 0, NULL, NULL, depthwise_half_forward, half_infer_backward};
const Op clip_half_op = {"Clip", 0, OP_IN_PLACE, NULL, NULL, clip_half_forward, half_infer_backward};
const Op concat_half_op = {"Concat", 0, 0, NULL, NULL, concat_half_forward, half_infer_backward};
