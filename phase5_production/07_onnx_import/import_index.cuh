/* import_index.cuh - builders of operators that choose elements by indices, and of Pad and Trilu. */
#ifndef PHASE5_PRODUCTION_IMPORT_INDEX_CUH
#define PHASE5_PRODUCTION_IMPORT_INDEX_CUH

#include "phase5_production/07_onnx_import/import_move.cuh"

static inline int import_expect_indices(Import *im, const ImportValue *v) {
  if (v->type == DTYPE_INT64 || v->type == DTYPE_INT32) return 0;
  return import_fail(im, "indices of %s; int32 or int64 is expected", dtype_name(v->type));
}

/* Indices along `axis` of x: on all other axes they are no longer than x, and x has something to choose from. */
static inline int import_expect_within(Import *im, const ImportValue *x, const ImportValue *indices, int axis) {
  int good = indices->shape.rank == x->shape.rank && x->shape.dim[axis] != 0 && x->shape.dim[axis] != ONNX_IMPORT_BATCH;
  for (int i = 0; good && i < x->shape.rank; i++) {
    const int64_t n = x->shape.dim[i], m = indices->shape.dim[i];
    if (i != axis) good = n == ONNX_IMPORT_BATCH || m == ONNX_IMPORT_BATCH ? n == m : m <= n;
  }
  if (good) return 0;
  return import_fail(im, "indices %s along axis %d of %s", import_shape_text(&indices->shape).text, axis,
                     import_shape_text(&x->shape).text);
}

/* The node of two inputs, and output 0. */
static inline int import_two(Import *im, const Op *op, ImportValue *a, ImportValue *b, DType type, const ImportShape *s,
                             const void *args, size_t bytes) {
  ImportValue *inputs[] = {a, b};
  return import_output(im, 0, import_add(im, op, inputs, 2, type, s, args, bytes), type, s);
}

static inline int build_gather(Import *im) {
  ImportValue *x = import_expect(im, 0), *indices = x ? import_expect(im, 1) : NULL;
  NdGather args;
  int axis;
  memset(&args, 0, sizeof args);
  if (indices == NULL || import_expect_indices(im, indices) != 0 ||
      import_axis(im, import_attribute(im, "axis", 0), x->shape.rank, &axis) != 0)
    return -1;
  args.batched = import_batched(&indices->shape);
  if ((args.batched && axis != 0) || (import_batched(&x->shape) && (axis == 0 || args.batched)))
    return import_fail(im,
                       "indices %s along axis %d of %s: the batch would not stay the first axis. Fix the batch: give "
                       "the inputs a first size that is a number",
                       import_shape_text(&indices->shape).text, axis, import_shape_text(&x->shape).text);
  ImportShape s = import_shape0();
  for (int i = 0; i < axis; i++) s.dim[s.rank++] = x->shape.dim[i];
  if (x->shape.rank - 1 + indices->shape.rank > ONNX_MAX_RANK)
    return import_fail(im, "more than %d axes", ONNX_MAX_RANK);
  for (int i = 0; i < indices->shape.rank; i++) s.dim[s.rank++] = indices->shape.dim[i];
  for (int i = axis + 1; i < x->shape.rank; i++) s.dim[s.rank++] = x->shape.dim[i];
  args.bytes = (int)dtype_bytes(x->type);
  args.n = (unsigned)x->shape.dim[axis];
  args.inner = (unsigned)import_product(&x->shape, axis + 1, x->shape.rank);
  args.count = (unsigned)import_count(&indices->shape);
  args.index_type = indices->type;
  if (import_count(&s) == 0) return import_empty(im, 0, x->type, &s);
  if (args.n == 0)
    return import_fail(im, "nothing to choose from: axis %d of %s", axis, import_shape_text(&x->shape).text);
  return import_two(im, &nd_gather_op, x, indices, x->type, &s, &args, sizeof args);
}

static inline int build_gather_elements(Import *im) {
  ImportValue *x = import_expect(im, 0), *indices = x ? import_expect(im, 1) : NULL;
  NdGatherElements args;
  int axis;
  memset(&args, 0, sizeof args);
  if (indices == NULL || import_expect_indices(im, indices) != 0 ||
      import_axis(im, import_attribute(im, "axis", 0), x->shape.rank, &axis) != 0)
    return -1;
  if (import_expect_within(im, x, indices, axis) != 0) return -1;
  args.bytes = (int)dtype_bytes(x->type);
  args.n = (unsigned)x->shape.dim[axis];
  args.index_type = indices->type;
  args.axes = import_axes(&indices->shape);
  args.strides = import_plain_strides(&x->shape);
  args.axis_step = args.strides.step[axis];
  args.strides.step[axis] = 0;
  return import_two(im, &nd_gather_elements_op, x, indices, x->type, &indices->shape, &args, sizeof args);
}

