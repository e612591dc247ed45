/* features.h - what a trained network sees: the output of each layer for one picture, and the pictures of a set that
 * excite each filter most.
 *
 *     FeatureMaps maps = features_record(&net);                        // of the picture that lies in the input
 *     FeatureSearch search;
 *     features_search(&search, &net, &test, NULL, 8);                  // 8 pictures for each filter
 *     FeatureBox box = features_box(net.graph, search.layer[0].node, y, x, 1);   // the pixels that output (y,x) sees
 *
 * A model that infers keeps no output for long: a later layer may write over it. So the nodes run one after another
 * here, and each output is looked at before the next one runs. The graph must not be fused (graph_unfuse()): of two
 * nodes that one kernel computes, only one has an output of its own.
 *
 * Operations are told apart by their shapes: an output (C,H,W) is C maps; a node with such an output and with a weight
 * of four dimensions has filters.
 */
#ifndef COMMON_NN_FEATURES_H
#define COMMON_NN_FEATURES_H

#include "common/nn/device_set.h"

/* ------------------------------------------------------------------------------------------- one node after another */

/* Called behind each node, inputs included: model_output(m, node) has `batch` outputs. */
typedef void FeatureSee(void *what, const Model *m, int node, int batch);

/* Forward, as without training. */
static inline void features_run(Model *m, int batch, FeatureSee *see, void *what) {
  model_expect_batch(m, batch);
  model_use_device(m);
  m->context.training = 0;
  for (int i = 0; i < m->graph->count; i++) {
    if (m->graph->nodes[i].op) model_forward_node(m, i, batch);
    see(what, m, i, batch);
  }
}

/* The output of each node for one picture, on the host. */
typedef struct FeatureMaps {
  const Graph *graph;
  float **values; /* (nodes): node i has values[i] (shape of i) */
} FeatureMaps;

static inline void features_keep(void *what, const Model *m, int node, int batch) {
  const FeatureMaps *maps = (const FeatureMaps *)what;
  const size_t count = shape_count(m->graph->nodes[node].shape);
  (void)batch;
  maps->values[node] = (float *)xmalloc(count * sizeof(float));
  device_download(m->context.device, maps->values[node], model_output(m, node), count * sizeof(float));
}

/* Of the picture that lies in the model's input. */
static inline FeatureMaps features_record(Model *m) {
  FeatureMaps maps = {m->graph, (float **)xcalloc((size_t)m->graph->count, sizeof(float *))};
  features_run(m, 1, features_keep, &maps);
  return maps;
}

static inline void features_free(FeatureMaps *maps) {
  for (int i = 0; maps->graph && i < maps->graph->count; i++) free(maps->values[i]);
  free(maps->values);
  memset(maps, 0, sizeof *maps);
}

typedef struct FeatureRange {
  float smallest, largest;
  double positive; /* share of the values above 0 */
} FeatureRange;

static inline FeatureRange features_range(const float *values, size_t count) {
  FeatureRange range = {INFINITY, -INFINITY, 0};
  for (size_t i = 0; i < count; i++) {
    range.smallest = fminf(range.smallest, values[i]);
    range.largest = fmaxf(range.largest, values[i]);
    range.positive += values[i] > 0;
  }
  range.positive /= (double)count;
  return range;
}

/* ------------------------------------------------------------------------------------------------- receptive fields */

/* Rows and columns first .. last, both included, along height and width. */
typedef struct FeatureBox {
  int first[2], last[2];
} FeatureBox;

/* The part of a node's input of shape `in` that the part `y` of its output is computed from. */
static inline FeatureBox features_needs(const Node *node, Shape in, FeatureBox y) {
  FeatureBox x;
  for (int a = 0; a < 2; a++) {
    const int size = in.rank == 3 ? in.dim[1 + a] : 1, out = node->shape.rank == 3 ? node->shape.dim[1 + a] : 0;
    const NodeWindow *w = &node->window;
    if (out == 0) { /* features, each of which reads the whole */
      x.first[a] = 0;
      x.last[a] = size - 1;
    } else if (w->size[a] > 0) {
      x.first[a] = y.first[a] * w->stride[a] - w->padding[a];
      x.last[a] = y.last[a] * w->stride[a] - w->padding[a] + w->size[a] - 1;
    } else { /* element by element where the sizes are equal; else about the same place */
      x.first[a] = (int)((long long)y.first[a] * size / out);
      x.last[a] = (int)(((long long)(y.last[a] + 1) * size + out - 1) / out - 1);
    }
  }
  return x;
}

