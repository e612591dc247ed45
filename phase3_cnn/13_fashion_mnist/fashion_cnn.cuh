/* fashion_cnn.cuh - a convolutional network for pictures of clothes as a Graph: two convolutions of 3 x 3 without
 * padding, each with max pooling and then ReLU, and two linear layers.
 *
 *     layer    output        parameters
 *     input     1 x 28 x 28
 *     conv1    64 x 26 x 26         640   3x3
 *     pool1    64 x 13 x 13               max of 2x2, then ReLU
 *     conv2   128 x 11 x 11      73,856   3x3
 *     pool2   128 x  5 x  5               max of 2x2, then ReLU; row and column 10 of conv2 lie in no window
 *     fc1     256               819,456   then ReLU
 *     fc2      10                 2,570   the logits
 *                               896,522
 */
#ifndef PHASE3_CNN_FASHION_CNN_CUH
#define PHASE3_CNN_FASHION_CNN_CUH

#include "phase1_building_blocks/07_activations/activations_op.cuh"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_op.cuh"
#include "phase2_mlp/03_mlp/linear_relu_op.cuh"
#include "phase2_mlp/03_mlp/sgd_op.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_choice_op.cuh"
#include "phase3_cnn/09_pooling/max_pool2d_op.cuh"
#include "phase3_cnn/half_ops.cuh"

enum { FASHION_CNN_PARAMETERS = 896522 };

/* The largest of max(0, x) is max(0, the largest of x): pooling before or behind a ReLU is one operation, and its
 * kernel (max_pool2d.cuh) serves both orders. */
static const Fusion fashion_cnn_fusions[] = {
    FUSE_LINEAR_RELU,
    FUSE_LINEAR,
    {&max_pool2d_op, &activation_ops[ACTIVATION_RELU], &relu_max_pool2d_op, &relu_passed_op, relu_max_pool2d_op_fits},
};

static inline Graph *fashion_cnn_layers_for(Shape images, int classes) {
  Graph *g = graph_create();
  int x = graph_input(g, "x", images);
  x = relu(g, max_pool2d(g, conv2d(g, x, 64, 3, 1, 0), 2, 2));
  x = relu(g, max_pool2d(g, conv2d(g, x, 128, 3, 1, 0), 2, 2));
  x = relu(g, linear(g, x, 256));
  x = linear(g, x, classes);
  graph_loss(g, &cross_entropy_loss, x, 1);
  return g;
}

static inline Graph *fashion_cnn_graph_for(Shape images, int classes) {
  Graph *g = fashion_cnn_layers_for(images, classes);
  graph_fuse(g, fashion_cnn_fusions, sizeof fashion_cnn_fusions / sizeof *fashion_cnn_fusions);
  cnn_can_be_lowered(g);
  return g;
}

static inline Graph *fashion_cnn_layers(void) { return fashion_cnn_layers_for(shape3(1, 28, 28), 10); }

static inline Graph *fashion_cnn_graph(void) { return fashion_cnn_graph_for(shape3(1, 28, 28), 10); }

#endif /* PHASE3_CNN_FASHION_CNN_CUH */