/* Of GatherND and ScatterND: the tuples of `indices` (..., length) into x. batch: axes that both share. */
static inline int import_tuples(Import *im, const ImportValue *x, const ImportValue *indices, int batch, NdTuples *t) {
  memset(t, 0, sizeof *t);
  const int rank = indices->shape.rank;
  if (import_expect_indices(im, indices) != 0) return -1;
  if (rank < 1 || batch < 0 || batch >= rank || batch > x->shape.rank || indices->shape.dim[rank - 1] < 1 ||
      indices->shape.dim[rank - 1] > x->shape.rank - batch)
    return import_fail(im, "tuples %s for %s, of which %d axes are shared", import_shape_text(&indices->shape).text,
                       import_shape_text(&x->shape).text, batch);
  for (int i = 0; i < batch; i++)
    if (x->shape.dim[i] != indices->shape.dim[i]) return import_fail(im, "axis %d differs: it is to be shared", i);
  if ((import_batched(&x->shape) || import_batched(&indices->shape)) && batch == 0)
    return import_fail(
        im, "tuples that choose samples of the batch. Fix it: give the inputs a first size that is a number");
  t->length = (int)indices->shape.dim[rank - 1];
  for (int k = 0; k < t->length; k++) {
    if (x->shape.dim[batch + k] < 1) return import_fail(im, "nothing to choose from along axis %d", batch + k);
    t->n[k] = (unsigned)x->shape.dim[batch + k];
  }
  t->slice = (unsigned)import_product(&x->shape, batch + t->length, x->shape.rank);
  t->tuples = (unsigned)import_product(&indices->shape, batch, rank - 1);
  t->group = (long long)import_product(&x->shape, batch, x->shape.rank);
  t->index_type = indices->type;
  return 0;
}

static inline int build_gather_nd(Import *im) {
  ImportValue *x = import_expect(im, 0), *indices = x ? import_expect(im, 1) : NULL;
  NdGatherNd args;
  memset(&args, 0, sizeof args);
  const int batch = (int)import_attribute(im, "batch_dims", 0);
  if (indices == NULL || import_tuples(im, x, indices, batch, &args.tuples) != 0) return -1;
  args.bytes = (int)dtype_bytes(x->type);
  ImportShape s = indices->shape;
  s.rank--;
  for (int i = batch + args.tuples.length; i < x->shape.rank; i++) {
    if (s.rank == ONNX_MAX_RANK) return import_fail(im, "more than %d axes", ONNX_MAX_RANK);
    s.dim[s.rank++] = x->shape.dim[i];
  }
  return import_two(im, &nd_gather_nd_op, x, indices, x->type, &s, &args, sizeof args);
}

static inline int import_scatter_kind(Import *im, NdScatterKind *kind) {
  static const char *const names[] = {"none", "add", "mul", "max", "min"};
  char text[16];
  onnx_attribute_string(im->node, "reduction", "none", text, sizeof text);
  for (int k = 0; k < 5; k++)
    if (strcmp(text, names[k]) == 0) {
      *kind = (NdScatterKind)k;
      return 0;
    }
  return import_fail(im, "reduction \"%s\"; none, add, mul, max or min is expected", text);
}

/* Also Scatter, its old name. */
static inline int build_scatter_elements(Import *im) {
  ImportValue *x = import_expect(im, 0), *indices = x ? import_expect(im, 1) : NULL,
              *updates = indices ? import_expect(im, 2) : NULL;
  NdScatter args;
  int axis;
  memset(&args, 0, sizeof args);
  NdScatterElements *e = &args.elements;
  if (updates == NULL || import_expect_indices(im, indices) != 0 || import_scatter_kind(im, &e->kind) != 0 ||
      import_axis(im, import_attribute(im, "axis", 0), x->shape.rank, &axis) != 0)
    return -1;
  args.batched = import_batched(&x->shape);
  if (import_expect_within(im, x, indices, axis) != 0) return -1;
  if (!import_same_shape(&indices->shape, &updates->shape) || updates->type != x->type)
    return import_fail(im, "indices %s and updates of %s %s", import_shape_text(&indices->shape).text,
                       dtype_name(updates->type), import_shape_text(&updates->shape).text);
  e->bytes = (int)dtype_bytes(x->type);
  e->n = (unsigned)x->shape.dim[axis];
  e->count = (unsigned)indices->shape.dim[axis];
  e->type = x->type;
  e->index_type = indices->type;
  e->axes = import_axes(&indices->shape);
  e->axes.dim[axis] = 1;
  e->own = import_plain_strides(&indices->shape);
  e->strides = import_plain_strides(&x->shape);
  e->own_step = e->own.step[axis];
  e->axis_step = e->strides.step[axis];
  args.threads = import_count(&indices->shape) / (e->count ? e->count : 1);
  ImportValue *inputs[] = {x, indices, updates};
  return import_output(im, 0,
                       import_add(im, &nd_scatter_elements_op, inputs, 3, x->type, &x->shape, &args, sizeof args),
                       x->type, &x->shape);
}

