/* import_reduce.cuh - builders of reductions and of operators along an axis. */
#ifndef PHASE5_PRODUCTION_IMPORT_REDUCE_CUH
#define PHASE5_PRODUCTION_IMPORT_REDUCE_CUH

#include "phase5_production/07_onnx_import/import_elementwise.cuh"

/* x reduced over the axes that are chosen; they stay as 1, or vanish. */
static inline ImportValue *import_reduce(Import *im, NdReduceKind kind, ImportValue *x, const int *chosen, int keep) {
  NdReduce args;
  ImportShape s = import_shape0();
  if (x == NULL) return NULL;
  memset(&args, 0, sizeof args);
  const NdStrides from = import_plain_strides(&x->shape);
  args.kind = kind;
  args.from = args.to = x->type;
  args.compute = nd_compute(x->type);
  args.count = 1;
  for (int i = 0; i < x->shape.rank; i++) {
    const int64_t n = x->shape.dim[i];
    if (!chosen[i]) {
      args.strides.step[args.axes.rank] = from.step[i];
      args.axes.dim[args.axes.rank++] = n == ONNX_IMPORT_BATCH ? 0 : (unsigned)n;
      s.dim[s.rank++] = n;
      continue;
    }
    if (n == ONNX_IMPORT_BATCH || n < 1) {
      import_fail(im, "axis %d of %s is reduced: %s", i, import_shape_text(&x->shape).text,
                  n < 1 && n != ONNX_IMPORT_BATCH
                      ? "it has no elements"
                      : "the batch must stay. Fix it: give the inputs a first size that is a number");
      return NULL;
    }
    args.over_strides.step[args.over.rank] = from.step[i];
    args.over.dim[args.over.rank++] = (unsigned)n;
    args.count *= (size_t)n;
    if (keep) s.dim[s.rank++] = 1;
  }
  NdStrides *const list[] = {&args.strides}, *const over[] = {&args.over_strides};
  nd_collapse(&args.axes, list, 1);
  nd_collapse(&args.over, over, 1);
  return import_temporary(im, import_add(im, &nd_reduce_ops[kind], &x, 1, x->type, &s, &args, sizeof args), x->type,
                          &s);
}

/* Axes as an attribute, or an input: of ReduceSum since version 13, of the others since 18. */
static inline int build_reduce(Import *im) {
  ImportValue *x = import_expect(im, 0);
  int64_t axes[ONNX_MAX_RANK];
  int count, chosen[ONNX_MAX_RANK] = {0};
  const int old = im->opset < (im->kind == ND_REDUCE_SUM ? 13 : 18);
  if (x == NULL || import_ints(im, old ? "axes" : NULL, old ? -1 : 1, axes, ONNX_MAX_RANK, &count) != 0) return -1;
  if (count <= 0 && import_attribute(im, "noop_with_empty_axes", 0)) return import_alias(im, 0, x);
  for (int i = 0; i < count; i++) {
    int axis;
    if (import_axis(im, axes[i], x->shape.rank, &axis) != 0) return -1;
    chosen[axis] = 1;
  }
  for (int i = 0; i < x->shape.rank && count <= 0; i++) chosen[i] = 1;
  const ImportValue *y = import_reduce(im, (NdReduceKind)im->kind, x, chosen, import_attribute(im, "keepdims", 1) != 0);
  return y ? import_alias(im, 0, y) : -1;
}

/* Axes from 2 on. */
static inline void import_choose_space(const ImportShape *s, int *chosen) {
  for (int i = 0; i < s->rank; i++) chosen[i] = i >= 2;
}

/* ------------------------------------------------------------------------------------------------------------ lines */

/* Arguments for the axis of x. -1: the axis is the batch. */
static inline int import_line(Import *im, NdLine *args, NdLineKind kind, const ImportValue *x, int axis) {
  memset(args, 0, sizeof *args);
  args->kind = kind;
  args->compute = nd_compute(x->type);
  args->from = args->to = x->type;
  args->largest = 1;
  args->length = args->out_length = (unsigned)x->shape.dim[axis];
  args->inner = (unsigned)import_product(&x->shape, axis + 1, x->shape.rank);
  if (x->shape.dim[axis] != ONNX_IMPORT_BATCH && x->shape.dim[axis] > 0) return 0;
  return import_fail(
      im, "axis %d of %s: it is %s", axis, import_shape_text(&x->shape).text,
      x->shape.dim[axis] == 0 ? "empty" : "the batch. Fix it: give the inputs a first size that is a number");
}

