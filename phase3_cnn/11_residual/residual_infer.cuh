/* residual_infer.cuh - of a trained network one that infers, without batch norm: the convolutions do its work
 * (batch_norm2d_fold.cuh), and that of the ReLU behind them.
 *
 *     Model fast;
 *     if (residual_infer(&fast, &trained, max_batch, &err) != 0) die("%s", err.message);
 */
#ifndef PHASE3_CNN_RESIDUAL_INFER_CUH
#define PHASE3_CNN_RESIDUAL_INFER_CUH

#include "phase2_mlp/03_mlp/linear_relu_op.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_relu_op.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_fold.cuh"
#include "phase3_cnn/11_residual/add_relu_op.cuh"

static const Fusion residual_infer_fusions[] = {FUSE_LINEAR_RELU, FUSE_LINEAR, FUSE_CONV2D_RELU, FUSE_ADD_RELU};

/* `trained` stays. */
static inline Graph *residual_infer_graph(const Graph *trained) {
  Graph *g = batch_norm2d_fold_graph(trained);
  graph_fuse(g, residual_infer_fusions, sizeof residual_infer_fusions / sizeof *residual_infer_fusions);
  return g;
}

/* A model that infers, with the parameters of a trained one. -1 as model_open(). */
static inline int residual_infer(Model *fast, const Model *trained, int max_batch, Error *err) {
  return batch_norm2d_fold_open(fast, residual_infer_graph(trained->graph), trained, max_batch, err);
}

#endif /* PHASE3_CNN_RESIDUAL_INFER_CUH */
