/* int8_engine.cuh - the engine of lesson 8 computes a quantised ONNX model with integers.
 *
 *     Int8Store store = {};
 *     const EngineExtension int8 = int8_engine(&store);
 *     options.extension = &int8;
 *     engine_open(&e, "model.int8.onnx", &options, &err);
 *     ...
 *     engine_close(&e);
 *     int8_store_free(&store);
 *
 * A model without QuantizeLinear stays what it is.
 */
#ifndef PHASE5_PRODUCTION_INT8_ENGINE_CUH
#define PHASE5_PRODUCTION_INT8_ENGINE_CUH

#include "phase5_production/08_engine/engine_extension.cuh"
#include "phase5_production/09_int8/cpu_int8_blocks.cuh"
#include "phase5_production/09_int8/int8_rewrite.cuh"

static inline Graph *int8_engine_rewrite(void *state, const Graph *g, const OnnxImport *import, Device device,
                                         Error *err) {
  Int8Store *store = (Int8Store *)state;
  int8_store_free(store); /* the last height and width's */
  Graph *q = import == NULL ? graph_copy(g) : int8_rewrite(g, import, device, store, err);
  if (q != NULL && device == DEVICE_CPU) cpu_int8_blocks(q);
  return q;
}

static inline int int8_engine_fill(void *state, Model *m, Error *err) {
  return int8_store_fill((const Int8Store *)state, m, err);
}

static inline EngineExtension int8_engine(Int8Store *store) {
  const EngineExtension extension = {"int8", store, int8_engine_rewrite, int8_engine_fill};
  return extension;
}

#endif /* PHASE5_PRODUCTION_INT8_ENGINE_CUH */