static inline int build_scatter_nd(Import *im) {
  ImportValue *x = import_expect(im, 0), *indices = x ? import_expect(im, 1) : NULL,
              *updates = indices ? import_expect(im, 2) : NULL;
  NdScatter args;
  memset(&args, 0, sizeof args);
  NdScatterNd *t = &args.tuples;
  if (updates == NULL || import_tuples(im, x, indices, 0, &t->tuples) != 0 || import_scatter_kind(im, &t->kind) != 0)
    return -1;
  if (updates->type != x->type || import_batched(&updates->shape) ||
      import_count(&updates->shape) != (size_t)t->tuples.tuples * t->tuples.slice)
    return import_fail(im, "updates %s; %u slices of %u elements are expected", import_shape_text(&updates->shape).text,
                       t->tuples.tuples, t->tuples.slice);
  args.by_tuples = 1;
  args.threads = t->tuples.slice;
  t->bytes = (int)dtype_bytes(x->type);
  t->type = x->type;
  t->count = t->tuples.tuples;
  ImportValue *inputs[] = {x, indices, updates};
  return import_output(im, 0, import_add(im, &nd_scatter_nd_op, inputs, 3, x->type, &x->shape, &args, sizeof args),
                       x->type, &x->shape);
}

static inline int build_one_hot(Import *im) {
  ImportValue *indices = import_expect(im, 0), *depth = indices ? import_expect(im, 1) : NULL,
              *values = depth ? import_expect(im, 2) : NULL;
  NdOneHot args;
  int axis;
  memset(&args, 0, sizeof args);
  if (values && (import_count(&values->shape) != 2 || import_batched(&values->shape)))
    return import_fail(im, "values %s; two are expected", import_shape_text(&values->shape).text);
  if (values == NULL || import_data(im, depth) == NULL ||
      import_axis(im, import_attribute(im, "axis", -1), indices->shape.rank + 1, &axis) != 0)
    return -1;
  const int64_t n = import_int(depth, 0);
  if (n < 1 || n > INT_MAX || indices->shape.rank == ONNX_MAX_RANK || (axis == 0 && import_batched(&indices->shape)))
    return import_fail(im, "depth %lld along axis %d of indices %s", (long long)n, axis,
                       import_shape_text(&indices->shape).text);
  ImportShape s = import_shape0();
  for (int i = 0; i < indices->shape.rank + 1; i++)
    s.dim[s.rank++] = i == axis ? n : indices->shape.dim[i - (i > axis)];
  args.bytes = (int)dtype_bytes(values->type);
  args.depth = (unsigned)n;
  args.inner = (unsigned)import_product(&s, axis + 1, s.rank);
  args.index_type = indices->type;
  return import_two(im, &nd_one_hot_op, indices, values, values->type, &s, &args, sizeof args);
}

/* ---------------------------------------------------------------------------------------------------- Pad and Trilu */

/* x with before[i] and after[i] elements more along axis i, by `mode`; `value` may be NULL. */
static inline ImportValue *import_pad(Import *im, ImportValue *x, NdPadMode mode, const int64_t *before,
                                      const int64_t *after, ImportValue *value) {
  NdPad args;
  memset(&args, 0, sizeof args);
  ImportShape s = x->shape;
  args.bytes = (int)dtype_bytes(x->type);
  args.mode = mode;
  args.strides = import_plain_strides(&x->shape);
  for (int i = 0; i < s.rank; i++) {
    const int64_t n = x->shape.dim[i];
    if (n == ONNX_IMPORT_BATCH) {
      if (before[i] == 0 && after[i] == 0) continue;
      import_fail(im, "samples are added to the batch");
      return NULL;
    }
    if (before[i] < -INT_MAX / 4 || before[i] > INT_MAX / 4 || after[i] < -INT_MAX / 4 || after[i] > INT_MAX / 4) {
      import_fail(im, "%lld and %lld elements are added to axis %d", (long long)before[i], (long long)after[i], i);
      return NULL;
    }
    s.dim[i] = n + before[i] + after[i];
    args.before[i] = (int)before[i];
    args.size[i] = (int)n;
    if (n > 0 && (mode != ND_PAD_REFLECT || (before[i] < n && after[i] < n)) && before[i] > -n && after[i] > -n &&
        before[i] < INT_MAX / 2 && after[i] < INT_MAX / 2 && s.dim[i] >= 0)
      continue;
    import_fail(im, "%lld and %lld elements are added to axis %d, of %lld", (long long)before[i], (long long)after[i],
                i, (long long)n);
    return NULL;
  }
  args.axes = import_axes(&s);
  ImportValue *inputs[] = {x, value};
  return import_temporary(im, import_add(im, &nd_pad_op, inputs, value ? 2 : 1, x->type, &s, &args, sizeof args),
                          x->type, &s);
}

