/* nd_resize_op.cu - the Ops of nd_resize.cuh. */
#include "phase5_production/07_onnx_import/nd_op.cuh"

static void resize_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdResize args = nd_attributes<NdResize>(node);
  args.x = a->x[0];
  args.y = a->y;
  if (args.type == DTYPE_FLOAT32)
    nd_run<true>(context, args, nd_count(node, a));
  else
    nd_run<false>(context, args, nd_count(node, a));
}

static void grid_sample_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdGridSample args = nd_attributes<NdGridSample>(node);
  args.x = a->x[0];
  args.grid = a->x[1];
  args.y = a->y;
  nd_run<true>(context, args, nd_count(node, a));
}

const Op nd_resize_op = {"Resize", 0, 0, NULL, NULL, resize_forward, nd_no_backward};
const Op nd_grid_sample_op = {"GridSample", 0, 0, NULL, NULL, grid_sample_forward, nd_no_backward};
