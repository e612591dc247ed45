/* nd_move_op.cu - the Ops of nd_move.cuh. */
#include "phase5_production/07_onnx_import/nd_op.cuh"

void nd_no_backward(const Context *context, const Node *node, const OpArrays *arrays) {
  (void)context, (void)arrays;
  die("%s (%s) has no backward: an imported operation of this kind is not trained", node->name, node->op->name);
}

static void copy_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdCopy args = nd_attributes<NdCopy>(node);
  args.x = a->x[0];
  args.y = a->y;
  if (args.bytes == 4)
    nd_run<true>(context, args, nd_count(node, a));
  else
    nd_run<false>(context, args, nd_count(node, a));
}

static void concat_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdConcat args = nd_attributes<NdConcat>(node);
  for (int k = 0; k < node->inputs; k++) args.x[k] = a->x[k];
  args.y = a->y;
  if (args.bytes == 4)
    nd_run<true>(context, args, nd_count(node, a));
  else
    nd_run<false>(context, args, nd_count(node, a));
}

static void pad_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdPad args = nd_attributes<NdPad>(node);
  args.x = a->x[0];
  args.value = node->inputs > 1 ? a->x[1] : NULL;
  args.y = a->y;
  nd_run<false>(context, args, nd_count(node, a));
}

static void triangle_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdTriangle args = nd_attributes<NdTriangle>(node);
  args.x = a->x[0];
  args.y = a->y;
  nd_run<false>(context, args, nd_count(node, a));
}

static void gather_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdGather args = nd_attributes<NdGather>(node);
  args.x = a->x[0];
  args.indices = a->x[1];
  args.y = a->y;
  nd_run<false>(context, args, nd_count(node, a));
}

static void gather_elements_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdGatherElements args = nd_attributes<NdGatherElements>(node);
  args.x = a->x[0];
  args.indices = a->x[1];
  args.y = a->y;
  nd_run<false>(context, args, nd_count(node, a));
}

static void gather_nd_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdGatherNd args = nd_attributes<NdGatherNd>(node);
  args.tuples.indices = a->x[1];
  args.x = a->x[0];
  args.y = a->y;
  nd_run<false>(context, args, nd_count(node, a));
}

static void one_hot_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdOneHot args = nd_attributes<NdOneHot>(node);
  args.indices = a->x[0];
  args.values = a->x[1];
  args.y = a->y;
  nd_run<false>(context, args, nd_count(node, a));
}

/* y may be x. */
static void scatter_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdScatter args = nd_attributes<NdScatter>(node);
  const size_t threads = args.threads * (size_t)(args.batched ? a->batch : 1);
  if (a->y != a->x[0]) device_copy(context->device, a->y, a->x[0], node_bytes(node) * (size_t)a->batch);
  args.elements.indices = args.tuples.tuples.indices = a->x[1];
  args.elements.updates = args.tuples.updates = a->x[2];
  args.elements.y = args.tuples.y = a->y;
  if (args.by_tuples)
    nd_run<false>(context, args.tuples, threads);
  else
    nd_run<false>(context, args.elements, threads);
}

#define MOVE(name, forward) \
  { name, 0, 0, NULL, NULL, forward, nd_no_backward }
const Op nd_view_op = {"Reshape", 0, OP_VIEW, NULL, NULL, op_constant, nd_no_backward};
const Op nd_copy_ops[] = {MOVE("Transpose", copy_forward),    MOVE("Slice", copy_forward),
                          MOVE("Split", copy_forward),        MOVE("Expand", copy_forward),
                          MOVE("Tile", copy_forward),         MOVE("DepthToSpace", copy_forward),
                          MOVE("SpaceToDepth", copy_forward), MOVE("ReverseSequence", copy_forward)};
const Op nd_concat_op = MOVE("Concat", concat_forward);
const Op nd_pad_op = MOVE("Pad", pad_forward);
const Op nd_triangle_op = MOVE("Trilu", triangle_forward);
const Op nd_gather_op = MOVE("Gather", gather_forward);
const Op nd_gather_elements_op = MOVE("GatherElements", gather_elements_forward);
const Op nd_gather_nd_op = MOVE("GatherND", gather_nd_forward);
const Op nd_one_hot_op = MOVE("OneHot", one_hot_forward);
const Op nd_scatter_elements_op = {"ScatterElements", 0, OP_IN_PLACE, NULL, NULL, scatter_forward, nd_no_backward};
const Op nd_scatter_nd_op = {"ScatterND", 0, OP_IN_PLACE, NULL, NULL, scatter_forward, nd_no_backward};
