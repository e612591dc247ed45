/* resnet18.cuh - torchvision's ResNet-18 as a Graph: the network of 18 layers with weights (He, Zhang, Ren, Sun: "Deep
 * residual learning for image recognition", 2015, table 1), with torchvision's names, so that a state dict of
 * torchvision fits it tensor by tensor.
 *
 *     layer       output          parameters
 *     x             3 x 224 x 224
 *     conv1, bn1   64 x 112 x 112      9,536   7x7, stride 2, padding 3, no bias; batch norm, then ReLU
 *     maxpool      64 x  56 x  56              3x3, stride 2, padding 1
 *     layer1       64 x  56 x  56    147,968   2 residual blocks, each two convolutions of 3x3 (lesson 11 of phase 3)
 *     layer2      128 x  28 x  28    525,568   2 blocks; the first has stride 2 and a shortcut of 1x1
 *     layer3      256 x  14 x  14  2,099,712   the same
 *     layer4      512 x   7 x   7  8,393,728   the same
 *     avgpool     512                          the mean of each channel
 *     fc         1000                513,000   the logits of ImageNet's classes
 *                                 11,689,512
 *
 * The mean over a channel takes pictures of any size: 64 x 64 is enough for a test. Another width than 64, or another
 * number of classes, is the same network made thinner, with the same names.
 */
#ifndef PHASE5_PRODUCTION_RESNET18_CUH
#define PHASE5_PRODUCTION_RESNET18_CUH

#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_op.cuh"
#include "phase2_mlp/03_mlp/linear_relu_op.cuh"
#include "phase2_mlp/03_mlp/sgd_op.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_choice_op.cuh"
#include "phase3_cnn/09_pooling/global_avg_pool2d_op.cuh"
#include "phase3_cnn/09_pooling/max_pool2d_op.cuh"
#include "phase3_cnn/11_residual/add_relu_op.cuh"
#include "phase3_cnn/11_residual/residual_block.cuh"
#include "phase3_cnn/11_residual/residual_infer.cuh"
#include "phase3_cnn/half_ops.cuh"

enum { RESNET18_SIDE = 224, RESNET18_WIDTH = 64, RESNET18_CLASSES = 1000, RESNET18_STAGES = 4 };
enum { RESNET18_PARAMETERS = 11689512 }; /* trained, of torchvision's: width 64, 1000 classes */

typedef struct Resnet18Shape {
  int side, width, classes; /* of a picture (3,side,side); channels of conv1; logits */
} Resnet18Shape;

static const Resnet18Shape resnet18_imagenet = {RESNET18_SIDE, RESNET18_WIDTH, RESNET18_CLASSES};

/* How torchvision's convolutions start: normal, variance 2 / fan_out, so that gradients keep their size on the way back
 * (He, Zhang, Ren, Sun: "Delving deep into rectifiers", 2015, section 2.2). */
static inline void resnet18_fan_out_fill(float *w, const Param *p, uint64_t seed, uint32_t stream) {
  he_normal_init(w, p->count, p->fan_out, seed, stream);
}
static const Init resnet18_fan_out = {"he_normal_fan_out", resnet18_fan_out_fill};

/* Two blocks, "layer2.0" and "layer2.1", of which the first has the stride. `stage` counts from 1. */
static inline int resnet18_stage(Graph *g, int x, int stage, int filters, int stride) {
  char name[16];
  for (int block = 0; block < 2; block++) {
    snprintf(name, sizeof name, "layer%d.%d", stage, block);
    x = residual_block(g, name, x, filters, block == 0 ? stride : 1);
  }
  return x;
}

/* From pictures x (3,H,W) to the logits (classes). */
static inline int resnet18_logits(Graph *g, int x, int width, int classes) {
  const Pool2dWindow window = {3, 3, 2, 2, 1, 1};
  g->weight_init = &resnet18_fan_out;
  x = relu(g, batch_norm2d(g, conv2d_no_bias(g, x, width, 7, 2, 3)));
  x = max_pool2d_window(graph_name(g, "maxpool"), x, window);
  for (int stage = 1; stage <= RESNET18_STAGES; stage++)
    x = resnet18_stage(g, x, stage, width << (stage - 1), stage == 1 ? 1 : 2);
  x = global_avg_pool2d(graph_name(g, "avgpool"), x);
  g->weight_init = &torch_default;
  return linear(graph_name(g, "fc"), x, classes);
}

/* Every operation by itself, with the cross entropy of its logits as the loss: 69 nodes. */
static inline Graph *resnet18_layers(Resnet18Shape s) {
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape3(3, s.side, s.side));
  graph_loss(g, &cross_entropy_loss, resnet18_logits(g, x, s.width, s.classes), 1);
  return g;
}

/* Which of its operations are computed together in training: batch norm with the sum and the ReLU behind it. */
static const Fusion resnet18_fusions[] = {FUSE_LINEAR, FUSE_BATCH_NORM_RELU, FUSE_ADD_RELU, FUSE_BATCH_NORM_ADD_RELU};

static inline Graph *resnet18_fused(Resnet18Shape s) {
  Graph *g = resnet18_layers(s);
  graph_fuse(g, resnet18_fusions, sizeof resnet18_fusions / sizeof *resnet18_fusions);
  cnn_can_be_lowered(g);
  return g;
}

#endif /* PHASE5_PRODUCTION_RESNET18_CUH */
