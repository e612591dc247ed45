/* engine_weights.cuh - the numbers of a network on the host, by the names of its parameters: what the engine's passes
 * read and write, and what a plan keeps.
 *
 *     EngineWeights w = {0};
 *     engine_weights_take(&w, &model);                      // all parameters of a Model of the imported graph
 *     const EngineWeight *bias = engine_weight(&w, "conv1.bias");
 *     engine_weight_set(&w, "conv1.bias", values, count);   // a copy; what was there is replaced
 *
 * A constant of another type than float32 is kept as the floats that hold its bytes.
 */
#ifndef PHASE5_PRODUCTION_ENGINE_WEIGHTS_CUH
#define PHASE5_PRODUCTION_ENGINE_WEIGHTS_CUH

#include "common/nn/model.h"
#include "phase5_production/04_resnet18_fused/fused_rewrite.cuh"

enum { ENGINE_WEIGHT_NAME = NODE_NAME + 64 };

typedef struct EngineWeight {
  char name[ENGINE_WEIGHT_NAME];
  size_t count;
  const float *values;
  float *own; /* to be freed; NULL: they lie in `block` or in a mapped file */
} EngineWeight;

typedef struct EngineWeights {
  EngineWeight *list;
  int count, capacity;
  float *block;
} EngineWeights;

static inline void engine_weights_free(EngineWeights *w) {
  for (int i = 0; i < w->count; i++) free(w->list[i].own);
  free(w->list);
  free(w->block);
  memset(w, 0, sizeof *w);
}

/* NULL: there is none of this name. */
static inline EngineWeight *engine_weight(const EngineWeights *w, const char *name) {
  for (int i = 0; i < w->count; i++)
    if (strcmp(w->list[i].name, name) == 0) return &w->list[i];
  return NULL;
}

/* `own` is taken over, and freed with the others; NULL: `values` lie somewhere that stays. */
static inline void engine_weight_put(EngineWeights *w, const char *name, const float *values, size_t count,
                                     float *own) {
  EngineWeight *at = engine_weight(w, name);
  if (at == NULL) {
    if (w->count == w->capacity) {
      w->capacity = w->capacity ? 2 * w->capacity : 64;
      w->list = (EngineWeight *)realloc(w->list, (size_t)w->capacity * sizeof *w->list);
      if (w->list == NULL) die("out of memory: %d weights", w->capacity);
    }
    at = &w->list[w->count++];
    memset(at, 0, sizeof *at);
    snprintf(at->name, sizeof at->name, "%s", name);
  }
  free(at->own);
  at->count = count;
  at->values = values;
  at->own = own;
}

static inline void engine_weight_set(EngineWeights *w, const char *name, const float *values, size_t count) {
  float *own = (float *)xmalloc((count + 1) * sizeof *own);
  memcpy(own, values, count * sizeof *own);
  engine_weight_put(w, name, own, count, own);
}

static inline size_t engine_weights_bytes(const EngineWeights *w) {
  size_t bytes = 0;
  for (int i = 0; i < w->count; i++) bytes += w->list[i].count * sizeof(float);
  return bytes;
}

/* Forgets weights that no node of `g` has. */
static inline void engine_weights_keep(EngineWeights *w, const Graph *g) {
  int kept = 0;
  for (int i = 0; i < w->count; i++) {
    int used = 0;
    for (int n = 0; n < g->count && !used; n++)
      for (int k = 0; k < g->nodes[n].params; k++) used |= strcmp(g->nodes[n].param[k].name, w->list[i].name) == 0;
    if (used)
      w->list[kept++] = w->list[i];
    else
      free(w->list[i].own);
  }
  w->count = kept;
}

/* All parameters and buffers of a model. */
static inline void engine_weights_take(EngineWeights *w, const Model *m) {
  engine_weights_free(w);
  w->block = batch_norm2d_fold_host(m);
  int node = 0, index = 0;
  const Param *p;
  while ((p = model_next_param(m, &node, &index)) != NULL)
    if (p->count > 0) engine_weight_put(w, p->name, batch_norm2d_fold_at(m, w->block, p), p->count, NULL);
}

static inline const float *engine_weights_find(const void *state, const char *name, size_t *count) {
  const EngineWeight *weight = engine_weight((const EngineWeights *)state, name);
  if (weight == NULL) return NULL;
  *count = weight->count;
  return weight->values;
}

/* For fused_fill(). */
static inline FusedSource engine_weights_source(const EngineWeights *w) {
  const FusedSource source = {engine_weights_find, w};
  return source;
}

#endif /* PHASE5_PRODUCTION_ENGINE_WEIGHTS_CUH */
