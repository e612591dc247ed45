/* nd_reduce_op.cu - the Ops of nd_reduce.cuh. */
#include "phase1_building_blocks/08_softmax/softmax.cuh"
#include "phase5_production/07_onnx_import/nd_op.cuh"

static void reduce_cpu(const NdReduce &args, size_t n) {
  const int whole = args.compute == ND_INT || args.compute == ND_UINT;
#pragma omp parallel for schedule(static) if (n * args.count > 16384)
  for (size_t i = 0; i < n; i++) whole ? nd_reduce_cpu<int64_t>(args, i) : nd_reduce_cpu<double>(args, i);
}

static void reduce_gpu(const NdReduce &args, size_t n) {
  if (args.from == DTYPE_FLOAT32 && args.to == DTYPE_FLOAT32)
    nd_reduce_launch<true, float>(args, n);
  else if (args.compute == ND_FLOAT)
    nd_reduce_launch<false, float>(args, n);
  else if (args.compute == ND_DOUBLE)
    nd_reduce_launch<false, double>(args, n);
  else
    nd_reduce_launch<false, int64_t>(args, n);
}

static void reduce_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdReduce args = nd_attributes<NdReduce>(node);
  args.x = a->x[0];
  args.y = a->y;
  ON_DEVICE(context->device, reduce_gpu(args, nd_count(node, a)), reduce_cpu(args, nd_count(node, a)));
}

static void line_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdLine args = nd_attributes<NdLine>(node);
  args.x = a->x[0];
  args.y = a->y;
  const size_t lines = nd_count(node, a) / args.out_length;
  if (args.kind == ND_LINE_SOFTMAX && args.inner == 1 && args.from == DTYPE_FLOAT32) /* rows: phase 1 has kernels */
    ON_DEVICE(context->device, softmax_forward_gpu(a->y, a->x[0], (int)lines, (int)args.length),
              softmax_forward_cpu(a->y, a->x[0], (int)lines, (int)args.length));
  else
    nd_run<false>(context, args, lines);
}

/* In the order of NdReduceKind. */
#define REDUCE(name) \
  { name, 0, 0, NULL, NULL, reduce_forward, nd_no_backward }
const Op nd_reduce_ops[] = {REDUCE("ReduceSum"),      REDUCE("ReduceMean"),   REDUCE("ReduceMax"),
                            REDUCE("ReduceMin"),      REDUCE("ReduceProd"),   REDUCE("ReduceL1"),
                            REDUCE("ReduceL2"),       REDUCE("ReduceLogSum"), REDUCE("ReduceLogSumExp"),
                            REDUCE("ReduceSumSquare")};

/* In the order of NdLineKind. */
#define LINE(name) \
  { name, 0, 0, NULL, NULL, line_forward, nd_no_backward }
const Op nd_line_ops[] = {LINE("Softmax"), LINE("LogSoftmax"),      LINE("Hardmax"),
                          LINE("CumSum"),  LINE("ArgMax"),          LINE("TopK"),
                          LINE("TopK"),    LINE("LpNormalization"), LINE("LpNormalization")};
