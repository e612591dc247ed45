/* import_normalize.cuh - builders of normalisations, Resize and GridSample. */
#ifndef PHASE5_PRODUCTION_IMPORT_NORMALIZE_CUH
#define PHASE5_PRODUCTION_IMPORT_NORMALIZE_CUH

#include "phase3_cnn/10_batch_norm/batch_norm2d_op.cuh"
#include "phase3_cnn/10_batch_norm/instance_norm_op.cuh"
#include "phase3_cnn/10_batch_norm/layer_norm_op.cuh"
#include "phase5_production/07_onnx_import/import_index.cuh"
#include "phase5_production/07_onnx_import/import_reduce.cuh"

/* ------------------------------------------------------------------------------------------------------- batch norm */

/* x as pictures (N,C,H,W), whose channels stay. */
static inline ImportValue *import_as_channels(Import *im, ImportValue *x) {
  ImportShape s = x->shape;
  if (s.rank == 4) return x;
  const int64_t pixels = (int64_t)import_product(&s, 2, s.rank);
  s.rank = 4;
  s.dim[2] = 1;
  s.dim[3] = pixels;
  return import_view(im, x, &s);
}

/* batch_norm2d_op has PyTorch's epsilon. Another one is the same as a variance that differs by the difference. */
static inline const void *import_variance(Import *im, ImportValue *variance, double epsilon) {
  const float *data = (const float *)import_data(im, variance);
  const size_t count = import_count(&variance->shape);
  if (data == NULL || (float)epsilon == BATCH_NORM_EPSILON) return data;
  float *moved = (float *)import_buffer(im, count * sizeof *moved);
  for (size_t i = 0; i < count; i++) moved[i] = (float)(data[i] + epsilon - (double)BATCH_NORM_EPSILON);
  return moved;
}

static inline int import_batch_norm_ours(Import *im, ImportValue *x, ImportValue *const p[4], double epsilon) {
  ImportValue *picture = import_as_channels(im, x);
  const int from = picture ? import_node_of(im, picture) : GRAPH_ERROR;
  if (from < 0) return -1;
  import_name(im, p[0]);
  const int node = graph_typed(im->g, batch_norm2d(im->g, from), x->type, im->g->nodes[from].whole);
  if (node < 0) return import_check_graph(im);
  for (int k = 0; k < 3; k++)
    if (import_bind_value(im, node, k, p[k]) != 0) return -1;
  const void *variance = import_variance(im, p[3], epsilon);
  if (variance == NULL) return -1;
  import_bind(im, node, 3, variance, import_bytes(p[3]), DTYPE_FLOAT32, NULL);
  return import_output_view(im, 0, import_temporary(im, node, x->type, &picture->shape), &x->shape);
}

/* old * momentum + now * (1 - momentum) */
static inline ImportValue *import_running(Import *im, ImportValue *old, ImportValue *now, double momentum) {
  ImportValue *a = import_unary(im, old, ND_AFFINE, momentum, 0, old->type),
              *b = import_unary(im, now, ND_AFFINE, 1 - momentum, 0, now->type);
  return a && b ? import_binary(im, ND_ADD, a, b) : NULL;
}

/* The mean over the chosen axes, which vanish, and the variance. */
static inline int import_moments(Import *im, ImportValue *x, const int *chosen, int keep, ImportValue **mean,
                                 ImportValue **variance) {
  *mean = import_reduce(im, ND_REDUCE_MEAN, x, chosen, keep);
  ImportValue *kept = keep ? *mean : import_reduce(im, ND_REDUCE_MEAN, x, chosen, 1);
  ImportValue *off = kept && *mean ? import_binary(im, ND_SUB, x, kept) : NULL;
  ImportValue *squares = off ? import_binary(im, ND_MUL, off, off) : NULL;
  *variance = squares ? import_reduce(im, ND_REDUCE_MEAN, squares, chosen, keep) : NULL;
  return *variance ? 0 : -1;
}

