/* half_infer_op.cuh - operations of 16 bits that imported networks have and those of this course have not, as Ops of
 * common/nn, for inference: so that between two convolutions nothing is widened.
 *
 *     depthwise_half_op   Conv of one channel each, with a ReLU or Clip behind it     MobileNet
 *     clip_half_op        Clip of constant bounds                                    MobileNet
 *     concat_half_op      Concat of two arrays along the channels                    SqueezeNet, U-Net, DenseNet
 *
 * half_infer_lowerings are for graph_lower() (common/nn/lower.h), before others; half_infer_absorb() then gives the
 * ReLU or Clip behind a depthwise convolution to its kernel. The weights of depthwise_half_op are float, (R,S,C):
 * half_infer_turn() makes them of (C,1,R,S).
 */
#ifndef PHASE5_PRODUCTION_HALF_INFER_OP_CUH
#define PHASE5_PRODUCTION_HALF_INFER_OP_CUH

#include "common/nn/lower.h"
#include "phase1_building_blocks/07_activations/relu_half_op.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_op.cuh"
#include "phase5_production/07_onnx_import/nd_op.cuh"

extern const Op depthwise_half_op, clip_half_op, concat_half_op; /* half_infer_op.cu */

/* Attributes of depthwise_half_op. They begin as those of conv2d_op do. */
typedef struct DepthwiseNode {
  Conv2dShape shape;
  int clips; /* bounds are set; else there are none */
  float least, most;
} DepthwiseNode;

static inline int depthwise_half_takes(const Node *node) {
  const Conv2dShape s = conv2d_op_shape(node, 1);
  return s.groups == s.c && s.k == s.c && s.c % HALF_RUN == 0;
}

/* Channels of input k of a concatenation; 0: it is not along the channels, or they are not a multiple of 8. */
static inline int concat_half_channels(const Node *node, int k) {
  const NdConcat o = nd_attributes<NdConcat>(node);
  const int pixels = shape_pixels(node->shape);
  if (node->shape.rank != 3 || o.start[o.inputs] != shape_count(node->shape) || pixels == 0) return 0;
  const unsigned count = o.start[k + 1] - o.start[k];
  return count % ((unsigned)pixels * HALF_RUN) == 0 ? (int)(count / (unsigned)pixels) : 0;
}

static inline int concat_half_takes(const Node *node) {
  return node->type == DTYPE_FLOAT32 && node->inputs == 2 && concat_half_channels(node, 0) > 0 &&
         concat_half_channels(node, 1) > 0;
}

static inline int clip_half_takes(const Node *node) { return node->type == DTYPE_FLOAT32; }

enum { HALF_INFER_LOWERINGS = 3 };
static const Lowering half_infer_lowerings[HALF_INFER_LOWERINGS] = {
    {&conv2d_op, &depthwise_half_op, 0, 1, depthwise_half_takes},
    {&nd_clip_op, &clip_half_op, 0, 1, clip_half_takes},
    {&nd_concat_op, &concat_half_op, 0, 1, concat_half_takes}};

/* The bounds of a ReLU or Clip of 16 bits; 0: it is neither. */
static inline int half_infer_bounds(const Node *node, float bounds[2]) {
  bounds[0] = 0;
  bounds[1] = INFINITY;
  if (node->op == &clip_half_op) memcpy(bounds, node->attributes.bytes, 2 * sizeof *bounds);
  return node->op == &relu_half_op || node->op == &clip_half_op;
}

static inline void half_infer_absorb(Graph *g) {
  for (int j = 0; j < g->count; j++) {
    float bounds[2];
    Node *second = &g->nodes[j];
    if (second->op == NULL || second->inputs != 1 || !half_infer_bounds(second, bounds)) continue;
    Node *first = &g->nodes[second->input[0]];
    DepthwiseNode d;
    memcpy(&d, first->attributes.bytes, sizeof d);
    if (first->op != &depthwise_half_op || d.clips || graph_readers(g, second->input[0]) != 1) continue;
    d.clips = 1;
    d.least = bounds[0];
    d.most = bounds[1];
    memcpy(first->attributes.bytes, &d, sizeof d);
    second->op = &relu_passed_op;
  }
}

/* w (C,1,R,S) -> (R,S,C), in place. */
static inline void half_infer_turn(float *w, const Param *p) {
  const size_t channels = p->dim[0], taps = p->count / channels;
  float *from = (float *)xmalloc(p->count * sizeof *from);
  memcpy(from, w, p->count * sizeof *from);
  for (size_t c = 0; c < channels; c++)
    for (size_t t = 0; t < taps; t++) w[t * channels + c] = from[c * taps + t];
  free(from);
}

#endif /* PHASE5_PRODUCTION_HALF_INFER_OP_CUH */
