/* import_window.cuh - builders of convolutions. Those of phase 3 compute what has two axes, float32,
 * constant weights and as much padding before as after; of one axis the picture has one row. Other padding becomes a
 * node Pad in front. Everything else is computed by nd_window.cuh. */
#ifndef PHASE5_PRODUCTION_IMPORT_WINDOW_CUH
#define PHASE5_PRODUCTION_IMPORT_WINDOW_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_op.cuh"
#include "phase3_cnn/07_conv2d_depthwise/conv2d_transposed_op.cuh"
#include "phase5_production/07_onnx_import/import_index.cuh"

/* The last `space` of three axes, the others of size 1. */
typedef struct ImportWindow {
  int space, pads_given;
  NdWindow w;
  char auto_pad[16];
} ImportWindow;

/* Numbers of an attribute along the axes; `otherwise` where it is absent. */
static inline int import_along(Import *im, const char *name, int space, int otherwise, int *values, int parts) {
  int64_t list[2 * ND_SPACE];
  int count;
  if (import_ints(im, name, -1, list, 2 * ND_SPACE, &count) != 0) return -1;
  if (count >= 0 && count != parts * space) return import_fail(im, "%d %s for %d axes", count, name, space);
  for (int i = 0; i < space; i++) {
    const int64_t v = count < 0 ? otherwise : list[i];
    if (v < -1 || v > INT_MAX / 4) return import_fail(im, "%s of %lld", name, (long long)v);
    values[ND_SPACE - space + i] = (int)v;
  }
  return 0;
}

/* Strides, dilations, padding of a window on x (N,C,...), whose kernel is known. */
static inline int import_window(Import *im, const ImportValue *x, ImportWindow *o, const int64_t *kernel) {
  NdWindow *w = &o->w;
  int64_t pads[2 * ND_SPACE];
  int count;
  memset(o, 0, sizeof *o);
  o->space = x->shape.rank - 2;
  if (o->space < 1 || o->space > ND_SPACE)
    return import_fail(im, "x has the shape %s; pictures along 1, 2 or 3 axes are expected",
                       import_shape_text(&x->shape).text);
  w->channels = (int)x->shape.dim[1];
  for (int d = 0; d < ND_SPACE; d++) w->in[d] = w->out[d] = w->kernel[d] = w->stride[d] = w->dilation[d] = 1;
  if (import_along(im, "strides", o->space, 1, w->stride, 1) != 0 ||
      import_along(im, "dilations", o->space, 1, w->dilation, 1) != 0 ||
      import_ints(im, "pads", -1, pads, 2 * ND_SPACE, &count) != 0)
    return -1;
  if (count >= 0 && count != 2 * o->space) return import_fail(im, "%d pads for %d axes", count, o->space);
  onnx_attribute_string(im->node, "auto_pad", "NOTSET", o->auto_pad, sizeof o->auto_pad);
  o->pads_given = count >= 0;
  for (int i = 0; i < o->space; i++) {
    const int d = ND_SPACE - o->space + i;
    w->in[d] = (int)x->shape.dim[2 + i];
    if (kernel[i] < 1 || kernel[i] > INT_MAX / 4 || w->stride[d] < 1 || w->dilation[d] < 1)
      return import_fail(im, "a kernel of %lld, stride %d, dilation %d", (long long)kernel[i], w->stride[d],
                         w->dilation[d]);
    w->kernel[d] = (int)kernel[i];
    if ((double)w->dilation[d] * (double)w->kernel[d] > INT_MAX / 4 || x->shape.dim[2 + i] > INT_MAX / 4)
      return import_fail(im, "a kernel of %d with dilation %d on %lld elements", w->kernel[d], w->dilation[d],
                         (long long)x->shape.dim[2 + i]);
    if (count >= 0 &&
        (pads[i] < 0 || pads[i + o->space] < 0 || pads[i] > INT_MAX / 4 || pads[i + o->space] > INT_MAX / 4))
      return import_fail(im, "a padding of %lld, %lld", (long long)pads[i], (long long)pads[i + o->space]);
    w->before[d] = count >= 0 ? (int)pads[i] : 0;
    w->after[d] = count >= 0 ? (int)pads[i + o->space] : 0;
  }
  return 0;
}

/* Products of one output. */
static inline double import_taps(const NdWindow *w) {
  return (double)w->kernel[0] * w->kernel[1] * w->kernel[2] * w->channels / w->groups;
}

/* import_window() has seen that it fits. */
static inline int import_span(const NdWindow *w, int d) { return w->dilation[d] * (w->kernel[d] - 1) + 1; }