static inline int build_batch_norm(Import *im) {
  ImportValue *x = import_expect(im, 0), *p[4];
  NdChannel args;
  int chosen[ONNX_MAX_RANK], ours;
  memset(&args, 0, sizeof args);
  for (int k = 0; k < 4; k++)
    if (x == NULL || (p[k] = import_expect(im, k + 1)) == NULL) return -1;
  const double epsilon = (double)import_attribute_float(im, "epsilon", 1e-5f);
  if (x->shape.rank < 2 || !import_attribute(im, "spatial", 1))
    return import_fail(im, "x %s; channels along axis 1 are expected", import_shape_text(&x->shape).text);
  ours = x->type == DTYPE_FLOAT32 && !import_is_constant(x);
  for (int k = 0; k < 4; k++) {
    ours &= import_is_constant(p[k]) && p[k]->type == DTYPE_FLOAT32;
    if (import_count(&p[k]->shape) != (size_t)x->shape.dim[1] || p[k]->type != p[0]->type)
      return import_fail(im, "input %d is %s; %lld numbers are expected", k + 1, import_shape_text(&p[k]->shape).text,
                         (long long)x->shape.dim[1]);
  }
  if (import_attribute(im, "training_mode", 0)) {
    const double momentum = import_attribute_float(im, "momentum", 0.9f);
    ImportValue *mean, *variance;
    for (int i = 0; i < x->shape.rank; i++) chosen[i] = i != 1;
    if (import_moments(im, x, chosen, 0, &mean, &variance) != 0) return -1;
    ImportValue *running[] = {import_running(im, p[2], mean, momentum), import_running(im, p[3], variance, momentum)};
    if (running[0] == NULL || running[1] == NULL || import_alias(im, 1, running[0]) != 0 ||
        import_alias(im, 2, running[1]) != 0)
      return -1;
    p[2] = mean;
    p[3] = variance;
    ours = 0;
  }
  if (ours) return import_batch_norm_ours(im, x, p, epsilon);
  args.channels = (unsigned)x->shape.dim[1];
  args.inner = (unsigned)import_product(&x->shape, 2, x->shape.rank);
  args.epsilon = (float)epsilon;
  args.type = x->type;
  args.parameter_type = p[0]->type;
  ImportValue *inputs[] = {x, p[0], p[1], p[2], p[3]};
  return import_output(im, 0, import_add(im, &nd_channel_op, inputs, 5, x->type, &x->shape, &args, sizeof args),
                       x->type, &x->shape);
}

/* -------------------------------------------------------------------------------------------------- rows and others */

static inline int build_instance_norm(Import *im) {
  ImportValue *x = import_expect(im, 0), *scale = x ? import_expect(im, 1) : NULL,
              *bias = scale ? import_expect(im, 2) : NULL;
  const float epsilon = import_attribute_float(im, "epsilon", 1e-5f);
  NdRows args;
  memset(&args, 0, sizeof args);
  if (bias == NULL) return -1;
  if (x->shape.rank < 3 || import_count(&scale->shape) != (size_t)x->shape.dim[1] ||
      import_count(&bias->shape) != (size_t)x->shape.dim[1])
    return import_fail(im, "x %s with %s", import_shape_text(&x->shape).text, import_shape_text(&scale->shape).text);
  args.length = (unsigned)import_product(&x->shape, 2, x->shape.rank);
  if (x->type == DTYPE_FLOAT32 && epsilon == 1e-5f && args.length > 1 && !import_is_constant(x) &&
      import_is_constant(scale) && import_is_constant(bias)) {
    ImportValue *picture = import_as_channels(im, x);
    const int from = picture ? import_node_of(im, picture) : GRAPH_ERROR;
    if (from < 0) return -1;
    import_name(im, scale);
    const int node = graph_typed(im->g, instance_norm2d_affine(im->g, from), x->type, im->g->nodes[from].whole);
    if (node < 0) return import_check_graph(im);
    if (import_bind_value(im, node, 0, scale) != 0 || import_bind_value(im, node, 1, bias) != 0) return -1;
    return import_output_view(im, 0, import_temporary(im, node, x->type, &picture->shape), &x->shape);
  }
  args.channels = (unsigned)x->shape.dim[1];
  args.epsilon = epsilon;
  args.type = x->type;
  ImportValue *inputs[] = {x, scale, bias};
  return import_output(im, 0, import_add(im, &nd_instance_norm_op, inputs, 3, x->type, &x->shape, &args, sizeof args),
                       x->type, &x->shape);
}

