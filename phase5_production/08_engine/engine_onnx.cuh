/* engine_onnx.cuh - a file of ONNX as a source of an engine (engine_source.cuh). It is imported for each height and
 * width; the parameters of the last import are what engine_simplify() begins with. */
#ifndef PHASE5_PRODUCTION_ENGINE_ONNX_CUH
#define PHASE5_PRODUCTION_ENGINE_ONNX_CUH

#include "common/onnx/build.h"
#include "common/onnx/onnx.h"
#include "phase5_production/07_onnx_import/onnx_import.cuh"
#include "phase5_production/08_engine/engine_plan.h"
#include "phase5_production/08_engine/engine_source.cuh"

typedef struct EngineOnnx {
  OnnxModel model;
  OnnxImport import;
  int imported;
  EnginePlanFile plan; /* where the model came out of a plan */
  char name[PATH_MAX];

} EngineOnnx;

static inline void engine_onnx_close(void *state) {
  EngineOnnx *own = (EngineOnnx *)state;
  if (own->imported) onnx_import_close(&own->import);
  onnx_model_close(&own->model);
  engine_plan_close(&own->plan);
  free(own);
}

/* The first input that is not an initializer; NULL: there is none. */
static inline const Onnx__ValueInfoProto *engine_onnx_input(const EngineOnnx *own) {
  for (size_t i = 0; i < own->model.proto->graph->n_input; i++)
    if (onnx_initializer(&own->model, own->model.proto->graph->input[i]->name) == NULL)
      return own->model.proto->graph->input[i];
  return NULL;
}

static inline Graph *engine_onnx_graph(void *state, int height, int width, Error *err) {
  EngineOnnx *own = (EngineOnnx *)state;
  const Onnx__ValueInfoProto *x = engine_onnx_input(own);
  const char *symbol[ONNX_MAX_RANK];
  OnnxImportInput input;
  int inputs = 0;
  memset(&input, 0, sizeof input);
  if (x && onnx_value_shape(x, input.dim, symbol) == 4 && height > 0) {
    input.name = x->name;
    input.rank = 4;
    if (input.dim[0] < 0) input.dim[0] = ONNX_IMPORT_BATCH;
    input.dim[2] = height;
    input.dim[3] = width;
    inputs = 1;
  }
  if (own->imported) onnx_import_close(&own->import);
  own->imported = 0;
  if (onnx_import(&own->import, &own->model, inputs ? &input : NULL, inputs, err) != 0) return NULL;
  own->imported = 1;
  return own->import.graph;
}

static inline int engine_onnx_weights(void *state, EngineWeights *weights, Error *err) {
  const EngineOnnx *own = (const EngineOnnx *)state;
  (void)err;
  for (int i = 0; i < own->import.constant_count; i++) {
    const OnnxConstant *c = &own->import.constants[i];
    const size_t count = (c->bytes + sizeof(float) - 1) / sizeof(float);
    engine_weight_put(weights, c->name, (const float *)c->data, count, NULL);
  }
  return 0;
}

static inline const char *engine_onnx_metadata(const void *state, const char *key) {
  return onnx_metadata(&((const EngineOnnx *)state)->model, key);
}

static inline const char *engine_onnx_value(const void *state, int is_output, int i) {
  const OnnxImport *import = &((const EngineOnnx *)state)->import;
  return is_output ? import->outputs[i].name : import->inputs[i].name;
}

static inline const OnnxImport *engine_onnx_import(const void *state) { return &((const EngineOnnx *)state)->import; }

/* Every tensor of the model lies in it from now on. */
static inline int engine_onnx_embed(OnnxModel *m, Error *err) {
  for (size_t i = 0; i < m->proto->graph->n_initializer; i++) {
    Onnx__TensorProto *p = m->proto->graph->initializer[i];
    OnnxTensor t;
    if (p->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) continue;
    if (onnx_tensor_load(&t, m, p, err) != 0) return -1;
    p->raw_data.data = (uint8_t *)onnx_copy(m, t.data, t.bytes);
    p->raw_data.len = t.bytes;
    p->has_raw_data = 1;
    p->has_data_location = 0;
    p->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT;
    p->n_external_data = 0;
    onnx_tensor_free(&t);
  }
  return 0;
}

/* The model as bytes, to be freed. */
static inline int engine_onnx_bytes(void *state, unsigned char **bytes, size_t *size, Error *err) {
  EngineOnnx *own = (EngineOnnx *)state;
  if (engine_onnx_embed(&own->model, err) != 0) return -1;
  *size = onnx__model_proto__get_packed_size(own->model.proto);
  if (*size > ONNX_MAX_FILE) return error_set(err, "%s has %zu bytes; a plan has room for 2 GiB", own->name, *size);
  *bytes = (unsigned char *)xmalloc(*size + 1);
  onnx__model_proto__pack(own->model.proto, *bytes);
  return 0;
}

/* What the source says of its first input. */
static inline void engine_onnx_describe(EngineOnnx *own, EngineSource *source) {
  int64_t dim[ONNX_MAX_RANK];
  const char *symbol[ONNX_MAX_RANK];
  const Onnx__ValueInfoProto *x = engine_onnx_input(own);
  if (x == NULL || onnx_value_shape(x, dim, symbol) != 4) return;
  source->free_height = dim[2] < 0;
  source->free_width = dim[3] < 0;
  source->height = dim[2] > 0 && dim[2] < INT_MAX ? (int)dim[2] : 0;
  source->width = dim[3] > 0 && dim[3] < INT_MAX ? (int)dim[3] : 0;
}

/* A source of the file, .onnx or .nnplan. After 0 the engine closes it; *plan is NULL where it was not a plan. */
static inline int engine_onnx_source(EngineSource *source, const char *path, const EnginePlanFile **plan, Error *err) {
  EngineOnnx *own = (EngineOnnx *)xcalloc(1, sizeof *own);
  unsigned char begin[8];
  char folder[PATH_MAX];
  memset(source, 0, sizeof *source);
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block before it is refused */
  const ssize_t got = file >= 0 ? read(file, begin, sizeof begin) : 0;
  if (file >= 0) close(file);
  *plan = NULL;
  snprintf(own->name, sizeof own->name, "%s", path);
  int status;
  if (engine_plan_is(begin, got > 0 ? (size_t)got : 0)) {
    onnx_folder(folder, path);
    status = engine_plan_open(&own->plan, path, err);
    if (status == 0) status = onnx_parse_as(&own->model, own->name, own->plan.model, own->plan.model_size, folder, err);
    *plan = &own->plan;
  } else {
    status = onnx_model_read(&own->model, path, err);
  }
  if (status != 0) {
    *plan = NULL;
    engine_plan_close(&own->plan);
    free(own);
    return -1;
  }
  source->state = own;
  source->name = own->name;
  source->graph = engine_onnx_graph;
  source->weights = engine_onnx_weights;
  source->metadata = engine_onnx_metadata;
  source->value = engine_onnx_value;
  source->import = engine_onnx_import;
  source->bytes = engine_onnx_bytes;
  source->close = engine_onnx_close;
  engine_onnx_describe(own, source);
  return 0;
}

#endif /* PHASE5_PRODUCTION_ENGINE_ONNX_CUH */
