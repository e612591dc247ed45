/* nd_linear_op.cu - a linear layer on the last axis of an array. */
#include "phase2_mlp/03_mlp/linear_op.cuh"
#include "phase5_production/07_onnx_import/nd_op.cuh"

static void linear_forward(const Context *context, const Node *node, const OpArrays *a) {
  OpArrays rows = *a;
  rows.batch = (int)(nd_count(node, a) / (size_t)linear_out(node));
  linear_op.forward(context, node, &rows);
}

const Op nd_linear_op = {"MatMul", 0, 0, NULL, NULL, linear_forward, nd_no_backward};
