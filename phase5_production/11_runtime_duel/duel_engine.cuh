/* duel_engine.cuh - our engine as a contender. It opens the model, or the plan that a run before has written: then
 * nothing is measured at the start. */
#ifndef PHASE5_PRODUCTION_DUEL_ENGINE_CUH
#define PHASE5_PRODUCTION_DUEL_ENGINE_CUH

#include "common/device.h"
#include "phase5_production/08_engine/engine.h"
#include "phase5_production/11_runtime_duel/duel_answer.h"
#include "phase5_production/11_runtime_duel/duel_model.h"

typedef struct DuelEngine {
  DuelRunner runner;
  Engine engine;
  EngineOptions options;
  const DuelModel *model;
  const char *path; /* of the model, or of the plan */
  const float *samples;
  float *x, *y; /* on the device */
  int batch, height, width;
} DuelEngine;

static inline int duel_engine_prepare(void *self, int batch, Error *err) {
  DuelEngine *d = (DuelEngine *)self;
  const Device device = d->options.device;
  EngineValue value;
  if (d->engine.state == NULL) {
    if (engine_open(&d->engine, d->path, &d->options, err) != 0) return -1;
    if (engine_output_shape(&d->engine, 0, d->height, d->width, &value, &d->runner.output_floats, err) != 0) return -1;
    const size_t most = (size_t)d->options.max_batch;
    d->x = (float *)device_alloc(device, most * d->runner.sample_floats * sizeof *d->x);
    d->y = (float *)device_alloc(device, most * d->runner.output_floats * sizeof *d->y);
  }
  d->batch = batch;
  device_upload(device, d->x, d->samples, (size_t)batch * d->runner.sample_floats * sizeof *d->x);
  device_synchronize(device);
  return 0;
}

static inline int duel_engine_run(void *self, Error *err) {
  DuelEngine *d = (DuelEngine *)self;
  const float *const x[] = {d->x};
  float *const y[] = {d->y};
  if (d->options.device == DEVICE_CPU) return engine_run(&d->engine, d->x, d->batch, d->height, d->width, d->y, err);
  return engine_run_device(&d->engine, x, d->batch, d->height, d->width, y, err);
}

static inline int duel_engine_wait(void *self, Error *err) {
  const DuelEngine *d = (const DuelEngine *)self;
  (void)err;
  if (d->options.device == DEVICE_GPU) CUDA_CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  return 0;
}

static inline int duel_engine_outputs(void *self, float *y, Error *err) {
  const DuelEngine *d = (const DuelEngine *)self;
  (void)err;
  device_download(d->options.device, y, d->y, (size_t)d->batch * d->runner.output_floats * sizeof *y);
  return 0;
}

static inline void duel_engine_close(void *self) {
  DuelEngine *d = (DuelEngine *)self;
  if (d->x) device_free(d->options.device, d->x);
  if (d->y) device_free(d->options.device, d->y);
  if (d->engine.state) engine_close(&d->engine);
}

/* path: of the plan, or model->path. */
static inline void duel_engine_open(DuelEngine *d, const DuelModel *model, const char *path, const float *samples,
                                    EngineOptions options) {
  memset(d, 0, sizeof *d);
  d->model = model;
  d->path = path;
  d->samples = samples;
  d->options = options;
  d->height = model->rank == 4 ? (int)model->dim[2] : 0;
  d->width = model->rank == 4 ? (int)model->dim[3] : 0;
  d->options.max_height = d->height;
  d->options.max_width = d->width;
  const DuelRunner runner = {d,
                             duel_engine_prepare,
                             duel_engine_run,
                             duel_engine_wait,
                             duel_engine_outputs,
                             duel_engine_close,
                             duel_model_floats(model),
                             0,
                             0};
  d->runner = runner;
}

/* Chooses the kernels by measuring, and keeps the plan: what one does once for a model, before it is used. */
static inline int duel_engine_build(const DuelModel *model, const char *plan, EngineOptions options, Error *err) {
  Engine engine;
  options.max_height = model->rank == 4 ? (int)model->dim[2] : 0;
  options.max_width = model->rank == 4 ? (int)model->dim[3] : 0;
  if (engine_open(&engine, model->path, &options, err) != 0) return -1;
  const int status = engine_save(&engine, plan, err);
  engine_close(&engine);
  return status;
}

#endif /* PHASE5_PRODUCTION_DUEL_ENGINE_CUH */
