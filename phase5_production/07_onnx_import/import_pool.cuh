/* import_pool.cuh - builders of pooling, and of what undoes it. */
#ifndef PHASE5_PRODUCTION_IMPORT_POOL_CUH
#define PHASE5_PRODUCTION_IMPORT_POOL_CUH

#include "phase3_cnn/09_pooling/avg_pool2d_op.cuh"
#include "phase3_cnn/09_pooling/global_avg_pool2d_op.cuh"
#include "phase3_cnn/09_pooling/max_pool2d_op.cuh"
#include "phase5_production/07_onnx_import/import_reduce.cuh"
#include "phase5_production/07_onnx_import/import_window.cuh"

static inline Pool2dShape import_pool_shape(const ImportWindow *o, int ceil_mode) {
  const Pool2dWindow window = {o->w.kernel[1], o->w.kernel[2], o->w.stride[1],
                               o->w.stride[2], o->w.before[1], o->w.before[2]};
  Pool2dShape shape = pool2d_shape_of(1, o->w.channels, o->w.in[1], o->w.in[2], window);
  shape.dilation_h = o->w.dilation[1], shape.dilation_w = o->w.dilation[2];
  shape.ceil_mode = ceil_mode;
  return shape;
}

/* MaxPool, AveragePool, LpPool: kind is NdPoolKind. */
static inline int build_pool(Import *im) {
  ImportValue *x = import_expect(im, 0);
  ImportWindow o;
  int64_t kernel[ND_SPACE];
  int count;
  const int ceil_mode = import_attribute(im, "ceil_mode", 0) != 0,
            include = import_attribute(im, "count_include_pad", 0) != 0;
  if (x == NULL || import_ints(im, "kernel_shape", -1, kernel, ND_SPACE, &count) != 0) return -1;
  if (count != x->shape.rank - 2)
    return import_fail(im, "a kernel of %d axes for x %s", count, import_shape_text(&x->shape).text);
  if (import_window(im, x, &o, kernel) != 0 || import_window_out(im, &o, ceil_mode) != 0) return -1;
  const ImportShape s = import_window_shape(x, &o, o.w.channels);
  const Pool2dShape shape = import_pool_shape(&o, ceil_mode);
  Error why;
  const int fits = x->type == DTYPE_FLOAT32 && o.space <= 2 && import_symmetric(&o.w) && im->kind != ND_POOL_LP &&
                   (im->kind == ND_POOL_MAX ? max_pool2d_shape_check : avg_pool2d_shape_check)(shape, &why) == 0;
  if (fits && import_wanted(im, 1) == NULL) {
    ImportValue *picture = import_as_picture(im, x);
    const int from = picture ? import_node_of(im, picture) : GRAPH_ERROR;
    if (from < 0) return -1;
    import_name(im, NULL);
    const int node = im->kind == ND_POOL_MAX ? max_pool2d_shaped(im->g, from, shape)
                                             : avg_pool2d_shaped(im->g, from, shape, include);
    return import_picture_output(im, graph_typed(im->g, node, x->type, im->g->nodes[from].whole), x, &s);
  }
  NdPool args;
  memset(&args, 0, sizeof args);
  args.window = o.w;
  args.kind = (NdPoolKind)im->kind;
  args.compute = nd_compute(x->type);
  args.type = x->type;
  args.include_pad = include;
  args.column_major = import_attribute(im, "storage_order", 0) != 0;
  args.p = (double)import_attribute(im, "p", 2);
  if (import_output(im, 0, import_add(im, &nd_pool_ops[im->kind], &x, 1, x->type, &s, &args, sizeof args), x->type,
                    &s) != 0)
    return -1;
  if (im->kind != ND_POOL_MAX || import_wanted(im, 1) == NULL) return 0;
  args.kind = ND_POOL_MAX_INDEX;
  return import_output(im, 1,
                       import_add(im, &nd_pool_ops[ND_POOL_MAX_INDEX], &x, 1, DTYPE_INT64, &s, &args, sizeof args),
                       DTYPE_INT64, &s);
}

/* GlobalAveragePool, GlobalMaxPool: kind is NdReduceKind. */
static inline int build_global_pool(Import *im) {
  ImportValue *x = import_expect(im, 0);
  int chosen[ONNX_MAX_RANK];
  if (x == NULL) return -1;
  if (x->shape.rank < 3)
    return import_fail(im, "x has the shape %s; pictures are expected", import_shape_text(&x->shape).text);
  if (im->kind != ND_REDUCE_MEAN || x->type != DTYPE_FLOAT32 || x->shape.rank != 4) {
    import_choose_space(&x->shape, chosen);
    const ImportValue *y = import_reduce(im, (NdReduceKind)im->kind, x, chosen, 1);
    return y ? import_alias(im, 0, y) : -1;
  }
  const int from = import_node_of(im, x);
  if (from < 0) return -1;
  import_name(im, NULL);
  const int node = graph_typed(im->g, global_avg_pool2d(im->g, from), x->type, im->g->nodes[from].whole);
  if (node < 0) return import_check_graph(im);
  ImportShape features = x->shape, s = x->shape;
  features.rank = 2;
  s.dim[2] = s.dim[3] = 1;
  return import_output_view(im, 0, import_temporary(im, node, x->type, &features), &s);
}

/* The shape follows from the pooling that is undone, or is given. */
static inline int build_max_unpool(Import *im) {
  ImportValue *x = import_expect(im, 0), *indices = x ? import_expect(im, 1) : NULL;
  ImportWindow o;
  ImportShape s;
  NdUnpool args;
  int64_t kernel[ND_SPACE];
  int count;
  memset(&args, 0, sizeof args);
  if (indices == NULL || import_ints(im, "kernel_shape", -1, kernel, ND_SPACE, &count) != 0) return -1;
  if (count != x->shape.rank - 2 || indices->type != DTYPE_INT64 || !import_same_shape(&x->shape, &indices->shape) ||
      import_batched(&x->shape))
    return import_fail(im, "x %s, indices %s, a kernel of %d axes", import_shape_text(&x->shape).text,
                       import_shape_text(&indices->shape).text, count);
  if (import_window(im, x, &o, kernel) != 0) return -1;
  s = x->shape;
  for (int i = 0; i < o.space; i++) {
    const int d = ND_SPACE - o.space + i;
    s.dim[2 + i] = (int64_t)(o.w.in[d] - 1) * o.w.stride[d] - o.w.before[d] - o.w.after[d] + o.w.kernel[d];
  }
  const ImportShape pooled = s; /* what the indices count */
  if (import_input(im, 2) && import_shape_input(im, 2, &s) != 0) return -1;
  args.bytes = (int)dtype_bytes(x->type);
  if (s.rank != x->shape.rank || s.dim[0] != x->shape.dim[0] || s.dim[1] != x->shape.dim[1])
    return import_fail(im, "x %s, an output of %s", import_shape_text(&x->shape).text, import_shape_text(&s).text);
  args.per_sample = import_count(&x->shape) / (size_t)x->shape.dim[0];
  args.axes = import_axes(&pooled);
  args.strides = import_plain_strides(&s);
  return import_two(im, &nd_max_unpool_op, x, indices, x->type, &s, &args, sizeof args);
}

#endif /* PHASE5_PRODUCTION_IMPORT_POOL_CUH */