/* Padding by auto_pad, and the outputs. */
static inline int import_window_out(Import *im, ImportWindow *o, int ceil_mode) {
  NdWindow *w = &o->w;
  for (int d = 0; d < ND_SPACE; d++) {
    const int span = import_span(w, d);
    if (strncmp(o->auto_pad, "SAME", 4) == 0 && d >= ND_SPACE - o->space) {
      const long long outputs = (w->in[d] + w->stride[d] - 1) / w->stride[d],
                      all = (outputs - 1) * w->stride[d] + span - w->in[d];
      const int padding = all > 0 ? (int)all : 0, lower = strcmp(o->auto_pad, "SAME_LOWER") == 0;
      w->before[d] = lower ? (padding + 1) / 2 : padding / 2;
      w->after[d] = padding - w->before[d];
    } else if (strcmp(o->auto_pad, "VALID") == 0) {
      w->before[d] = w->after[d] = 0;
    }
    const long long room = (long long)w->in[d] + w->before[d] + w->after[d] - span;
    if (room < 0)
      return import_fail(im, "a window of %d on %d elements and %d of padding", span, w->in[d],
                         w->before[d] + w->after[d]);
    long long last = room / w->stride[d] + (ceil_mode && room % w->stride[d] != 0);
    if (ceil_mode && last * w->stride[d] >= (long long)w->in[d] + w->before[d]) last--; /* it must begin in the image */
    w->out[d] = (int)last + 1;
  }
  return 0;
}

static inline ImportShape import_window_shape(const ImportValue *x, const ImportWindow *o, int channels) {
  ImportShape s = x->shape;
  s.dim[1] = channels;
  for (int i = 0; i < o->space; i++) s.dim[2 + i] = o->w.out[ND_SPACE - o->space + i];
  return s;
}

static inline int import_symmetric(const NdWindow *w) {
  return w->before[0] == w->after[0] && w->before[1] == w->after[1] && w->before[2] == w->after[2];
}

/* (N,C,L) as (N,C,1,L); pictures stay. */
static inline ImportValue *import_as_picture(Import *im, ImportValue *x) {
  ImportShape s = x->shape;
  if (s.rank == 4) return x;
  s.rank = 4;
  s.dim[3] = s.dim[2];
  s.dim[2] = 1;
  return import_view(im, x, &s);
}

/* The node of the graph, whose result is a picture, as output 0 with the shape s. */
static inline int import_picture_output(Import *im, int node, ImportValue *x, const ImportShape *s) {
  if (node < 0) return import_check_graph(im) != 0 ? -1 : import_fail(im, "it cannot be built");
  ImportShape picture = *s;
  if (s->rank == 3) picture.rank = 4, picture.dim[3] = s->dim[2], picture.dim[2] = 1;
  ImportValue *y = import_temporary(im, node, x->type, &picture);
  return import_output_view(im, 0, y, s);
}

/* Padding that is not the same on both sides: a node in front. */
static inline ImportValue *import_pad_window(Import *im, ImportValue *x, NdWindow *w, ImportValue *value) {
  const int64_t before[] = {0, 0, w->before[1], w->before[2]}, after[] = {0, 0, w->after[1], w->after[2]};
  if (import_symmetric(w)) return x;
  im->named = 1; /* the convolution has the name, not its padding */
  im->g->next_name[0] = '\0';
  ImportValue *padded = import_pad(im, x, ND_PAD_CONSTANT, before, after, value);
  im->named = 0;
  for (int d = 1; d < ND_SPACE && padded; d++) {
    w->in[d] += w->before[d] + w->after[d];
    w->before[d] = w->after[d] = 0;
  }
  return padded;
}

/* ------------------------------------------------------------------------------------------------------ convolution */

static inline int import_conv_ours(Import *im, ImportValue *x, ImportValue *w, ImportValue *bias, ImportWindow *o) {
  const ImportShape s = import_window_shape(x, o, o->w.filters);
  ImportValue *picture = import_as_picture(im, x);
  if (picture == NULL || (picture = import_pad_window(im, picture, &o->w, NULL)) == NULL) return -1;
  const int from = import_node_of(im, picture);
  if (from < 0) return -1;
  Conv2dShape shape = conv2d_shape(1, 1, 1, 1, o->w.filters, o->w.kernel[1], o->w.kernel[2], 1, 0);
  shape.stride_h = o->w.stride[1], shape.stride_w = o->w.stride[2];
  shape.padding_h = o->w.before[1], shape.padding_w = o->w.before[2];
  shape.dilation_h = o->w.dilation[1], shape.dilation_w = o->w.dilation[2];
  shape.groups = o->w.groups;
  import_name(im, w);
  const int node =
      graph_typed(im->g, conv2d_general_bias(im->g, from, shape, bias != NULL), x->type, im->g->nodes[from].whole);
  if (node < 0) return import_check_graph(im);
  if (import_bind_value(im, node, 0, w) != 0 || (bias && import_bind_value(im, node, 1, bias) != 0)) return -1;
  return import_picture_output(im, node, x, &s);
}

