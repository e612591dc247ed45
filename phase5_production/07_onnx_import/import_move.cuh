/* import_move.cuh - builders of operators that only move numbers, and of those that choose them by indices. */
#ifndef PHASE5_PRODUCTION_IMPORT_MOVE_CUH
#define PHASE5_PRODUCTION_IMPORT_MOVE_CUH

#include "phase5_production/07_onnx_import/import_graph.h"

/* A size that was computed from shapes: IMPORT_BATCH is the batch. */
static inline int64_t import_size(int64_t value) { return value == IMPORT_BATCH ? (int64_t)ONNX_IMPORT_BATCH : value; }

/* A node that copies x by strides. */
static inline int import_copy_node(Import *im, NdCopyKind kind, ImportValue *x, const ImportShape *shape, NdAxes axes,
                                   NdStrides strides) {
  NdCopy args;
  memset(&args, 0, sizeof args);
  args.bytes = (int)dtype_bytes(x->type);
  args.axes = axes;
  args.strides = strides;
  NdStrides *const list[] = {&args.strides};
  nd_collapse(&args.axes, list, 1);
  return import_add(im, &nd_copy_ops[kind], &x, 1, x->type, shape, &args, sizeof args);
}

static inline int import_copy(Import *im, int k, NdCopyKind kind, ImportValue *x, const ImportShape *shape, NdAxes axes,
                              NdStrides strides) {
  if (import_wanted(im, k) == NULL) return 0;
  return import_output(im, k, import_copy_node(im, kind, x, shape, axes, strides), x->type, shape);
}

/* ----------------------------------------------------------------------------------------------------- other shapes */

/* The one size that is -1 follows from the others. Of what has the batch first, the batch stays first: as N, as 0 (that
 * of x), as -1, or as the 1 that an exporter wrote for the batch that it was called with. */
static inline int build_reshape(Import *im) {
  ImportValue *x = import_expect(im, 0);
  int64_t target[64];
  int rank, free_axis = -1;
  if (x == NULL || import_ints(im, im->opset < 5 ? "shape" : NULL, 1, target, 64, &rank) != 0) return -1;
  if (rank < 0 || rank > ONNX_MAX_RANK)
    return import_fail(im, "a shape of %d sizes; 0 to %d are possible", rank, ONNX_MAX_RANK);
  ImportShape s = import_shape0();
  s.rank = rank;
  int64_t known = 1;
  for (int i = 0; i < rank; i++) {
    s.dim[i] = import_size(target[i]);
    if (target[i] == 0 && !import_attribute(im, "allowzero", 0)) {
      if (i >= x->shape.rank) return import_fail(im, "size %d is to stay, and x has %d axes", i, x->shape.rank);
      s.dim[i] = x->shape.dim[i];
    } else if (target[i] == -1) {
      if (free_axis >= 0) return import_fail(im, "two sizes of the new shape are -1; one can follow from the others");
      free_axis = i;
    }
    if (i == free_axis || s.dim[i] == ONNX_IMPORT_BATCH) continue;
    if (s.dim[i] < 0 || __builtin_mul_overflow(known, s.dim[i], &known))
      return import_fail(im, "size %d of the new shape is %lld", i, (long long)s.dim[i]);
  }
  const int64_t all = (int64_t)import_count(&x->shape);
  const int batched = import_batched(&x->shape);
  if (batched && rank > 0 && s.dim[0] == 1 && free_axis != 0 && (free_axis > 0 || known == all))
    s.dim[0] = ONNX_IMPORT_BATCH;
  if (free_axis == 0 && batched && known == all)
    s.dim[0] = ONNX_IMPORT_BATCH;
  else if (free_axis >= 0) {
    if (known == 0 || all % known != 0)
      return import_fail(im, "%s does not fit into the new shape: %lld elements, %lld in the sizes that are given",
                         import_shape_text(&x->shape).text, (long long)all, (long long)known);
    s.dim[free_axis] = all / known;
  }
  if ((int64_t)import_count(&s) != all || import_batched(&s) != batched)
    return import_fail(im, "%s is to become %s: %s", import_shape_text(&x->shape).text, import_shape_text(&s).text,
                       batched ? "the batch N must stay the first axis. Fix the batch instead: give the inputs a first "
                                 "size that is a number"
                               : "the numbers of elements differ");
  return import_output_view(im, 0, x, &s);
}

