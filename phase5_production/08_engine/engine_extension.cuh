/* engine_extension.cuh - what a later lesson adds to the engine: operations that a pass puts in the place of others. INT8
 * (lesson 9) is one. The engine knows it by this table alone.
 *
 *     static const EngineExtension int8 = {"int8", NULL, int8_rewrite_engine, int8_fill_engine};
 *     options.extension = &int8;
 */
#ifndef PHASE5_PRODUCTION_ENGINE_EXTENSION_CUH
#define PHASE5_PRODUCTION_ENGINE_EXTENSION_CUH

#include "common/nn/model.h"

typedef struct EngineExtension {
  const char *name;
  void *state;
  /* Behind the passes that need no device, before operations are computed together: nodes get other Ops, or go. -1 with a
   * sentence. */
  int (*rewrite)(void *state, Graph *g, Error *err);
  /* A parameter that no file has: `values` of a node of the rewritten graph, on the host; find() gives those of the
   * network by their names, as floats (NULL: none). 1: filled, 0: it is not the extension's. -1 with a sentence. */
  int (*fill)(void *state, const Node *node, const Param *param, float *values,
              const float *(*find)(const void *weights, const char *name, size_t *count), const void *weights,
              Error *err);
} EngineExtension;

#endif /* PHASE5_PRODUCTION_ENGINE_EXTENSION_CUH */