/* y, and the mean and 1 / standard deviation of each row where they are read. */
static inline int build_layer_norm(Import *im) {
  ImportValue *x = import_expect(im, 0), *scale = x ? import_expect(im, 1) : NULL, *bias = import_input(im, 2);
  const float epsilon = import_attribute_float(im, "epsilon", 1e-5f);
  NdRows args;
  int axis, chosen[ONNX_MAX_RANK];
  memset(&args, 0, sizeof args);
  if (scale == NULL || import_axis(im, import_attribute(im, "axis", -1), x->shape.rank, &axis) != 0) return -1;
  args.length = (unsigned)import_product(&x->shape, axis, x->shape.rank);
  if ((axis == 0 && import_batched(&x->shape)) || import_count(&scale->shape) != args.length ||
      (bias && import_count(&bias->shape) != args.length))
    return import_fail(im, "x %s from axis %d on with scales %s", import_shape_text(&x->shape).text, axis,
                       import_shape_text(&scale->shape).text);
  args.epsilon = epsilon;
  args.type = x->type;
  const int dims = x->shape.rank - axis;
  if (x->type == DTYPE_FLOAT32 && epsilon == 1e-5f && axis > 0 && bias && scale->shape.rank == dims &&
      !import_is_constant(x) && import_is_constant(scale) && import_is_constant(bias)) {
    const int from = import_node_of(im, x);
    if (from < 0) return -1;
    import_name(im, scale);
    const int node = graph_typed(im->g, layer_norm_last(im->g, from, dims), x->type, im->g->nodes[from].whole);
    if (node < 0) return import_check_graph(im);
    if (import_bind_value(im, node, 0, scale) != 0 || import_bind_value(im, node, 1, bias) != 0 ||
        import_output(im, 0, node, x->type, &x->shape) != 0)
      return -1;
  } else {
    ImportValue *inputs[] = {x, scale, bias};
    if (import_output(im, 0,
                      import_add(im, &nd_layer_norm_op, inputs, bias ? 3 : 2, x->type, &x->shape, &args, sizeof args),
                      x->type, &x->shape) != 0)
      return -1;
  }
  if (import_wanted(im, 1) == NULL && import_wanted(im, 2) == NULL) return 0;
  ImportValue *mean, *variance;
  for (int i = 0; i < x->shape.rank; i++) chosen[i] = i >= axis;
  if (import_moments(im, x, chosen, 1, &mean, &variance) != 0) return -1;
  ImportValue *root =
      import_unary(im, import_unary(im, variance, ND_AFFINE, 1, (double)epsilon, x->type), ND_SQRT, 0, 0, x->type);
  ImportValue *inverse = root ? import_unary(im, root, ND_RECIPROCAL, 0, 0, x->type) : NULL;
  return inverse && import_alias(im, 1, mean) == 0 ? import_alias(im, 2, inverse) : -1;
}

/* (x - mean) / (deviation + 1e-9) over some axes */
static inline int build_mean_variance(Import *im) {
  ImportValue *x = import_expect(im, 0), *mean, *variance;
  int64_t axes[ONNX_MAX_RANK] = {0, 2, 3};
  int count, axis, chosen[ONNX_MAX_RANK] = {0};
  if (x == NULL || import_ints(im, "axes", -1, axes, ONNX_MAX_RANK, &count) != 0) return -1;
  for (int i = 0; i < (count < 0 ? 3 : count); i++) {
    if (import_axis(im, axes[i], x->shape.rank, &axis) != 0) return -1;
    chosen[axis] = 1;
  }
  if (import_moments(im, x, chosen, 1, &mean, &variance) != 0) return -1;
  ImportValue *deviation =
      import_unary(im, import_unary(im, variance, ND_SQRT, 0, 0, x->type), ND_AFFINE, 1, 1e-9, x->type);
  ImportValue *off = deviation ? import_binary(im, ND_SUB, x, mean) : NULL,
              *y = off ? import_binary(im, ND_DIV, off, deviation) : NULL;
  return y ? import_alias(im, 0, y) : -1;
}