static inline int build_flatten(Import *im) {
  ImportValue *x = import_expect(im, 0);
  if (x == NULL) return -1;
  const int64_t asked = import_attribute(im, "axis", 1);
  const int axis = (int)(asked < 0 ? asked + x->shape.rank : asked);
  if (axis < 0 || axis > x->shape.rank) return import_fail(im, "axis %lld of %d", (long long)asked, x->shape.rank);
  ImportShape s = import_shape1((int64_t)import_product(&x->shape, 0, axis));
  s.dim[s.rank++] = (int64_t)import_product(&x->shape, axis, x->shape.rank);
  if (import_batched(&x->shape) && axis != 1)
    return import_fail(im,
                       "the batch N of %s would be joined with other axes. Fix the batch instead: give the inputs a "
                       "first size that is a number",
                       import_shape_text(&x->shape).text);
  if (import_batched(&x->shape)) s.dim[0] = ONNX_IMPORT_BATCH;
  return import_output_view(im, 0, x, &s);
}

/* Squeeze; kind 1: Unsqueeze. */
static inline int build_squeeze(Import *im) {
  ImportValue *x = import_expect(im, 0);
  int64_t axes[ONNX_MAX_RANK];
  int count, chosen[2 * ONNX_MAX_RANK] = {0};
  if (x == NULL ||
      import_ints(im, im->opset < 13 ? "axes" : NULL, im->opset < 13 ? -1 : 1, axes, ONNX_MAX_RANK, &count) != 0)
    return -1;
  const int rank = im->kind ? x->shape.rank + (count > 0 ? count : 0) : x->shape.rank;
  for (int i = 0; i < count; i++) {
    int axis;
    if (import_axis(im, axes[i], rank, &axis) != 0) return -1;
    if (!im->kind && x->shape.dim[axis] != 1)
      return import_fail(im, "axis %d of %s is to vanish; only an axis of size 1 can", axis,
                         import_shape_text(&x->shape).text);
    if (chosen[axis]++) return import_fail(im, "axis %d is named twice", axis);
  }
  for (int i = 0; i < rank && count < 0 && !im->kind; i++) chosen[i] = x->shape.dim[i] == 1;
  ImportShape s = import_shape0();
  if (rank > ONNX_MAX_RANK) return import_fail(im, "%d axes; up to %d are possible", rank, ONNX_MAX_RANK);
  for (int i = 0, from = 0; i < rank; i++) {
    if (im->kind)
      s.dim[s.rank++] = chosen[i] ? 1 : x->shape.dim[from++];
    else if (!chosen[i])
      s.dim[s.rank++] = x->shape.dim[i];
  }
  return import_output_view(im, 0, x, &s);
}

/* ----------------------------------------------------------------------------------------------------------- copies */

static inline int build_transpose(Import *im) {
  ImportValue *x = import_expect(im, 0);
  int64_t order[ONNX_MAX_RANK];
  int count, seen[ONNX_MAX_RANK] = {0};
  if (x == NULL || import_ints(im, "perm", -1, order, ONNX_MAX_RANK, &count) != 0) return -1;
  const int rank = x->shape.rank;
  for (int i = 0; i < rank && count < 0; i++) order[i] = rank - 1 - i;
  if (count >= 0 && count != rank) return import_fail(im, "an order of %d axes for %d", count, rank);
  const NdStrides from = import_plain_strides(&x->shape);
  NdStrides strides = from;
  ImportShape s = x->shape;
  int same = 1, last = -1;
  for (int i = 0; i < rank; i++) {
    if (order[i] < 0 || order[i] >= rank || seen[order[i]]++)
      return import_fail(im, "the order of axes is not a permutation");
    s.dim[i] = x->shape.dim[order[i]];
    strides.step[i] = from.step[order[i]];
    if (s.dim[i] == 1) continue; /* an axis of one element may go anywhere */
    same &= order[i] > last;
    last = (int)order[i];
  }
  if (import_check_shape(im, &s) != 0) return -1;
  if (same) return import_output_view(im, 0, x, &s);
  return import_copy(im, 0, ND_TRANSPOSE, x, &s, import_axes(&s), strides);
}

