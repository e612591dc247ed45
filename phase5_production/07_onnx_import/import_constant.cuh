/* import_constant.cuh - builders of operators whose result is known when a model is imported. */
#ifndef PHASE5_PRODUCTION_IMPORT_CONSTANT_CUH
#define PHASE5_PRODUCTION_IMPORT_CONSTANT_CUH

#include "phase5_production/07_onnx_import/import_move.cuh"

static inline int build_constant(Import *im) {
  const Onnx__TensorProto *tensor = onnx_attribute_tensor(im->node, "value");
  size_t count = 0;
  ImportShape s = import_shape0();
  DType type;
  if (tensor) {
    OnnxTensor t;
    if (onnx_tensor_load(&t, im->model, tensor, im->err) != 0) return -1;
    s.rank = t.rank;
    memcpy(s.dim, t.dim, sizeof s.dim);
    void *data = import_buffer(im, t.bytes);
    if (t.bytes) memcpy(data, t.data, t.bytes);
    const int onnx_type = t.type;
    onnx_tensor_free(&t);
    if (import_type(im, onnx_type, &type) != 0) return -1;
    return import_constant(im, 0, type, &s, data, 0);
  }
  const int64_t *ints = onnx_attribute_ints(im->node, "value_ints", &count);
  if (ints) {
    s = import_shape1((int64_t)count);
    return import_constant(im, 0, DTYPE_INT64, &s, ints, 0);
  }
  const float *floats = onnx_attribute_floats(im->node, "value_floats", &count);
  if (floats) {
    s = import_shape1((int64_t)count);
    return import_constant(im, 0, DTYPE_FLOAT32, &s, floats, 0);
  }
  const int whole = onnx_attribute(im->node, "value_int") != NULL;
  if (!whole && onnx_attribute(im->node, "value_float") == NULL)
    return import_fail(im, "a constant without a tensor and without numbers");
  void *data = import_buffer(im, 8);
  if (whole)
    *(int64_t *)data = import_attribute(im, "value_int", 0);
  else
    *(float *)data = import_attribute_float(im, "value_float", 0);
  return import_constant(im, 0, whole ? DTYPE_INT64 : DTYPE_FLOAT32, &s, data, 0);
}

/* Sizes start..end-1. The batch is IMPORT_BATCH. */
static inline int build_shape(Import *im) {
  ImportValue *x = import_expect(im, 0);
  if (x == NULL) return -1;
  const int rank = x->shape.rank;
  int64_t start = import_attribute(im, "start", 0), end = import_attribute(im, "end", rank);
  if (start < 0) start = start + rank < 0 ? 0 : start + rank;
  if (end < 0) end += rank;
  if (end > rank) end = rank;
  if (start > end) start = end > 0 ? end : 0;
  const ImportShape s = import_shape1(end > start ? end - start : 0);
  int64_t *data = (int64_t *)import_buffer(im, (size_t)s.dim[0] * sizeof *data);
  int symbolic = 0;
  for (int64_t i = 0; i < s.dim[0]; i++) {
    const int64_t n = x->shape.dim[start + i];
    data[i] = n == ONNX_IMPORT_BATCH ? IMPORT_BATCH : n;
    symbolic |= n == ONNX_IMPORT_BATCH;
  }
  return import_constant(im, 0, DTYPE_INT64, &s, data, symbolic);
}

static inline int build_size(Import *im) {
  ImportValue *x = import_expect(im, 0);
  if (x == NULL) return -1;
  const ImportShape none = import_shape0();
  int64_t *data = (int64_t *)import_buffer(im, sizeof *data);
  *data = (int64_t)import_count(&x->shape) * (import_batched(&x->shape) ? IMPORT_BATCH : 1);
  return import_constant(im, 0, DTYPE_INT64, &none, data, import_batched(&x->shape));
}

static inline int build_constant_of_shape(Import *im) {
  const Onnx__TensorProto *tensor = onnx_attribute_tensor(im->node, "value");
  ImportShape s, one = import_shape0();
  DType type = DTYPE_FLOAT32;
  uint64_t number = 0;
  if (import_shape_input(im, 0, &s) != 0 || import_check_shape(im, &s) != 0) return -1;
  if (tensor) {
    OnnxTensor t;
    if (onnx_tensor_load(&t, im->model, tensor, im->err) != 0) return -1;
    const int single = t.count == 1, known = import_dtype(t.type) >= 0;
    if (single && known) memcpy(&number, t.data, t.bytes); /* up to 8 */
    const int onnx_type = t.type;
    onnx_tensor_free(&t);
    if (!single) return import_fail(im, "a value of several numbers; one is expected");
    if (import_type(im, onnx_type, &type) != 0) return -1;
  }
  const size_t bytes = dtype_bytes(type), count = import_count(&s);
  if (import_batched(&s)) {
    void *value = import_buffer(im, 8);
    memcpy(value, &number, bytes);
    return import_expand(im, 0, import_literal(im, "value", type, &one, value), &s);
  }
  if (import_check_constant(im, &s, type) != 0) return -1;
  unsigned char *data = (unsigned char *)import_buffer(im, count * bytes);
  for (size_t i = 0; i < count && number != 0; i++) memcpy(data + i * bytes, &number, bytes);
  return import_constant(im, 0, type, &s, data, 0);
}

