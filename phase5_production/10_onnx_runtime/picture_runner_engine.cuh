/* picture_runner_engine.cuh - our engine (lesson 8) in the place of ONNX Runtime: --runtime=engine. */
#ifndef PHASE5_PRODUCTION_PICTURE_RUNNER_ENGINE_CUH
#define PHASE5_PRODUCTION_PICTURE_RUNNER_ENGINE_CUH

#include "phase5_production/08_engine/engine.h"
#include "phase5_production/10_onnx_runtime/picture_runner.cuh"

/* The port as ONNX Runtime would describe it. */
static inline OrtPort runner_engine_port(EngineValue value) {
  OrtPort port;
  memset(&port, 0, sizeof port);
  snprintf(port.name, sizeof port.name, "%s", value.name);
  port.type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  port.rank = value.rank;
  for (int i = 0; i < value.rank && i < ORT_RANK; i++) port.dim[i] = value.dim[i];
  return port;
}

static inline int runner_infer_engine(Runner *r, float *x, int n, int height, int width, float *y, size_t y_floats,
                                      Error *err) {
  Engine *engine = (Engine *)r->engine;
  const float *const in[] = {x};
  float *const out[] = {y};
  (void)y_floats;
  if (r->device == DEVICE_CPU) return engine_run(engine, x, n, height, width, y, err);
  return engine_run_device(engine, in, n, height, width, out, err);
}

static inline int runner_shape_engine(Runner *r, float *x, int n, int height, int width, int *rank,
                                      int64_t dim[ORT_RANK], Error *err) {
  EngineValue value;
  size_t floats;
  (void)x, (void)n;
  if (engine_output_shape((Engine *)r->engine, 0, height, width, &value, &floats, err) != 0) return -1;
  *rank = value.rank;
  for (int i = 0; i < value.rank && i < ORT_RANK; i++) dim[i] = value.dim[i];
  dim[0] = 1;
  return 0;
}

static inline void runner_close_engine(Runner *r) {
  engine_close((Engine *)r->engine);
  free(r->engine);
}

static inline int runner_open_engine(Runner *r, const char *model, const EngineOptions *options, Error *err) {
  memset(r, 0, sizeof *r);
  Engine *engine = (Engine *)xcalloc(1, sizeof *engine);
  r->engine = engine;
  r->infer = runner_infer_engine;
  r->shape = runner_shape_engine;
  r->close = runner_close_engine;
  r->device = options->device;
  if (engine_open(engine, model, options, err) != 0) {
    free(engine);
    return -1;
  }
  snprintf(r->name, sizeof r->name, "our engine, %s, %s", device_name(options->device),
           engine_precision_name(options->precision));
  r->input = runner_engine_port(engine_input(engine, 0));
  r->output = runner_engine_port(engine_output(engine, 0));
  if (engine_inputs(engine) == 1) return 0;
  const int inputs = engine_inputs(engine);
  runner_close_engine(r);
  return error_set(err, "%s has %d inputs; one, for pictures, was expected", model, inputs);
}

#endif /* PHASE5_PRODUCTION_PICTURE_RUNNER_ENGINE_CUH */