/* The part of an axis that Slice names: its first element, and how many there are. */
static inline void import_slice_axis(int64_t n, int64_t start, int64_t end, int64_t step, int64_t *first,
                                     int64_t *size) {
  if (start < 0) start = start < -n ? (step < 0 ? -1 : 0) : start + n;
  if (end < 0) end = end < -n ? (step < 0 ? -1 : 0) : end + n;
  if (step > 0) {
    *first = start > n ? n : start;
    if (end > n) end = n;
    *size = end > *first ? (end - *first - 1) / step + 1 : 0;
  } else {
    *first = start > n - 1 ? n - 1 : start;
    if (end > n - 1) end = n - 1;
    *size = *first > end ? (*first - end - 1) / -step + 1 : 0;
  }
}

/* An output without elements is a constant. */
static inline int import_empty(Import *im, int k, DType type, const ImportShape *s) {
  return import_constant(im, k, type, s, import_buffer(im, 1), 0);
}

static inline int build_slice(Import *im) {
  ImportValue *x = import_expect(im, 0);
  int64_t start[ONNX_MAX_RANK], end[ONNX_MAX_RANK], axes[ONNX_MAX_RANK], step[ONNX_MAX_RANK];
  int starts, ends, count, steps;
  const int old = im->opset < 10;
  if (x == NULL || import_ints(im, old ? "starts" : NULL, old ? -1 : 1, start, ONNX_MAX_RANK, &starts) != 0 ||
      import_ints(im, old ? "ends" : NULL, old ? -1 : 2, end, ONNX_MAX_RANK, &ends) != 0 ||
      import_ints(im, old ? "axes" : NULL, old ? -1 : 3, axes, ONNX_MAX_RANK, &count) != 0 ||
      import_ints(im, NULL, old ? -1 : 4, step, ONNX_MAX_RANK, &steps) != 0)
    return -1;
  if (starts < 0 || starts != ends || (count >= 0 && count != starts) || (steps >= 0 && steps != starts))
    return import_fail(im, "%d starts, %d ends, %d axes, %d steps; as many of each are expected", starts, ends, count,
                       steps);
  ImportShape s = x->shape;
  NdStrides strides = import_plain_strides(&x->shape);
  int changes = 0, seen[ONNX_MAX_RANK] = {0};
  for (int i = 0; i < starts; i++) {
    int axis;
    const int64_t asked = steps >= 0 ? step[i] : 1, by = asked < -INT_MAX  ? -INT_MAX
                                                         : asked > INT_MAX ? INT_MAX
                                                                           : asked;
    if (import_axis(im, count >= 0 ? axes[i] : i, x->shape.rank, &axis) != 0) return -1;
    if (seen[axis]++) return import_fail(im, "axis %d is named twice", axis);
    if (by == 0) return import_fail(im, "a step of 0 along axis %d", axis);
    if (x->shape.dim[axis] == ONNX_IMPORT_BATCH) {
      if (start[i] == 0 && by == 1 && (end[i] >= IMPORT_BATCH)) continue; /* all of it */
      return import_fail(im,
                         "a part of the batch is taken. Fix the batch: give the inputs a first size that is a number");
    }
    int64_t first;
    import_slice_axis(x->shape.dim[axis], start[i], end[i], by, &first, &s.dim[axis]);
    changes |= s.dim[axis] != x->shape.dim[axis] || by != 1;
    strides.offset += first * strides.step[axis];
    strides.step[axis] *= by;
  }
  if (!changes) return import_alias(im, 0, x);
  if (import_count(&s) == 0) return import_empty(im, 0, x->type, &s);
  return import_copy(im, 0, ND_SLICE, x, &s, import_axes(&s), strides);
}

