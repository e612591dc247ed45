/* cifar_cnn.cuh - two networks for colour pictures of 3 x 32 x 32 as Graphs, and the options that choose one.
 *
 * lenet: LeNet-5 with three input channels (lenet.cuh of lesson 12).
 *
 *     layer     output        parameters
 *     conv1      6 x 28 x 28         456   5x5, then ReLU
 *     pool1      6 x 14 x 14               max of 2x2
 *     conv2     16 x 10 x 10       2,416   5x5, then ReLU
 *     pool2     16 x  5 x  5               max of 2x2
 *     fc1, fc2, fc3               59,134   120, 84 and 10: 62,006 in all
 *
 * resnet: a residual network with a block for each size (He, Zhang, Ren, Sun: "Deep residual learning for image
 * recognition", 2015, section 4.2, with n = 1), with torchvision's names.
 *
 *     conv1, bn1 16 x 32 x 32         464   3x3, padding 1, batch norm, then ReLU
 *     layer1.0   16 x 32 x 32       4,672   residual block (lesson 11)
 *     layer2.0   32 x 16 x 16      14,528   with stride 2: half the side, twice the channels
 *     layer3.0   64 x  8 x  8      57,728   with stride 2
 *     avgpool1   64                         the mean of each channel
 *     fc1        10                   650   the logits: 78,042 in all
 *
 * With the 100 classes of CIFAR-100 the last layer is ten times as large.
 */
#ifndef PHASE3_CNN_CIFAR_CNN_CUH
#define PHASE3_CNN_CIFAR_CNN_CUH

#include <argp.h>

#include "common/nn/task.h"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_op.cuh"
#include "phase2_mlp/03_mlp/linear_relu_op.cuh"
#include "phase2_mlp/03_mlp/sgd_op.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_choice_op.cuh"
#include "phase3_cnn/09_pooling/global_avg_pool2d_op.cuh"
#include "phase3_cnn/09_pooling/max_pool2d_op.cuh"
#include "phase3_cnn/11_residual/add_relu_op.cuh"
#include "phase3_cnn/11_residual/residual_block.cuh"
#include "phase3_cnn/11_residual/residual_infer.cuh"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"
#include "phase3_cnn/half_ops.cuh"

static const Fusion cifar_fusions[] = {
    FUSE_LINEAR_RELU,
    FUSE_LINEAR,
    FUSE_BATCH_NORM_RELU,
    FUSE_ADD_RELU,
    FUSE_BATCH_NORM_ADD_RELU,
    {&activation_ops[ACTIVATION_RELU], &max_pool2d_op, &relu_passed_op, &relu_max_pool2d_op, relu_max_pool2d_op_fits},
};

/* From x (3,32,32) to the logits; as the mean of each channel is taken, other sizes are possible. */
static inline int cifar_resnet_layers(Graph *g, int x, int classes) {
  x = relu(g, batch_norm2d(g, conv2d_no_bias(g, x, 16, 3, 1, 1)));
  x = residual_block(g, "layer1.0", x, 16, 1);
  x = residual_block(g, "layer2.0", x, 32, 2);
  x = residual_block(g, "layer3.0", x, 64, 2);
  return linear(g, global_avg_pool2d(g, x), classes);
}

typedef struct CifarNetwork {
  const char *name;
  int (*layers)(Graph *g, int x, int classes);
} CifarNetwork;

enum { CIFAR_LENET, CIFAR_RESNET, CIFAR_NETWORKS };
static const CifarNetwork cifar_networks[CIFAR_NETWORKS] = {{"lenet", lenet_logits}, {"resnet", cifar_resnet_layers}};

static inline Graph *cifar_graph_for(const CifarNetwork *network, Shape images, int classes) {
  Graph *g = graph_create();
  const int x = graph_input(g, "x", images);
  graph_loss(g, &cross_entropy_loss, network->layers(g, x, classes), 1);
  graph_fuse(g, cifar_fusions, sizeof cifar_fusions / sizeof *cifar_fusions);
  cnn_can_be_lowered(g);
  return g;
}

static inline Graph *cifar_graph_of(const CifarNetwork *network, int classes) {
  return cifar_graph_for(network, shape3(3, 32, 32), classes);
}

/* ------------------------------------------------------------------------------------------------------- the choice */

/* What the command line or a checkpoint has chosen. */
typedef struct CifarChoice {
  const CifarNetwork *network;
  int given, classes;
} CifarChoice;

static CifarChoice cifar_choice = {&cifar_networks[CIFAR_RESNET], 0, 10};

static inline const CifarNetwork *cifar_network_named(const char *name) {
  for (int i = 0; i < CIFAR_NETWORKS; i++)
    if (strcmp(cifar_networks[i].name, name) == 0) return &cifar_networks[i];
  return NULL;
}

static inline error_t cifar_parse(int key, char *arg, struct argp_state *state) {
  if (key != 'N') return ARGP_ERR_UNKNOWN;
  cifar_choice.network = cifar_network_named(arg);
  cifar_choice.given = 1;
  if (cifar_choice.network == NULL) argp_error(state, "--network=%s: lenet or resnet is expected", arg);
  return 0;
}

static inline void cifar_text(char text[CHECKPOINT_NETWORK]) {
  snprintf(text, CHECKPOINT_NETWORK, "%s", cifar_choice.network->name);
}

/* A file from elsewhere says nothing of its network: its tensors will fit the one that was asked for, or not. */
static inline int cifar_from_text(const char *text, Error *err) {
  if (text[0] == '\0') return 0;
  const CifarNetwork *saved = cifar_network_named(text);
  if (saved == NULL)
    return error_set(err, "this is the network \"%s\", which is unknown here; lenet or resnet is expected", text);
  if (cifar_choice.given && saved != cifar_choice.network)
    return error_set(err,
                     "this is the network %s, not %s; leave --network out, or train another one into another "
                     "--output-dir",
                     text, cifar_choice.network->name);
  cifar_choice.network = saved;
  return 0;
}

static inline void cifar_settings(Config *config) { config_set(config, "network", cifar_choice.network->name); }

static inline void cifar_fit(const DataSource *data) { cifar_choice.classes = data->classes; }

static inline Graph *cifar_graph(void) { return cifar_graph_of(cifar_choice.network, cifar_choice.classes); }

static inline const TaskNetworks *cifar_task_networks(void) {
  static const struct argp_option rows[] = {
      {"network", 'N', "NAME", 0, "Network: lenet or resnet (default: resnet)", 0}, OPTION_END};
  static const struct argp options = {rows, cifar_parse, NULL, NULL, NULL, NULL, NULL};
  static const TaskNetworks networks = {&options,  cifar_text,     cifar_from_text,
                                        cifar_fit, residual_infer, cifar_settings};
  return &networks;
}

#endif /* PHASE3_CNN_CIFAR_CNN_CUH */
