/* engine_source.cuh - where an engine's network comes from: a file of ONNX, a plan, or a Model of this course.
 *
 * The graph is asked for once per height and width, because these are numbers in a Graph; the batch is not. Every time
 * the nodes have the same names, so the weights and the choices of one size serve all.
 */
#ifndef PHASE5_PRODUCTION_ENGINE_SOURCE_CUH
#define PHASE5_PRODUCTION_ENGINE_SOURCE_CUH

#include "phase5_production/08_engine/engine.h"
#include "phase5_production/08_engine/engine_weights.cuh"

typedef struct EngineSource {
  void *state;
  const char *name;            /* for messages: the file */
  int height, width;           /* of the first input, as the model says; 0: it is not a picture */
  int free_height, free_width; /* whether they may differ from run to run */
  /* The network for pictures of this size, owned by the caller; NULL and a sentence. */
  Graph *(*graph)(void *state, int height, int width, Error *err);
  /* The parameters of the graph that was asked for last, into `weights`; NULL: they are there already. */
  int (*weights)(void *state, EngineWeights *weights, Error *err);
  const char *(*metadata)(const void *state, const char *key);   /* NULL: there is none */
  const char *(*value)(const void *state, int is_output, int i); /* what the file calls it; NULL: as the node */
  const struct OnnxImport *(*import)(const void *state); /* of the graph that was asked for last; NULL: there is none */
  int (*bytes)(void *state, unsigned char **bytes, size_t *size, Error *err); /* the model as a file; NULL: none */
  void (*close)(void *state);
} EngineSource;

/* In engine_lib.cu. The source is the engine's from now on, also on failure. -1 as engine_open(). */
int engine_open_source(Engine *engine, EngineSource source, const EngineOptions *options, Error *err);

/* ------------------------------------------------------------------------------------------- a Model of this course */

typedef struct EngineModelSource {
  const Model *model; /* stays with the caller until the engine is open */
} EngineModelSource;

static inline Graph *engine_model_graph(void *state, int height, int width, Error *err) {
  const Graph *g = ((const EngineModelSource *)state)->model->graph;
  const Shape in = graph_shape(g, model_input_node(((const EngineModelSource *)state)->model, 0));
  if (in.rank == 3 && (height != in.dim[1] || width != in.dim[2])) {
    error_set(err, "the network takes pictures of %d x %d, not of %d x %d", in.dim[1], in.dim[2], height, width);
    return NULL;
  }
  Graph *plain = graph_copy(g);
  graph_unfuse(plain);
  return plain;
}

static inline int engine_model_weights(void *state, EngineWeights *weights, Error *err) {
  (void)err;
  engine_weights_take(weights, ((const EngineModelSource *)state)->model);
  return 0;
}

/* Every operation by itself, as its builder made it. */
static inline EngineSource engine_model_source(const Model *model) {
  EngineSource source;
  EngineModelSource *own = (EngineModelSource *)xcalloc(1, sizeof *own);
  const Shape in = graph_shape(model->graph, model_input_node(model, 0));
  memset(&source, 0, sizeof source);
  own->model = model;
  source.state = own;
  source.name = "the network";
  source.height = in.rank == 3 ? in.dim[1] : 0;
  source.width = in.rank == 3 ? in.dim[2] : 0;
  source.graph = engine_model_graph;
  source.weights = engine_model_weights;
  source.close = free;
  return source;
}

#endif /* PHASE5_PRODUCTION_ENGINE_SOURCE_CUH */