static inline int build_split(Import *im) {
  ImportValue *x = import_expect(im, 0);
  int64_t sizes[256], first = 0;
  int count, axis;
  if (x == NULL || import_axis(im, import_attribute(im, "axis", 0), x->shape.rank, &axis) != 0 ||
      import_ints(im, im->opset < 13 ? "split" : NULL, 1, sizes, 256, &count) != 0)
    return -1;
  const int outputs = (int)im->node->n_output;
  const int64_t n = x->shape.dim[axis];
  if (n == ONNX_IMPORT_BATCH)
    return import_fail(im, "the batch is split. Fix it: give the inputs a first size that is a number");
  if (outputs > 256 || (count >= 0 && count != outputs))
    return import_fail(im, "%d sizes for %d outputs", count, outputs);
  const int64_t each = (n + outputs - 1) / outputs; /* the last may be smaller */
  for (int k = 0; k < outputs && count < 0; k++) sizes[k] = k < outputs - 1 ? each : n - each * (outputs - 1);
  for (int k = 0; k < outputs; k++) {
    ImportShape s = x->shape;
    NdStrides strides = import_plain_strides(&x->shape);
    s.dim[axis] = sizes[k];
    strides.offset = first * strides.step[axis];
    if (sizes[k] >= 0 && sizes[k] <= n) first += sizes[k];
    if (sizes[k] < 0 || sizes[k] > n || first > n)
      return import_fail(im, "parts of %lld elements of an axis of %lld", (long long)first, (long long)n);
    im->named = 0;
    const int status = import_count(&s) == 0 ? import_empty(im, k, x->type, &s)
                                             : import_copy(im, k, ND_SPLIT, x, &s, import_axes(&s), strides);
    if (status != 0) return -1;
  }
  return 0;
}

/* Expand x to a shape, which may begin with the batch. */
static inline int import_expand(Import *im, int k, ImportValue *x, const ImportShape *s) {
  if (import_same_shape(&x->shape, s)) return import_alias(im, k, x);
  if (import_check_shape(im, s) != 0) return -1;
  if (import_count(s) == 0) return import_empty(im, k, x->type, s);
  return import_copy(im, k, ND_EXPAND, x, s, import_axes(s), import_strides(&x->shape, s->rank));
}

/* A shape that constant input i has computed. */
static inline int import_shape_input(Import *im, int i, ImportShape *s) {
  int64_t sizes[ONNX_MAX_RANK];
  *s = import_shape0();
  if (import_ints(im, NULL, i, sizes, ONNX_MAX_RANK, &s->rank) != 0) return -1;
  if (s->rank < 0) return import_fail(im, "input %d, the shape, is missing", i);
  for (int k = 0; k < s->rank; k++) s->dim[k] = import_size(sizes[k]);
  return 0;
}

static inline int build_expand(Import *im);