static inline int build_range(Import *im) {
  ImportValue *start = import_expect(im, 0), *limit = start ? import_expect(im, 1) : NULL,
              *delta = limit ? import_expect(im, 2) : NULL;
  if (delta == NULL || import_data(im, start) == NULL || import_data(im, limit) == NULL ||
      import_data(im, delta) == NULL)
    return -1;
  const double from = import_real(start, 0), by = import_real(delta, 0),
               steps = ceil((import_real(limit, 0) - from) / by);
  if (start->symbolic || limit->symbolic || delta->symbolic || by == 0 || !(steps < 1e8))
    return import_fail(im, "a range from %g in steps of %g: %g numbers", from, by, steps);
  const ImportShape s = import_shape1(steps > 0 ? (int64_t)steps : 0);
  void *data = import_buffer(im, (size_t)s.dim[0] * dtype_bytes(start->type));
  for (int64_t i = 0; i < s.dim[0]; i++) nd_store<double>(data, start->type, (size_t)i, from + (double)i * by);
  return import_constant(im, 0, start->type, &s, data, 0);
}

static inline int build_eye_like(Import *im) {
  ImportValue *x = import_expect(im, 0);
  DType type;
  if (x == NULL) return -1;
  type = x->type;
  const int64_t asked = import_attribute(im, "dtype", 0), shift = import_attribute(im, "k", 0);
  if (asked && import_type(im, asked, &type) != 0) return -1;
  if (x->shape.rank != 2 || import_batched(&x->shape) || shift < -INT_MAX || shift > INT_MAX)
    return import_fail(im, "%s; a matrix is expected", import_shape_text(&x->shape).text);
  void *data = import_buffer(im, import_count(&x->shape) * dtype_bytes(type));
  for (int64_t row = 0; row < x->shape.dim[0]; row++)
    if (row + shift >= 0 && row + shift < x->shape.dim[1])
      nd_store<double>(data, type, (size_t)(row * x->shape.dim[1] + row + shift), 1);
  return import_constant(im, 0, type, &x->shape, data, 0);
}

/* HannWindow, HammingWindow, BlackmanWindow: a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n); n - 1 if it is symmetric. */
static inline int build_window(Import *im) {
  static const double weights[3][3] = {{0.5, 0.5, 0}, {25.0 / 46, 1 - 25.0 / 46, 0}, {0.42, 0.5, 0.08}};
  ImportValue *size = import_expect(im, 0);
  DType type;
  if (size == NULL || import_data(im, size) == NULL ||
      import_type(im, import_attribute(im, "output_datatype", ONNX_FLOAT), &type) != 0)
    return -1;
  const ImportShape s = import_shape1(import_int(size, 0));
  if (s.dim[0] < 1 || s.dim[0] > 100000000) return import_fail(im, "a window of %lld", (long long)s.dim[0]);
  const double n = (double)(import_attribute(im, "periodic", 1) ? s.dim[0] : s.dim[0] - 1), *a = weights[im->kind];
  void *data = import_buffer(im, (size_t)s.dim[0] * dtype_bytes(type));
  for (int64_t i = 0; i < s.dim[0]; i++) {
    const double angle = n > 0 ? 2 * 3.14159265358979323846 * (double)i / n : 0;
    nd_store<double>(data, type, (size_t)i, a[0] - a[1] * cos(angle) + a[2] * cos(2 * angle));
  }
  return import_constant(im, 0, type, &s, data, 0);
}

/* Dropout passes everything on, and its mask is true. */
static inline int build_dropout(Import *im) {
  ImportValue *x = import_expect(im, 0), *ratio = import_input(im, 1), *trains = import_input(im, 2);
  if (x == NULL) return -1;
  if (trains && (import_data(im, trains) == NULL || (ratio && import_data(im, ratio) == NULL))) return -1;
  if (trains && import_int(trains, 0) && (ratio ? import_real(ratio, 0) : 0.5) > 0)
    return import_fail(im, "it drops at random, which belongs to training; export the model for inference");
  if (import_alias(im, 0, x) != 0) return -1;
  if (import_wanted(im, 1) == NULL) return 0;
  return import_expand(im, 1, import_number(im, DTYPE_BOOL, 1), &x->shape);
}

#endif /* PHASE5_PRODUCTION_IMPORT_CONSTANT_CUH */
