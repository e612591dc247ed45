/* lenet.cuh - LeNet-5 as a Graph (LeCun et al., "Gradient-based learning applied to document recognition", 1998; with
 * ReLU and max pooling, as it is taught today).
 *
 *     layer    output        parameters
 *     input     1 x 28 x 28
 *     conv1     6 x 28 x 28         156   5x5, padding 2, then ReLU
 *     pool1     6 x 14 x 14               max of 2x2
 *     conv2    16 x 10 x 10       2,416   5x5, then ReLU
 *     pool2    16 x  5 x  5               max of 2x2
 *     fc1     120                48,120   then ReLU
 *     fc2      84                10,164   then ReLU
 *     fc3      10                   850   the logits
 *                                61,706
 *
 * Images of 32 x 32 pixels and more get no padding, as in the paper: there conv1 makes 6 x 28 x 28 of 32 x 32. The
 * sizes behind follow from those of the images, and the last layer has as many outputs as there are classes.
 */
#ifndef PHASE3_CNN_LENET_CUH
#define PHASE3_CNN_LENET_CUH

#include "phase1_building_blocks/07_activations/activations_op.cuh"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_op.cuh"
#include "phase2_mlp/03_mlp/linear_relu_op.cuh"
#include "phase2_mlp/03_mlp/sgd_op.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_choice_op.cuh"
#include "phase3_cnn/09_pooling/max_pool2d_op.cuh"
#include "phase3_cnn/half_ops.cuh"

/* Which of its operations are computed together: a training step takes 21 launches instead of 35. */
static const Fusion lenet_fusions[] = {
    FUSE_LINEAR_RELU,
    FUSE_LINEAR,
    {&activation_ops[ACTIVATION_RELU], &max_pool2d_op, &relu_passed_op, &relu_max_pool2d_op, relu_max_pool2d_op_fits},
};

/* From x (C,H,W) to the logits. */
static inline int lenet_logits(Graph *g, int x, int classes) {
  const int padding = x >= 0 && graph_shape(g, x).dim[1] < 32 ? 2 : 0;
  x = max_pool2d(g, relu(g, conv2d(g, x, 6, 5, 1, padding)), 2, 2);
  x = max_pool2d(g, relu(g, conv2d(g, x, 16, 5, 1, 0)), 2, 2);
  x = relu(g, linear(g, x, 120));
  x = relu(g, linear(g, x, 84));
  return linear(g, x, classes);
}

static inline Graph *lenet_layers_for(Shape images, int classes) {
  Graph *g = graph_create();
  const int x = graph_input(g, "x", images);
  graph_loss(g, &cross_entropy_loss, lenet_logits(g, x, classes), 1);
  return g;
}

static inline Graph *lenet_graph_for(Shape images, int classes) {
  Graph *g = lenet_layers_for(images, classes);
  graph_fuse(g, lenet_fusions, sizeof lenet_fusions / sizeof *lenet_fusions);
  cnn_can_be_lowered(g);
  return g;
}

static inline Graph *lenet_layers(void) { return lenet_layers_for(shape3(1, 28, 28), 10); }

static inline Graph *lenet_graph(void) { return lenet_graph_for(shape3(1, 28, 28), 10); }

static inline void lenet_create(Model *lenet, Device device, int max_batch) {
  sgd_model_open(lenet, lenet_graph(), device, max_batch);
}

#endif /* PHASE3_CNN_LENET_CUH */