/* Tile: as many copies along each axis. Axis i of y is (repeats, size), with the stride 0 and that of x. */
static inline int build_tile(Import *im) {
  ImportValue *x = import_expect(im, 0);
  int64_t repeats[ONNX_MAX_RANK], axis[ONNX_MAX_RANK];
  int count, axes = -1;
  if (x == NULL || import_ints(im, NULL, 1, repeats, ONNX_MAX_RANK, &count) != 0) return -1;
  if (im->opset < 6) { /* one axis, and how often */
    if (import_ints(im, NULL, 2, axis, 1, &axes) != 0) return -1;
    if (count != 1 || axes != 1 || axis[0] < 0 || axis[0] >= x->shape.rank)
      return import_fail(im, "tiles and axis are expected to be one number each");
    const int64_t times = repeats[0];
    for (int i = 0; i < x->shape.rank; i++) repeats[i] = i == axis[0] ? times : 1;
    count = x->shape.rank;
  }
  if (count != x->shape.rank) return import_fail(im, "%d repeats for %d axes", count, x->shape.rank);
  const NdStrides from = import_plain_strides(&x->shape);
  ImportShape s = x->shape;
  NdAxes fine;
  NdStrides strides;
  memset(&fine, 0, sizeof fine);
  memset(&strides, 0, sizeof strides);
  for (int i = 0; i < count; i++) {
    if (repeats[i] < 0 || repeats[i] > INT_MAX || (repeats[i] != 1 && x->shape.dim[i] == ONNX_IMPORT_BATCH))
      return import_fail(im, "axis %d is repeated %lld times", i, (long long)repeats[i]);
    if (x->shape.dim[i] != ONNX_IMPORT_BATCH) s.dim[i] *= repeats[i];
    for (int part = repeats[i] == 1; part < 2; part++) {
      if (fine.rank == ND_RANK) return import_fail(im, "more than %d axes and repeated ones", ND_RANK);
      fine.dim[fine.rank] = part == 0                              ? (unsigned)repeats[i]
                            : x->shape.dim[i] == ONNX_IMPORT_BATCH ? 0
                                                                   : (unsigned)x->shape.dim[i];
      strides.step[fine.rank++] = part == 0 ? 0 : from.step[i];
    }
  }
  if (import_check_shape(im, &s) != 0) return -1;
  if (import_count(&s) == 0) return import_empty(im, 0, x->type, &s);
  return import_copy(im, 0, ND_TILE, x, &s, fine, strides);
}

static inline int build_expand(Import *im) {
  ImportValue *x = import_expect(im, 0);
  ImportShape target, s = import_shape0();
  if (x == NULL || import_shape_input(im, 1, &target) != 0) return -1;
  s.rank = x->shape.rank > target.rank ? x->shape.rank : target.rank;
  for (int i = 0; i < s.rank; i++) {
    const int a = i - (s.rank - x->shape.rank), b = i - (s.rank - target.rank);
    const int64_t da = a >= 0 ? x->shape.dim[a] : 1, db = b >= 0 ? target.dim[b] : 1;
    if (da != db && da != 1 && db != 1)
      return import_fail(im, "%s does not expand to %s", import_shape_text(&x->shape).text,
                         import_shape_text(&target).text);
    s.dim[i] = da == 1 ? db : da;
  }
  return import_expand(im, 0, x, &s);
}

/* The channels of blocks x blocks pixels are one channel's pixels: (N,C,H,W) as (N,b,b,C',H,W), or (N,C',b,b,H,W). */
static inline int build_depth_to_space(Import *im) {
  ImportValue *x = import_expect(im, 0);
  char mode[16];
  if (x == NULL) return -1;
  const int64_t b = import_attribute(im, "blocksize", 0);
  const int rows_first = strcmp(onnx_attribute_string(im->node, "mode", "DCR", mode, sizeof mode), "CRD") != 0;
  if (x->shape.rank != 4 || b < 1 || b > 4096)
    return import_fail(im, "blocks of %lld of %s", (long long)b, import_shape_text(&x->shape).text);
  const int64_t c = x->shape.dim[1], h = x->shape.dim[2], w = x->shape.dim[3];
  ImportShape s = x->shape;
  NdAxes axes = import_axes(&s);
  NdStrides strides = import_plain_strides(&s);
  axes.rank = 6;
  if (im->kind) { /* SpaceToDepth: y (N, b rows, b columns, C, H/b, W/b) */
    if (h % b != 0 || w % b != 0)
      return import_fail(im, "blocks of %lld of a picture of %lld x %lld", (long long)b, (long long)h, (long long)w);
    const unsigned dim[] = {axes.dim[0], (unsigned)b, (unsigned)b, (unsigned)c, (unsigned)(h / b), (unsigned)(w / b)};
    const long long step[] = {strides.step[0], w, 1, h * w, b * w, b};
    s.dim[1] = c * b * b, s.dim[2] = h / b, s.dim[3] = w / b;
    memcpy(axes.dim, dim, sizeof dim);
    memcpy(strides.step, step, sizeof step);
  } else { /* y (N, C', H, b, W, b) */
    if (c % (b * b) != 0) return import_fail(im, "blocks of %lld of %lld channels", (long long)b, (long long)c);
    const int64_t less = c / (b * b), row = (rows_first ? b * less : b) * h * w,
                  column = (rows_first ? less : 1) * h * w;
    const unsigned dim[] = {axes.dim[0], (unsigned)less, (unsigned)h, (unsigned)b, (unsigned)w, (unsigned)b};
    const long long step[] = {strides.step[0], (rows_first ? 1 : b * b) * h * w, w, row, 1, column};
    s.dim[1] = less, s.dim[2] = h * b, s.dim[3] = w * b;
    memcpy(axes.dim, dim, sizeof dim);
    memcpy(strides.step, step, sizeof step);
  }
  return import_copy(im, 0, im->kind ? ND_SPACE_TO_DEPTH : ND_DEPTH_TO_SPACE, x, &s, axes, strides);
}

