/* engine_extension.cuh - what a later lesson adds to the engine: a pass that puts its operations in the place of
 * others. INT8 (lesson 9) is one. The engine knows it by this table alone.
 *
 *     Int8Store store = {};
 *     const EngineExtension int8 = {"int8", &store, int8_engine_rewrite, int8_engine_fill};
 *     options.extension = &int8;
 */
#ifndef PHASE5_PRODUCTION_ENGINE_EXTENSION_CUH
#define PHASE5_PRODUCTION_ENGINE_EXTENSION_CUH

#include "common/nn/model.h"

struct OnnxImport;

typedef struct EngineExtension {
  const char *name;
  void *state;
  /* Behind the passes that need no device, once for each height and width: the graph that takes g's place; g stays.
   * import: what g was imported with; NULL: it did not come from a file. NULL with a sentence. */
  Graph *(*rewrite)(void *state, const Graph *g, const struct OnnxImport *import, Device device, Error *err);
  /* The parameters that rewrite() has added, into a model that has memory, of the graph that came last; the engine has
   * filled those that the file has. -1 with a sentence. */
  int (*fill)(void *state, Model *m, Error *err);
} EngineExtension;

#endif /* PHASE5_PRODUCTION_ENGINE_EXTENSION_CUH */