static inline int build_pad(Import *im) {
  static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
  ImportValue *x = import_expect(im, 0), *value = import_input(im, 2);
  int64_t pads[2 * ONNX_MAX_RANK], axes[ONNX_MAX_RANK], before[ONNX_MAX_RANK] = {0}, after[ONNX_MAX_RANK] = {0};
  int count, chosen, mode = 0;
  char text[16];
  const char *old = im->opset < 2 ? "paddings" : im->opset < 11 ? "pads" : NULL;
  if (x == NULL || import_ints(im, old, old ? -1 : 1, pads, 2 * ONNX_MAX_RANK, &count) != 0 ||
      import_ints(im, NULL, 3, axes, ONNX_MAX_RANK, &chosen) != 0)
    return -1;
  const int padded = chosen >= 0 ? chosen : x->shape.rank;
  if (count != 2 * padded) return import_fail(im, "%d pads for %d axes; two for each are expected", count, padded);
  onnx_attribute_string(im->node, "mode", "constant", text, sizeof text);
  while (mode < 4 && strcmp(text, modes[mode]) != 0) mode++;
  if (mode == 4) return import_fail(im, "mode \"%s\"; constant, edge, reflect or wrap is expected", text);
  for (int i = 0; i < padded; i++) {
    int axis = i;
    if (chosen >= 0 && import_axis(im, axes[i], x->shape.rank, &axis) != 0) return -1;
    before[axis] = pads[i];
    after[axis] = pads[i + padded];
  }
  if (old) value = import_number(im, x->type, import_attribute_float(im, "value", 0));
  if (value && (import_count(&value->shape) != 1 || import_batched(&value->shape)))
    return import_fail(im, "a value of the shape %s; one number is expected", import_shape_text(&value->shape).text);
  if (value && value->type != x->type)
    return import_fail(im, "a value of %s for %s", dtype_name(value->type), dtype_name(x->type));
  int nothing = 1;
  for (int i = 0; i < x->shape.rank; i++) nothing &= before[i] == 0 && after[i] == 0;
  const ImportValue *y = nothing ? x : import_pad(im, x, (NdPadMode)mode, before, after, mode == 0 ? value : NULL);
  return y ? import_alias(im, 0, y) : -1;
}

static inline int build_trilu(Import *im) {
  ImportValue *x = import_expect(im, 0), *shift = import_input(im, 1);
  NdTriangle args;
  memset(&args, 0, sizeof args);
  if (x == NULL || (shift && import_data(im, shift) == NULL)) return -1;
  const int rank = x->shape.rank;
  if (rank < 2 || (rank == 2 && import_batched(&x->shape)))
    return import_fail(im, "%s; matrices are expected", import_shape_text(&x->shape).text);
  if (import_count(&x->shape) == 0) return import_empty(im, 0, x->type, &x->shape);
  args.bytes = (int)dtype_bytes(x->type);
  args.rows = (int)x->shape.dim[rank - 2];
  args.columns = (int)x->shape.dim[rank - 1];
  args.upper = import_attribute(im, "upper", 1) != 0;
  if (shift && import_count(&shift->shape) != 1) return import_fail(im, "one number k is expected");
  args.shift = shift ? import_int(shift, 0) : 0;
  if (args.shift > INT_MAX) args.shift = INT_MAX;
  if (args.shift < -INT_MAX) args.shift = -INT_MAX;
  return import_output(im, 0, import_add(im, &nd_triangle_op, &x, 1, x->type, &x->shape, &args, sizeof args), x->type,
                       &x->shape);
}

#endif /* PHASE5_PRODUCTION_IMPORT_INDEX_CUH */