/* ----------------------------------------------------------------------------------------------------------- concat */

/* Values first..first+count-1 of `list`, at most 8. */
static inline ImportValue *import_concat(Import *im, ImportValue **list, int count, int axis) {
  NdConcat args;
  memset(&args, 0, sizeof args);
  ImportShape s = list[0]->shape;
  s.dim[axis] = 0;
  args.bytes = (int)dtype_bytes(list[0]->type);
  args.inputs = count;
  for (int k = 0; k < count; k++) {
    ImportShape other = list[k]->shape;
    if (other.rank != s.rank || list[k]->type != list[0]->type || other.dim[axis] == ONNX_IMPORT_BATCH) {
      import_fail(im, "%s %s and %s %s cannot be put together along axis %d", dtype_name(list[0]->type),
                  import_shape_text(&list[0]->shape).text, dtype_name(list[k]->type), import_shape_text(&other).text,
                  axis);
      return NULL;
    }
    s.dim[axis] += other.dim[axis];
    args.start[k + 1] = args.start[k] + (unsigned)import_product(&other, axis, other.rank);
    other.dim[axis] = s.dim[axis];
    if (import_same_shape(&other, &s)) continue;
    import_fail(im, "%s and %s differ in other axes than %d", import_shape_text(&list[0]->shape).text,
                import_shape_text(&list[k]->shape).text, axis);
    return NULL;
  }
  return import_temporary(im, import_add(im, &nd_concat_op, list, count, list[0]->type, &s, &args, sizeof args),
                          list[0]->type, &s);
}

static inline int build_concat(Import *im) {
  ImportValue *first = import_expect(im, 0);
  int axis;
  if (first == NULL || import_axis(im, import_attribute(im, "axis", 1), first->shape.rank, &axis) != 0) return -1;
  ImportValue *list[IMPORT_INPUTS];
  int count = 0;
  for (int k = 0; k < im->inputs; k++) { /* what has no elements adds nothing */
    if (import_expect(im, k) == NULL) return -1;
    if (import_count(&im->in[k]->shape) > 0 && im->in[k]->shape.rank > 0) list[count++] = im->in[k];
  }
  if (count == 0) return import_alias(im, 0, first);
  while (count > NODE_MAX_INPUTS) { /* eight at a time */
    ImportValue *joined = import_concat(im, list, NODE_MAX_INPUTS, axis);
    if (joined == NULL) return -1;
    list[0] = joined;
    memmove(list + 1, list + NODE_MAX_INPUTS, (size_t)(count - NODE_MAX_INPUTS) * sizeof *list);
    count -= NODE_MAX_INPUTS - 1;
  }
  const ImportValue *all = count == 1 ? list[0] : import_concat(im, list, count, axis);
  return all ? import_alias(im, 0, all) : -1;
}

#endif /* PHASE5_PRODUCTION_IMPORT_MOVE_CUH */