/* The pixels of the graph's first input that output (y,x) of a node depends on. With `clip` only those that there are:
 * a receptive field at an edge reaches into the padding. */
static inline FeatureBox features_box(const Graph *g, int node, int y, int x, int clip) {
  FeatureBox *box = (FeatureBox *)xcalloc((size_t)node + 1, sizeof *box), result = {{y, x}, {y, x}};
  char *seen = (char *)xcalloc((size_t)node + 1, 1);
  box[node] = result;
  seen[node] = 1;
  for (int j = node; j >= 0; j--) {
    if (!seen[j]) continue;
    if (g->nodes[j].op == NULL) result = box[j];
    for (int k = 0; k < g->nodes[j].inputs; k++) {
      const int p = g->nodes[j].input[k];
      const Shape in = g->nodes[p].shape;
      FeatureBox part = features_needs(&g->nodes[j], in, box[j]);
      for (int a = 0; a < 2; a++) {
        const int most = in.rank == 3 ? in.dim[1 + a] - 1 : 0;
        if (clip && part.first[a] < 0) part.first[a] = 0;
        if (clip && part.last[a] > most) part.last[a] = most;
        box[p].first[a] = seen[p] && box[p].first[a] < part.first[a] ? box[p].first[a] : part.first[a];
        box[p].last[a] = seen[p] && box[p].last[a] > part.last[a] ? box[p].last[a] : part.last[a];
      }
      seen[p] = 1;
    }
  }
  free(box);
  free(seen);
  return result;
}

/* Rows and columns of a receptive field, as if the picture had no edge. */
static inline void features_field(const Graph *g, int node, int size[2]) {
  const Shape shape = g->nodes[node].shape;
  const FeatureBox box = features_box(g, node, shape.dim[1] / 2, shape.dim[2] / 2, 0);
  for (int a = 0; a < 2; a++) size[a] = box.last[a] - box.first[a] + 1;
}

/* ----------------------------------------------------------------------------------------- what excites each filter */

/* x (maps,area) -> the largest value of each map, and its place, the first of equals; all of it on the device. */
typedef void MapPeaks(Device device, float *value, int *place, const float *x, int maps, int area);

/* On the host, wherever x lies. */
static inline void features_map_peaks(Device device, float *value, int *place, const float *x, int maps, int area) {
  const size_t count = (size_t)maps * area;
  float *host = (float *)xmalloc(count * sizeof *host), *values = (float *)xcalloc(maps, sizeof *values);
  int *places = (int *)xcalloc(maps, sizeof *places);
  device_download(device, host, x, count * sizeof *host);
  for (int m = 0; m < maps; m++) {
    const float *map = host + (size_t)m * area;
    int best = 0;
    for (int i = 1; i < area; i++)
      if (map[i] > map[best]) best = i;
    values[m] = map[best];
    places[m] = best;
  }
  device_upload(device, value, values, maps * sizeof *values);
  device_upload(device, place, places, maps * sizeof *places);
  free(host);
  free(values);
  free(places);
}

/* How strongly a picture excites a filter: the largest value of its map. place: row times width plus column. */
typedef struct FeaturePeak {
  float value;
  int image, place;
} FeaturePeak;

/* A layer with filters. */
typedef struct FeatureLayer {
  int node, filters;
  FeaturePeak *peak; /* (filters, most): of each filter the strongest first, of equals the earlier picture */
} FeatureLayer;

typedef struct FeatureSearch {
  FeatureLayer *layer;
  int layers, most; /* pictures for each filter */
  MapPeaks *peaks;
  float *value, *host_value; /* (batch, filters) */
  int *place, *host_place;
  int start; /* the first picture of the batch */
} FeatureSearch;