/* Shapes of x, w and the groups; the kernel is that of w. */
static inline int import_conv_window(Import *im, ImportValue *x, ImportValue *w, ImportWindow *o, int transposed) {
  const int64_t groups = import_attribute(im, "group", 1);
  if (w->shape.rank != x->shape.rank || w->shape.rank < 3 || import_batched(&w->shape))
    return import_fail(im, "weights %s for x %s", import_shape_text(&w->shape).text, import_shape_text(&x->shape).text);
  if (import_window(im, x, o, w->shape.dim + 2) != 0) return -1;
  if (groups < 1 || groups > INT_MAX || import_count(&w->shape) == 0)
    return import_fail(im, "%lld groups, weights %s", (long long)groups, import_shape_text(&w->shape).text);
  o->w.groups = (int)groups;
  o->w.filters = (int)(transposed ? w->shape.dim[1] * groups : w->shape.dim[0]);
  const int64_t channels = transposed ? w->shape.dim[0] : w->shape.dim[1] * groups;
  if (channels == o->w.channels && o->w.channels % groups == 0 && o->w.filters % groups == 0) return 0;
  return import_fail(im, "weights %s and %lld groups for x of the shape %s", import_shape_text(&w->shape).text,
                     (long long)groups, import_shape_text(&x->shape).text);
}

static inline NdConvInputs import_conv_inputs(const ImportValue *x, const ImportValue *w, const ImportWindow *o,
                                              DType to) {
  NdConvInputs args;
  memset(&args, 0, sizeof args);
  args.bias = args.x_zero = args.w_zero = args.y_zero = args.x_scale = args.w_scale = args.y_scale = -1;
  args.conv.window = o->w;
  args.conv.compute = nd_compute(x->type);
  args.conv.x_type = x->type;
  args.conv.w_type = w->type;
  args.conv.bias_type = w->type;
  args.conv.y_type = to;
  return args;
}

static inline int build_conv(Import *im) {
  ImportValue *x = import_expect(im, 0), *w = x ? import_expect(im, 1) : NULL, *bias = import_input(im, 2);
  ImportWindow o;
  if (w == NULL || import_conv_window(im, x, w, &o, 0) != 0 || import_window_out(im, &o, 0) != 0) return -1;
  if (bias && import_count(&bias->shape) != (size_t)o.w.filters)
    return import_fail(im, "a bias %s for %d filters", import_shape_text(&bias->shape).text, o.w.filters);
  if (x->type == DTYPE_FLOAT32 && w->type == x->type && o.space <= 2 && import_is_constant(w) &&
      (bias == NULL || import_is_constant(bias)))
    return import_conv_ours(im, x, w, bias, &o);
  NdConvInputs args = import_conv_inputs(x, w, &o, x->type);
  const ImportShape s = import_window_shape(x, &o, o.w.filters);
  args.bias = bias ? 2 : -1;
  ImportValue *inputs[] = {x, w, bias};
  const int node = import_add(im, &nd_conv_op, inputs, bias ? 3 : 2, x->type, &s, &args, sizeof args);
  return import_output(im, 0, import_products(im, node, import_taps(&o.w)), x->type, &s);
}

/* Of a transposed convolution the padding follows from the output where its shape is given, or asked to be SAME. */
static inline int import_transposed_out(Import *im, ImportWindow *o, int *more) {
  NdWindow *w = &o->w;
  int shape[ND_SPACE] = {0, 0, 0};
  if (import_along(im, "output_padding", o->space, 0, more, 1) != 0 ||
      import_along(im, "output_shape", o->space, 0, shape, 1) != 0)
    return -1;
  for (int d = 0; d < ND_SPACE; d++) {
    const long long all = (long long)(w->in[d] - 1) * w->stride[d] + import_span(w, d) + more[d];
    const int same = strncmp(o->auto_pad, "SAME", 4) == 0 && d >= ND_SPACE - o->space;
    if (same && shape[d] == 0) shape[d] = w->in[d] * w->stride[d];
    if (shape[d] > 0) {
      const long long padding = all - shape[d];
      const int lower = strcmp(o->auto_pad, "SAME_UPPER") != 0;
      if (padding < 0) more[d] += (int)-padding; /* zeros behind */
      w->before[d] = padding > 0 ? (int)(lower ? (padding + 1) / 2 : padding / 2) : 0;
      if (!same && padding > 0) w->before[d] = (int)(lower ? padding - padding / 2 : padding / 2);
      w->after[d] = padding > 0 ? (int)padding - w->before[d] : 0;
    }
    const long long out =
        (long long)(w->in[d] - 1) * w->stride[d] + import_span(w, d) + more[d] - w->before[d] - w->after[d];
    if (out < 1 || out > INT_MAX) return import_fail(im, "the output would be %lld along an axis", out);
    w->out[d] = (int)out;
  }
  return 0;
}

