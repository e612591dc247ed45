/* resnet.cuh - a small residual network for MNIST as a Graph (He, Zhang, Ren, Sun: "Deep residual learning for image
 * recognition", 2015), with torchvision's names where it has them.
 *
 *     layer       output        parameters
 *     input        1 x 28 x 28
 *     conv1, bn1  16 x 28 x 28        176   3x3, padding 1, batch norm, then ReLU
 *     pool1       16 x 14 x 14              max of 2x2
 *     layer1.0    32 x 14 x 14     14,528   residual block: two of 3x3; shortcut of 1x1, as the channels double
 *     layer2.0    64 x  7 x  7     57,728   residual block with stride 2: the shortcut halves the picture, too
 *     pool2       64 x  3 x  3              max of 2x2
 *     dropout1                              with probability --dropout
 *     fc1         64               36,928   then ReLU
 *     dropout2
 *     fc2         10                  650   the logits
 *                                 110,010
 *
 * --filters=16,32,64 are the channels of conv1, layer1 and layer2.
 *
 * The convolutions have no bias: batch norm would subtract it again. Dropout stands behind the convolutions alone,
 * because it would change the variances that batch norm measures (Li, Chen, Hu, Yang: "Understanding the disharmony
 * between dropout and batch normalization by variance shift", 2019).
 */
#ifndef PHASE3_CNN_RESNET_CUH
#define PHASE3_CNN_RESNET_CUH

#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_op.cuh"
#include "phase1_building_blocks/12_dropout/dropout_op.cuh"
#include "phase2_mlp/03_mlp/linear_relu_op.cuh"
#include "phase2_mlp/03_mlp/sgd_op.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_choice_op.cuh"
#include "phase3_cnn/09_pooling/max_pool2d_op.cuh"
#include "phase3_cnn/11_residual/add_relu_op.cuh"
#include "phase3_cnn/11_residual/residual_block.cuh"
#include "phase3_cnn/11_residual/residual_infer.cuh"
#include "phase3_cnn/half_ops.cuh"

/* Which of its operations are computed together: batch norm with the sum and the ReLU behind it. */
static const Fusion resnet_fusions[] = {FUSE_LINEAR_RELU, FUSE_LINEAR, FUSE_BATCH_NORM_RELU, FUSE_ADD_RELU,
                                        FUSE_BATCH_NORM_ADD_RELU};

typedef struct ResnetShape {
  int filters[3]; /* of conv1, layer1, layer2 */
  double dropout; /* how likely a number is dropped; evaluation is the same for any */
} ResnetShape;

static inline Graph *resnet_layers_for(ResnetShape s, Shape images, int classes) {
  Graph *g = graph_create();
  g->weight_init = &torch_default;
  int x = graph_input(g, "x", images);
  x = relu(g, batch_norm2d(g, conv2d_no_bias(g, x, s.filters[0], 3, 1, 1)));
  x = max_pool2d(g, x, 2, 2);
  x = residual_block(g, "layer1.0", x, s.filters[1], 1);
  x = residual_block(g, "layer2.0", x, s.filters[2], 2);
  x = max_pool2d(g, x, 2, 2);
  x = relu(g, linear(g, dropout(g, x, (float)s.dropout), 64));
  x = linear(g, dropout(g, x, (float)s.dropout), classes);
  graph_loss(g, &cross_entropy_loss, x, 1);
  return g;
}

static inline Graph *resnet_fused_for(ResnetShape s, Shape images, int classes) {
  Graph *g = resnet_layers_for(s, images, classes);
  graph_fuse(g, resnet_fusions, sizeof resnet_fusions / sizeof *resnet_fusions);
  cnn_can_be_lowered(g);
  return g;
}

static inline Graph *resnet_fused(ResnetShape s) { return resnet_fused_for(s, shape3(1, 28, 28), 10); }

#endif /* PHASE3_CNN_RESNET_CUH */