static inline int features_has_filters(const Node *node) {
  return node->op && node->shape.rank == 3 && node->params > 0 && node->param[0].rank == 4;
}

/* Takes the picture among a filter's `most` strongest where it belongs there. */
static inline void features_insert(FeaturePeak *peak, int most, FeaturePeak found) {
  int i = most;
  while (i > 0 && found.value > peak[i - 1].value) i--;
  if (i == most) return;
  memmove(peak + i + 1, peak + i, (size_t)(most - 1 - i) * sizeof *peak);
  peak[i] = found;
}

static inline void features_find_peaks(void *what, const Model *m, int node, int batch) {
  FeatureSearch *search = (FeatureSearch *)what;
  FeatureLayer *layer = NULL;
  for (int l = 0; l < search->layers; l++)
    if (search->layer[l].node == node) layer = &search->layer[l];
  if (layer == NULL) return;
  const Shape shape = m->graph->nodes[node].shape;
  const int maps = batch * layer->filters;
  search->peaks(m->context.device, search->value, search->place, model_output(m, node), maps,
                shape.dim[1] * shape.dim[2]);
  device_download(m->context.device, search->host_value, search->value, maps * sizeof(float));
  device_download(m->context.device, search->host_place, search->place, maps * sizeof(int));
  for (int i = 0; i < maps; i++) {
    const FeaturePeak found = {search->host_value[i], search->start + i / layer->filters, search->host_place[i]};
    features_insert(layer->peak + (size_t)(i % layer->filters) * search->most, search->most, found);
  }
}

/* The layers of the graph that have filters, and room for their peaks. */
static inline void features_layers(FeatureSearch *search, const Graph *g) {
  search->layer = (FeatureLayer *)xcalloc((size_t)g->count, sizeof *search->layer);
  for (int i = 0; i < g->count; i++) {
    if (!features_has_filters(&g->nodes[i])) continue;
    FeatureLayer *layer = &search->layer[search->layers++];
    layer->node = i;
    layer->filters = g->nodes[i].shape.dim[0];
    const size_t count = (size_t)layer->filters * search->most;
    layer->peak = (FeaturePeak *)xmalloc(count * sizeof *layer->peak);
    const FeaturePeak none = {-INFINITY, -1, 0};
    for (size_t k = 0; k < count; k++) layer->peak[k] = none;
  }
}

/* For each filter the `most` pictures of the set that excite it most; fewer where the set has fewer. `peaks` finds the
 * largest value of a map; NULL: the host does. */
static inline void features_search(FeatureSearch *search, Model *m, const DeviceSet *set, MapPeaks *peaks, int most) {
  const Device device = m->context.device;
  size_t widest = 1;
  memset(search, 0, sizeof *search);
  search->most = most < set->count ? most : set->count;
  search->peaks = peaks ? peaks : features_map_peaks;
  features_layers(search, m->graph);
  for (int l = 0; l < search->layers; l++)
    if ((size_t)search->layer[l].filters > widest) widest = (size_t)search->layer[l].filters;
  widest *= (size_t)m->max_batch;
  search->value = (float *)device_alloc(device, widest * sizeof(float));
  search->place = (int *)device_alloc(device, widest * sizeof(int));
  search->host_value = (float *)xmalloc(widest * sizeof(float));
  search->host_place = (int *)xmalloc(widest * sizeof(int));
  for (int start = 0; start < set->count; start += m->max_batch) {
    const int batch = set->count - start < m->max_batch ? set->count - start : m->max_batch;
    search->start = start;
    device_set_gather(set, m, start, batch);
    features_run(m, batch, features_find_peaks, search);
  }
  device_free(device, search->value);
  device_free(device, search->place);
  free(search->host_value);
  free(search->host_place);
  search->value = search->host_value = NULL;
  search->place = search->host_place = NULL;
}

static inline void features_search_free(FeatureSearch *search) {
  for (int l = 0; l < search->layers; l++) free(search->layer[l].peak);
  free(search->layer);
  memset(search, 0, sizeof *search);
}

#endif /* COMMON_NN_FEATURES_H */