static inline int import_transposed_ours(Import *im, ImportValue *x, ImportValue *w, ImportValue *bias,
                                         const ImportWindow *o, const int *more) {
  const ImportShape s = import_window_shape(x, o, o->w.filters);
  Conv2dShape like = conv2d_shape(1, 1, 1, 1, 1, o->w.kernel[1], o->w.kernel[2], 1, 0), mirror;
  Error err;
  ImportValue *picture = import_as_picture(im, x);
  const int from = picture ? import_node_of(im, picture) : GRAPH_ERROR;
  if (from < 0) return -1;
  like.stride_h = o->w.stride[1], like.stride_w = o->w.stride[2];
  like.padding_h = o->w.before[1], like.padding_w = o->w.before[2];
  like.dilation_h = o->w.dilation[1], like.dilation_w = o->w.dilation[2];
  like.groups = o->w.groups;
  if (conv2d_transposed_mirror(&mirror, 1, o->w.channels, o->w.in[1], o->w.in[2], o->w.filters, like, more[1], more[2],
                               &err) != 0)
    return import_fail(im, "%.500s", err.message);
  import_name(im, w);
  const int node = graph_typed(im->g,
                               graph_node(im->g, &conv2d_transposed_op, "conv_transpose", &from, 1,
                                          shape3(o->w.filters, mirror.h, mirror.w), &mirror, sizeof mirror),
                               x->type, im->g->nodes[from].whole);
  if (node < 0) return import_check_graph(im);
  const size_t filters = (size_t)(o->w.filters / o->w.groups);
  const int fan = (int)filters * o->w.kernel[1] * o->w.kernel[2];
  const ParamSpec weight = {
      "weight", 4,   {(size_t)o->w.channels, filters, (size_t)o->w.kernel[1], (size_t)o->w.kernel[2]},
      fan,      fan, &he_normal,
      1,        1};
  const ParamSpec bias_spec = {"bias", 1, {(size_t)o->w.filters}, fan, fan, &init_zero, 1, 1};
  graph_param(im->g, node, weight);
  if (bias) graph_param(im->g, node, bias_spec);
  im->g->nodes[node].flops = 2.0 * fan * (double)import_count(&x->shape);
  if (import_bind_value(im, node, 0, w) != 0 || (bias && import_bind_value(im, node, 1, bias) != 0)) return -1;
  return import_picture_output(im, node, x, &s);
}

static inline int build_conv_transpose(Import *im) {
  ImportValue *x = import_expect(im, 0), *w = x ? import_expect(im, 1) : NULL, *bias = import_input(im, 2);
  ImportWindow o;
  int more[ND_SPACE] = {0, 0, 0};
  if (w == NULL || import_conv_window(im, x, w, &o, 1) != 0 || import_transposed_out(im, &o, more) != 0) return -1;
  const int fits = more[1] < o.w.stride[1] && more[2] < o.w.stride[2] && import_symmetric(&o.w);
  if (x->type == DTYPE_FLOAT32 && w->type == x->type && o.space <= 2 && fits && import_is_constant(w) &&
      (bias == NULL || import_is_constant(bias)))
    return import_transposed_ours(im, x, w, bias, &o, more);
  NdConvInputs args = import_conv_inputs(x, w, &o, x->type);
  const ImportShape s = import_window_shape(x, &o, o.w.filters);
  args.conv.transposed = 1;
  args.bias = bias ? 2 : -1;
  ImportValue *inputs[] = {x, w, bias};
  const int node = import_add(im, &nd_conv_transpose_op, inputs, bias ? 3 : 2, x->type, &s, &args, sizeof args);
  const double all = (double)o.w.stride[0] * o.w.stride[1] * o.w.stride[2]; /* every so many outputs meet a tap */
  return import_output(im, 0, import_products(im, node, import_taps(&o.w) / all), x->type, &s);
}

#endif /* PHASE5_PRODUCTION_IMPORT_WINDOW_CUH */