static inline int build_lrn(Import *im) {
  ImportValue *x = import_expect(im, 0);
  NdAcross args;
  memset(&args, 0, sizeof args);
  if (x == NULL) return -1;
  args.size = (int)import_attribute(im, "size", 0);
  if (x->shape.rank < 2 || args.size < 1 || args.size > 65536)
    return import_fail(im, "x %s, %d channels", import_shape_text(&x->shape).text, args.size);
  args.channels = (unsigned)x->shape.dim[1];
  args.inner = (unsigned)import_product(&x->shape, 2, x->shape.rank);
  args.alpha = import_attribute_float(im, "alpha", 1e-4f);
  args.beta = import_attribute_float(im, "beta", 0.75f);
  args.bias = import_attribute_float(im, "bias", 1);
  args.type = x->type;
  return import_output(im, 0, import_add(im, &nd_lrn_op, &x, 1, x->type, &x->shape, &args, sizeof args), x->type,
                       &x->shape);
}

/* ----------------------------------------------------------------------------------------------------------- Resize */

/* The index of a text in a list; a sentence where it is not there. */
static inline int import_choice(Import *im, const char *attribute, const char *otherwise, const char *const *names,
                                int count, int *choice) {
  char text[40];
  onnx_attribute_string(im->node, attribute, otherwise, text, sizeof text);
  for (*choice = 0; *choice < count; ++*choice)
    if (strcmp(text, names[*choice]) == 0) return 0;
  return import_fail(im, "%s \"%s\" is not known", attribute, text);
}

static inline int import_resize_modes(Import *im, NdResize *args) {
  static const char *const coordinates[] = {"half_pixel",          "pytorch_half_pixel",   "align_corners",
                                            "asymmetric",          "tf_half_pixel_for_nn", "tf_crop_and_resize",
                                            "half_pixel_symmetric"};
  static const char *const samplings[] = {"nearest", "linear", "cubic", "bilinear"};
  static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  int sampling, coordinate, rounding;
  const int old = im->opset < 11;
  if (import_choice(im, "mode", "nearest", samplings, 4, &sampling) != 0 ||
      import_choice(im, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel", coordinates, 7,
                    &coordinate) != 0 ||
      import_choice(im, "nearest_mode", old ? "floor" : "round_prefer_floor", nearest, 4, &rounding) != 0)
    return -1;
  args->sampling = (NdSampling)(sampling == 3 ? ND_LINEAR : sampling);
  args->coordinates = (NdCoordinates)coordinate;
  args->nearest = (NdNearest)rounding;
  args->exclude_outside = import_attribute(im, "exclude_outside", 0) != 0;
  args->cubic = import_attribute_float(im, "cubic_coeff_a", -0.75f);
  args->extrapolation = import_attribute_float(im, "extrapolation_value", 0);
  return 0;
}

/* The factor along each axis: of attributes or inputs; *sizes: those that are asked for, -1: none. */
static inline int import_resize_sizes(Import *im, const ImportValue *x, double *scale, int64_t *size) {
  const int old = im->opset < 11; /* Upsample, and the first Resize: scales alone */
  size_t count = 0;
  const float *list = old ? onnx_attribute_floats(im->node, "scales", &count) : NULL;
  ImportValue *scales = import_input(im, old ? 1 : 2), *sizes = old ? NULL : import_input(im, 3);
  if (list == NULL && scales && import_data(im, scales) == NULL) return -1;
  if (sizes && import_data(im, sizes) == NULL) return -1;
  if (list == NULL && scales) count = import_count(&scales->shape);
  if (count > 0 && count != (size_t)x->shape.rank)
    return import_fail(im, "%zu scales for %d axes", count, x->shape.rank);
  if (count == 0 && (sizes == NULL || import_count(&sizes->shape) != (size_t)x->shape.rank))
    return import_fail(im, "scales or sizes are expected, one for each of %d axes", x->shape.rank);
  for (int i = 0; i < x->shape.rank; i++) {
    const int64_t n = x->shape.dim[i];
    if (count > 0 && !((list ? (double)list[i] : import_real(scales, (size_t)i)) < 1e6))
      return import_fail(im, "a scale of %g along axis %d", list ? (double)list[i] : import_real(scales, (size_t)i), i);
    scale[i] = count == 0 ? 0 : list ? (double)list[i] : import_real(scales, (size_t)i);
    size[i] = count == 0               ? import_size(import_int(sizes, (size_t)i))
              : n == ONNX_IMPORT_BATCH ? n
                                       : (int64_t)floor((double)n * scale[i]);
    if (n == ONNX_IMPORT_BATCH && size[i] == 1) size[i] = n;
    if (n == ONNX_IMPORT_BATCH ? size[i] != n : n < 1 || size[i] < 1 || size[i] > INT_MAX)
      return import_fail(im, "axis %d, of %lld, would get %lld elements", i, (long long)n, (long long)size[i]);
    if (count == 0 && n != ONNX_IMPORT_BATCH) scale[i] = (double)size[i] / (double)n;
  }
  return 0;
}

