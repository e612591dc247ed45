/* int8_weights.h - the weights of a network as int8: one scale for each filter, in the order of the kernels.
 *
 *     w (K,C,R,S) float32  ->  (K',R,S,C') int8, scale (K), bias (K) int32
 *
 * C' and K' are filled up to multiples of 16 with zeros. Int8Store keeps such arrays by the name of the parameter of
 * a model that they belong to, until there is a model.
 */
#ifndef PHASE5_PRODUCTION_INT8_WEIGHTS_H
#define PHASE5_PRODUCTION_INT8_WEIGHTS_H

#include <limits.h>

#include "common/nn/model.h"
#include "phase5_production/09_int8/int8.cuh"

/* ---------------------------------------------------------------------------------------------------------- arrays */

typedef struct Int8Array {
  char name[NODE_NAME + 32];
  void *data;
  size_t bytes;
} Int8Array;

typedef struct Int8Store {
  Int8Array *array;
  int count, capacity;
} Int8Store;

/* A new array of zeros, the store's. */
static inline void *int8_store_add(Int8Store *store, const char *name, size_t bytes) {
  if (store->count == store->capacity) {
    store->capacity = store->capacity ? 2 * store->capacity : 64;
    Int8Array *larger = (Int8Array *)xmalloc((size_t)store->capacity * sizeof *larger);
    if (store->count > 0) memcpy(larger, store->array, (size_t)store->count * sizeof *larger);
    free(store->array);
    store->array = larger;
  }
  Int8Array *own = &store->array[store->count++];
  snprintf(own->name, sizeof own->name, "%.95s", name);
  own->data = xcalloc(bytes > 0 ? bytes : 1, 1);
  own->bytes = bytes;
  return own->data;
}

static inline void int8_store_free(Int8Store *store) {
  for (int i = 0; i < store->count; i++) free(store->array[i].data);
  free(store->array);
  memset(store, 0, sizeof *store);
}

/* The arrays to the parameters of these names. -1: the model has no such parameter, or of another size. */
static inline int int8_store_fill(const Int8Store *store, Model *m, Error *err) {
  for (int i = 0; i < store->count; i++) {
    const Int8Array *own = &store->array[i];
    const Param *p = model_find_param(m, own->name);
    if (p == NULL || p->bytes != own->bytes)
      return error_set(err,
                       "the network has no parameter %s of %zu bytes; give the graph that was made with the weights",
                       own->name, own->bytes);
    device_upload(m->context.device, model_param(m, p), own->data, own->bytes);
  }
  return 0;
}

/* --------------------------------------------------------------------------------------------------------- filters */

/* Scales of weights that were int8 already: one for each filter, or one for all. */
typedef struct Int8Given {
  const float *scale; /* NULL: they were not */
  size_t count;
} Int8Given;

/* Where float32 weights come from. */
typedef struct Int8Weights {
  /* The `count` numbers of the parameter of this name; NULL: there is none. *given stays where they were not int8. */
  const float *(*find)(const void *from, const char *name, size_t count, Int8Given *given);
  const void *from;
  int (*refuses)(const void *from, const char *name); /* these weights cannot be int8; NULL: all can */
} Int8Weights;

/* One scale for each of k filters of `weights` numbers: the largest of them is 127. */
static inline void int8_filter_scales(float *scale, const float *w, int k, size_t weights) {
  for (int i = 0; i < k; i++) {
    float most = 0;
    for (size_t j = 0; j < weights; j++) most = fmaxf(most, fabsf(w[i * weights + j]));
    scale[i] = int8_scale(most, false);
  }
}

/* w (K,C,pixels) -> q (K,pixels,pitch) */
static inline void int8_filters(int8_t *q, const float *w, const float *scale, int k, int c, int pixels, int pitch) {
  for (int i = 0; i < k; i++)
    for (int p = 0; p < pixels; p++)
      for (int j = 0; j < c; j++)
        q[((size_t)i * pixels + p) * pitch + j] = int8_quantize(w[((size_t)i * c + j) * pixels + p], scale[i], false);
}

/* Of a filter with tiny weights the bias is many units of the sum. The scale becomes so large that the bias takes at
 * most half of int32; the other half is the products'. b (k) may be NULL. */
static inline void int8_filter_scales_for_bias(float *scale, const float *b, float scale_x, int k) {
  for (int i = 0; i < k && b != NULL; i++) scale[i] = fmaxf(scale[i], fabsf(b[i]) / scale_x / (1 << 30));
}

/* In units of scale_x scale_w; beyond the range of int32 its end. */
static inline int32_t int8_bias(float bias, float unit) {
  const double steps = rint((double)bias / unit);
  return steps >= INT32_MAX ? INT32_MAX : steps <= INT32_MIN ? INT32_MIN : (int32_t)steps;
}

#endif /* PHASE5_PRODUCTION_INT8_WEIGHTS_H */
