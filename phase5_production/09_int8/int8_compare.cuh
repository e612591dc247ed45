/* int8_compare.cuh - how far the arrays of an int8 network are from those of the float32 one, layer by layer.
 *
 *   cosine    of the angle between the two arrays, as vectors: 1 is the same direction
 *   largest   difference of two numbers
 *   SQNR      signal to quantisation noise: 10 log10(sum x^2 / sum (q - x)^2), in decibels. 6 dB are a bit
 */
#ifndef PHASE5_PRODUCTION_INT8_COMPARE_CUH
#define PHASE5_PRODUCTION_INT8_COMPARE_CUH

#include "phase5_production/09_int8/int8_lower.cuh"

typedef struct Int8Difference {
  double cosine, largest, sqnr; /* sqnr: INFINITY where there is no difference */
} Int8Difference;

/* NaN in either array makes all three NaN. */
static inline Int8Difference int8_difference(const float *x, const float *q, size_t count) {
  double xx = 0, qq = 0, xq = 0, noise = 0;
  Int8Difference d = {1, 0, INFINITY};
  for (size_t i = 0; i < count; i++) {
    const double a = x[i], b = q[i], apart = fabs(a - b);
    xx += a * a;
    qq += b * b;
    xq += a * b;
    noise += apart * apart;
    if (!(apart <= d.largest)) d.largest = apart;
  }
  if (xx > 0 || qq > 0) d.cosine = xx > 0 && qq > 0 ? xq / sqrt(xx * qq) : 0;
  if (isnan(noise)) d.cosine = d.largest = d.sqnr = NAN;
  if (noise > 0) d.sqnr = 10 * log10(xx / noise);
  return d;
}

/* The node of the float32 graph whose output node i of the int8 graph has; INT8_NONE: none that is worth comparing. */
static inline int int8_stands_for(const Graph *whole, const Int8Scale *scale, const Graph *narrow, int i) {
  const Node *n = &narrow->nodes[i];
  const int same = n->op == NULL ? INT8_NONE : graph_find(whole, n->name);
  if (same < 0 || n->op == &int8_quantize_op || n->op == &int8_dequantize_op) return INT8_NONE;
  if (n->op == &int8_conv_op) return int8_chain(whole, scale, same).end;
  if (n->op == &int8_add_op) return scale[same].step > 0 ? same : int8_behind_relu(whole, same);
  if (n->op == &int8_stem_op) {
    for (int j = same; j < whole->count; j++)
      if (whole->nodes[j].op == &max_pool2d_op) return j;
    return INT8_NONE;
  }
  return same;
}

/* Node i's output as float32 (batch, shape), to be freed. scale: of int8. */
static inline float *int8_host_output(const Model *m, int i, int batch, Int8Scale scale) {
  const Node *n = &m->graph->nodes[i];
  const size_t count = shape_count(n->shape) * (size_t)batch, bytes = node_bytes(n) * (size_t)batch;
  float *x = (float *)xmalloc((count + 1) * sizeof *x);
  if (n->type == DTYPE_FLOAT32) {
    device_download(m->context.device, x, model_output(m, i), count * sizeof *x);
    return x;
  }
  int8_t *q = (int8_t *)xmalloc(bytes);
  device_download(m->context.device, q, model_output(m, i), bytes);
  int8_to_nchw_cpu(x, q, scale.step, scale.positive != 0, batch, n->shape.dim[0], shape_pixels(n->shape),
                   int8_channels(n->shape.dim[0]));
  free(q);
  return x;
}

typedef struct Int8Layer {
  int narrow, whole; /* nodes of the two graphs */
  Int8Difference difference;
} Int8Layer;

/* Both models have the same pictures. layers: room for as many as narrow's graph has nodes; returns how many there
 * are. */
static inline int int8_compare(Int8Layer *layers, const Model *whole, const Model *narrow, const Int8Scale *scale,
                               int batch) {
  const Graph *g = whole->graph, *q = narrow->graph;
  float **kept = (float **)xcalloc((size_t)g->count + 1, sizeof *kept);
  int count = 0;
  for (int i = 0; i < q->count; i++) {
    const int of = int8_stands_for(g, scale, q, i);
    if (of >= 0) layers[count++] = (Int8Layer){i, of, {0, 0, 0}};
  }
  for (int i = 0; i < g->count; i++) {
    if (g->nodes[i].op) model_forward_node(whole, i, batch);
    for (int l = 0; l < count && kept[i] == NULL; l++)
      if (layers[l].whole == i) kept[i] = int8_host_output(whole, i, batch, (Int8Scale){0, 0});
  }
  for (int i = 0; i < q->count; i++) {
    if (q->nodes[i].op) model_forward_node(narrow, i, batch);
    for (int l = 0; l < count; l++) {
      if (layers[l].narrow != i) continue;
      float *own = int8_host_output(narrow, i, batch, scale[layers[l].whole]);
      layers[l].difference =
          int8_difference(kept[layers[l].whole], own, shape_count(q->nodes[i].shape) * (size_t)batch);
      free(own);
    }
  }
  for (int i = 0; i < g->count; i++) free(kept[i]);
  free(kept);
  return count;
}

static inline void int8_print_layers(FILE *out, const Model *narrow, const Int8Layer *layers, int count) {
  fprintf(out, "%-24s %-14s %-14s %10s %12s %10s\n", "layer", "operation", "output", "cosine", "largest", "SQNR, dB");
  for (int l = 0; l < count; l++) {
    const Node *n = &narrow->graph->nodes[layers[l].narrow];
    const Int8Difference d = layers[l].difference;
    fprintf(out, "%-24s %-14s %-14s %10.6f %12.4g %10.1f\n", n->name, n->op->name, shape_text(n->shape).text, d.cosine,
            d.largest, d.sqnr);
  }
}

#endif /* PHASE5_PRODUCTION_INT8_COMPARE_CUH */
