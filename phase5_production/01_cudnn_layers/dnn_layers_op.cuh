/* dnn_layers_op.cuh - cuDNN's layers as Ops of common/nn, in the place of ours in any network.
 *
 *     static const OpChoice *const choices[] = {&dnn_conv2d_choice, &dnn_layer_choice};     // of a Task
 *
 *     --layers=cudnn                  every operation that cuDNN has: convolution, ReLU, sigmoid, tanh, max and average
 *                                     pooling, batch norm, sums, softmax
 *     --layers=cudnn,conv1:ours       but for one node
 *     --layers=auto                   each by the faster of the two, measured
 *     --conv=cudnn                    convolutions alone; --conv has all names of phase 3 besides
 *
 * The Ops take the same nodes and parameters, so a checkpoint of one is a checkpoint of the other. Each keeps its
 * descriptors with its node, made when the model is opened; one handle serves all nodes of a model. With --device=cpu
 * ours compute. cuDNN has no linear layer (that is cuBLAS) and no loss; dropout stays ours, whose random numbers are
 * the same on the CPU.
 *
 * An Op of cuDNN is found by the address of ours, and some of those are static: so the tables stand here, and not in
 * dnn_layers_op.cu. */
#ifndef PHASE5_PRODUCTION_DNN_LAYERS_OP_CUH
#define PHASE5_PRODUCTION_DNN_LAYERS_OP_CUH

#include "common/check_cudnn.h"
#include "common/nn/graph.h"
#include "phase1_building_blocks/07_activations/activations_op.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_choice_op.cuh"
#include "phase3_cnn/09_pooling/avg_pool2d_op.cuh"
#include "phase3_cnn/09_pooling/global_avg_pool2d_op.cuh"
#include "phase3_cnn/09_pooling/max_pool2d_op.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_op.cuh"
#include "phase3_cnn/11_residual/add_op.cuh"
#include "phase5_production/01_cudnn_layers/dnn_pool2d.cuh"
#include "phase5_production/01_cudnn_layers/softmax_op.cuh"

/* Bytes of workspace that a convolution may use at most; networks plan what it really asks for. */
#define DNN_WORKSPACE_MOST ((size_t)256 << 20)

/* In dnn_layers_op.cu. */
extern const OpKeeping dnn_conv2d_op, dnn_relu_op, dnn_sigmoid_op, dnn_tanh_op, dnn_max_pool2d_op, dnn_avg_pool2d_op,
    dnn_global_avg_pool2d_op, dnn_batch_norm2d_op, dnn_add_op, dnn_softmax_op;

static const OpPair dnn_pairs[] = {
    {&conv2d_op, &dnn_conv2d_op.op},
    {&activation_ops[ACTIVATION_RELU], &dnn_relu_op.op},
    {&activation_ops[ACTIVATION_SIGMOID], &dnn_sigmoid_op.op},
    {&activation_ops[ACTIVATION_TANH], &dnn_tanh_op.op},
    {&max_pool2d_op, &dnn_max_pool2d_op.op},
    {&avg_pool2d_op, &dnn_avg_pool2d_op.op},
    {&global_avg_pool2d_op, &dnn_global_avg_pool2d_op.op},
    {&batch_norm2d_op, &dnn_batch_norm2d_op.op},
    {&add_op, &dnn_add_op.op},
    {&softmax_op, &dnn_softmax_op.op},
};

enum { DNN_PAIRS = sizeof dnn_pairs / sizeof *dnn_pairs };

/* "IMPLICIT_PRECOMP_GEMM" and the like: what a convolution of an opened model is computed by, in a pass (0 forward, 1
 * the input's gradient, 2 the filter's); NULL: it is not cuDNN's, or not on a GPU. */
const char *dnn_algorithm_name(const Node *node, int pass);

/* -1: there is no cuDNN, or it cannot compute this node. */
static inline int dnn_fits(const Implementation *implementation, const Node *node, Error *err) {
  (void)implementation;
  if (cudnn_load(err) == NULL) return -1;
  if (strcmp(node->op->name, "MaxPool") == 0) return dnn_pool2d_check(max_pool2d_op_shape(node, 1), err);
  if (strcmp(node->op->name, "AveragePool") == 0) return dnn_pool2d_check(avg_pool2d_op_shape(node, 1), err);
  return 0;
}

#define DNN_TABLE(name) \
  { name, 0, OP_TABLE, NULL, NULL, op_passed, op_passed }

static const OpTable dnn_ours = {DNN_TABLE("ours"), NULL, 0}, dnn_table = {DNN_TABLE("cudnn"), dnn_pairs, DNN_PAIRS};

/* --layers=...: the first is the usual one. */
static const Implementation dnn_layer_implementations[] = {{"ours", &dnn_ours.op, NULL},
                                                           {"cudnn", &dnn_table.op, dnn_fits}};
static const OpChoice dnn_layer_choice = {"layers", dnn_layer_implementations, 2};

/* --conv=...: those of phase 3, and cuDNN's. */
#define CONV2D_METHOD(name, table) {#name, &conv2d_##name##_op.op, conv2d_method_fits},
static const Implementation dnn_conv2d_implementations[] = {
    {"tiled", &conv2d_op, NULL},
    {"naive", &conv2d_naive_op, NULL},
    CONV2D_CHOICE_METHODS(CONV2D_METHOD){"cudnn", &dnn_conv2d_op.op, dnn_fits}};
#undef CONV2D_METHOD

static const OpChoice dnn_conv2d_choice = {"conv", dnn_conv2d_implementations,
                                           sizeof dnn_conv2d_implementations / sizeof *dnn_conv2d_implementations};

#endif /* PHASE5_PRODUCTION_DNN_LAYERS_OP_CUH */