static inline int import_line_output(Import *im, int k, const NdLine *args, ImportValue *x, const ImportShape *s) {
  if (import_wanted(im, k) == NULL) return 0;
  return import_output(im, k, import_add(im, &nd_line_ops[args->kind], &x, 1, args->to, s, args, sizeof *args),
                       args->to, s);
}

/* Softmax, LogSoftmax, Hardmax. Before version 13 all axes from `axis` on are one. */
static inline int build_softmax(Import *im) {
  ImportValue *x = import_expect(im, 0);
  NdLine args;
  int axis;
  if (x == NULL || import_axis(im, import_attribute(im, "axis", im->opset < 13 ? 1 : -1), x->shape.rank, &axis) != 0 ||
      import_line(im, &args, (NdLineKind)im->kind, x, axis) != 0)
    return -1;
  if (im->opset < 13) {
    args.length = args.out_length = (unsigned)import_product(&x->shape, axis, x->shape.rank);
    args.inner = 1;
  }
  return import_line_output(im, 0, &args, x, &x->shape);
}

static inline int build_lp_normalization(Import *im) {
  ImportValue *x = import_expect(im, 0);
  NdLine args;
  int axis;
  const NdLineKind kind = import_attribute(im, "p", 2) == 1 ? ND_LINE_L1_NORM : ND_LINE_L2_NORM;
  if (x == NULL || import_axis(im, import_attribute(im, "axis", -1), x->shape.rank, &axis) != 0 ||
      import_line(im, &args, kind, x, axis) != 0)
    return -1;
  return import_line_output(im, 0, &args, x, &x->shape);
}

static inline int build_cumsum(Import *im) {
  ImportValue *x = import_expect(im, 0);
  NdLine args;
  int64_t asked;
  int axis, count;
  if (x == NULL || import_ints(im, NULL, 1, &asked, 1, &count) != 0) return -1;
  if (count != 1) return import_fail(im, "an axis is expected");
  if (import_axis(im, asked, x->shape.rank, &axis) != 0 || import_line(im, &args, ND_LINE_CUMSUM, x, axis) != 0)
    return -1;
  args.exclusive = import_attribute(im, "exclusive", 0) != 0;
  args.reverse = import_attribute(im, "reverse", 0) != 0;
  return import_line_output(im, 0, &args, x, &x->shape);
}

/* ArgMax; kind 1: ArgMin. */
static inline int build_arg(Import *im) {
  ImportValue *x = import_expect(im, 0);
  NdLine args;
  int axis;
  if (x == NULL || import_axis(im, import_attribute(im, "axis", 0), x->shape.rank, &axis) != 0 ||
      import_line(im, &args, ND_LINE_ARG, x, axis) != 0)
    return -1;
  args.to = DTYPE_INT64;
  args.out_length = 1;
  args.largest = im->kind == 0;
  args.last = import_attribute(im, "select_last_index", 0) != 0;
  ImportShape s = x->shape;
  s.dim[axis] = 1;
  if (!import_attribute(im, "keepdims", 1)) {
    for (int i = axis; i + 1 < s.rank; i++) s.dim[i] = s.dim[i + 1];
    s.rank--;
  }
  return import_line_output(im, 0, &args, x, &s);
}

static inline int build_top_k(Import *im) {
  ImportValue *x = import_expect(im, 0);
  NdLine args;
  int64_t k = import_attribute(im, "k", 0);
  int axis, count = 1;
  if (x == NULL || (im->opset >= 10 && import_ints(im, NULL, 1, &k, 1, &count) != 0)) return -1;
  if (import_axis(im, import_attribute(im, "axis", -1), x->shape.rank, &axis) != 0 ||
      import_line(im, &args, ND_LINE_TOP_VALUES, x, axis) != 0)
    return -1;
  if (count != 1 || k < 1 || k > x->shape.dim[axis])
    return import_fail(im, "the %lld largest of %lld", (long long)k, (long long)x->shape.dim[axis]);
  args.out_length = (unsigned)k;
  args.largest = import_attribute(im, "largest", 1) != 0;
  ImportShape s = x->shape;
  s.dim[axis] = k;
  if (import_line_output(im, 0, &args, x, &s) != 0) return -1;
  args.kind = ND_LINE_TOP_INDICES;
  args.to = DTYPE_INT64;
  return import_line_output(im, 1, &args, x, &s);
}

#endif /* PHASE5_PRODUCTION_IMPORT_REDUCE_CUH */