static inline int build_resize(Import *im) {
  ImportValue *x = import_expect(im, 0), *roi = im->opset < 11 ? NULL : import_input(im, 1);
  NdResize args;
  double scale[ONNX_MAX_RANK];
  ImportShape s = import_shape0();
  memset(&args, 0, sizeof args);
  if (x == NULL || import_resize_modes(im, &args) != 0 || import_resize_sizes(im, x, scale, s.dim) != 0) return -1;
  s.rank = x->shape.rank;
  const int crops = args.coordinates == ND_CROP_AND_RESIZE;
  if (crops && (roi == NULL || import_data(im, roi) == NULL))
    return import_fail(im, "tf_crop_and_resize needs the region of interest");
  if (crops && import_count(&roi->shape) != 2 * (size_t)s.rank)
    return import_fail(im, "a region of %zu numbers", import_count(&roi->shape));
  for (int i = 0; i < s.rank; i++) {
    const double start = crops ? import_real(roi, (size_t)i) : 0,
                 end = crops ? import_real(roi, (size_t)(i + s.rank)) : 1;
    if (s.dim[i] == x->shape.dim[i] && (scale[i] == 1 || s.dim[i] == ONNX_IMPORT_BATCH) && start == 0 && end == 1)
      continue;
    if (args.count == ND_RESIZED) return import_fail(im, "more than %d axes are resized", ND_RESIZED);
    const int k = args.count++;
    args.resized[k] = i;
    args.in[k] = (int)x->shape.dim[i];
    args.scale[k] = (float)scale[i];
    args.length[k] = (float)((double)x->shape.dim[i] * scale[i]);
    args.start[k] = (float)start;
    args.end[k] = (float)end;
  }
  if (args.count == 0) return import_alias(im, 0, x);
  args.type = x->type;
  args.axes = import_axes(&s);
  args.strides = import_plain_strides(&x->shape);
  return import_output(im, 0, import_add(im, &nd_resize_op, &x, 1, x->type, &s, &args, sizeof args), x->type, &s);
}

static inline int build_grid_sample(Import *im) {
  static const char *const samplings[] = {"nearest", "bilinear", "bicubic", "linear", "cubic"};
  static const char *const paddings[] = {"zeros", "border", "reflection"};
  ImportValue *x = import_expect(im, 0), *grid = x ? import_expect(im, 1) : NULL;
  NdGridSample args;
  int sampling, padding;
  memset(&args, 0, sizeof args);
  if (grid == NULL || import_choice(im, "mode", "bilinear", samplings, 5, &sampling) != 0 ||
      import_choice(im, "padding_mode", "zeros", paddings, 3, &padding) != 0)
    return -1;
  if (x->shape.rank != 4 || grid->shape.rank != 4 || grid->shape.dim[3] != 2 || grid->shape.dim[0] != x->shape.dim[0] ||
      x->type != DTYPE_FLOAT32 || grid->type != x->type)
    return import_fail(im, "%s %s by a grid %s %s; pictures of float32 are expected", dtype_name(x->type),
                       import_shape_text(&x->shape).text, dtype_name(grid->type), import_shape_text(&grid->shape).text);
  args.sampling = (NdSampling)(sampling > 2 ? sampling - 2 : sampling);
  args.padding = (NdGridPadding)padding;
  args.align_corners = import_attribute(im, "align_corners", 0) != 0;
  args.channels = (int)x->shape.dim[1], args.height = (int)x->shape.dim[2], args.width = (int)x->shape.dim[3];
  args.out_height = (int)grid->shape.dim[1], args.out_width = (int)grid->shape.dim[2];
  ImportShape s = x->shape;
  s.dim[2] = grid->shape.dim[1], s.dim[3] = grid->shape.dim[2];
  return import_two(im, &nd_grid_sample_op, x, grid, x->type, &s, &args, sizeof args);
}

#endif /* PHASE5_PRODUCTION_IMPORT_NORMALIZE_CUH */
